"""Learning across sessions: reviewers' weights, shared error, noise and quality."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from witan.core.counting import fits_of, group_by_shape, stack
from witan.core.outcome import Prior, Unit
from witan.core.profile import ROUNDING_VARIANCE, Electorate, Floats, Vote
from witan.core.rules import RULES
from witan.core.settings import AUTO, Settings
from witan.core.stats.additive import AdditiveFit
from witan.core.stats.concordance import MIN_DECIDED, kendall_tau, kendall_taus, learn_rho
from witan.core.stats.distributions import fit_scaled_f
from witan.core.stats.priors import MIN_HISTORY, SEVERITY, Severity, learn_prior
from witan.errors import InvalidParameter

if TYPE_CHECKING:
    # These modules define a third of the package's dataclasses, and counting needs none of them.
    from witan.core.session_ballots import Noise
    from witan.core.stats.calibration import Calibration
    from witan.core.stats.sums import HumanSums, Names

PAIRS_OF_EQUALITY = 20.0
"""Comparisons of average consistency credited to each reviewer before its own.

Such a prior has the variance p̄·(1 − p̄)/(k + 1) between reviewers. In a council of five models
(Vicuna-80, judged in both orders; see the study in the documentation) they differ by a standard
deviation of 0.16, which is k = 9 independent comparisons, and comparisons within one session vary
about twice as much as independent ones do; hence 20.
"""

OrderKept = Mapping[str, tuple[int, int]]
"""Per reviewer: pairs judged alike in both orders, and pairs seen in both orders."""

SESSIONS_OF_EQUALITY = 10.0
"""Average sessions credited to each reviewer before its own."""

PAIRS_OF_PEOPLE = 50.0
"""Pairs with the panel's average accuracy credited to each reviewer before its own.

