"""JSON of results: unrounded numbers, null for unknown, outcome fields."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from datetime import datetime
from functools import cache
from inspect import cleandoc
from itertools import islice
from math import isfinite
from operator import attrgetter, methodcaller
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)
from weakref import WeakKeyDictionary

import orjson

from witan.core.escaping import escape_json
from witan.core.outcome import Outcome, Standing
from witan.core.scale import Scale
from witan.service.parameters import Doc, copy_field
from witan.version import __version__

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from witan.core.outcome_builder import Outcomes

T = TypeVar("T")


_HEADING = re.compile(r"\n\n?([A-Z][a-z]+)\n-{3,}\n")


def field_docs(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its summary and its descriptions of fields.

    A key is a name, or several comma-separated ones.
    """
    about, *headings = _HEADING.split(cleandoc(text))
    sections = dict(zip(headings[::2], headings[1::2], strict=True))
    text_of_fields = sections.get("Parameters", sections.get("Fields", ""))
    lines_by_names: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text_of_fields.splitlines():
        if line[:1].strip():
            lines = lines_by_names.setdefault(line.partition(":")[0].strip(), [])
        else:
            lines.append(line.strip())
    return about, {names: " ".join(lines).strip() for names, lines in lines_by_names.items()}


def inherit_field_docs(kind: type[T]) -> type[T]:
    """Add the bases' descriptions of fields to a class's docstring."""
    docs: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        docs |= field_docs(each.__doc__ or "")[1]
    about, _ = field_docs(kind.__doc__ or "")
    entries = "\n".join(f"{names}\n    {text}" for names, text in docs.items())
    kind.__doc__ = f"{about}\n\nParameters\n----------\n{entries}"
    return kind


def record_type(
    name: str, source: type, order: Collection[str], optional: Collection[str] = (), /, **own: Any
) -> Any:
    """Make a JSON object's type from a class, for its schema.

    `optional`: names of optional fields, with the defaults of the class.
    `own`: types of additional fields, or of fields with another type.
    """
    field_by_name = {each.name: each for each in fields(source)}
    getters = {
        each: getter for each in order if isinstance(getter := vars(source).get(each), property)
    }
    hints = get_type_hints(source) | {
        each: get_type_hints(getter.fget)["return"] for each, getter in getters.items()
    }
    texts = (f"{each}\n    {getter.__doc__}" for each, getter in getters.items())
    return make_dataclass(
        name,
        [
            (
                each,
                (hints | own)[each],
                copy_field(field_by_name[each]) if each in optional else field(),
            )
            for each in order
        ],
        kw_only=True,
        namespace={"__doc__": "\n".join([cleandoc(source.__doc__ or ""), *texts])},
    )


STANDING = tuple(each.name for each in fields(Standing) if each.name != "details")
"""Fields of a line of an outcome in JSON, besides numbers of the rule."""

OUTCOME = (
    *("session", "rule", "parameters", "why", "interpretation", "standings"),
    *("leaders", "tied_for_best", "clear_leader", "disputed_by", "condorcet_winner", "cycles"),
    *("kendall_w", "n_ballots", "n_abstentions", "without_effect", "effective_votes", "rho"),
    *("rho_is_assumed", "ballots_to_flip", "flip_is_exact", "tie_broken_by", "fell_back_to"),
    *("ties", "level", "fit", "df", "prior", "recusal", "unranked", "p_beats", "unresolved"),
    *("margins", "safety", "ballots", "abstentions", "order_kept", "warnings", "scales"),
)
"""Fields of an outcome in JSON, in this order, besides numbers of the rule."""

_DERIVED = ("standings", "safety", "scales")
_ORDER: Mapping[str, Any] = dict.fromkeys(OUTCOME)


@dataclass(frozen=True, slots=True)
class ScaleRecord:
    """A scale of grades."""

    scale: Annotated[
        str | Mapping[str, str],
        Doc("From the worst to the best grade, such as 0-1; by criterion where these differ."),
    ]
    recognised: Annotated[bool, Doc("Whether it was detected from the grades, not declared.")]
    instead: Annotated[tuple[str, ...], Doc("Other scales that the same grades fit.")]

    @classmethod
    def of(cls, scale: Scale) -> "ScaleRecord":
        """Describe a scale."""
        return cls(scale.record(), scale.recognised, scale.instead)


