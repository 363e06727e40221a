"""Arms: paired differences by question hold their level, and luck chooses no best member."""

from dataclasses import replace

import numpy as np
import pytest

from witan.core import display
from witan.core.arms import (
    GRADE_MARGIN,
    ArmAnswer,
    ArmQuestion,
    choose_best,
    compare_arms,
    measure_of,
    split_questions,
)
from witan.core.ballot import Ballot
from witan.core.settings import Settings
from witan.core.stats.distributions import t_quantile
from witan.core.stats.priors import PUBLIC_RHO
from witan.core.verdict import panel_mean
from witan.errors import InvalidParameter, NothingToCount

COUNCIL, BEST, SELF = "council", "best", "self"

CALLS = {COUNCIL: 11, BEST: 1, SELF: 10}


def answers(*arms, cost=0.01):
    """One answer per arm, at this price per call."""
    return {
        arm: ArmAnswer("s", None if arm == COUNCIL else "ada", f"by {arm}", calls, cost * calls)
        for arm, calls in CALLS.items()
        if arm in (arms or CALLS)
    }


def question(grades, category=None, **more):
    """A question with these grades of its jurors, by arm."""
    ballots = [
        Ballot(f"juror {number}", grades=dict(zip(grades, question_grades, strict=True)))
        for number, question_grades in enumerate(zip(*grades.values(), strict=True))
    ]
    return ArmQuestion(answers(*grades), ballots=tuple(ballots), category=category, **more)


def batch(rng, difference, n=12, category=None, spread=0.8):
    """Questions on which the council is better by this much, give or take the spread."""
    return [
        question(
            {
                COUNCIL: 6 + difference + own + rng.normal(0, 0.4, 2),
                BEST: 6 + rng.normal(0, 0.4, 2),
            },
            category,
        )
        for own in rng.normal(0, spread, n)
    ]


def split_once(keys):
    """The half of questions that are asked once."""
    keys = [*keys]
    return split_questions(keys, keys)


def ask_repeatedly(rng, difference, n_questions, n_rows):
    """Rows of questions, on each of which the council is better by as much each time."""
    rows = []
    for number, own in enumerate(rng.normal(0, 0.8, n_questions)):
        again = batch(rng, difference + own, n_rows, spread=0.2)
        rows += [replace(row, question=f"Why {number}?") for row in again]
    return rows


def difference_of(result, pair=(COUNCIL, BEST), category=None):
    """The difference of a pair."""
    [line] = [e for e in result.differences if (e.first, e.second, e.category) == (*pair, category)]
    return line


