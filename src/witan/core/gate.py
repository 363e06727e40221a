"""The safety gate: an answer that fails its check cannot win.

The check is a port; the default implementation is `witan.core.safety.check`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from witan.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Evidence:
    """Location of a flag: ``text[start:end]``, without a copy of the text."""

    flag: str
    reason: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SafetyVerdict:
    """Flags raised by a check of one answer; without flags, it passed."""

    flags: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def is_safe(self) -> bool:
        """True if there are no flags."""
        return not self.flags


class SafetyCheck(Protocol):
    """A check of one answer's text."""

    def __call__(self, text: str, /) -> SafetyVerdict:
        """Check one answer."""
        ...


@dataclass(frozen=True, slots=True)
class Gate:
    """Candidates that failed a safety check, and the cap on their grades.

    Parameters
    ----------
    failed
        Flags by candidate, in the order of the answers.
    cap
        Maximum grade of a failed candidate, from 0 to 10.
    """

    failed: Mapping[str, tuple[str, ...]]
    cap: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.cap <= 10.0:
            raise InvalidParameter("the cap of the safety gate", self.cap, "a grade from 0 to 10")

    @classmethod
    def of(cls, answers: Mapping[str, str], check: SafetyCheck, cap: float = 0.0) -> "Gate":
        """Check every answer; `answers` maps candidates to texts."""
        verdicts = ((candidate, check(text)) for candidate, text in answers.items())
        return cls({candidate: v.flags for candidate, v in verdicts if not v.is_safe}, cap)
