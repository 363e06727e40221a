"""Parameters of operations: annotated fields of frozen dataclasses, read by every surface.

An operation declares its parameters once. The command line makes options of them, HTTP and MCP a
schema, the page a form. Nothing here imports pydantic or click, which take longer to import than a
count of ballots.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, Field, dataclass, fields, replace
from dataclasses import field as dataclass_field
from datetime import UTC, datetime, timedelta
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from witan.errors import InvalidParameter, WitanError

if TYPE_CHECKING:
    from pydantic import TypeAdapter


Scalar = bool | int | float | str
"""A value under a user-defined name, such as a rule's parameter: number, true or false, else
text."""


P = TypeVar("P", bound="Parameters")
T = TypeVar("T")


def scalar_of(text: str) -> object:
    """Read a number, true or false as such, anything else as text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float) else text


def public_name(field_name: str) -> str:
    """Return a field's public name, without the underscore of ``as_``."""
    return field_name.removesuffix("_")


class Parameters:
    """Base of operations' parameters: a frozen dataclass with a `Doc` per field."""

    __slots__ = ()

    defaults: ClassVar[Mapping[str, Any]] = {}
    """Values that stand in for parameters that are None, where known."""

    __pydantic_config__: ClassVar[Any] = {
        "extra": "forbid",
        "allow_inf_nan": False,
        "alias_generator": public_name,
    }


def copy_field(each: Field[Any]) -> Any:
    """Copy a dataclass field with its default."""
    if each.default_factory is not MISSING:
        return dataclass_field(default_factory=each.default_factory)
    return dataclass_field() if each.default is MISSING else dataclass_field(default=each.default)


@dataclass(frozen=True, slots=True)
class Doc:
    """Description of a parameter, for help, schemas, forms and reference.

    `section`: the heading under which help and forms list it.
    `metavar`: placeholder of the value in help, by default made from the type.
    `positional`: the command line takes it as an argument: one, or all ``words`` that are left.
    `label`: label in a form, by default the words of its name.
    `brief`: its description for agents, who pay for every word: by default the first clause, up to
    a semicolon; empty if name, type and tool are enough.
    """

    text: str
    section: str = ""
    metavar: str | None = None
    option: str | None = None
    positional: Literal["", "one", "words"] = ""
    label: str = ""
    brief: str | None = None

    @property
    def agent_text(self) -> str:
        """Description for agents."""
        return self.text.partition(";")[0].rstrip(".") if self.brief is None else self.brief

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        """Describe the parameter in its JSON schema."""
        return {**handler(schema), "description": self.text}


