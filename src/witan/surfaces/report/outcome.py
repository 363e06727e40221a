"""Reports of an outcome and of a verdict."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import comb
from typing import TYPE_CHECKING

from witan.core.display import chance_percent, level_percent
from witan.core.outcome import Outcome, Standing
from witan.core.rules import RULES
from witan.core.stats.priors import Severity
from witan.core.verdict import MeanGrade, Verdict
from witan.service.text import UNKNOWN, count_noun, decimals, interval_text, list_text, number
from witan.service.trust import (
    ignores_chance,
    mean_grade_text,
    p_best_text,
    trust_line,
    verdict_sentence,
)
from witan.surfaces.report.document import (
    SHADES,
    Block,
    Cell,
    Chart,
    Column,
    Facts,
    Heading,
    Note,
    Report,
    Sentence,
    Sides,
    Table,
    columns_with_values,
    table_of,
)
from witan.surfaces.report.names import BY_NAME, MOST_PAIRED, CandidateNames, first_of

if TYPE_CHECKING:
    from witan.service.operations.sessions import RecountResult

DISSENTS = 8
"""Most ballots with a sentence each; above, only their number is stated."""

PAIR_MAP = "Chance in percent that the row is placed above the column"

CLOSE = "≈"
"""Mark of a pair that is too close to call."""

COVERAGE = "Share of eligible ballots that rank it: high from 80%, medium from 50%, otherwise low."

P_BEST = "Probability that another panel of similar reviewers would rank it best."

TIER = "Candidates linked by pairs too close to call share a tier; 1 is the best."

HALF_AGREED = 0.5
"""Least Kendall's W for ballots that agree."""


def outcome_report(
    result: "Outcome | RecountResult", *, is_simulated: bool | None = None
) -> Report:
    """Write the report of an outcome.

    `is_simulated`: scripts cast its ballots; None: its details say so.
    """
    outcome = result if isinstance(result, Outcome) else result.outcome
    mark = bool(outcome.details.get("simulated") if is_simulated is None else is_simulated)
    verdict = None if isinstance(result, Outcome) else result.verdict
    verdict_parts = () if verdict is None else verdict_blocks(verdict, BY_NAME)
    return Report(
        "Simulated outcome" if mark else "Outcome",
        (outcome.session,) if outcome.session else (),
        outcome.interpretation,
        (*verdict_parts, Heading("Ranking", "ranking"), *outcome_blocks(outcome)),
    )


def outcome_blocks(outcome: Outcome) -> Iterator[Block]:
    """Yield everything below the interpretation of an outcome."""
    yield from ranking_blocks(outcome, BY_NAME)
    yield Facts(tuple(BY_NAME.sentence(trust_line(outcome)).split(" · ")))
    yield agreed_and_contested(outcome, BY_NAME)
    yield from pair_map(outcome, BY_NAME)
    yield from order_note(outcome, BY_NAME)
    yield from abstention_notes(outcome, BY_NAME)


def order_note(outcome: Outcome, names: CandidateNames) -> Iterator[Note]:
    """Describe how consistent reviewers were on reversed sheets."""
    if outcome.order_kept:
        both = [f"{name} {n_alike} of {n}" for name, (n_alike, n) in outcome.order_kept.items()]
        text = f"Pairs judged the same in both orders (a flip counts as a tie): {list_text(both)}."
        yield Note(names.sentence(text), "reason")


def abstention_notes(outcome: Outcome, names: CandidateNames) -> Iterator[Note]:
    """Yield why each reviewer abstained."""
    for reviewer, why in outcome.abstentions.items():
        reason = "" if why == "abstained" else f": {why}"
        yield Note(names.sentence(f"{reviewer} abstained{reason}"), "reason")


def ranking_blocks(
    outcome: Outcome, names: CandidateNames, before: Outcome | None = None
) -> tuple[Block, ...]:
    """Write how the ballots were counted, the standings, and the warnings.

    `before` is the count to compare it with, if any.
    """
    outcome = names.order_outcome(outcome)
    ballots = count_noun(outcome.n_ballots, "ballot")
    why = f"; it was {names.sentence(outcome.why)}" if outcome.why else ""
    scales = {scale.sentence for scale in outcome.scales}
    return (
        Sentence(f"The rule {outcome.rule} counted {ballots}{why}.", quiet=True),
        _table(outcome, names, before),
        *(
            Note(names.sentence(text), "warning", option="scale" if text in scales else "")
            for text in outcome.warnings
        ),
    )


def _table(outcome: Outcome, names: CandidateNames, before: Outcome | None) -> Table:
    """Return every column with content; a line separates tiers."""
    lines = outcome.standings
    return table_of(
        f"Ranking by {outcome.rule}",
        _columns(outcome, names),
        breaks={at for at in range(1, len(lines)) if lines[at].tier != lines[at - 1].tier},
        strong=[at for at, line in enumerate(lines) if line.tier == 1 and line.votes],
        chart=partial(_chart, outcome, names, before),
    )


