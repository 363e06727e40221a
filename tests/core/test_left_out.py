"""Omitting a grade never places its candidate above the lowest grade."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from witan import RULES, Ballot, tally
from witan.core.gate import Gate
from witan.core.scale_recognition import recognise_scales

EXAMPLES = settings().max_examples
HALF = settings(max_examples=EXAMPLES // 2 if EXAMPLES < 50 else EXAMPLES)
"""A property of every rule: in the fast tests each rule has half of the examples."""

NAMES = ("a", "b", "c", "d")

IN_SESSION = [name for name, rule in RULES.items() if rule.needs != "history"]

CRITERIA = ("accuracy", "relevance", "completeness", "conciseness", "clarity")

SCALES = {None: (1, 10), "1-10": (1, 10), "0-3": (0, 3), "0-100": (0, 100), "5-1": (5, 1)}
"""Scales of grades, with their worst and best; None is recognised."""

SETTINGS = {
    "recusal": ["before", "after", "off"],
    "unranked": ["skip", "last"],
    "ties": ["contrast", "intervals"],
    "tie_break": [None, "none", "wins", "borda"],
    "prior": ["public", "none"],
    "rho": ["learn", "none", 0.4],
    "gates": [{}, {"": Gate({"a": ("pii_exposure",)})}],
}

PARAMETERS = {
    "borda": [{}, {"variant": "roster"}, {"variant": "truncated"}],
    "weighted_borda": [{}, {"reliability": {"r0": 3}}],
    "hybrid": [{}, {"alpha": 0.1}, {"alpha": 0.9}],
    "schulze": [{}, {"strength": "margins"}],
}


def options_of(rule):
    """Any options, and any parameters of the rule."""
    options = st.fixed_dictionaries({k: st.sampled_from(v) for k, v in SETTINGS.items()})
    return st.builds(dict.__or__, options, st.sampled_from(PARAMETERS.get(rule, [{}])))


@st.composite
def sheets(draw, scale, stated, rubric):
    """Ballots that grade all candidates on their sheets and rank some, or only rank some.

    A reviewer may have written one of the candidates, and have it on its sheet.
    """
    names = NAMES[: draw(st.integers(2, 4))]
    whole = st.integers(*sorted(SCALES[scale]))
    grade = st.fixed_dictionaries(dict.fromkeys(CRITERIA, whole)) if rubric else whole
    ballots = []
    for number in range(draw(st.integers(2, 4))):
        reviewer = draw(st.sampled_from([f"r{number}", *names[number : number + 1]]))
        sheet = [name for name in names if name != reviewer or draw(st.booleans())]
        if stated and number:
            sheet = draw(st.lists(st.sampled_from(sheet), min_size=1, unique=True))
        ranked = draw(st.permutations(sheet))[: draw(st.integers(0, len(sheet)))]
        only_ranks = ranked and not draw(st.integers(0, 3))
        ballots.append(
            Ballot(
                reviewer,
                groups=tuple((name,) for name in ranked),
                grades={} if only_ranks else {name: draw(grade) for name in sheet},
                candidates=tuple(sheet) if stated == "candidates" else None,
                positions={n: k for k, n in enumerate(sheet, 1)} if stated == "positions" else None,
                weight=draw(st.sampled_from([1.0, 1.0, 0.5, 3.0])),
                scale=scale,
            )
        )
    return ballots


def omit_grades(name, ballots):
    """The same ballots without grades for one candidate."""
    bare = [{c: grade for c, grade in b.grades.items() if c != name} for b in ballots]
    return [replace(b, grades=grades) for b, grades in zip(ballots, bare, strict=True)]


@st.composite
def with_and_without_a_grade(draw, *, graded_elsewhere):
    """Ballots with a grade omitted, the same with the lowest in its place, and the candidate."""
    scale = draw(st.sampled_from(list(SCALES)))
    stated = draw(st.sampled_from(["candidates", "positions", ""][: 2 + graded_elsewhere]))
    rubric = draw(st.booleans())
    ballots = draw(sheets(scale, stated, rubric))
    grading = [ballot for ballot in ballots if ballot.grades]
    assume(grading)
    reviewer = draw(st.sampled_from(grading))
    name = draw(st.sampled_from(sorted(reviewer.grades)))
    others = [b for b in ballots if b is not reviewer]
    if not graded_elsewhere:
        others = omit_grades(name, others)
    left = {c: grade for c, grade in reviewer.grades.items() if c != name}
    assume(name != reviewer.reviewer)  # silence about oneself is a recusal
    assume(left.keys() - {reviewer.reviewer})  # else it casts no grades
    assume(any(name in ballot.grades for ballot in others) == graded_elsewhere)
    if not stated:
        # Another ballot grades everybody: so everybody was there to be graded, but for authors.
        mentioned = {c for ballot in grading for c in ballot.grades}
        assume(any(mentioned <= {*b.grades, b.reviewer} for b in others))

    def cast(grades):
        return [replace(reviewer, grades=grades), *others]

    scales = [ballot.scale for ballot in recognise_scales(cast(left))]
    lowest = int(scales[0].whole.low)
    full = cast(left | {name: dict.fromkeys(CRITERIA, lowest) if rubric else lowest})
    assume([ballot.scale for ballot in recognise_scales(full)] == scales)
    return cast(left), full, name


def lines(ballots, rule, options):
    """The outcome's line of each candidate."""
    return {
        line.candidate: (line.rank, line.score, line.votes, line.p_best, line.tier)
        for line in tally(ballots, rule, **options).standings
    }


