"""The leaderboard: hand-counted lines, calibrated intervals, stated gaps."""

import math
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy.stats import beta, norm, ttest_ind
from scipy.stats import t as student

from leaderboard_sums import (
    NAMES,
    answer_sums,
    code,
    matchup_sums,
    shuffled,
    split,
    standing_sums,
)
from witan.core.stats.leaderboard import Leaderboard, Terms, Window
from witan.core.stats.leaderboard_builder import leaderboard
from witan.core.stats.sums import Names
from witan.errors import InvalidParameter, NothingToCount, UnknownName

ALL = Terms(min_sessions=1)


def board(sessions, matchups=None, answers=None, *, terms=ALL, **options) -> Leaderboard:
    """A leaderboard of sessions, each a dictionary of model to score."""
    votes = options.pop("votes", 4)
    return leaderboard(
        standing_sums(sessions, votes=votes), matchups, answers, NAMES, terms=terms, **options
    )


def random_sessions(rng: np.random.Generator, n: int, gaps=(0.0, 0.0, 0.1, 0.3)) -> list[dict]:
    """Sessions of models of different strength with shared luck per session."""
    noise = rng.normal(0, 0.15, (n, len(gaps)))
    noise -= 0.5 * noise.mean(axis=1, keepdims=True)
    return [
        {"abcdefgh"[m]: 0.6 - gaps[m] + row[m] for m in range(len(gaps))} for row in noise.tolist()
    ]


