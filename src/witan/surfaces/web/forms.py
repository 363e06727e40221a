"""Forms: fields from the catalogue's declarations, and submitted values."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import Request
from starlette.datastructures import UploadFile

from witan.core.rubric import RUBRICS
from witan.core.rules import RULES
from witan.core.settings import AUTO
from witan.errors import InvalidParameter
from witan.files.ballots import FORMATS
from witan.service.catalogue import Operation
from witan.service.parameters import Parameter, Parameters, parameters_of, read_texts
from witan.surfaces.http.addresses import check_parameters

MOST_FILES = 64

Choices = Iterable[tuple[str, str]]

OPEN_CHOICES: Mapping[str, tuple[str, ...]] = {
    "rule": (AUTO, *RULES),
    "rubric": (*RUBRICS,),
    "format": (*FORMATS,),
}
"""Names to choose from if the declaration does not list them."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form.

    `kind`: ``text``, ``lines``, ``choice``, ``tick`` or ``boxes``.
    `label`, `about`: its name, and a sentence on what it does.
    `placeholder`: an example of its value, or the default.
    `choices`: value and text of each choice.
    `keyboard`: the keyboard for it on a phone.
    `boxes`: by council, value and text of each of its seats, as tick boxes.
    """

    name: str
    kind: str
    label: str
    about: str
    placeholder: str = ""
    value: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    keyboard: str = "text"
    boxes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class FormSection:
    """Fields under one heading."""

    title: str
    fields: tuple[Field, ...]


def form_fields(
    declaration: type[Parameters],
    values: Mapping[str, str],
    *,
    choices: Mapping[str, Collection[str]] = OPEN_CHOICES,
    unchosen: str = "any",
    exclude: Collection[str] = (),
) -> tuple[Field, ...]:
    """Make a filled-in field for each parameter that a dataclass declares.

    `choices`: names to choose from if the declaration does not list them.
    `unchosen`: text for an empty choice, if the declaration has no default.
    `exclude`: parameters with a separate field on the page.
    """
    return tuple(
        _field(each, values.get(each.name, ""), choices.get(each.name, ()), unchosen)
        for each in parameters_of(declaration)
        if each.name not in exclude
    )


def council_sections(
    declaration: type[Parameters],
    members: Sequence[tuple[str, tuple[tuple[str, str], ...]]] = (),
    chairmen: Choices = (),
    exclude: Collection[str] = (),
) -> tuple[FormSection, ...]:
    """Make the fields of a request to a council, by section.

    `members` has, by council, name and text of each seat to choose; without it, names are typed.
    `chairmen` has the same for seats that can write the final answer.
    """
    unchosen, writers = "as configured", tuple(chairmen)
    sections: dict[str, list[Field]] = {}
    fields = form_fields(declaration, {}, unchosen=unchosen, exclude=exclude)
    by_name = {each.name: each.doc.section for each in parameters_of(declaration)}
    for each in fields:
        if each.name in ("members", "jury") and members:
            each = replace(each, kind="boxes", boxes=tuple(members))  # noqa: PLW2901
        if each.name == "chairman" and writers:
            each = replace(each, kind="choice", choices=(("", unchosen), *writers))  # noqa: PLW2901
        sections.setdefault(by_name[each.name], []).append(each)
    return tuple(FormSection(title, tuple(fields)) for title, fields in sections.items())


def _field(parameter: Parameter, value: str, choices: Collection[str], unchosen: str) -> Field:
    allowed_values: Collection[str] = parameter.choices or choices
    if parameter.kind is bool and parameter.nullable:
        allowed_values = ("yes", "no")
    if allowed_values and not parameter.many:
        kind = "choice"
    elif parameter.kind is bool:
        kind = "tick"
    else:
        long = parameter.parser is not None and parameter.parser.load is not None
        kind = "lines" if parameter.many or long else "text"
    default = "" if parameter.default is None or kind in ("tick", "lines") else parameter.default
    none = unchosen if parameter.default_text is None else f"default: {parameter.default_text}"
    empty = (("", none),) if parameter.nullable else ()
    return Field(
        parameter.name,
        kind,
        parameter.label,
        parameter.doc.text.replace("`", ""),
        _placeholder(parameter),
        value or str(default),
        (*empty, *((each, each) for each in allowed_values)) if kind == "choice" else (),
        {int: "numeric", float: "decimal"}.get(parameter.kind, "text"),
    )


def _placeholder(parameter: Parameter) -> str:
    if parameter.many:
        return f"{parameter.doc.metavar or 'NAME'}, one per line"
    if parameter.default_text is not None:
        return f"default: {parameter.default_text}"
    return "" if parameter.parser is None else parameter.parser.expected


@dataclass(frozen=True, slots=True)
class FilledForm:
    """A form as filled in, to be shown again.

    `values`: text by field, with one line per ticked box.
    `elsewhere`: the part of the problem that does not concern a field.
    `faults`, `labels`: by field, what is wrong with it, and its label.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    elsewhere: str = ""
    faults: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    status: int = 200

    def value(self, name: str) -> str:
        """Return the text of a field."""
        return self.values.get(name, "")

    def ticked_values(self, name: str) -> list[str]:
        """Return the ticked boxes of a field."""
        return self.value(name).splitlines()

    def n_filled(self, sections: Iterable[FormSection]) -> int:
        """Count the fields that are filled in."""
        return sum(bool(self.value(each.name).strip()) for s in sections for each in s.fields)

    def n_named(self, names: Iterable[str]) -> int:
        """Count the fields of these names that are filled in."""
        return sum(bool(self.value(name).strip()) for name in names)

    def has_faults(self, sections: Iterable[FormSection]) -> bool:
        """Return true if one of the fields is refused."""
        return any(each.name in self.faults for s in sections for each in s.fields)


