"""Mean grades and pass rates by a jury, corrected by people's votes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot, BallotTable
from witan.core.display import FrameSource, NotebookDisplay
from witan.core.outcome import Interval
from witan.core.profile import Electorate, Floats
from witan.core.scale import NATIVE
from witan.core.settings import Settings
from witan.core.stats.measures import UNITS, Count, Measure, MeasureUnit, lack_data
from witan.core.stats.prediction_powered import (
    MIN_CLUSTERS,
    MeanKind,
    Means,
    design_effects,
    estimate_powered_means,
)
from witan.core.tally import prepare
from witan.core.verdict import approval, check_pass_mark
from witan.errors import InvalidParameter, NothingToCount

PRIOR_RIGHT, PRIOR_WRONG = 2.0, 1.0
"""Beta prior of a reviewer's sensitivity and specificity, with mean 2/3."""

CHAINS, WARM_UP, DRAWS = 8, 150, 250
"""The Gibbs sampler: 8 chains of 250 draws after a warm-up."""

FEWEST_DRAWS = 0.5
"""Minimum share of draws with reviewers better than chance; below it, there is no estimate."""

SEED = 1979

LEAST_LOG = -600.0
"""Lower bound of a log-likelihood; below it, both answers would round to probability 0."""


class Patterns(NamedTuple):
    """Patterns of votes, one for all texts with equal votes per system.

    Parameters
    ----------
    system : int array, shape (P,)
        Number of the system, from 0 up.
    votes : float array, shape (P, R)
        1 passes, 0 fails, NaN is no vote.
    """

    system: NDArray[np.intp]
    votes: Floats


class PanelDraws(NamedTuple):
    """Draws of the posterior; the first axis is draws, the second samples.

    Parameters
    ----------
    rates : float array, shape (D, B, M)
        Share of each system's texts that truly pass.
    sensitivity, specificity : float array, shape (D, B, R)
        Share of passing texts that a reviewer passes, and of failing ones that it fails.
    better : bool array, shape (D, B)
        Whether reviewers are better than chance on average.
    """

    rates: Floats
    sensitivity: Floats
    specificity: Floats
    better: NDArray[np.bool_]


def sample_panel(
    patterns: Patterns, counts: NDArray[np.intp], shared_error: float, draws: int
) -> PanelDraws:
    r"""Sample pass rates and reviewers' accuracy from votes without known answers.

    A text of system m truly passes with probability π_m. With probability 1 − ρ, its reviewers vote
    independently: reviewer r passes it with probability α_r if it truly passes, and 1 − β_r if not.
    With probability ρ, they all cast the average reviewer's vote, so that ρ is the correlation of
    two reviewers' errors. ρ = 0 is Dawid and Skene's model.

        π_m ~ Beta(1, 1),    α_r, β_r ~ Beta(2, 1),    Σ_r (α_r + β_r − 1) > 0.

    Without the last condition, passing and failing could be exchanged.

    Parameters
    ----------
    counts : int array, shape (B, P)
        Number of texts of each pattern; B samples, or chains of one sample, are drawn at once.
    shared_error : float
        ρ, from 0 to below 1.

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
    # Probability of a pass vote for texts that truly pass, and for texts that truly fail.
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
    """Compute probabilities of patterns and of independent votes, (B, P) each."""
    own = np.log(pass_rates) @ passes.T + np.log1p(-pass_rates) @ fails.T
    own = (1 - shared_error) * np.exp(np.maximum(own, LEAST_LOG))
    common = pass_rates.mean(axis=1, keepdims=True)
    same = np.where(fails.any(axis=1), 0.0, common)
    same = np.where(passes.any(axis=1), same, 1 - common)
    total = own + shared_error * same
    return total, own / total


def _draw(rng: "np.random.Generator", passes: Floats, fails: Floats) -> Floats:
    return np.clip(rng.beta(passes, fails), 1e-9, 1 - 1e-9)


def sample_votes(system: NDArray[np.intp], votes: Floats, shared_error: float) -> PanelDraws | None:
    """Sample like `sample_panel` from rows of votes, (N,) and (N, R).

    The draws kept have shape (D, 1, …). None: the reviewers are no better than chance.
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