@dataclass(frozen=True, slots=True)
class Parser:
    """Parser of text into another type, such as ``30d`` into a time.

    `parse`: parses the text or data; raises `ValueError` if it cannot.
    `expected`: what the text has to be, for messages.
    `numeric`: whether a number is accepted besides text.
    `data`: type of data accepted besides text, such as a mapping, or None.
    `load`, `suffix`: reads a named file on the command line; suffix of such names.
    `content`: class made from the bytes of an uploaded file, or None.
    """

    parse: Callable[[Any], Any]
    expected: str
    numeric: bool = False
    data: Any = None
    load: Callable[[str], Any] | None = None
    suffix: str = ""
    content: type | None = None

    def read_argument(self, text: str) -> Any:
        """Read a command's argument: the named file, or the text itself."""
        if self.load is not None and text.endswith(self.suffix):
            return self.load(text)
        return self.parse(text)

    def _validate(self, value: Any) -> Any:
        """Parse text or data; report the expected form to pydantic."""
        from pydantic_core import PydanticCustomError

        if value is None or (self.content and isinstance(value, self.content)):
            return value
        if not isinstance(value, str) and self.data is None:
            return value
        try:
            return self.parse(value)
        except InvalidParameter as error:
            expected = error.expected
        except ValueError as error:
            if isinstance(error, WitanError):
                problem = {"problem": str(error)}
                raise PydanticCustomError("unread", "cannot be read: {problem}", problem) from None
            expected = self.expected
        raise PydanticCustomError("unread", "must be {expected}", {"expected": expected})

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Accept text, or a parsed value."""
        from pydantic_core import core_schema

        schemas: list[Any] = [core_schema.str_schema()]
        if self.numeric:
            schemas.append(core_schema.float_schema())
        if self.data is not None:
            schemas.append(handler.generate_schema(self.data))
        schema = core_schema.union_schema(schemas) if len(schemas) > 1 else schemas[0]
        if self.content is not None:
            instance_schema = core_schema.is_instance_schema(self.content)
            python = core_schema.union_schema([instance_schema, schema])
            schema = core_schema.json_or_python_schema(schema, python)
        if NoneType in get_args(source):
            schema = core_schema.nullable_schema(schema)
        return core_schema.no_info_after_validator_function(self._validate, schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """Bounds of a number, or length and pattern of a text.

    None sets no such limit.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """Set limits, by their names in a schema."""
        return {
            each.name: value
            for each in fields(self)
            if (value := getattr(self, each.name)) is not None
        }

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Check the limits of a value, and state them in the schema."""
        return _constrain(handler(source), self.limits)


def _constrain(schema: dict[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    if "schema" in schema:
        return {**schema, "schema": _constrain(schema["schema"], limits)}
    return {**schema, **limits}


@dataclass(frozen=True, slots=True)
class OneOrSeveral:
    """A list, or its only entry."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Accept a text as a list of one."""
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            lambda value: (value,) if isinstance(value, str) else value,
            several := handler(source),
            json_schema_input_schema=core_schema.union_schema([core_schema.str_schema(), several]),
        )


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation.

    `name`: name in HTTP and MCP; an option has dashes instead of underscores.
    `kind`: the type of its value, or of each where `many`.
    `choices`: the only accepted values; empty for any.
    `many`: ``list`` for several values, ``mapping`` for names and values, else empty.
    `nullable`: None is a value.
    `bounds`: the limits of its `Constraint` by name.
    `default_text`: the value that None means, for help.
    """

    name: str
    field: str
    kind: Any
    doc: Doc
    _: KW_ONLY
    choices: tuple[str, ...] = ()
    many: Literal["", "list", "mapping"] = ""
    nullable: bool = False
    required: bool = False
    default: Any = None
    bounds: Mapping[str, Any] = dataclass_field(default_factory=dict)
    parser: Parser | None = None
    default_text: Any = None
    group: str = ""

    @property
    def label(self) -> str:
        """Label of its field in a form."""
        return self.doc.label or self.name.replace("_", " ").capitalize()

    @property
    def content(self) -> type | None:
        """Class of a value from the bytes of a file, else None."""
        return None if self.parser is None else self.parser.content

    @property
    def option(self) -> str:
        """The option on the command line: ``--max-cost``; or the argument: ``NAME``."""
        if self.doc.positional:
            return self.doc.metavar or self.name.upper()
        return f"--{self.doc.option or self.name.replace('_', '-')}"


def parameters_of(declaration: type[Parameters]) -> tuple[Parameter, ...]:
    """List a dataclass's parameters in order, those of groups in place.

    Raises `TypeError` if a field has no `Doc`, or a type that no option could have.
    """
    return _parameters(cast("Any", declaration))


@cache
def _parameters(declaration: Any) -> tuple[Parameter, ...]:
    hints = get_type_hints(declaration, include_extras=True)
    result: list[Parameter] = []
    for each in fields(declaration):
        kind, _ = _unwrap(hints[each.name])
        if isinstance(kind, type) and issubclass(kind, Parameters):
            result += (replace(inner, group=each.name) for inner in parameters_of(kind))
        else:
            default_text = declaration.defaults.get(each.name)
            result.append(replace(_parameter(each, hints[each.name]), default_text=default_text))
    return tuple(result)


def make_parameters(declaration: type[P], values: Mapping[str, Any]) -> P:
    """Build a dataclass, including its groups, from values by name."""
    own_values: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for each in parameters_of(declaration):
        if each.name in values:
            holder = groups.setdefault(each.group, {}) if each.group else own_values
            holder[each.field] = values[each.name]
    hints = get_type_hints(declaration)
    return declaration(
        **own_values,
        **{name: hints[name](**values_of_group) for name, values_of_group in groups.items()},
    )


def validate_parameters(declaration: type[T], values: object) -> T:
    """Validate foreign data as the parameters of a dataclass.

    Raises `ValidationError` if a value is not of its type, or out of bounds; `WitanError` if the
    dataclass itself refuses them.
    """
    from pydantic import ValidationError

    try:
        return cast("T", adapter_of(declaration).validate_python(values))
    except ValidationError as error:
        if (refusal := refusal_in(error.errors(include_url=False))) is not None:
            raise refusal from None
        raise


def refusal_in(faults: Iterable[Mapping[str, Any]]) -> WitanError | None:
    """Return our own error inside pydantic's, if any."""
    errors = (fault.get("ctx", {}).get("error") for fault in faults)
    return next((each for each in errors if isinstance(each, WitanError)), None)