class TestDifferences:
    """A difference has an interval over questions, a price and a sentence."""

    def test_a_better_council_is_ahead(self):
        """The sentence states the difference and its price."""
        line = difference_of(compare_arms(batch(np.random.default_rng(1), 1.5, 20)))

        assert line.conclusion == "ahead"
        assert measure_of(line.mean).interval.low > 0
        assert (line.cost_ratio, line.calls_ratio) == (pytest.approx(11), 11)
        assert line.sentence.startswith("the council beats its best member by 1.")
        assert line.sentence.endswith(" at 11 × the cost")

    def test_a_half_is_rounded_as_in_the_table(self):
        """Its sum is -0.09499999999999975, by the order of adding."""
        rows = [question({COUNCIL: [5 + d], BEST: [5]}) for d in (0.605, -0.795) * 3]
        line = difference_of(compare_arms(rows))

        assert display.number(measure_of(line.mean).value) == "-0.10"
        assert ": -0.10 ± 0.80 at 11 × the cost" in line.sentence

    def test_a_worse_council_is_behind(self):
        """A negative difference beyond its interval is stated as such."""
        line = difference_of(compare_arms(batch(np.random.default_rng(1), -1.5, 20)))

        assert line.conclusion == "behind"
        assert "the council falls short of its best member by 1." in line.sentence

    def test_only_a_narrow_interval_means_no_difference(self):
        """A wide interval around 0 is too close to call."""
        rng = np.random.default_rng(3)
        few, many = (difference_of(compare_arms(batch(rng, 0.0, n))) for n in (6, 200))

        assert (few.conclusion, many.conclusion) == ("too close to call", "no difference")
        assert "too close to call at 6 questions" in few.sentence
        assert "within ±0.5" in many.sentence

    def test_the_margin_decides_what_no_difference_is(self):
        """A smaller margin makes the same interval too close to call."""
        rows = batch(np.random.default_rng(3), 0.0, 200)

        assert difference_of(compare_arms(rows, margin=0.01)).conclusion == "too close to call"
        with pytest.raises(InvalidParameter):
            compare_arms(rows, margin=0)

    def test_few_questions_have_no_interval(self):
        """Four questions show too little of the variance between questions."""
        line = difference_of(compare_arms(batch(np.random.default_rng(1), 3.0, 4)))

        assert line.conclusion == "unknown"
        assert "4 questions are too few" in line.sentence

    @pytest.mark.parametrize(("n", "said"), [(4, "4 questions (20 rows) are"), (1, "1 question (")])
    def test_rows_of_few_questions_have_no_interval(self, n, said):
        """Twenty rows do not make up for one question or four."""
        rows = ask_repeatedly(np.random.default_rng(1), 3.0, n, 20 // n)
        result = compare_arms(rows)
        line = difference_of(result)

        assert (result.questions, result.n_rows, result.basis) == (n, 20, "questions")
        assert (line.questions, line.n_rows, line.conclusion) == (n, 20, "unknown")
        assert said in line.sentence
        assert line.mean.jury.why == f"not enough data: {n} question{'s'[: n > 1]}, 5 needed"

    def test_people_on_rows_of_few_questions_correct_nothing(self):
        """Votes on twelve rows of three questions leave the jury as it is."""
        rows = ask_repeatedly(np.random.default_rng(1), 1.0, 12, 4)
        against = Ballot("ann", grades={COUNCIL: 1, BEST: 9}, kind="human")
        voted = [replace(row, ballots=(*row.ballots, against)) for row in rows[:12]]
        result = compare_arms([*voted, *rows[12:]])

        assert result.people_questions == 3
        assert difference_of(result).mean == difference_of(compare_arms(rows)).mean

    def test_one_question_has_an_interval_over_reviewers(self):
        """Jurors who agree put the council ahead."""
        jurors = {COUNCIL: [9, 9, 8, 9, 9, 8, 9], BEST: [4, 5, 4, 4, 4, 5, 4]}
        result = compare_arms([question(jurors)])

        assert result.basis == "reviewers"
        assert difference_of(result).conclusion == "ahead"

    def test_equal_texts_have_no_difference(self):
        """No juror is called for them."""
        same = frozenset({(COUNCIL, BEST)})
        questions = [ArmQuestion(answers(COUNCIL, BEST), same) for _ in range(6)]
        mixed = [*questions, *batch(np.random.default_rng(1), 1.0, 6)]

        assert difference_of(compare_arms(questions)).conclusion == "same answers"
        line = difference_of(compare_arms(mixed))
        assert (line.questions, line.same) == (12, 6)
        assert measure_of(line.mean).value == pytest.approx(
            measure_of(difference_of(compare_arms(mixed[6:])).mean).value / 2
        )

    def test_rankings_give_shares_of_votes(self):
        """Without grades a vote counts 1, 0 or −1."""
        rows = [
            ArmQuestion(
                answers(COUNCIL, BEST),
                ballots=tuple(
                    Ballot(f"juror {j}", ((COUNCIL,), (BEST,)) if j < n else ((BEST,), (COUNCIL,)))
                    for j in range(3)
                ),
            )
            for n in (3, 2, 3, 1, 2, 3)
        ]
        result = compare_arms(rows)

        assert result.unit == "difference of shares"
        assert measure_of(difference_of(result).mean).value == pytest.approx(
            (3 * 1 + 2 / 3 - 1 / 3) / 6
        )

    def test_an_unknown_price_is_missing(self):
        """The number of calls is stated in its place."""
        rows = batch(np.random.default_rng(1), 1.5, 20)
        free = [
            ArmQuestion(
                {
                    a: ArmAnswer(e.session, e.member, e.text, e.calls, None)
                    for a, e in q.answers.items()
                },
                ballots=q.ballots,
            )
            for q in rows
        ]
        line = difference_of(compare_arms(free))

        assert line.cost_ratio is None
        assert line.sentence.endswith(" at 11 × the calls")

    def test_a_price_is_the_mean_of_known_costs(self):
        """A cancelled call on one question does not hide the cost of others."""
        rows = batch(np.random.default_rng(1), 1.5, 20)
        council = replace(rows[3].answers[COUNCIL], cost_usd=None)
        rows[3] = replace(rows[3], answers={**rows[3].answers, COUNCIL: council})
        result = compare_arms(rows)

        assert difference_of(result).cost_ratio == pytest.approx(11)
        assert [(each.arm, each.priced) for each in result.arms] == [(COUNCIL, 19), (BEST, 20)]

    @pytest.mark.parametrize("ballots", [(), (Ballot("xan", abstained=True, reason="timed out"),)])
    def test_a_batch_without_judgements_is_refused(self, ballots):
        """There is no comparison without ballots, nor where every judge abstains."""
        with pytest.raises(NothingToCount):
            compare_arms([ArmQuestion(answers(COUNCIL, BEST), ballots=ballots)])


class TestLevels:
    """Statements at 95% hold that often, by simulation."""

    def test_intervals_cover_the_difference(self):
        """Batches are small."""
        rng = np.random.default_rng(7)
        truth, hits = 0.3, 0
        for _ in range(200):
            interval = measure_of(difference_of(compare_arms(batch(rng, truth, 8))).mean).interval
            hits += interval.low <= truth <= interval.high

        assert 0.92 <= hits / 200 <= 0.985

    def test_intervals_cover_where_questions_are_asked_again(self):
        """Rows of one question count as one; taken by themselves they cover too seldom."""
        rng = np.random.default_rng(8)
        truth, hits = 0.3, []
        for _ in range(120):
            rows = ask_repeatedly(rng, truth, 8, 4)
            apart = [replace(row, question="") for row in rows]
            means = (difference_of(compare_arms(each)).mean.jury for each in (rows, apart))
            hits.append([m.interval.low <= truth <= m.interval.high for m in means])

        clustered, plain = np.mean(hits, axis=0)
        assert 0.92 <= clustered <= 0.985
        assert plain < 0.85

    def test_equal_arms_are_rarely_separated_in_any_category(self):
        """Correction over five categories keeps the error rate of one."""
        rng = np.random.default_rng(8)
        false_alarms = 0
        for _ in range(80):
            rows = [row for name in "abcde" for row in batch(rng, 0.0, 5, name)]
            lines = compare_arms(rows).differences
            false_alarms += any(e.conclusion in ("ahead", "behind") for e in lines if e.category)

        assert false_alarms / 80 <= 0.09

    def test_a_difference_of_the_margin_is_rarely_called_none(self):
        """Equivalence is a claim with an error rate of its own."""
        rng = np.random.default_rng(9)
        wrong = sum(
            difference_of(compare_arms(batch(rng, GRADE_MARGIN, 40))).conclusion == "no difference"
            for _ in range(60)
        )

        assert wrong / 60 <= 0.06

    def test_intervals_of_one_question_hold_under_shared_error(self):
        """Jurors of one question err alike."""
        rng = np.random.default_rng(10)
        rho, spread = PUBLIC_RHO["grades"], 2 * 1.1
        hits = 0
        for _ in range(2_000):
            shared = rng.normal(0, np.sqrt(rho * spread / (1 - rho)))
            own = rng.normal(0, np.sqrt(spread), 5)
            mean = panel_mean(
                (0.4 + shared + own).tolist(),
                [1.0] * 5,
                noise=spread,
                df=3.0,
                rho=rho,
                level=0.95,
            )
            hits += mean.interval.low <= 0.4 <= mean.interval.high

        assert hits / 2_000 >= 0.94


class TestBest:
    """The best member is chosen by questions that do not measure it."""

    @pytest.mark.parametrize("n_members", [3, 5])
    def test_an_equal_council_is_rarely_separated_from_the_choice(self, n_members):
        """Over 40 questions, by the usual interval of the half that measures."""
        rng = np.random.default_rng(5)
        n_runs, n_questions, wrong = 800, 40, 0
        for run in range(n_runs):
            quality = rng.normal(0, 1, (n_questions, n_members))
            seen = quality + rng.normal(0, 0.5, quality.shape)
            shares = seen.argsort(axis=1).argsort(axis=1) / (n_members - 1)
            apart = split_once(f"{run} {number}" for number in range(n_questions))
            best = choose_best(shares[sorted(apart)])
            rest = [number for number in range(n_questions) if number not in apart]
            gaps = rng.normal(0, 1, len(rest)) - quality[rest, best]
            reach = t_quantile(0.975, len(rest) - 1) * gaps.std(ddof=1) / np.sqrt(len(rest))
            wrong += abs(gaps.mean()) > reach

        assert 0.025 <= wrong / n_runs <= 0.075

    def test_a_better_member_is_selected(self):
        """A member without an answer beats nobody, and a question without counts is none."""
        shares = np.array([[0.0, 1.0, 0.5], [0.0, 1.0, 0.5], [1.0, 0.5, 0.0], [np.nan] * 3])

        assert choose_best(shares) == 1
        assert choose_best(np.array([[1.0, 0.0], [0.0, 1.0]] * 4)) == 0

    def test_a_question_stays_in_its_half(self):
        """Whatever questions are added, about half choose."""
        keys = [f"question {number}" for number in range(200)]
        few, many = split_once(keys[:40]), split_once(keys)

        assert few == {number for number in many if number < 40}
        assert 80 <= len(many) <= 120

    def test_few_questions_have_no_halves(self):
        """Below twelve, or where one half were too small for an interval."""
        assert split_once(f"question {number}" for number in range(11)) == frozenset()
        assert split_once(["one and the same"] * 40) == frozenset()

    def test_rows_of_a_question_stay_in_one_half(self):
        """Only questions count for two halves, and a question's first row puts all in its half."""
        keys = [f"row {number}" for number in range(60)]
        twenty, eleven = ([f"Why {number % n}?" for number in range(60)] for n in (20, 11))
        apart = split_questions(keys, twenty)

        assert {number % 20 for number in apart} == split_once(keys[:20])
        assert len(apart) == 3 * len(split_once(keys[:20]))
        assert split_questions(keys, eleven) == frozenset()


class TestPeople:
    """People's votes correct a jury that prefers a style."""

    @staticmethod
    def rows(n_people):
        """Jurors put the council a vote ahead on all of 60 questions; people disagree on some."""
        rng = np.random.default_rng(12)
        rows = []
        for number in range(60):
            first, second = (
                rng.permutation([COUNCIL, BEST]) if rng.random() < 0.5 else (COUNCIL, BEST)
            )
            ballots = [Ballot(f"juror {j}", ((first,), (second,))) for j in range(3)]
            if number < n_people:
                pair = rng.permutation([COUNCIL, BEST]).tolist()
                ballots.append(Ballot("ann", ((pair[0],), (pair[1],)), kind="human"))
            rows.append(ArmQuestion(answers(COUNCIL, BEST), ballots=tuple(ballots)))
        return rows

    def test_enough_people_correct_the_jury(self):
        """The jury alone puts the council ahead; corrected it is too close to call."""
        result = compare_arms(self.rows(30))
        line = difference_of(result)

        assert result.people_questions == 30
        assert line.mean.jury.interval.low > 0
        assert line.conclusion == "too close to call"

    def test_too_few_people_correct_nothing(self):
        """Four questions are too few, and grades stay grades."""
        rows = batch(np.random.default_rng(1), 1.5, 20)
        vote = Ballot("ann", ((BEST,), (COUNCIL,)), kind="human")
        rows[0] = ArmQuestion(rows[0].answers, ballots=(*rows[0].ballots, vote))
        result = compare_arms(rows)

        assert (result.unit, result.people_questions) == ("grade points", 1)
        assert difference_of(result).conclusion == "ahead"

    def test_identical_texts_count_as_equal_for_people(self):
        """People see no identical texts, and their mean includes these as ties."""
        rows = self.rows(30)
        same = frozenset({(COUNCIL, BEST)})
        questions = [ArmQuestion(answers(COUNCIL, BEST), same) for _ in range(60)]
        alone, diluted = (
            difference_of(compare_arms(each)).mean.corrected for each in (rows, [*rows, *questions])
        )

        assert diluted.value == pytest.approx(alone.value / 2)
        assert diluted.interval.low < diluted.value < diluted.interval.high


def test_a_frame_has_a_row_per_difference():
    """Each row has the ends of the interval, named as those of other frames."""
    rows = [*compare_arms(batch(np.random.default_rng(1), 1.5, 20), Settings()).rows()]

    assert [(row["first"], row["second"]) for row in rows] == [(COUNCIL, BEST)]
    assert rows[0]["difference_low"] < rows[0]["difference"] < rows[0]["difference_high"]
    assert rows[0]["difference_n"] == rows[0]["questions"] == 20
