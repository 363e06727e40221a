"""Whoever hears of sessions beside their readers, heard through: one that fails is passed over."""

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager

from witan.deliberation.events import Event
from witan.deliberation.recorder import Listener
from witan.service.error_boundary import ContainedError, contain_errors
from witan.service.sessions.running import Observer, RunningSession

__all__ = ["all_over", "watched"]

_log = logging.getLogger("witan.service")


def watched(observer: Observer, running: RunningSession) -> Listener:
    """What an observer hears a session by; once it fails, the session goes on without it."""
    hearing: list[Listener] = []
    with _spared(observer):
        hearing.append(observer.watch(running))

    def told(event: Event) -> None:
        if not hearing:
            return
        listener = hearing.pop()
        with _spared(observer):
            listener(event)
            hearing.append(listener)

    return told


def all_over(observers: Iterable[Observer], running: RunningSession) -> None:
    """Tell every observer that nothing follows in a session."""
    for observer in observers:
        with _spared(observer):
            observer.over(running)


def _spared(observer: Observer) -> AbstractContextManager[ContainedError]:
    words = "%s failed; the session goes on without it"
    return contain_errors(_log, words, type(observer).__name__)