class TestByHand:
    """Lines that can be checked with a pencil."""

    def test_a_line_is_the_mean_of_means_with_its_votes_wins_and_coverage(self):
        """Three sessions of a and b; b misses one score: ADR-007's columns."""
        sessions = [{"a": 1.0, "b": 0.0}, {"a": 0.5, "b": 0.5}, {"a": 0.0, "b": None}]

        a, b = board(sessions).lines

        assert (a.model, a.rank, a.score) == ("a", 1, 0.5)
        assert (a.sessions, a.appearances, a.votes, a.offered) == (3, 3, 12, 12)
        assert (a.wins, a.coverage, a.confidence) == (2.5, 1.0, "high")
        assert a.std_error == pytest.approx(0.5 / math.sqrt(3))
        assert a.z == pytest.approx(0.25)
        assert (b.score, b.sessions, b.appearances, b.votes) == (0.25, 2, 3, 8)
        assert (b.coverage, b.confidence, b.wins) == (8 / 12, "medium", 0.5)

    def test_the_interval_is_that_of_as_many_votes_as_the_error_is_worth(self):
        """Jeffreys' between the bounds of a Borda score; t/z widens the error of few sessions."""
        values = [0.2, 0.4, 0.7, 0.8]
        line = board([{"a": x} for x in values]).by_model["a"]
        p, reach = np.mean(values), student.ppf(0.975, 3) * np.std(values, ddof=1) / 2
        votes = p * (1 - p) * (norm.ppf(0.975) / reach) ** 2
        ends = beta.ppf([0.025, 0.975], p * votes + 0.5, (1 - p) * votes + 0.5)

        assert (line.interval.low, line.interval.high) == pytest.approx(tuple(ends))
        assert line.interval.level == 0.95

    def test_the_interval_of_nearly_equal_scores_is_students(self):
        """They are worth more votes than Jeffreys' can be computed for."""
        values = [0.5] * 9_999 + [0.4999]
        line = board([{"a": x} for x in values]).by_model["a"]
        reach = student.ppf(0.975, 9_999) * np.std(values, ddof=1) / 100

        assert line.interval.high - line.score == pytest.approx(reach)
        assert line.score - line.interval.low == pytest.approx(reach)

    @pytest.mark.parametrize("rule", ["borda", "tournament", "schulze", "ranked_pairs", "irv"])
    def test_the_interval_of_a_share_stays_between_0_and_1(self, rule):
        """Two sessions are few, and the shares far apart."""
        terms = replace(ALL, rule=rule)
        line = board([{"a": 1.0}, {"a": 0.8}], terms=terms).by_model["a"]

        assert 0 <= line.interval.low < line.score < line.interval.high <= 1

    def test_the_interval_is_students_without_bounds(self):
        """Mean ∓ t · s/√n with n − 1 degrees."""
        values = [0.2, 0.4, 0.6, 0.8]
        terms = replace(ALL, rule="calibrated")
        line = board([{"a": x} for x in values], terms=terms).by_model["a"]
        reach = student.ppf(0.975, 3) * np.std(values, ddof=1) / 2

        assert line.interval.low == pytest.approx(0.5 - reach)
        assert line.interval.high == pytest.approx(0.5 + reach)

    @pytest.mark.parametrize(
        ("votes", "expected"), [(4, "high"), (3, "medium"), (2, "medium"), (1, "low")]
    )
    def test_confidence_follows_coverage(self, votes, expected):
        """From 0.8 on high, from 0.5 on medium, else low."""
        assert board([{"a": 0.3}, {"a": 0.4}], votes=votes).lines[0].confidence == expected

    def test_a_single_session_has_low_confidence(self):
        """Full coverage does not help."""
        assert board([{"a": 0.3}]).lines[0].confidence == "low"

    def test_dead_heats_share_a_rank_in_alphabetical_order(self):
        """1, 2, 2, 4; sums that differ in their last digit are equal."""
        sessions = [
            {"a": 0.1, "d": 0.3, "c": 0.1 + 0.2, "b": 0.9},
            {"a": 0.1, "d": 0.3, "c": 0.3, "b": 0.8},
        ]

        lines = board(sessions).lines

        assert [(line.model, line.rank) for line in lines] == [
            ("b", 1), ("c", 2), ("d", 2), ("a", 4),
        ]  # fmt: skip

    def test_a_low_mean_rank_is_best(self):
        """The rule defines the direction."""
        sessions = [{"a": 2.0 + 0.1 * (n % 2), "b": 1.0 + 0.1 * (n % 3)} for n in range(12)]

        lines = board(sessions, terms=replace(ALL, rule="mean_rank")).lines

        assert [line.model for line in lines] == ["b", "a"]
        assert [(line.rank_low, line.rank_high) for line in lines] == [(1, 1), (2, 2)]
        assert not lines[0].tied_with_next

    def test_cost_and_time_are_means_over_known_values(self):
        """Two of four answers have a cost, one failed, none is timed; rows add up."""
        answers = answer_sums([("a", 3, 1, 1, 0.02, 0, 0.0), ("a", 1, 0, 1, 0.04, 0, 0.0)])

        effort = board([{"a": 0.5, "b": 0.1}], None, answers).by_model["a"].effort

        assert (effort.answers, effort.failure_rate, effort.costed) == (4, 0.25, 2)
        assert effort.cost_usd == pytest.approx(0.03)
        assert (effort.seconds, effort.timed) == (None, 0)

    def test_models_under_the_minimum_have_no_rank(self):
        """A model of two sessions has its numbers and does not displace one of ten."""
        sessions = [{"a": 0.4 + 0.01 * n, **({"b": 0.9} if n < 2 else {})} for n in range(10)]

        result = board(sessions, terms=Terms())

        assert [(line.model, line.rank) for line in result.lines] == [("a", 1)]
        (b,) = result.provisional
        assert (b.model, b.rank, b.rank_low, b.provisional) == ("b", None, None, True)
        assert b.score == pytest.approx(0.9)

    def test_models_without_scores_are_listed_last(self):
        """They are models without votes and models that only failed to answer."""
        sessions = [{"a": 0.5, "b": None}, {"a": 0.6, "b": None}]
        result = board(sessions, None, answer_sums([("c", 2, 2, 0, 0.0, 0, 0.0)]))

        assert [line.model for line in result.provisional] == ["b", "c"]
        assert result.by_model["b"].score is None
        assert result.by_model["b"].appearances == 2
        assert result.by_model["c"].effort.failure_rate == 1
        assert result.by_model["c"].coverage is None


