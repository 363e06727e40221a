"""What a form asks for, as a request would hold it, and what of it is refused at which field."""

from collections.abc import Mapping
from typing import Any, TypeVar

from fastapi import Request
from pydantic import ValidationError

from witan.errors import ConfigError, InvalidParameter, UnknownName, WitanError
from witan.service.parameters import parameters_of, validate_parameters
from witan.service.request_texts import fault_words
from witan.service.requests import (
    QuestionRequest,
    RejudgeRequest,
    ResumeRequest,
    RetryRequest,
)
from witan.service.text import clean
from witan.surfaces.http.problems import said_of, status_of
from witan.surfaces.web.filled import Filled
from witan.surfaces.web.forms import Form
from witan.surfaces.web.options import read_options

T = TypeVar("T")

FIELDS = tuple(each.name for each in parameters_of(QuestionRequest))
"""Every field of the form that asks."""

ROLES = ("system", "user", "assistant")

_FIELD_OF = {"session": "parent", "seat": "members"}
"""What an error calls a thing, and the field that names it."""


def given_in(form: Form) -> dict[str, str]:
    """The fields of a form as text, and the names of its files, which no page can hold."""
    given = {name: "\n".join(texts) for name, texts in form.many.items()}
    return {**given, "files": "\n".join(form.files)}


def read_rejudging(form: Form, session: str) -> RejudgeRequest:
    """Read who judges a session, and how.

    Raises
    ------
    WitanError, ValidationError
        If a field is not accepted.
    """
    given = read_options(RejudgeRequest, given_in(form))
    return validate_parameters(RejudgeRequest, {**given, "session": session})


def read_retry(form: Form, session: str, seats: tuple[str, ...]) -> RetryRequest:
    """Read which seats of a session are asked again, and for how much.

    Raises
    ------
    InvalidParameter
        If a field is not accepted.
    """
    given = {"session": session, "seats": seats, "max_cost_usd": form.get("max_cost_usd") or None}
    return _checked(RetryRequest, given)


def read_resume(form: Form, session: str) -> ResumeRequest:
    """Read how a session is taken up; errors as of `read_retry`."""
    given = read_options(ResumeRequest, given_in(form))
    return _checked(ResumeRequest, {**given, "session": session})


def _checked(declared: type[T], given: Mapping[str, Any]) -> T:
    try:
        return validate_parameters(declared, given)
    except ValidationError as error:
        [fault, *_] = error.errors(include_url=False)
        words = fault_words(fault["type"], fault["msg"], fault.get("ctx"))
        name = _field_at(fault["loc"]) or str(fault["loc"][0])
        raise InvalidParameter(name, fault["input"], words.removeprefix("is to be ")) from None


def read_question(form: Form) -> QuestionRequest:
    """Read the question, and all that comes with it.

    Raises
    ------
    WitanError, ValidationError
        If a field is not accepted.
    """
    texts = {**given_in(form), "files": "", "conversation": ""}
    given = read_options(QuestionRequest, texts) | {"question": form.get("question")}
    given |= {"files": dict(form.files), "conversation": _turns(form.get("conversation"))}
    return validate_parameters(QuestionRequest, given)


def _turns(text: str) -> list[dict[str, str]]:
    """What was said before: a line that begins with a role and a colon begins a turn.

    Raises
    ------
    InvalidParameter
        If the first line does not.
    """
    turns: list[dict[str, str]] = []
    for line in text.splitlines():
        role, colon, rest = line.partition(":")
        if colon and role.strip().casefold() in ROLES:
            turns.append({"role": role.strip().casefold(), "content": rest.strip()})
        elif turns:
            turns[-1]["content"] += f"\n{line}"
        else:
            roles = " or ".join(f"{each}:" for each in ROLES)
            raise InvalidParameter("conversation", line[:80], f"a line that begins with {roles}")
    return [{**turn, "content": turn["content"].strip()} for turn in turns]


def refused(
    request: Request, given: Mapping[str, str], error: WitanError | ValidationError
) -> Filled:
    """The form as it was filled in, and what is wrong with it."""
    if isinstance(error, ValidationError):
        wrong = [
            (_field_at(each["loc"]), fault_words(each["type"], each["msg"], each.get("ctx")))
            for each in error.errors()
        ]
        problem = "; ".join(f"{name}: {words}" for name, words in wrong)
        return Filled(
            given, clean(problem), {name: _sentence(words) for name, words in reversed(wrong)}, 422
        )
    words = said_of(request, error)
    name = _field_of(error, given)
    if isinstance(error, InvalidParameter):
        told = words.removeprefix(f"{error.name} ")
    elif isinstance(error, ConfigError):
        told = words.removeprefix(f"{error.where}: {error.key} ")
    else:
        told = words
    faults = {name: _sentence(told)} if name else {}
    return Filled(given, clean(words), faults, status_of(error))


def _field_at(place: tuple[int | str, ...]) -> str:
    return next((str(each) for each in place if each in FIELDS), "")


def _sentence(words: str) -> str:
    said = clean(f"{words[:1].upper()}{words[1:]}")
    return said if said.endswith((".", "?", "…")) else f"{said}."


def _field_of(error: WitanError, given: Mapping[str, str]) -> str:
    """The field that an error is about; empty: none of them."""
    if isinstance(error, ConfigError):
        parts = error.key.replace("[", ".").split(".")
        return next((each for each in parts if each in FIELDS), "")
    if isinstance(error, UnknownName):
        name = _FIELD_OF.get(error.kind, error.kind)
        is_chairman = error.kind == "seat" and error.name == given.get("chairman", "").strip()
        name = "chairman" if is_chairman else name
        if name == "members" and error.name in given.get("jury", "").splitlines():
            name = "jury"
    else:
        name = error.name if isinstance(error, InvalidParameter) else ""
    return name if name in FIELDS else ""
