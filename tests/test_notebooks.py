"""Notebooks of the documentation run from top to bottom, without a key."""

import nbformat
import pytest

from notebooks import execute
from pages import ROOT, links

FOLDER = ROOT / "docs" / "notebooks"
PAGE = ROOT / "docs" / "tutorials" / "notebooks.md"
NOTEBOOKS = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}

SHOWS = {
    "ask": ("text/html", 'srcdoc="'),
    "judge-texts": ("text/markdown", "passed: 8.7"),
    "judge-ballots": ("text/markdown", "alpha is ahead"),
    "compare-models": ("text/markdown", "people's ballots"),
    "gate": ("text/markdown", "too close to call"),
    "worth-it": ("text/markdown", "The council beats its best member"),
    "people-as-the-measure": ("text/markdown", "Corrected by people's votes on 40 rows"),
    "spend-where-it-decides": ("text/markdown", "12 of 12 rows complete"),
}
"""A notebook to what one of its cells displays."""

FAST = "ask"
"""The notebook that every run executes: each starts a kernel, some seconds on a busy machine."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == FAST else pytest.mark.slow) for name in SHOWS]
)
def test_a_notebook_runs_and_shows_its_results(name, tmp_path):
    """Every cell succeeds, in a folder of its own; results display their reports."""
    kind, part = SHOWS[name]

    execution = execute(nbformat.read(NOTEBOOKS[name], as_version=4), tmp_path)

    shown = [
        output["data"].get(kind) or ""
        for outputs in execution.outputs
        for output in outputs
        if "data" in output
    ]
    assert any(part in text for text in shown)


def test_every_notebook_is_tested_and_linked():
    """The page of notebooks links to each, and each is executed above."""
    linked = {target for target in links(PAGE) if target.endswith(".ipynb")}

    assert linked == {f"../notebooks/{path.name}" for path in NOTEBOOKS.values()}
    assert {*NOTEBOOKS} == {*SHOWS}


def test_notebooks_are_stored_without_outputs():
    """What a notebook shows comes from running it."""
    for path in NOTEBOOKS.values():
        for cell in nbformat.read(path, as_version=4).cells:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None
