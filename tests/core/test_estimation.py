"""Systems estimated by a jury and corrected by people's votes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from witan import read_ballots
from witan.core.ballot import Ballot
from witan.core.estimation import infer_share
from witan.core.stats.prediction_powered import estimate_powered_means
from witan.errors import InvalidParameter, NothingToCount
from witan.stats import estimate

DATA = Path(__file__).parents[3] / "shared" / "data" / "pandalm" / "pairwise.csv.gz"
REPEATS = 1500


def coverage(means, truth):
    """The share of intervals that contain the truth."""
    return np.mean((means.low <= truth) & (truth <= means.high))


def width(means):
    return means.high - means.low


class TestSimulated:
    """Known means, and juries of high, low or no correlation with them."""

    @pytest.mark.parametrize("n", [10, 30, pytest.param(100, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
    def test_intervals_of_grades_cover_and_are_never_wider(self, n, correlation):
        """Coverage is 93-97%; an informative jury narrows, a useless one costs nothing."""
        rng = np.random.default_rng([n, round(10 * correlation)])
        jury = rng.normal(size=(10 * n, REPEATS))
        noise = rng.normal(size=jury.shape)
        people = 6 + correlation * jury + np.sqrt(1 - correlation**2) * noise
        people[n:] = np.nan

        result = estimate_powered_means(people, jury + 2)

        assert 0.925 <= coverage(result.corrected, 6) <= 0.975
        assert (width(result.corrected) <= width(result.people) + 1e-12).all()
        if correlation == 0.9:
            assert width(result.corrected).mean() < 0.65 * width(result.people).mean()
        assert coverage(result.jury, 6) < 0.01

    @pytest.mark.parametrize("n", [10, 50])
    def test_intervals_of_grades_near_ten_cover(self, n):
        """Most grades are 10: the interval reaches further down than up."""
        rng = np.random.default_rng(n)
        jury = rng.normal(size=(10 * n, REPEATS))
        people = 0.6 * jury + 0.8 * rng.normal(size=jury.shape)
        people, jury = (np.clip(np.rint(10 + each), 1, 10) for each in (people, jury))
        truth = people.mean()
        people[n:] = np.nan

        result = estimate_powered_means(people, jury)

        for means in (result.corrected, result.people, result.jury):
            assert coverage(means, truth) >= 0.92

    def test_grades_beyond_the_scale_keep_a_symmetric_interval(self):
        """Grades corrected for severity may vary about 10, which is no end for them."""
        grades = np.tile([9.1, 10.8], 20)[:, np.newaxis]

        jury = estimate_powered_means(grades * np.nan, grades).jury

        assert jury.high - jury.value == pytest.approx(jury.value - jury.low)

    @pytest.mark.parametrize(("accuracy", "most"), [(0.5, 1.0), (0.9, 0.8)])
    def test_intervals_of_shares_cover(self, accuracy, most):
        """Pass rates and their paired differences cover at their level."""
        rng = np.random.default_rng(7)
        shape = (400, 300)
        truth = [(rng.random(shape) < rate).astype(float) for rate in (0.7, 0.5)]
        jury = [np.where(rng.random(shape) < accuracy, one, 1 - one) for one in truth]
        for one in truth:
            one[80:] = np.nan

        rates = estimate_powered_means(truth[0], jury[0], kind="shares")
        apart = [first - second for first, second in (truth, jury)]
        differences = estimate_powered_means(*apart, kind="differences of shares")

        for means, right in ((rates, 0.7), (differences, 0.2)):
            assert 0.92 <= coverage(means.corrected, right) <= 0.99
            assert width(means.corrected).mean() <= most * width(means.people).mean()

    def test_clustered_rows_need_clusters(self):
        """Ignoring clusters covers too little; with clusters the level is met."""
        rng = np.random.default_rng(3)
        clusters = np.arange(800) // 8
        common = rng.normal(size=(2, 100, 400)).repeat(8, axis=1)
        jury = common[0] + rng.normal(size=(800, 400))
        people = 0.7 * jury + common[1] + rng.normal(size=(800, 400))
        people[320:] = np.nan

        apart = estimate_powered_means(people, jury).corrected
        together = estimate_powered_means(people, jury, clusters).corrected

        assert coverage(apart, 0) < 0.8
        assert 0.92 <= coverage(together, 0) <= 0.98

    @pytest.mark.parametrize(
        ("kind", "sizes"),
        [
            ("grades", [30] * 2 + [2] * 6),
            ("grades", [93] + [1] * 7),
            ("differences of grades", [372] + [1] * 28),
            ("shares", [50] * 3 + [3] * 17),
        ],
    )
    def test_few_large_clusters_have_few_degrees(self, kind, sizes):
        """Where one to three questions have most rows, intervals cover."""
        rng = np.random.default_rng(2)
        clusters = np.repeat(np.arange(len(sizes)), sizes)
        common = 0.8 * rng.normal(size=(len(sizes), 1_000))[clusters]
        values = 5.5 + common + 0.6 * rng.normal(size=common.shape)
        if kind == "shares":
            values = (values > 5.5).astype(float)

        people = estimate_powered_means(values, values, clusters, kind=kind).people

        assert coverage(people, 0.5 if kind == "shares" else 5.5) >= 0.9

    def test_the_estimate_equals_the_published_formula(self):
        """The mean is λ·mean_N(jury) + mean_n(people − λ·jury)."""
        rng = np.random.default_rng(1)
        jury = rng.normal(size=(200, 1))
        people = jury + 0.3 * rng.normal(size=jury.shape)
        people[40:] = np.nan

        result = estimate_powered_means(people, jury)

        slope = result.slope[0]
        expected = slope * jury.mean() + (people[:40] - slope * jury[:40]).mean()
        assert result.corrected.value[0] == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the real ballots are not beside this checkout")
def test_intervals_cover_held_out_people():
    """With people on 150 of the 514 pairs, intervals contain the mean of people on all."""
    cast = list(read_ballots(DATA))
    names = list(dict.fromkeys(ballot.session for ballot in cast))
    right = {each.system: each.mean.people.value for each in estimate(cast).systems}
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(12):
        labelled = set(rng.permutation(names)[:150])
        some = [b for b in cast if b.kind == "model" or b.session in labelled]
        for each in estimate(some).systems:
            interval = each.mean.corrected.interval
            hits.append(interval.low <= right[each.system] <= interval.high)
            assert each.mean.slope >= 0

    assert np.mean(hits) >= 0.93


def grades_of_two_systems(n, people=0):
    """Grades of two systems, where the jury adds two to people's grades."""
    rng = np.random.default_rng(5)
    for session in range(n):
        quality = np.array([6.5, 5.5]) + rng.normal(size=2)
        for seat in range(4):
            person = seat == 3
            grades = np.clip(quality + (0 if person else 2) + 0.3 * rng.normal(size=2), 1, 10)
            if not person or session < people:
                yield Ballot(
                    f"seat {seat}",
                    session=str(session),
                    grades=dict(zip("ab", grades.tolist(), strict=True)),
                    kind="human" if person else "model",
                )


