"""A jury's verdict on texts, and shares of approval, with uncertainty."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, fsum, isnan, lgamma, log, nan, sqrt
from operator import mul
from typing import Any, Literal

import numpy as np

from witan.core.ballot import Ballot
from witan.core.display import FrameSource, NotebookDisplay, list_some
from witan.core.outcome import MIN_VOTES, Interval, Outcome, check_level
from witan.core.profile import Electorate, Floats
from witan.core.rubric import Rubric
from witan.core.scale import NATIVE, read_grade
from witan.core.sequential import look_level, p_settled
from witan.core.settings import Settings
from witan.core.stats.distributions import beta_quantile, t_probability, t_quantile
from witan.core.stats.priors import GRADE_DF, SEVERITY, Severity, prior_of, rho_of
from witan.core.stats.uncertainty import MIN_DF
from witan.core.tally import interpret_ballots, put_on_scale
from witan.errors import InvalidParameter, NothingToCount, UnknownName

APPROVAL_PRIOR = 0.5
"""Jeffreys' prior: half an approval and half a rejection before the first vote."""

TIE = "tie"
"""An expectation that no text is better, and a vote that prefers none."""

Decision = Literal["passed", "failed", "too close to call"]


@dataclass(frozen=True, slots=True)
class Approval:
    """Members' votes to approve or reject, generalised to similar members.

    Parameters
    ----------
    approve, reject, silent
        Members that approved, rejected, and gave no readable vote.
    share
        Interval of the share of such members that would approve; None without votes.
    p_majority
        Probability that the majority of as many other such members would decide the same way; None
        without a majority.
    """

    approve: int
    reject: int
    silent: int
    share: Interval | None
    p_majority: float | None

    @property
    def is_approved(self) -> bool | None:
        """The majority's decision; None without a majority."""
        return None if self.approve == self.reject else self.approve > self.reject


def approval(votes: Sequence[bool | None], level: float = 0.95) -> Approval:
    """Count approvals and rejections.

    Let k of n votes approve. Under Jeffreys' prior, the approving share of all such members has the
    distribution Beta(k + ½, n − k + ½). The interval and `p_majority` both come from it, so they
    cannot contradict each other. The interval has equal tails; its lower end is 0 for k = 0 and its
    upper end 1 for k = n. Among another n votes, the number K of approvals has the distribution

        P(K = j) = C(n, j)·B(j + k + ½, 2n − j − k + ½) / B(k + ½, n − k + ½),

    and `p_majority` sums it over K > n/2 for an approval and over K < n/2 for a rejection.

    Averaged over all shares, the 95% interval covers 96.3% at n = 3, 95.8% at 5 and 95.4% at 9;
    from 3 to 9 votes it covers at least 86% at every share. Clopper and Pearson's exact interval
    always covers at least 95%, 99.5% to 98.5% on average, and is a fifth wider.

    Parameters
    ----------
    votes
        True approves, False rejects, None is no readable vote.

    Raises
    ------
    InvalidParameter
        If the level is not between 0 and 1.

    References
    ----------
    Brown, Cai and DasGupta, "Interval estimation for a binomial proportion", Statistical Science
    16 (2001) 101–133.
    """
    check_level(level)
    approve = sum(1 for vote in votes if vote is True)
    reject = sum(1 for vote in votes if vote is False)
    return Approval(
        approve=approve,
        reject=reject,
        silent=len(votes) - approve - reject,
        share=_share(approve, reject, level) if approve + reject else None,
        p_majority=None if approve == reject else _repeat(approve, reject),
    )


@lru_cache(maxsize=256)
def _share(approve: int, reject: int, level: float) -> Interval:
    tail = (1 - level) / 2
    a, b = approve + APPROVAL_PRIOR, reject + APPROVAL_PRIOR
    low = beta_quantile(tail, a, b) if approve else 0.0
    high = beta_quantile(1 - tail, a, b) if reject else 1.0
    return Interval(low, high, level)