@pytest.mark.parametrize("rule", ["auto", *RULES])
@HALF
@given(st.data())
def test_an_omitted_grade_counts_as_the_lowest(rule, data):
    """By every rule and option, if others grade the candidate; Elo reads ranks from grades."""
    options = data.draw(options_of(rule))
    left_out, lowest, _ = data.draw(with_and_without_a_grade(graded_elsewhere=True))

    assert lines(left_out, rule, options) == lines(lowest, rule, options)


@pytest.mark.parametrize("rule", ["auto", *RULES])
@HALF
@given(st.data())
def test_an_omitted_grade_ranks_no_higher_than_the_lowest(rule, data):
    """By every rule and option, if no other ballot grades it; only failed candidates are lower."""
    options = data.draw(options_of(rule))
    left_out, lowest, name = data.draw(with_and_without_a_grade(graded_elsewhere=False))

    without, full = lines(left_out, rule, options), lines(lowest, rule, options)
    if name in without:  # else nobody names it
        rank, _, n_votes, *_ = without[name]
        failed = options["gates"][""].failed if options["gates"] else ()
        last = max(line[0] for c, line in without.items() if c == name or c not in failed)
        assert rank >= full[name][0] or (not n_votes and rank == last)


def test_remaining_places_rank_equal_to_the_lowest_grade():
    """With `unranked="last"`, a candidate without grade and rank ties with one graded 1."""
    ballots = [
        Ballot("r1", groups=(("a",),), grades={"a": 1, "c": 1, "d": 2}, candidates=tuple("abcd")),
        Ballot("r2", groups=(("a",),), candidates=("a",), scale="1-10"),
    ]
    outcome = tally(ballots, "hybrid", unranked="last")

    assert outcome["b"].score == outcome["c"].score
    assert outcome["b"].rank == 3


@pytest.mark.parametrize("rule", ["auto", "calibrated", "range", "normalized_scores", "hybrid"])
class TestNotOnTheSheet:
    """A candidate off the sheet has no vote from that ballot, and no lowest grade."""

    def cast(self, last):
        return [
            Ballot("r1", grades={"a": 8, "b": 6, "c": 7}),
            Ballot("r2", grades={"a": 9, "b": 5, "c": 7}),
            last,
        ]

    def test_own_candidates_may_be_omitted(self, rule):
        """A reviewer that grades only its rivals does itself no harm."""
        outcome = tally(self.cast(Ballot("a", grades={"b": 6, "c": 7})), rule)

        assert outcome["a"].votes == 2
        assert outcome["a"].mean_grade == 8.5
        assert not outcome.warnings

    @pytest.mark.parametrize(
        "sheet", [{"candidates": ("b", "c")}, {"positions": {"b": 1, "c": 2}}], ids=str
    )
    def test_candidates_off_the_sheet_may_be_omitted(self, rule, sheet):
        """A ballot that states its sheet omits nobody else."""
        ballots = self.cast(Ballot("r3", grades={"b": 6, "c": 7}, **sheet))
        ballots[0] = replace(ballots[0], candidates=("a", "b", "c"))
        outcome = tally(ballots, rule)

        assert (outcome["a"].votes, outcome["a"].mean_grade) == (2, 8.5)

    def test_unstated_sheets_are_the_candidates_named(self, rule):
        """Where no ballot grades all candidates, each saw only those that it names."""
        ballots = [
            Ballot("r1", grades={"a": 8, "b": 6}),
            Ballot("r2", grades={"b": 5, "c": 7}),
            Ballot("r3", grades={"c": 7, "a": 9}),
        ]
        outcome = tally(ballots, rule)

        assert [outcome[name].votes for name in "abc"] == [2, 2, 2]
        assert outcome["a"].mean_grade == 8.5

    def test_an_abstention_omits_nobody(self, rule):
        """A seat without a ballot gives no lowest grades."""
        outcome = tally(self.cast(Ballot("r3", abstained=True, candidates=("a", "b", "c"))), rule)

        assert (outcome["a"].votes, outcome["a"].mean_grade) == (2, 8.5)


def test_an_omission_gives_a_warning():
    """It names the ballot, the candidate, and how to declare the sheet."""
    outcome = tally([Ballot("r1", grades={"a": 8, "b": 6}), Ballot("r2", grades={"a": 7})], "range")

    assert outcome["b"].mean_grade == 3.5
    [warning] = outcome.warnings
    assert all(fact in warning for fact in ("r2 gives no grade to 'b'", "the lowest counts"))


@pytest.mark.parametrize("rule", IN_SESSION)
def test_a_capped_answer_ranked_first_does_not_lead(rule):
    """Accuracy 2 caps it below the other answer, whichever ballot ranks it first."""
    error = dict.fromkeys(CRITERIA, 10) | {"accuracy": 2}
    ballots = [
        Ballot(
            f"r{k}",
            groups=(("wrong",), ("dull",)),
            grades={"wrong": error, "dull": dict.fromkeys(CRITERIA, 6 + k % 2)},
        )
        for k in range(4)
    ]

    assert tally(ballots, rule).leaders == ("dull",)
