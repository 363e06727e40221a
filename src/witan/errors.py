"""Every error Witan raises on purpose.

WitanError
├── UnknownName          a rule, rubric, session … that does not exist (KeyError)
│   └── UnknownOption    an option that a function does not have (TypeError)
├── InvalidBallot        a review or record that cannot be read as a ballot (ValueError)
├── InvalidParameter     an option with a value it does not accept (ValueError)
│   └── MissingParameter a required option that is missing
├── InvalidRubric        a rubric that cannot be used for grading (ValueError)
├── UnsuitableBallots    ballots that a rule cannot count, with an alternative (ValueError)
├── UnclearScale         grades that fit no scale, or two equally well (ValueError)
├── NothingToCount       no ballot, or no candidate (ValueError)
├── TooLarge             beyond a stated limit (ValueError)
├── BallotFileError      a file that cannot be read or written as ballots (ValueError)
├── SessionFileError     a file that cannot be read as a session (ValueError)
├── HistoryError         a history that cannot be opened, read or written (RuntimeError)
│   └── HistoryConflict  a request that conflicts with what it contains or lacks
├── ConfigError          a setting in a file or variable that is not accepted (ValueError)
├── NoCouncil            fewer members than a council needs (ValueError)
├── MissingKey           a member without the key it needs (LookupError)
├── ModelError           a call to a model that returned no reply (RuntimeError)
├── OverBudget           a call that could exceed the cost ceiling (RuntimeError)
├── Busy                 too many requests at once or within a period (RuntimeError)
└── MissingExtra         an optional feature that is not installed (ImportError)

Each error inherits from an error above it and from a Python exception. It keeps its fields in
``args``, so that it pickles, and says in one sentence what is wrong, where, and what to do. If a
parameter helps, the error has a `Remedy`, which each surface writes in its own syntax.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

__all__ = [
    "BallotFileError",
    "Busy",
    "ConfigError",
    "HistoryConflict",
    "HistoryError",
    "InvalidBallot",
    "InvalidParameter",
    "InvalidRubric",
    "MissingExtra",
    "MissingKey",
    "MissingParameter",
    "ModelError",
    "NoCouncil",
    "NothingToCount",
    "OverBudget",
    "SessionFileError",
    "TooLarge",
    "UnclearScale",
    "UnknownName",
    "UnknownOption",
    "UnsuitableBallots",
    "WitanError",
]


@dataclass(frozen=True, slots=True)
class Way:
    """One remedy: words, and the parameters to use.

    Parameters
    ----------
    words, after
        Text before and after the parameters.
    arguments
        Values by parameter: a single value, the entries of a table, or True for a switch.
    operation
        Operation that has these parameters; empty for the one that failed.
    command
        Whether the remedy applies only on the command line.
    """

    words: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    operation: str = ""
    after: str = ""
    command: bool = False

    def __str__(self) -> str:
        arguments_text = ", ".join(_write(name, value) for name, value in self.arguments.items())
        return f"{self.words}{arguments_text}{self.after}"


def _write(name: str, value: object) -> str:
    if isinstance(value, Mapping):
        return f"{name} {', '.join(f'{key}={entry}' for key, entry in value.items())}"
    return name if value is True else f"{name}={value}"


class Remedy:
    """Several remedies, any of which helps.

    Each surface writes the parameters in its own syntax.

    ``str()`` gives the syntax of Python and of requests: ``scale=0-1``.
    """

    __slots__ = ("ways",)

    def __init__(self, *ways: Way | str) -> None:
        self.ways = tuple(Way(way) if isinstance(way, str) else way for way in ways)

    def __str__(self) -> str:
        return self.write(lambda way: None if way.command else str(way))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remedy) and self.ways == other.ways

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[type["Remedy"], tuple[Way, ...]]:
        return Remedy, self.ways

    def write(self, write_way: Callable[[Way], str | None]) -> str:
        """Join the ways in a surface's own words; None if none fits."""
        return ", or ".join(filter(None, map(write_way, self.ways)))


class WitanError(Exception):
    """Root of the errors that Witan raises on purpose."""


LONG_NAME = 16