def _columns(outcome: Outcome, names: CandidateNames) -> list[tuple[Column, list[str]]]:
    lines = outcome.standings
    digits = decimals([line.score for line in lines])
    title = "score (low is best)" if RULES[outcome.rule].lower_is_better else "score"
    percent = f"{level_percent(outcome.level)} interval"
    candidates = [names.name(line.candidate) for line in lines]
    errors = [number(line.std_error, digits) for line in lines]
    failures = [f"failed: {', '.join(line.failed)}" if line.failed else "" for line in lines]
    return [
        (Column("rank"), [str(line.rank) for line in lines]),
        (Column("candidate", "left", fit="middle", heads=True), candidates),
        (Column(title), [number(line.score, digits) for line in lines]),
        *columns_with_values(
            (Column("± error", keep=70, hint="Standard error of the score."), errors),
            (Column(percent, keep=10), [interval_text(line.interval, digits) for line in lines]),
        ),
        (
            Column("votes", keep=60, hint="Ballots that rank it."),
            [str(line.votes) for line in lines],
        ),
        (Column("wins", keep=30, hint="Ballots that place it first."), _wins(lines)),
        *columns_with_values(
            (Column("mean grade", "left", keep=20), [_grade(line) for line in lines])
        ),
        (Column("coverage", "left", keep=40, hint=COVERAGE), [line.confidence for line in lines]),
        (
            Column("p_best", keep=80, hint=P_BEST),
            [p_best_text(line.p_best) for line in lines],
        ),
        (Column("tier", keep=50, hint=TIER), [str(line.tier) for line in lines]),
        *columns_with_values((Column("safety", "left", keep=90), failures)),
    ]


def _wins(lines: Sequence[Standing]) -> list[str]:
    """Whole numbers unless some first place was shared."""
    all_whole = all(float(line.wins).is_integer() for line in lines)
    return [number(line.wins, 0 if all_whole else 2) for line in lines]


def _grade(line: Standing) -> str:
    if line.mean_grade is None:
        return UNKNOWN
    return f"{number(line.mean_grade, 1)} {line.band or ''}".rstrip()


def _chart(outcome: Outcome, names: CandidateNames, before: Outcome | None) -> Chart:
    # Imported here because only pages have charts.
    from witan.surfaces.report.standings import standings_chart

    return standings_chart(outcome, names, before)


def agreed_and_contested(outcome: Outcome, names: CandidateNames) -> Sides:
    """Write what the ballots agree on and what they contest."""
    outcome = names.order_outcome(outcome)
    return Sides(
        (
            ("Agreed", tuple(_agreed_sentences(outcome, names))),
            ("Contested", tuple(_condorcet_sentences(outcome, names))),
        )
    )


def _agreed_sentences(outcome: Outcome, names: CandidateNames) -> Iterator[str]:
    yield from _separation_sentences(outcome, names)
    firsts = {note.ranking[0] for note in outcome.ballots if note.ranking}
    if len(outcome.ballots) > 1 and len(firsts) == 1 and len(group := firsts.pop()) == 1:
        yield f"Every ballot places {names.name(group[0])} first."
    winner = outcome.condorcet_winner
    if winner is not None and winner in outcome.leaders:
        yield f"{_majorities(winner, names)}{_chance_of(winner, outcome, names)}."
    if outcome.kendall_w is not None and outcome.kendall_w >= HALF_AGREED:
        yield _kendall_w(outcome.kendall_w)


def _kendall_w(value: float) -> str:
    return f"Kendall's W of the ballots is {number(value)} (0 no concordance, 1 full)."


def _separation_sentences(outcome: Outcome, names: CandidateNames) -> Iterator[str]:
    """Report which candidates of two tiers are separated."""
    placed = [line for line in outcome.standings if line.votes > 0 and not line.failed]
    if len({line.tier for line in placed}) < 2:
        return
    unresolved = {frozenset(pair) for pair in outcome.unresolved}
    above: dict[tuple[str, ...], list[str]] = {}
    for at, line in enumerate(placed):
        lower = [each.candidate for each in placed[at + 1 :] if each.tier != line.tier]
        surely = [each for each in lower if frozenset((line.candidate, each)) not in unresolved]
        if surely:
            above.setdefault(tuple(surely), []).append(line.candidate)
    noise = f"beyond noise at {level_percent(outcome.level)}"
    for below, upper_names in above.items():
        stands = "stands" if len(upper_names) == 1 else "stand"
        upper, lower_text = (list_text([*map(names.name, each)]) for each in (upper_names, below))
        yield f"{upper} {stands} above {lower_text}, {noise}."


