"""An event loop for tests, whose clock jumps over every wait."""

from trio.testing import MockClock


def jumping_loop() -> tuple[str, dict[str, object]]:
    """Trio, with a clock that jumps over the time in which nothing happens."""
    return "trio", {"clock": MockClock(autojump_threshold=0)}
