"""Ballots on mirrored sheets are merged; rankings without grades are repaired."""

import json
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from councils import council, member, members
from elections import ballot
from witan import tally
from witan.core.ballot import Ballot
from witan.core.rubric import RUBRICS
from witan.deliberation.ballots import merge
from witan.deliberation.events import BallotRepaired
from witan.deliberation.ports import Call
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.models.scripted import Line
from witan.service.trust import session_trust

pytestmark = pytest.mark.anyio

NAMES = "abcde"


def cast(order: str, **more: object) -> Ballot:
    """Write a ballot as `a > b = c`."""
    return ballot(f"rev: {order}", session="q1", **more)


def graded(grade: int) -> dict[str, int]:
    """The same grade on every criterion of the usual rubric."""
    return {criterion.name: grade for criterion in RUBRICS["general"].criteria}


def written(cast: Ballot) -> str:
    return " > ".join(" = ".join(group) for group in cast.groups)


class TestRanking:
    """A pair ordered alike in both orders is kept; a flipped one is tied."""

    @pytest.mark.parametrize(
        ("first", "second", "merged", "flipped", "compared"),
        [
            ("a > b > c", "a > b > c", "a > b > c", 0, 3),
            ("a > b > c", "a > c > b", "a > b = c", 1, 3),
            ("a > b > c", "c > b > a", "a = b = c", 3, 3),
            ("a > b > c > d", "b > a > d > c", "a = b > c = d", 2, 6),
            ("a > b > c", "b > c > a", "b = a > c", 2, 3),
            ("a = b > c", "a > b > c", "a > b > c", 0, 2),
            ("a = b > c", "b = a > c", "a = b > c", 0, 2),
            ("a > b", "b", "a > b", 0, 0),
        ],
    )
    def test_flipped_neighbours_are_tied(self, first, second, merged, flipped, compared):
        """Mean places order the candidates."""
        result = merge(cast(first), cast(second))

        assert written(result.ballot) == merged
        assert (result.n_flipped, result.n_compared) == (flipped, compared)

    def test_a_flip_ties_no_pair_that_both_agree_on(self):
        """Flips of c against a and b do not tie a and b, which both orders rank alike."""
        result = merge(cast("b > a > c"), cast("c > b > a"))

        assert result.n_flipped == 2
        assert written(result.ballot) == "b = c > a"

    @given(
        first=st.permutations(NAMES),
        second=st.permutations(NAMES),
        cuts=st.tuples(*[st.lists(st.booleans(), min_size=4, max_size=4)] * 2),
    )
    def test_agreed_pairs_are_kept(self, first, second, cuts):
        """No pair that both ballots order alike is tied or reversed."""
        ballots = []
        for order, tied in zip((first, second), cuts, strict=True):
            groups = [[order[0]]]
            for name, level in zip(order[1:], tied, strict=True):
                if level:
                    groups[-1].append(name)
                else:
                    groups.append([name])
            ballots.append(Ballot("rev", tuple(tuple(g) for g in groups)))

        result = merge(*ballots)

        one, other, both = (place(b) for b in (*ballots, result.ballot))
        agreed = 0
        for a, b in combinations(NAMES, 2):
            if (one[a] - one[b]) * (other[a] - other[b]) > 0:
                agreed += 1
                assert (both[a] - both[b]) * (one[a] - one[b]) > 0
        assert agreed == result.n_compared - result.n_flipped


def place(cast: Ballot) -> dict[str, int]:
    return {name: i for i, group in enumerate(cast.groups) for name in group}


class TestGrades:
    """Grades are means."""

    @pytest.mark.parametrize(
        ("first", "second", "merged"),
        [
            ({"a": 8}, {"a": 6}, {"a": 7.0}),
            ({"a": "8/10"}, {"a": 7.5}, {"a": 7.75}),
            ({"a": "8"}, {"a": 8}, {"a": "8"}),
            ({"a": "good"}, {"a": 6}, {"a": 6}),
            ({"a": "good"}, {"a": "fair"}, {"a": "good"}),
            ({"a": 8}, {"b": 6}, {"a": 8, "b": 6}),
            (
                {"a": {"accuracy": 8, "clarity": 4}},
                {"a": {"accuracy": 9, "depth": 2}},
                {"a": {"accuracy": 8.5, "clarity": 4, "depth": 2}},
            ),
            ({"a": 9}, {"a": {"accuracy": 6}}, {"a": {"accuracy": 6}}),
        ],
    )
    def test_two_grades_become_their_mean(self, first, second, merged):
        """If only one can be read, it is used as given."""
        result = merge(Ballot("rev", grades=first), Ballot("rev", grades=second))

        assert result.ballot.grades == merged

    def test_flips_are_found_in_grades_without_rankings(self):
        """No ranking is made up."""
        first = Ballot("rev", grades={"a": graded(9), "b": graded(6), "c": 3})
        second = Ballot("rev", grades={"a": graded(5), "b": graded(7), "c": 3})

        result = merge(first, second)

        assert (result.n_flipped, result.n_compared) == (1, 3)
        assert result.ballot.groups == ()

    def test_a_flip_is_tied_in_grades_and_ranking(self):
        """Where criteria are graded the grades decide, so tied candidates share theirs."""
        first = cast("x > y > z", grades={"x": graded(9), "y": graded(5), "z": graded(2)})
        second = cast("y > x > z", grades={"x": graded(6), "y": graded(7), "z": graded(2)})

        merged = merge(first, second)
        [note, _] = tally([merged.ballot, replace(first, reviewer="other")]).ballots

        assert (merged.n_flipped, merged.n_compared) == (1, 3)
        assert note.ranking == (("x", "y"), ("z",))

    def test_grades_alone_can_flip_a_pair(self):
        """The ranking may agree in both orders: the order of the grades counts."""
        first = cast("x > y", grades={"x": graded(9), "y": graded(5)})
        second = cast("x > y", grades={"x": graded(5), "y": graded(9)})

        assert merge(first, second).n_flipped == 1