MOST_SYSTEMS = 50
"""Maximum number of systems to estimate: those with the most sessions."""

SHARED_ERROR = 0.3
"""Correlation of reviewers' errors for the wider interval; real data sets show .18 to .42."""

MIN_REVIEWERS, MIN_TEXTS = 3, 30
"""Minimum reviewers and texts without people; if two reviewers disagree, either may be wrong."""

Quantity = Literal["mean grade", "pass rate", "share of rivals beaten"]

Cluster = Literal["session", "question"]


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """A mean from people and jury together, and from each alone.

    Parameters
    ----------
    corrected
        The jury's mean, corrected by people's votes; no value if these are too few.
    jury
        The jury's mean, uncorrected.
    people
        The mean of people's votes alone.
    slope
        λ, the weight of the jury's differences; 0: the jury adds no information.
    """

    corrected: Measure
    jury: Measure
    people: Measure
    slope: float

    def columns(self) -> dict[str, Any]:
        """Return the three measures as columns of a data frame."""
        return {
            **self.corrected.columns("corrected"),
            **self.jury.columns("jury"),
            **self.people.columns("people"),
        }


@dataclass(frozen=True, slots=True)
class SystemEstimate:
    """The estimate of one system.

    Parameters
    ----------
    system
        Name of the candidate; None: all together.
    quantity
        The estimated quantity.
    mean
        Its mean over sessions.
    """

    system: str | None
    quantity: Quantity
    mean: CorrectedMean


@dataclass(frozen=True, slots=True)
class DifferenceEstimate:
    """The difference of two systems over the sessions that have both.

    Parameters
    ----------
    first, second
        The systems; the estimate is first minus second.
    quantity
        The compared quantity.
    mean
        Mean difference over sessions.
    """

    first: str
    second: str
    quantity: Quantity
    mean: CorrectedMean


@dataclass(frozen=True, slots=True)
class PanelRate:
    """The pass rate of one system from a panel without people's votes.

    Parameters
    ----------
    system
        Name of the candidate.
    jury
        Share of passing grades, uncorrected.
    independent
        Estimate by Dawid and Skene's model, with independent errors.
    shared
        The same with a shared error; its interval includes the other one.
    """

    system: str
    jury: Measure
    independent: Measure
    shared: Measure


@dataclass(frozen=True, slots=True)
class ReviewerAccuracy:
    """A reviewer's accuracy, assuming independent errors.

    Parameters
    ----------
    reviewer
        Its name.
    sensitivity, specificity
        Share of passing texts that it passes, and of failing ones that it fails.
    """

    reviewer: str
    sensitivity: Measure
    specificity: Measure


@dataclass(frozen=True, slots=True)
class PanelEstimate:
    """Pass rates estimated from a panel alone, without known answers.

    Parameters
    ----------
    shared_error
        Correlation of reviewers' errors assumed for the `shared` rates.
    rates
        Rates by system, in the order of the estimates; empty: see `why`.
    reviewers
        Accuracy of each reviewer, in alphabetical order.
    why
        Why there is no estimate; None: there is one.
    texts, questions
        Number of texts and questions that the estimate is based on.
    """

    shared_error: float
    rates: tuple[PanelRate, ...]
    reviewers: tuple[ReviewerAccuracy, ...]
    why: str | None = None
    texts: int = 0
    questions: int = 0