@dataclass(frozen=True, slots=True)
class Safety:
    """The conclusion of the safety gate."""

    failed: Annotated[
        Mapping[str, tuple[str, ...]], Doc("Flags by candidate, for those that failed.")
    ]


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON fields of an outcome, including the rule's numbers."""
    own = {
        "standings": [{**line.details, **_read_standing(line)} for line in outcome.standings],
        "safety": Safety({s.candidate: s.failed for s in outcome.standings if s.failed}),
        "scales": [ScaleRecord.of(scale) for scale in outcome.scales],
    }
    return {**outcome.details, **_ORDER, **_read_outcome(outcome), **own}


def batch_records(batch: "Outcomes") -> Iterator[dict[str, Any]]:
    """Yield `outcome_fields` of each session of a batch, without an `Outcome`."""
    n, n_lines = len(batch), len(batch.seats)
    all_lines = batch.lines
    lines = [all_lines[n_lines * column : n_lines * (column + 1)] for column in range(n)]
    columns = {
        **batch.columns,
        "standings": [list(map(_standing_fields, each)) for each in lines],
        "leaders": batch.leaders,
        "tied_for_best": batch.tied_for_best,
        "clear_leader": batch.clear_leaders,
        "safety": [
            {"failed": {line[0]: line[-2] for line in each if line[-2]} if one.failed else {}}
            for each, one in zip(lines, batch.count.electorates, strict=True)
        ],
        "ballots": [list(map(_ballot_fields, notes)) for notes in batch.columns["ballots"]],
        "scales": [scales and [*map(ScaleRecord.of, scales)] for scales in batch.columns["scales"]],
        "p_beats": _matrices(batch.p_beats),
        "margins": _matrices(batch.margins),
    }
    rows = zip(*[columns[name] for name in OUTCOME], strict=True)
    for details, row in zip(columns["details"], rows, strict=True):
        record = dict(zip(OUTCOME, row, strict=True))
        yield {**details, **record} if details else record


def _matrices(values: "NDArray[Any]") -> Sequence[Any]:
    """Write blocks (C, C, S) as JSON, a text per session."""
    from witan.core.profile import per_session

    if values.dtype.kind == "O" or not values.size:
        return per_session(values)
    moved = values.transpose(2, 0, 1).copy()
    texts = orjson.dumps(moved, option=orjson.OPT_SERIALIZE_NUMPY)[3:-3].split(b"]],[[")
    return [orjson.Fragment(b"[[%b]]" % text) for text in texts]


def _standing_fields(line: tuple[Any, ...]) -> dict[str, Any]:
    # Three times as fast as `dict(zip(names, values))`.
    candidate, rank, score, std_error, interval, votes, wins, coverage, confidence = line[:9]
    tied_with_next, p_best, effect, tier, mean_grade, band, failed, details = line[9:]
    fields = {
        "candidate": candidate,
        "rank": rank,
        "score": score,
        "std_error": std_error,
        "interval": interval,
        "votes": votes,
        "wins": wins,
        "coverage": coverage,
        "confidence": confidence,
        "tied_with_next": tied_with_next,
        "p_best": p_best,
        "effect": effect,
        "tier": tier,
        "mean_grade": mean_grade,
        "band": band,
        "failed": failed,
    }
    return {**details, **fields} if details else fields


def _ballot_fields(note: tuple[Any, ...]) -> dict[str, Any]:
    reviewer, tau, weight, mismatch, ranking = note
    return {
        "reviewer": reviewer,
        "tau": tau,
        "weight": weight,
        "mismatch": mismatch,
        "ranking": ranking,
    }


@cache
def _outcome_record() -> Any:
    line = record_type("StandingRecord", Standing, STANDING)
    own = {
        "standings": tuple[line, ...],  # type: ignore[valid-type]
        "safety": Safety,
        "scales": tuple[ScaleRecord, ...],
        "parameters": Mapping[str, Any],
    }
    outcome = record_type("OutcomeRecord", Outcome, OUTCOME, **own)
    line.__pydantic_config__ = outcome.__pydantic_config__ = {"extra": "allow"}
    return outcome


class _AsRecord:
    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return handler.generate_schema(_outcome_record())


OutcomeJson = Annotated[Outcome, _AsRecord()]
"""An outcome in a result: as JSON it has the fields of `OUTCOME`."""


@runtime_checkable
class JsonWriter(Protocol):
    """A result that writes its own JSON, as it is stored."""

    def to_json(self) -> str:
        """One line of JSON."""
        ...


def reduce_to(kind: type[T], whole: object, **own: Any) -> T:
    """Build a smaller type from the fields it shares."""
    hints = get_type_hints(kind)
    values = {name: _reduce(hints[name], getattr(whole, name)) for name in hints.keys() - own}
    return kind(**values, **own)


