"""Notebooks, executed by a real kernel as a reader's notebook does."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient


@dataclass(slots=True)
class Execution:
    """A notebook after it ran: its outputs by cell, and every message about a display."""

    outputs: list[list[dict[str, Any]]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)

    def displays(self, kind: str) -> list[dict[str, Any]]:
        """The contents of messages of one kind."""
        return [each["content"] for each in self.messages if each["msg_type"] == kind]


class _Client(NotebookClient):
    """A client that remembers what the kernel displays."""

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if "display" in msg["msg_type"]:
            self.messages.append(msg)
        return super().process_message(msg, cell, cell_index)


def execute(notebook: Any, folder: Path) -> Execution:
    """Run a notebook in a folder; a cell that fails raises CellExecutionError."""
    execution = Execution()
    client = _Client(notebook, timeout=60, resources={"metadata": {"path": str(folder)}})
    client.messages = execution.messages
    own = {"IPYTHONDIR": str(folder / ".ipython"), "WITAN_HISTORY": str(folder / "history.sqlite")}
    client.execute(env={**os.environ, **own})
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    execution.outputs = [cell.outputs for cell in cells]
    return execution


def notebook_of(cells: Sequence[str]) -> Any:
    """A notebook of these cells of code."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
