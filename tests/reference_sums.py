"""The tables of sums, counted by obvious loops over the rows of each session.

One function per table. They are slow, and that is their use: engines are held equal to them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from reference_rows import (
    KINDS,
    Sheet,
    Vote,
    ballots_of,
    by_ballot,
    centred,
    counted,
    names_of,
    votes_of,
)
from witan.core.ballot import Kind
from witan.core.session_ballots import Entries
from witan.core.stats.sums import (
    AnswerSums,
    BallotSums,
    CalibrationSums,
    CriterionSums,
    HumanSums,
    LengthSums,
    MatchupSums,
    PanelSums,
    PositionSums,
    ReviewerSums,
    StandingSums,
    UnitSums,
    VoteSums,
)
from witan.history.schema import code_of

__all__ = [
    "answer_sums",
    "ballot_sums",
    "calibration_sums",
    "criterion_sums",
    "human_sums",
    "length_sums",
    "matchup_sums",
    "names_of",
    "panel_sums",
    "position_sums",
    "reviewer_sums",
    "standing_sums",
    "unit_sums",
    "vote_sums",
]

OVERALL = -1


def others_mean(votes: Sequence[Vote], vote: Vote, what: str) -> float | None:
    """The mean of what the other reviewers say of the same candidate, own candidates left out."""
    held = [
        value
        for other in votes
        if other.reviewer != vote.reviewer and other.model == vote.model and not other.own
        if (value := getattr(other, what)) is not None
    ]
    return sum(held) / len(held) if held else None


def standing_sums(entries: Sequence[Entries], rule: str, *, human: int = 0) -> StandingSums:
    """As `StandingSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for line in one.standings:
            if line.rule != rule or line.kind != KINDS[human]:
                continue
            key = (bucket, code_of(line.model))
            sheet.add(key, appearances=1, votes=line.votes, offered=line.offered, wins=line.wins)
            if line.score is not None:
                sheet.add(key, sessions=1, total=line.score, squares=line.score**2)
            if line.z is not None:
                sheet.add(key, z_sessions=1, z_total=line.z)
    return sheet.table(StandingSums, 2)


def matchup_sums(entries: Sequence[Entries], *, human: int = 0) -> MatchupSums:
    """As `MatchupSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for row in one.matchups:
            if row.kind != KINDS[human]:
                continue
            pair = 0
            for i in range(len(row.models)):
                for j in range(i + 1, len(row.models)):
                    key = (bucket, code_of(row.models[i]), code_of(row.models[j]))
                    sheet.add(
                        key, wins=row.wins[pair], losses=row.losses[pair], ties=row.ties[pair]
                    )
                    pair += 1
    return sheet.table(MatchupSums, 3)


def answer_sums(entries: Sequence[Entries]) -> AnswerSums:
    """As `AnswerSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for answer in one.answers:
            key = (bucket, code_of(answer.model))
            sheet.add(key, answers=1, failed=int(answer.failed))
            if answer.cost_usd is not None:
                sheet.add(key, costed=1, cost_usd=answer.cost_usd)
            if answer.seconds is not None:
                sheet.add(key, timed=1, seconds=answer.seconds)
    return sheet.table(AnswerSums, 2)


def ballot_sums(entries: Sequence[Entries]) -> BallotSums:
    """As `BallotSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for ballot in one.ballots:
            if not (ballot.models or ballot.abstained):
                continue
            key = (bucket, code_of(ballot.reviewer), KINDS.index(ballot.kind))
            sheet.add(
                key,
                ballots=1,
                abstained=int(ballot.abstained),
                repaired=int(ballot.repaired),
                flat=int(ballot.flat),
                kept=ballot.kept,
                compared=ballot.compared,
            )
            grades = [grade for grade in ballot.grades if grade is not None]
            if len(grades) > 1:
                sheet.add(key, gradings=1, spread=float(np.std(grades)))
    return sheet.table(BallotSums, 3)


def vote_sums(entries: Sequence[Entries]) -> VoteSums:
    """As `VoteSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for human, kind in enumerate(KINDS):
            for vote in votes_of(one, kind):
                key = (bucket, code_of(vote.reviewer), human, code_of(vote.model), int(vote.own))
                if vote.share is not None:
                    sheet.add(key, votes=1, total=vote.share)
    return sheet.table(VoteSums, 5)


