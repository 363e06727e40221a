"""Random bytes from a seed, the same on every machine."""

from collections.abc import Sequence
from hashlib import shake_256

from witan.errors import InvalidParameter

FIRST_BYTES = 256
"""Initial number of bytes to draw, enough for the sheets of most councils."""

SHEETS, MIRRORS, LABEL_MAPS, FENCES, BACKOFF = range(5)
"""Purposes that each draw different bytes from the same seed."""


class RandomStream:
    """Random bytes for a purpose and a seed, and draws from them.

    The bytes are the SHAKE-256 hash of the numbers in decimal, so they are the same on every
    machine and in every version of Python and NumPy. They are not secret: anyone who knows or
    guesses the seed can compute them. The seeds (7,) and (7, 0) differ.

    Parameters
    ----------
    purpose
        `SHEETS`, `MIRRORS`, `LABEL_MAPS`, `FENCES` or `BACKOFF`.
    seed
        Any number of non-negative integers.

    Raises
    ------
    InvalidParameter
        If a number of the seed is negative or not an integer.

    References
    ----------
    NIST, "SHA-3 standard: permutation-based hash and extendable-output functions", FIPS 202, 2015.
    """

    def __init__(self, purpose: int, seed: Sequence[int]) -> None:
        if {*map(type, seed)} - {int} or min(seed, default=0) < 0:
            raise InvalidParameter("seed", tuple(seed), "non-negative integers")
        self._shake = shake_256(" ".join(map(str, (purpose, *seed))).encode())
        self._bytes = self._shake.digest(FIRST_BYTES)
        self._position = 0

    def take(self, n: int) -> bytes:
        """Draw the next n bytes."""
        start, self._position = self._position, self._position + n
        if self._position > len(self._bytes):
            # Each call hashes from the start, so request twice as much.
            self._bytes = self._shake.digest(2 * self._position)
        return self._bytes[start : self._position]

    def permutation(self, n: int) -> list[int]:
        """Draw an order of the numbers from 0 to n−1."""
        keys = self.take(8 * n)
        return sorted(range(n), key=lambda at: keys[8 * at : 8 * at + 8])

    def coin(self) -> bool:
        """Draw true or false."""
        return self.take(1)[0] % 2 == 1

    def fraction(self) -> float:
        """Draw uniformly from the multiples of 2⁻⁵³ in [0, 1)."""
        return (int.from_bytes(self.take(8)) >> 11) * 2.0**-53
