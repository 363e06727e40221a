"""What tests of the page share: a server with a history, a browser, and a place for pictures."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browsers import Watched, chromium
from desks import Desk, desk


@pytest.fixture(scope="module")
def at_desk(tmp_path_factory) -> Iterator[Desk]:
    """One server for the tests of a module."""
    with desk(tmp_path_factory.mktemp("desk")) as held:
        yield held


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """One browser for the tests of a module."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def shots(tmp_path_factory) -> Path:
    """Where pictures are kept: in the folder that TEST_SCREENSHOTS names, or nowhere for long."""
    named = os.environ.get("TEST_SCREENSHOTS")
    return Path(named) if named else tmp_path_factory.mktemp("shots")


@pytest.fixture
def window(chrome, at_desk, shots) -> Iterator[Callable[..., Watched]]:
    """Opens windows, in which nothing may go wrong and from which nothing may leave the machine."""
    opened: list[Watched] = []

    def new(**options: Any) -> Watched:
        opened.append(Watched(chrome, at_desk.url, shots, **options))
        return opened[-1]

    yield new
    for each in opened:
        each.context.close()
    assert [problem for each in opened for problem in each.problems] == []
