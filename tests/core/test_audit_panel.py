"""The panel in an audit: α, shared error, criteria, stability."""

from itertools import combinations

import numpy as np
import pytest

import reference_sums as by_hand
from audited import ballot, session
from reference_rows import names_of
from witan.core.session_ballots import StandingEntry
from witan.core.stats.audit import (
    alphas,
    criteria_lines,
    mean_agreement,
    mean_kendall_w,
    shared_votes,
    stability,
)
from witan.core.stats.concordance import effective_votes, shared_error

# Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), section C: four observers,
# twelve units, missing values; α for interval data is .849.
RELIABILITY_DATA = {
    "A": "1 2 3 3 2 1 4 1 2 . . .",
    "B": "1 2 3 3 2 2 4 1 2 5 . 3",
    "C": ". 3 3 3 2 3 4 2 2 5 1 .",
    "D": "1 2 3 3 2 4 4 1 2 5 1 .",
}


def sessions_of_units(columns, prefix=""):
    """One session per unit, one grade of one candidate by each observer with a value."""
    return [
        session(
            f"{prefix}unit {k}",
            *(ballot(name, {"x": None}, grades={"x": grade}) for name, grade in column.items()),
        )
        for k, column in enumerate(columns)
    ]


def pairwise_alpha(columns):
    """α by its definition, over all pairs of values."""
    units = [list(column.values()) for column in columns if len(column) > 1]
    values = [value for unit in units for value in unit]
    n = len(values)
    within = sum(
        2 * sum((a - b) ** 2 for a, b in combinations(unit, 2)) / (len(unit) - 1) for unit in units
    )
    between = 2 * sum((a - b) ** 2 for a, b in combinations(values, 2))
    return 1 - (within / n) / (between / (n * (n - 1)))


class TestAlpha:
    """Krippendorff's α for interval data."""

    def test_alpha_of_a_published_example(self):
        """Four copies of the published data, each unit a session, have its .849 but for n − 1."""
        rows = {name: line.split() for name, line in RELIABILITY_DATA.items()}
        columns = [
            {name: float(row[k]) for name, row in rows.items() if row[k] != "."} for k in range(12)
        ]
        assert round(pairwise_alpha(columns), 3) == 0.849

        entries = [e for copy in "abcd" for e in sessions_of_units(columns, copy)]
        measure = alphas(by_hand.unit_sums(entries), human=0, level=0.95).grades

        # With n values in all, (n − 1) / n is all that four copies change.
        single, n = pairwise_alpha(columns), 40
        assert measure.value == pytest.approx(
            1 - (1 - single) * (4 * n - 1) / (4 * n) / ((n - 1) / n)
        )
        assert measure.n == 44

    @pytest.mark.parametrize("seed", range(3))
    def test_alpha_equals_the_definition_over_all_pairs(self, seed):
        """Candidates have unequal numbers of values, some a single one."""
        rng = np.random.default_rng(seed)
        columns = []
        for _ in range(60):
            judges = rng.permutation(list("ABCDE"))[: rng.integers(1, 6)]
            level = rng.normal(6, 1)
            columns.append({name: float(np.rint(level + rng.normal())) for name in judges})

        measure = alphas(by_hand.unit_sums(sessions_of_units(columns)), human=0, level=0.95).grades

        assert measure.value == pytest.approx(pairwise_alpha(columns), abs=1e-12)
        assert measure.interval.low < measure.value < measure.interval.high

    def test_alpha_of_random_grades_is_zero(self):
        """Grades independent of the answer: the interval contains 0."""
        rng = np.random.default_rng(7)
        columns = [{name: float(rng.integers(1, 11)) for name in "ABC"} for _ in range(300)]

        measure = alphas(by_hand.unit_sums(sessions_of_units(columns)), human=0, level=0.95).grades

        assert measure.interval.low < 0 < measure.interval.high

    def test_comparisons_of_pairs_are_not_in_alpha(self):
        """A share depends on the rival, so pairs are left out even where three reviewers agree."""
        pairs = list(combinations("xyz", 2))
        entries = [
            session(
                f"question {k}",
                *(
                    ballot(name, {a: 1.0, b: 0.0}, grades={a: 7 + k % 3, b: 5}, paired=True)
                    for name in "rst"
                    for a, b in pairs
                ),
            )
            for k in range(40)
        ]

        result = alphas(by_hand.unit_sums(entries), human=0, level=0.95)

        assert result.shares.value is None
        assert result.shares.why.startswith("not enough data: 0 candidates")

    def test_perfect_agreement_has_no_interval(self):
        """The same list by all in every session: α is 1, and its variance is unknown."""
        entries = [
            session(f"question {k}", *(ballot(name, {"x": 1.0, "y": 0.0}) for name in "rst"))
            for k in range(40)
        ]

        result = alphas(by_hand.unit_sums(entries), human=0, level=0.95).shares

        assert result.value == pytest.approx(1.0)
        assert result.interval is None
        assert result.why.startswith("error unknown")

    def test_people_have_their_own_alpha(self):
        """People's α is computed from people's votes alone."""
        entries = [
            session(
                f"question {k}",
                *(ballot(name, {"x": k % 2, "y": 1 - k % 2}, kind="human") for name in "pq"),
            )
            for k in range(40)
        ]
        table = by_hand.unit_sums(entries)

        assert alphas(table, human=1, level=0.95).shares.value == pytest.approx(1.0)
        assert alphas(table, human=0, level=0.95).shares.value is None


