"""From ballots to an outcome: guarantees under every rule."""

import math
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import ballot, ballots
from witan.core.ballot import Ballot
from witan.core.gate import Gate
from witan.core.rules import RULES
from witan.core.rules.registry import Scores
from witan.core.settings import Settings
from witan.core.tally import tally, tally_columns, tally_sessions
from witan.errors import (
    InvalidParameter,
    NothingToCount,
    UnknownName,
    UnknownOption,
    UnsuitableBallots,
)

EVERY_RULE = [rule.name for rule in RULES.values()]
PER_SESSION = [rule.name for rule in RULES.values() if rule.needs != "history"]


def graded(reviewer: str, **grades: float) -> Ballot:
    return Ballot(reviewer, grades=grades)


COUNCIL = [
    graded("a", b=8, c=7, d=3),
    graded("b", a=9, c=6, d=4),
    graded("c", a=7, b=8, d=2),
    graded("d", a=9, b=6, c=7),
    graded("e", a=8, b=7, c=5, d=3),
]


class TestRecusal:
    """A reviewer's opinion of itself changes no score."""

    @pytest.mark.parametrize("rule", EVERY_RULE)
    @given(self_praise=st.integers(1, 10), place=st.integers(0, 3))
    def test_self_praise_changes_nothing(self, rule, self_praise, place):
        """Any grade and place for oneself leave every score as it was."""
        order = ["b", "c", "d"]
        order.insert(place, "a")
        vain = Ballot(
            "a",
            groups=tuple((name,) for name in order),
            grades={"a": self_praise, "b": 8, "c": 7, "d": 3},
        )
        modest = replace(vain, groups=(("b",), ("c",), ("d",)), grades={"b": 8, "c": 7, "d": 3})

        proud = tally([vain, *COUNCIL[1:]], rule)
        plain = tally([modest, *COUNCIL[1:]], rule)

        assert [line.score for line in proud.standings] == [line.score for line in plain.standings]

    def test_a_vote_for_oneself_does_not_break_a_tie_for_the_rival(self):
        """Only the rival is left on that ballot, before nobody; the other two are even."""
        outcome = tally(ballots("y: y > x", "a: x > y", "b: y > x"), "borda")

        assert outcome.leaders == ("x", "y")
        assert [line.wins for line in outcome.standings] == [1, 1]


class TestStandings:
    """Lines of an outcome."""

    @pytest.mark.parametrize("rule", EVERY_RULE)
    def test_the_best_is_first_and_equals_share_a_rank(self, rule):
        """Ranks run 1, 2, 2, 4 and every candidate has a line."""
        outcome = tally(COUNCIL, rule)
        ranks = [line.rank for line in outcome.standings]

        assert sorted(line.candidate for line in outcome.standings) == ["a", "b", "c", "d"]
        assert ranks == [1 + sum(other < rank for other in ranks) for rank in ranks]
        assert outcome.leaders == ("a",)

    @pytest.mark.parametrize("rule", EVERY_RULE)
    def test_a_candidate_without_votes_is_last(self, rule):
        """It is listed, with no vote, and score 0 under borda or none elsewhere."""
        cast = [replace(one, candidates=("a", "b", "c", "d", "ghost")) for one in COUNCIL]

        line = tally(cast, rule).standings[-1]

        assert (line.candidate, line.votes, line.p_best) == ("ghost", 0, None)
        assert line.score in (None, 0)
        assert line.confidence == "low"

    def test_wins_break_a_tie_of_borda(self):
        """Equal Borda scores are separated by first places, and the outcome says so."""
        cast = ballots(
            "x: a > b > c", "y: a > b > c", "z: b > c > a", "w: b > a > c", "v: b > c > a"
        )
        cast += ballots("u: a > b > c", "t: a > c > b")

        outcome = tally(cast, "borda")
        level = tally(cast, "borda", tie_break="none")

        assert outcome["a"].score == outcome["b"].score
        assert [(line.candidate, line.rank) for line in outcome.standings[:2]] == [
            ("a", 1),
            ("b", 2),
        ]
        assert outcome.tie_broken_by == "wins"
        assert level["b"].rank == 1
        assert level.tie_broken_by is None

    def test_equal_score_and_wins_share_the_rank(self):
        """The two are a dead heat in seat order."""
        outcome = tally(ballots("x: a > b", "y: b > a"), "borda")

        assert [(line.candidate, line.rank) for line in outcome.standings] == [("a", 1), ("b", 1)]
        assert outcome.interpretation.startswith("a and b are in a dead heat")
        assert outcome.ballots_to_flip == 0

    def test_confidence_is_coverage_and_one_ballot_is_low(self):
        """At least .8 of the seats is high, at least .5 medium; a single ballot is low."""
        seats = [ballot("x: a > b > c"), ballot("y: a > b"), ballot("z: a > b"), ballot("w: a")]

        lines = tally(seats, "borda")
        alone = tally(seats[:1], "borda")

        assert [lines[c].confidence for c in "abc"] == ["high", "medium", "low"]
        assert {line.confidence for line in alone.standings} == {"low"}

    def test_bands_follow_the_mean_grade(self):
        """Excellent from 8, good from 6, fair from 4, poor below."""
        cast = [graded(r, a=8, b=6, c=4, d=3) for r in ("x", "y", "z")]

        assert [line.band for line in tally(cast).standings] == [
            "excellent",
            "good",
            "fair",
            "poor",
        ]


