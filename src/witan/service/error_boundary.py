"""Errors of a server, contained and logged."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from logging import Logger
from types import MappingProxyType

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
