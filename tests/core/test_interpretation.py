"""From ballots to votes: every step of the reading and every correction."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import ballot
from witan.core.ballot import Ballot
from witan.core.gate import Gate
from witan.core.interpretation import Counting, interpret
from witan.core.plain_sessions import interpret_plain_sessions
from witan.core.profile import Electorate, Vote
from witan.core.rubric import RUBRICS
from witan.core.scale import Scale
from witan.core.tally import tally
from witan.errors import InvalidParameter, TooLarge


def read(*cast: Ballot, gate: Gate | None = None, **counting) -> Electorate:
    return interpret("q", cast, Counting(**counting), gate)


def ranks(vote: Vote) -> list[float | None]:
    return [place / 2 if place else None for place in vote.places]


class TestAbstention:
    """A seat without a vote."""

    def test_an_abstention_has_its_reason_and_counts_in_coverage(self):
        """The seat has no vote but could have cast one."""
        told = Ballot("z", abstained=True, reason="call timeout")

        electorate = read(ballot("x: a > b"), told)

        assert electorate.abstentions == {"z": "call timeout"}
        assert electorate.offered == (2, 2)

    def test_an_empty_ballot_is_an_abstention(self):
        """Without ranking and grades there is no vote, and the reason says so."""
        electorate = read(ballot("x: a > b"), ballot("y:"))

        assert electorate.abstentions == {
            "y": "gave neither a ranking nor a grade that can be read"
        }

    def test_a_ballot_of_weight_zero_is_an_abstention(self):
        """The reason names the weight."""
        electorate = read(ballot("x: a > b"), ballot("y: b > a", weight=0.0))

        assert electorate.abstentions == {"y": "weighs nothing"}

    @pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
    def test_an_invalid_weight_is_refused(self, weight):
        """A negative, infinite or missing weight is an error that names the reviewer."""
        with pytest.raises(InvalidParameter, match="the weight of y's ballot"):
            read(ballot("x: a > b"), ballot("y: b > a", weight=weight))


class TestLabels:
    """Names on a ballot."""

    def test_an_unknown_name_is_dropped_with_a_warning(self):
        """With a declared roster, an unknown name loses its place and the others close up."""
        electorate = read(ballot("x: a > ghost > b", candidates=("a", "b")))

        assert ranks(electorate.votes[0]) == [1, 2]
        [warning] = electorate.warnings
        assert all(fact in warning for fact in ("x ranks 'ghost'", "dropped"))

    def test_the_first_place_of_a_repeated_name_counts(self):
        """Repeating a name changes no score."""
        electorate = read(ballot("x: a > b > a > c"))

        assert ranks(electorate.votes[0]) == [1, 2, 3]
        assert "first place counts" in electorate.warnings[0]

    def test_without_a_roster_seats_are_in_alphabetical_order(self):
        """Seat order does not depend on the first ballot."""
        assert read(ballot("x: b > a")).candidates == ("a", "b")

    def test_a_roster_sets_the_seats(self):
        """A declared roster is the seat order, with candidates that no ballot mentions."""
        electorate = read(ballot("x: b > a", candidates=("b", "c", "a")))

        assert electorate.candidates == ("b", "c", "a")

    @given(st.text(min_size=1), st.text(min_size=1))
    def test_any_unicode_is_a_name(self, one, other):
        """Any text is a name, and equal text is the same name."""
        if one == other:
            return
        electorate = read(Ballot("x", groups=((one,), (other,))))

        assert {electorate.candidates[0], electorate.candidates[1]} == {one, other}

    def test_an_abstaining_sheet_is_no_roster(self):
        """The sheet of an abstaining reviewer does not limit the others."""
        told = Ballot("z", abstained=True, candidates=("a",))

        assert read(told, ballot("x: a > b > c")).candidates == ("a", "b", "c")

    def test_too_many_candidates_are_refused(self):
        """The error for a roster of 100,000 names the limit."""
        names = tuple(str(n) for n in range(100_000))

        with pytest.raises(TooLarge, match=r"100,000 candidates.*1,000"):
            read(Ballot("x", groups=tuple((name,) for name in names)))

    def test_the_last_of_two_ballots_counts(self):
        """A reviewer has one ballot; a second replaces the first, with a warning."""
        electorate = read(ballot("x: a > b"), ballot("y: a > b"), ballot("x: b > a"))

        assert [vote.reviewer for vote in electorate.votes] == ["y", "x"]
        assert ranks(electorate.votes[1]) == [2, 1]
        [warning] = electorate.warnings
        assert all(fact in warning for fact in ("x cast more than one", "the last counts"))


class TestRanking:
    """The choice of the ranking that counts."""

    def test_a_ranking_overrides_holistic_grades(self):
        """Grades that contradict it mark the ballot and change nothing."""
        electorate = read(ballot("x: a > b > c", grades={"a": 7, "b": 9, "c": 5}))

        assert ranks(electorate.votes[0]) == [1, 2, 3]
        assert electorate.votes[0].mismatch

    def test_without_a_ranking_it_is_derived_from_the_grades(self):
        """Best first, equal grades tied."""
        electorate = read(Ballot("x", grades={"a": 7, "b": "9/10", "c": 7}))

        assert ranks(electorate.votes[0]) == [2.5, 1, 2.5]
        assert not electorate.votes[0].mismatch

    def test_with_rubric_grades_the_ranking_follows_the_ceiling(self):
        """A capped answer at the top of the list does not stay there."""
        rubric = dict.fromkeys(("accuracy", "relevance", "completeness", "clarity"), 9)
        grades = {"a": {**rubric, "accuracy": 2}, "b": {**rubric, "completeness": 5, "clarity": 5}}

        electorate = read(ballot("x: a > b", grades=grades))

        assert electorate.votes[0].grades[0] == 4.0
        assert ranks(electorate.votes[0]) == [2, 1]
        assert electorate.votes[0].mismatch

    @pytest.mark.parametrize("rule", ["auto", "range", "borda"])
    @pytest.mark.parametrize("missing", [{}, *({"accuracy": v} for v in (None, "", " ", "n/a"))])
    def test_omitting_a_capped_criterion_does_not_help(self, rule, missing):
        """It counts as the lowest grade where the ballot gives it to others, however written."""
        good = {"accuracy": 8, "relevance": 8, "completeness": 8, "clarity": 8}
        fine = dict.fromkeys(("relevance", "completeness", "clarity"), 10)

        def cast(bad):
            return [Ballot(f"r{n}", grades={"good": good, "bad": bad}) for n in range(3)]

        silent, lowest = (
            tally(cast({**fine, **missing}), rule),
            tally(cast({**fine, "accuracy": 1}), rule),
        )

        assert silent.leaders == ("good",)
        assert silent.standings == lowest.standings
        assert any(
            "'accuracy' for 'bad'" in each and "the lowest counts" in each
            for each in silent.warnings
        )

    @pytest.mark.parametrize("missing", [{}, *({"accuracy": v} for v in (None, "", "n/a"))])
    def test_omitting_a_capped_criterion_throughout_gives_the_lowest_grade(self, missing):
        """Other ballots do not matter."""
        good = {"accuracy": 8, "relevance": 8, "completeness": 8, "clarity": 8}
        fine = dict.fromkeys(("relevance", "completeness", "clarity"), 10)
        cast = [Ballot(f"r{n}", grades={"good": good, "bad": fine | missing}) for n in range(3)]
        outcome = tally([*cast, Ballot("x", grades={"good": good})], "range")

        assert outcome["bad"].score == pytest.approx((3 * 4 + 1) / 4)

    def test_equal_rubric_grades_keep_the_order_of_the_ballot(self):
        """The reviewer's order decides where grades do not."""
        same = {"accuracy": 8, "completeness": 8, "clarity": 8}

        electorate = read(ballot("x: b > a = c", grades={"a": same, "b": same, "c": same}))

        assert ranks(electorate.votes[0]) == [2.5, 1, 2.5]

    def test_under_half_of_the_weight_the_holistic_grade_counts(self):
        """Too few criteria give way to the reviewer's own overall grade; the ballot is marked."""
        electorate = read(Ballot("x", grades={"a": {"clarity": 9, "overall": 6}, "b": 3}))

        assert electorate.votes[0].grades == (6.0, 3.0)
        assert "holistic grade" in electorate.warnings[0]

    @pytest.mark.parametrize("grade", ["good", math.nan, None])
    def test_an_invalid_grade_is_dropped(self, grade):
        """It is dropped with a warning and is no vote for its candidate."""
        cast = Ballot("x", grades={"a": grade, "b": 3, "c": 5})
        electorate = read(cast, Ballot("y", grades={"a": 4, "b": 3, "c": 5}))

        [given, *others] = electorate.votes[0].grades
        assert math.isnan(given)
        assert others == [3.0, 5.0]
        assert electorate.warnings[0].endswith("not a grade; dropped")
        [line] = electorate.warnings[1:]
        assert "x has no readable grade for 'a'" in line

    @pytest.mark.parametrize(
        ("grade", "nearer"), [(0, 1.0), (11, 10.0), (-3, 1.0), ("12/10", 10.0)]
    )
    def test_a_grade_outside_the_scale_is_its_nearer_end(self, grade, nearer):
        """It counts, and the warning names the ballot and the original grade."""
        electorate = read(Ballot("x", grades={"a": grade, "b": 3, "c": 5}))

        assert electorate.votes[0].grades == (nearer, 3.0, 5.0)
        text = (
            f"the ballot of x grades 'a' {grade!r}, outside the scale 1-10; its nearer end counts"
        )
        assert electorate.warnings == (text,)

    def test_true_is_no_one(self):
        """A criterion that is met has the highest grade, even where others gave it a 1."""
        met, one = ({"accuracy": grade, "completeness": 1, "clarity": 1} for grade in (True, 1))

        grades = [
            read(Ballot("x", grades={"a": cell, "b": 5})).votes[0].grades for cell in (one, met)
        ]

        assert grades[0][0] < grades[1][0]

    def test_an_unknown_criterion_is_named(self):
        """A criterion outside the rubric is dropped, with the rubric's name in the warning."""
        grades = {"a": {"accuracy": 8, "completeness": 8, "zest": 3}, "b": 5}

        electorate = read(Ballot("x", grades=grades))

        [warning] = electorate.warnings
        assert all(fact in warning for fact in ("'zest'", "'general'", "dropped"))

    def test_another_rubric_has_other_weights(self):
        """First-edition weights give ADR-016's 6.90, capped at 4."""
        grades = {"accuracy": 3, "completeness": 9, "conciseness": 9, "clarity": 9}
        edition = RUBRICS["general-first-edition"]

        electorate = read(Ballot("x", grades={"a": grades, "b": 5}), rubric=edition)

        assert electorate.votes[0].grades[0] == 4.0