@dataclass(frozen=True, slots=True)
class Estimates(NotebookDisplay, FrameSource):
    """Means of systems, corrected by people's votes.

    Parameters
    ----------
    level
        Level of the intervals.
    pass_mark
        Lowest passing grade; None: no pass rate.
    sessions, people_sessions
        Number of sessions, and of those with people's votes.
    questions
        Number of distinct questions; each unknown one counts as different.
    cluster
        Unit of clustering: ``session`` with fewer than five questions or as many as sessions;
        otherwise ``question``.
    systems
        For each quantity, the systems, best first; for grades and pass rates, after a line for all
        systems together.
    differences
        Difference of every two systems, the better first.
    panel
        Pass rates by Dawid and Skene's model; None: people voted, or there is no pass mark.
    """

    level: float
    pass_mark: float | None
    sessions: int
    people_sessions: int
    questions: int
    cluster: Cluster
    systems: tuple[SystemEstimate, ...]
    differences: tuple[DifferenceEstimate, ...]
    panel: PanelEstimate | None

    def __repr__(self) -> str:
        names = sum(each.system is not None for each in self.systems)
        return f"<Estimates: {names} of systems over {self.sessions} sessions>"

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield systems, then differences, as rows of a data frame."""
        for each in self.systems:
            names = {"system": each.system, "minus": None, "quantity": each.quantity}
            yield names | each.mean.columns()
        for difference in self.differences:
            first, second = difference.first, difference.second
            names = {"system": first, "minus": second, "quantity": difference.quantity}
            yield names | difference.mean.columns()


def estimate(
    ballots: Iterable[Ballot],
    settings: Settings | None = None,
    *,
    pass_mark: float | None = None,
    questions: Mapping[str, str] = MappingProxyType({}),
    verdicts: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> Estimates:
    """Estimate systems by a jury, corrected by people's votes on some sessions.

    If all kinds of reviewers grade, the estimates are the mean grade and, with a pass mark, the
    share of grades that reach it; otherwise, the mean share of rivals that a system beats. The
    correction is prediction-powered (`estimate_powered_means`). It is valid if the sessions that
    people judged are a random sample of all. Sessions of one question form a cluster if there are
    `MIN_CLUSTERS` questions. A system needs as many of its own, and a correction as many with
    people's votes. Without people, pass rates are also estimated by `sample_panel`.

    Parameters
    ----------
    questions
        Question by session, if the ballots do not state it.
    verdicts
        By session, the jury's mean grade of each candidate, such as one corrected for severity; it
        replaces the mean of the models' grades. A candidate without one has no jury's grade.
    settings
        As for `tally_sessions`; None: the defaults. The rule is ignored.
    pass_mark
        Lowest passing grade, from 1 to 10.

    Raises
    ------
    NothingToCount
        If no system has ballots of models in five sessions.
    InvalidParameter
        If the pass mark is not a grade, or there are no grades to compare with it.
    UnclearScale
        As `tally_sessions`.
    """
    check_pass_mark(pass_mark)
    chosen = replace(settings or Settings(), rho=None, prior=None)
    if not isinstance(ballots, BallotTable):  # a table has no questions
        ballots = list(ballots)
        questions = {**questions, **{b.session: b.question for b in ballots if b.question}}
    electorates, chosen = prepare(ballots, chosen)
    if not electorates:
        raise NothingToCount("there is no ballot to count")
    is_graded = are_graded(electorates)
    if pass_mark is not None and not is_graded:
        expected = "none: the jury, or people, gave no grades to compare with it"
        raise InvalidParameter("pass_mark", pass_mark, expected)
    by_models = [one for one in electorates if "model" in one.kinds]
    counts = Counter(name for one in by_models for name in one.candidates)
    enough = [name for name, count in counts.items() if count >= MIN_CLUSTERS]
    systems = sorted(enough, key=lambda name: (-counts[name], name))[:MOST_SYSTEMS]
    if not systems:
        needed = f"a system needs ballots of models in {MIN_CLUSTERS} sessions (rows of a batch)"
        found = f"none here has them in more than {max(counts.values(), default=0)}"
        has_names = bool(electorates[0].session)
        hint = "" if has_names else "; a column session or prompt groups ballots"
        raise NothingToCount(f"{needed}, and {found}{hint}")
    quantities: list[Quantity] = ["mean grade"] if is_graded else ["share of rivals beaten"]
    if pass_mark is not None:
        quantities.append("pass rate")
    n_questions, cluster, clusters = _cluster([one.session for one in electorates], questions)
    lines: list[SystemEstimate] = []
    differences: list[DifferenceEstimate] = []
    for quantity in quantities:
        table = _Table.of(electorates, quantity, pass_mark, verdicts)
        own, apart = table.estimate(systems, cluster, clusters, chosen.level)
        lines += own
        differences += apart
    with_people = sum("human" in one.kinds for one in electorates)
    panel = None
    if pass_mark is not None and not with_people:
        by_question = number_questions([questions.get(e.session, "") for e in electorates])
        panel = _estimate_panel(electorates, by_question, pass_mark, lines, chosen.level)
    return Estimates(
        chosen.level,
        pass_mark,
        len(electorates),
        with_people,
        n_questions,
        cluster,
        tuple(lines),
        tuple(differences),
        panel,
    )


def _cluster(
    sessions: Sequence[str], questions: Mapping[str, str]
) -> tuple[int, Cluster, NDArray[np.intp]]:
    """Number each session's cluster: its question, unless there are too few.

    Returns
    -------
    tuple
        The number of questions, the kind of cluster, and each session's cluster number.
    """
    numbers = number_questions([questions.get(name, "") for name in sessions])
    n_questions = int(numbers.max(initial=-1)) + 1
    if n_questions < MIN_CLUSTERS or n_questions == len(sessions):
        return n_questions, "session", np.arange(len(sessions))
    return n_questions, "question", numbers


def number_questions(questions: Sequence[str]) -> NDArray[np.intp]:
    """Number the rows' questions; each empty one gets its own number."""
    numbers: dict[str | int, int] = {}
    return np.array(
        [
            numbers.setdefault(question.strip() or row, len(numbers))
            for row, question in enumerate(questions)
        ],
        dtype=np.intp,
    )


