"""Edge cases that are easily counted wrong."""

import copy
import math
import pickle
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from elections import ballot, ballots, election
from witan.core.ballot import Ballot
from witan.core.gate import Gate
from witan.core.rules import RULES
from witan.core.rules.elimination import irv_rounds
from witan.core.settings import Settings
from witan.core.tally import tally, tally_sessions
from witan.errors import InvalidBallot, InvalidParameter, UnknownName
from witan.surfaces.report.outcome import outcome_report
from witan.surfaces.report.text import Page, report_text

LATIN = [
    Ballot("x", grades={"a": 6, "b": 7, "c": 9}),
    Ballot("y", grades={"a": 7, "b": 9, "c": 6}),
    Ballot("z", grades={"a": 9, "b": 6, "c": 7}),
]


class TestDeadHeats:
    """Equal on paper is equal in the outcome."""

    def test_a_latin_square_of_grades_is_a_dead_heat(self):
        """Effects of zero up to floating-point rounding have no leader."""
        outcome = tally(LATIN, "calibrated")

        assert outcome.leaders == ("a", "b", "c")
        assert outcome.ballots_to_flip == 0

    def test_equal_sums_of_weights_make_no_majority(self):
        """.1 + .2 for a against .3 for b is a draw, and no candidate beats all others."""
        cast = [
            ballot("x: a > b", weight=0.1),
            ballot("y: a > b", weight=0.2),
            ballot("z: b > a", weight=0.3),
        ]

        assert tally(cast, "tournament").condorcet_winner is None

    @pytest.mark.parametrize("rule", ["range", "hybrid"])
    def test_equal_grades_of_unequal_weight_are_a_dead_heat(self, rule):
        """The two have one 4 each, of weight 1 and ½; no rounding error puts b first."""
        cast = [
            Ballot("a", grades={"a": 1, "b": 4}, weight=0.5),
            Ballot("b", grades={"a": 4, "b": 4}),
        ]

        outcome = tally(cast, rule)

        assert outcome.leaders == ("a", "b")

    def test_equal_z_scores_of_unequal_weight_are_a_dead_heat(self):
        """Every vote for b and d is 1/√2, and d has one more: their means and places are equal."""
        cast = [
            Ballot("a", grades={"a": 1, "b": 10, "c": 1, "d": 10}, weight=3.25),
            Ballot("b", grades={"a": 4, "b": 6, "c": 6, "d": 6}, weight=3.25),
            Ballot("c", grades={"a": 4, "b": 6, "c": 6, "d": 6}, weight=2),
        ]

        outcome = tally(cast, "normalized_scores")

        assert outcome.leaders == ("b", "d")
        assert outcome["b"].std_error == outcome["d"].std_error == 0.0

    def test_a_dead_heat_is_one_tier(self):
        """Candidates that share a rank are tied, whatever the fit estimates."""
        outcome = tally(ballots("5 × x: a > b > c", "5 × y: b > c > a"), "ranked_pairs")
        ranks = {line.candidate: (line.rank, line.tier) for line in outcome.standings}

        assert all(
            tier == other_tier
            for rank, tier in ranks.values()
            for other_rank, other_tier in ranks.values()
            if rank == other_rank
        )


