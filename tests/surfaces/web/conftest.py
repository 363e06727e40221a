"""Fixtures for tests of the page: a server, a browser, and a folder for screenshots."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browsers import Watched, chromium
from desks import Desk, desk

if TYPE_CHECKING:
    from page_server import LiveServer


@pytest.fixture(scope="module")
def at_desk(tmp_path_factory) -> Iterator[Desk]:
    """One server per test module."""
    with desk(tmp_path_factory.mktemp("desk")) as held:
        yield held


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """One browser per test module."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def server() -> Iterator["LiveServer"]:
    """A server of one session, as the test tells it."""
    from page_server import serving

    with serving() as held:
        yield held


@pytest.fixture(scope="module")
def shots() -> Path | None:
    """The folder for screenshots, TEST_SCREENSHOTS; without it none are taken."""
    named = os.environ.get("TEST_SCREENSHOTS")
    return Path(named) if named else None


@pytest.fixture
def window(chrome, at_desk, shots) -> Iterator[Callable[..., Watched]]:
    """A factory of windows that fail on any error or request to another host."""
    opened: list[Watched] = []

    def new(**options: Any) -> Watched:
        opened.append(Watched(chrome, at_desk.url, shots, **options))
        return opened[-1]

    yield new
    for each in opened:
        each.context.close()
    assert [problem for each in opened for problem in each.problems] == []