def _condorcet_sentences(outcome: Outcome, names: CandidateNames) -> Iterator[str]:
    winner = outcome.condorcet_winner
    if winner is not None and winner not in outcome.leaders:
        yield f"{_majorities(winner, names)}, but it does not lead under {outcome.rule}."
    if outcome.disputed_by:
        above, below = (
            list_text([*map(names.name, name_list)])
            for name_list in (outcome.disputed_by, outcome.leaders)
        )
        yield f"The fit of the same ballots places {above} above {below}, beyond noise."
    for cycle in outcome.cycles:
        ring = list_text([*map(names.name, cycle)])
        yield f"{ring} form a preference cycle: no order agrees with every majority."
    if outcome.tie_broken_by is not None:
        yield f"Some ties were broken by {outcome.tie_broken_by}."
    if outcome.kendall_w is not None and outcome.kendall_w < HALF_AGREED:
        yield _kendall_w(outcome.kendall_w)
    yield from _dissents(outcome, names)
    if outcome.unresolved and not ignores_chance(outcome):
        n_close, n_placed = len(outcome.unresolved), sum(s.votes > 0 for s in outcome.standings)
        pairs = f"{n_close:,} of {count_noun(comb(n_placed, 2), 'pair')}"
        close = f"{'is' if n_close == 1 else 'are'} too close to call"
        yield f"{pairs} {close}: the order may be chance."


def _majorities(winner: str, names: CandidateNames) -> str:
    """State that a candidate beats each rival by count, regardless of chance."""
    return f"Pair by pair, more ballots place {names.name(winner)} above each rival than below it"


def _chance_of(winner: str, outcome: Outcome, names: CandidateNames) -> str:
    """Name the rivals over which its majority may be chance."""
    close = [each for pair in outcome.unresolved if winner in pair for each in pair]
    rivals = [names.name(each) for each in close if each != winner]
    if not rivals or ignores_chance(outcome):
        return ""
    return f"; against {list_text(rivals)} that may be chance"


def _dissents(outcome: Outcome, names: CandidateNames) -> Iterator[str]:
    """Describe which reviewers place other candidates above the leader."""
    if len(outcome.leaders) != 1:
        return
    leader, dissents = outcome.leaders[0], []
    for note in outcome.ballots:
        above: list[str] = []
        for group in note.ranking:
            if leader in group:
                break
            above += group
        else:
            continue  # it did not rank the leader, mostly its own answer
        if above:
            dissents.append(
                f"{names.name(note.reviewer)} ranks {list_text([*map(names.name, above)])}"
            )
    if len(dissents) > DISSENTS:
        yield f"{count_noun(len(dissents), 'ballot')} rank others above {names.name(leader)}."
        return
    for each in dict.fromkeys(dissents):
        yield f"Reviewer {each} above {names.name(leader)}."


def pair_map(outcome: Outcome, names: CandidateNames) -> Iterator[Block]:
    """Tabulate the probability of each candidate against those below it."""
    outcome = names.order_outcome(outcome)
    lines = outcome.standings
    rows = [at for at in range(len(lines)) if any(outcome.p_beats[at])]
    if len(rows) < 2 or ignores_chance(outcome):
        return
    caption = f"{PAIR_MAP}{first_of(len(rows))}"
    rows = rows[:MOST_PAIRED]
    unresolved = {*map(frozenset, outcome.unresolved)}

    def cell(row: int, column: int) -> Cell:
        chance = outcome.p_beats[row][column]
        if row >= column or chance is None:
            return Cell("" if row >= column else None)
        is_close = frozenset((lines[row].candidate, lines[column].candidate)) in unresolved
        text = chance_percent(chance).removesuffix("%")
        shade = round(2 * SHADES * abs(chance - HALF_AGREED))
        mark = f"{CLOSE}{'' if text.isdecimal() else ' '}" if is_close else ""  # ≈97, ≈ >99
        return Cell(f"{mark}{text}", shade=shade)

    titles = [names.name(lines[at].candidate) for at in rows]
    columns: list[tuple[Column, list[str | Cell]]] = [
        (Column("", "left", fit="middle", heads=True), [*titles[:-1]])
    ]
    for keep, (title, column) in enumerate(zip(titles[1:], rows[1:], strict=True)):
        cells: list[str | Cell] = [cell(row, column) for row in rows[:-1]]
        columns.append((Column(title, keep=99 - keep, fit="middle"), cells))
    yield table_of(caption, columns, form="heat")
    level = level_percent(outcome.level)
    mark = f"{CLOSE} too close to call at {level}, by a stricter test of these ballots alone"
    yield Sentence(f"{caption}; {mark}.", quiet=True)
    learned = outcome.prior is not None and outcome.prior.source != "public"
    n_reviewers = len({ballot.reviewer for ballot in outcome.ballots})
    ranked = outcome.fit == "ranks" and n_reviewers == len(outcome.ballots)  # otherwise pairs
    if ranked and not learned and n_reviewers <= FEW_RANKINGS:
        yield Sentence(
            f"{count_noun(n_reviewers, 'ranking')} cannot show how far apart candidates are: if "
            "they are nearly equal, these probabilities are too high.",
            quiet=True,
        )


