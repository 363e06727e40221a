"""What holds for every test: where it keeps its sessions, and which examples it draws."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A gate says the same of the same code; whoever works on it draws new examples every time.
settings.register_profile("gate", derandomize=True)


@pytest.fixture(scope="session", autouse=True)
def history_of_the_tests(tmp_path_factory) -> Iterator[None]:
    """The history is in a folder of the tests, for processes that they start, too."""
    before = os.environ.get("WITAN_HISTORY")
    os.environ["WITAN_HISTORY"] = str(tmp_path_factory.mktemp("history") / "history.sqlite")
    yield
    if before is None:
        del os.environ["WITAN_HISTORY"]
    else:
        os.environ["WITAN_HISTORY"] = before