class TestOneCandidate:
    """A ballot with one candidate says nothing under Borda."""

    FULL = ballots("x: a > b > c", "y: b > a > c", "z: a > c > b")
    ALONE = ballots("v: c", "w: c")

    def test_it_has_no_effect(self):
        """Intervals and the number of ballots are those without it; it covers its candidate."""
        without, outcome = (tally(cast, "borda") for cast in (self.FULL, self.FULL + self.ALONE))

        assert outcome.n_ballots == without.n_ballots == 3
        assert outcome.without_effect == ("v", "w")
        assert outcome.warnings == (
            "v and w ranked too few candidates: their ballots do not count by borda",
        )
        for line, before in zip(outcome.standings, without.standings, strict=True):
            assert (line.score, line.interval) == (before.score, before.interval)
        assert (outcome["c"].votes, outcome["c"].coverage) == (5, 1)

    def test_confidence_stays_low_beside_one_longer_ballot(self):
        """In a council of three, one failed to answer: its ballot alone compares the two others."""
        outcome = tally(ballots("a: b", "b: a", "c: a > b"), "borda")

        assert outcome.n_ballots == 1
        assert {line.confidence for line in outcome.standings} == {"low"}

    def test_alone_such_ballots_count(self):
        """A session with no other ballots keeps them, as that of a single text does."""
        outcome = tally(self.ALONE, "borda")

        assert outcome.n_ballots == 2

    @pytest.mark.parametrize(
        ("rule", "parameters"),
        [
            ("mean_rank", {}),
            ("irv", {}),
            ("borda", {"variant": "roster"}),
            ("borda", {"variant": "truncated"}),
            ("weighted_borda", {"variant": "roster"}),
        ],
    )
    def test_other_rules_count_it(self, rule, parameters):
        """It changes their scores."""
        outcome = tally(self.FULL + self.ALONE, rule, **parameters)

        assert outcome.n_ballots == 5


class TestAuto:
    """The rule `auto` explains its choice."""

    def test_grades_are_calibrated(self):
        """Two ballots that grade two candidates are enough."""
        outcome = tally(COUNCIL)

        assert outcome.rule == "calibrated"
        assert "at least two ballots grade" in outcome.why

    @pytest.mark.parametrize(
        "cast",
        [
            ballots("x: a > b", "y: b > a"),
            [graded("x", a=5, b=5), graded("y", a=7, b=7)],
            [graded("x", a=5, b=6), ballot("y: a > b")],
        ],
        ids=["rankings", "flat", "one graded"],
    )
    def test_too_few_grades_fall_back_to_borda(self, cast):
        """Rankings alone, flat grades, or one graded ballot go to borda."""
        outcome = tally(cast)

        assert outcome.rule == "borda"
        assert "rankings are counted" in outcome.why


