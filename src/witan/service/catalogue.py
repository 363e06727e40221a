"""The catalogue: every operation, declared once; surfaces are made from it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar, get_args

from witan.service.parameters import Parameters

P = TypeVar("P", bound=Parameters)
R = TypeVar("R")
T = TypeVar("T")
C = TypeVar("C", bound=type)

Kind = Literal["value", "session"]

Pool = Literal["history", "session", "upload"]
"""Threads that count over the history, one session, or ballots that a client sends.

None of them waits for another.
"""


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """A row of the catalogue, known before its module is imported.

    `summary`: one line for lists of commands, routes and tools.
    `module`: where it is declared, under ``witan.service.operations``.
    `command`: its command; empty: the same name; None: no command, because it concerns a server's
    running sessions.
    `label`: text of its link or button on the page; empty: its name.
    `tool`: whether agents have a tool for it. Operations for operators have none, because every
    conversation would pay for their arguments.
    """

    name: str
    summary: str
    module: str
    command: str | None = ""
    label: str = ""
    tool: bool = True


CATALOGUE: Mapping[str, CatalogueRow] = MappingProxyType(
    {
        row.name: row
        for row in (
            CatalogueRow("ask", "Ask several models, which review each other blind.", "ask"),
            CatalogueRow("plan", "Estimate the cost of a question, without a call.", "plan"),
            CatalogueRow("judge", "Judge texts with a jury: which pass, which is best.", "ask"),
            CatalogueRow(
                "plan_judge", "Estimate the cost of a judgment, without a call.", "plan", "judge"
            ),
            CatalogueRow("result", "Wait for the end of a session.", "sessions", None),
            CatalogueRow("cancel", "Cancel a running session.", "sessions", None),
            CatalogueRow("show", "Show a stored session.", "sessions"),
            CatalogueRow("resume", "Resume an interrupted session.", "ask"),
            CatalogueRow("retry", "Ask the seats that failed again.", "ask"),
            CatalogueRow(
                "plan_retry", "Estimate the cost of a retry, without a call.", "plan", "retry"
            ),
            CatalogueRow("rejudge", "Review a session's answers again with another jury.", "ask"),
            CatalogueRow(
                "plan_rejudge",
                "Estimate the cost of another jury, without a call.",
                "plan",
                "rejudge",
            ),
            CatalogueRow("sessions", "List the sessions in the history.", "sessions"),
            CatalogueRow("paper", "Prepare a blind voting paper.", "voting", "vote"),
            CatalogueRow("vote", "Vote on a stored session, blind.", "voting"),
            CatalogueRow(
                "votes", "Compare a person's votes with the panels.", "voting", tool=False
            ),
            CatalogueRow("forget", "Delete a session.", "sessions"),
            CatalogueRow("leaderboard", "Rank models by their scores across sessions.", "reports"),
            CatalogueRow(
                "audit", "Audit how reviewers judge: bias, concordance, value.", "reports"
            ),
            CatalogueRow(
                "tally",
                "Count ballots: who leads, and how sure that is.",
                "counting",
                label="Count ballots",
            ),
            CatalogueRow(
                "compare",
                "Count the same ballots under every rule.",
                "counting",
                label="Compare the rules",
            ),
            CatalogueRow(
                "calibrate",
                "Check the calibration of the probabilities.",
                "calibration",
                label="Check probabilities",
                tool=False,
            ),
            CatalogueRow(
                "estimate",
                "Estimate systems from a jury, corrected by people's votes.",
                "calibration",
                label="Estimate systems",
                tool=False,
            ),
            CatalogueRow(
                "explain",
                "Show step by step why the leader leads.",
                "counting",
                label="Explain an outcome",
                tool=False,
            ),
            CatalogueRow("recount", "Count a stored session again, without a call.", "sessions"),
            CatalogueRow("rules", "List the rules and when to use them.", "rules"),
            CatalogueRow("rubrics", "List the rubrics, or show one.", "rules"),
            CatalogueRow("profiles", "List the councils that can be asked.", "profiles"),
        )
    }
)
"""Every operation by name, in the order of help and reference."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[P, R]):
    """An operation: name, parameters, result and handler.

    `description`: a paragraph: what it does and what callers need to know.
    `needs`: the type of its subject; ``object``: none.
    `kind`: ``value``: returns a result; ``session``: starts a session.
    `pool`: queue of a server's threads in which it waits; None if it is too quick for one.
    `method`, `path`: the HTTP route; ``{session}`` in the path is the parameter of that name.
    `changes`, `destroys`: whether it changes what is stored, and whether it may delete something.
    """

    name: str
    summary: str
    description: str
    parameters: type[P]
    result: type[R]
    needs: Any
    handler: Callable[[Any, P], R]
    method: str
    path: str
    tag: str
    kind: Kind = "value"
    pool: Pool | None = None
    changes: bool = False
    destroys: bool = False

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The parameters in the path."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))


_REDACTORS: dict[type, Callable[[Any], Any]] = {}


def redact(result: T) -> T:
    """Redact a result by its type, for clients of a server.

    Raises `TypeError` if nothing declares what clients may see of exactly this type.
    """
    answer: T = _redactor(type(result))(result)
    return answer


def redacts(result: type[T]) -> Callable[[Callable[[T], T]], Callable[[T], T]]:
    """Register a redaction function for results of a type."""

    def register(redactor: Callable[[T], T]) -> Callable[[T], T]:
        _REDACTORS[result] = redactor
        return redactor

    return register


def public(result: C) -> C:
    """Declare a result type safe to send unredacted.

    Its values contain no path, command, URL or prompt of the server.
    """
    _REDACTORS[result] = lambda value: value
    return result


def _redactor(result: type) -> Callable[[Any], Any]:
    if result not in _REDACTORS:
        raise TypeError(f"{result.__name__} is neither redacted nor public")
    return _REDACTORS[result]


def operation(
    route: str,
    *,
    tag: str,
    kind: Kind = "value",
    pool: Pool | None = None,
    changes: bool = False,
    destroys: bool = False,
) -> Callable[[Callable[[Any, P], R]], Operation[P, R]]:
    """Declare an operation with the name and the types of its handler.

    `route`: method and path, such as ``GET /sessions``.

    Raises `TypeError` if its result is neither redacted nor public.
    """
    method, path = route.split()

    def declare(handler: Callable[[Any, P], R]) -> Operation[P, R]:
        name, hints = handler.__name__, {**handler.__annotations__}
        result = hints.pop("return")
        needs, parameters = hints.values()
        if kind == "value":
            for each in get_args(result) or (result,):
                _redactor(each)
        return Operation(
            name,
            CATALOGUE[name].summary,
            cleandoc(handler.__doc__ or ""),
            parameters,
            result,
            needs,
            handler,
            method,
            path,
            tag,
            kind,
            pool,
            changes,
            destroys,
        )

    return declare


@cache
def find_operation(name: str) -> Operation[Any, Any]:
    """Import an operation by its name."""
    row = CATALOGUE[name]
    module = import_module(f"witan.service.operations.{row.module}")
    operation: Operation[Any, Any] = getattr(module, name)
    return operation