class TestRecusal:
    """One's own candidate on one's own ballot."""

    def test_recusal_before_counting_closes_the_gap(self):
        """By default the own candidate leaves before places are counted."""
        electorate = read(ballot("a: a > b > c"), ballot("b: a > b > c"))

        assert ranks(electorate.votes[0]) == [None, 1, 2]
        assert electorate.votes[0].eligible == 2
        assert electorate.offered == (1, 1, 2)

    def test_recusal_after_counting_keeps_the_gap(self):
        """Ranking oneself first still costs the others a place."""
        electorate = read(ballot("a: a > b > c"), recusal="after")

        assert ranks(electorate.votes[0]) == [None, 2, 3]
        assert (electorate.votes[0].length, electorate.votes[0].eligible) == (3, 3)

    def test_recusal_can_be_turned_off(self):
        """The own vote counts."""
        assert ranks(read(ballot("a: a > b"), recusal="off").votes[0]) == [1, 2]

    def test_recusal_follows_the_map_of_authors(self):
        """Candidates need not be named by their author."""
        authors = {"answer-1": "x"}

        electorate = read(
            ballot("x: answer-1 > answer-2", authors=authors), ballot("y: answer-2 > answer-1")
        )

        assert ranks(electorate.votes[0]) == [None, 1]

    def test_own_grades_are_recused(self):
        """A grade for one's own candidate is dropped."""
        electorate = read(Ballot("a", grades={"a": 10, "b": 5, "c": 4}))

        assert math.isnan(electorate.votes[0].grades[0])

    def test_a_ballot_with_only_the_own_candidate_abstains(self):
        """The reason says that recusal leaves nothing."""
        electorate = read(ballot("a: a"), ballot("b: a > c"))

        assert electorate.abstentions == {"a": "nothing is left on the ballot after recusal"}

    @pytest.mark.parametrize("option", [{"recusal": "never"}, {"unranked": "first"}])
    def test_an_unknown_mode_is_refused(self, option):
        """The error lists the modes."""
        with pytest.raises(InvalidParameter, match="expected"):
            Counting(**option)


