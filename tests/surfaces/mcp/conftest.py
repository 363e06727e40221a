"""The event loop of the clients of MCP."""

import pytest


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The event loop of the client."""
    return "asyncio"
