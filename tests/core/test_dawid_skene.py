"""Pass rates from a panel alone, by Dawid and Skene's model."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from witan.core.ballot import Ballot
from witan.core.estimation import Patterns, estimate, sample_panel, sample_votes

REPEATS = 150


def cast(rng, n_texts, n_reviewers, rate, shared_error):
    """Votes of reviewers who are right in .7 to .9, and which texts truly pass."""
    passes = rng.random(n_texts) < rate
    right = rng.uniform(0.7, 0.9, (2, n_reviewers))[passes.astype(int)]
    correct = rng.random(right.shape) < right
    together = rng.random(n_texts) < shared_error
    common = rng.random(n_texts) < right.mean(axis=1)
    correct = np.where(together[:, np.newaxis], common[:, np.newaxis], correct)
    return (correct == passes[:, np.newaxis]).astype(float)


def coverage(rate, n_texts, n_reviewers, *, actual, assumed):
    """Share of 95% intervals that contain the pass rate, and their mean width."""
    rng = np.random.default_rng(4)
    votes = np.array(list(product([0.0, 1.0], repeat=n_reviewers)))
    digits = 2.0 ** np.arange(n_reviewers)[::-1]
    counts = [
        np.bincount(
            (cast(rng, n_texts, n_reviewers, rate, actual) @ digits).astype(int),
            minlength=len(votes),
        )
        for _ in range(REPEATS)
    ]
    pattern = Patterns(np.zeros(len(votes), dtype=int), votes)
    found = sample_panel(pattern, np.array(counts), assumed, 250)
    draws = np.where(found.better, found.rates[..., 0], np.nan)
    low, high = np.nanquantile(draws, [0.025, 0.975], axis=0)
    return np.mean((low <= rate) & (rate <= high)), np.mean(high - low)


@pytest.mark.parametrize(("rate", "n_texts"), [(0.5, 100), (0.8, 300), (0.95, 300)])
def test_intervals_cover_where_errors_are_independent(rate, n_texts):
    """Five reviewers' 95% intervals contain the rate in at least 91%."""
    covered, width = coverage(rate, n_texts, 5, actual=0.0, assumed=0.0)

    assert covered >= 0.91
    assert width < 0.35


@pytest.mark.parametrize(
    ("rate", "most"), [(0.8, 0.9), pytest.param(0.95, 0.4, marks=pytest.mark.slow)]
)
def test_a_shared_error_breaks_the_assumption(rate, most):
    """Where errors correlate by .3, independent intervals are short; the others cover 85%."""
    alone, narrow = coverage(rate, 300, 5, actual=0.3, assumed=0.0)
    shared, wide = coverage(rate, 300, 5, actual=0.3, assumed=0.3)

    assert alone < most
    assert shared >= 0.85
    assert narrow < wide


def panel_of_questions(rng, n_questions, n_texts, rate=0.7):
    """Ballots of five reviewers on texts that pass or fail with their question."""
    good = rng.beta(0.7, 0.3, n_questions).repeat(n_texts) if n_texts > 1 else rate
    votes = cast(rng, n_questions * n_texts, 5, good, 0.0)
    return [
        Ballot(f"r{r}", grades={"x": 9 if vote else 2}, session=str(row), question=question)
        for row, text in enumerate(votes)
        for question in [f"Why {row // n_texts}?"]
        for r, vote in enumerate(text)
    ]


@pytest.mark.slow  # eighty panels
def test_texts_of_one_question_are_a_cluster():
    """Intervals are wider than of texts that stand alone, and cover at their level."""
    hits, widths = [], []
    for repeat in range(40):
        ballots = panel_of_questions(np.random.default_rng(repeat), 20, 8)
        apart = [replace(each, question="") for each in ballots]
        panels = (estimate(each, pass_mark=6).panel for each in (ballots, apart))
        ends = [panel.rates[0].independent.interval for panel in panels]
        hits.append(ends[0].low <= 0.7 <= ends[0].high)
        widths.append([end.high - end.low for end in ends])

    clustered, plain = np.mean(widths, axis=0)
    assert np.mean(hits) >= 0.92
    assert 1.2 * plain < clustered < 2 * plain


def test_questions_of_one_text_widen_nothing():
    """Sixty texts of sixty questions are as sure as sixty that stand alone."""
    ballots = panel_of_questions(np.random.default_rng(3), 60, 1)
    apart = [replace(each, question="") for each in ballots]

    rates = [estimate(each, pass_mark=6).panel.rates[0] for each in (ballots, apart)]

    for asked, alone in zip(*[(rate.independent, rate.shared) for rate in rates], strict=True):
        assert asked.interval.low == pytest.approx(alone.interval.low, abs=0.01)
        assert asked.interval.high == pytest.approx(alone.interval.high, abs=0.01)


def test_texts_of_few_questions_have_no_estimate():
    """Forty texts of four questions are too few."""
    panel = estimate(panel_of_questions(np.random.default_rng(1), 4, 10), pass_mark=6).panel

    assert panel.rates == ()
    assert panel.why == "the 40 texts are of 4 questions; 5 are needed"


def test_each_reviewer_is_measured():
    """A reviewer that is always right has a higher sensitivity and specificity than a coin."""
    rng = np.random.default_rng(1)
    votes = cast(rng, 300, 5, 0.6, 0.0)
    votes[:, 0] = rng.random(300) < 0.5
    votes[::7, 1] = np.nan

    found = sample_votes(np.zeros(300, dtype=int), votes, 0.0)

    accuracy = (found.sensitivity + found.specificity)[:, 0].mean(axis=0) / 2
    assert accuracy[0] == pytest.approx(0.5, abs=0.1)
    assert (accuracy[1:] > 0.65).all()


def test_the_same_votes_give_the_same_rates():
    """Nothing is drawn anew."""
    votes = cast(np.random.default_rng(2), 60, 3, 0.7, 0.0)
    system = np.arange(60) % 2

    first, second = (sample_votes(system, votes, 0.3) for _ in range(2))

    assert np.array_equal(first.rates, second.rates)
    assert first.rates.shape[2] == 2
