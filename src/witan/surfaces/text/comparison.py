"""Rules side by side as text."""

from collections.abc import Iterable, Iterator, Sequence

from witan.core.comparison import Comparison
from witan.core.outcome import Outcome
from witan.service.operations.compare import RuleComparison
from witan.service.text import UNKNOWN, Page, counted, decimals, number
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table
from witan.surfaces.text.outcomes import SHOWN, unread_text


def comparison_text(page: Page, comparison: Comparison, shown: Sequence[str]) -> Iterator[str]:
    """The lines of a comparison; the sessions `shown` have a table each."""
    for session in shown:
        yield page.sentence(f"Session {session}" if session else "Every rule", "bold")
        yield from _session_table(page, comparison, session)
        yield ""
    over = f"over {counted(len(comparison.sessions), 'session')}"
    yield page.sentence(f"How steady each rule is, {over}", "bold")
    yield from _rule_table(page, comparison)
    yield ""
    if len(comparison.rules) > 1:
        yield page.sentence(
            f"How alike the rankings are: Kendall's τ between rules, {over}", "bold"
        )
        yield from _triangle(page, comparison.rules, _tau_cells(comparison))
        yield ""
        if len(comparison.sessions) > 1:
            yield page.sentence(f"Sessions in which the leaders differ, {over}", "bold")
            cells = [[str(n) for n in row] for row in comparison.leader_differs]
            yield from _triangle(page, comparison.rules, cells)
            yield ""
    for sentence in _scales(page, comparison):
        yield page.sentence(f"note: {sentence}", "warning", hang=2)
    for rule, why in comparison.skipped.items():
        yield page.sentence(f"left out: {rule}, because it {_because(why)}", "dim", hang=2)


def compared_text(page: Page, result: RuleComparison) -> Iterator[str]:
    """The lines of a comparison, and of what could not be read."""
    comparison = result.comparison
    shown = comparison.sessions if result.n_sessions <= SHOWN else ()
    yield from comparison_text(page, comparison, shown)
    yield from unread_text(result.not_read)


def _scales(page: Page, comparison: Comparison) -> Iterable[str]:
    """How the grades of all sessions are read."""
    outcomes = (one for by_rule in comparison.outcomes.values() for one in by_rule.values())
    option = page.option("scale")
    return dict.fromkeys(
        scale.sentence_with(option) for outcome in outcomes for scale in outcome.scales
    )


def _because(why: str) -> str:
    return why.removeprefix("it ")


def _session_table(page: Page, comparison: Comparison, session: str) -> Iterator[str]:
    """Rules down, candidates across, each with its rank and score."""
    outcomes = comparison.outcomes[session]
    if not outcomes:
        yield page.sentence("No rule could count this session.")
        return
    names = [line.candidate for line in next(iter(outcomes.values())).standings]
    columns = [
        Column("rule", "left"),
        Column("leader", "left", elastic=True),
        # The last candidates go first where there is not room for all.
        *(
            Column(name, "left", keep=99 - min(place, 98), elastic=True)
            for place, name in enumerate(names)
        ),
    ]
    rows = [[rule, _leader(outcome), *_cells(outcome, names)] for rule, outcome in outcomes.items()]
    yield from table(page, columns, rows)
    yield page.sentence("Each cell: rank and score; (=) tied with the leader.", "dim")


def _leader(outcome: Outcome) -> str:
    return " = ".join(outcome.leaders) or UNKNOWN


def _cells(outcome: Outcome, names: Sequence[str]) -> Iterator[str]:
    digits = decimals([line.score for line in outcome.standings])
    leaders, tied = outcome.leaders, outcome.tied_for_best
    for name in names:
        line = outcome[name]
        mark = " (=)" if name in tied and name not in leaders else ""
        yield f"{line.rank}  {number(line.score, digits)}{mark}"


def _rule_table(page: Page, comparison: Comparison) -> Iterator[str]:
    """Per rule: how often its leader is clear, and how often it survives the loss of a ballot."""
    columns = [
        Column("rule", "left"),
        Column("clear leader"),
        Column("dead heat", keep=60),
        Column("steady"),
        Column("leads", "left", elastic=True, keep=50),
    ]
    rows = []
    for rule in comparison.rules:
        found = [held[rule] for held in comparison.outcomes.values() if rule in held]
        clear = sum(outcome.clear_leader is not None for outcome in found)
        shared = sum(len(outcome.leaders) > 1 for outcome in found)
        stable = comparison.stability[rule]
        kept = UNKNOWN if stable is None else f"{number(100 * stable, 0)}%"
        rows.append([rule, _of(clear, len(found)), _of(shared, len(found)), kept, _leads(found)])
    yield from table(page, columns, rows)
    yield page.sentence(
        "Steady: single ballots whose removal leaves the leaders exactly as they were.", "dim"
    )


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}"


def _leads(outcomes: Sequence[Outcome]) -> str:
    """Who leads how often, a shared lead counted for each."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        for leader in outcome.leaders:
            counts[leader] = counts.get(leader, 0) + 1
    order = sorted(counts, key=lambda name: (-counts[name], name))
    if len(outcomes) == 1:
        return " = ".join(order)
    return ", ".join(f"{name} {counts[name]:,}" for name in order)


def _tau_cells(comparison: Comparison) -> list[list[str]]:
    return [[number(tau, 2) for tau in row] for row in comparison.tau]


def _triangle(page: Page, rules: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """The half of a symmetric matrix below its diagonal, columns named by number."""
    columns = [
        Column("", "right"),
        Column("", "left"),
        *(Column(str(number), keep=99 - number) for number in range(1, len(rules))),
    ]
    rows = [
        [str(row + 1), rule, *(cells[row][c] if c < row else "" for c in range(len(rules) - 1))]
        for row, rule in enumerate(rules)
    ]
    return table(page, columns, rows)
