"""Random bytes drawn from a seed, and what is made of them."""

from collections import Counter
from hashlib import shake_256

import pytest

from witan.core.random_stream import BACKOFF, FENCES, LABEL_MAPS, MIRRORS, SHEETS, RandomStream
from witan.errors import InvalidParameter


class TestBytes:
    """The bytes are SHAKE-256 of the purpose and the seed."""

    def test_they_are_those_of_shake_256(self):
        """However they are taken: one by one, many at once, or beyond what was drawn at first."""
        rng = RandomStream(SHEETS, (7, 1))

        taken = b"".join(rng.take(n) for n in (1, 0, 300, 7, 2000, 16))

        assert taken == shake_256(b"0 7 1").digest(2324)

    @pytest.mark.parametrize(("seed", "other"), [((7,), (7, 0)), ((1, 11), (11, 1)), ((), (0,))])
    def test_other_seeds_draw_other_bytes(self, seed, other):
        """A trailing zero and the order of the numbers count."""
        assert RandomStream(SHEETS, seed).take(16) != RandomStream(SHEETS, other).take(16)

    def test_other_purposes_draw_other_bytes(self):
        """Five purposes share a seed, and no bytes."""
        purposes = (SHEETS, MIRRORS, LABEL_MAPS, FENCES, BACKOFF)

        assert len({RandomStream(each, (7,)).take(16) for each in purposes}) == 5

    @pytest.mark.parametrize("seed", [(-1,), (7, -1), (True,), (1.0,), ("7",), (None,)])
    def test_a_seed_is_of_non_negative_integers(self, seed):
        """Anything else is refused: True, say, equals 1, and would draw other bytes."""
        with pytest.raises(InvalidParameter, match="expected non-negative integers"):
            RandomStream(SHEETS, seed)


class TestDraws:
    """Draws are uniform."""

    def test_every_order_is_as_likely(self):
        """Of 6,000 orders of three, each of the six is drawn 1,000 times, give or take 120."""
        rng = RandomStream(SHEETS, (1,))
        counts = Counter(tuple(rng.permutation(3)) for _ in range(6000))

        assert len(counts) == 6
        assert max(abs(count - 1000) for count in counts.values()) < 120  # four deviations

    def test_an_order_of_nothing_is_empty(self):
        """And that of one number is the number."""
        rng = RandomStream(SHEETS, (1,))

        assert (rng.permutation(0), rng.permutation(1)) == ([], [0])

    def test_a_coin_is_fair(self):
        """Of 10,000 throws half are true, give or take 200."""
        rng = RandomStream(SHEETS, (2,))

        assert abs(sum(rng.coin() for _ in range(10_000)) - 5000) < 200  # four deviations

    def test_fractions_fill_the_unit_interval(self):
        """Each tenth of it has a tenth of 10,000 numbers, give or take 120; none reaches one."""
        rng = RandomStream(BACKOFF, (3,))
        drawn = [rng.fraction() for _ in range(10_000)]

        assert 0 <= min(drawn) < max(drawn) < 1
        counts = Counter(int(10 * each) for each in drawn)
        assert max(abs(counts[tenth] - 1000) for tenth in range(10)) < 120  # four deviations