def texts_of_questions(seed, states_question):
    """Five texts for each of 40 questions; people grade 16, a point lower than the jury."""
    rng = np.random.default_rng(seed)
    for question in range(40):
        level = 6 + rng.normal()
        strictness = 0.5 * rng.normal()
        for text in range(5):
            grade = level + 0.5 * rng.normal()
            votes = {"jury": grade + 1 + 0.3 * rng.normal()}
            if question < 16:
                votes["ann"] = grade + strictness + 0.3 * rng.normal()
            for reviewer, vote in votes.items():
                yield Ballot(
                    reviewer,
                    session=f"{question} {text}",
                    grades={"x": float(np.clip(vote, 1, 10))},
                    kind="model" if reviewer == "jury" else "human",
                    question=f"Why {question}?" if states_question else None,
                )


class TestBallots:
    """From ballots to estimates."""

    def test_people_correct_a_lenient_jury(self):
        """Means and pass rates become those of people; differences are unchanged."""
        result = estimate(grades_of_two_systems(200, people=40), pass_mark=6)

        both, first, second = result.systems[:3]
        assert [each.system for each in result.systems] == [None, "a", "b"] * 2
        assert both.mean.corrected.value == pytest.approx(6, abs=0.3)
        assert first.mean.jury.value > first.mean.corrected.value + 1.7
        assert first.mean.corrected.interval.high > second.mean.corrected.interval.high
        apart = result.differences[0].mean
        assert apart.corrected.value == pytest.approx(1, abs=0.35)
        assert (result.people_sessions, apart.people.n, apart.jury.n) == (40, 40, 200)

    @pytest.mark.parametrize("unit", [1e-200, 5e307])
    def test_the_unit_of_weights_changes_nothing(self, unit):
        """Weights times a constant give the same means, at both ends of what a number holds."""
        ballots = [
            Ballot(f"r{n}", grades={"a": 5 + n + k % 2, "b": 6}, session=f"s{k}", weight=1.0 + n)
            for k in range(8)
            for n in range(3)
        ]
        scaled = [replace(ballot, weight=ballot.weight * unit) for ballot in ballots]

        assert estimate(scaled).systems == estimate(ballots).systems

    def test_without_people_nothing_is_corrected(self):
        """The jury's number is reported alone, with the reason."""
        first = estimate(grades_of_two_systems(20)).systems[1].mean

        assert first.corrected.value is None
        assert "not enough data" in first.corrected.why
        assert first.jury.interval is not None

    @pytest.mark.slow  # two hundred estimates
    @pytest.mark.parametrize("states_question", [True, False])
    def test_texts_of_one_question_are_a_cluster(self, states_question):
        """Intervals cover at their level where questions are known, and too seldom where not."""
        intervals = []
        for repeat in range(200):
            [line] = estimate(texts_of_questions(repeat, states_question)).systems
            intervals.append((line.mean.corrected.interval, line.mean.jury.interval))

        by_people, by_jury = (
            np.mean([interval.low <= truth <= interval.high for interval in those])
            for truth, those in zip((6, 7), zip(*intervals, strict=True), strict=True)
        )
        if states_question:
            assert 0.93 <= by_people <= 0.97
            assert 0.93 <= by_jury <= 0.97
        else:
            assert max(by_people, by_jury) < 0.85

    def test_the_cluster_is_named(self):
        """Fewer than five questions make no clusters."""
        cast = list(texts_of_questions(1, states_question=True))
        few = [ballot for ballot in cast if ballot.question in {f"Why {n}?" for n in range(4)}]
        names = {ballot.session: ballot.question for ballot in cast}
        unnamed = texts_of_questions(1, states_question=False)

        assert [(e.cluster, e.questions) for e in map(estimate, (cast, few))] == [
            ("question", 40),
            ("session", 4),
        ]
        assert estimate(unnamed, questions=names).systems == estimate(cast).systems

    def test_people_on_few_questions_correct_nothing(self):
        """Fifteen texts of three questions are too few, however many the jury judged."""
        ballots = [
            ballot
            for ballot in texts_of_questions(1, states_question=True)
            if ballot.kind == "model" or ballot.question in {f"Why {n}?" for n in range(3)}
        ]

        mean = estimate(ballots).systems[0].mean

        assert mean.corrected.value is None
        assert mean.corrected.why == "not enough data: 3 questions, 5 needed"
        assert mean.jury.interval is not None

    def test_a_system_with_texts_of_few_questions_is_not_estimated(self):
        """It is listed last, with the reason."""
        ballots = [*texts_of_questions(1, states_question=True)]
        few = [ballot for ballot in ballots if ballot.question in ("Why 0?", "Why 1?")]
        ballots += [
            replace(ballot, grades={"y": 10}, session=f"y {ballot.session}") for ballot in few
        ]

        lines = estimate(ballots).systems

        assert [line.system for line in lines] == [None, "x", "y"]
        assert lines[2].mean.jury.why == "not enough data: 2 questions, 5 needed"

    def test_shares_of_passed_rows_are_clustered(self):
        """Rows of one question pass together; their interval covers, the plain one does not."""
        rng = np.random.default_rng(4)
        asked = [f"Why {n // 5}?" for n in range(200)]
        hits = []
        for _ in range(300):
            rates = rng.beta(0.7, 0.3, size=40).repeat(5)
            passed = (rng.random(200) < rates).tolist()
            found = [infer_share(passed, questions, 0.95) for questions in (asked, [""] * 200)]
            hits.append([interval.low <= 0.7 <= interval.high for interval in found])

        clustered, plain = np.mean(hits, axis=0)
        assert 0.93 <= clustered <= 0.97
        assert plain < 0.8

    @pytest.mark.parametrize(("n_questions", "n_rows"), [(5, 4), (20, 8), (60, 2)])
    @pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
    def test_shares_near_the_boundary_are_covered(self, n_questions, n_rows, rate):
        """With rows of a question correlated by .5, too."""
        rng = np.random.default_rng(6)
        rates = rng.beta(rate, 1 - rate, (n_questions, 400)).repeat(n_rows, axis=0)
        passed = (rng.random(rates.shape) < rates).astype(float)
        clusters = np.arange(n_questions).repeat(n_rows)

        found = estimate_powered_means(passed * np.nan, passed, clusters, kind="shares").jury

        # Two standard errors below .94 in 400 samples.
        assert np.mean((found.low <= rate) & (rate <= found.high)) >= 0.916

    @pytest.mark.parametrize("passed", [True, False])
    def test_rows_that_all_passed_count_as_their_questions(self, passed):
        """The interval is that of twenty votes, not of a hundred."""
        asked = [f"Why {n // 5}?" for n in range(100)]
        clustered = infer_share([passed] * 100, asked, 0.95)
        plain = infer_share([passed] * 20, [""] * 20, 0.95)
        reach, same = (each.high - each.low for each in (clustered, plain))

        assert (clustered.high == 1, clustered.low == 0) == (passed, not passed)
        assert same <= reach <= 1.2 * same

    def test_too_few_data_are_refused(self):
        """Four sessions have no interval, and rankings no pass rate."""
        ranked = [Ballot("r", (("a",), ("b",)), session=str(n)) for n in range(9)]

        with pytest.raises(
            NothingToCount,
            match=r"5 sessions \(rows of a batch\), and none here has them in more than 4$",
        ):
            estimate(grades_of_two_systems(4, people=4))
        with pytest.raises(InvalidParameter, match="no grades"):
            estimate(ranked, pass_mark=6)
