"""Comparisons of models as small integers, and the sums for ratings.

Columns of text become codes: Arrow and pandas columns by vectorised operations, others by one
dictionary lookup per cell.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import compress, count
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.errors import InvalidParameter

TIE, FIRST, SECOND = 0, 1, 2

OUTCOMES: Mapping[str | int, int] = MappingProxyType(
    {"tie": TIE, "first": FIRST, "second": SECOND, TIE: TIE, FIRST: FIRST, SECOND: SECOND}
)
EXPECTED_OUTCOME = "first, second or tie (or 1, 2 or 0)"

Codes = NDArray[np.integer[Any]]
Column = Collection[Any]
Index = defaultdict[Any, int]

CODE_ROWS = 1 << 17
"""Comparisons counted at once, so that their keys fit in the cache."""

DENSE_MODELS = 128
"""Most models for which dense sums of session gradients are faster than sparse ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """N comparisons of two models each.

    Parameters
    ----------
    models : tuple of str
        Names by code.
    first, second : integer arrays, shape (N,)
        Codes of the two models, never equal; `first` was shown first.
    outcome : integer array, shape (N,)
        `FIRST` (1), `SECOND` (2) or `TIE` (0).
    session : integer array, shape (N,), optional
        Codes of the comparisons' sessions, 0 or more. Comparisons of one session are not treated as
        independent. Sorted codes are counted faster.

    Raises
    ------
    InvalidParameter
        If columns differ in length or type, a code has no name, or a model meets itself.
    """

    models: tuple[str, ...]
    first: Codes
    second: Codes
    outcome: Codes
    session: Codes | None = None

    def __repr__(self) -> str:
        return f"<Comparisons: {len(self.first)} between {len(self.models)} models>"

    def __post_init__(self) -> None:
        if len(set(self.models)) < len(self.models):
            raise InvalidParameter("models", self.models, "names that differ")
        limits = {"first": len(self.models), "second": len(self.models), "outcome": 3}
        for name, limit in limits.items():
            self._check(name, getattr(self, name), limit)
        if self.session is not None:
            self._check("session", self.session, np.iinfo(np.int32).max)
        itself = self.first == self.second
        if itself.any():
            row = int(itself.argmax())
            name = self.models[self.first[row]]
            raise InvalidParameter(f"second[{row}]", name, "another model than the first")

    def _check(self, name: str, codes: Codes, limit: int) -> None:
        """Refuse a column without one code below `limit` per comparison."""
        if codes.ndim != 1 or not np.issubdtype(codes.dtype, np.integer):
            raise InvalidParameter(name, f"{codes.dtype}{codes.shape}", "a column of integer codes")
        if len(codes) != len(self.first):
            raise InvalidParameter(name, f"{len(codes)} rows", f"{len(self.first)}, as first has")
        if len(codes) and not (codes.min() >= 0 and codes.max() < limit):
            row = int(((codes < 0) | (codes >= limit)).argmax())
            raise InvalidParameter(f"{name}[{row}]", int(codes[row]), f"0 to {limit - 1}")

    def __len__(self) -> int:
        return len(self.first)

    @property
    def n_sessions(self) -> int | None:
        """Number of different sessions; None without session codes."""
        sizes = self.session_sizes
        return None if sizes is None else len(sizes)

    @property
    def session_sizes(self) -> NDArray[np.float64] | None:
        """Number of comparisons of each session; None without session codes."""
        codes = self.session
        if codes is None:
            return None
        if (codes[1:] >= codes[:-1]).all():
            sizes = np.diff(np.flatnonzero(np.diff(codes, prepend=-1)), append=len(codes))
        else:
            sizes = np.bincount(codes)
        return sizes[sizes > 0].astype(np.float64)