def matches_of(sessions):
    """One matchup per session and pair, decided by the scores."""
    rows = []
    for number, scores in enumerate(sessions):
        models = sorted(scores)
        for place, one in enumerate(models):
            rows += [
                (number, one, two, scores[one] > scores[two], scores[one] < scores[two], 0)
                for two in models[place + 1 :]
            ]
    return matchup_sums(rows)


class TestOrder:
    """Ranks, their intervals, and the other two orders."""

    @pytest.mark.parametrize("order_by", ["score", "rating"])
    def test_rank_intervals_contain_the_rank(self, order_by):
        """Models far apart have one rank each; equal ones share theirs."""
        sessions = random_sessions(np.random.default_rng(1), 150, (0.0, 0.0, 0.3, 0.6))
        terms = Terms(order_by=order_by)

        lines = board(sessions, matches_of(sessions), terms=terms).lines

        assert {line.model for line in lines[:2]} == {"a", "b"}
        assert [(line.rank_low, line.rank_high) for line in lines] == [
            (1, 2), (1, 2), (3, 3), (4, 4),
        ]  # fmt: skip
        assert [line.tied_with_next for line in lines] == [True, False, False, False]

    def test_ratings_and_probabilities_follow_the_order_of_lines(self):
        """p_beats has provisional lines last and None on the diagonal."""
        sessions = random_sessions(np.random.default_rng(2), 60, (0.4, 0.0, 0.2))
        extra = [{"a": 0.5, "d": 0.1}]

        result = board([*sessions, *extra], matches_of([*sessions, *extra]), terms=Terms())

        assert [line.model for line in result.lines] == ["b", "c", "a"]
        assert [line.model for line in result.provisional] == ["d"]
        assert result.lines[0].rating > result.lines[1].rating > result.lines[2].rating
        assert result.p_beats[0][1] > 0.9
        assert result.p_beats[1][0] < 0.1
        assert [result.p_beats[n][n] for n in range(4)] == [None] * 4
        assert result.n_comparisons == 181

    @pytest.mark.parametrize("order_by", ["score", "rating", "elo"])
    def test_disconnected_groups_are_ranked_separately(self, order_by):
        """Ranks and their intervals restart in each group, the largest group first."""
        apart = [{"a": 0.9, "b": 0.1, "c": 0.4}] * 6 + [{"d": 0.2, "e": 0.95}] * 9
        elo = {code(name): 1000.0 + n for n, name in enumerate("bcade")}

        result = board(apart, matches_of(apart), terms=replace(ALL, order_by=order_by), elo=elo)

        assert [(line.group, line.rank, line.model) for line in result.lines] == [
            (1, 1, "a"), (1, 2, "c"), (1, 3, "b"), (2, 1, "e"), (2, 2, "d"),
        ]  # fmt: skip
        assert result.p_beats[0][3] is None
        assert any("(a, b, c), (d, e)" in line for line in result.warnings)
        if order_by == "score":
            assert [(line.rank_low, line.rank_high) for line in result.lines] == [
                (1, 1), (2, 2), (3, 3), (1, 1), (2, 2),
            ]  # fmt: skip
            assert result.contenders == ()

    def test_groups_do_not_affect_each_other(self):
        """Contenders, worst ranks and ties with the next stay within a group."""
        noise = np.random.default_rng(9)
        apart = [
            {one: 0.8 + 0.1 * noise.normal(), two: 0.8 + 0.1 * noise.normal(), last: 0.1}
            for _ in range(12) for one, two, last in ("abc", "def")
        ]  # fmt: skip

        result = board(apart, matches_of(apart))

        assert [line.group for line in result.lines] == [1, 1, 1, 2, 2, 2]
        assert [(line.rank_low, line.rank_high) for line in result.lines] == [
            (1, 2), (1, 2), (3, 3), (1, 2), (1, 2), (3, 3),
        ]  # fmt: skip
        assert [line.tied_with_next for line in result.lines] == [True, False, False] * 2
        assert set(result.contenders) == {result.lines[1].model, result.lines[4].model}

    def test_a_model_without_matchups_is_a_group_of_its_own(self):
        """A score without a common ballot gives no rank among the others."""
        sessions = [{"a": 0.9, "b": 0.1}] * 6

        result = board([*sessions, *[{"c": 0.5}] * 6], matches_of(sessions))

        assert [(line.model, line.group) for line in result.lines] == [("a", 1), ("b", 1)]
        assert [(line.model, line.rank, line.group) for line in result.provisional] == [
            ("c", None, None)
        ]

    def test_the_order_by_elo_has_no_rank_intervals(self):
        """Ratings by code order the lines."""
        sessions = [{"a": 0.9, "b": 0.1}] * 3
        elo = {code("a"): 990.0, code("b"): 1010.0}

        result = board(sessions, terms=replace(ALL, order_by="elo"), elo=elo)

        assert [(line.model, line.elo) for line in result.lines] == [("b", 1010.0), ("a", 990.0)]
        assert result.lines[0].tied_with_next is None
        assert result.lines[0].rank_low is None

    def test_a_model_that_always_wins_is_separated_by_signs(self):
        """Without spread there is no error: six sessions that agree are enough, five are not."""
        five, six = (board([{"a": 1.0, "b": 0.0}] * n).lines[0] for n in (5, 6))

        assert five.tied_with_next
        assert not six.tied_with_next
        assert (six.std_error, six.interval) == (None, None)

    @pytest.mark.slow
    def test_equal_models_are_seldom_separated(self):
        """Equal models differ in at most 7% of 1,500 histories of 12 and 60 sessions.

        Nominal is 5%; the Monte-Carlo error is 0.56 points.
        """
        rng = np.random.default_rng(4)
        for n in (12, 60):
            wrong = [
                not board(random_sessions(rng, n, (0.0, 0.0)), terms=Terms())
                .lines[0]
                .tied_with_next
                for _ in range(1_500)
            ]
            assert 0.03 <= np.mean(wrong) <= 0.07


