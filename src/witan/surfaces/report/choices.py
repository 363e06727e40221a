"""Reports of rules, rubrics and councils."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from witan.service.text import UNKNOWN
from witan.surfaces.report.document import (
    Block,
    Column,
    Heading,
    Note,
    Report,
    Sentence,
    Sides,
    Table,
    table_of,
)

if TYPE_CHECKING:
    from witan.deliberation.ports import Seat
    from witan.service.operations.profiles import Profiles
    from witan.service.operations.rules import RubricEntry, RubricList, RuleEntry, RuleList
    from witan.service.sessions.councils import CouncilProfile


@dataclass(frozen=True, slots=True)
class Situation:
    """A rule for a kind of council, with reasons and objections."""

    when: str
    take: str
    speaks_for: str
    speaks_against: str


SITUATIONS = (
    Situation(
        when="you do not want to choose",
        take="auto",
        speaks_for="it uses calibrated if the grades suffice, otherwise borda, and says which.",
        speaks_against="outcomes of different sessions may then be on different scales.",
    ),
    Situation(
        when="the grades mean something",
        take="calibrated",
        speaks_for="harsh and generous reviewers are put on one scale, even where they judged "
        "different candidates; at 3 to 5 reviewers it finds the best 1 to 2 points more often than "
        "normalized_scores.",
        speaks_against="arbitrary grades make arbitrary scores; borda reads only the order.",
    ),
    Situation(
        when="you must state how certain the result is",
        take="any rule with ties by contrast, the default",
        speaks_for="under it a leader is declared between true equals in 1 of 100 councils of 3 to "
        "7, and in 1 to 6 where models share a third of their noise; overlapping intervals of each "
        "candidate do so in 7 to 12.",
        speaks_against="three ballots say little: councils of three find a lead of 3 σ in 36 of "
        "100 sessions with grades and 11 without; where the leader is one of the three reviewers, "
        "in 10 and none.",
    ),
    Situation(
        when="there are more than ten reviewers",
        take="borda, or schulze",
        speaks_for="simulated with Mallows noise, schulze finds the best about a point more often "
        "at 15 reviewers.",
        speaks_against="simulated with Plackett–Luce noise, it does so 1 to 3 points less often; "
        "at four reviewers it shares 33 of 100 leads, borda 5.",
    ),
    Situation(
        when="near-copies of an answer, or majority cycles, are likely",
        take="schulze or ranked_pairs",
        speaks_for="a copy cannot split or multiply its votes, and a candidate that beats every "
        "other head to head wins.",
        speaks_against="with few reviewers margins are often equal, so first places are shared.",
    ),
    Situation(
        when="you want a leaderboard over time",
        take="elo, or bradley_terry on the pooled comparisons",
        speaks_for="elo follows a model that changes; bradley_terry does not depend on the order "
        "of the sessions and knows its error.",
        speaks_against="elo depends on the order and on k; comparisons inside a session are not "
        "independent, so only errors clustered by session hold (94–95% at 95%; others 48–85%).",
    ),
)


def rules_report(rules: "RuleList") -> Report:
    """Write the report of all rules, one rule, or ``auto``."""
    if not rules.rules:
        first, *others = rules.auto
        return Report("Rule", ("auto",), first, tuple(map(Sentence, others)))
    if len(rules.rules) == 1:
        [rule] = rules.rules
        return Report("Rule", (rule.name,), rule.summary, (_properties(rule),))
    return Report("Rules", (), "", (_rule_table(rules.rules), *_guide()))


def _rule_table(rules: "Sequence[RuleEntry]") -> Table:
    auto = "calibrated if the grades suffice, otherwise borda (the default)."
    return table_of(
        "Rules",
        [
            (Column("rule", "left", heads=True), ["auto", *(rule.name for rule in rules)]),
            (Column("needs", "left"), ["ballots", *(rule.needs for rule in rules)]),
            (
                Column("what it is", "left", fit="fold"),
                [auto, *(rule.summary for rule in rules)],
            ),
        ],
    )


def _guide() -> Iterator[Block]:
    yield Note("With a name, everything of one rule.", "hint")
    for at, each in enumerate(SITUATIONS, start=1):
        yield Heading(f"If {each.when}: {each.take}", f"when-{at}")
        yield Sides((("For", (each.speaks_for,)), ("Against", (each.speaks_against,))))


def _properties(rule: "RuleEntry") -> Table:
    properties = {
        "needs": rule.needs,
        "use it when": rule.use_when,
        "evidence": rule.evidence,
        "source": rule.source,
        "parameters": ", ".join(f"{key}={value}" for key, value in rule.parameters.items()),
        "satisfies": ", ".join(rule.satisfies) or "none claimed",
        "equal scores": _tie_break(rule),
        "scores": f"{'low' if rule.lower_is_better else 'high'} is best",
        "version": str(rule.version),
    }
    return table_of(
        rule.name,
        [
            (Column("", "left", heads=True), [*properties]),
            (Column("", "left", fit="fold"), [text or "none" for text in properties.values()]),
        ],
    )


def _tie_break(rule: "RuleEntry") -> str:
    if rule.tie_break == "none":
        return "share a rank"
    by = "first places" if rule.tie_break == "wins" else "Borda"
    return f"are separated by {by}; what is still equal shares a rank"


def rubrics_report(rubrics: "RubricList") -> Report:
    """Write the report of all rubrics, or one in detail."""
    if len(rubrics.rubrics) == 1:
        [rubric] = rubrics.rubrics
        return Report("Rubric", (rubric.name,), "", tuple(_criteria(rubric)))
    return Report("Rubrics", (), "", (_rubric_table(rubrics.rubrics),))


def _rubric_table(rubrics: "Sequence[RubricEntry]") -> Table:
    return table_of(
        "Rubrics",
        [
            (Column("rubric", "left", heads=True), [rubric.name for rubric in rubrics]),
            (
                Column("criteria and their weights", "left", fit="fold"),
                [
                    ", ".join(f"{each.name} {each.weight:.2f}" for each in rubric.criteria)
                    for rubric in rubrics
                ],
            ),
        ],
    )


def _criteria(rubric: "RubricEntry") -> Iterator[Block]:
    for criterion in rubric.criteria:
        yield Heading(f"{criterion.name}, weight {criterion.weight:.2f}", criterion.name)
        yield Sentence(criterion.description)
        grades = [f"{anchor.low}–{anchor.high}" for anchor in criterion.anchors]
        yield table_of(
            criterion.name,
            [
                (Column("", "left", heads=True), grades),
                (Column("", "left", fit="fold"), [each.text for each in criterion.anchors]),
            ],
        )
    if rubric.ceilings:
        yield Heading("Ceilings", "ceilings")
    for ceiling in rubric.ceilings:
        yield Sentence(
            f"With {ceiling.criterion} under {ceiling.below:g}, "
            f"the overall grade is at most {ceiling.at_most:g}."
        )


def profiles_report(result: "Profiles") -> Report:
    """Write the report of councils, their seats and any problems."""
    profiles = result.profiles
    if not profiles:
        return Report("Councils", (), "No council is configured.", ())
    columns = [
        (Column("profile", "left", heads=True), [*map(_name, profiles)]),
        (
            Column("seats", "left", fit="fold"),
            [_models(each.seats) or UNKNOWN for each in profiles],
        ),
    ]
    if any(each.jury for each in profiles):
        juries = [_models(each.jury) or "its members" for each in profiles]
        columns.append((Column("judged by", "left", fit="fold"), juries))
    if any(each.about for each in profiles):
        columns.append((Column("about", "left", fit="fold"), [each.about for each in profiles]))
    problems = (
        Note(f"{_name(each)} is not usable: {each.problem}", "concern")
        for each in profiles
        if each.problem is not None
    )
    return Report("Councils", (), "", (table_of("Councils", columns), *problems))


def _name(profile: "CouncilProfile") -> str:
    simulated = " (simulated)" if profile.simulated else ""
    return f"{profile.name or '(no profile named)'}{simulated}"


def _models(seats: "Iterable[Seat]") -> str:
    return ", ".join(seat.name if seat.simulated else seat.source or seat.name for seat in seats)
