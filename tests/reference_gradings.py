"""Grades by reviewer and criterion counted by hand, as `reference_sums` counts the other tables."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reference_rows import KINDS, Sheet, Vote, ballots_of, by_ballot, centred, counted
from witan.core.ballot import Kind
from witan.core.session_ballots import Entries
from witan.core.stats.sums import GradingSums
from witan.history.schema import code_of


@dataclass(frozen=True)
class Graded(Vote):
    """A grade on one criterion, of the candidate that stands here on the ballot."""

    place: int


def graded_votes(one: Entries, kind: Kind) -> dict[str, list[Graded]]:
    """Criterion → every grade on it, those that are missing left out."""
    found: defaultdict[str, list[Graded]] = defaultdict(list)
    for number, b in enumerate(ballots_of(one, kind)):
        for criterion, grades in zip(b.criteria, b.criterion_grades, strict=True):
            for i, model in enumerate(b.models):
                if grades[i] is not None:
                    vote = Graded(number, b.reviewer, model, b.own[i], None, grades[i],
                                  b.positions[i], len(b.models), b.chars[i], i)  # fmt: skip
                    found[criterion].append(vote)
    return found


def grading_sums(entries: Sequence[Entries]) -> GradingSums:
    """As `GradingSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for human, kind in enumerate(KINDS):
            by_criterion = graded_votes(one, kind)
            for criterion, votes in by_criterion.items():
                for vote in votes:
                    key = (bucket, code_of(vote.reviewer), human, code_of(criterion))
                    add_grade(sheet, key, vote, votes)
                for ballot in by_ballot(votes):
                    key = (bucket, code_of(ballot[0].reviewer), human, code_of(criterion))
                    add_ballot(sheet, key, ballot)
                    rest = [
                        other
                        for name, others in by_criterion.items()
                        for other in others
                        if name != criterion and other.ballot == ballot[0].ballot
                    ]
                    add_rest(sheet, key, ballot, rest)
    return sheet.table(GradingSums, 4)


def add_grade(sheet: Sheet, key: tuple[int, ...], vote: Vote, votes: Sequence[Vote]) -> None:
    theirs = [
        other.grade
        for other in votes
        if other.reviewer != vote.reviewer and other.model == vote.model and not other.own
    ]
    if not vote.own:
        sheet.add(key, grades=1, total=vote.grade)
    if not theirs:
        return
    x, y = vote.grade, sum(theirs) / len(theirs)
    if vote.own:
        sheet.add(key, n_own=1, own_total=x, own_excess=x - y)
        return
    sheet.add(key, n=1, x=x, y=y, xx=x * x, yy=y * y, xy=x * y)
    if vote.shown > 1 and vote.position == 1:
        sheet.add(key, n_first=1, first_excess=x - y)
    if vote.shown > 1 and vote.position == vote.shown:
        sheet.add(key, n_last=1, last_excess=x - y)


def add_ballot(sheet: Sheet, key: tuple[int, ...], ballot: Sequence[Vote]) -> None:
    grades = [vote.grade for vote in ballot if not vote.own]
    if len(grades) > 1:
        flat = int(len(set(grades)) == 1)
        sheet.add(key, gradings=1, flat=flat, spread=float(np.std(grades)))
    for length, grade in centred(ballot, "grade"):
        sheet.add(key, lengths=1, ll=length**2, lx=length * grade, lxx=grade**2)


def add_rest(
    sheet: Sheet, key: tuple[int, ...], ballot: Sequence[Graded], rest: Sequence[Graded]
) -> None:
    pairs = list(beside_the_rest(ballot, rest))
    if len(pairs) > 1:
        means = np.mean(pairs, axis=0)
        for here, there in pairs - means:
            sheet.add(key, rests=1, rr=there**2, rx=there * here, rxx=here**2)


def beside_the_rest(
    ballot: Sequence[Graded], rest: Sequence[Graded]
) -> Iterator[tuple[float, float]]:
    """Each grade here, and the mean of the same candidate's on all other criteria."""
    for vote in ballot:
        elsewhere = [other.grade for other in rest if other.place == vote.place]
        if elsewhere and not vote.own:
            yield vote.grade, float(np.mean(elsewhere))
