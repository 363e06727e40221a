"""Errors as problem details (RFC 9457), with the error's own message."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from typing import Annotated, Any, NotRequired

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope
from typing_extensions import TypedDict

from witan.errors import (
    Busy,
    ConfigError,
    HistoryConflict,
    HistoryError,
    InvalidBallot,
    InvalidParameter,
    MissingExtra,
    MissingKey,
    ModelError,
    NoCouncil,
    NothingToCount,
    OverBudget,
    TooLarge,
    UnknownName,
    WitanError,
)
from witan.service.json_output import to_json
from witan.service.parameters import Doc, fault_place, fault_words, refusal_in
from witan.service.redaction import public_error
from witan.surfaces.http.addresses import shown_path
from witan.surfaces.web.rendering import Site, render_problem
from witan.surfaces.web.responses import HtmlPage, site_of, wants_page

STATUSES: Mapping[type[WitanError], int] = {
    Busy: 429,
    UnknownName: 422,
    HistoryConflict: 409,
    HistoryError: 503,
    TooLarge: 413,
    OverBudget: 402,
    NothingToCount: 409,
    InvalidBallot: 422,
    InvalidParameter: 422,
    ConfigError: 422,
    NoCouncil: 503,
    MissingKey: 503,
    MissingExtra: 501,
    ModelError: 502,
}
"""HTTP status by error."""

TITLES: Mapping[int, str] = {
    400: "Bad request",
    401: "Unauthorized",
    402: "Over budget",
    403: "Refused",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported format",
    422: "Invalid request",
    429: "Too many requests",
    500: "Internal error",
    501: "Not installed",
    502: "A model failed",
    503: "Unavailable",
    508: "Loop detected",
}

METHODS = ("DELETE", "GET", "HEAD", "POST", "PUT")
"""HTTP methods of operations."""

SESSIONS = "/api/sessions/"
"""The path before the name of a session."""


_log = logging.getLogger("witan.server")


class Fault(TypedDict):
    """A field that is not accepted."""

    where: Annotated[str, Doc("The field.")]
    problem: Annotated[str, Doc("What is wrong with it.")]


class Problem(TypedDict):
    """A problem: a refused request, with its reason (RFC 9457)."""

    title: Annotated[str, Doc("Its kind.")]
    status: Annotated[int, Doc("The status of the response.")]
    detail: Annotated[str, Doc("What happened, and what to do.")]
    faults: Annotated[
        NotRequired[list[Fault]],
        Doc("Faults of the request's fields, if any."),
    ]


def status_of(error: Exception) -> int:
    """Return the status of an error."""
    if isinstance(error, UnknownName) and error.kind == "session":
        return 404
    if isinstance(error, WitanError):
        return next((code for kind, code in STATUSES.items() if isinstance(error, kind)), 422)
    return 500


def refusal(
    scope: Scope,
    status: int,
    words: str,
    headers: Mapping[str, str] | None = None,
    *,
    faults: list[Fault] | None = None,
    site: Callable[[], Site] = Site,
) -> Response:
    """Make a refusal in the form that clients of this path expect."""
    if speaks_openai(scope["path"]):
        return openai_problem(status, words, headers)
    title = TITLES.get(status, "Refused")
    if wants_page(scope):
        html = render_problem(title, words, status=status, site=site())
        return HtmlPage(html, status, headers)
    body: Problem = {"title": title, "status": status, "detail": words}
    if faults is not None:
        body["faults"] = faults
    return Response(to_json(body), status, dict(headers or {}), "application/problem+json")


async def respond_to_error(request: Request, error: Exception) -> Response:
    """Respond to an expected error; a stopping server answers 503."""
    headers, status, words = {}, status_of(error), word_error(request, error)
    if isinstance(error, Busy) and request.app.state.service.is_draining:
        status = 503
    if isinstance(error, Busy) and error.retry_seconds is not None:
        headers["Retry-After"] = str(ceil(error.retry_seconds))
    if isinstance(error, WitanError) and speaks_openai(request.url.path):
        return openai_error(error, words, status, headers)
    if status == 404 and wants_page(request.scope):
        words = words.partition("; known: ")[0]  # the page links to the history instead
    faults: list[Fault] | None = None
    if isinstance(error, InvalidParameter):
        faults = [{"where": error.name, "problem": words.removeprefix(f"{error.name} ")}]
    site = partial(site_of, request)
    return refusal(request.scope, status, words, headers, faults=faults, site=site)


def word_error(request: Request, error: Exception) -> str:
    """Describe an error for clients; log the details that they may not see."""
    words = public_error(error)
    if words != str(error):
        fields = {"request": request.scope.get("request"), "problem": str(error)}
        level = logging.ERROR if status_of(error) >= 500 else logging.INFO
        _log.log(level, "refused", extra={"fields": fields})
    return words


async def respond_to_invalid(request: Request, error: Exception) -> Response:
    """Respond with the fields of a request that are not accepted."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it
    if (inner := refusal_in(error.errors())) is not None:
        return await respond_to_error(request, inner)
    if speaks_openai(request.url.path):
        return openai_invalid(error)
    all_faults = map(fault_of, error.errors())
    faults: list[Fault] = [{"where": where, "problem": words} for where, words in all_faults]
    site = partial(site_of, request)
    return refusal(request.scope, 422, first_fault(error), faults=faults, site=site)