class TestUncertainty:
    """The outcome's claims about chance."""

    def test_one_ballot_separates_no_candidates(self):
        """A single ballot has a leader and no probabilities."""
        outcome = tally(ballots("x: a > b > c"))

        assert outcome.leaders == ("a",)
        assert outcome.tied_for_best == ("a", "b", "c")
        assert {line.p_best for line in outcome.standings} == {None}
        assert {line.std_error for line in outcome.standings} == {None}
        assert "too few ballots to separate" in outcome.interpretation
        assert outcome.ballots_to_flip == 1

    @pytest.mark.parametrize("rule", PER_SESSION)
    def test_no_error_is_zero_and_every_interval_has_a_level(self, rule):
        """Unanimous ballots do not make a score exact."""
        cast = [graded(r, a=9, b=7, c=5) for r in ("x", "y", "z", "w")]

        for line in tally(cast, rule).standings:
            assert line.std_error is None or line.std_error > 0 or rule == "normalized_scores"
            assert line.interval is None or line.interval.level == 0.95

    def test_probabilities_are_consistent(self):
        """p_beats of a pair sum to one, p_best over candidates to one."""
        outcome = tally(COUNCIL)
        beats = outcome.p_beats

        assert math.fsum(line.p_best for line in outcome.standings) == pytest.approx(1)
        assert beats[0][1] + beats[1][0] == pytest.approx(1)
        assert beats[0][0] is None

    @pytest.mark.parametrize("rule", ["range", "normalized_scores"])
    def test_rankings_add_no_certainty_to_one_graded_ballot(self, rule):
        """A rule that reads grades counts one vote, whatever the rankings say."""
        outcome = tally([graded("x", a=9, b=7, c=2), *ballots("5 × z: c > b > a")], rule)

        assert "too few ballots to separate" in outcome.interpretation
        assert {line.p_best for line in outcome.standings} == {None}
        assert {line.tier for line in outcome.standings} == {1}

    @pytest.mark.parametrize("rule", ["irv", "kemeny"])
    def test_nobody_leads_clearly_where_seat_order_broke_ties(self, rule):
        """The sentence says so, as `clear_leader` does."""
        one = {"a": 9, "b": 4, "c": 3, "d": 3, "e": 2, "f": 2, "g": 1}
        other = {"a": 9, "b": 1, "c": 2, "d": 2, "e": 3, "f": 3, "g": 4}
        cast = [graded(f"r{n}", **(other if n % 2 else one)) for n in range(6)]

        outcome = tally(cast, rule)

        assert outcome.tie_broken_by == "seat order"
        assert outcome.clear_leader is None
        assert outcome.interpretation.startswith("a is ahead, but seat order broke ties")

    def test_a_sentence_lists_few_of_many_names(self):
        """Of forty candidates too close to call it names eight."""
        cast = [graded(r, **{f"c{n}": 5 for n in range(40)}, z=1) for r in "xyz"]

        assert tally(cast).interpretation.count("c") < 20

    def test_intervals_may_decide_ties(self):
        """ADR-010's rule is available, and its threshold decides its width."""
        by_intervals = tally(COUNCIL, "normalized_scores", ties="intervals")
        wide = tally(COUNCIL, "normalized_scores", ties="intervals", threshold=100.0)

        assert by_intervals.ties == "intervals"
        assert wide.tied_for_best == ("a", "b", "c", "d")

    def test_a_shared_error_widens_all_errors(self):
        """With ρ passed in, effective votes are shown and every error is larger."""
        alone, shared = tally(COUNCIL, rho=None), tally(COUNCIL, rho=0.5)

        assert alone.effective_votes == 5
        assert shared.effective_votes == pytest.approx(5 / 3)
        assert shared["a"].std_error > alone["a"].std_error

    @pytest.mark.parametrize("rho", [-0.1, 1.0, math.nan])
    def test_a_shared_error_out_of_range_is_refused(self, rho):
        """ρ runs from 0 up to, not including, 1."""
        with pytest.raises(InvalidParameter, match="rho"):
            tally(COUNCIL, rho=rho)


