"""The event loops on which the deliberation is tested."""

import pytest


@pytest.fixture
def anyio_backend() -> object:
    """Run on asyncio; tests that wait, cancel or throttle say that they run on trio too."""
    return "asyncio"
