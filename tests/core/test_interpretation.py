"""From ballots to votes: every step of the reading, and every liberty it takes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import ballot
from witan.core.ballot import Ballot
from witan.core.electorate import Electorate, Vote
from witan.core.gate import Gate
from witan.core.interpretation import Counting, interpret, interpret_sessions
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

    def test_it_keeps_its_reason_and_stays_in_the_denominator(self):
        """Who abstains casts no vote but could have: coverage still counts the seat."""
        told = Ballot("z", abstained=True, reason="call timeout")

        electorate = read(ballot("x: a > b"), told)

        assert electorate.abstentions == {"z": "call timeout"}
        assert electorate.offered == (2, 2)

    def test_a_ballot_that_says_nothing_is_an_abstention(self):
        """Neither ranking nor grades is no vote, and the reason says so."""
        electorate = read(ballot("x: a > b"), ballot("y:"))

        assert electorate.abstentions == {
            "y": "gave neither a ranking nor a grade that can be read"
        }

    def test_a_ballot_of_weight_nothing_is_none(self):
        """Weight 0 is said aloud instead of being averaged in."""
        electorate = read(ballot("x: a > b"), ballot("y: b > a", weight=0.0))

        assert electorate.abstentions == {"y": "weighs nothing"}

    @pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
    def test_a_weight_that_is_none_is_refused(self, weight):
        """A negative, infinite or missing weight is an error that names the reviewer."""
        with pytest.raises(InvalidParameter, match="the weight of y's ballot"):
            read(ballot("x: a > b"), ballot("y: b > a", weight=weight))


class TestLabels:
    """Names on a ballot."""

    def test_an_unknown_name_is_dropped_with_a_warning(self):
        """With a declared roster, a stranger loses its place and the others close up."""
        electorate = read(ballot("x: a > ghost > b", candidates=("a", "b")))

        assert ranks(electorate.votes[0]) == [1, 2]
        [warning] = electorate.warnings
        assert all(fact in warning for fact in ("x ranks 'ghost'", "dropped"))

    def test_of_a_repeated_name_the_first_place_counts(self):
        """Naming someone twice moves nobody."""
        electorate = read(ballot("x: a > b > a > c"))

        assert ranks(electorate.votes[0]) == [1, 2, 3]
        assert "first place counts" in electorate.warnings[0]

    def test_without_a_roster_seats_are_in_order_of_name(self):
        """Seat order does not depend on whose ballot came first."""
        assert read(ballot("x: b > a")).candidates == ("a", "b")

    def test_a_roster_sets_the_seats(self):
        """A declared roster is the seat order, unmentioned candidates included."""
        electorate = read(ballot("x: b > a", candidates=("b", "c", "a")))

        assert electorate.candidates == ("b", "c", "a")

    @given(st.text(min_size=1), st.text(min_size=1))
    def test_any_unicode_is_a_name(self, one, other):
        """Names are opaque: any text stands, and equal text is equal."""
        if one == other:
            return
        electorate = read(Ballot("x", groups=((one,), (other,))))

        assert {electorate.candidates[0], electorate.candidates[1]} == {one, other}

    def test_a_seat_that_abstains_does_not_decide_who_stands(self):
        """The sheet of an abstaining reviewer is no roster for the others."""
        told = Ballot("z", abstained=True, candidates=("a",))

        assert read(told, ballot("x: a > b > c")).candidates == ("a", "b", "c")

    def test_too_many_candidates_are_refused(self):
        """A roster of 100,000 is refused with the limit."""
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
    """Which ranking counts."""

    def test_with_holistic_grades_a_given_ranking_stands(self):
        """Grades that contradict it mark the ballot and move nothing."""
        electorate = read(ballot("x: a > b > c", grades={"a": 7, "b": 9, "c": 5}))

        assert ranks(electorate.votes[0]) == [1, 2, 3]
        assert electorate.votes[0].mismatch

    def test_without_a_ranking_it_is_derived_from_the_grades(self):
        """Best first, equal grades tied."""
        electorate = read(Ballot("x", grades={"a": 7, "b": "9/10", "c": 7}))

        assert ranks(electorate.votes[0]) == [2.5, 1, 2.5]
        assert not electorate.votes[0].mismatch

    def test_with_rubric_grades_the_ranking_follows_the_ceiling(self):
        """A capped answer that is listed first does not stay first."""
        rubric = dict.fromkeys(("accuracy", "relevance", "completeness", "clarity"), 9)
        grades = {"a": {**rubric, "accuracy": 2}, "b": {**rubric, "completeness": 5, "clarity": 5}}

        electorate = read(ballot("x: a > b", grades=grades))

        assert electorate.votes[0].grades[0] == 4.0
        assert ranks(electorate.votes[0]) == [2, 1]
        assert electorate.votes[0].mismatch

    @pytest.mark.parametrize("rule", ["auto", "range", "borda"])
    @pytest.mark.parametrize("missing", [{}, *({"accuracy": v} for v in (None, "", " ", "n/a"))])
    def test_leaving_out_the_criterion_of_a_ceiling_does_not_help(self, rule, missing):
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
    def test_a_candidate_without_the_criterion_of_a_ceiling_is_graded(self, missing):
        """Who leaves it out altogether gives it the lowest, whatever the others wrote."""
        good = {"accuracy": 8, "relevance": 8, "completeness": 8, "clarity": 8}
        fine = dict.fromkeys(("relevance", "completeness", "clarity"), 10)
        cast = [Ballot(f"r{n}", grades={"good": good, "bad": fine | missing}) for n in range(3)]
        outcome = tally([*cast, Ballot("x", grades={"good": good})], "range")

        assert outcome["bad"].score == pytest.approx((3 * 4 + 1) / 4)

    def test_between_equal_rubric_grades_the_own_order_decides(self):
        """The reviewer's order is kept where its grades say nothing."""
        same = {"accuracy": 8, "completeness": 8, "clarity": 8}

        electorate = read(ballot("x: b > a = c", grades={"a": same, "b": same, "c": same}))

        assert ranks(electorate.votes[0]) == [2.5, 1, 2.5]

    def test_under_half_of_the_weight_the_holistic_grade_stands(self):
        """Criteria that say too little give way to the reviewer's own overall grade, marked."""
        electorate = read(Ballot("x", grades={"a": {"clarity": 9, "overall": 6}, "b": 3}))

        assert electorate.votes[0].grades == (6.0, 3.0)
        assert "holistic grade" in electorate.warnings[0]

    @pytest.mark.parametrize("grade", ["good", math.nan, None])
    def test_what_is_no_grade_is_dropped(self, grade):
        """What is no number goes with a warning, and is no vote for its candidate."""
        cast = Ballot("x", grades={"a": grade, "b": 3, "c": 5})
        electorate = read(cast, Ballot("y", grades={"a": 4, "b": 3, "c": 5}))

        [given, *others] = electorate.votes[0].grades
        assert math.isnan(given)
        assert others == [3.0, 5.0]
        assert electorate.warnings[0].endswith("which is no grade; dropped")
        [line] = electorate.warnings[1:]
        assert "x has no grade for 'a'" in line

    @pytest.mark.parametrize(
        ("grade", "nearer"), [(0, 1.0), (11, 10.0), (-3, 1.0), ("12/10", 10.0)]
    )
    def test_a_grade_outside_the_scale_is_its_nearer_end(self, grade, nearer):
        """It counts, and the warning names the ballot and the grade as it was given."""
        electorate = read(Ballot("x", grades={"a": grade, "b": 3, "c": 5}))

        assert electorate.votes[0].grades == (nearer, 3.0, 5.0)
        said = (
            f"the ballot of x grades 'a' {grade!r}, outside the scale 1-10; its nearer end counts"
        )
        assert electorate.warnings == (said,)

    def test_an_unknown_criterion_is_named(self):
        """A criterion the rubric does not have is dropped with the rubric's name."""
        grades = {"a": {"accuracy": 8, "completeness": 8, "zest": 3}, "b": 5}

        electorate = read(Ballot("x", grades=grades))

        [warning] = electorate.warnings
        assert all(fact in warning for fact in ("'zest'", "'general'", "dropped"))

    def test_another_rubric_weighs_differently(self):
        """The rubric is an argument: first-edition weights give ADR-016's 6.90, capped at 4."""
        grades = {"accuracy": 3, "completeness": 9, "conciseness": 9, "clarity": 9}
        edition = RUBRICS["general-first-edition"]

        electorate = read(Ballot("x", grades={"a": grades, "b": 5}), rubric=edition)

        assert electorate.votes[0].grades[0] == 4.0