def _reduce(hint: Any, value: Any) -> Any:
    [entry, *_] = get_args(hint) or (None,)
    if get_origin(hint) is tuple and isinstance(entry, type) and is_dataclass(entry):
        return tuple(reduce_to(entry, each) for each in value)
    return value


def to_json(value: object) -> str:
    """Write one line of JSON, in ASCII if standard output requires it."""
    kind: Any = type(value)
    if _writes_json(kind):
        return value.to_json()  # type: ignore[attr-defined, no-any-return]
    # Only outcomes have other fields in JSON, and no outcome contains another.
    fields = outcome_fields(value) if isinstance(value, Outcome) else None
    return _encode(value, orjson.OPT_PASSTHROUGH_DATACLASS) if fields is None else _encode(fields)


def _encode(value: object, option: int = 0) -> str:
    return _escape(_dump(value, option))


def _dump(value: object, option: int = 0) -> bytes:
    try:
        return orjson.dumps(value, _known_to_json, option)
    except TypeError:
        # An integer beyond 64 bits, a key that is not text, or half of a surrogate pair.
        text = json.dumps(_to_plain(value), ensure_ascii=False, separators=_COMPACT)
        return text.encode(errors="surrogatepass")


def _escape(encoded: bytes) -> str:
    """Decode JSON for standard output."""
    text = encoded.decode(errors="surrogatepass")
    if not text.isascii() and "utf" not in (sys.stdout.encoding or "ascii").lower():  # noqa: TID251 - only its encoding is read
        text = json.dumps(json.loads(text), separators=_COMPACT)
    return escape_json(text)


_COMPACT = (",", ":")


@cache
def _writes_json(kind: Any) -> bool:
    return issubclass(kind, JsonWriter)


def sessions_json(
    columns: Iterable[tuple["Outcomes", int]], problems: Mapping[str, Sequence[object]]
) -> Iterator[str]:
    """Yield the JSON of ``tally --json`` line by line.

    The complete text is never in memory.

    `problems`, the other fields of a `Tally`, are read at the end.
    """
    has_output = False
    source = iter(columns)
    texts: WeakKeyDictionary[Outcomes, dict[int, bytes]] = WeakKeyDictionary()
    while block := list(islice(source, LINES_AT_ONCE)):
        lines = []
        for batch, column in block:
            if batch not in texts:
                texts[batch] = dict(enumerate(map(_dump, batch_records(batch))))
            lines.append(texts[batch].pop(column))
        yield (",\n" if has_output else _opening()) + _escape_lines(lines)
        has_output = True
    ending = "\n]" if has_output else f"{_opening()}]"
    yield f"{ending}, {to_json(problems)[1:]}\n"


def _escape_lines(lines: Sequence[bytes]) -> str:
    together = b",\n".join(lines)
    return _escape(together) if together.isascii() else ",\n".join(map(_escape, lines))


LINES_AT_ONCE = 64
"""Sessions written in one piece."""


def _opening() -> str:
    return f'{{"witan": {to_json(__version__)}, "sessions": [\n'


def _known_to_json(value: Any) -> Any:
    """Convert mappings, dataclasses and numpy numbers for the JSON encoder."""
    kind: Any = type(value)
    return _converter(kind)(value)


@cache
def _converter(kind: Any) -> Callable[[Any], Any]:
    """Find the converter for a type of values."""
    if issubclass(kind, Mapping):
        return dict
    if issubclass(kind, Outcome):
        return outcome_fields
    if is_dataclass(kind):
        return _field_reader(tuple(each.name for each in fields(kind)))
    if issubclass(kind, Iterable):
        return list
    if issubclass(kind, datetime):
        return datetime.isoformat
    return methodcaller("item") if hasattr(kind, "item") else str


def _field_reader(names: tuple[str, ...]) -> Callable[[Any], dict[str, Any]]:
    """Return a function from an object to these attributes by name."""
    if len(names) < 2:
        return lambda value: {name: getattr(value, name) for name in names}
    getter = attrgetter(*names)
    return lambda value: dict(zip(names, getter(value), strict=True))


_read_standing = _field_reader(STANDING)
_read_outcome = _field_reader(tuple(each for each in OUTCOME if each not in _DERIVED))


def _to_plain(value: Any) -> Any:
    """Convert to plain JSON types, with null for NaN and infinity."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, orjson.Fragment):
        return orjson.loads(value.contents)
    if isinstance(value, Mapping):
        return {key: _to_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_to_plain(item) for item in value]
    return _to_plain(_known_to_json(value))
