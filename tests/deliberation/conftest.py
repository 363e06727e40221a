"""The event loops on which the deliberation is tested."""

import pytest


@pytest.fixture
def anyio_backend() -> object:
    """Run on asyncio; what waits, cancels or throttles says that it runs on trio, too."""
    return "asyncio"