class UnknownName(WitanError, KeyError):
    """A name is unknown; the nearest known one is suggested."""

    def __init__(self, kind: str, name: str, known_names: Iterable[str]) -> None:
        self.kind, self.name, self.known_names = kind, name, tuple(known_names)
        super().__init__(kind, name, self.known_names)

    @property
    def nearest(self) -> str | None:
        """The most similar known name, if one is close."""
        folded_names = {name.casefold(): name for name in reversed(self.known_names)}
        name = str(self.name).casefold()
        # Any two long names, such as those of sessions, share about half of their letters.
        cutoff = 0.6 if len(name) < LONG_NAME else 0.85
        close = difflib.get_close_matches(name, folded_names, n=1, cutoff=cutoff)
        return folded_names[close[0]] if close else None

    @property
    def suggestion(self) -> str:
        """The text "; did you mean …?" for the nearest name; empty without one."""
        return "" if self.nearest is None else f"; did you mean {self.nearest!r}?"

    def __str__(self) -> str:
        if self.nearest is not None:
            return f"unknown {self.kind} {self.name!r}{self.suggestion}"
        if not self.known_names:
            return f"unknown {self.kind} {self.name!r}; none are known"
        names_text = ", ".join(self.known_names[:20]) + (
            ", …" if len(self.known_names) > 20 else ""
        )
        return f"unknown {self.kind} {self.name!r}; known: {names_text}"


class UnknownOption(UnknownName, TypeError):
    """An option is unknown; the nearest known one is suggested."""

    def __init__(self, name: str, known_names: Iterable[str]) -> None:
        super().__init__("option", name, known_names)
        self.args = (name, self.known_names)


class InvalidBallot(WitanError, ValueError):
    """A review cannot be read as a ballot; its reviewer therefore abstains."""

    def __init__(self, reviewer: str, problem: str) -> None:
        self.reviewer, self.problem = reviewer, problem
        super().__init__(reviewer, problem)

    def __str__(self) -> str:
        return f"the ballot of {self.reviewer} {self.problem}"


class InvalidParameter(WitanError, ValueError):
    """An option does not accept its value."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        self.name, self.value, self.expected = name, value, expected
        super().__init__(name, value, expected)

    def __str__(self) -> str:
        is_empty = isinstance(self.value, str) and not self.value.strip()
        problem = "is empty" if is_empty else f"cannot be {self.value!r}"
        return f"{self.name} {problem}; expected {self.expected}"


class MissingParameter(InvalidParameter):
    """A required option is missing; its value is None."""

    def __str__(self) -> str:
        return f"{self.name} is missing; expected {self.expected}"


class InvalidRubric(WitanError, ValueError):
    """A rubric cannot be used for grading."""

    def __init__(self, rubric: str, problem: str) -> None:
        self.rubric, self.problem = rubric, problem
        super().__init__(rubric, problem)

    def __str__(self) -> str:
        return f"the rubric {self.rubric!r} {self.problem}"


class UnsuitableBallots(WitanError, ValueError):
    """A rule cannot count these ballots; the remedy names an alternative."""

    def __init__(self, rule: str, problem: str, remedy: str, session: str | None = None) -> None:
        self.rule, self.problem, self.remedy, self.session = rule, problem, remedy, session
        super().__init__(rule, problem, remedy, session)

    def __str__(self) -> str:
        return f"the rule {self.rule!r} cannot count these ballots: {self.problem}; {self.remedy}"


class UnclearScale(WitanError, ValueError):
    """Grades fit no scale, or fit two equally well.

    The readings list how each scale would interpret them.

    Parameters
    ----------
    readings
        Scale and what it would do with the grades, the likeliest first.
    """

    def __init__(self, problem: str, readings: Iterable[tuple[str, str]]) -> None:
        self.problem, self.readings = problem, tuple(readings)
        ways = (Way("", {"scale": scale}, after=f" {what}") for scale, what in self.readings)
        self.remedy = Remedy(*ways)
        super().__init__(problem, self.readings)

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class NothingToCount(WitanError, ValueError):
    """There is no ballot or no candidate to count."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)

    def __str__(self) -> str:
        return self.problem


class TooLarge(WitanError, ValueError):
    """A size exceeds a stated limit."""

    def __init__(self, quantity: str, size: int, limit: int, remedy: str = "") -> None:
        self.quantity, self.size, self.limit, self.remedy = quantity, size, limit, remedy
        super().__init__(quantity, size, limit, remedy)

    def __str__(self) -> str:
        message = f"{self.size:,} {self.quantity} exceed the limit of {self.limit:,}"
        return f"{message}; {self.remedy}" if self.remedy else message


