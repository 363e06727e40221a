"""Compare a council's answers with its best member's, paired by question."""

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2s
from math import fsum, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot, Kind
from witan.core.display import FrameSource, NotebookDisplay, number
from witan.core.estimation import (
    CorrectedMean,
    are_graded,
    conclude_means,
    number_questions,
    weighted_means,
)
from witan.core.outcome import Interval, Outcome
from witan.core.profile import Electorate, Floats
from witan.core.settings import Settings
from witan.core.stats.distributions import t_quantile
from witan.core.stats.measures import Measure
from witan.core.stats.prediction_powered import MIN_CLUSTERS, MeanKind
from witan.core.stats.priors import prior_of, rho_of
from witan.core.tally import prepare
from witan.core.verdict import panel_mean
from witan.errors import InvalidParameter, NothingToCount

Arm = Literal["council", "best", "self"]
"""The council's final answer, its best member's answer, the best of several by that member."""

ARMS: tuple[Arm, ...] = ("council", "best", "self")

PAIRS: tuple[tuple[Arm, Arm], ...] = (("council", "best"), ("council", "self"), ("self", "best"))

GRADE_MARGIN, SHARE_MARGIN = 0.5, 0.1
"""Default margins within which arms are equal: grade points of 1 to 10, and a net vote share."""

Choice = Literal["name", "other questions", "history", "these questions"]
"""Ways to choose the best member: by name, by other questions of the batch, by earlier sessions, or
by the measured questions themselves, which biases the result in its favour."""

ArmMeasure = Literal["jury", "references", "votes"]
"""Measure of the arms: by a blind jury, by reference answers, or by people's votes alone."""

MOST_WORDS = 10
"""Maximum number of words in a reference answer to match."""

FEWEST_TO_SPLIT = 12
"""Minimum number of questions to choose the best member on half of them."""

Conclusion = Literal[
    "ahead", "behind", "no difference", "too close to call", "same answers", "unknown"
]


@dataclass(frozen=True, slots=True)
class ArmAnswer:
    """The answer of one arm to one question.

    Parameters
    ----------
    session
        The session of the answer.
    member
        Its author; None: the council.
    text
        Its text, or None.
    calls
        Calls made for it, repeated attempts included.
    cost_usd
        Cost of these calls; None: unknown.
    """

    session: str
    member: str | None
    text: str | None
    calls: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class ArmQuestion:
    """One question with all arms' answers and the ballots on them.

    Parameters
    ----------
    answers
        The available answers.
    same
        Pairs of arms with the same text.
    ballots
        Ballots with the arms as candidates; empty: all texts are the same.
    question
        Its text; rows with the same text form a cluster. Empty: a cluster of its own.
    """

    answers: Mapping[Arm, ArmAnswer]
    same: frozenset[tuple[Arm, Arm]] = frozenset()
    ballots: tuple[Ballot, ...] = ()
    category: str | None = None
    question: str = ""