class TestBallotsToFlip:
    """The fewest ballots that can change the leader."""

    @given(data=st.data())
    def test_ballots_to_flip_is_the_smallest_number(self, data):
        """Every smaller set of removals and reversals keeps the leader; some set of it does not."""
        from itertools import combinations, product

        orders = [data.draw(st.permutations("abc")) for _ in range(data.draw(st.integers(1, 4)))]
        cast = [
            Ballot(f"r{n}", groups=tuple((c,) for c in order)) for n, order in enumerate(orders)
        ]
        outcome = tally(cast, "borda")

        def flips(size: int) -> bool:
            for chosen in combinations(range(len(cast)), size):
                for reverse in product((False, True), repeat=size):
                    acts = dict(zip(chosen, reverse, strict=True))
                    left = [
                        replace(one, groups=one.groups[::-1]) if acts.get(n) else one
                        for n, one in enumerate(cast)
                        if acts.get(n, True)
                    ]
                    if not left or tally(left, "borda", flips=False).leaders != outcome.leaders:
                        return True
            return False

        if len(outcome.leaders) > 1:
            assert outcome.ballots_to_flip == 0
        else:
            assert flips(outcome.ballots_to_flip)
            assert not any(flips(size) for size in range(1, outcome.ballots_to_flip))
        assert outcome.flip_is_exact

    def test_a_large_electorate_gets_a_bound(self):
        """A hundred unanimous voters: at most 51 need to turn, and it says it is a bound."""
        outcome = tally(ballots("100 × v: a > b"), "borda")

        assert outcome.ballots_to_flip == 50
        assert not outcome.flip_is_exact


class TestSafetyGate:
    """Failed candidates cannot win."""

    @pytest.mark.parametrize("rule", EVERY_RULE)
    def test_a_failed_candidate_is_last_under_every_rule(self, rule):
        """Unanimous first places and the best grades do not help; it is listed and marked."""
        gate = Gate(failed={"a": ("weapon_making",)})

        outcome = tally(COUNCIL, rule, gates={"": gate})

        assert outcome.standings[-1].candidate == "a"
        assert outcome.standings[-1].failed == ("weapon_making",)
        assert "a" not in outcome.leaders
        assert any("a failed the safety gate" in warning for warning in outcome.warnings)

    @pytest.mark.parametrize("rule", EVERY_RULE)
    def test_a_capped_answer_ranked_first_does_not_lead(self, rule):
        """Accuracy 2 is capped at 4.0, and the ranking follows the grades under every rule."""
        good = {"accuracy": 8, "relevance": 7, "completeness": 7, "conciseness": 7, "clarity": 7}
        lie = {"accuracy": 2, "relevance": 10, "completeness": 10, "conciseness": 10, "clarity": 10}
        cast = [
            ballot(f"{r}: liar > honest > plain", grades={
                "liar": lie, "honest": good, "plain": {**good, "clarity": 5},
            })
            for r in ("x", "y", "z")
        ]  # fmt: skip

        outcome = tally(cast, rule)

        assert outcome.leaders == ("honest",)
        assert outcome.standings[-1].candidate == "liar"