class TestSharedVotes:
    """The error that reviewers share, and the effective votes that remain."""

    def opinions(self, rng, n=200):
        """Opinions of four reviewers that err together on some pairs."""
        common = rng.random(n) < 0.2
        return np.array([np.where(common | (rng.random(n) < 0.15), -1.0, 1.0) for _ in range(4)])

    def sessions(self, correct):
        """A person prefers x in every session; each reviewer is right or wrong."""
        return [
            session(
                f"question {k}",
                ballot("ann", {"x": 1.0, "y": 0.0}, kind="human"),
                *(
                    ballot(f"model {r}", {"x": float(value > 0), "y": float(value < 0)})
                    for r, value in enumerate(column)
                ),
            )
            for k, column in enumerate(correct.T)
        ]

    def test_shared_error_equals_that_of_single_opinions(self):
        """Sums give the same result as opinions, item by item."""
        correct = self.opinions(np.random.default_rng(0))

        rho, votes = shared_votes(by_hand.human_sums(self.sessions(correct)), level=0.95)

        assert rho.value == pytest.approx(shared_error(correct), abs=1e-12)
        assert votes.value == pytest.approx(effective_votes(4, shared_error(correct)))
        assert rho.n == votes.n == 200

    def test_one_order_of_each_pair_of_reviewers_is_enough(self):
        """Rows of each pair of reviewers in one order give what rows in both give."""
        table = by_hand.human_sums(self.sessions(self.opinions(np.random.default_rng(1))))
        columns = {name: getattr(table, name) for name in table.__dataclass_fields__}
        half = table.reviewer <= table.other
        once = type(table)(**{name: column[half] for name, column in columns.items()})

        assert shared_votes(once, level=0.95)[0].value == pytest.approx(
            shared_votes(table, level=0.95)[0].value, abs=1e-12
        )

    @pytest.mark.slow
    def test_the_interval_covers_the_shared_error(self):
        """About 95% of the intervals contain the ρ of a history a thousand times as long."""
        rng = np.random.default_rng(2)
        truth = shared_error(self.opinions(rng, 400_000))
        covered = []
        for _ in range(60):
            rho, votes = shared_votes(
                by_hand.human_sums(self.sessions(self.opinions(rng))), level=0.95
            )
            covered.append(rho.interval.low <= truth <= rho.interval.high)
            assert votes.interval.low < votes.value < votes.interval.high

        assert np.mean(covered) >= 0.88

    def test_under_fifty_decided_pairs_shared_error_is_unknown(self):
        """Effective votes are unknown, too."""
        correct = self.opinions(np.random.default_rng(3), 49)

        rho, votes = shared_votes(by_hand.human_sums(self.sessions(correct)), level=0.95)

        assert rho.value is None
        assert all(fact in votes.why for fact in ("49 pairs", "50 needed"))