@dataclass(frozen=True, slots=True)
class ArmCost:
    """The price of one arm over all its answered questions.

    Parameters
    ----------
    questions
        Number of answers; a question counts once per row.
    calls
        Calls for all of them.
    priced
        Answers of known cost, without interrupted calls.
    cost_usd
        Total cost of these answers; None: there are none.
    """

    arm: Arm
    questions: int
    calls: int
    priced: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """The difference between two arms, first minus second.

    Parameters
    ----------
    category
        Category of the questions; None: all questions.
    questions
        Number of distinct questions with both answers judged.
    n_rows
        Number of rows with these questions.
    same
        Number of rows where both texts are the same.
    mean
        Mean difference over rows, first minus second.
    conclusion
        ``ahead`` and ``behind``: the interval excludes 0; ``no difference``: it lies within the
        margin; ``too close to call``: neither; ``unknown``: there is no interval.
    cost_ratio, calls_ratio
        The first arm's cost and calls divided by the second's over these rows, for costs only where
        both are known. None: unknown, or the second is free.
    sentence
        The difference in words.
    """

    first: Arm
    second: Arm
    category: str | None
    questions: int
    n_rows: int
    same: int
    mean: CorrectedMean
    conclusion: Conclusion
    cost_ratio: float | None
    calls_ratio: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class ArmComparison(NotebookDisplay, FrameSource):
    """Comparison of a council with its best member, in quality and cost.

    Parameters
    ----------
    questions, people_questions
        Number of distinct questions compared, and of those with people's votes.
    n_rows
        Number of rows compared; several may have the same question.
    level
        Level of each interval over all questions.
    category_level
        Level of each interval of a category, high enough that all intervals of one pair hold
        jointly at `level`; None without categories.
    margin
        Arms that differ by less count as equal.
    unit
        Unit of differences and margin: ``grade points`` of 1 to 10, or ``difference of shares``,
        the share of votes for the first minus that for the second.
    basis
        What the intervals generalise to: ``questions`` like these or, with a single question,
        ``reviewers`` like these.
    best
        Best member → number of questions it answered in that role.
    choice
        How the best member was chosen.
    choosing
        Number of questions used to choose it, which are left out of the comparison.
    arms
        Price of each arm.
    differences
        Differences by pair, over all questions first, then by category.
    measure
        How the arms were measured.
    """

    questions: int
    people_questions: int
    level: float
    category_level: float | None
    margin: float
    unit: str
    basis: Literal["questions", "reviewers"]
    best: Mapping[str, int]
    choice: Choice
    choosing: int
    arms: tuple[ArmCost, ...]
    differences: tuple[ArmDifference, ...]
    measure: ArmMeasure = "jury"
    n_rows: int = 0

    def __repr__(self) -> str:
        return f"<ArmComparison of {len(self.arms)} arms over {self.questions} questions>"

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield the differences as rows of a data frame."""
        for each in self.differences:
            yield {
                "first": each.first,
                "second": each.second,
                "category": each.category,
                "questions": each.questions,
                "rows": each.n_rows,
                **measure_of(each.mean).columns("difference"),
                "conclusion": each.conclusion,
                "cost_ratio": each.cost_ratio,
                "calls_ratio": each.calls_ratio,
            }


def measure_of(mean: CorrectedMean) -> Measure:
    """Return the measure that decides: corrected by people, if they voted."""
    return mean.jury if mean.corrected.value is None else mean.corrected


_ARTICLES = frozenset({"a", "an", "the"})


def _words(text: str) -> list[str]:
    """Normalise a text as SQuAD does: no case, punctuation or articles."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(c for c in folded if not unicodedata.category(c).startswith("P"))
    return [word for word in kept.split() if word not in _ARTICLES]


def matches_reference(text: str, reference: str) -> bool:
    """True if a text contains a reference answer's words in a row.

    References
    ----------
    Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text", EMNLP 2016, for
    the normalisation.
    """
    words, right = _words(text), _words(reference)
    return any(words[at : at + len(right)] == right for at in range(len(words) - len(right) + 1))


def reference_ballot(texts: Mapping[Arm, str], reference: str) -> Ballot:
    """Rank right answers before wrong ones."""
    right = tuple(arm for arm, text in texts.items() if matches_reference(text, reference))
    wrong = tuple(arm for arm in texts if arm not in right)
    groups = tuple(group for group in (right, wrong) if group)
    return Ballot("reference", groups, candidates=tuple(texts))


def vote_ballot(
    texts: Mapping[Arm, str], person: str, winner: str, kind: Kind = "human"
) -> Ballot | None:
    """Rank the person's preferred text first; None: that arm is missing."""
    preferred = {text for arm, text in texts.items() if winner in (arm, TIE)}
    if not preferred:
        return None
    best = tuple(arm for arm, text in texts.items() if text in preferred)
    rest = tuple(arm for arm in texts if arm not in best)
    groups = tuple(group for group in (best, rest) if group)
    return Ballot(person, groups, candidates=tuple(texts), kind=kind)


TIE = "tie"
"""A vote for all arms equally."""


def check_references(references: Mapping[int, str | None]) -> None:
    """Reject a reference that cannot be matched, or rows without any reference."""
    if all(reference is None for reference in references.values()):
        expected = "jury or votes: no row has a right answer in the field reference"
        raise InvalidParameter("measure", "references", expected)
    for row, reference in references.items():
        n_words = 1 if reference is None else len(_words(reference))
        if reference is not None and not 1 <= n_words <= MOST_WORDS:
            many = f"has {n_words} words, more than the {MOST_WORDS} that are matched"
            why = many if n_words else "has no word"
            expected = f"a short answer, as this one {why}; else have judges read the references"
            raise InvalidParameter(f"the reference of row {row}", reference[:60], expected)