def encode(
    first: Column, second: Column, outcome: Column, session: Column | None = None
) -> Comparisons:
    """Encode columns of text as comparisons.

    Parameters
    ----------
    first, second : columns of str
        Names of the two models: lists, numpy arrays, pandas columns, Arrow arrays, or
        anything else with a length that can be iterated.
    outcome : column of str or int
        ``first``, ``second`` or ``tie``; or 1, 2 and 0 in their place.
    session : column of str or int, optional
        The session of each comparison.

    Returns
    -------
    Comparisons
        Models in alphabetical order; sessions in the order of first appearance, unless they are
        whole numbers small enough to stand for themselves.

    Raises
    ------
    InvalidParameter
        If columns differ in length, a name is no text, an outcome is unknown, or a model meets
        itself; the message names the value and the row.
    """
    n_rows = len(first)
    columns = {"second": second, "outcome": outcome, "session": session}
    for name, column in columns.items():
        if column is not None and len(column) != n_rows:
            raise InvalidParameter(name, f"{len(column)} rows", f"{n_rows}, as first has")
    codes, names = {}, {}
    for name, column in (("first", first), ("second", second)):
        codes[name], names[name] = _number(name, column)
        _check_names(name, codes[name], names[name])
    models = sorted({*names["first"], *names["second"]})
    place = {model: number for number, model in enumerate(models)}
    smallest = np.int16 if len(models) <= np.iinfo(np.int16).max else np.int32
    return Comparisons(
        models=tuple(models),
        first=_replace(codes["first"], [place[model] for model in names["first"]], smallest),
        second=_replace(codes["second"], [place[model] for model in names["second"]], smallest),
        outcome=_encode_outcomes(outcome),
        session=None if session is None else _encode_sessions(session),
    )


def _check_names(name: str, codes: Codes, names: list[Any]) -> None:
    for code, value in enumerate(names):
        if not isinstance(value, str):
            row = int((codes == code).argmax())
            raise InvalidParameter(f"{name}[{row}]", value, "the name of a model")


def _replace(codes: Codes, values: list[int], dtype: type[np.signedinteger[Any]]) -> Codes:
    """Replace each code by its value, block by block.

    Blocks limit memory, because `take` converts its indices.
    """
    replaced = np.empty(len(codes), dtype=dtype)
    table = np.array(values, dtype=dtype)
    for start in range(0, len(codes), CODE_ROWS):
        part = slice(start, start + CODE_ROWS)
        table.take(codes[part], out=replaced[part], mode="clip")
    return replaced


def _encode_outcomes(column: Column) -> Codes:
    numbers = _whole_numbers(column)
    if numbers is not None and len(numbers) and numbers.min() >= 0 and numbers.max() <= SECOND:
        return numbers.astype(np.int8)
    codes, values = _number("outcome", column)
    for code, value in enumerate(values):
        known = isinstance(value, str | int | np.integer) and not isinstance(value, bool)
        if not known or value not in OUTCOMES:
            row = int((codes == code).argmax())
            raise InvalidParameter(f"outcome[{row}]", value, EXPECTED_OUTCOME)
    return _replace(codes, [OUTCOMES[value] for value in values], np.int8)


def _encode_sessions(column: Column) -> NDArray[np.int32]:
    numbers = _whole_numbers(column)
    if numbers is None:
        codes, _ = _number("session", column)
    elif len(numbers) and numbers.min() >= 0 and numbers.max() < 4 * len(numbers):
        codes = numbers
    else:
        _, codes = np.unique(numbers, return_inverse=True)
    return codes.astype(np.int32)


def _whole_numbers(column: Any) -> NDArray[np.integer[Any]] | None:
    """Return a column of whole numbers as an array; None: another column."""
    if not hasattr(column, "__array__") or np.asarray(column[:1]).dtype.kind not in "iu":
        return None
    numbers = np.asarray(column)
    return numbers if numbers.dtype.kind in "iu" else None


