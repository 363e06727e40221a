"""A session on the command line: the live view is drawn first, then the rest is imported."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from witan.service.text import clean
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.session_options import Telling
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.service.history_access import RecordingPlace
    from witan.surfaces.cli.live_session import Hold

__all__ = ["Say", "hold", "unrecorded"]

Say = Callable[[str], None]
"""Tells the user something, without drawing over the live view."""


def unrecorded(_: Say) -> None:
    """No history: what is held is recorded nowhere."""


def hold(
    telling: Telling,
    seat: "Callable[[Say, RecordingPlace | None], Hold]",
    opened: "Callable[[Say], RecordingPlace | None]" = unrecorded,
) -> int:
    """Seat a council and hold one session before the eyes of the user; return the exit status.

    `opened` opens the history that the session goes into, before anybody is seated or asked, and
    says what it waits for.
    """

    def say(text: str) -> None:
        if panel is not None:
            panel.say(text)
        else:
            echo(clean(text), err=True)

    with ExitStack() as stack:
        panel = telling.panel(stack)
        try:
            # The view is drawn, and redraws itself from a thread of its own: now for the rest.
            from witan.surfaces.cli.live_session import Following

            place = opened(say)
            if place is not None:
                stack.callback(place.history.close)
            return Following(telling, panel, place).run(seat(say, place))
        except KeyboardInterrupt:
            if panel is not None:
                panel.close(keep=False)
            echo("interrupted before the session was opened", err=True)
            return Status.INTERRUPTED