class TestErrors:
    """Intervals cover at their level."""

    @pytest.mark.parametrize("n", [12, pytest.param(40, marks=pytest.mark.slow)])
    def test_intervals_of_scores_cover_their_level(self, n):
        """Borda-like scores of so many sessions: 93 to 97 of 100 at nominal 95%.

        2,000 lines a size bound the Monte-Carlo error by 0.5 points; two of these widen it.
        """
        rng = np.random.default_rng((5, n))
        shares = rng.binomial(4, rng.beta(4, 3, (500, 4, n))) / 4
        covered = []
        for history in shares.tolist():
            columns = dict(zip("abcd", history, strict=True))
            rows = [{m: column[s] for m, column in columns.items()} for s in range(n)]
            covered += [
                line.interval.low <= 4 / 7 <= line.interval.high for line in board(rows).lines
            ]
        assert 0.93 - 0.01 <= np.mean(covered) <= 0.97 + 0.01

    @pytest.mark.parametrize(
        ("mean", "n"),
        [(0.8, 10), (0.2, 10), (0.97, 100), pytest.param(0.99, 100, marks=pytest.mark.slow)],
    )
    def test_intervals_of_scores_near_a_bound_cover(self, mean, n):
        """Borda-like scores of models that nearly always win, or lose."""
        rng = np.random.default_rng((7, n))
        shares = rng.binomial(3, rng.beta(3 * mean, 3 * (1 - mean), (1500, n))) / 3
        intervals = [board([{"a": x} for x in row]).lines[0].interval for row in shares.tolist()]
        known = [each for each in intervals if each is not None]

        assert np.mean([each.low <= mean <= each.high for each in known]) >= 0.93 - 0.01

    def test_large_scores_have_accurate_small_errors(self):
        """Scores about a thousand that differ by hundredths have the error of numpy."""
        values = 1000 + np.random.default_rng(6).normal(0, 0.05, 50)

        line = board([{"a": x} for x in values.tolist()], terms=replace(ALL, rule="range")).lines[0]

        assert line.std_error == pytest.approx(values.std(ddof=1) / math.sqrt(50), rel=1e-4)