def _number(name: str, column: Any) -> tuple[Codes, list[Any]]:
    """Number a column's different values: codes by cell, values by code.

    Arrow and pandas each have an operation on a whole column for it; neither is imported.
    """
    if hasattr(column, "dictionary_encode"):
        return _number_arrow(name, column)
    if hasattr(column, "factorize"):
        if column.dtype == np.object_:  # plain cells iterate fastest
            return _number(name, column.to_numpy())
        codes, values = column.factorize()
        _check_presence(name, int((codes < 0).sum()))
        return codes, list(values)
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        column = column.tolist()  # iterating over numpy is slow
    index: Index = defaultdict(count().__next__)
    return _look_up(name, column, index), list(index)


def _check_presence(name: str, n_missing: int) -> None:
    if n_missing:
        raise InvalidParameter(name, f"{n_missing} nulls", "a value in every row")


def _number_arrow(name: str, column: Any) -> tuple[Codes, list[Any]]:
    """As `_number` for an Arrow array, plain, chunked or dictionary-encoded."""
    _check_presence(name, column.null_count)
    encoded = column.dictionary_encode()
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.unify_dictionaries().combine_chunks()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    values = encoded.dictionary.to_pylist()
    if encoded.type == column.type:  # its own dictionary may have more values than its cells
        used = np.bincount(codes, minlength=len(values)) > 0
        codes = _replace(codes, (np.cumsum(used) - 1).tolist(), np.int32)
        values = list(compress(values, used))
    return codes, values


def _look_up(name: str, column: Column, index: Index) -> Codes:
    try:
        # Bytes are filled twice as fast as an array, but hold the first 256 numbers only.
        return np.frombuffer(bytearray(map(index.__getitem__, column)), dtype=np.uint8)
    except TypeError as error:
        raise InvalidParameter(name, str(error), "a column of text") from error
    except ValueError:
        return np.fromiter(map(index.__getitem__, column), dtype=np.int32, count=len(column))


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """Comparisons by outcome and ordered pair: row shown first, column shown second.

    Parameters
    ----------
    first, second, tie : arrays, shape (M, M)
        Number or weight of comparisons that the first won, the second won, or neither.
    """

    first: NDArray[Any]
    second: NDArray[Any]
    tie: NDArray[Any]

    @property
    def wins(self) -> NDArray[Any]:
        """``wins[i, j]``: number of i's wins over j in either order."""
        return np.asarray(self.first + self.second.T)

    @property
    def ties(self) -> NDArray[Any]:
        """``ties[i, j]``: number of ties between i and j."""
        return np.asarray(self.tie + self.tie.T)

    @property
    def points(self) -> NDArray[np.float64]:
        """Wins of i over j, (M, M), a tie half each way."""
        return np.asarray(self.wins + 0.5 * self.ties)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Models with comparisons, shape (M,)."""
        return np.asarray((self.points + self.points.T).any(axis=1))

    def components(self, connection: Literal["weak", "strong"]) -> NDArray[np.int64]:
        """Components of the graph of points, numbered by first appearance, shape (M,).

        Comparisons join weak components; chains of points won both ways join strong ones.
        """
        edges = self.points > 0
        label = np.empty(len(edges), dtype=np.int64)
        for component in _strong(edges) if connection == "strong" else _reach(edges | edges.T):
            label[component] = min(component)
        return np.unique(label, return_inverse=True)[1]


def _strong(edges: NDArray[np.bool_]) -> list[list[int]]:
    """Strongly connected components, after Kosaraju and Sharir (1981)."""
    finished = [node for tree in _reach(edges) for node in tree]
    return _reach(edges.T, finished[::-1])


def _reach(edges: NDArray[np.bool_], starts: Iterable[int] | None = None) -> list[list[int]]:
    """Nodes reached by each start and no earlier one, by depth.

    A node comes after its successors.

    Every node is a start, in order, unless others are given.
    """
    waiting = np.ones(len(edges), dtype=np.bool_)
    trees: list[list[int]] = []
    for start in range(len(edges)) if starts is None else starts:
        path, tree = [start] if waiting[start] else [], list[int]()
        waiting[start] = False
        while path:
            ahead = edges[path[-1]] & waiting
            after = int(ahead.argmax())
            if ahead[after]:
                waiting[after] = False
                path.append(after)
            else:
                tree.append(path.pop())
        if tree:
            trees.append(tree)
    return trees


def count_pairs(comparisons: Comparisons) -> PairCounts:
    """Count comparisons by outcome and ordered pair of models, (M, M)."""
    n_models = len(comparisons.models)
    cells = 3 * n_models * n_models
    total = np.zeros(cells, dtype=np.int64)
    rows = max(CODE_ROWS, cells)
    for start in range(0, len(comparisons), rows):
        part = slice(start, start + rows)
        total += np.bincount(_cells(comparisons, part), minlength=cells)
    table = total.reshape(3, n_models, n_models)
    return PairCounts(first=table[FIRST], second=table[SECOND], tie=table[TIE])


def _cells(comparisons: Comparisons, part: slice) -> NDArray[np.int32]:
    """Find each comparison's cell in a flattened table of (outcome, first, second)."""
    n_models = len(comparisons.models)
    cell = comparisons.outcome[part].astype(np.int32)
    cell *= n_models
    cell += comparisons.first[part]
    cell *= n_models
    cell += comparisons.second[part]
    return cell


