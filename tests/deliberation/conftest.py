"""Every test of the deliberation runs on two event loops."""

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param