def check_votes(votes: Mapping[int, Mapping[str, object]], arms: Sequence[Arm]) -> None:
    """Reject people's votes for anything other than an arm."""
    for row, winners in votes.items():
        for person, winner in winners.items():
            if winner not in (*arms, TIE):
                expected = f"{', '.join(arms)} or {TIE}"
                raise InvalidParameter(f"the vote of {person} on row {row}", winner, expected)


def measure_ballots(
    measure: ArmMeasure,
    texts: Mapping[Arm, str],
    reference: str | None,
    votes: Mapping[str, object],
) -> tuple[Ballot, ...]:
    """Convert a reference answer or people's votes to ballots."""
    if measure == "references":
        return () if reference is None else (reference_ballot(texts, reference),)
    kind: Kind = "human" if measure == "jury" else "model"
    ballots = (vote_ballot(texts, person, str(vote), kind) for person, vote in votes.items())
    return tuple(ballot for ballot in ballots if ballot is not None)


def share_beaten(outcome: Outcome, seats: Collection[str]) -> dict[str, float]:
    """Compute each seat's share of beaten rivals; a tie counts half."""
    shares = dict.fromkeys(seats, 0.0)
    below = len(shares)
    for group in outcome.ranking:
        below -= len(group)
        for name in group:
            shares[name] = (below + (len(group) - 1) / 2) / max(1, len(shares) - 1)
    return shares


def split_questions(keys: Sequence[str], questions: Sequence[str]) -> frozenset[int]:
    """Set aside about half of the questions to choose the best member.

    The key of a question's first row alone determines its half, so adding questions moves no other
    question, and rows of one question stay together.

    Returns
    -------
    frozenset of int
        Numbers of the rows set aside; empty if there are too few questions to split.
    """
    first: dict[str, str] = {}
    keys = [first.setdefault(question, key) for question, key in zip(questions, keys, strict=True)]
    apart = {
        key for key in keys if blake2s(key.encode(errors="replace"), digest_size=1).digest()[0] % 2
    }
    n_questions = len({*keys})
    if n_questions < FEWEST_TO_SPLIT or min(len(apart), n_questions - len(apart)) < MIN_CLUSTERS:
        return frozenset()
    return frozenset(number for number, key in enumerate(keys) if key in apart)


def choose_best(shares: Floats) -> int:
    """Choose the best member over all questions; the first among equals.

    Parameters
    ----------
    shares : float array, shape (questions, members)
        Share of rivals that each member beat; 0 without an answer, NaN if not counted.
    """
    # Rounded, because the order of summation changes the last bits.
    return int(np.round(np.nan_to_num(shares).sum(axis=0), 9).argmax())


def compare_arms(
    questions: Sequence[ArmQuestion],
    settings: Settings | None = None,
    *,
    margin: float | None = None,
    choice: Choice = "name",
    choosing: int = 0,
    measure: ArmMeasure = "jury",
) -> ArmComparison:
    r"""Compare arms by a jury's ballots on their answers, paired by question.

    Let d_qr be the difference between reviewer r's grades for the two answers to question q (or,
    without grades, 1, 0 or −1 by their order), and d_q its mean over the jury. Then

        d = mean_q(d_q),        s.e. = √(Σ_q (d_q − d)² / (Q − 1)) / √Q,

    with Student's t on Q − 1 degrees of freedom. Rows of one question form one of the Q clusters,
    and few questions with most rows have fewer degrees (`estimate_powered_means`); with fewer than
    `MIN_CLUSTERS` questions there is no interval, however many rows there are.
    Equal texts differ by 0. Where people voted on some questions, their votes correct the jury
    (`estimate_powered_means`). With a single row, the interval is over reviewers, as in
    `judge_texts`; a reviewer's error common to both answers cancels.

    With K categories, each interval has the level 1 − (1 − level)/K, so that all K hold jointly at
    `level` or above (Bonferroni).

    Parameters
    ----------
    settings
        Rubric, weights and level; None: the defaults. The rule is ignored.
    margin
        Arms that differ by less count as equal, in the unit of the result; None: the default.
    measure
        Source of the ballots: a jury, with or without people; reference answers; or people alone.

    Raises
    ------
    NothingToCount
        If no question has two answers that were judged or are the same.
    InvalidParameter
        If the margin is not a positive, finite number.
    """
    if margin is not None and not 0 < margin < float("inf"):
        raise InvalidParameter("margin", margin, "a number above 0")
    chosen = replace(settings or Settings(), rho=None, prior=None, kind="all")
    people = _count_questions(
        each for each in questions if any(ballot.kind == "human" for ballot in each.ballots)
    )
    if people < MIN_CLUSTERS:  # too few to correct the jury: leave their votes out
        questions = [
            replace(each, ballots=tuple(b for b in each.ballots if b.kind != "human"))
            for each in questions
        ]
    measured = [each for each in questions if each.ballots or each.same]
    table = _Table.of(measured, chosen, measure)
    n_rows = len(table.questions)
    if not n_rows:
        raise NothingToCount("no question has two answers that were judged")
    usual = GRADE_MARGIN if table.is_graded else SHARE_MARGIN
    limit = usual if margin is None else margin
    if not any(table.compare(pair, range(n_rows), 0.5, limit, chosen) for pair in PAIRS):
        raise NothingToCount("no question has two answers that were judged")
    by_category = table.group_by_category()
    n_categories = len(by_category) - 1
    category_level = 1 - (1 - chosen.level) / n_categories if n_categories else None
    differences = []
    for first, second in PAIRS:
        for category, within in by_category.items():
            level = chosen.level if category is None else (category_level or chosen.level)
            line = table.compare((first, second), within, level, limit, settings or Settings())
            if line is not None:
                differences.append(replace(line, category=category))
    costs = tuple(table.costs())
    names = _name_arms(costs)
    return ArmComparison(
        _count_questions(table.questions),
        people,
        chosen.level,
        category_level,
        limit,
        "grade points" if table.is_graded else "difference of shares",
        "reviewers" if n_rows == 1 else "questions",
        table.count_best(),
        choice,
        choosing,
        costs,
        tuple(replace(each, sentence=_sentence(each, limit, table, names)) for each in differences),
        measure,
        n_rows,
    )