def reviewer_sums(entries: Sequence[Entries]) -> ReviewerSums:
    """As `ReviewerSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for human, kind in enumerate(KINDS):
            votes = votes_of(one, kind)
            for vote in votes:
                key = (bucket, code_of(vote.reviewer), human)
                for what, prefix, count in (
                    ("grade", "", "n_grades"),
                    ("share", "share_", "n_shares"),
                ):
                    x, y = getattr(vote, what), others_mean(votes, vote, what)
                    if vote.own or x is None or y is None:
                        continue
                    sums = {"x": x, "y": y, "xx": x * x, "yy": y * y, "xy": x * y}
                    sheet.add(key, **{count: 1}, **{prefix + name: s for name, s in sums.items()})
    return sheet.table(ReviewerSums, 3)


def position_sums(entries: Sequence[Entries]) -> PositionSums:
    """As `PositionSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for human, kind in enumerate(KINDS):
            votes, ballots = votes_of(one, kind), ballots_of(one, kind)
            choices = [vote for vote in votes if not ballots[vote.ballot].flat]
            for vote in votes:
                if vote.own or vote.share is None or vote.position == 0:
                    continue
                key = (bucket, code_of(vote.reviewer), human, vote.position, vote.shown)
                sheet.add(key, votes=1, total=vote.share)
                mean = others_mean(choices, vote, "share")
                if mean is not None:
                    sheet.add(key, excess_votes=1, excess=vote.share - mean)
    return sheet.table(PositionSums, 5)


def length_sums(entries: Sequence[Entries]) -> LengthSums:
    """As `LengthSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for human, kind in enumerate(KINDS):
            for votes in by_ballot(votes_of(one, kind)):
                key = (bucket, code_of(votes[0].reviewer), human)
                shares = centred(votes, "share")
                for length, share in shares:
                    sheet.add(key, n=1, ll=length**2, lx=length * share, xx=share**2)
                if shares:
                    sheet.add(key, ballots=1)
                for length, grade in centred(votes, "grade"):
                    sheet.add(
                        key,
                        n_grades=1,
                        grade_ll=length**2,
                        grade_lx=length * grade,
                        grade_xx=grade**2,
                    )
                add_longer(sheet, key, [v for v in votes if not v.own and v.chars])
    return sheet.table(LengthSums, 3)


def add_longer(sheet: Sheet, key: tuple[int, ...], votes: Sequence[Vote]) -> None:
    known = [vote for vote in votes if vote.share is not None]
    for i, a in enumerate(known):
        for b in known[i + 1 :]:
            if a.chars != b.chars and a.share != b.share:
                sheet.add(key, decided=1, longer=int((a.chars > b.chars) == (a.share > b.share)))