class TestUnranked:
    """Candidates that a ballot does not rank."""

    def test_skip_gives_no_vote(self):
        """By default an unranked candidate gets no vote."""
        electorate = read(ballot("x: a"), ballot("y: a > b > c > d"))

        assert ranks(electorate.votes[0]) == [1, None, None, None]

    def test_last_shares_the_remaining_places(self):
        """With ``last`` they take the mean of the remaining places, own candidate aside."""
        electorate = read(ballot("d: a"), ballot("y: a > b > c > d"), unranked="last")

        assert ranks(electorate.votes[0]) == [1, 2.5, 2.5, None]


class TestPairs:
    """Comparisons of two candidates."""

    @staticmethod
    def pair(reviewer: str, first: str, second: str, outcome: str) -> Ballot:
        groups = {
            "first": ((first,), (second,)),
            "second": ((second,), (first,)),
            "tie": ((first, second),),
        }[outcome]
        positions = {first: 1, second: 2}
        return Ballot(reviewer, groups=groups, positions=positions, paired=True)

    def test_agreement_in_both_orders_is_one_opinion(self):
        """It counts once and counts as consistent."""
        electorate = read(self.pair("x", "a", "b", "first"), self.pair("x", "b", "a", "second"))

        assert [ranks(vote) for vote in electorate.votes] == [[1, 2]]
        assert electorate.order_kept == {"x": (1, 1)}

    def test_a_flip_is_a_tie(self):
        """Picking the first shown both times is no preference and lowers consistency."""
        electorate = read(self.pair("x", "a", "b", "first"), self.pair("x", "b", "a", "first"))

        assert [ranks(vote) for vote in electorate.votes] == [[1.5, 1.5]]
        assert electorate.order_kept == {"x": (0, 1)}

    def test_several_pairs_of_a_reviewer_all_count(self):
        """A reviewer may compare many pairs in a session."""
        electorate = read(
            self.pair("x", "a", "b", "first"),
            self.pair("x", "b", "c", "tie"),
            self.pair("x", "c", "a", "second"),
        )

        assert len(electorate.votes) == 3
        assert electorate.reviewers == ("x",)

    def test_a_pair_with_the_own_candidate_is_no_vote(self):
        """Recusal of one of two leaves nothing, and the vote does not count as offered."""
        electorate = read(self.pair("a", "a", "b", "first"), self.pair("x", "a", "b", "second"))

        assert [vote.reviewer for vote in electorate.votes] == ["x"]
        assert electorate.abstentions == {}
        assert electorate.offered == (1, 1)


