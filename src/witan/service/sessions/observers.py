"""Whoever hears of sessions beside their readers, heard through: one that fails is passed over."""

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager

from witan.deliberation.events import Event
from witan.deliberation.recorder import Listener
from witan.service.error_boundary import Mishap, guarded
from witan.service.sessions.running import Observer, Running

__all__ = ["all_over", "watched"]

_log = logging.getLogger("witan.chamber")


def watched(observer: Observer, running: Running) -> Listener:
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


def all_over(observers: Iterable[Observer], running: Running) -> None:
    """Tell every observer that nothing follows in a session."""
    for observer in observers:
        with _spared(observer):
            observer.over(running)


def _spared(observer: Observer) -> AbstractContextManager[Mishap]:
    words = "%s failed; the session goes on without it"
    return guarded(_log, words, type(observer).__name__)