class BallotFileError(WitanError, ValueError):
    """A file cannot be read or written as ballots.

    Parameters
    ----------
    problem
        What is wrong with the file; without a line number, a predicate that follows its path.
    """

    def __init__(
        self, path: str, problem: str, line: int | None = None, remedy: Remedy | str = ""
    ) -> None:
        self.path, self.problem, self.line, self.remedy = path, problem, line, remedy
        super().__init__(path, problem, line, remedy)

    def __str__(self) -> str:
        location = self.path if self.line is None else f"{self.path}:{self.line}:"
        way_on = str(self.remedy)
        return f"{location} {self.problem}{way_on and f'; {way_on}'}"


class SessionFileError(WitanError, ValueError):
    """A session cannot be read, written to a file, or continued."""

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(path, problem)

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


_VERBS = ("is", "has", "was", "cannot", "could", "does", "holds", "needs", "went", "would")
"""First words of a problem that is written as a predicate."""


class HistoryError(WitanError, RuntimeError):
    """A history cannot be opened, read or written.

    `location` never contains a password.
    """

    def __init__(self, location: str, problem: str, remedy: str | Remedy) -> None:
        self.location, self.problem, self.remedy = location, problem, remedy
        super().__init__(location, problem, remedy)

    @property
    def is_damage(self) -> bool:
        """True if the stored data cannot be read."""
        return self.problem.startswith("is damaged")

    def __str__(self) -> str:
        # A file is followed by a colon; "the history" is the subject of the sentence.
        is_subject = self.location == "the history" and self.problem.partition(" ")[0] in _VERBS
        return f"{self.location}{'' if is_subject else ':'} {self.problem}; {self.remedy}"


class HistoryConflict(HistoryError):
    """The request conflicts with the current content of a history."""


class ConfigError(WitanError, ValueError):
    """A setting is not accepted; `source` is its file, variable or option."""

    def __init__(self, source: str, key: str, problem: str) -> None:
        self.source, self.key, self.problem = source, key, problem
        super().__init__(source, key, problem)

    def __str__(self) -> str:
        subject = f"{self.key} " if self.key else ""
        return f"{self.source}: {subject}{self.problem}"


class NoCouncil(WitanError, ValueError):
    """Too few members for a council; the remedy adds some."""

    def __init__(self, problem: str, remedy: str | Remedy) -> None:
        self.problem, self.remedy = problem, remedy
        super().__init__(problem, remedy)

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class MissingKey(WitanError, LookupError):
    """A member's API key is not set.

    The key itself is never shown.
    """

    def __init__(self, member: str, variable: str) -> None:
        self.member, self.variable = member, variable
        super().__init__(member, variable)

    def __str__(self) -> str:
        return f"{self.member} needs a key: set the variable {self.variable}"


class ModelError(WitanError, RuntimeError):
    """A call to a model returned no reply.

    Parameters
    ----------
    status
        The HTTP status, if any.
    retry_after
        Seconds the provider asks to wait, or None.
    transient
        The same call may succeed later: 408, 409, 425, 429, 5xx, a dropped connection, a timeout.
    sent
        Whether the request probably reached the provider; otherwise it is not billed.
    """

    def __init__(  # noqa: PLR0917 - positional, so that the error pickles
        self,
        model: str,
        problem: str,
        status: int | None = None,
        retry_after: float | None = None,
        transient: bool = False,
        sent: bool = True,
    ) -> None:
        self.model, self.problem, self.status = model, problem, status
        self.retry_after, self.transient, self.sent = retry_after, transient, sent
        super().__init__(model, problem, status, retry_after, transient, sent)

    def __str__(self) -> str:
        return f"{self.model}: {self.problem}"


class OverBudget(WitanError, RuntimeError):
    """A call could exceed a ceiling, so it is not made."""

    def __init__(self, member: str, problem: str, remedy: Remedy | str = "") -> None:
        self.member, self.problem, self.remedy = member, problem, remedy
        super().__init__(member, problem, remedy)

    def __str__(self) -> str:
        way_on = str(self.remedy)
        return f"{self.member} is not called: {self.problem}{way_on and f'; {way_on}'}"


class Busy(WitanError, RuntimeError):
    """The server is busy; the same request may succeed later."""

    def __init__(self, problem: str, remedy: str, retry_seconds: float | None = None) -> None:
        self.problem, self.remedy, self.retry_seconds = problem, remedy, retry_seconds
        super().__init__(problem, remedy, retry_seconds)

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class MissingExtra(WitanError, ImportError):
    """An optional package is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.feature, self.extra = feature, extra
        super().__init__(feature, extra)

    def __str__(self) -> str:
        return f"{self.feature} needs an extra: in a clone of Witan, pip install '.[{self.extra}]'"
