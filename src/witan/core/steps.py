"""Steps of an explanation as plain data, without arrays."""

from dataclasses import dataclass

Cell = str | int | float | None
"""One cell of a table; None: nothing to say."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an explanation: operation and numbers.

    Parameters
    ----------
    title, sentences
        Its heading and text.
    header, rows
        A table, every row as long as the header; may be empty.
    """

    title: str
    sentences: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
