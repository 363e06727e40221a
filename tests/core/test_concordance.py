"""Kendall's W of a batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elections import mean_ranks
from witan.core.profile import Profile
from witan.core.stats.agreement import kendall_w, kendall_ws


class TestConcordance:
    """The same as session by session."""

    @given(seed=st.integers(0, 10_000), gaps=st.booleans())
    @settings(max_examples=60, deadline=None)
    def test_it_is_that_of_each_session(self, seed, gaps):
        """With ties and gaps, and candidates that nobody ranks."""
        rng = np.random.default_rng(seed)
        shape = (int(rng.integers(1, 6)), int(rng.integers(1, 6)), 7)
        keys = rng.integers(0, 4, shape).astype(float)
        if gaps:
            keys[rng.random(shape) < 0.3] = np.nan
        keys[:, rng.random(shape[1]) < 0.2] = np.nan
        ranks = mean_ranks(keys)
        profile = Profile.from_ranks(ranks)

        found = kendall_ws(profile)

        for session in range(shape[2]):
            held = ranks[:, :, session]
            expected = kendall_w(held[:, ~np.isnan(held).all(axis=0)])
            assert found[session] == (None if expected is None else pytest.approx(expected))
