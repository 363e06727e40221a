"""Write the report comparing rules on the same ballots."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from math import isclose
from typing import TYPE_CHECKING

from witan.core.comparison import Comparison
from witan.core.display import percent
from witan.core.outcome import Outcome
from witan.errors import NothingToCount
from witan.service.text import UNKNOWN, count_noun, decimals, list_text, number
from witan.surfaces.report.chart import Grid, Square, signed_number
from witan.surfaces.report.document import (
    Block,
    Chart,
    Column,
    Heading,
    Note,
    Report,
    Sentence,
    Table,
    table_of,
)
from witan.surfaces.report.tally import problem_blocks, unread_blocks

if TYPE_CHECKING:
    from witan.service.operations.counting import RuleComparison

IN_FULL = 3
"""Most sessions with a table each; for more, only the totals are reported."""


SINGLE = Note("Name a session to see its candidates under every rule.", "hint")


def comparison_report(result: "Comparison | RuleComparison", most: int = IN_FULL) -> Report:
    """Write the report of a comparison, with tables of `most` sessions."""
    comparison = result if isinstance(result, Comparison) else result.comparison
    not_read, unused_options = (
        ((), ()) if isinstance(result, Comparison) else (result.not_read, result.without_effect)
    )
    name = [session for session in comparison.sessions if session]
    if len(comparison.sessions) > 1:
        name = [count_noun(len(comparison.sessions), "session")]
    return Report(
        "Comparison of rules",
        (*name, count_noun(len(comparison.rules), "rule")),
        _finding(comparison),
        (
            *(Note(text, "warning", option="scale") for text in _scales(comparison)),
            *(_sessions(comparison) if len(comparison.sessions) <= most else (SINGLE,)),
            *_steadiness(comparison),
            *_likeness(comparison),
            *_list_skipped(comparison),
            *unread_blocks(not_read),
            *problem_blocks("Without effect", "without-effect", unused_options),
        ),
    )


def _finding(comparison: Comparison) -> str:
    if not comparison.rules:
        return "No rule can count these ballots."
    if len(comparison.sessions) == 1:
        return _one_finding([*comparison.outcomes[comparison.sessions[0]].values()])
    of = _part(comparison.same_leaders, len(comparison.sessions))
    return f"All rules agree on the leaders in {of} sessions, as far as they can count them."


def _one_finding(outcomes: Sequence[Outcome]) -> str:
    """Describe under how many rules each leader leads, and clearly leads."""
    leads = Counter(each.leaders for each in outcomes).most_common()
    clear = Counter(each.leaders for each in outcomes if each.clear_leader is not None)
    parts = []
    for leaders, n_rules in leads:
        who = list_text(leaders) or "nobody"
        verb = "share the lead" if len(leaders) > 1 else "leads"
        if n_rules == clear[leaders]:
            verb += " clearly"
        if len(outcomes) == 1:
            under = outcomes[0].rule
        else:
            under = "every rule" if len(leads) == 1 else count_noun(n_rules, "rule")
        parts.append(f"{who} {verb} under {under}{_firmness(leaders, n_rules, clear[leaders])}")
    return f"{'; '.join(parts)}."


def _firmness(leaders: tuple[str, ...], n_rules: int, n_clear: int) -> str:
    if len(leaders) != 1 or n_clear == n_rules:
        return ""
    if n_rules == 1:
        return ", but not clearly"
    return f", clearly under {n_clear or 'none'}"


def _scales(comparison: Comparison) -> Iterable[str]:
    # Scales do not depend on the rule.
    outcomes = (one for each in comparison.outcomes.values() for one in islice(each.values(), 1))
    return dict.fromkeys(scale.sentence for outcome in outcomes for scale in outcome.scales)


def _sessions(comparison: Comparison) -> Iterator[Block]:
    for at, session in enumerate(comparison.sessions, start=1):
        yield Heading(f"Session {session}" if session else "Every rule", f"session-{at}")
        outcomes = [*comparison.outcomes[session].values()]
        if not outcomes:
            yield Sentence("No rule can count this session.")
            continue
        yield _session_table(comparison, session)
        if at == 1:
            yield Sentence(
                "In each cell: rank · score; (=) too close to call against the leader.", quiet=True
            )


def _session_table(comparison: Comparison, session: str) -> Table:
    """Table of rules (rows) by candidates (columns)."""
    outcomes = [*comparison.outcomes[session].values()]
    names = [line.candidate for line in outcomes[0].standings]
    return table_of(
        f"{session or 'Candidates'} under every rule",
        [
            (Column("rule", "left", heads=True), [each.rule for each in outcomes]),
            (
                Column("leader", "left", fit="middle"),
                [" = ".join(each.leaders) or UNKNOWN for each in outcomes],
            ),
            # Drop the last candidates first if there is not enough room.
            *(
                (
                    Column(name, "left", keep=99 - min(place, 98), fit="middle"),
                    [_rank(each, name) for each in outcomes],
                )
                for place, name in enumerate(names)
            ),
        ],
        chart=partial(_ranks_chart, comparison, session),
    )


def _rank(outcome: Outcome, name: str) -> str:
    line = outcome[name]
    score = number(line.score, decimals([each.score for each in outcome.standings]))
    tied = name in outcome.tied_for_best and name not in outcome.leaders
    return f"{line.rank} · {score}{' (=)' if tied else ''}"


def _steadiness(comparison: Comparison) -> Iterator[Block]:
    """Describe how often each rule has a clear leader, and how stably."""
    if not comparison.rules:
        return
    leads = [comparison.leads[rule] for rule in comparison.rules]
    many = len(comparison.sessions) > 1
    columns = [
        (Column("rule", "left", fit="fold" if many else "whole", heads=True), [*comparison.rules]),
        (Column("clear leader"), [_part(each.clear, each.sessions) for each in leads]),
        (Column("dead heat", keep=60), [_part(each.shared, each.sessions) for each in leads]),
        (
            Column(
                "steady",
                meaning="share of single ballots whose removal leaves the leaders unchanged",
            ),
            [percent(comparison.stability[rule]) for rule in comparison.rules],
        ),
    ]
    if many:
        counts = [", ".join(f"{name} {n:,}" for name, n in each.times.items()) for each in leads]
        columns.append((Column("leads", "left", fit="fold", keep=50), counts))
    yield Heading("How stable each rule is", "steady")
    yield table_of("How stable each rule is", columns)


def _part(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}"


def _likeness(comparison: Comparison) -> Iterator[Block]:
    """Compare rules in pairs: rankings, and leaders over several sessions."""
    if len(comparison.rules) < 2:
        return
    yield Heading("How similar the rankings are", "alike")
    if all(tau is not None and isclose(tau, 1) for taus in comparison.tau for tau in taus):
        yield Sentence("All rules give the same ranking: Kendall's τ is 1.")
    else:
        yield Sentence("Kendall's τ between two rules: 1 the same order, 0 chance, −1 the reverse.")
        taus = [[*map(signed_number, line)] for line in comparison.tau]
        chart = partial(_likeness_chart, comparison)
        yield _pairs("Kendall's τ between rules", comparison.rules, taus, chart)
    if any(map(any, comparison.leader_differs)):
        several = count_noun(len(comparison.sessions), "session")
        differs = [[f"{n:,}" for n in line] for line in comparison.leader_differs]
        yield Heading("Sessions in which the leaders differ", "differ")
        yield Sentence(f"Of {several}, as far as both rules can count them.")
        yield _pairs("Sessions in which the leaders of two rules differ", comparison.rules, differs)


def _pairs(
    title: str,
    rules: Sequence[str],
    rows: Sequence[Sequence[str]],
    chart: Callable[[], Chart] | None = None,
) -> Table:
    """Write the half of a symmetric matrix below its diagonal."""
    n_rules = len(rules)
    return table_of(
        title,
        [
            (Column(""), [str(a + 1) for a in range(n_rules)]),
            (Column("rule", "left", heads=True), [*rules]),
            *(
                (
                    Column(str(b + 1), keep=98 - b),
                    [rows[a][b] if b < a else "" for a in range(n_rules)],
                )
                for b in range(n_rules - 1)
            ),
        ],
        chart=chart,
    )


def comparison_chart(comparison: Comparison) -> Chart:
    """Chart rules side by side: ranks, or Kendall's τ over several sessions."""
    if not comparison.sessions or not comparison.rules:
        raise NothingToCount("there is nothing to compare: no rule counted any session")
    if len(comparison.sessions) > 1:
        return _likeness_chart(comparison)
    return _ranks_chart(comparison, comparison.sessions[0])


