"""Golden files: compared by default, written with `--write-golden`."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files instead of comparing them."""
    parser.addoption("--write-golden", action="store_true", help="Write the golden files anew.")


@pytest.fixture
def write_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written."""
    written: bool = request.config.getoption("--write-golden", default=False)
    return written