class TestRows:
    """Split, order and names of rows do not matter."""

    def everything(self, change=lambda sums: sums, names=NAMES) -> Leaderboard:
        """A leaderboard of forty sessions with ratings, its tables passed through a change."""
        sessions = random_sessions(np.random.default_rng(7), 40)
        sums, matchups = standing_sums(sessions), matches_of(sessions)
        return leaderboard(change(sums), change(matchups), None, names, terms=Terms())

    def same(self, one, two) -> None:
        """Alike to nine digits, field by field."""
        if is_dataclass(one):
            for field in fields(one):
                self.same(getattr(one, field.name), getattr(two, field.name))
        elif isinstance(one, tuple):
            assert len(one) == len(two)
            for left, right in zip(one, two, strict=True):
                self.same(left, right)
        elif isinstance(one, float):
            assert one == pytest.approx(two, rel=1e-9, abs=1e-12)
        else:
            assert one == two

    def test_splitting_and_reordering_rows_changes_nothing(self):
        """A key may be in several rows, in any order."""
        keys = {"bucket", "model", "first", "second"}
        rng = np.random.default_rng(8)

        self.same(self.everything(lambda sums: shuffled(split(sums, keys), rng)), self.everything())

    def test_renaming_models_renames_lines(self):
        """Other names give the same numbers under those names, in the same order."""
        names = Names({c: {"a": "z", "d": "aa"}.get(name, name) for c, name in NAMES.of.items()})
        ours, theirs = self.everything(), self.everything(names=names)

        for line, other in zip(ours.lines, theirs.lines, strict=True):
            assert names[code(line.model)] == other.model
            self.same(replace(line, model=other.model), other)
        self.same(ours.p_beats, theirs.p_beats)


class TestChange:
    """A window against the previous one."""

    def test_a_change_is_a_difference_with_welchs_error(self):
        """Score and rank against before; significant exactly where Welch's test says so."""
        rng = np.random.default_rng(9)
        outcomes = set()
        for drop in (0.0, 0.05, 0.1, 0.2):
            before, now = random_sessions(rng, 30), random_sessions(rng, 20, (drop, 0.0, 0.1, 0.3))
            result = board(now, previous=board(before)).by_model["a"]

            values = [[session["a"] for session in sessions] for sessions in (now, before)]
            p = ttest_ind(*values, equal_var=False).pvalue
            assert result.change.score == pytest.approx(np.mean(values[0]) - np.mean(values[1]))
            assert result.change.beyond_error == (p < 0.05)
            outcomes.add(result.change.beyond_error)
        assert outcomes == {True, False}

    def test_ranks_gained_are_positive(self):
        """From third to first is +2; from first to second is −1."""
        before = [{"a": 0.9, "b": 0.5, "c": 0.1}, {"a": 0.8, "b": 0.6, "c": 0.2}]
        now = [{"a": 0.5, "b": 0.1, "c": 0.9}, {"a": 0.6, "b": 0.2, "c": 0.8}]

        result = board(now, previous=board(before)).by_model

        assert [result[m].change.rank for m in "abc"] == [-1, -1, 2]

    def test_ranks_are_not_compared_when_groups_merge(self):
        """Two groups that meet are ranked as one, which gains no rank for any model."""
        before = [{"a": 0.9, "b": 0.1}, {"c": 0.8, "d": 0.2}] * 2
        now = [{"a": 0.9, "b": 0.1, "c": 0.8, "d": 0.2}] * 2

        then = board(before, matches_of(before))
        result = board(now, matches_of(now), previous=then)
        same = board(before, matches_of(before), previous=then)

        assert [line.change.rank for line in result.lines] == [None] * 4
        assert [line.change.rank for line in same.lines] == [0] * 4

    def test_a_new_model_has_no_change(self):
        """A model with one session has none either."""
        before = board([{"a": 0.5, "b": 0.4}])
        result = board([{"a": 0.5, "c": 0.4}, {"a": 0.6, "c": 0.1}], previous=before)

        assert result.by_model["c"].change is None
        assert result.by_model["a"].change.beyond_error is None
        assert result.compared_to == before.terms.window

    @pytest.mark.parametrize(
        "other",
        [Terms(rule="range", min_sessions=1), Terms(min_sessions=1, window=Window(category="x"))],
        ids=["rule", "category"],
    )
    def test_different_terms_are_not_compared(self, other):
        """Another rule or category is no previous window."""
        with pytest.raises(InvalidParameter, match="previous"):
            board([{"a": 0.5}], previous=board([{"a": 0.5}], terms=other))


