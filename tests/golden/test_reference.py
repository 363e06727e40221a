"""The reference page equals the declarations."""

from pathlib import Path

from reference_page import reference_page

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"


def test_the_reference_page_equals_the_declarations(write_golden):
    """After a change of a declaration: `pytest tests/golden --write-golden`."""
    if write_golden:
        PAGE.write_text(reference_page(), encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8") == reference_page()
