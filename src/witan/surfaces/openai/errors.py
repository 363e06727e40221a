"""Errors in the shape that OpenAI clients read."""

from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.responses import Response
from typing_extensions import TypedDict

from witan.errors import (
    InvalidParameter,
    MissingKey,
    NoCouncil,
    OverBudget,
    UnknownName,
    WitanError,
)
from witan.service.json_output import to_json
from witan.service.parameters import fault_place, fault_words

KINDS: Mapping[int, str] = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}

LASTING = frozenset({402, 409, 501, 502, 508})
"""Statuses that clients must not retry: members were retried before."""

MOST_FAULTS = 5
"""Faults of one request that are told."""


class ErrorObject(TypedDict):
    """An error, as OpenAI's protocol has it.

    Parameters
    ----------
    message
        What happened, and what to do.
    type
        Its kind.
    param
        The parameter that it is about; null: none.
    code
        What programs read; null: the status says it.
    """

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(TypedDict):
    """An error of OpenAI's protocol.

    Parameters
    ----------
    error
        What went wrong.
    """

    error: ErrorObject


def speaks_openai(path: str) -> bool:
    """Return true if clients of this path read errors in this shape."""
    return path == "/v1" or path.startswith("/v1/")


def error_object(
    status: int, message: str, code: str | None = None, param: str | None = None
) -> OpenAIError:
    """Return an error as the protocol writes it."""
    kind = KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def openai_problem(
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    code: str | None = None,
    param: str | None = None,
) -> Response:
    """Make the response of an error."""
    fields = dict(headers or {})
    if status in LASTING:
        fields["X-Should-Retry"] = "false"  # as the official client reads it
    body = to_json(error_object(status, message, code, param))
    return Response(body, status, fields, "application/json")


def openai_error(
    error: WitanError, words: str, status: int, headers: Mapping[str, str]
) -> Response:
    """Respond to one of our errors with a status of the protocol."""
    if isinstance(error, UnknownName) and error.kind == "model":
        return openai_problem(404, words, headers, "model_not_found", "model")
    if isinstance(error, UnknownName) and error.kind in ("response", "item"):
        words = f"{error.kind} {error.name!r} was not found: it was deleted or never stored"
        return openai_problem(404, words, headers, f"{error.kind}_not_found")
    if isinstance(error, UnknownName | InvalidParameter):
        param = error.kind if isinstance(error, UnknownName) else error.name
        return openai_problem(_status(status), words, headers, "invalid_value", param)
    if isinstance(error, OverBudget):
        return openai_problem(status, words, headers, "over_budget")
    if isinstance(error, NoCouncil | MissingKey):
        headers = {**headers, "X-Should-Retry": "false"}  # it is seated when the server starts
    return openai_problem(_status(status), words, headers)


def openai_invalid(error: RequestValidationError) -> Response:
    """Respond with a sentence for each field that is not accepted."""
    faults = [fault_of(each) for each in error.errors()]
    message = "; ".join(
        f"{location}: {words}" if location else words for location, words in faults[:MOST_FAULTS]
    )
    param = faults[0][0].partition(".")[0] or None
    return openai_problem(400, message, code="invalid_value", param=param)


def fault_of(fault: Mapping[str, Any]) -> tuple[str, str]:
    """Return the place of a fault, and its words."""
    if fault["type"] == "json_invalid":
        return (
            "",
            f"the body is not valid JSON: {fault['ctx']['error']} at character {fault['loc'][-1]}",
        )
    if len(fault["loc"]) == 1:
        return "", "the body must be a JSON object, sent with Content-Type: application/json"
    words = fault_words(fault["type"], fault["msg"], fault.get("ctx"))
    return fault_place(fault["loc"][1:]), words


def _status(status: int) -> int:
    return 400 if status == 422 else status
