"""Rules that read pairs or rounds, laid open as matrices, lists of majorities and eliminations."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.by_hand.tables import Cell, Session, Step, cell
from witan.core.profile import matchups
from witan.core.rules.elimination import irv_rounds

__all__ = ["fitted", "irv", "kemeny", "ranked_pairs", "schulze", "tournament", "unopened"]

MATRIX_LIMIT = 25
"""Candidates up to which matrices are laid open; more cannot be followed by hand."""


def _matchup_step(session: Session) -> Step:
    counts = matchups(session.profile)
    over = counts.over[:, :, 0]
    cells = [[f"{over[i, j]:g}–{over[j, i]:g}" for j in range(len(over))] for i in range(len(over))]
    words = "Each cell: ballots that place the row above the column, and the reverse."
    return session.matrix("Head to head", [words], cells)


def _matchups(session: Session) -> Iterator[Step]:
    if len(session.names) <= MATRIX_LIMIT:
        yield _matchup_step(session)


def tournament(session: Session) -> Iterator[Step]:
    """Matchups won, drawn and lost."""
    yield from _matchups(session)
    counts = matchups(session.profile)
    margins, met = counts.margins[:, :, 0], counts.met[:, :, 0] > 0
    won, lost = (np.sign(margins) == 1).sum(axis=1), (np.sign(margins) == -1).sum(axis=1)
    played = met.sum(axis=1)
    rows = tuple(
        (
            name,
            int(won[c]),
            int(played[c] - won[c] - lost[c]),
            int(lost[c]),
            cell(session.score[c]),
        )
        for c, name in enumerate(session.names)
    )
    yield Step(
        "Matchups",
        ("score = (won + ½ drawn) / played.",),
        ("candidate", "won", "drawn", "lost", "score"),
        rows,
    )


def schulze(session: Session) -> Iterator[Step]:
    """The strongest chains of majorities."""
    yield from _matchups(session)
    if len(session.names) > MATRIX_LIMIT:
        return
    counts = matchups(session.profile)
    margins = counts.margins[:, :, 0]
    by_votes = session.parameters.get("strength") == "winning_votes"
    path = np.where(margins > 0, counts.over[:, :, 0] if by_votes else margins, 0).astype(float)
    for hops in range(len(path)):
        path = np.maximum(path, np.minimum(path[:, hops, np.newaxis], path[hops]))
    words = [
        "A chain of majorities is as strong as its weakest link; each cell: the strongest chain "
        f"from row to column, in {'ballots for it' if by_votes else 'margins'}.",
        "One is above another if its chain is stronger than the chain back; the score is the share "
        "of rivals that are not above.",
    ]
    if len(session.top) > 1:
        i, j = session.top
        words.append(
            f"{session.names[i]} to {session.names[j]}: {path[i, j]:g}; back: {path[j, i]:g}."
        )
    cells = [[cell(strength) for strength in row] for row in path]
    yield session.matrix("Strongest chains", words, cells)


def ranked_pairs(session: Session) -> Iterator[Step]:
    """The order in which majorities are locked in."""
    yield from _matchups(session)
    margins = matchups(session.profile).margins[:, :, 0]
    pairs = [(i, j) for i, j in np.argwhere(margins > 0).tolist()]
    pairs.sort(key=lambda pair: -float(margins[pair]))
    reach = np.eye(len(margins), dtype=np.bool_)
    rows: list[tuple[Cell, ...]] = []
    for i, j in pairs:
        closes = bool(reach[j, i])
        if not closes:
            reach |= reach[:, i, np.newaxis] & reach[j]
        said = "skipped: it would close a ring" if closes else "locked"
        rows.append((session.names[i], session.names[j], cell(margins[i, j]), said))
    strengths = [float(margins[pair]) for pair in pairs]
    words = ["Majorities from the clearest down; one that would close a ring is skipped."]
    if len(set(strengths)) < len(strengths):
        words.append(
            "Where margins are equal, this list follows seat order; up to six candidates, the rule "
            "follows every order and gives each candidate its best place."
        )
    yield Step("Locking", tuple(words), ("above", "below", "margin", ""), tuple(rows))


def kemeny(session: Session) -> Iterator[Step]:
    """What contradicts the ranking, pair by pair."""
    yield from _matchups(session)
    over = matchups(session.profile).over[:, :, 0]
    details = session.counted.scores.details
    distance, optima = float(details["distance"][0]), int(details["optima"][0])
    placed = [
        c for c in np.argsort(-session.score, kind="stable") if not np.isnan(session.score[c])
    ]
    against = [
        (above, below)
        for at, above in enumerate(placed)
        for below in placed[at + 1 :]
        if over[below, above] > 0
    ]
    rows: list[tuple[Cell, ...]] = [
        (session.names[above], session.names[below], cell(over[below, above]))
        for above, below in against
    ]
    words = [f"No ranking contradicts fewer pairs on ballots than {distance:g}."]
    if optima == 1:
        words.append("Only this one does so few; below, what each of its pairs is contradicted by.")
    else:
        many = f"{optima} rankings do" if optima else "Several rankings do"
        words.append(
            f"{many} so few; the order below is that of their mean places, up to six candidates."
        )
    yield Step("Least contradiction", tuple(words), ("above", "below", "against"), tuple(rows))


def irv(session: Session) -> Iterator[Step]:
    """The rounds of elimination."""
    rows: list[tuple[Cell, ...]] = []
    why = {"none": "", "borda": "tied for fewest, lower Borda", "seat": "tied, later seat"}
    gone: set[int] = set()
    for number, taken in enumerate(irv_rounds(session.profile), 1):
        counts = [None if c in gone else cell(held) for c, held in enumerate(taken.first_places)]
        gone.add(taken.eliminated)
        out = session.names[taken.eliminated]
        rows.append((number, *counts, cell(taken.exhausted), out, why[taken.broken_by]))
    words = (
        "In each round every ballot goes to its highest candidate left, k tied for highest having "
        "1/k each; the fewest goes out.",
    )
    header = ("round", *session.names, "exhausted", "goes out", "")
    yield Step("Rounds", words, header, tuple(rows))


def fitted(session: Session) -> Iterator[Step]:
    """Strengths found by iteration, and what they mean for the first two."""
    yield from _matchups(session)
    prior = float(session.parameters["ghost_wins"])
    words = [
        "The strengths under which these ballots are likeliest, each candidate being credited with "
        f"{prior:g} wins and {prior:g} losses against a ghost. They are found by iteration, and "
        "mean: P(a above b) = 1 / (1 + exp(b − a)).",
    ]
    if len(session.top) > 1:
        i, j = session.top
        above = 1 / (1 + np.exp(session.score[j] - session.score[i]))
        words.append(f"P({session.names[i]} above {session.names[j]}) = {above:.3f}.")
    header = ("candidate", "log-strength", "error")
    yield Step("Log-strengths", tuple(words), header, _scores(session))


def unopened(session: Session) -> Iterator[Step]:
    """The scores of a rule whose arithmetic is not laid open here."""
    yield from _matchups(session)
    yield Step("Scores", (), ("candidate", "score", "error"), _scores(session))


def _scores(session: Session) -> tuple[tuple[Cell, ...], ...]:
    error = session.counted.scores.std_error
    errors: NDArray[Any] = np.full(len(session.names), np.nan) if error is None else error[:, 0]
    return tuple(
        (name, cell(session.score[c]), cell(errors[c])) for c, name in enumerate(session.names)
    )
