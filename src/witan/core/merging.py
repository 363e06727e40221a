"""Models that changed their name: sums of the old name added to those of the new one."""

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.core.sums import (
    AnswerSums,
    BallotSums,
    GradingSums,
    HumanSums,
    LengthSums,
    MatchupSums,
    Names,
    PositionSums,
    ReviewerSums,
    StandingSums,
    VoteSums,
)
from witan.errors import InvalidParameter

__all__ = ["merge", "places", "present_name", "renamed", "renamed_codes"]

Codes = NDArray[np.int64]

Sums = TypeVar(
    "Sums",
    AnswerSums,
    BallotSums,
    GradingSums,
    HumanSums,
    LengthSums,
    MatchupSums,
    PositionSums,
    ReviewerSums,
    StandingSums,
    VoteSums,
)

MODELS = frozenset({"model", "first", "second", "reviewer", "other"})
"""Columns that hold codes of models, or of reviewers, which are models too."""


def places(names: Names, *columns: Codes) -> tuple[tuple[str, ...], list[Codes]]:
    """Spell out columns of codes.

    Returns
    -------
    tuple of str
        The names that occur, in alphabetical order, each once.
    list of integer arrays
        For each column, the place of every cell's name among these. Codes of one name are one
        model.
    """
    codes = np.unique(np.concatenate([np.unique(column) for column in columns]))
    spelt = [names[code] for code in codes.tolist()]
    order = sorted(set(spelt))
    where = {name: place for place, name in enumerate(order)}
    place = np.array([where[name] for name in spelt], dtype=np.int64)
    return tuple(order), [place[np.searchsorted(codes, column)] for column in columns]


def present_name(name: str, aliases: Mapping[str, str]) -> str:
    """Follow a name through old name → new name to the name it has now.

    Raises
    ------
    InvalidParameter
        If the names lead back to one of them; the message shows the way round.
    """
    path = [name]
    while path[-1] in aliases and aliases[path[-1]] != path[-1]:
        path.append(aliases[path[-1]])
        if path[-1] in path[:-1]:
            way = " → ".join(path[path.index(path[-1]) :])
            raise InvalidParameter("aliases", way, "old names that lead to one new name each")
    return path[-1]


def renamed_codes(aliases: Mapping[str, str], names: Names) -> Mapping[int, int]:
    """Code of an old name → code of the name it has now, where they differ.

    A new name that the history does not know yet takes the code of the alphabetically first of
    its old names.

    Raises
    ------
    InvalidParameter
        If aliases run in a circle, wherever it stands.
    """
    for name in aliases:
        present_name(name, aliases)
    code_of = {name: code for code, name in sorted(names.of.items(), reverse=True)}
    for name in sorted(code_of):
        code_of.setdefault(present_name(name, aliases), code_of[name])
    changed = {
        code: code_of[present_name(name, aliases)]
        for code, name in names.of.items()
        if code != code_of[present_name(name, aliases)]
    }
    return MappingProxyType(changed)


def renamed(names: Names, aliases: Mapping[str, str]) -> Names:
    """Names as they are now, for every code there was."""
    return Names({code: present_name(name, aliases) for code, name in names.of.items()})


def merge(sums: Sums, aliases: Mapping[str, str], names: Names) -> Sums:
    """Give what old names earned to the new ones.

    Rows of a key may then stand apart, as they may in any sums. Rows that pair two models which
    are now one are dropped: nobody meets itself. Sessions in which both names had a seat count
    for the one model twice, for sums do not tell them from others. What was an own vote stays one
    and nothing else becomes one.

    Parameters
    ----------
    sums
        A table with models or reviewers.
    aliases
        Old name → new name; chains are followed. Names that the history does not know are no
        error: a configuration may serve many histories.
    names
        As the history has them. To read the result, use ``renamed(names, aliases)``.

    Raises
    ------
    InvalidParameter
        If aliases run in a circle.
    """
    changed = renamed_codes(aliases, names)
    if not changed:
        return sums
    old = np.array(sorted(changed), dtype=np.int64)
    new = np.array([changed[code] for code in sorted(changed)], dtype=np.int64)
    columns = {field.name: getattr(sums, field.name) for field in fields(sums)}
    merged = dict(columns)
    for column in MODELS & columns.keys():
        held = columns[column]
        place = np.minimum(np.searchsorted(old, held), len(old) - 1)
        merged[column] = np.where(old[place] == held, new[place], held)
    keep = np.ones(len(sums.bucket), dtype=np.bool_)
    for one, two in (("first", "second"), ("reviewer", "other")):
        if two in columns:
            keep &= (columns[one] == columns[two]) | (merged[one] != merged[two])
    return replace(sums, **{name: column[keep] for name, column in merged.items()})