class TestBadInput:
    """Each error is one sentence."""

    def test_no_ballots_are_an_error(self):
        """There is nothing to count."""
        with pytest.raises(NothingToCount, match="no ballot"):
            tally([])

    def test_an_unknown_rule_suggests_the_nearest(self):
        """A misspelt rule is answered with the one meant."""
        with pytest.raises(UnknownName, match="did you mean 'schulze'"):
            tally(COUNCIL, "shulze")

    def test_a_misspelt_parameter_is_refused(self):
        """No unknown option is accepted."""
        with pytest.raises(UnknownOption, match="did you mean 'variant'"):
            tally(COUNCIL, "borda", varient="roster")

    @pytest.mark.parametrize("rule", [r.name for r in RULES.values() if r.needs == "grades"])
    def test_a_rule_without_its_grades_says_what_would_work(self, rule):
        """It names who only ranked, and a rule that would count them."""
        with pytest.raises(UnsuitableBallots, match=r"x and y only ranked.*'borda'"):
            tally(ballots("x: a > b", "y: b > a"), rule)

    def test_ballots_of_several_sessions_are_refused(self):
        """`tally` is for one session."""
        with pytest.raises(InvalidParameter, match="tally_sessions"):
            tally([ballot("x: a > b", session="1"), ballot("x: a > b", session="2")])

    @pytest.mark.parametrize("rule", EVERY_RULE)
    @pytest.mark.parametrize(
        "cast",
        [
            [Ballot("x", abstained=True), Ballot("y", abstained=True)],
            [Ballot("x", groups=(("a",),), grades={"a": 5})],
            [Ballot("x", groups=(("a",), ("b",)), grades={"a": 7, "b": 7})],
            [Ballot(r, groups=(("a", "b"),), grades={"a": 7, "b": 7}) for r in "xyz"],
            [Ballot("a", groups=(("a",),), grades={"a": 5}), Ballot("x", abstained=True)],
        ],
        ids=["all abstain", "one candidate", "one reviewer", "all flat", "only oneself"],
    )
    def test_degenerate_sessions_have_outcomes(self, rule, cast):
        """Each has an outcome without unsupported claims."""
        if rule == "elo" and not any(b.groups and b.reviewer != "a" for b in cast):
            with pytest.raises(NothingToCount):
                tally(cast, rule)
            return

        outcome = tally(cast, rule)

        assert all(line.p_best is None or 0 <= line.p_best <= 1 for line in outcome.standings)
        assert len({line.tier for line in outcome.standings if line.votes}) <= 1
        assert outcome.clear_leader is None or len(outcome.tied_for_best) == len(outcome.standings)


class TestSessions:
    """Many sessions in one call."""

    def test_outcomes_are_in_the_order_of_first_ballots(self):
        """Sizes and rules may differ."""
        cast = [
            ballot("x: a > b", session="two"),
            ballot("x: a > b > c", session="one"),
            ballot("y: a > b", session="two"),
            *[replace(one, session="graded") for one in COUNCIL],
        ]

        outcomes = list(tally_sessions(cast, Settings()))

        assert [(o.session, o.rule) for o in outcomes] == [
            ("two", "borda"),
            ("one", "borda"),
            ("graded", "calibrated"),
        ]

    def test_an_unsuitable_session_does_not_stop_the_others(self):
        """A session without grades is reported, the rest are counted."""
        cast = [*[replace(one, session="g") for one in COUNCIL], ballot("x: a > b", session="r")]
        problems = []

        outcomes = list(tally_sessions(cast, Settings.of("range"), problems.append))

        assert [outcome.session for outcome in outcomes] == ["g"]
        assert "in session 'r'" in str(problems[0])

    def test_reliability_is_learned_from_other_sessions(self):
        """Under weighted_borda a single session has equal weights."""

        def cast(session):
            return [
                replace(one, session=session)
                for one in ballots("x: a > b > c", "y: a > b > c", "z: a > b > c", "w: c > b > a")
            ]

        alone = tally(cast("1"), "weighted_borda")
        taught = list(
            tally_sessions([b for n in "12345" for b in cast(n)], Settings.of("weighted_borda"))
        )

        assert alone["a"].score == tally(cast("1"), "borda")["a"].score
        assert taught[0]["a"].score > alone["a"].score

    def test_a_prior_needs_fifty_sessions(self):
        """From fifty sessions on a prior is used, and the outcome names it."""

        def cast(n):
            rng = np.random.default_rng(n)
            return [
                Ballot(r, session=str(n), grades={c: int(rng.integers(3, 9)) for c in "abc"})
                for r in "xyz"
            ]

        def count(n_sessions):
            session_ballots = [b for n in range(n_sessions) for b in cast(n)]
            return next(tally_sessions(session_ballots, Settings(prior="learn", flips=False)))

        assert count(49).prior.source == "public"
        assert count(60).prior.n_sessions >= 50
        assert count(60).df > count(49).df

    def test_elo_rates_over_all_sessions(self):
        """A rule over a history has one outcome for all of them."""
        cast = [ballot("x: a > b", session=str(n)) for n in range(3)]

        outcomes = list(tally_sessions(cast, Settings.of("elo")))

        assert len(outcomes) == 1
        assert outcomes[0]["a"].score > 1040 > outcomes[0]["b"].score


