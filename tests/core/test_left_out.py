"""Leaving a grade out never places its candidate higher than the lowest grade would."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from witan import RULES, Ballot, tally

NAMES = ("a", "b", "c", "d")

IN_SESSION = [name for name, rule in RULES.items() if rule.needs != "history"]

CRITERIA = ("accuracy", "relevance", "completeness", "conciseness", "clarity")


@st.composite
def sheets(draw, stated=True, rubric=False):
    """Ballots of a session that grade everybody on their sheets but their own, and some rank."""
    names = NAMES[: draw(st.integers(2, 4))]
    whole = st.integers(1, 10)
    grade = st.fixed_dictionaries(dict.fromkeys(CRITERIA, whole)) if rubric else whole
    ballots = []
    for number in range(draw(st.integers(2, 4))):
        reviewer = draw(st.sampled_from([f"r{number}", *names[number : number + 1]]))
        shown = [name for name in names if name != reviewer]
        if stated and number:
            shown = draw(st.lists(st.sampled_from(shown), min_size=1, unique=True))
        ranked = draw(st.permutations(shown)) if draw(st.booleans()) else []
        ballots.append(
            Ballot(
                reviewer,
                groups=tuple((name,) for name in ranked),
                grades={name: draw(grade) for name in shown},
                candidates=tuple(shown) if stated else None,
                scale="1-10",
            )
        )
    return ballots


@st.composite
def without_one(draw, **more):
    """Ballots with a grade left out, the same with the lowest in its place, and whose it is."""
    ballots = draw(sheets(**more))
    reviewer = draw(st.sampled_from(ballots))
    name = draw(st.sampled_from(sorted(reviewer.grades)))
    others = [b for b in ballots if b is not reviewer]
    assume(len(reviewer.grades) > 1)
    assume(any(name in ballot.grades for ballot in others))
    if not more.get("stated", True):
        # Another ballot grades everybody: so everybody was there to be graded.
        mentioned = {c for ballot in ballots for c in ballot.grades}
        assume(any(mentioned <= {*b.grades, b.reviewer} for b in others))
    given = reviewer.grades[name]
    lowest = dict.fromkeys(given, 1) if isinstance(given, dict) else 1
    left = {c: grade for c, grade in reviewer.grades.items() if c != name}

    def cast(grades):
        return [replace(b, grades=grades) if b is reviewer else b for b in ballots]

    return cast(left), cast({**reviewer.grades, name: lowest}), name


def lines(ballots, rule, **more):
    """What an outcome says of each candidate."""
    return {
        line.candidate: (line.rank, line.score, line.votes, line.p_best, line.tier)
        for line in tally(ballots, rule, **more).standings
    }


@pytest.mark.parametrize("rule", ["auto", *IN_SESSION])
@given(
    st.sampled_from([{}, {"stated": False}, {"rubric": True}]).flatmap(
        lambda kind: without_one(**kind)
    )
)
def test_left_out_is_no_better_than_the_lowest(rule, cast):
    """A grade left out counts as the lowest one, by every rule."""
    left_out, lowest, name = cast

    without = lines(left_out, rule, recusal="before")
    assert without[name][0] >= lines(lowest, rule, recusal="before")[name][0]
    assert without == lines(lowest, rule, recusal="before")


@pytest.mark.parametrize("rule", ["auto", "calibrated", "range", "normalized_scores", "hybrid"])
class TestUnpunished:
    """Who was not there to be graded has no vote from that ballot, and no lowest grade."""

    def cast(self, last):
        return [
            Ballot("r1", grades={"a": 8, "b": 6, "c": 7}),
            Ballot("r2", grades={"a": 9, "b": 5, "c": 7}),
            last,
        ]

    def test_ones_own(self, rule):
        """A reviewer that keeps to its rivals does itself no harm."""
        outcome = tally(self.cast(Ballot("a", grades={"b": 6, "c": 7})), rule)

        assert outcome["a"].votes == 2
        assert outcome["a"].mean_grade == 8.5
        assert not outcome.warnings

    @pytest.mark.parametrize(
        "sheet", [{"candidates": ("b", "c")}, {"positions": {"b": 1, "c": 2}}], ids=str
    )
    def test_off_the_sheet(self, rule, sheet):
        """A ballot that says what it was shown leaves nobody else out."""
        ballots = self.cast(Ballot("r3", grades={"b": 6, "c": 7}, **sheet))
        ballots[0] = replace(ballots[0], candidates=("a", "b", "c"))
        outcome = tally(ballots, rule)

        assert (outcome["a"].votes, outcome["a"].mean_grade) == (2, 8.5)

    def test_partial_sheets_that_nobody_states(self, rule):
        """Where no ballot grades everybody, each was shown whom it names."""
        ballots = [
            Ballot("r1", grades={"a": 8, "b": 6}),
            Ballot("r2", grades={"b": 5, "c": 7}),
            Ballot("r3", grades={"c": 7, "a": 9}),
        ]
        outcome = tally(ballots, rule)

        assert [outcome[name].votes for name in "abc"] == [2, 2, 2]
        assert outcome["a"].mean_grade == 8.5

    def test_an_abstention(self, rule):
        """A seat that casts no ballot leaves nobody out."""
        outcome = tally(self.cast(Ballot("r3", abstained=True, candidates=("a", "b", "c"))), rule)

        assert (outcome["a"].votes, outcome["a"].mean_grade) == (2, 8.5)


def test_who_forgets_is_told():
    """The warning names the ballot, the candidate, and how to say that it was not shown."""
    outcome = tally([Ballot("r1", grades={"a": 8, "b": 6}), Ballot("r2", grades={"a": 7})], "range")

    assert outcome["b"].mean_grade == 3.5
    [warning] = outcome.warnings
    assert all(fact in warning for fact in ("r2 gives no grade to 'b'", "the lowest counts"))


@pytest.mark.parametrize("rule", IN_SESSION)
def test_a_capped_answer_that_all_list_first_does_not_lead(rule):
    """Accuracy 2 caps it below the dull one, whoever ranks it first, by every rule."""
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