class TestRecusal:
    """One's own candidate on one's own ballot."""

    def test_before_the_others_close_up(self):
        """By default the own candidate leaves before places are counted."""
        electorate = read(ballot("a: a > b > c"), ballot("b: a > b > c"))

        assert ranks(electorate.votes[0]) == [None, 1, 2]
        assert electorate.votes[0].eligible == 2
        assert electorate.offered == (1, 1, 2)

    def test_after_keeps_the_gap(self):
        """With recusal after counting, ranking oneself first still costs the others a place."""
        electorate = read(ballot("a: a > b > c"), recusal="after")

        assert ranks(electorate.votes[0]) == [None, 2, 3]
        assert (electorate.votes[0].length, electorate.votes[0].eligible) == (3, 3)

    def test_off_keeps_the_own_vote(self):
        """Recusal can be turned off."""
        assert ranks(read(ballot("a: a > b"), recusal="off").votes[0]) == [1, 2]

    def test_an_authors_map_says_who_wrote_what(self):
        """Where candidates are not named by their author, the map recuses."""
        authors = {"answer-1": "x"}

        electorate = read(
            ballot("x: answer-1 > answer-2", authors=authors), ballot("y: answer-2 > answer-1")
        )

        assert ranks(electorate.votes[0]) == [None, 1]

    def test_own_grades_go_too(self):
        """A grade for oneself is no grade."""
        electorate = read(Ballot("a", grades={"a": 10, "b": 5, "c": 4}))

        assert math.isnan(electorate.votes[0].grades[0])

    def test_a_ballot_with_only_oneself_says_so(self):
        """Nothing left after recusal is an abstention with that reason."""
        electorate = read(ballot("a: a"), ballot("b: a > c"))

        assert electorate.abstentions == {"a": "nothing is left on the ballot after recusal"}

    @pytest.mark.parametrize("option", [{"recusal": "never"}, {"unranked": "first"}])
    def test_an_unknown_mode_is_refused(self, option):
        """Modes are checked, and the error lists them."""
        with pytest.raises(InvalidParameter, match="expected"):
            Counting(**option)