def infer_share(passes: Sequence[bool], questions: Sequence[str], level: float) -> Interval | None:
    """Infer the share of passing texts, clustered by question; None: no texts."""
    if not passes:
        return None
    names = [str(number) for number in range(len(passes))]
    _, cluster, clusters = _cluster(names, dict(zip(names, questions, strict=True)))
    if cluster == "session":
        return approval(passes, level).share
    jury = np.array(passes, dtype=np.float64)[:, np.newaxis]
    people = np.full(jury.shape, np.nan)
    means = estimate_powered_means(people, jury, clusters, kind="shares", level=level).jury
    return Interval(float(means.low[0]), float(means.high[0]), level)


def _estimate_panel(
    everyone: Sequence[Electorate],
    by_question: NDArray[np.intp],
    pass_mark: float,
    lines: Sequence[SystemEstimate],
    level: float,
) -> PanelEstimate:
    """Estimate pass rates without people, or explain why it cannot be done.

    Texts of one question form a cluster. In logits about their median, the draws of a rate are
    therefore widened by `_clustered_spread`, and those of a reviewer's accuracy by the root of the
    design effect of its agreement with the panel.
    """
    jury = {e.system: e.mean.jury for e in lines if e.system and e.quantity == "pass rate"}
    systems, names = list(jury), sorted({v.reviewer for one in everyone for v in one.votes})
    column = {name: at for at, name in enumerate(names)}
    number = {name: at for at, name in enumerate(systems)}
    of_text: list[int] = []
    rows: list[Floats] = []
    questions: list[int] = []
    for one, question in zip(everyone, by_question.tolist(), strict=True):
        places = np.array([column[vote.reviewer] for vote in one.votes], dtype=np.intp)
        passes = _values(one, "pass rate", pass_mark)
        for at, name in enumerate(one.candidates):
            row, seen = np.full(len(names), np.nan), ~np.isnan(passes[:, at])
            row[places[seen]] = passes[seen, at]
            if name in number and np.count_nonzero(~np.isnan(row)) >= MIN_REVIEWERS:
                rows.append(row)
                of_text.append(number[name])
                questions.append(question)
    if len(rows) < MIN_TEXTS:
        few = f"{len(rows)} texts have grades of {MIN_REVIEWERS} reviewers; {MIN_TEXTS} are needed"
        return PanelEstimate(SHARED_ERROR, (), (), few)
    if (n_questions := len({*questions})) < MIN_CLUSTERS:
        noun = "question" if n_questions == 1 else "questions"
        few = f"the {len(rows)} texts are of {n_questions} {noun}; {MIN_CLUSTERS} are needed"
        return PanelEstimate(SHARED_ERROR, (), (), few)
    system, votes, clusters = np.array(of_text), np.array(rows), np.array(questions)
    alone = sample_votes(system, votes, 0.0)
    shared = sample_votes(system, votes, SHARED_ERROR)
    if alone is None or shared is None:
        chance = "the votes do not show reviewers that are better than chance"
        return PanelEstimate(SHARED_ERROR, (), (), chance)
    cast = (~np.isnan(votes)).sum(axis=0)
    rates = []
    for name, at in number.items():
        own = clusters[system == at]
        if len(own):
            share = np.nanmean(votes[system == at], axis=1)
            draws = [
                (fit.rates[:, 0, at], _clustered_spread(fit, at, share, own))
                for fit in (alone, shared)
            ]
            measures = _panel_measures(draws, (len(own), len({*own.tolist()})), level)
            rates.append(PanelRate(name, jury[name], *measures))
    likeness = 1 - np.abs(votes - np.nanmean(votes, axis=1, keepdims=True))
    spreads = np.sqrt(design_effects(likeness, clusters)).tolist()
    reviewers = [
        ReviewerAccuracy(
            name,
            *(
                _posterior_measure(draws[:, 0, at], int(cast[at]), "votes", spreads[at], level)
                for draws in (alone.sensitivity, alone.specificity)
            ),
        )
        for name, at in column.items()
        if cast[at]
    ]
    return PanelEstimate(
        SHARED_ERROR, tuple(rates), tuple(reviewers), texts=len(rows), questions=n_questions
    )