Assumed: reviewers whose true shares spread by .06 about .75 are best shrunk by
.75 · .25/.06² − 1 ≈ 51 pairs, the weight of a beta prior of that spread. The spread of panels is
unknown; the only council measured, with unequal models, has a larger one.
"""


def consistency_weights(order_kept: OrderKept) -> dict[str, float]:
    """Weigh reviewers by their order-consistency, shrunk toward equal.

    With h[r] pairs kept of n[r] compared, and p̄ = Σ h / Σ n of the whole panel,

        weight[r] = (h[r] + k·p̄) / (n[r] + k) / p̄,    k = `PAIRS_OF_EQUALITY`.

    This is the posterior mean of r's probability of keeping an opinion, relative to the panel's,
    under the prior Beta(k·p̄, k·(1 − p̄)). It is 1 without evidence, and for all if all are equally
    consistent. It rises with h[r]. A flip already cancels in a count of both orders; the weight
    also reduces the reviewer's other ballots, because a reviewer that answers by position keeps
    some opinions by chance. It is proportional to consistency, not optimal.

    Parameters
    ----------
    order_kept
        Per reviewer (h, n), counts of pairs; those of several sessions are added up.

    Returns
    -------
    dict
        Reviewer → weight, dimensionless, ≥ 0, aligned with `order_kept`. 1 for all if no reviewer
        kept a pair.

    Raises
    ------
    InvalidParameter
        If a count is negative, or more pairs are kept than compared.

    References
    ----------
    Efron and Morris, "Data analysis using Stein's estimator and its generalizations", JASA 70
    (1975) 311–319, for shrinking proportions. Gelman et al., *Bayesian Data Analysis*, 3rd ed.
    (2013), ch. 5, for the beta-binomial model.
    """
    _check(order_kept)
    n_kept = sum(same for same, _ in order_kept.values())
    n_compared = sum(compared for _, compared in order_kept.values())
    if n_kept == 0:
        return dict.fromkeys(order_kept, 1.0)
    panel = n_kept / n_compared
    return {
        # Divide by the panel's share first, so that equal counts give exactly equal weights.
        reviewer: (same / panel + PAIRS_OF_EQUALITY) / (compared + PAIRS_OF_EQUALITY)
        for reviewer, (same, compared) in order_kept.items()
    }


def learn_consistency(sessions: Sequence[OrderKept]) -> list[dict[str, float]]:
    """Weights per reviewer for each session, learned from all the *other* sessions.

    Parameters
    ----------
    sessions
        Per session, `Electorate.order_kept` or `Outcome.order_kept`.

    Returns
    -------
    list of dict
        Reviewer → weight, aligned with `sessions`; each has every reviewer of any session.

    Raises
    ------
    InvalidParameter
        As `consistency_weights` does.
    """
    for order_kept in sessions:
        # Checked one by one: in a sum, the other counts could hide a wrong one.
        _check(order_kept)
    total = _add_up(sessions)
    estimates = []
    for order_kept in sessions:
        others = {}
        for reviewer, (same, compared) in total.items():
            alike, twice = order_kept.get(reviewer, (0, 0))
            others[reviewer] = (same - alike, compared - twice)
        estimates.append(consistency_weights(others))
    return estimates


def _add_up(sessions: Iterable[OrderKept]) -> dict[str, tuple[int, int]]:
    same: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for order_kept in sessions:
        for reviewer, (alike, twice) in order_kept.items():
            same[reviewer] += alike
            compared[reviewer] += twice
    return {reviewer: (same[reviewer], n) for reviewer, n in compared.items()}


def _check(order_kept: OrderKept) -> None:
    for reviewer, (same, compared) in order_kept.items():
        if not 0 <= same <= compared:
            raise InvalidParameter(
                f"the order-consistency of {reviewer}",
                f"{same} of {compared}",
                "counts with 0 ≤ kept ≤ compared",
            )


def learn_reliability(electorates: Sequence[Electorate]) -> list[Mapping[str, float]]:
    """Weights per reviewer for each session, learned from all the *other* sessions.

    In each session, a reviewer's correlation with the others is 1 + τ-b between two sets of shares:
    those of the rivals that its ballot, or its comparisons, place below each candidate, and the
    mean of the same over at least two other reviewers. With x̄ the reviewer's mean correlation over
    the other sessions relative to the panel's mean, and n their number,

        weight = (n·x̄ + k) / (n + k),    k = 10,

    which is 1 without evidence and never learned from the session that it decides.

    Returns
    -------
    list of mapping
        Reviewer → weight, aligned with `electorates`.
    """
    correlations = _session_correlations(electorates)
    total: defaultdict[str, float] = defaultdict(float)
    times: defaultdict[str, int] = defaultdict(int)
    for value in correlations:
        for reviewer, correlation in value.items():
            total[reviewer] += correlation
            times[reviewer] += 1
    whole, n_whole = sum(total.values()), sum(times.values())
    weights_by_session: list[Mapping[str, float]] = []
    for value in correlations:
        n_left = n_whole - len(value)
        panel = (whole - sum(value.values())) / n_left if n_left else 0.0
        weights: dict[str, float] = {}
        for reviewer in total:
            n = times[reviewer] - (reviewer in value)
            own = total[reviewer] - value.get(reviewer, 0.0)
            relative = own / panel if panel > 0 else float(n)
            weights[reviewer] = (relative + SESSIONS_OF_EQUALITY) / (n + SESSIONS_OF_EQUALITY)
        weights_by_session.append(weights)
    return weights_by_session


def reliability_from_shares(sessions: Iterable[Mapping[str, Floats]]) -> Mapping[str, float]:
    """Weigh reviewers by other sessions' shares, as `learn_reliability` does.

    Parameters
    ----------
    sessions
        Per session, reviewer → share of rivals that it places below each candidate, shape (votes,
        candidates); NaN: no vote, or its own.

    Returns
    -------
    mapping
        Reviewer → weight; empty if no session has three reviewers.
    """
    total: defaultdict[str, float] = defaultdict(float)
    times: defaultdict[str, int] = defaultdict(int)
    for shares in sessions:
        for reviewer, correlation in _correlations(shares).items():
            total[reviewer] += correlation
            times[reviewer] += 1
    panel = sum(total.values()) / sum(times.values()) if times else 0.0
    weights = {}
    for reviewer, n in times.items():
        relative = total[reviewer] / panel if panel > 0 else float(n)
        weights[reviewer] = (relative + SESSIONS_OF_EQUALITY) / (n + SESSIONS_OF_EQUALITY)
    return weights


def _session_correlations(electorates: Sequence[Electorate]) -> list[dict[str, float]]:
    """Compute 1 + τ-b of reviewers with the others, session by session.

    τ-b compares a reviewer's shares with the others' mean shares.
    """
    correlations: list[dict[str, float]] = [{}] * len(electorates)
    for numbers in group_by_shape(electorates):
        electorates_of_shape = [electorates[number] for number in numbers]
        alone = all(len(one.reviewers) == len(one.votes) for one in electorates_of_shape)
        measured = (
            _measure_block(electorates_of_shape) if alone else _measure_each(electorates_of_shape)
        )
        for number, correlation in zip(numbers.tolist(), measured, strict=True):
            correlations[number] = correlation
    return correlations


def _measure_each(electorates: Sequence[Electorate]) -> Iterator[dict[str, float]]:
    for electorate in electorates:
        yield _correlations(
            {
                reviewer: np.array([_shares(v) for v in electorate.votes if v.reviewer == reviewer])
                for reviewer in electorate.reviewers
            }
        )


def _measure_block(electorates: Sequence[Electorate]) -> Iterator[dict[str, float]]:
    """Compute `_measure_each` for sessions of one shape, one vote per reviewer."""
    profile = stack(electorates)
    assert profile.lengths is not None  # noqa: S101 - as `stack` makes it
    lengths = profile.lengths[:, np.newaxis]
    shares = (lengths - profile.places / 2) / np.maximum(lengths - 1, 1)
    shares[(profile.places == 0) | (lengths < 2)] = np.nan
    taus = np.full((profile.n_reviewers, profile.n_sessions), np.nan)
    if profile.n_reviewers > 2:
        for row in range(profile.n_reviewers):
            others = _mean(np.delete(shares, row, axis=0))
            taus[row] = kendall_taus(shares[row : row + 1], others)[0]
    for electorate, column in zip(electorates, taus.T.tolist(), strict=True):
        agreed = zip(electorate.reviewers, column, strict=True)
        yield {reviewer: 1 + tau for reviewer, tau in agreed if not isnan(tau)}


def _correlations(shares: Mapping[str, Floats]) -> dict[str, float]:
    taus = {}
    for reviewer, own in shares.items():
        others = [rows for other, rows in shares.items() if other != reviewer]
        if len(others) < 2:
            continue
        tau = kendall_tau(_mean(own), _mean(np.concatenate(others)))
        if tau is not None:
            taus[reviewer] = 1 + tau
    return taus


def _shares(vote: Vote) -> list[float]:
    """Share of rivals below each candidate on a ballot; NaN: no vote, or no rival."""
    n = vote.length
    return [(n - place / 2) / (n - 1) if place and n > 1 else nan for place in vote.places]


def _mean(shares: Floats) -> Floats:
    """Mean over ballots, NaN where none has a vote."""
    known = ~np.isnan(shares)
    count = known.sum(axis=0)
    total = np.where(known, shares, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def learn_reliability_from_people(humans: "HumanSums", names: "Names") -> Mapping[str, float]:
    r"""Weigh reviewers by log-odds of matching people, shrunk toward the panel.

    On n_r pairs that people decided, reviewer r agreed with them on h_r, a tie counting half. With
    the panel's share p̄ = Σ h_r / Σ n_r and k = 50 pairs of equality,

        p_r = (h_r + k·p̄) / (n_r + k),
        w_r = max(0, log(p_r / (1 − p_r))),        weight_r = w_r / mean of w.

    p_r is the posterior mean under a Beta(k·p̄, k·(1 − p̄)) prior, and log-odds are the weights
    with which a majority of independent reviewers is most often right. A reviewer without pairs has
    the weight of the panel's mean share; without any evidence all weights are equal.

    Parameters
    ----------
    humans : HumanSums
        Opinions compared with people's, from sessions other than those that the weights are for.

    Returns
    -------
    mapping
        Reviewer → weight, mean 1, for every reviewer with such pairs. All are 1 if the panel agrees
        with people on at most half of the pairs; empty if no reviewer has judged fifty pairs.

    References
    ----------
    Nitzan and Paroush, "Optimal decision rules in uncertain dichotomous choice situations",
    International Economic Review 23 (1982) 289–297. Shapley and Grofman, "Optimizing group
    judgmental accuracy in the presence of interdependencies", Public Choice 43 (1984) 329–343.
    """
    sided: dict[str, tuple[float, float]] = {}
    alone = humans.reviewer == humans.other
    for code, n, x in zip(humans.reviewer[alone], humans.n[alone], humans.x[alone], strict=True):
        hits, pairs = sided.get(names[int(code)], (0.0, 0.0))
        sided[names[int(code)]] = (hits + (x + n) / 2, pairs + n)
    return weights_by_people(sided)


def weights_by_people(sided: Mapping[str, tuple[float, float]]) -> Mapping[str, float]:
    """Weigh reviewers as `learn_reliability_from_people` does.

    `sided` has h and n per reviewer: pairs on which it agreed with people, a tie counting half, and
    pairs that they decided.
    """
    if max((pairs for _, pairs in sided.values()), default=0) < MIN_DECIDED:
        return {}
    whole = sum(hits for hits, _ in sided.values()) / sum(pairs for _, pairs in sided.values())
    if whole <= 0.5:
        return dict.fromkeys(sided, 1.0)
    odds = {name: _log_odds(hits, pairs, whole) for name, (hits, pairs) in sided.items()}
    # Above 0: if the panel's share is above ½, at least one reviewer's share is, too.
    mean = sum(odds.values()) / len(odds)
    return {name: value / mean for name, value in odds.items()}


def _log_odds(hits: float, pairs: float, whole: float) -> float:
    """Compute the shrunk share's log-odds, ≥ 0.

    Panels without a miss get half a miss.
    """
    credited = min(whole, 1 - 0.5 / PAIRS_OF_PEOPLE)
    share = (hits + PAIRS_OF_PEOPLE * credited) / (pairs + PAIRS_OF_PEOPLE)
    return max(0.0, math.log(share / (1 - share)))


MIN_SEVERITY_DF = 30
"""Fewest degrees of freedom for the severity of reviewers to be known."""

Texts = Sequence[Mapping[str, float]]
"""For each text of a session, grade by reviewer."""


def learn_severity(sessions: Iterable[Texts]) -> Severity | None:
    r"""Learn reviewers' severity from others' grades of the same texts.

    A grade is the sum of the text's quality, its reviewer's severity s_r, and noise. Subtracting
    each text's mean leaves P·s with the projection P = I − 11ᵀ/n over its n reviewers. The texts of
    a session are averaged and count as one, since a reviewer's severity may vary between sessions.
    With A the sum of these P over sessions, b the sum of the centred grades, σ² the variance of the
    residuals (at least that of rounding), and τ² (`SEVERITY`) the variance of severity among all
    reviewers,

        ŝ = (A + σ²/τ²·I)⁻¹·b,        cov(ŝ − s) = σ²·(A + σ²/τ²·I)⁻¹.

    The severity common to reviewers who always judge together cannot be learned: its variance stays
    τ²/R.

    Parameters
    ----------
    sessions
        Other sessions' texts with grades from 1 to 10, without grades of one's own texts.

    Returns
    -------
    Severity or None
        None with fewer than `MIN_SEVERITY_DF` degrees of freedom.

    References
    ----------
    Henderson, "Best linear unbiased estimation and prediction under a selection model",
    Biometrics 31 (1975) 423–447.
    """
    graded = [texts for session in sessions if (texts := [t for t in session if len(t) > 1])]
    names = sorted({name for texts in graded for text in texts for name in text})
    at = {name: number for number, name in enumerate(names)}
    design, total = np.zeros((len(names), len(names))), np.zeros(len(names))
    centred: list[tuple[list[NDArray[np.intp]], list[Floats]]] = []
    for texts in graded:
        seats = [np.array([at[name] for name in text]) for text in texts]
        grades = [np.array([*text.values()]) for text in texts]
        rows = [each - each.mean() for each in grades]
        for seat, row in zip(seats, rows, strict=True):
            design[np.ix_(seat, seat)] += (np.eye(len(seat)) - 1 / len(seat)) / len(texts)
            total[seat] += row / len(texts)
        centred.append((seats, rows))
    df = sum(len({*np.concatenate(seats).tolist()}) - 1 for seats, _ in centred) - len(names) + 1
    if df < MIN_SEVERITY_DF:
        return None
    squares, noise = _severity_residuals(centred, np.linalg.pinv(design) @ total)
    variance = max(squares / df, ROUNDING_VARIANCE)
    inverse = np.linalg.inv(design + variance / SEVERITY * np.eye(len(names)))
    covariance = variance * inverse
    offsets = tuple((inverse @ total).tolist())
    return Severity(
        tuple(names),
        offsets,
        tuple(map(tuple, covariance.tolist())),
        max(noise, ROUNDING_VARIANCE),
        len(graded),
    )


def _severity_residuals(
    sessions: Sequence[tuple[list[NDArray[np.intp]], list[Floats]]], severity: Floats
) -> tuple[float, float]:
    """Sum squared residuals of sessions; estimate the variance of one grade."""
    squares = single = 0.0
    n_free = 1 - len(severity)
    for seats, rows in sessions:
        session = np.zeros(len(severity))
        for seat, row in zip(seats, rows, strict=True):
            residual = row - (severity[seat] - severity[seat].mean())
            session[seat] += residual / len(seats)
            single += float(residual @ residual)
            n_free += len(seat) - 1
        squares += float(session @ session)
    return squares, single / n_free


@dataclass(frozen=True, slots=True)
class Lessons:
    """Lessons of earlier sessions for the next one.

    Parameters
    ----------
    priors
        At most one per unit, learned from fifty sessions or more.
    rho
        Error shared by reviewers; None: people decided too few pairs.
    reliability
        Weight by model, for ``weighted_borda``; empty: not requested, or unknown.
    calibration
        How often panels this sure matched people; None: unknown.
    severity
        Models' severity; None: not requested, or unknown.
    n_sessions
        Number of sessions by unit, at most the number for a prior; missing units are unknown.
    """

    priors: tuple[Prior, ...] = ()
    rho: float | None = None
    reliability: Mapping[str, float] = field(default_factory=dict)
    calibration: "Calibration | None" = None
    severity: Severity | None = None
    n_sessions: Mapping[Unit, int] = field(default_factory=dict)

    def prior(self, unit: Unit) -> Prior | None:
        """Return the prior learned in this unit, or None."""
        return next((prior for prior in self.priors if prior.unit == unit), None)


@dataclass(frozen=True, slots=True)
class Tracks:
    """Reviewers' track records from other sessions.

    Parameters
    ----------
    order_kept
        By reviewer: pairs judged alike in both orders, and pairs judged in both.
    others
        Weights by correlation with the others, by reviewer.
    people, pairs_judged
        By reviewer: weight by agreement with people, and number of judged pairs that people
        decided.
    """

    order_kept: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)
    people: Mapping[str, float] = field(default_factory=dict)
    pairs_judged: Mapping[str, float] = field(default_factory=dict)


def known_by_order(order_kept: Mapping[str, tuple[int, int]], reviewers: Collection[str]) -> bool:
    """True if order-consistency is known well enough to weigh these reviewers by.

    That is, at least half of them judged twenty or more pairs in both orders, so that their record
    outweighs `PAIRS_OF_EQUALITY`.
    """
    nothing = (0, 0)
    known = sum(order_kept.get(name, nothing)[1] >= PAIRS_OF_EQUALITY for name in reviewers)
    return known > 0 and 2 * known >= len(reviewers)


def reliability_from_tracks(tracks: Tracks, reviewers: Collection[str]) -> Mapping[str, float]:
    """Weigh a council's reviewers by all track records, shrunk toward equal.

    With c[r] the weight by order-consistency (if not `known_by_order`, by correlation with the
    others), p[r] the weight by agreement with people, and n[r] the number of pairs behind p[r],

        weight[r] = (k·c[r] + n[r]·p[r]) / (k + n[r]),        k = 50.

    c and p are already shrunk, and 1 on average. Without people's votes the weight is c; with more
    votes it moves toward p. A product would count one fault twice: a reviewer that answers by
    position also agrees less with people.

    Order comes before correlation, which rewards shared errors. On the council of the
    study (five models, 356 pairs that people decided, weights learned from the other
    questions) the gains over equal weights were +2.2 points by order, +1.1 by correlation, +2.5 by
    people and +2.5 by this rule; differences between the last three are within noise.

    Parameters
    ----------
    reviewers : collection of str
        Reviewers of the council; records of others are ignored.

    Returns
    -------
    mapping
        Reviewer → weight ≥ 0, dimensionless, for each of `reviewers`; empty if nothing is known.
    """
    mine = {name: tracks.order_kept[name] for name in reviewers if name in tracks.order_kept}
    if known_by_order(mine, reviewers):
        start: Mapping[str, float] = consistency_weights(mine)
    else:
        start = tracks.others
    reviewers_with_data = set(start) | set(tracks.people)
    if reviewers_with_data.isdisjoint(reviewers):
        return {}
    weights = {}
    for name in reviewers:
        base = start.get(name, 1.0)
        n = tracks.pairs_judged.get(name, 0.0) if name in tracks.people else 0.0
        people = tracks.people.get(name, 1.0)
        # The formula above, in a form that leaves the weight exactly unchanged without votes.
        weights[name] = base + n / (PAIRS_OF_PEOPLE + n) * (people - base)
    return weights


def learn_weights(electorates: Sequence[Electorate]) -> list[Mapping[str, float]]:
    """Weights per reviewer for each session, learned from all the *other* sessions.

    If at least half of the reviewers compared twenty pairs or more in both orders over all
    sessions, weights are by order-consistency (`learn_consistency`); otherwise by correlation with
    the others (`learn_reliability`).

    Returns
    -------
    list of mapping
        Reviewer → weight, aligned with `electorates`.
    """
    sessions = [electorate.order_kept for electorate in electorates]
    reviewers = {name for electorate in electorates for name in electorate.reviewers}
    if known_by_order(_add_up(sessions), reviewers):
        return [*learn_consistency(sessions)]
    return learn_reliability(electorates)


def learn_prior_from_noise(noises: "Iterable[Noise]", unit: Unit) -> Prior | None:
    """Learn noise and quality spread from stored noise, as `learn_prior` does.

    The noise is the same to the last digit. The quality variance is the mean of the sessions'
    effect variances, or 0 where that is negative. `learn_prior` pools them by their degrees of
    freedom instead. With equal numbers of candidates in all sessions the results are equal;
    otherwise both estimate the same quantity.

    Returns
    -------
    Prior or None
        None with fewer than `MIN_HISTORY` sessions of the unit.

    References
    ----------
    See `witan.core.stats.priors.learn_prior`.
    """
    usable = [n for n in noises if n.unit == unit and n.df >= 1 and n.variance > 0]
    if len(usable) < MIN_HISTORY:
        return None
    noise_variance, noise_df = fit_scaled_f(
        np.array([noise.variance for noise in usable]), np.array([noise.df for noise in usable])
    )
    beyond = [n.effect_variance for n in usable if n.effect_variance is not None]
    return Prior(
        noise_variance=noise_variance,
        noise_df=noise_df,
        quality_variance=max(float(np.mean(beyond)), 0.0) if beyond else 0.0,
        unit=unit,
        n_sessions=len(usable),
    )


def borrow(electorates: Sequence[Electorate], settings: Settings) -> Settings:
    """Replace every ``learn`` in settings by learned values, or by ``public`` without any."""
    rho = learn_rho(electorates) if settings.rho == "learn" else None
    prior = _learn_prior(electorates, settings) if settings.prior == "learn" else None
    if rho is not None:
        settings = replace(settings, rho=rho)
    return settings if prior is None else replace(settings, prior=prior)


def _learn_prior(electorates: Sequence[Electorate], settings: Settings) -> Prior | None:
    """Learn from grades if fifty sessions have them, else from ranks."""
    if len(electorates) < MIN_HISTORY:
        return None
    rule = RULES["calibrated" if settings.rule == AUTO else settings.rule]
    fits: dict[str, list[AdditiveFit]] = {"grades": [], "ranks": []}
    for numbers in group_by_shape(electorates):
        chosen = [electorates[number] for number in numbers]
        if not chosen[0].votes or len(chosen[0].candidates) < 2:
            continue
        for fit, at, unit in fits_of(chosen, stack(chosen), rule):
            fits[unit].append(fit.take(np.array([at])))
    return learn_prior(fits["grades"], "grades") or learn_prior(fits["ranks"], "ranks")
