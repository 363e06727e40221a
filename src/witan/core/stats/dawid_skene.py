"""Dawid and Skene's pass rates from a panel alone.

The errors of reviewers are independent or shared.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Floats

PRIOR_RIGHT, PRIOR_WRONG = 2.0, 1.0
"""A reviewer is right in two of three, worth three votes, for texts that pass and that fail."""

CHAINS, WARM_UP, DRAWS = 8, 150, 250
"""Of the sampler: 2,000 draws in all."""

FEWEST_DRAWS = 0.5
"""Share of draws with reviewers better than chance, below which nothing is concluded."""

SEED = 1979

LEAST_LOG = -600.0
"""Of a likelihood; below, dozens of votes would round to impossible under either answer."""


class Patterns(NamedTuple):
    """Texts of one system with the same votes, P of them.

    Parameters
    ----------
    system : int array, shape (P,)
        From 0 up.
    votes : float array, shape (P, R)
        1 passes, 0 fails, NaN none.
    """

    system: NDArray[np.intp]
    votes: Floats


class PanelDraws(NamedTuple):
    """Draws of the posterior.

    The first axis counts draws, the second samples.

    Parameters
    ----------
    rates : float array, shape (D, B, M)
        Share of each system's texts that truly pass.
    sensitivity, specificity : float array, shape (D, B, R)
        Share of passing texts that a reviewer passes, and of failing ones that it fails.
    better : bool array, shape (D, B)
        Reviewers are better than chance on average.
    """

    rates: Floats
    sensitivity: Floats
    specificity: Floats
    better: NDArray[np.bool_]


def sample_panel(
    patterns: Patterns, counts: NDArray[np.intp], shared_error: float, draws: int
) -> PanelDraws:
    r"""Sample pass rates and reviewers' accuracy from votes without known answers.

    A text of system m truly passes with probability π_m. With probability 1 − ρ its reviewers vote
    independently of each other: reviewer r passes it with probability α_r if it truly passes,
    1 − β_r if not. With probability ρ they all cast one vote, that of the average reviewer, so that
    ρ is the correlation of two reviewers' errors. ρ = 0 is Dawid and Skene's model.

        π_m ~ Beta(1, 1),    α_r, β_r ~ Beta(2, 1),    Σ_r (α_r + β_r − 1) > 0.

    Without the last condition, passing and failing could change names.

    Parameters
    ----------
    counts : int array, shape (B, P)
        Texts of each pattern; B samples, or chains of one, are drawn at once.
    shared_error : float
        ρ, from 0 to below 1.
    draws : int
        Draws after the warm-up.

    Returns
    -------
    PanelDraws

    References
    ----------
    Dawid and Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
    Applied Statistics 28 (1979) 20–28. Joseph, Gyorkos and Coupal, "Bayesian estimation of disease
    prevalence …", American Journal of Epidemiology 141 (1995) 263–272, for the sampler.
    """
    rng = np.random.default_rng(SEED)
    passes, fails = (patterns.votes == 1).astype(float), (patterns.votes == 0).astype(float)
    of_system = np.eye(int(patterns.system.max()) + 1)[patterns.system]
    texts = counts @ of_system
    share = passes.sum(axis=1) / np.maximum((passes + fails).sum(axis=1), 1)
    rates = (counts * share) @ of_system / np.maximum(texts, 1)
    rates = np.clip(rates, 0.05, 0.95)
    # Probability of a pass: of texts that pass, and of those that fail.
    of_good = np.full((len(counts), passes.shape[1]), 0.8)
    of_bad = 1 - of_good
    results: list[tuple[Floats, Floats, Floats]] = []
    for at in range(WARM_UP + draws):
        good, own_good = _likelihood(of_good, passes, fails, shared_error)
        bad, own_bad = _likelihood(of_bad, passes, fails, shared_error)
        prior = rates[:, patterns.system]
        good, bad = prior * good, (1 - prior) * bad
        n_good = rng.binomial(counts, good / (good + bad))
        by_system = n_good @ of_system
        rates = _draw(rng, 1 + by_system, 1 + texts - by_system)
        good_votes = rng.binomial(n_good, own_good)
        bad_votes = rng.binomial(counts - n_good, own_bad)
        of_good = _draw(rng, PRIOR_RIGHT + good_votes @ passes, PRIOR_WRONG + good_votes @ fails)
        of_bad = _draw(rng, PRIOR_WRONG + bad_votes @ passes, PRIOR_RIGHT + bad_votes @ fails)
        if at >= WARM_UP:
            results.append((rates, of_good, of_bad))
    of_rates, of_good, of_bad = (np.stack(each) for each in zip(*results, strict=True))
    better = (of_good - of_bad).sum(axis=2) > 0
    return PanelDraws(of_rates, of_good, 1 - of_bad, better)


def _likelihood(
    pass_rates: Floats, passes: Floats, fails: Floats, shared_error: float
) -> tuple[Floats, Floats]:
    """Compute probabilities of patterns and of votes being the reviewers' own.

    Both have shape (B, P).
    """
    own = np.log(pass_rates) @ passes.T + np.log1p(-pass_rates) @ fails.T
    own = (1 - shared_error) * np.exp(np.maximum(own, LEAST_LOG))
    common = pass_rates.mean(axis=1, keepdims=True)
    same = np.where(fails.any(axis=1), 0.0, common)
    same = np.where(passes.any(axis=1), same, 1 - common)
    total = own + shared_error * same
    return total, own / total


def _draw(rng: np.random.Generator, passes: Floats, fails: Floats) -> Floats:
    return np.clip(rng.beta(passes, fails), 1e-9, 1 - 1e-9)


def sample_votes(system: NDArray[np.intp], votes: Floats, shared_error: float) -> PanelDraws | None:
    """Sample like `sample_panel` from rows of votes, (N,) and (N, R).

    None: the reviewers are no better than chance.

    The draws that remain have shape (D, 1, …).
    """
    keys = np.column_stack([system, np.where(np.isnan(votes), 2, votes)])
    unique, counts = np.unique(keys, axis=0, return_counts=True)
    patterns = Patterns(
        unique[:, 0].astype(np.intp), np.where(unique[:, 1:] == 2, np.nan, unique[:, 1:])
    )
    draws = sample_panel(patterns, np.tile(counts, (CHAINS, 1)), shared_error, DRAWS)
    if draws.better.mean() < FEWEST_DRAWS:
        return None
    rates, sensitivity, specificity = (each[draws.better][:, np.newaxis] for each in draws[:3])
    return PanelDraws(rates, sensitivity, specificity, np.ones((len(rates), 1), dtype=np.bool_))