def _clustered_spread(
    fit: PanelDraws, system: int, share: Floats, question: NDArray[np.intp]
) -> float:
    """Return the factor by which clustering widens a rate's posterior.

    Only the variance from the sampling of texts grows with clusters; the rest is uncertainty about
    the reviewers' accuracy. The former is at most the variance of the share of passes divided by
    J², J = sensitivity + specificity − 1 of the average reviewer (Rogan and Gladen, 1978).
    """
    variance = float(fit.rates[:, 0, system].var())
    youden = float((fit.sensitivity + fit.specificity - 1).mean())
    of_texts = float(share.var()) / len(share) / youden**2
    effect = float(design_effects(share[:, np.newaxis], question)[0])
    return float(np.sqrt(1 + (effect - 1) * min(of_texts / variance, 1.0)))


def _panel_measures(
    fits: Sequence[tuple[Floats, float]], counts: tuple[int, int], level: float
) -> tuple[Measure, Measure]:
    """Measure the rate under independent and under shared errors.

    The interval of the second includes that of the first. With too few questions there is none.
    """
    texts, n_questions = counts
    if n_questions < MIN_CLUSTERS:
        few = lack_data(Count(n_questions, "questions", MIN_CLUSTERS), "share")
        return few, few
    first, second = (
        _posterior_measure(draws, texts, "texts", spread, level) for draws, spread in fits
    )
    ends = [end for each in (first, second) if (i := each.interval) for end in (i.low, i.high)]
    return first, replace(second, interval=Interval(min(ends), max(ends), level))