def unit_sums(entries: Sequence[Entries]) -> UnitSums:
    """As `UnitSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        for human, kind in enumerate(KINDS):
            paired = {number for number, b in enumerate(ballots_of(one, kind)) if b.paired}
            votes = [vote for vote in votes_of(one, kind) if vote.ballot not in paired]
            for measure, what in enumerate(("share", "grade")):
                for held in units(votes, what):
                    n, total = len(held), sum(held)
                    squares = sum(value**2 for value in held)
                    sheet.add(
                        (bucket, human, measure),
                        units=1,
                        n=n,
                        total=total,
                        squares=squares,
                        within=(n * squares - total**2) / (n - 1),
                    )
    return sheet.table(UnitSums, 3)


def units(votes: Iterable[Vote], what: str) -> Iterator[list[float]]:
    """What is said of each candidate that two reviewers or more judged, own votes left out."""
    said: defaultdict[str, list[float]] = defaultdict(list)
    reviewers: defaultdict[str, set[str]] = defaultdict(set)
    for vote in votes:
        value = getattr(vote, what)
        if not vote.own and value is not None:
            said[vote.model].append(value)
            reviewers[vote.model].add(vote.reviewer)
    yield from (held for model, held in said.items() if len(reviewers[model]) > 1)


def graded_on(one: Entries, at: int) -> list[Vote]:
    """The votes of models, with their grade on one criterion of each ballot in place of overall."""
    found = []
    for number, b in enumerate(ballots_of(one, "model")):
        for i in range(len(b.models)):
            grade = b.criterion_grades[at][i] if at < len(b.criteria) else None
            found.append(
                Vote(number, b.reviewer, b.models[i], b.own[i], None, grade, 0, 0, b.chars[i])
            )
    return found


def criterion_sums(entries: Sequence[Entries]) -> CriterionSums:
    """As `CriterionSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        by_criterion: dict[int, list[Vote]] = {OVERALL: votes_of(one, "model")}
        for name in dict.fromkeys(name for b in ballots_of(one, "model") for name in b.criteria):
            by_criterion[code_of(name)] = [
                vote
                for number, b in enumerate(ballots_of(one, "model"))
                if name in b.criteria
                for vote in graded_on(one, b.criteria.index(name))
                if vote.ballot == number
            ]
        for criterion, votes in by_criterion.items():
            for held in units(votes, "grade"):
                sheet.add(
                    (bucket, criterion), units=1, n=len(held), variance=float(np.var(held, ddof=1))
                )
            for ballot in by_ballot(votes):
                for length, grade in centred(ballot, "grade"):
                    sheet.add(
                        (bucket, criterion),
                        lengths=1,
                        ll=length**2,
                        lx=length * grade,
                        xx=grade**2,
                    )
    return sheet.table(CriterionSums, 2)


def opinions(one: Entries, kind: Kind) -> dict[tuple[str, str], dict[str, int]]:
    """Pair of models → reviewer → median of its ballots: 1 for the first, −1 for the second, 0."""
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for votes in by_ballot(votes_of(one, kind)):
        held = [vote for vote in votes if not vote.own and vote.share is not None]
        for a in held:
            for b in held:
                if a.model < b.model:
                    side = (a.share > b.share) - (a.share < b.share)
                    said = found.setdefault((a.model, b.model), {})
                    said.setdefault(a.reviewer, []).append(side)
    return {
        pair: {name: int(np.median(sides)) for name, sides in said.items()}
        for pair, said in found.items()
    }


def human_sums(entries: Sequence[Entries]) -> HumanSums:
    """As `HumanSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        people, models = human_sides(one), opinions(one, "model")
        for pair, truth in people.items():
            said = {name: truth * side for name, side in models.get(pair, {}).items()}
            for first, x in said.items():
                for second, y in said.items():
                    key = (bucket, code_of(first), code_of(second))
                    if key[1] > key[2]:
                        continue
                    sheet.add(key, n=1, x=x, y=y, xx=x * x, yy=y * y, xy=x * y)
    return sheet.table(HumanSums, 3)


def human_sides(one: Entries) -> dict[tuple[str, str], int]:
    """Pairs that people decided: 1 for the first, −1 for the second, every person once."""
    balance = {pair: sum(said.values()) for pair, said in opinions(one, "human").items()}
    return {pair: int(np.sign(side)) for pair, side in balance.items() if side}


def calibration_sums(entries: Sequence[Entries]) -> CalibrationSums:
    """As `CalibrationSums` says; an even chance favours nobody and is left out."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        people = human_sides(one)
        for row in one.matchups:
            if row.kind != "model":
                continue
            pairs = [(a, b) for i, a in enumerate(row.models) for b in row.models[i + 1 :]]
            for (a, b), p in zip(pairs, row.p_beats, strict=True):
                truth = people.get((a, b), -people.get((b, a), 0))
                if p is None or p == 0.5 or truth == 0:
                    continue
                confidence = max(p, 1 - p)
                band = sum(confidence >= k / 20 for k in range(1, 20))
                matched = int((p > 0.5) == (truth > 0))
                sheet.add((bucket, band), pairs=1, matched=matched, confidence=confidence)
    return sheet.table(CalibrationSums, 2)


def panel_sums(entries: Sequence[Entries]) -> PanelSums:
    """As `PanelSums` says."""
    sheet = Sheet()
    for bucket, one in counted(entries):
        sheet.add((bucket,), sessions=1)
        if one.session.kendall_w is not None:
            sheet.add((bucket,), concordant=1, kendall_w=one.session.kendall_w)
        if one.session.agreement is not None:
            sheet.add((bucket,), sure=1, agreement=one.session.agreement)
    return sheet.table(PanelSums, 1)