def _ranks_chart(comparison: Comparison, session: str) -> Chart:
    """Chart the rank of each candidate under each rule of one session."""
    outcomes = comparison.outcomes[session]
    rules = tuple(rule for rule in comparison.rules if rule in outcomes)
    ranks = {rule: {s.candidate: s.rank for s in outcomes[rule].standings} for rule in rules}
    order = list(dict.fromkeys(name for rule in rules for name in ranks[rule]))
    order.sort(key=lambda name: sum(ranks[rule].get(name, len(order)) for rule in rules))
    squares = tuple(
        tuple(_rank_square(ranks[rule], name, rule) for rule in rules) for name in order
    )
    return Chart(
        Grid(tuple(order), rules, squares),
        "Ranks under every rule",
        "Number: rank under the rule, = a shared rank.",
        _one_finding([*outcomes.values()]),
        (*([f"session {session}"] if session else []), *_left_out(comparison)),
    )


def _rank_square(ranks: Mapping[str, int], name: str, rule: str) -> Square:
    """Print a rank, darker for better, with "=" if shared."""
    rank = ranks.get(name)
    if rank is None:
        return Square(UNKNOWN, f"{name} under {rule}: unknown", None)
    shared = "=" if list(ranks.values()).count(rank) > 1 else ""
    share = 1 - (rank - 1) / max(len(ranks) - 1, 1)
    return Square(f"{rank}{shared}", f"{name} under {rule}: {rank}{shared}", share)