def _posterior_measure(draws: Floats, n: int, of: str, spread: float, level: float) -> Measure:
    """Summarise draws of a share, widened in logits about their median."""
    cuts = np.quantile(draws, [(1 - level) / 2, 0.5, (1 + level) / 2])
    low, middle, high = np.log(cuts) - np.log1p(-cuts)
    low, high = (1 / (1 + np.exp(-middle - spread * (end - middle))) for end in (low, high))
    interval = Interval(float(low), float(high), level)
    return Measure(float(draws.mean()), interval, n, of, 1, "share")


def are_graded(everyone: Sequence[Electorate]) -> bool:
    """True if every kind of reviewer that voted gave grades."""
    voted: set[str] = set()
    graded: set[str] = set()
    for electorate in everyone:
        voted.update(electorate.kinds)
        if graded < voted:
            graded.update(v.kind for v in electorate.votes if not np.isnan(v.grades).all())
    return graded == voted


@dataclass(frozen=True, slots=True)
class _Table:
    """Candidates' mean values per session by jury and people, in long form."""

    quantity: Quantity
    session: NDArray[np.intp]
    candidate: list[str]
    people: Floats
    jury: Floats

    @classmethod
    def of(
        cls,
        everyone: Sequence[Electorate],
        quantity: Quantity,
        pass_mark: float | None,
        verdicts: Mapping[str, Mapping[str, float]],
    ) -> "_Table":
        """Average the votes of each kind by session and candidate."""
        jury, people = [], []
        for one in everyone:
            values = _values(one, quantity, pass_mark)
            weights = np.array(one.weights, dtype=np.float64)[:, np.newaxis]
            kinds = np.array(one.kinds)
            grades = verdicts.get(one.session) if quantity == "mean grade" else None
            if grades is None:
                jury.append(weighted_means(values, weights * (kinds == "model")[:, np.newaxis]))
            else:
                jury.append(np.array([grades.get(name, np.nan) for name in one.candidates]))
            people.append(weighted_means(values, weights * (kinds == "human")[:, np.newaxis]))
        sizes = [len(one.candidates) for one in everyone]
        return cls(
            quantity,
            np.repeat(np.arange(len(everyone)), sizes),
            [name for one in everyone for name in one.candidates],
            np.concatenate(people),
            np.concatenate(jury),
        )

    @property
    def kind(self) -> MeanKind:
        return "grades" if self.quantity == "mean grade" else "shares"

    def estimate(
        self, systems: Sequence[str], cluster: Cluster, clusters: NDArray[np.intp], level: float
    ) -> tuple[list[SystemEstimate], list[DifferenceEstimate]]:
        """Estimate every system, and the difference of every two."""
        people, jury = self._matrices(systems)
        alone = conclude_means(people, jury, clusters, self.kind, level, cluster=cluster)
        order = sorted(range(len(systems)), key=lambda at: -_best_value(alone[at]))
        lines = [SystemEstimate(systems[at], self.quantity, alone[at]) for at in order]
        if self.quantity != "share of rivals beaten" and len(systems) > 1:
            of_people, of_jury = self.people[:, np.newaxis], self.jury[:, np.newaxis]
            of_text = clusters[self.session]
            [whole] = conclude_means(
                of_people, of_jury, of_text, self.kind, level, of="texts", cluster=cluster
            )
            lines.insert(0, SystemEstimate(None, self.quantity, whole))
        people, jury = people[:, order], jury[:, order]
        names = [systems[at] for at in order]
        kind: MeanKind = (
            "differences of grades" if self.kind == "grades" else "differences of shares"
        )
        differences = []
        for first in range(len(names) - 1):
            of_people, of_jury = (e[:, [first]] - e[:, first + 1 :] for e in (people, jury))
            means = conclude_means(of_people, of_jury, clusters, kind, level, cluster=cluster)
            for second, mean in zip(names[first + 1 :], means, strict=True):
                differences.append(DifferenceEstimate(names[first], second, self.quantity, mean))
        return lines, differences

    def _matrices(self, systems: Sequence[str]) -> tuple[Floats, Floats]:
        """Arrange values by session and system; NaN: no value."""
        number = {name: at for at, name in enumerate(systems)}
        column = np.array([number.get(name, -1) for name in self.candidate])
        wanted = column >= 0
        shape = (int(self.session[-1]) + 1, len(systems))
        people, jury = np.full(shape, np.nan), np.full(shape, np.nan)
        people[self.session[wanted], column[wanted]] = self.people[wanted]
        jury[self.session[wanted], column[wanted]] = self.jury[wanted]
        return people, jury