class TestUnknown:
    """Undefined results are reported, as None."""

    def test_no_number_is_ever_nan_or_infinite(self):
        """One session, one comparison, no answers: every unknown number is None."""
        answers = answer_sums([("a", 0, 0, 0, 0.0, 0, 0.0)])
        result = board([{"a": 1.0, "b": 0.0, "c": None}], matchup_sums([(0, "a", "b", 1, 0, 0)]),
                      answers)  # fmt: skip

        def walk(value):
            if is_dataclass(value):
                for field in fields(value):
                    walk(getattr(value, field.name))
            elif isinstance(value, tuple):
                for item in value:
                    walk(item)
            else:
                assert type(value) in (str, int, float, bool, type(None)), value
                assert not isinstance(value, float) or math.isfinite(value)

        walk(result)
        a = result.by_model["a"]
        assert (a.std_error, a.interval, a.rating_error, a.rating_interval) == (None,) * 4
        assert a.rating is not None
        assert a.effort.failure_rate is None
        assert a.tied_with_next
        assert any("one group of sessions" in line for line in result.warnings)

    def test_an_empty_window_is_explained(self):
        """The sentence names the window, the category and the rule."""
        window = Window(datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC), "law")

        with pytest.raises(NothingToCount) as caught:
            board([], terms=Terms(window=window))

        assert f"no session with models' ballots is counted by borda {window}" in str(caught.value)

    def test_an_order_without_data_is_an_error(self):
        """Without comparisons there is no order by rating, without scores none by score."""
        with pytest.raises(NothingToCount, match=r"no model has a rating.*order by"):
            board([{"a": 0.5}], terms=replace(ALL, order_by="rating"))
        with pytest.raises(NothingToCount, match="as no reviewer voted; see why") as caught:
            board([{"a": None}])
        assert "order by" not in str(caught.value)
        with pytest.raises(InvalidParameter, match="Elo was not computed"):
            board([{"a": 0.5}], terms=replace(ALL, order_by="elo"))

    def test_missing_comparisons_and_spread_give_warnings(self):
        """Each is reported in a sentence."""
        result = board([{"a": 1.0}] * 7, matchup_sums([]))

        assert result.warnings == (
            "a had one and the same score in all 7 sessions: its error is unknown",
            "no ballot compares two models since the first session: there are no ratings",
        )

    @pytest.mark.parametrize(
        "options",
        [
            {"order_by": "wins"},
            {"kind": "both"},
            {"min_sessions": 0},
            {"min_sessions": 2.5},
            {"level": 1},
        ],
    )
    def test_invalid_terms_are_refused(self, options):
        """The error names the option."""
        with pytest.raises(InvalidParameter, match=next(iter(options))):
            Terms(**options)

    def test_an_unknown_rule_is_refused_with_the_nearest(self):
        """The error suggests the right name."""
        with pytest.raises(UnknownName, match="borda"):
            board([{"a": 0.5}], terms=Terms(rule="bordo"))