class TestUnranked:
    """Candidates that a ballot leaves out."""

    def test_skip_gives_no_vote(self):
        """By default silence is no opinion."""
        electorate = read(ballot("x: a"), ballot("y: a > b > c > d"))

        assert ranks(electorate.votes[0]) == [1, None, None, None]

    def test_last_shares_the_places_left(self):
        """With ``last`` they take the mean of the places that are left, own candidate aside."""
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
        shown = {first: 1, second: 2}
        return Ballot(reviewer, groups=groups, positions=shown, paired=True)

    def test_both_orders_alike_are_one_opinion(self):
        """Agreement across orders counts once, and the order is kept."""
        electorate = read(self.pair("x", "a", "b", "first"), self.pair("x", "b", "a", "second"))

        assert [ranks(vote) for vote in electorate.votes] == [[1, 2]]
        assert electorate.order_kept == {"x": (1, 1)}

    def test_a_flip_is_a_tie(self):
        """Picking the first shown both times is no preference, and lowers consistency."""
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

    def test_a_pair_with_oneself_is_nobody_s_vote(self):
        """Recusal of one of two leaves nothing, and nobody was offered the vote."""
        electorate = read(self.pair("a", "a", "b", "first"), self.pair("x", "a", "b", "second"))

        assert [vote.reviewer for vote in electorate.votes] == ["x"]
        assert electorate.abstentions == {}
        assert electorate.offered == (1, 1)


class TestSafetyGate:
    """Candidates that may not win."""

    def test_a_failed_candidate_goes_to_the_foot_and_is_capped(self):
        """Its grades are capped and every ballot places it last."""
        gate = Gate(failed={"a": ("malware_hacking",)})

        electorate = read(ballot("x: a > b > c", grades={"a": 9, "b": 5, "c": 4}), gate=gate)

        assert ranks(electorate.votes[0]) == [3, 1, 2]
        assert electorate.votes[0].grades[0] == 0.0
        assert electorate.failed == {"a": ("malware_hacking",)}


@given(data=st.data())
def test_every_seat_ends_in_a_vote_or_a_stated_abstention(data):
    """No ballot disappears: each reviewer has exactly one vote or one reason."""
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
    """Sessions of ballots that grade most candidates, and say now and then something more."""
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
def test_plain_sessions_are_interpreted_in_blocks_as_one_by_one(sessions, recusal):
    """A block of plain sessions gives the votes that each session gives alone."""
    counting = Counting(recusal=recusal)

    for session, electorate in interpret_sessions(sessions, counting).items():
        assert repr(electorate) == repr(interpret(session, sessions[session], counting))


def test_councils_whose_members_grade_each_other_are_plain():
    """Sessions of a usual council are interpreted in a block, its own answers recused."""
    grades = {"a": {"b": 7, "c": 9}, "b": {"a": 8, "c": 6}, "c": {"a": 5.5, "b": 5.5, "c": 10}}
    cast = [Ballot(reviewer, grades=given) for reviewer, given in grades.items()]

    electorate = interpret_sessions({"q": cast}, Counting())["q"]

    assert [ranks(vote) for vote in electorate.votes] == [
        [None, 2, 1],
        [1, None, 2],
        [1.5, 1.5, None],
    ]
    assert electorate.offered == (2, 2, 2)
