"""Sheets: what one reviewer sees, under blind labels and in a balanced order.

Reviewers favour what they read first, or last: over the sheets of a session every candidate
stands at every position equally often, as far as numbers allow.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from witan.core.balance import balanced_orders
from witan.errors import UnknownName

__all__ = ["Sheet", "draw_nonce", "draw_sheets", "label_map", "mirror"]

DRAWN, MIRRORED, MAPPED, FENCED = 0, 1, 2, 3
"""One seed serves all four draws, and none of them repeats another's nonce."""

NONCE_BYTES = 16


@dataclass(frozen=True, slots=True)
class Sheet:
    """The candidates as one reviewer sees them.

    Parameters
    ----------
    reviewer
        Whose sheet it is.
    candidates
        In the order in which they are shown.
    labels
        The blind name of each, in the same order: A, B, C …
    nonce
        Marks the fences of this sheet; nothing inside can know it.
    """

    reviewer: str
    candidates: tuple[str, ...]
    labels: tuple[str, ...]
    nonce: str

    @property
    def positions(self) -> Mapping[str, int]:
        """Candidate to its place on the sheet, 1-based."""
        return {candidate: place for place, candidate in enumerate(self.candidates, start=1)}

    def candidate(self, label: str) -> str | None:
        """Who stands under exactly this label; None: nobody on this sheet."""
        known = zip(self.labels, self.candidates, strict=True)
        return next((candidate for name, candidate in known if name == label), None)

    def label(self, candidate: str) -> str:
        """The blind name of a candidate.

        Raises
        ------
        UnknownName
            If the candidate is not on this sheet.
        """
        if candidate not in self.candidates:
            raise UnknownName("candidate", candidate, self.candidates)
        return self.labels[self.candidates.index(candidate)]


def draw_sheets(
    reviewers: Sequence[str],
    candidates: Sequence[str],
    seed: Sequence[int],
    *,
    hidden: Mapping[str, str | Collection[str]],
) -> dict[str, Sheet]:
    """Draw one sheet per reviewer, in balanced order.

    Every candidate stands at every position equally often: exactly where as many reviewers as
    candidates see all of them or each hide another one, else with counts that differ by at most
    one wherever such sheets exist. In the first two cases nobody stands directly before the same
    rival twice; but in an odd council that sees everything some pairs are neighbours twice.

    Parameters
    ----------
    seed
        Non-negative integers; the same seed draws the same sheets anywhere.
    hidden
        Reviewer to the candidate, or the candidates, that it must not see; a reviewer that is not
        named sees all, as does one whose candidate does not stand.

    Returns
    -------
    dict of str to Sheet
        In the order of the reviewers.
    """
    rng = _generator(seed, DRAWN)
    number = {candidate: at for at, candidate in enumerate(candidates)}
    hides = [
        [number[c] for c in _several(hidden.get(name, ())) if c in number] for name in reviewers
    ]
    rows = balanced_orders(hides, len(candidates), rng)
    return {
        name: _sheet(name, [candidates[at] for at in row], rng)
        for name, row in zip(reviewers, rows, strict=True)
    }


def mirror(sheet: Sheet, seed: Sequence[int]) -> Sheet:
    """The same candidates in reverse order, under the labels of their new places."""
    return _sheet(sheet.reviewer, sheet.candidates[::-1], _generator(seed, MIRRORED))


def label_map(reader: str, candidates: Sequence[str], seed: Sequence[int]) -> Sheet:
    """Draw one sheet in random order, for a reader who casts no ballot."""
    rng = _generator(seed, MAPPED)
    return _sheet(reader, [candidates[at] for at in rng.permutation(len(candidates))], rng)


def draw_nonce(seed: Sequence[int]) -> str:
    """Draw a nonce for fences outside of any sheet; it tells nothing of the seed."""
    return _generator(seed, FENCED).bytes(NONCE_BYTES).hex()


def _several(names: str | Collection[str]) -> Collection[str]:
    return [names] if isinstance(names, str) else names


def _generator(seed: Sequence[int], purpose: int) -> np.random.Generator:
    # To a seed sequence [7] and [7, 0] are the same, so the length is told apart beside it.
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, len(seed))))


def _sheet(reviewer: str, candidates: Sequence[str], rng: np.random.Generator) -> Sheet:
    labels = tuple(_label(place) for place in range(1, len(candidates) + 1))
    return Sheet(reviewer, tuple(candidates), labels, rng.bytes(NONCE_BYTES).hex())


def _label(place: int) -> str:
    """A to Z, then AA, AB …, as columns are lettered."""
    label = ""
    while place:
        place, letter = divmod(place - 1, 26)
        label = chr(ord("A") + letter) + label
    return label