def given_values(parameters: Parameters) -> dict[str, Any]:
    """Return the parameters that differ from their defaults, by name."""
    return {
        each.name: value
        for each in parameters_of(type(parameters))
        if (value := getattr(parameters, each.field)) != each.default
    }


def adapter_of(declaration: object) -> "TypeAdapter[Any]":
    """Return the cached validator of a type, which also writes its schema."""
    return _adapter(cast("Any", declaration))


@cache
def _adapter(declaration: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(declaration)


def _parameter(declaration: Field[Any], hint: Any) -> Parameter:
    hint, metadata = _unwrap(hint)
    docs = [each for each in metadata if isinstance(each, Doc)]
    if len(docs) != 1:
        raise TypeError(f"{declaration.name} needs one Doc, not {len(docs)}")
    parsers = [each for each in metadata if isinstance(each, Parser)]
    hint, nullable = _without_none(hint, is_parsed=bool(parsers))
    kind, many = _element(hint)
    kind, inner = _unwrap(kind)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    default = (
        declaration.default
        if declaration.default_factory is MISSING
        else declaration.default_factory()
    )
    return Parameter(
        public_name(declaration.name),
        declaration.name,
        str if choices else kind,
        docs[0],
        choices=tuple(map(str, choices)),
        many=many,
        nullable=nullable,
        required=default is MISSING,
        default=None if default is MISSING else default,
        bounds={
            name: limit
            for each in (*metadata, *inner)
            if isinstance(each, Constraint)
            for name, limit in each.limits.items()
        },
        parser=parsers[0] if parsers else None,
    )


def _unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) is not Annotated:
        return hint, ()
    inner, *metadata = get_args(hint)
    return inner, tuple(metadata)


def _without_none(hint: Any, *, is_parsed: bool) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    others = [each for each in get_args(hint) if each is not NoneType]
    if is_parsed:
        return str, True
    if len(others) != 1:
        raise TypeError(f"{hint} has several types; a parameter has one, and may be None")
    return others[0], True


def _element(hint: Any) -> tuple[Any, Literal["", "list", "mapping"]]:
    origin = get_origin(hint)
    if origin is tuple:
        return get_args(hint)[0], "list"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return get_args(hint)[1], "mapping"
    return hint, ""


EXPECTED = "an age (30d, 12h, 2w), a day (2026-01-31) or a time (RFC 3339)"

_SPAN = re.compile(r"(\d+(?:\.\d+)?)([hdw])")

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def _parse_time(text: str) -> datetime:
    stripped = text.strip()
    try:
        if (span := _SPAN.fullmatch(stripped)) is not None:
            return datetime.now(UTC) - float(span[1]) * _UNITS[span[2]]
        time = datetime.fromisoformat(stripped)
        return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(EXPECTED) from None


MOMENT = Parser(_parse_time, EXPECTED)
"""A time, as a parameter takes it, by default in UTC."""