def session_squares(comparisons: Comparisons, residual: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over sessions the outer square of the session's gradient.

    Σ_s g_s g_sᵀ with g_s = Σ_{n in s} residual[outcome_n, first_n, second_n] (e_first − e_second).

    Parameters
    ----------
    residual : float array, shape (3, M, M)
        What a comparison adds to the gradient of its first model and subtracts from that of its
        second.
    """
    session = comparisons.session
    if session is None:
        raise InvalidParameter("session", None, "comparisons with sessions")
    value = np.empty(len(comparisons))
    for start in range(0, len(comparisons), CODE_ROWS):
        part = slice(start, start + CODE_ROWS)
        residual.ravel().take(_cells(comparisons, part), out=value[part], mode="clip")
    if len(comparisons.models) > DENSE_MODELS or (session[1:] < session[:-1]).any():
        return _sparse_squares(comparisons, session, value)
    return _dense_squares(comparisons, session, value)


def _dense_squares(
    comparisons: Comparisons, session: Codes, value: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute `session_squares` of sorted sessions and few models."""
    n_models = len(comparisons.models)
    squares = np.zeros((n_models, n_models))
    step = max(1, CODE_ROWS // n_models)
    edges = np.arange(int(session[0]), int(session[-1]) + step + 1, step)
    starts = np.searchsorted(session, edges)
    for edge, start, stop in zip(edges, starts, starts[1:], strict=False):
        part = slice(start, stop)
        row = (session[part] - edge) * np.int64(n_models)
        size = step * n_models
        gradient = np.bincount(row + comparisons.first[part], value[part], minlength=size)
        gradient -= np.bincount(row + comparisons.second[part], value[part], minlength=size)
        by_session = gradient.reshape(step, n_models)
        squares += by_session.T @ by_session
    return squares


def _sparse_squares(
    comparisons: Comparisons, session: Codes, value: NDArray[np.float64]
) -> NDArray[np.float64]:
    """As `session_squares` in any order and for any number of models."""
    # Imported here because it takes longer than the rest of start-up.
    from scipy.sparse import coo_array

    rows = np.concatenate([session, session]).astype(np.int32)
    columns = np.concatenate([comparisons.first, comparisons.second]).astype(np.int32)
    shape = (int(session.max()) + 1, len(comparisons.models))
    gradient = coo_array((np.concatenate([value, -value]), (rows, columns)), shape=shape).tocsr()
    squares: NDArray[np.float64] = (gradient.T @ gradient).toarray()
    return squares