class TestSafetyGate:
    """Candidates that may not win."""

    def test_a_failed_candidate_is_last_and_capped(self):
        """Its grades are capped and every ballot places it last."""
        gate = Gate(failed={"a": ("malware_hacking",)})

        electorate = read(ballot("x: a > b > c", grades={"a": 9, "b": 5, "c": 4}), gate=gate)

        assert ranks(electorate.votes[0]) == [3, 1, 2]
        assert electorate.votes[0].grades[0] == 0.0
        assert electorate.failed == {"a": ("malware_hacking",)}


@given(data=st.data())
def test_every_seat_has_a_vote_or_a_reason(data):
    """No ballot disappears: each reviewer has exactly one of them."""
    names = ["a", "b", "c", "d"]
    cast = [
        Ballot(
            reviewer,
            groups=tuple(
                (name,) for name in data.draw(st.lists(st.sampled_from([*names, "?"]), max_size=5))
            ),
            candidates=tuple(names),
            abstained=data.draw(st.booleans()),
        )
        for reviewer in ["a", "b", "x", "y"]
    ]

    electorate = read(*cast)

    assert sorted([*electorate.reviewers, *electorate.abstentions]) == ["a", "b", "x", "y"]


GRADES = st.one_of(
    st.integers(-1, 11),
    st.sampled_from([0.5, 7.25, math.nan, math.inf, 10**400, True, "8", "", "4/5"]),
)


@st.composite
def graded_sessions(draw):
    """Sessions of ballots that grade most candidates, some with more fields."""
    scale = draw(st.sampled_from([None, Scale(), Scale.parse("0-5"), Scale.parse("10-0")]))
    sessions = {}
    for number in range(draw(st.integers(1, 4))):
        reviewers = draw(st.lists(st.sampled_from("abxyz"), min_size=1, max_size=4))
        sessions[f"s{number}"] = [
            Ballot(
                reviewer,
                grades={
                    name: draw(GRADES if draw(st.integers(0, 9)) == 0 else st.integers(1, 5))
                    for name in "abc"
                    if name != reviewer or draw(st.booleans())
                },
                kind=draw(st.sampled_from(["model", "model", "human"])),
                weight=draw(st.sampled_from([1.0, 1.0, 1.0, 2.0])),
                scale=scale,
            )
            for reviewer in reviewers
        ]
    return sessions


@given(sessions=graded_sessions(), recusal=st.sampled_from(["before", "after", "off"]))
def test_blocks_of_plain_sessions_equal_single_sessions(sessions, recusal):
    """A block gives the votes that each session gives alone."""
    counting = Counting(recusal=recusal)

    for session, electorate in interpret_plain_sessions(sessions, counting).items():
        assert repr(electorate) == repr(interpret(session, sessions[session], counting))


def test_usual_councils_are_plain_sessions():
    """Sessions with recused own answers are interpreted in a block."""
    grades = {"a": {"b": 7, "c": 9}, "b": {"a": 8, "c": 6}, "c": {"a": 5.5, "b": 5.5, "c": 10}}
    cast = [Ballot(reviewer, grades=given) for reviewer, given in grades.items()]

    electorate = interpret_plain_sessions({"q": cast}, Counting())["q"]

    assert [ranks(vote) for vote in electorate.votes] == [
        [None, 2, 1],
        [1, None, 2],
        [1.5, 1.5, None],
    ]
    assert electorate.offered == (2, 2, 2)