class TestWeights:
    """Weights compare reviewers; their unit has no meaning."""

    @pytest.mark.parametrize("rule", [r.name for r in RULES.values() if r.needs != "history"])
    def test_the_unit_of_weights_changes_nothing(self, rule):
        """All weights times a constant give the same scores and probabilities."""
        one = [replace(b, weight=w) for b, w in zip(LATIN, (1.0, 2.0, 3.0), strict=True)]
        first = tally(one, rule)

        for unit in (1e-200, 1e-3, 7.0, 1e160, 5e307):
            second = tally([replace(b, weight=b.weight * unit) for b in one], rule)

            for line, other in zip(first.standings, second.standings, strict=True):
                assert (line.candidate, line.rank) == (other.candidate, other.rank)
                assert line.score == pytest.approx(other.score, rel=1e-6, abs=1e-9)
                assert line.p_best == pytest.approx(other.p_best, abs=0.01)

    @pytest.mark.parametrize("unit", [1.0, 0.1])
    def test_the_unit_of_weights_costs_no_degree_of_freedom(self, unit):
        """Weights of 1, 4, 1 and 3 leave 12/(4·27/81) = 9 of 12 degrees; the prior is worth 4."""
        cast = [
            ballot("r0: e > c > d > b > a", weight=unit),
            ballot("r1: e > a > d > b > c", weight=4 * unit),
            ballot("r2: d > e > b > a > c", weight=unit),
            ballot("r3: b > e > c > a > d", weight=3 * unit),
        ]

        assert tally(cast, "borda").df == 13.0

    @pytest.mark.parametrize("rule", ["borda", "mean_rank", "range"])
    def test_one_weight_beside_which_the_others_vanish_has_no_error(self, rule):
        """As of a single vote, the standard error is unknown, not infinite."""
        heavy = Ballot("r", grades={"a": 7, "b": 5}, weight=1e300)
        outcome = tally([heavy, Ballot("s", grades={"a": 6, "b": 8})], rule)

        assert [line.std_error for line in outcome.standings] == [None, None]

    def test_one_weight_beside_others_of_a_millionth_has_no_deviation(self):
        """The z-scores of one ballot show no spread, so no error of 0 is stated."""
        heavy = Ballot("r", grades={"a": 7, "b": 5, "c": 4}, weight=1e6)
        others = [Ballot(name, grades={"a": 6, "b": 8, "c": 1}) for name in "st"]
        alone = tally([heavy, *others], "normalized_scores")
        beside = tally([replace(heavy, weight=2), *others], "normalized_scores")

        assert [line.std_error for line in alone.standings] == [None] * 3
        assert None not in [line.std_error for line in beside.standings]

    @pytest.mark.filterwarnings("error")
    def test_a_weight_beside_which_the_others_vanish_warns_of_nothing(self):
        """The heavy ballot has one candidate; the comparisons of the others have no precision."""
        cast = ballots("s: j > a = x > u", "t: a > u = j")
        outcome = tally([cast[0], ballot("r: x", weight=1e300), cast[1]], "kemeny")

        assert sum(line.p_best or 0 for line in outcome.standings) == pytest.approx(1)

    def test_a_reviewer_of_weight_zero_abstains(self):
        """A weight of 0 in the settings removes the ballot from every figure."""
        outcome = tally(LATIN, "calibrated", weights={"z": 0})
        without = tally(LATIN[:2], "calibrated")

        assert outcome.abstentions == {"z": "weighs nothing"}
        assert outcome["a"].mean_grade == without["a"].mean_grade
        assert outcome.kendall_w == without.kendall_w


class TestVotes:
    """A vote is a ballot that the rule can use."""

    def test_rankings_are_no_votes_for_graded_rules(self):
        """Six rankings beside two graded ballots narrow no interval of `range`."""
        graded = [Ballot("x", grades={"a": 7, "b": 5}), Ballot("y", grades={"a": 8, "b": 6})]
        ranked = ballots(*(f"r{n}: a > b" for n in range(6)))

        alone, beside = tally(graded, "range"), tally([*graded, *ranked], "range")

        assert beside["a"].votes == 2
        assert beside["a"].interval == alone["a"].interval
        assert beside["a"].confidence == "low"

    def test_pairs_of_one_reviewer_count_as_one_reviewer(self):
        """Three comparisons by one reviewer have low confidence."""
        cast = [
            Ballot("x", groups=((i,), (j,)), paired=True)
            for i, j in (("a", "b"), ("b", "c"), ("a", "c"))
        ]

        assert {line.confidence for line in tally(cast).standings} == {"low"}


class TestRubrics:
    """No grade escapes the ceiling."""

    def test_a_holistic_grade_is_capped_too(self):
        """Accuracy 1 caps an overall 10 at 4.0 although the other criteria are not graded."""
        liar = {"accuracy": 1, "overall": 10}
        honest = {"accuracy": 9, "overall": 8}
        cast = [Ballot(r, grades={"liar": liar, "honest": honest}) for r in "xyz"]

        outcome = tally(cast)

        assert outcome.leaders == ("honest",)
        assert outcome["liar"].mean_grade == 4.0

    def test_empty_criteria_change_no_ranking(self):
        """A ranking stays as it was without graded criteria."""
        cast = [ballot("x: b > a > c", grades={"a": {}, "b": 3, "c": 7})]

        assert tally(cast, "borda").ballots[0].ranking == (("b",), ("a",), ("c",))