UNGRADED = "–"

FEW_RANKINGS = 5
"""Most reviewers for the warning that rankings of nearly equal candidates look too certain."""

SIDE_BY_SIDE = 3
"""Most texts with a column of grades each."""


def verdict_blocks(verdict: Verdict, names: CandidateNames) -> Iterator[Block]:
    """Write the decision, and a table of grades by text."""
    yield Heading("Verdict", "verdict")
    yield Sentence(names.sentence(verdict_sentence(verdict)))
    yield from grade_blocks(verdict, names)


def grade_blocks(verdict: Verdict, names: CandidateNames) -> Iterator[Block]:
    """Write grades by text, and explain intervals; nothing without grades."""
    if all(text.overall is None and not text.criteria for text in verdict.texts):
        return
    yield _verdict_table(verdict, names)
    level_text = level_percent(verdict.level)
    severity = "the unknown severity of reviewers counts as noise"
    if verdict.severity is not None:
        severity = "uncertainty about the reviewers' severity widens them"
        yield Sentence(_severity_sentence(verdict, verdict.severity, names))
    grades = [each for t in verdict.texts for each in (t.overall, *t.criteria.values()) if each]
    if not any(each.interval for each in grades):
        yield Sentence("There are too few ballots for an interval.", quiet=True)
        return
    yield Sentence(
        f"Intervals cover the mean grade of similar reviewers in {level_text} of cases; "
        f"{severity}.",
        quiet=True,
    )


def _severity_sentence(verdict: Verdict, severity: Severity, names: CandidateNames) -> str:
    """Describe which reviewers' grades are corrected, and by how much."""
    offset_by_reviewer = dict(zip(severity.reviewers, severity.offsets, strict=True))
    corrections = [
        f"{names.name(name)} {f'{-offset_by_reviewer[name]:+z.1f}'.replace('-', '−')}"
        for name in verdict.reviewers
        if name in offset_by_reviewer
    ]
    others = [names.name(name) for name in verdict.reviewers if name not in offset_by_reviewer]
    unknown = f"; the severity of {list_text(others)} is unknown" if others else ""
    sessions = count_noun(severity.n_sessions, "other session")
    # Several texts also have a ranking, whose grades describe the ballots themselves.
    grades = "Grades" if len(verdict.texts) == 1 else "These grades, unlike those of the ranking,"
    return (
        f"{grades} are corrected for the severity that {sessions} show: "
        f"{list_text(corrections)}{unknown}. Use the prior none to leave grades uncorrected."
    )


def verdict_report(verdict: Verdict) -> Report:
    """Write the report of a verdict."""
    _, *blocks = verdict_blocks(verdict, BY_NAME)
    return Report("Verdict", (), "", tuple(blocks))


def _verdict_table(verdict: Verdict, names: CandidateNames) -> Table:
    """Tabulate grades, a column per text, or a row if many."""
    texts, criteria = verdict.texts, {name: None for t in verdict.texts for name in t.criteria}
    rows: list[tuple[str, list[str | Cell]]] = [
        ("overall", [_mean_grade_cell(t.overall) for t in texts])
    ]
    if verdict.pass_mark is not None:
        mark = f"P(≥ {verdict.pass_mark:g})"
        rows.append((mark, [p_best_text(t.p_pass) for t in texts]))
    rows += [(name, [_mean_grade_cell(t.criteria.get(name)) for t in texts]) for name in criteria]
    headings: list[str | Cell] = [names.name(t.text) for t in texts]
    columns: list[tuple[Column, list[str | Cell]]]
    if len(texts) > SIDE_BY_SIDE:
        columns = [(Column("text", "left", fit="middle", heads=True), headings)]
        columns += [(Column(name, "left", keep=40), cells) for name, cells in rows]
    else:
        columns = [(Column("grade", "left", heads=True), [name for name, _ in rows])]
        columns += [
            (Column(names.name(texts[n].text), "left"), [cells[n] for _, cells in rows])
            for n in range(len(texts))
        ]
    return table_of("Grades, from 1 to 10", columns)


def _mean_grade_cell(grade: MeanGrade | None) -> str:
    return UNGRADED if grade is None else mean_grade_text(grade)