class TestCriteria:
    """Variance between reviewers and preference for length, by criterion."""

    def entries(self):
        ballots = []
        for k in range(40):
            long, short = (8.0, 4.0) if k % 2 else (7.0, 5.0)
            for_brevity = {"criteria": ("conciseness",), "chars": {"x": 400, "y": 100}}
            ballots.append(
                session(
                    f"question {k}",
                    ballot("a", {"x": 1.0, "y": 0.0}, grades={"x": long, "y": short},
                           criterion_grades=((3.0, 9.0),), **for_brevity),
                    ballot("b", {"x": 1.0, "y": 0.0}, grades={"x": long + 2, "y": short},
                           criterion_grades=((3.0, 8.0),), **for_brevity),
                )
            )  # fmt: skip
        return ballots

    def test_criteria_by_hand(self):
        """Overall variances 2 and 0, a mean of 1; of conciseness 0 and ½; length +1 and −1."""
        entries = self.entries()
        overall, conciseness = criteria_lines(
            by_hand.criterion_sums(entries), names_of(entries), level=0.95
        )

        assert (overall.criterion, conciseness.criterion) == (None, "conciseness")
        assert overall.variance.value == pytest.approx(1.0)
        assert conciseness.variance.value == pytest.approx(0.25)
        assert conciseness.variance_over_overall.value == pytest.approx(0.25)
        assert conciseness.length.value == pytest.approx(-0.9965, abs=1e-3)
        assert overall.length.value > 0.9
        assert conciseness.length_beyond_overall.value < -1.8
        assert overall.variance_over_overall.value == pytest.approx(1.0)


class TestSessions:
    """Means over sessions, and the stability of the ranking."""

    def test_means_skip_sessions_without_a_value(self):
        """Sessions without W or without a leader are left out of the mean."""
        entries = [
            session(f"question {k}", kendall_w=w, agreement=p)
            for k, (w, p) in enumerate([(0.2, 0.9), (0.6, None), (None, 0.5)] * 10)
        ]
        table = by_hand.panel_sums(entries)

        assert mean_kendall_w(table, level=0.95).value == pytest.approx(0.4)
        assert mean_kendall_w(table, level=0.95).n == 20
        assert mean_agreement(table, level=0.95).value == pytest.approx(0.7)

    def standings(self, rng, spread, n=100):
        def line(model, quality):
            score = float(quality + rng.normal(0, 0.2))
            return StandingEntry("model", "borda", model, score, None, 4, 4, 0.0)

        return by_hand.standing_sums(
            [
                session(
                    f"question {k}",
                    standings=tuple(line(m, spread * at) for at, m in enumerate("abcdef")),
                )
                for k in range(n)
            ],
            "borda",
        )

    def test_a_clear_ranking_is_stable(self):
        """Both halves rank models far apart alike, and equal models differently."""
        rng = np.random.default_rng(0)
        clear = stability(self.standings(rng, 0.3), np.random.default_rng(1))
        noise = stability(self.standings(rng, 0.0), np.random.default_rng(1))

        assert clear.value == pytest.approx(1.0)
        assert abs(noise.value) < 0.5
        assert clear.interval is None

    def test_stability_depends_on_the_generator_alone(self):
        """Halves are drawn with the generator passed in."""
        table = self.standings(np.random.default_rng(0), 0.03)

        first, second = (stability(table, np.random.default_rng(5)) for _ in range(2))

        assert first == second
        assert 0 < first.value < 1