BLANK = FilledForm()


def query_texts(request: Request, operation: Operation[Any, Any], *others: str) -> dict[str, str]:
    """Read an operation's parameters from an address; refuse unknown ones."""
    names = [each.name for each in parameters_of(operation.parameters)]
    check_parameters(request, [*names, *others], ())
    return {name: request.query_params.get(name, "") for name in names}


def read_query(operation: Operation[Any, Any], query: Mapping[str, str]) -> Any:
    """Read the parameters of an operation from the texts of an address."""
    return read_texts(operation.parameters, {name: [text] for name, text in query.items()})


@dataclass(frozen=True, slots=True)
class Form:
    """A submitted form: texts of each field, bytes of each file."""

    texts: Mapping[str, tuple[str, ...]]
    contents: Mapping[str, bytes]

    @property
    def fields(self) -> dict[str, str]:
        """Last text by field."""
        return {name: texts[-1] for name, texts in self.texts.items()}

    @property
    def values(self) -> dict[str, str]:
        """Texts by field, a line each; for files their names."""
        values = {name: "\n".join(texts) for name, texts in self.texts.items()}
        return {**values, "files": "\n".join(self.contents)}

    def get(self, name: str) -> str:
        """Return the stripped text of a field, or an empty string."""
        return self.texts.get(name, ("",))[-1].strip()

    def read_files(self) -> dict[str, str]:
        """Return the texts of the files by name."""
        return {name: _decode(name, content) for name, content in self.contents.items()}


async def read_form(request: Request) -> Form:
    """Read the form of a request."""
    # Fields are limited only by the length of the request.
    longest = request.app.state.settings.body_bytes
    async with request.form(max_files=MOST_FILES, max_fields=1000, max_part_size=longest) as body:
        texts: dict[str, tuple[str, ...]] = {}
        for name, value in body.multi_items():
            if isinstance(value, str):
                if "\0" in value:
                    expected = "text without NUL characters"
                    raise InvalidParameter(name, "a text with a NUL character", expected)
                # Browsers send line ends as CR LF.
                texts[name] = (*texts.get(name, ()), value.replace("\r\n", "\n"))
        files = [each for _, each in body.multi_items() if isinstance(each, UploadFile)]
        return Form(texts, {each.filename: await each.read() for each in files if each.filename})


def _decode(file: str, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        expected = f"UTF-8 text (it is none at byte {error.start:,})"
        raise InvalidParameter("file", file, expected) from None
    if "\0" in text:
        raise InvalidParameter("file", file, "text, without NUL characters")
    return text
