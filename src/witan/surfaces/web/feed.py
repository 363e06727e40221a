"""What the readers of a page under way are sent: rendered once, however many they are."""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from weakref import WeakKeyDictionary

import anyio

from witan.service.sessions.stream import Stream
from witan.surfaces.web.live import LiveSession

__all__ = [
    "FRAME_SECONDS",
    "LIVE_SECONDS",
    "Feed",
    "Feeds",
    "follow_live",
    "frame",
    "last_patch",
]

FRAME_SECONDS = 0.05
"""How long what changes is gathered before it is sent: the least time between two patches."""

HELD = 32
"""Patches that are held for readers that are behind; one further behind gets a patch of its own."""

LIVE_SECONDS = 5.0
"""How often a page hears of its server: after twice as long it says that the server is lost."""

HEARTBEAT = b"event: here\ndata: here\n\n"
"""An event and no comment, of which scripts hear nothing."""

END = b"event: end\ndata: end\n\n"


class Feed:
    """The patches of one page, for all who read it.

    Parameters
    ----------
    page
        A page that shows nothing yet.

    Attributes
    ----------
    seq
        The number of the event up to which there are patches.
    end
        The last patch, with which the whole page comes; None: more may follow.
    """

    def __init__(self, page: Callable[[], LiveSession]) -> None:
        self._page, self._live = page, page()
        self._held: deque[bytes] = deque(maxlen=HELD)
        self._made = 0
        self._heard = 0
        self._due = 0.0
        self.seq = 0
        self.end: bytes | None = None

    def lags(self, stream: Stream) -> bool:
        """Whether something was told that it has not taken yet."""
        return stream.ended or bool(stream.told_after(self._heard))

    async def ready(self, stream: Stream) -> None:
        """Wait until something was told, and what comes with it.

        Whatever begins at one moment is shown at one: in what order it begins is that of the seats.
        """
        if not self.lags(stream):
            await stream.changed()
        await anyio.sleep_until(max(self._due, anyio.current_time() + FRAME_SECONDS))

    def take(self, stream: Stream, problem: Callable[[], str]) -> None:
        """Render what was told since the last time, if anything was."""
        if self.end is not None:
            return
        over = stream.ended  # before what was told is heard: nothing follows it then
        for told in stream.told_after(self._heard):
            self._heard = told.seq
            self._live.take(told.event)
        self.seq = self._live.seq
        if over:
            whole = self._live.ended(problem())
            self.end = frame(f"{self.seq}-{stream.mark}", whole) + END
            self._live = self._page()  # the page that is over holds every text once more
            self._held.clear()
            return
        # What closes a session is followed by its end, with which the whole page comes.
        if patch := "" if self._live.over else self._live.patch():
            self._held.append(frame(f"{self.seq}-{stream.mark}", patch))
            self._made += 1
            self._due = anyio.current_time() + FRAME_SECONDS

    @property
    def rests(self) -> bool:
        """Whether there was a patch just now."""
        return anyio.current_time() < self._due

    @property
    def made(self) -> int:
        """How many patches there were so far."""
        return self._made

    def since(self, seen: int) -> bytes | None:
        """The patches that a reader of so many lacks; None: they are not held any more."""
        lacks = self._made - seen
        if lacks > len(self._held):
            return None
        return b"".join([*self._held][len(self._held) - lacks :])

    def missed(self, stream: Stream, after: int) -> bytes:
        """What a page that shows the events up to `after` lacks of what the feed has come to."""
        if after >= self.seq:
            return b""
        live = self._page()
        known = [told for told in stream.told_after(0) if told.seq <= self.seq]
        for told in known:
            if told.seq <= after:
                live.take(told.event)
        if live.seq:
            live.seen()
        for told in known:
            if told.seq > after:
                live.take(told.event)
        patch = "" if live.over else live.patch()
        return frame(f"{self.seq}-{stream.mark}", patch) if patch else b""


class Feeds:
    """The feeds of the sessions that are read; each goes with its session."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Stream, dict[bool, Feed]] = WeakKeyDictionary()

    def of(self, stream: Stream, page: Callable[[], LiveSession], *, revealed: bool) -> Feed:
        """The feed of a session whose names are shown or hidden."""
        held = self._of.setdefault(stream, {})
        if revealed not in held:
            held[revealed] = Feed(page)
        return held[revealed]


def frame(last: str, patch: str) -> bytes:
    """A patch as one server-sent event; `last` is where a lost connection is taken up again."""
    # A bare carriage return would end the line, too.
    lines = patch.replace("\r", "").split("\n")
    return "\n".join([f"id: {last}", *(f"data: {line}" for line in lines), "", ""]).encode()


async def last_patch(live: LiveSession) -> AsyncGenerator[bytes, None]:
    """Yield the whole page of a session that is not under way, and the event ``end``."""
    yield frame(str(live.seq), live.ended()) + END


async def follow_live(
    stream: Stream,
    feed: Feed,
    *,
    after: int = 0,
    heartbeat_seconds: float = LIVE_SECONDS,
    problem: Callable[[], str] = lambda: "",
) -> AsyncGenerator[bytes, None]:
    """Yield what happens as server-sent events, until the stream ends; then the event ``end``.

    Parameters
    ----------
    stream
        The events of the session, from the first on: a page cannot be patched without its past.
    feed
        Whoever comes first renders what all others are sent.
    after
        The number of the last event that the reader's page already shows.
    problem
        What there is to say at the end beside the session itself.
    """
    due = anyio.current_time() + heartbeat_seconds
    seen: int | None = None
    while True:
        if seen is None or (piece := feed.since(seen)) is None:
            feed.take(stream, problem)
            piece = b"" if feed.end else feed.missed(stream, after)
        if feed.end is not None:
            yield feed.end
            return
        seen, after = feed.made, feed.seq
        if piece:
            yield piece
            due = anyio.current_time() + heartbeat_seconds
            continue
        with anyio.CancelScope(deadline=due):
            await feed.ready(stream)
            if not feed.rests:  # nobody else has made the patch meanwhile
                feed.take(stream, problem)
        if anyio.current_time() >= due:
            yield HEARTBEAT
            due = anyio.current_time() + heartbeat_seconds
