"""Rules whose score is a mean over ballots, laid open ballot by ballot."""

from collections.abc import Iterator

import numpy as np

from witan.core.by_hand.tables import Cell, Session, Step, cell
from witan.core.profile import Floats
from witan.core.stats.additive import SCALE_DF

__all__ = [
    "borda",
    "calibrated",
    "hybrid",
    "mean_grade",
    "mean_rank",
    "normalized",
    "weighted_borda",
]


def borda(session: Session) -> Iterator[Step]:
    """The share of rivals below, per ballot."""
    yield _borda_step(session, session.weights)


def weighted_borda(session: Session) -> Iterator[Step]:
    """Borda under the reviewers' learned weights."""
    weights = session.weights
    if session.profile.reliability is not None:
        weights = weights * session.profile.reliability[:, 0]
    yield _borda_step(session, weights)


def _borda_step(session: Session, weights: Floats) -> Step:
    words = {
        "per_ballot": "(ranked − rank) / (ranked − 1)",
        "roster": "(on offer − rank) / (on offer − 1)",
        "truncated": "(ranked − rank) / (on offer − 1)",
    }
    return session.per_ballot(
        "Borda: the share of rivals that each ballot places below",
        [f"A ballot gives {words[_variant(session)]}; the score is the mean over ballots."],
        [("ranked", session.lengths * 1.0), ("on offer", session.eligible * 1.0)],
        ("share", session.ranks, _shares(session)),
        weights,
    )


def _variant(session: Session) -> str:
    return str(session.parameters.get("variant", "per_ballot"))


def _shares(session: Session) -> Floats:
    """What each ballot gives each candidate under Borda, shape (R, C)."""
    variant = _variant(session)
    last = session.eligible if variant == "roster" else session.lengths
    spans = session.lengths if variant == "per_ballot" else session.eligible
    divisor = np.where(spans > 1, spans - 1.0, np.nan)
    shares: Floats = (last[:, np.newaxis] - session.ranks) / divisor[:, np.newaxis]
    return shares


def mean_rank(session: Session) -> Iterator[Step]:
    """The ranks as they are."""
    yield session.per_ballot("Mean rank", ["Low is best."], [], ("rank", None, session.ranks))


def mean_grade(session: Session) -> Iterator[Step]:
    """The grades as they are."""
    yield session.per_ballot(
        "Mean grade",
        ["The grades as they are, no reviewer's level taken out."],
        [],
        ("grade", None, session.grades),
    )


def hybrid(session: Session) -> Iterator[Step]:
    """Borda and the mean grade, then both blended."""
    yield _borda_step(session, session.weights)
    yield from mean_grade(session)
    alpha = float(session.parameters["alpha"])
    shares = _shares(session)
    rows: list[tuple[Cell, ...]] = []
    for c in session.top:
        share = session.mean(shares[:, c], session.weights)
        grade = session.mean(session.grades[:, c], session.weights)
        rows.append((session.names[c], share, grade, cell(session.score[c])))
    words = f"score = {alpha:g}·borda + {1 - alpha:g}·(mean grade − 1)/9; borda alone if ungraded."
    yield Step(
        "The two blended", (words,), ("candidate", "borda", "mean grade", "score"), tuple(rows)
    )


def normalized(session: Session) -> Iterator[Step]:
    """Each grade in deviations from the mean of its ballot."""
    if bool(session.counted.scores.fell_back is not None and session.counted.scores.fell_back[0]):
        yield Step(
            "Every ballot is flat", ("No ballot tells two candidates apart: Borda decides.",)
        )
        yield _borda_step(session, session.weights)
        return
    count = np.maximum(session.graded.sum(axis=1), 1)
    level = np.where(session.graded, session.grades, 0.0).sum(axis=1) / count
    away = session.grades - level[:, np.newaxis]
    spread = np.sqrt((np.where(session.graded, away, 0.0) ** 2).sum(axis=1) / count)
    flat = spread < 0.001
    z = np.where(flat[:, np.newaxis], 0.0 * away, away / np.where(flat, 1.0, spread)[:, np.newaxis])
    yield session.per_ballot(
        "Standardised grades",
        ["z = (grade − mean) / deviation of that ballot, 0 on a flat one; the score is mean z."],
        [("mean", level), ("deviation", spread)],
        ("z", session.grades, z),
    )


def calibrated(session: Session) -> Iterator[Step]:
    """What is left of each grade once the reviewer's scale and level are taken out."""
    graded = session.graded & (session.weights > 0)[:, np.newaxis]
    grades = np.where(graded, session.grades, np.nan)
    count = graded.sum(axis=1)
    n = np.maximum(count, 1)
    mean = np.where(graded, grades, 0.0).sum(axis=1) / n
    squares = np.where(graded, (grades - mean[:, np.newaxis]) ** 2, 0.0).sum(axis=1)
    freedom = np.maximum(count - 1, 0)
    pooled = squares.sum() / max(int(freedom.sum()), 1)
    own = (SCALE_DF * pooled + squares) / (SCALE_DF + freedom)
    factor = np.sqrt(pooled / own) if pooled > 0 else np.ones(len(n))
    adjusted = grades * factor[:, np.newaxis]
    left = np.where(graded, adjusted - session.score, 0.0)
    offset = np.where(count > 0, left.sum(axis=1) / n, np.nan)
    yield session.per_ballot(
        "Grades with each reviewer's scale and level taken out",
        [
            "factor = panel's spread / reviewer's own, drawn toward the panel's; "
            "level = what grade · factor is on average above the candidates' scores.",
            "A ballot then says grade · factor − level, and the score is the mean of that: "
            "the scores and levels that fit each other (least squares).",
        ],
        [("mean grade", np.where(count > 0, mean, np.nan)), ("factor", factor), ("level", offset)],
        ("adjusted", grades, adjusted - offset[:, np.newaxis]),
    )