def _left_out(comparison: Comparison) -> list[str]:
    return [f"not counted: {', '.join(comparison.skipped)}"] * bool(comparison.skipped)


def _likeness_chart(comparison: Comparison) -> Chart:
    """Chart mean τ between rules and how often leaders differ."""
    rules, total = comparison.rules, len(comparison.sessions)
    if len(rules) < 2:
        raise NothingToCount(f"there is nothing to compare {list_text(rules)} with: no other rule")
    known = [tau for i, row in enumerate(comparison.tau) for tau in row[:i] if tau is not None]
    least = min([*known, 0.9])
    squares = tuple(
        tuple(
            Square(
                signed_number(tau),
                f"{rule} and {rules[j]}: {signed_number(tau)}",
                None if tau is None else (tau - least) / (1 - least),
                str(comparison.leader_differs[i][j]),
            )
            for j, tau in enumerate(comparison.tau[i][:i])
        )
        for i, rule in enumerate(rules)
    )
    return Chart(
        Grid(rules[1:], rules[:-1], squares[1:]),
        "Kendall’s τ between rules",
        "Large: mean Kendall’s τ between two rules’ rankings; small: sessions of "
        f"{total:,} in which their leaders differ.",
        _finding(comparison),
        tuple(_left_out(comparison)),
    )


def _list_skipped(comparison: Comparison) -> Iterator[Block]:
    if comparison.skipped:
        yield Heading("Rules left out", "left-out")
    rules: dict[str, list[str]] = {}
    for rule, why in comparison.skipped.items():
        rules.setdefault(why.removeprefix("it "), []).append(rule)
    for why, names in rules.items():
        yield Note(f"{', '.join(names)}: {why}", "reason")