def _values(electorate: Electorate, quantity: Quantity, pass_mark: float | None) -> Floats:
    """Compute each vote's value for each candidate, shape (R, C)."""
    if quantity == "share of rivals beaten":
        places = np.array([vote.places for vote in electorate.votes], dtype=np.float64)
        places = places.reshape(len(electorate.votes), len(electorate.candidates))
        length = (places > 0).sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(
                (places > 0) & (length > 1), (length - places / 2) / (length - 1), np.nan
            )
    grades = np.array([vote.grades for vote in electorate.votes], dtype=np.float64)
    grades = grades.reshape(len(electorate.votes), len(electorate.candidates))
    if pass_mark is None or quantity == "mean grade":
        return grades
    return np.where(np.isnan(grades), np.nan, grades >= pass_mark)


def weighted_means(values: Floats, weights: Floats) -> Floats:
    """Average over votes, (R, C) → (C,), ignoring NaN; NaN without values."""
    # A power of 2 in place of the unit of weights: sums of the largest numbers do not overflow.
    weights = np.ldexp(weights, -np.frexp(weights.max(initial=0.0))[1])
    counted = np.where(np.isnan(values), 0.0, weights)
    total = counted.sum(axis=0)
    sums = (counted * np.nan_to_num(values)).sum(axis=0)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), np.nan)


def _best_value(mean: CorrectedMean) -> float:
    for measure in (mean.corrected, mean.jury):
        if measure.value is not None:
            return measure.value
    return -np.inf


def conclude_means(
    people: Floats,
    jury: Floats,
    clusters: NDArray[np.intp] | None,
    kind: MeanKind,
    level: float,
    *,
    of: str = "sessions",
    cluster: Cluster,
) -> list[CorrectedMean]:
    """Estimate the mean of each column."""
    estimates = estimate_powered_means(people, jury, clusters, kind=kind, level=level)
    unit = UNITS[kind]
    return [
        CorrectedMean(
            _measure(estimates.corrected, at, unit, level, of=of, cluster=cluster),
            _measure(estimates.jury, at, unit, level, of=of, cluster=cluster),
            _measure(estimates.people, at, unit, level, of=of, cluster=cluster),
            float(estimates.slope[at]),
        )
        for at in range(people.shape[1])
    ]


def _measure(
    means: Means, at: int, unit: MeasureUnit, level: float, *, of: str, cluster: Cluster
) -> Measure:
    value, low, high = (float(each[at]) for each in means[:3])
    count = Count(int(means.n[at]), of, MIN_CLUSTERS)
    if count.n and means.n_clusters[at] < MIN_CLUSTERS and cluster == "question":
        return lack_data(Count(int(means.n_clusters[at]), f"{cluster}s", MIN_CLUSTERS), unit)
    if count.n < count.needed or np.isnan(value):
        return lack_data(count, unit)
    if np.isnan(low):
        why = "error unknown: all sessions say the same"
        return Measure(value, None, int(count.n), of, MIN_CLUSTERS, unit, why)
    if unit == "grade":
        low, high = max(low, NATIVE.low), min(high, NATIVE.high)
    return Measure(value, Interval(low, high, level), int(count.n), of, MIN_CLUSTERS, unit)
