"""Event loops for tests: both, or one whose clock jumps over every wait."""

import pytest
from trio.testing import MockClock

BOTH_LOOPS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def jumping_loop() -> tuple[str, dict[str, object]]:
    """Trio, with a clock that jumps over the time in which nothing happens."""
    return "trio", {"clock": MockClock(autojump_threshold=0)}