class TestOtherFields:
    """Otherwise the merged ballot is the first one."""

    def test_positions_are_the_first_and_notes_are_joined(self):
        first = cast("a > b", positions={"a": 1, "b": 2}, notes="one", candidates=("a", "b"))
        second = cast("a > b", positions={"b": 1, "a": 2}, notes="two", candidates=("a", "b"))

        merged = merge(first, second).ballot

        assert merged == cast(
            "a > b", positions={"a": 1, "b": 2}, notes="one\n\ntwo", candidates=("a", "b")
        )

    def test_without_notes_the_merged_ballot_has_none(self):
        assert merge(cast("a > b"), cast("b > a")).ballot.notes is None


def by_place(call: Call) -> str:
    """Rank the answers in the order of the sheet, without grades."""
    labels = call.schema["properties"]["ranking"]["items"]["items"]["enum"]
    return json.dumps({"notes": "In order.", "ranking": [[label] for label in labels]})


async def ask_five(repair: object = by_place, **options: object) -> Session:
    """Ask a council of five, the last of whom ranks without grading."""
    last = member("e", reviews=[by_place], repairs=[repair])
    seated = [*members("abcd", "cabde"), last]
    async with council(seated, synthesis=False, **options) as held:
        return await held.ask("What now?")


async def test_a_ranking_without_grades_is_repaired():
    """The reviewer learns what is missing, and its second review counts in full."""
    graded = Line(prefers=tuple(f"says {name}," for name in "cabde"))

    session = await ask_five(graded)

    [repair] = [event for event in session.events if isinstance(event, BallotRepaired)]
    assert "without grading them" in repair.problem
    assert session.status == "complete"
    assert session.outcome.n_ballots == 5
    assert session.outcome.without_effect == ()


async def test_grades_on_less_than_half_of_the_rubric_are_repaired():
    """The reviewer learns which criteria are missing, and its second review counts in full."""

    def thin(call: Call) -> str:
        labels = call.schema["properties"]["ranking"]["items"]["items"]["enum"]
        return json.dumps({"grades": {label: {"relevance": 8, "clarity": 7} for label in labels}})

    graded = Line(prefers=tuple(f"says {name}," for name in "cabde"))
    last = member("e", reviews=[thin], repairs=[graded])
    async with council([*members("abcd", "cabde"), last], synthesis=False) as held:
        session = await held.ask("What now?")

    [repair] = [event for event in session.events if isinstance(event, BallotRepaired)]
    assert "no grades on accuracy, completeness and conciseness" in repair.problem
    assert session.status == "complete"
    assert session.outcome.n_ballots == 5


async def test_a_ranking_left_without_grades_has_no_effect():
    """Status, trust line and number of ballots leave it out, and name it."""
    session = await ask_five()

    assert session.status == "degraded"
    [lack] = session.missing
    assert all(fact in lack for fact in ("e gave no grades", "calibrated"))
    assert session.outcome.n_ballots == 4
    assert session.outcome.without_effect == ("e",)
    assert "4 of 5 reviewers" in session_trust(session)
    assert session.recount(without=["e"]).standings[0].p_best == session.outcome.standings[0].p_best


async def test_low_grades_of_a_council_keep_the_scale_1_to_10():
    """A tally of the session's ballots gives its outcome, before and after the record."""

    def lowly(call: Call) -> str:
        labels = call.schema["properties"]["ranking"]["items"]["items"]["enum"]
        names = list(call.schema["properties"]["grades"]["properties"][labels[0]]["properties"])
        grades = {label: dict.fromkeys(names, 5 - n) for n, label in enumerate(labels)}
        ranking = [[label] for label in labels]
        return json.dumps({"notes": "None is good.", "ranking": ranking, "grades": grades})

    seated = [member(name, reviews=[lowly]) for name in "abcde"]
    async with council(seated, synthesis=False) as held:
        session = await held.ask("What now?")

    again = session_from_json(session_to_json(session))
    assert tally(session.ballots).standings == session.outcome.standings
    assert tally(again.ballots).standings == session.outcome.standings
    assert again == session


async def test_a_rule_for_rankings_needs_no_repair():
    """All five ballots have an effect."""
    session = await ask_five(rule="borda")

    assert not any(isinstance(event, BallotRepaired) for event in session.events)
    assert session.status == "complete"
    assert session.outcome.n_ballots == 5


async def test_a_quorum_is_of_ballots_with_an_effect():
    """With fewer than the quorum there is no outcome, and the session says why."""
    session = await ask_five(quorum=5)

    assert session.outcome is None
    assert any("4 of the 5 ballots" in line for line in session.missing)