def _count_questions(rows: Iterable[ArmQuestion]) -> int:
    return len({*number_questions([row.question for row in rows]).tolist()})


@dataclass(frozen=True, slots=True)
class _Table:
    """Questions, and how each was judged; None for identical texts."""

    questions: tuple[ArmQuestion, ...]
    electorates: tuple[Electorate | None, ...]
    is_graded: bool
    measure: ArmMeasure

    @classmethod
    def of(
        cls, questions: Sequence[ArmQuestion], settings: Settings, measure: ArmMeasure
    ) -> "_Table":
        """Interpret all ballots at once, because they share one scale."""
        ballots = [
            replace(ballot, session=str(number))
            for number, each in enumerate(questions)
            for ballot in each.ballots
        ]
        all_electorates, _ = prepare(ballots, settings) if ballots else ([], settings)
        electorate_by_session = {each.session: each for each in all_electorates}
        electorates = [electorate_by_session.get(str(number)) for number in range(len(questions))]
        pairs = [
            (question, electorate)
            for question, electorate in zip(questions, electorates, strict=True)
            if question.same or (electorate is not None and electorate.votes)
        ]
        return cls(
            tuple(question for question, _ in pairs),
            tuple(electorate for _, electorate in pairs),
            are_graded(all_electorates),
            measure,
        )

    def group_by_category(self) -> dict[str | None, list[int]]:
        """Numbers of each category's questions, and first those of all, under None."""
        groups: dict[str | None, list[int]] = {None: [*range(len(self.questions))]}
        for index, each in enumerate(self.questions):
            if each.category:
                groups.setdefault(each.category, []).append(index)
        return groups

    def compare(
        self,
        pair: tuple[Arm, Arm],
        numbers: Sequence[int],
        level: float,
        margin: float,
        settings: Settings,
    ) -> ArmDifference | None:
        """Compare two arms; None if no question has both answers."""
        differences = [(n, *self._difference(n, pair)) for n in numbers]
        differences = [each for each in differences if not np.isnan(each[1:]).all()]
        if not differences:
            return None
        at = [number for number, *_ in differences]
        people, jury = np.array([values for _, *values in differences]).T[:, :, np.newaxis]
        clusters = number_questions([self.questions[number].question for number in at])
        n_questions = int(clusters.max()) + 1
        mean = self._mean(people, jury, clusters, level)
        seen = np.array([self.electorates[number] is not None for number in at])
        if mean.corrected.value is not None and not seen.all():
            of_people = self._mean(people[seen], jury[seen], clusters[seen], level)
            mean = replace(
                mean,
                corrected=_dilute(of_people.corrected, seen.mean(), n_questions),
                people=_dilute(of_people.people, seen.mean(), n_questions),
                slope=of_people.slope,
            )
        if len(self.questions) == 1:
            mean = replace(mean, jury=self._measure_one(pair, level, settings))
        same = sum(pair in self.questions[number].same for number in at)
        cost, calls = self._ratios(pair, at)
        conclusion = _conclude(measure_of(mean), margin)
        if same == len(at):
            conclusion = "same answers"
        counts = (n_questions, len(at), same)
        return ArmDifference(*pair, None, *counts, mean, conclusion, cost, calls, "")

    def _mean(
        self, people: Floats, jury: Floats, clusters: NDArray[np.intp], level: float
    ) -> CorrectedMean:
        kind: MeanKind = "differences of grades" if self.is_graded else "differences of shares"
        [mean] = conclude_means(people, jury, clusters, kind, level, of="rows", cluster="question")
        return mean

    def _difference(self, number: int, pair: tuple[Arm, Arm]) -> tuple[float, float]:
        """Average one question's difference by people and by jury; NaN: not judged."""
        question, electorate = self.questions[number], self.electorates[number]
        people = jury = float("nan")
        if electorate is not None and {*pair} <= {*electorate.candidates}:
            values = _vote_differences(electorate, pair, is_graded=self.is_graded)[:, np.newaxis]
            weights = np.array(electorate.weights, dtype=np.float64)[:, np.newaxis]
            kinds = np.array(electorate.kinds)[:, np.newaxis]
            people, jury = (
                float(weighted_means(values, weights * (kinds == kind))[0])
                for kind in ("human", "model")
            )
        return people, 0.0 if pair in question.same else jury

    def _measure_one(self, pair: tuple[Arm, Arm], level: float, settings: Settings) -> Measure:
        """Measure the difference on the only question, with an interval over reviewers."""
        electorate, [question] = self.electorates[0], self.questions
        if pair in question.same or electorate is None:
            return Measure(0.0, None, 0, "reviewers", 2, "grade points", "the texts are the same")
        values = _vote_differences(electorate, pair, is_graded=self.is_graded)
        weights = np.array(electorate.weights, dtype=np.float64)
        weights *= np.array(electorate.kinds) == "model"
        prior = prior_of(settings.prior, "grades", 2)
        noise, df = (0.0, 0.0) if prior is None else (2 * prior.noise_variance, prior.noise_df)
        rho = rho_of(settings.rho, "grades")
        one, weighed = values.tolist(), weights.tolist()
        mean = panel_mean(one, weighed, noise=noise, df=df, rho=rho, level=level)
        if mean is None or not self.is_graded:
            problem = "one question has an interval only where reviewers grade"
            value = None if mean is None else mean.mean
            return Measure(
                value, None, len(values), "reviewers", 2, "difference of shares", problem
            )
        return Measure(mean.mean, mean.interval, mean.n, "reviewers", 2, "grade points")

    def _ratios(
        self, pair: tuple[Arm, Arm], numbers: Sequence[int]
    ) -> tuple[float | None, float | None]:
        """Divide the first arm's cost and calls by the second's."""
        pairs = [tuple(self.questions[n].answers[arm] for arm in pair) for n in numbers]
        priced = [each for each in pairs if None not in [answer.cost_usd for answer in each]]
        cost, calls = (
            [[answers[at] for answers in chosen] for at in (0, 1)] for chosen in (priced, pairs)
        )
        return _ratio(*map(_cost, cost)), _ratio(*map(_calls, calls))

    def costs(self) -> Iterator[ArmCost]:
        """The price of each arm."""
        for arm in ARMS:
            answers = [each.answers[arm] for each in self.questions if arm in each.answers]
            if answers:
                priced = sum(each.cost_usd is not None for each in answers)
                yield ArmCost(arm, len(answers), _calls(answers), priced, _cost(answers))

    def count_best(self) -> dict[str, int]:
        """Count questions by the best member that answered, the most frequent first."""
        counts: dict[str, int] = {}
        for each in self.questions:
            answer = each.answers.get("best") or each.answers.get("self")
            if answer is not None and answer.member is not None:
                counts[answer.member] = counts.get(answer.member, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _name_arms(costs: Iterable[ArmCost]) -> dict[Arm, str]:
    """Name the arms in sentences."""
    names: dict[Arm, str] = {"council": "the council", "best": "its best member"}
    for each in costs:
        if each.arm == "self":
            times = each.calls / each.questions
            names["self"] = f"its best member asked {times:.0f} times"
    return names


def _dilute(measure: Measure, share: float, n: int) -> Measure:
    """Count questions with equal texts as 0; people were not shown them.

    If m is the mean over the share w of n questions that people could see, w·m has the variance
    w²·V(m) + m²·w·(1 − w)/n.
    """
    if measure.value is None or measure.interval is None:
        return measure
    level, value = measure.interval.level, measure.value
    reach = (measure.interval.high - measure.interval.low) / 2
    chance = t_quantile(0.5 + level / 2, n - 1) ** 2 * value**2 * share * (1 - share) / n
    reach = sqrt((share * reach) ** 2 + chance)
    middle = share * (measure.interval.high + measure.interval.low) / 2
    return replace(
        measure,
        value=share * value,
        interval=Interval(middle - reach, middle + reach, level),
    )


def _vote_differences(electorate: Electorate, pair: tuple[Arm, Arm], *, is_graded: bool) -> Floats:
    """Subtract the second arm from the first for each vote, shape (R,).

    NaN: the vote does not judge both.
    """
    first, second = (electorate.candidates.index(arm) for arm in pair)
    if is_graded:
        return np.array([v.grades[first] - v.grades[second] for v in electorate.votes], np.float64)
    places = np.array([(v.places[first], v.places[second]) for v in electorate.votes], np.float64)
    ranked = (places > 0).all(axis=1)
    return np.where(ranked, np.sign(places[:, 1] - places[:, 0]), np.nan)


def _cost(answers: Sequence[ArmAnswer]) -> float | None:
    known = [each.cost_usd for each in answers if each.cost_usd is not None]
    return fsum(known) if known else None


def _calls(answers: Sequence[ArmAnswer]) -> int:
    return sum(each.calls for each in answers)


def _ratio(first: float | None, second: float | None) -> float | None:
    return None if first is None or not second else first / second


def _conclude(measure: Measure, margin: float) -> Conclusion:
    if measure.interval is None:
        return "unknown"
    low, high = measure.interval.low, measure.interval.high
    if low > 0 or high < 0:
        return "ahead" if low > 0 else "behind"
    return "no difference" if -margin < low and high < margin else "too close to call"


def _sentence(line: ArmDifference, margin: float, table: _Table, names: Mapping[Arm, str]) -> str:
    first, second = names[line.first], names[line.second]
    if line.first == "self":
        second = "its one answer"
    on = f" on {line.category}" if line.category else ""
    questions = f"{line.questions:,} question{'' if line.questions == 1 else 's'}"
    if line.n_rows > line.questions:
        questions += f" ({line.n_rows:,} rows)"
    if line.conclusion == "same answers":
        every = "" if line.n_rows == 1 else f" at all {questions}"
        return f"{first} and {second} gave the same text{on}{every}"
    measure = measure_of(line.mean)
    if measure.interval is None or measure.value is None:
        return f"{first} against {second}{on}: {_unknown(line, measure, questions)}"
    reach = (measure.interval.high - measure.interval.low) / 2
    counted = "questions" if table.measure == "references" else "votes"
    unit = "" if table.is_graded else f" of the {counted}, net"
    size = f"{number(abs(measure.value))} ± {number(reach)}{unit}"
    price = _price(line)
    if line.conclusion == "ahead":
        return f"{first} beats {second} by {size}{on}{price}"
    if line.conclusion == "behind":
        return f"{first} falls short of {second} by {size}{on}{price}"
    size = f"{_signed(measure.value)} ± {number(reach)}{unit}"
    if line.conclusion == "no difference":
        within = f"within ±{margin:g}{',' if price else ''}{price}"
        return f"no difference between {first} and {second}{on}: {size}, {within}"
    many = "" if len(table.questions) == 1 else f" at {questions}"
    return f"{first} and {second} are too close to call{on}{many}: {size}{price}"


def _signed(value: float) -> str:
    return f"+{number(value)}" if value >= 0 else number(value)


def _unknown(line: ArmDifference, measure: Measure, questions: str) -> str:
    if measure.value is None:
        return f"{questions} {'is' if line.questions == 1 else 'are'} too few"
    if line.n_rows == 1:
        return f"{_signed(measure.value)}, of which the error is unknown: {measure.why}"
    return f"{_signed(measure.value)} at each of {questions}, so its error is unknown"


def _price(line: ArmDifference) -> str:
    if line.cost_ratio is not None:
        return f" at {_factor(line.cost_ratio)} × the cost"
    return "" if line.calls_ratio is None else f" at {_factor(line.calls_ratio)} × the calls"


def _factor(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