_UNREADABLE: Mapping[type[BaseException], str] = {
    UnicodeDecodeError: "the body is not UTF-8; send JSON as UTF-8",
    RecursionError: "the body is nested too deeply",
}
"""Descriptions of bodies that FastAPI cannot parse, by the cause of its error."""


async def respond_to_refused(request: Request, error: Exception) -> Response:
    """Respond to an unknown path or method."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it
    headers = _refusal_headers(request, error)
    if wants_page(request.scope):
        detail = "page not found" if error.status_code == 404 else error.detail
    elif error.__cause__ is not None:
        detail = _UNREADABLE.get(type(error.__cause__), error.detail)
    else:
        detail = _word_route_error(request, error.status_code, error.detail, headers or {})
    site = partial(site_of, request)
    return refusal(request.scope, error.status_code, detail, headers, site=site)


def _word_route_error(
    request: Request, status: int, detail: str, headers: Mapping[str, str]
) -> str:
    path, look = shown_path(request.scope["path"]), "GET /openapi.json lists every operation"
    if status == 404:
        has_parts = path.startswith(SESSIONS) and "/" in path.removeprefix(SESSIONS)
        slash = "; a slash in the name of a session is written %2F" if has_parts else ""
        return f"{path} does not exist{slash}; {look}"
    if status == 405:
        allowed = headers.get("Allow")
        other = f"; it takes {allowed}" if allowed else ""
        return f"{request.method} is not allowed at {path}{other}; {look}"
    return detail


def _refusal_headers(request: Request, error: HTTPException) -> Mapping[str, str] | None:
    """Return the headers of a refusal; a 405 lists the allowed methods."""
    if error.status_code != 405:
        return error.headers
    allowed = [method for method in METHODS if _is_allowed(request, method)]
    return {**(error.headers or {}), "Allow": ", ".join(allowed)} if allowed else error.headers


def _is_allowed(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": "GET" if method == "HEAD" else method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)


def first_fault(error: RequestValidationError) -> str:
    """Describe the first fault of a request in a sentence."""
    [first, *others] = error.errors()
    where, words = fault_of(first)
    more = f" (and {len(others)} more)" if others else ""
    return f"{where}: {words}{more}" if where else f"{words}{more}"


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
"""Most faults of a request to report."""


class ErrorObject(TypedDict):
    """An error in OpenAI's protocol."""

    message: Annotated[str, Doc("What happened, and what to do.")]
    type: Annotated[str, Doc("Its kind.")]
    param: Annotated[str | None, Doc("The parameter concerned, or null.")]
    code: Annotated[str | None, Doc("Code for programs; null: see the status.")]


class OpenAIError(TypedDict):
    """An error of OpenAI's protocol."""

    error: Annotated[ErrorObject, Doc("What went wrong.")]


def speaks_openai(path: str) -> bool:
    """Return true if clients of this path expect OpenAI's errors."""
    return path == "/v1" or path.startswith("/v1/")


def error_object(
    status: int, message: str, code: str | None = None, param: str | None = None
) -> OpenAIError:
    """Return an error in the form of the protocol."""
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
        fields["X-Should-Retry"] = "false"  # a header of OpenAI's client
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
        headers = {**headers, "X-Should-Retry": "false"}  # seats change only on restart
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
    """Return the location of a fault, and its description."""
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