class TestDeferredOutcomes:
    """An outcome in a council is built once more than places and votes is read."""

    @pytest.fixture
    def deferred(self):
        [(batch, column)] = tally_columns(COUNCIL, Settings())
        return batch.defer(column)

    def test_it_equals_the_one_that_is_built_at_once(self, deferred):
        assert deferred.leaders == tally(COUNCIL).leaders
        assert deferred == tally(COUNCIL)

    def test_a_line_read_first_is_complete(self, deferred):
        assert deferred.standings[0] == tally(COUNCIL).standings[0]
        assert deferred.ballots[0].tau == tally(COUNCIL).ballots[0].tau

    def test_it_can_be_sent_to_another_process(self, deferred):
        assert pickle.loads(pickle.dumps(deferred)) == tally(COUNCIL)  # noqa: S301 - our own

    def test_a_misspelt_attribute_is_an_error(self, deferred):
        with pytest.raises(AttributeError, match="'leader'"):
            _ = deferred.leader

    def test_what_fails_in_building_it_does_not_read_as_a_missing_field(self):
        def build():
            raise AttributeError("wrong name")

        with pytest.raises(RuntimeError, match="could not build std_error: wrong name"):
            hasattr(Scores.defer(build), "std_error")

    def test_errors_of_scores_are_computed_for_nothing_but_themselves(self):
        computed = []

        def error():
            computed.append(1)
            return np.ones((2, 1))

        scores = Scores.defer_errors(np.zeros((2, 1)), error)

        others = [each.name for each in fields(Scores) if each.name != "std_error"]
        assert [getattr(scores, name) is None for name in others] == [
            False,
            True,
            True,
            True,
            False,
        ]
        assert not computed
        assert scores.std_error.sum() == 2


class TestHumanVotes:
    """People among the reviewers."""

    def test_kind_chooses_whose_ballots_count(self):
        """Only models, only people, or all."""
        cast = [*ballots("x: a > b", "y: a > b"), *ballots("p: b > a", kind="human")]

        assert tally(cast, kind="human").leaders == ("b",)
        assert tally(cast, kind="model").n_ballots == 2
        assert tally(cast).n_ballots == 3

    def test_shared_error_is_learned_from_fifty_decided_pairs(self):
        """Two models that are right and wrong together are worth little more than one."""
        cast = []
        for n in range(60):
            truth, said = ("a > b", "a > b" if n % 3 else "b > a")
            cast += ballots(f"p: {truth}", session=str(n), kind="human")
            cast += ballots(f"x: {said}", f"y: {said}", session=str(n))

        few, enough = cast[: 3 * 40], cast

        assert next(tally_sessions(few, Settings(kind="model"))).rho_is_assumed
        learned = next(tally_sessions(enough, Settings(kind="model")))
        assert learned.effective_votes == pytest.approx(1.0, abs=0.01)