_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "bool_parsing": "must be true or false",
        "bool_type": "must be true or false",
        "dict_type": "must be an object",
        "dataclass_type": "must be an object",
        "extra_forbidden": "is not known here; check its name and its place",
        "finite_number": "must be a finite number",
        "float_type": "must be a number",
        "float_parsing": "must be a number",
        "greater_than": "must be greater than {gt}",
        "greater_than_equal": "must be at least {ge}",
        "int_from_float": "must be a whole number",
        "int_parsing": "must be a whole number",
        "int_type": "must be a whole number",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be at most {le}",
        "list_type": "must be a list",
        "literal_error": "must be {expected}",
        "mapping_type": "must be an object",
        "missing": "is missing",
        "model_attributes_type": "must be an object",
        "model_type": "must be an object",
        "string_pattern_mismatch": "must match {pattern}",
        "string_too_long": "is longer than {max_length:,} characters",
        "string_too_short": "is empty",
        "string_type": "must be text",
        "string_unicode": "contains half of a surrogate pair, which is no character; remove it",
        "too_long": "has more than {max_length:,} entries",
        "too_short": "is empty",
        "unexpected_keyword_argument": "is not known here; check its name and its place",
    }
)
"""Message by type of fault."""

NO_NUL = r"^[^\x00]*$"
"""Pattern of a text without NUL characters."""


def fault_words(kind: str, message: str, context: Mapping[str, Any] | None) -> str:
    """Describe a fault, by default in the library's words."""
    words = _WORDS.get(kind)
    if context is not None and context.get("pattern") == NO_NUL:
        words = "contains a NUL character, which cannot be stored; remove it"
    if words is None:
        return message[:1].lower() + message[1:]
    values = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in (context or {}).items()
    }
    return words.format(**values)


def fault_place(place: Sequence[str | int]) -> str:
    """Write the place of a fault, such as ``messages.0.role``.

    pydantic's ``files..[key]`` becomes ``files (a name in it)``.
    """
    if len(place) > 2 and place[-1] == "[key]":
        return f"{'.'.join(map(str, place[:-2]))} (a name in it)"
    return ".".join(map(str, place))


def read_texts(
    declaration: type[P],
    texts: Mapping[str, Sequence[str]],
    values: Mapping[str, Any] | None = None,
) -> P:
    """Read parameters from texts; an empty text sets nothing.

    `texts`: name to texts; several, or lines, if a parameter takes many values; ``NAME=VALUE`` for
    mappings. Unknown names are ignored.
    `values`: parameters already read.
    """
    from pydantic import ValidationError

    parsed_values = parse_texts(declaration, texts)
    try:
        return validate_parameters(declaration, {**parsed_values, **(values or {})})
    except ValidationError as error:
        [fault, *_] = error.errors(include_url=False)
        name = str(fault["loc"][0])
        words = fault_words(fault["type"], fault["msg"], fault.get("ctx"))
        text_list = ", ".join(text for text in texts.get(name, ()) if text.strip())
        raise InvalidParameter(name, text_list, words.removeprefix("must be ")) from None


def parse_texts(
    declaration: type[Parameters], texts: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Parse the texts of parameters, each group into its own table."""
    result: dict[str, Any] = {}
    for each in parameters_of(declaration):
        if texts_given := [text for text in texts.get(each.name, ()) if text.strip()]:
            holder = result.setdefault(each.group, {}) if each.group else result
            holder[each.name] = _read_texts(each, texts_given)
    return result


def _read_texts(parameter: Parameter, texts: Sequence[str]) -> Any:
    if not parameter.many:
        return texts[-1] if parameter.content else texts[-1].strip()
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    return lines if parameter.many == "list" else dict(_pair(parameter, line) for line in lines)


def _pair(parameter: Parameter, line: str) -> tuple[str, Any]:
    split = str.rpartition if parameter.kind in (int, float) else str.partition
    name, equals, value = (part.strip() for part in split(line, "="))
    if not (name and equals and value):
        written = parameter.doc.metavar or "NAME=VALUE"
        raise InvalidParameter(parameter.name, line, f"the form {written}")
    return name, scalar_of(value) if parameter.kind == Scalar else value
