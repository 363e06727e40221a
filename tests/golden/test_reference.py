"""The reference page is what the declarations say."""

from pathlib import Path

from reference_page import reference_page

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"


def test_the_reference_page_is_made_from_the_declarations(write_golden):
    """Whoever changes a declaration writes the page anew: `pytest tests/golden --write-golden`."""
    if write_golden:
        PAGE.write_text(reference_page(), encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8") == reference_page()