class TestSessions:
    """Session facts do not depend on one ballot."""

    def test_an_author_named_on_one_ballot_is_recused_on_all(self):
        """Recusal applies although the author's own ballot omits it."""
        cast = [
            ballot("y: m2 > m1", authors={"m1": "x", "m2": "z"}),
            ballot("x: m1 > m2"),
        ]

        assert tally(cast, "borda")["m1"].votes == 1

    def test_rosters_in_different_orders_are_seated_by_name(self):
        """With balanced sheets seat order does not depend on the first ballot."""
        cast = [
            ballot("x: a > b", candidates=("b", "a", "c")),
            ballot("y: b > a", candidates=("c", "a", "b")),
        ]

        assert tally(cast).standings == tally(cast[::-1]).standings

    def test_elo_follows_the_clock_not_the_file(self):
        """Sessions with times are rated in chronological order."""
        early = ballot("x: a > b", session="1", at=datetime(2026, 1, 1, tzinfo=UTC))
        late = ballot("x: b > a", session="2", at=datetime(2026, 1, 2, tzinfo=UTC))

        assert tally([late, early], "elo").leaders == tally([early, late], "elo").leaders == ("b",)

    def test_elo_takes_sessions_of_different_sizes(self):
        """A short session is padded with missing candidates."""
        cast = [*ballots("x: a > b", session="1"), *ballots("x: b > a", "y: a > b", session="2")]

        assert tally(cast, "elo").n_ballots == 3

    def test_a_pair_may_extend_the_roster(self):
        """Comparisons beside whole ballots may name candidates outside the roster."""
        cast = [
            ballot("x: a > b", candidates=("a", "b")),
            Ballot("y", groups=(("a",), ("c",)), paired=True),
        ]

        assert {line.candidate for line in tally(cast).standings} == {"a", "b", "c"}

    def test_a_pair_of_three_is_dropped_with_a_warning(self):
        """A comparison has exactly two candidates."""
        cast = [ballot("x: a > b > c"), Ballot("y", groups=(("a",), ("b",), ("c",)), paired=True)]

        outcome = tally(cast)

        assert outcome.n_ballots == 1
        assert any("other than two candidates" in warning for warning in outcome.warnings)

    def test_a_comparison_of_three_in_several_orders_is_dropped(self):
        """It is no error of the count that three candidates have more than two orders."""
        sheet = {"paired": True, "candidates": ("a", "b", "c"), "session": "s"}
        cast = [
            Ballot(
                "x",
                (("a",), ("b",)),
                positions={name: at for at, name in enumerate(order, 1)},
                **sheet,
            )
            for order in ("abc", "bac", "cba")
        ]

        outcome = tally(cast, "tournament")

        assert outcome.n_ballots == 0
        assert any("other than two candidates" in warning for warning in outcome.warnings)

    def test_unranked_candidates_rank_above_failed_ones(self):
        """With ``last``, an unranked candidate is still above one that failed the gate."""
        gate = Gate(failed={"a": ("self_harm",)})
        cast = ballots("x: a > b", "y: a > b > c")

        outcome = tally(cast, "borda", unranked="last", gates={"": gate})

        assert outcome.standings[-1].candidate == "a"

    def test_one_session_without_convergence_does_not_stop_the_others(self):
        """Weights too far apart for a fit are reported for their session alone."""
        good = ballots("x: a > b", "y: a > b", session="good")
        bad = [
            ballot("x: a > b > c", session="bad", weight=1e12),
            ballot("y: c > b > a", session="bad", weight=1e-12),
        ]
        problems = []

        outcomes = list(
            tally_sessions([*good, *bad], Settings.of("plackett_luce"), problems.append)
        )

        assert [o.session for o in outcomes if o.session == "good"] == ["good"]
        assert len(outcomes) + len(problems) == 2


@pytest.mark.parametrize("kind", ["all", "model"])
def test_a_session_too_large_is_reported_once_by_name(kind):
    """Choosing a kind of reviewer does not report it twice."""
    large = Ballot("x", groups=tuple((f"c{n}",) for n in range(1001)), session="large")
    problems = []

    outcomes = tally_sessions(
        [large, ballot("x: a > b", session="small")], Settings(kind=kind), problems.append
    )

    assert [outcome.session for outcome in outcomes] == ["small"]
    assert [problem.session for problem in problems] == ["large"]


def test_irv_eliminates_each_candidate_once_at_any_size():
    """127 ballots do not overflow a byte."""
    rounds = irv_rounds(election("127 × v: a > b > c"))

    assert sorted(r.eliminated for r in rounds) == [1, 2]


def test_irv_outcome_has_its_rounds():
    """The outcome contains every round by name."""
    outcome = tally(ballots("x: a > b > c", "y: a > b > c", "z: b > a > c"), "irv")

    assert [held["eliminated"] for held in outcome.details["rounds"]] == ["c", "b"]


def test_hybrid_names_candidates_scored_by_ranking_alone():
    """Only ballots without grades rank them."""
    cast = [ballot(f"{r}: a > b", grades={"a": 8, "b": 6}) for r in "xy"] + ballots("z: a > c")

    assert any(w.startswith("no grade for c") for w in tally(cast, "hybrid").warnings)