def _repeat(approve: int, reject: int) -> float:
    """Compute P(as many other votes have the same majority), by the beta-binomial."""
    same, other = max(approve, reject), min(approve, reject)
    n = same + other
    start = _log_beta(same + APPROVAL_PRIOR, other + APPROVAL_PRIOR) + log(n + 1)
    return fsum(
        # C(n, j) is 1 / ((n + 1)·B(j + 1, n − j + 1)).
        exp(
            _log_beta(j + same + APPROVAL_PRIOR, n - j + other + APPROVAL_PRIOR)
            - _log_beta(j + 1, n - j + 1)
            - start
        )
        for j in range(n // 2 + 1, n + 1)
    )


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


@dataclass(frozen=True, slots=True)
class MeanGrade:
    """A mean of grades over reviewers.

    Parameters
    ----------
    mean
        From 1 to 10.
    interval
        Interval of the mean that reviewers like these would give; None: too few ballots.
    n_ballots
        Number of ballots with such a grade.
    """

    mean: float
    interval: Interval | None
    n_ballots: int


@dataclass(frozen=True, slots=True)
class TextGrades:
    """The grades of one text.

    Parameters
    ----------
    text
        Its name.
    overall
        Mean of the overall grades; None: nobody graded it.
    criteria
        Mean grade by criterion, in the order of the rubric.
    p_pass
        Probability that reviewers like these would on average grade it at the pass mark or above.
    ballots_to_flip
        Minimum number of its highest or lowest grades whose removal changes the decision; None: no
        number does, or there is no decision.
    failed
        Its flags from the safety gate.
    missing
        Criteria that ballots leave out, if all of them grade less than half of the rubric.
    """

    text: str
    overall: MeanGrade | None
    criteria: Mapping[str, MeanGrade]
    p_pass: float | None = None
    ballots_to_flip: int | None = None
    failed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict(NotebookDisplay, FrameSource):
    """The conclusion of a jury on one or more texts.

    Parameters
    ----------
    decision
        A single text passes if `p_pass` is at least the level, and fails if it is equally close to
        0. Of several texts, the expected one (any, if none is expected) must also lead clearly; an
        expected tie fails if one leads clearly, and never passes. None: a single text without a
        pass mark.
    text
        The text that the decision is about: the only, the expected, or the clearly leading one.
    leader
        The text clearly above all others; None: there is none.
    probability
        For a single text, `p_pass`; for several, the probability that `text`, or the first if it is
        None, is best.
    ballots_to_flip
        Minimum number of ballots that could change the decision; None: unknown, or no number could.
    pass_mark
        Lowest passing grade.
    level
        Probability required for a decision, in (0, 1).
    look_level
        Probability required at each look, if there were several, to satisfy `level`.
    texts
        Grades of the texts, best first.
    reviewers
        Reviewers whose ballots count.
    severity
        Severity for which their grades are corrected; None: no correction.
    expected
        The text expected to lead, or ``tie``; None: none is expected.
    """

    decision: Decision | None
    text: str | None
    leader: str | None
    probability: float | None
    ballots_to_flip: int | None
    pass_mark: float | None
    level: float
    look_level: float
    texts: tuple[TextGrades, ...]
    reviewers: tuple[str, ...]
    severity: Severity | None = None
    expected: str | None = None

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield the texts, best first, as rows of a data frame.

        A row's decision is about its text alone; that of the verdict may need a lead, too.
        """
        for each in self.texts:
            leads = each.text == self.leader
            decision = _passes(each, self.pass_mark, self.look_level)
            named = {"text": each.text, "leads": leads, "decision": decision}
            overall = MeanGrade if each.overall is None else each.overall
            grades = {"p_pass": each.p_pass, "overall": overall, **each.criteria}
            yield {**named, **grades, "failed": each.failed}


def check_pass_mark(pass_mark: object) -> None:
    """Reject a pass mark that is not on the scale of grades."""
    is_number = isinstance(pass_mark, int | float) and not isinstance(pass_mark, bool)
    if pass_mark is not None and not (is_number and NATIVE.low <= pass_mark <= NATIVE.high):  # type: ignore[operator]
        raise InvalidParameter("pass_mark", pass_mark, "a grade from 1 to 10, or None")


def check_expected(expected: str | None, texts: Collection[str]) -> None:
    """Reject an expectation that is neither a text nor a tie."""
    known = [*texts, TIE] if len(texts) > 1 else [*texts]
    if expected is not None and expected not in known:
        raise UnknownName("text", expected, known)


def judge_texts(
    ballots: Sequence[Ballot],
    outcome: Outcome,
    settings: Settings,
    *,
    pass_mark: float | None = None,
    expected: str | None = None,
) -> Verdict:
    """Judge the texts of one session by the ballots of its jury.

    Model, for one text or one criterion: a grade is the sum of the text's quality, an error that
    all reviewers share, and the reviewer's own error, severity included; the sum is normal. Let s²
    be the variance of the grades, moderated by a prior from other judges, and ρ the shared part.
    The mean over R ballots then has the variance s²·(1/R + ρ/(1 − ρ)), with Student's t. If the
    reviewers' severity is known from other sessions (`learn_severity`), it is subtracted from their
    grades, by criterion too; s² is then the variance of the remainder, and the variance of the mean
    severity is added.

    Parameters
    ----------
    outcome
        The outcome of the ballots, which sets weights and level.
    pass_mark
        Lowest passing grade, from 1 to 10.
    expected
        The text expected to lead, or ``tie``.

    Raises
    ------
    InvalidParameter, UnknownName
        If the pass mark is not a grade, or the expected text is unknown.
    NothingToCount
        If the outcome counts none of the ballots.
    """
    check_pass_mark(pass_mark)
    names = [line.candidate for line in outcome.standings]
    check_expected(expected, names)
    jury = _Jury.of(ballots, outcome, settings)
    texts = tuple(jury.grades(name, pass_mark) for name in names)
    return _conclude(texts, outcome, pass_mark, expected, jury.panel)


def p_pass_settled(
    ballots: Sequence[Ballot],
    outcome: Outcome,
    settings: Settings,
    text: str,
    *,
    pass_mark: float,
    growth: float,
) -> float:
    """Compute the probability of a decision on a text after more ballots.

    `growth` is the final number of ballots divided by the present one. Errors are as for
    `judge_texts`.
    """
    mean = _Jury.of(ballots, outcome, settings).mean(text)
    return 0.0 if mean is None else mean.p_settled(pass_mark, growth)


@dataclass(frozen=True, slots=True)
class _Jury:
    """One session's counted ballots: a panel and its grades of texts."""

    panel: "_Panel"
    electorate: Electorate
    ballots: tuple[Ballot, ...]

    @classmethod
    def of(cls, ballots: Sequence[Ballot], outcome: Outcome, settings: Settings) -> "_Jury":
        """Select an outcome's counted ballots with its weights and level.

        These may differ from the settings' after a recount.

        Raises
        ------
        NothingToCount
            If the outcome counts none of these ballots.
        """
        weight_of = {note.reviewer: note.weight for note in outcome.ballots}
        voting = [ballot for ballot in ballots if ballot.reviewer in weight_of]
        if not voting:
            raise _no_verdict(outcome)
        scaled_ballots = put_on_scale(voting, settings)
        [electorate] = interpret_ballots(scaled_ballots, settings)
        reviewers = tuple(electorate.voters)
        weights = tuple([weight_of[reviewer] for reviewer in reviewers])
        ballot_of = {ballot.reviewer: ballot for ballot in scaled_ballots}
        counted_ballots = tuple(ballot_of[voter] for voter in reviewers)
        panel = _Panel.of(reviewers, weights, settings, outcome.level)
        return cls(panel, electorate, counted_ballots)

    def overall(self, name: str) -> list[float]:
        """Overall grades of a text, one per ballot; NaN: no grade."""
        if name not in self.electorate.candidates:  # no reviewer compared it
            return [nan] * len(self.ballots)
        seat = self.electorate.candidates.index(name)
        return [vote.grades[seat] for vote in self.electorate.votes]

    def mean(self, name: str) -> "PanelMean | None":
        """Average a text's grades; None: no grade, or a failed gate.

        A text that fails the gate gets the gate's grade, without uncertainty.
        """
        if name in self.electorate.failed:
            return None
        return self.panel.mean(self.overall(name))

    def grades(self, name: str, pass_mark: float | None) -> TextGrades:
        """Grade a text overall and by criterion, and decide if it passes."""
        rubric = self.panel.settings.counting.rubric
        columns = _criteria(self.ballots, name, rubric)
        overall = self.overall(name)
        means = {criterion: self.panel.mean(column) for criterion, column in columns.items()}
        mean = self.mean(name)
        p_pass = flips = None
        if mean is not None and pass_mark is not None:
            p_pass = mean.p_above(pass_mark)
            flips = self.panel.ballots_to_flip(overall, pass_mark, p_pass)
        return TextGrades(
            name,
            None if mean is None else mean.grade(),
            {c: each.grade() for c, each in means.items() if each is not None},
            p_pass,
            flips,
            self.electorate.failed.get(name, ()),
            _missing(rubric, columns) if columns and all(map(isnan, overall)) else (),
        )


def _no_verdict(outcome: Outcome) -> NothingToCount:
    """Explain why an outcome counts none of the ballots."""
    silent = [f"{reviewer} {reason}" for reviewer, reason in outcome.abstentions.items()]
    reasons = f" ({'; '.join(list_some(silent, 3))})" if silent else ""
    of_session = f" of session {outcome.session!r}" if outcome.session else ""
    return NothingToCount(
        f"no ballot{of_session} counts towards a verdict{reasons}; "
        "keep at least one reviewer with a weight above 0 and grades under the rubric"
    )


def _criteria(cast: Sequence[Ballot], name: str, rubric: Rubric) -> dict[str, list[float]]:
    """List one text's grades by criterion in ballot order; NaN: none."""
    columns: dict[str, list[float]] = {criterion.name: [] for criterion in rubric.criteria}
    for ballot in cast:
        cell, scale = ballot.grades.get(name), ballot.scale
        grades = cell if isinstance(cell, Mapping) else {}
        for criterion, column in columns.items():
            raw = grades.get(criterion)
            within = NATIVE if scale is None else scale.of(criterion)
            read = None if raw is None else read_grade(raw, within)
            column.append(nan if read is None else read)
    return {name: grades for name, grades in columns.items() if not all(map(isnan, grades))}


def _missing(rubric: Rubric, columns: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """Name the criteria that a ballot without an overall grade leaves out."""
    names = [criterion.name for criterion in rubric.criteria]
    return tuple(name for name in names if any(map(isnan, columns.get(name, (nan,)))))


@dataclass(frozen=True, slots=True)
class PanelMean:
    """A weighted mean over reviewers, its standard error and degrees of freedom.

    `shared` is the variance of the reviewers' common error relative to that of one grade, `fixed`
    the variance of their mean severity.
    """

    mean: float
    std_error: float
    df: float
    n: int
    level: float
    looks: tuple[int, ...]
    shared: float
    fixed: float = 0.0

    @property
    def is_inferable(self) -> bool:
        """True if there are enough reviewers for an interval."""
        return self.df >= MIN_DF and self.std_error > 0

    @property
    def interval(self) -> Interval | None:
        """The interval of the mean; None: too few reviewers."""
        if not self.is_inferable:
            return None
        level = look_level(self.level, self.looks, self.shared)
        reach = t_quantile((1 + level) / 2, self.df) * self.std_error
        return Interval(self.mean - reach, self.mean + reach, self.level)

    def grade(self) -> MeanGrade:
        """The mean grade, with its interval clipped to the scale."""
        interval = self.interval
        if interval is not None:
            low, high = max(interval.low, NATIVE.low), min(interval.high, NATIVE.high)
            interval = Interval(low, high, self.level)
        mean = min(max(self.mean, NATIVE.low), NATIVE.high)  # corrections may leave the scale
        return MeanGrade(mean, interval, self.n)

    def p_above(self, pass_mark: float) -> float | None:
        """Compute P(such reviewers' mean grade is at least the pass mark)."""
        if not self.is_inferable:
            return None
        return t_probability((self.mean - pass_mark) / self.std_error, self.df)

    def p_settled(self, pass_mark: float, growth: float) -> float:
        """Compute the probability of a decision with `growth` times the ballots."""
        if self.n < MIN_VOTES:
            return 1.0
        if not self.is_inferable:
            return 0.0
        sure = decision_level(self.level, self.looks, self.shared)
        bar = t_quantile(sure, self.df + self.n * (growth - 1))
        own = (self.std_error**2 - self.fixed) / (1 + self.n * self.shared)
        together = self.std_error**2 - own
        return p_settled(self.mean - pass_mark, own, together, growth, bar)


def panel_mean(
    values: Sequence[float],
    weights: Sequence[float],
    *,
    noise: float,
    df: float,
    rho: float,
    level: float,
    looks: tuple[int, ...] = (),
    covariance: Floats | None = None,
) -> PanelMean | None:
    """Average reviewers' values as in `judge_texts`; None: no values.

    Parameters
    ----------
    values
        One value per reviewer; NaN: none.
    weights
        One weight per reviewer.
    noise, df
        Prior variance of a value around the panel's mean, and its degrees of freedom.
    rho
        Share of the error that all reviewers have in common.
    covariance
        Covariance of the corrections to each reviewer's values; None: no corrections.
    """
    pairs = enumerate(zip(values, weights, strict=True))
    seats = [at for at, (value, weight) in pairs if weight > 0 and not isnan(value)]
    if not seats:
        return None
    known, counted = [values[at] for at in seats], [weights[at] for at in seats]
    heaviest = max(counted)
    mass = [weight / heaviest for weight in counted]  # so that no square underflows
    total = fsum(mass)
    shares = [each / total for each in mass]
    mean = fsum(map(mul, shares, known))
    spread = fsum(map(mul, shares, [(value - mean) ** 2 for value in known]))
    fixed = 0.0
    if covariance is not None:
        all_shares = np.zeros(len(values))
        all_shares[seats] = shares
        fixed = float(covariance @ all_shares @ all_shares)
    shared, n_effective = rho / (1 - rho), total**2 / fsum([each**2 for each in mass])
    own = n_effective - 1
    variance = spread * n_effective / own if own > 0 else 0.0
    freedom = own + df
    moderated = (df * noise + own * variance) / freedom if freedom > 0 else 0.0
    error = sqrt(moderated * (1 / n_effective + shared) + fixed)
    free = freedom if own > 0 else 0.0
    return PanelMean(mean, error, free, len(seats), level, looks, shared, fixed)


@dataclass(frozen=True, slots=True)
class _Panel:
    """Weighted reviewers with their noise and severity.

    Parameters
    ----------
    noise, df, rho
        As in `panel_mean`.
    severity
        The reviewers' severity, if known and wanted.
    offsets, covariance
        Corrections to each reviewer's grades, and their covariance; None: no corrections.
    """

    reviewers: tuple[str, ...]
    weights: tuple[float, ...]
    settings: Settings
    level: float
    noise: float
    df: float
    rho: float
    severity: Severity | None = None
    offsets: tuple[float, ...] = ()
    covariance: Floats | None = None

    @classmethod
    def of(
        cls,
        reviewers: tuple[str, ...],
        weights: tuple[float, ...],
        settings: Settings,
        level: float,
    ) -> "_Panel":
        """Create a panel, with the severity of its reviewers."""
        known, rho = settings.severity, rho_of(settings.rho, "grades")
        is_named = known is not None and not {*known.reviewers}.isdisjoint(reviewers)
        if known is None or not is_named or settings.prior in (None, "public"):
            prior = prior_of(settings.prior, "grades", 1)
            # Noise may be learned from a history; the variance of severity is always public.
            noise, df = (0.0, 0.0) if prior is None else (prior.noise_variance + SEVERITY, GRADE_DF)
            return cls(reviewers, weights, settings, level, noise, df, rho)
        offsets, covariance = known.of(reviewers)
        taken_off = known, tuple(offsets.tolist()), covariance
        return cls(reviewers, weights, settings, level, known.noise, GRADE_DF, rho, *taken_off)

    @property
    def decision_level(self) -> float:
        return decision_level(self.level, self.settings.looks, self.rho / (1 - self.rho))

    def correct(self, grades: Sequence[float]) -> Sequence[float]:
        """Subtract the reviewers' severity from their grades."""
        if self.severity is None:
            return grades
        return [grade - offset for grade, offset in zip(grades, self.offsets, strict=True)]

    def mean(self, grades: Sequence[float]) -> PanelMean | None:
        """Average one grade per reviewer, NaN for none; None without grades."""
        return panel_mean(
            self.correct(grades),
            self.weights,
            noise=self.noise,
            df=self.df,
            rho=self.rho,
            level=self.level,
            looks=self.settings.looks,
            covariance=self.covariance,
        )

    def ballots_to_flip(
        self, grades: Sequence[float], pass_mark: float, p_pass: float | None
    ) -> int | None:
        """Count the extreme grades to remove for another decision.

        These are the highest or the lowest ones, after correction for severity.
        """
        level = self.decision_level
        decision = decide(p_pass, level)
        if decision == "too close to call":
            return None
        leads = {
            at: weight * (grade - pass_mark)
            for at, (weight, grade) in enumerate(
                zip(self.weights, self.correct(grades), strict=True)
            )
            if weight > 0 and not isnan(grade)
        }
        extremes = sorted(leads, key=leads.__getitem__, reverse=decision == "passed")
        rest = [*grades]
        for number, at in enumerate(extremes[:-1], start=1):
            rest[at] = nan
            mean = self.mean(rest)
            p_rest = None if mean is None else mean.p_above(pass_mark)
            if decide(p_rest, level) != decision:
                return number
        return None


def decision_level(level: float, looks: tuple[int, ...], shared: float) -> float:
    """Compute the probability required at each look.

    All looks together have an error of 1 − `level` on each side.
    """
    sure = max(level, 1 - level)
    return (1 + look_level(2 * sure - 1, looks, shared)) / 2 if len(looks) > 1 else sure


def decide(p_pass: float | None, level: float) -> Decision:
    """Decide by the probability of a pass and the required level."""
    sure = max(level, 1 - level)
    if p_pass is None:
        return "too close to call"
    if p_pass >= sure:
        return "passed"
    return "failed" if p_pass <= 1 - sure else "too close to call"


def _conclude(
    texts: tuple[TextGrades, ...],
    outcome: Outcome,
    pass_mark: float | None,
    expected: str | None,
    panel: _Panel,
) -> Verdict:
    level, sure = outcome.level, panel.decision_level
    passing = {each.text: _passes(each, pass_mark, sure) for each in texts}
    leader = outcome.clear_leader
    about = expected if expected in passing else texts[0].text if len(texts) == 1 else leader
    if len(texts) == 1:
        decision = passing[texts[0].text]
        probability, flips = texts[0].p_pass, texts[0].ballots_to_flip
    else:
        decision = _compare(passing, leader, expected)
        lines = {line.candidate: line for line in outcome.standings}
        probability = lines[about or texts[0].text].p_best
        own = {each.text: each.ballots_to_flip for each in texts}
        flips = _compared_flips(decision, passing, own, outcome, expected)
    reviewers = tuple(dict.fromkeys(note.reviewer for note in outcome.ballots))
    return Verdict(
        decision,
        about,
        leader,
        probability,
        flips,
        pass_mark,
        level,
        sure,
        texts,
        reviewers,
        panel.severity,
        expected,
    )


def _compared_flips(
    decision: Decision,
    passing: Mapping[str, Decision | None],
    own: Mapping[str, int | None],
    outcome: Outcome,
    expected: str | None,
) -> int | None:
    """Count the ballots that could change the decision on several texts; None: unknown.

    A pass ends with the lead or with the leader's own pass, a fail with the last reason for it.
    """
    leader, lead = outcome.clear_leader, outcome.ballots_to_flip
    if decision == "passed" and leader is not None:
        return min((n for n in (lead, own[leader]) if n is not None), default=None)
    if decision != "failed":
        return None
    reasons = [lead] if expected is not None and leader not in (None, expected) else []
    if expected is not None and passing.get(expected) == "failed":
        reasons.append(own[expected])
    elif all(each == "failed" for each in passing.values()):
        reasons.append(min((n for n in own.values() if n is not None), default=None))
    known = [n for n in reasons if n is not None]
    return max(known) if known and len(known) == len(reasons) else None


def _passes(grades: TextGrades, pass_mark: float | None, level: float) -> Decision | None:
    if grades.failed:
        return "failed"
    return None if pass_mark is None else decide(grades.p_pass, level)


def _compare(
    passing: Mapping[str, Decision | None], leader: str | None, expected: str | None
) -> Decision:
    """Decide whether the expected text, or any, leads clearly and passes.

    Ballots can refute an expected tie, but not prove it.
    """
    if expected is not None and leader not in (None, expected):
        return "failed"
    if expected is not None and passing.get(expected) == "failed":
        return "failed"
    if all(decision == "failed" for decision in passing.values()):
        return "failed"
    if leader is None:
        return "too close to call"
    return passing[leader] or "passed"
