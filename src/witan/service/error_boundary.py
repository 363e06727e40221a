"""Errors of a server: contained, logged, and worded for clients."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from logging import Logger
from types import MappingProxyType

from witan.service.redaction import public_error

NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(slots=True)
class ContainedError:
    """The error of a guarded block; None: there was none."""

    failure: Exception | None = None


@contextmanager
def contain_errors(
    log: Logger,
    words: str,
    *about: object,
    fields: Mapping[str, object] = NOTHING,
    passing: type[Exception] | tuple[type[Exception], ...] = (),
) -> Iterator[ContainedError]:
    """Write what nobody foresaw in this block into the log, and go on after it.

    Parameters
    ----------
    words, about, fields
        What the log says of it.
    passing
        What is raised on.
    """
    mishap = ContainedError()
    try:
        yield mishap
    except passing:
        raise
    except Exception as error:  # rules, models and providers are others' work
        log.exception(words, *about, extra={"fields": dict(fields)} if fields else None)
        mishap.failure = error


_PHRASES = (
    (re.compile(r"witan tally (?:'[^']*'|\S+) (?=--column )"), "add "),
    (re.compile(r"with --price \S+=IN,OUT, or "), ""),
    (re.compile(r"--column "), "columns="),
    (re.compile(r"--scale "), "scale="),
    (re.compile(r"--format "), "format="),
    (re.compile(r" with --answers FILE"), " with its answers"),
    (re.compile(r"or run witan init, or try witan demo"), "or ask the profile demo"),
    (re.compile(r"try witan demo"), "ask the profile demo"),
    (re.compile(r"witan resume --take-over"), "take_over"),
    (re.compile(r", with witan resume (\S+)"), " (resume)"),
    (re.compile(r"witan recount with --kind all"), "a recount of the kind all"),
)
"""The wording of a remedy on the command line, and its equivalent in a request."""


def as_request(words: str) -> str:
    """Name fields of a request in place of options and commands."""
    if "--" not in words and "witan " not in words:
        return words
    for phrase, said in _PHRASES:
        words = phrase.sub(said, words)
    return words


def as_form(words: str) -> str:
    """Word a sentence for a form, whose fields have labels."""
    return as_request(words).replace("columns=", "")


def refusal(error: BaseException) -> str:
    """Word an error for whoever sent the request."""
    return as_request(public_error(error))