def test_outcomes_and_settings_can_be_pickled():
    """They can be copied and sent to another process."""
    outcome = tally(LATIN)

    assert pickle.loads(pickle.dumps(outcome)) == outcome  # noqa: S301 - our own bytes
    assert copy.deepcopy(Settings()) == Settings()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"reviewer": 5}, "something but text"),
        ({"reviewer": "x", "groups": ("gpt", "claude")}, "not a group of names"),
        ({"reviewer": "x", "groups": ((1,),)}, "not a group of names"),
        ({"reviewer": "x", "grades": None}, "not a mapping"),
        ({"reviewer": "x", "weight": "1"}, "not a number"),
    ],
)
def test_an_invalid_ballot_is_refused(fields, words):
    """A ballot of the wrong types is refused on construction, in a sentence."""
    with pytest.raises(InvalidBallot, match=words):
        Ballot(**fields)


@pytest.mark.parametrize(
    "setting",
    [
        {"level": "0.9"},
        {"threshold": "2"},
        {"rho": "foo"},
        {"weights": {"x": "a"}},
        {"weights": {"x": math.nan}},
        {"reliability": {"x": -1}},
        {"prior": "foo"},
        {"rubric": "general"},
    ],
    ids=str,
)
def test_a_setting_of_the_wrong_type_is_refused(setting):
    """The error names the setting."""
    with pytest.raises(InvalidParameter):
        tally(LATIN, **setting)


def test_a_rule_of_the_wrong_type_is_unknown():
    """The error for rule None lists the known rules."""
    with pytest.raises(UnknownName, match="unknown rule"):
        tally(LATIN, None)


def test_all_candidates_with_votes_may_fail_the_gate():
    """An answer without votes is above them, and the sentence says that nobody can win."""
    ballots = [Ballot("r", (("a", "b"),), session="s", candidates=("a", "b", "c"))]
    gates = {"s": Gate({"a": ("self_harm",), "b": ("self_harm",)})}

    outcome = tally(ballots, "borda", gates=gates, recusal="off")

    assert outcome.standings[0].candidate == "c"
    assert outcome.interpretation == (
        "No candidate with votes passed the safety gate, so none can win."
    )


def test_no_report_of_failed_candidates_names_a_winner():
    """Where all fail the gate, nothing speaks of a shared lead."""
    gates = {"s": Gate(dict.fromkeys("abc", ("self_harm",)))}
    ballots = [Ballot(name, grades={"a": 8, "b": 7, "c": 5}, session="s") for name in "xyz"]

    outcome = tally(ballots, gates=gates)
    text = " ".join(report_text(Page(width=500), outcome_report(outcome)))

    assert "nobody can win" in text
    assert not any(word in text for word in ("dead heat", "first place", "lead"))


class TestBallotsThatCompareNothing:
    """A ballot with one candidate, such as the rest of one after recusal, compares nothing."""

    @pytest.mark.parametrize(
        "rule",
        [
            "borda", "calibrated", "tournament", "schulze", "ranked_pairs", "kemeny",
            "bradley_terry", "plackett_luce",
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("kind", ["model", "human"])
    @pytest.mark.parametrize("weight", [0.1, 1.0, 1e9, 1e300])
    def test_it_changes_no_number_of_a_rule_that_compares(self, rule, kind, weight):
        """Scores, errors, probabilities and tests stay, whatever it weighs; it is named."""
        cast = [
            Ballot("p", grades={"a": 9, "b": 6, "c": 5}, weight=2.0),
            Ballot("q", grades={"a": 8, "b": 9, "c": 4}),
            Ballot("r", grades={"a": 7, "b": 5, "c": 2}, weight=0.5),
            Ballot("s", grades={"b": 3, "c": 1}, positions={"b": 1, "c": 2}),
        ]
        alone = Ballot("t", grades={"a": 2}, positions={"a": 1}, weight=weight, kind=kind)

        before, after = tally(cast, rule), tally([*cast, alone], rule)

        for name in ("rank", "score", "std_error", "effect", "p_best", "tier"):
            values = {c: getattr(before[c], name) for c in "abc"}
            assert {c: getattr(after[c], name) for c in "abc"} == pytest.approx(values), name
        for name in ("df", "rho", "effective_votes", "n_ballots", "ballots_to_flip"):
            assert getattr(after, name) == pytest.approx(getattr(before, name)), name
        assert after.unresolved == before.unresolved
        assert after.without_effect == ("t",)
        why = "gave no grades to compare" if rule == "calibrated" else "ranked too few candidates"
        assert f"t {why}: their ballot does not count by {rule}" in after.warnings

    def test_it_counts_where_a_rule_reads_it(self):
        """A first place under irv, a rank and a grade in means."""
        cast = ballots("p: a > b", "q: b > a", "r: a > b", "t: b")

        for rule in ("irv", "mean_rank"):
            outcome = tally(cast, rule)
            assert outcome.n_ballots == 4
            assert outcome.without_effect == ()
