"""Pages of running sessions: their state, and patches of it.

A page is rendered at some event and then patched, so that after a lost connection it continues
after the last patch received. A text grows by Markdown blocks and is rendered again when complete.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias
from weakref import WeakKeyDictionary

import anyio
from markupsafe import Markup

from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.service.session_records import CouncilSession
from witan.service.sessions.running import Stream
from witan.service.text import clean, count_noun
from witan.surfaces.live_board import Board, LiveLine
from witan.surfaces.report.ballots import ballot_matrix
from witan.surfaces.report.banner import session_banner
from witan.surfaces.report.document import BallotMatrix, Banner, Block, Shortfall
from witan.surfaces.report.names import CHAIRMAN, SeatNames
from witan.surfaces.report.session import outcome_parts
from witan.surfaces.web.escaping import to_html
from witan.surfaces.web.markdown import NOTHING_WRITTEN, GrowingText, render_html
from witan.surfaces.web.rendering import SITE, Site, part, render
from witan.surfaces.web.session_page import SessionPage, conversation_of, session_page

FRAME_SECONDS = 0.05
"""Least seconds between two patches; changes are collected meanwhile."""

REST = 3
"""Minimum pause after a patch, as a multiple of its duration: other requests get their turn."""

MAX_PATCHES = 32
"""Patches stored for readers that are behind."""

LIVE_SECONDS = 5.0
"""Seconds between heartbeats; a page misses two before it gives up."""

HEARTBEAT = b"event: here\ndata: here\n\n"
"""Heartbeats are events, because scripts do not see comments."""

END = b"event: end\ndata: end\n\n"

CLOSING = ""
"""The key of the final answer among the seats' answers."""

LIVE, DOCUMENT = "parts/live.html", "parts/document.html"


@dataclass(frozen=True, slots=True)
class Lane:
    """One seat.

    `key`: its number on the page, in the order of the lanes.
    `elapsed_seconds`: seconds since the start of its current work; None: idle.
    `writes`: whether it answers; jurors only review.
    `text`, `partial`: the complete answer, and until then the answer so far.
    `is_marked`: whether it plays a script and others do not.
    """

    key: int
    name: str
    line: LiveLine
    elapsed_seconds: float | None
    note: str
    writes: bool = True
    partial: GrowingText = NOTHING_WRITTEN
    text: Markup | None = None
    is_open: bool = False
    is_marked: bool = False


Change: TypeAlias = tuple[str, str, Callable[[], str]]
"""Id of an element, how it is swapped, and the function that writes the new part."""

UNSEEN = object()
"""State of a part that the page does not show yet."""


class LivePage:
    """The page of a running session.

    `events`: all events so far, including pieces of texts; the first is the opening.
    `clock`: the time of day, for computing elapsed seconds.
    `mark`: mark of the stream, because two events may have the same number.
    """

    def __init__(
        self,
        events: Iterable[e.Event] = (),
        *,
        show_names: bool = False,
        site: Site = SITE,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        mark: str = "",
    ) -> None:
        self.shows_names, self._site, self._clock = show_names, site, clock
        self._mark = mark
        self._events: list[e.Event] = []
        self.board = Board()
        self._texts: dict[str, str] = {}
        self._answers: dict[str, Markup] = {}
        self._n_counts = 0
        self._visible: dict[str, GrowingText | None] = {}
        self._states: dict[str, object] = {}
        self._seat_names: SeatNames | None = None
        self.seq = 0
        for event in events:
            self.take(event)
        if self._events:
            self.mark_visible()

    def take(self, event: e.Event) -> None:
        """Apply an event; its changes go into the next patch."""
        self.seq = event.seq
        self.board = self.board.apply_event(event)
        if not isinstance(event, e.DELTAS):
            self._events.append(event)
            if not isinstance(event, e.CallRetried | e.SheetDrawn | e.ReviewStarted):
                self._seat_names = None
        self._take_text(event)

    def _take_text(self, event: e.Event) -> None:
        match event:
            case e.SessionOpened():
                self.mark_visible()
                # The page may have been rendered before the session was interrupted and resumed.
                self._states |= {"writer": UNSEEN, "status": UNSEEN}
                self._forget(CLOSING)
            case e.AnswerDelta():
                self._texts[event.seat] = self._texts.get(event.seat, "") + event.text
            case e.AnswerDone():
                source = self.seat_names.quote(event.text)
                self._answers[event.seat] = render_html(source, key=f"text-{event.seq}")
            case (
                e.AnswerStarted()
                | e.AnswerFailed()
                | e.CallRetried(stage="answer")
                | e.TextWithdrawn(stage="answer")
            ):
                # After a failed debate round the previous answer counts.
                if event.seat not in self._answers:
                    self._texts.pop(event.seat, None)
                    self._forget(event.seat)
            case e.SynthesisDelta():
                self._texts[CLOSING] = self._texts.get(CLOSING, "") + event.text
            case (
                e.SynthesisFailedOver()
                | e.CallRetried(stage="synthesis")
                | e.TextWithdrawn(stage="synthesis")
            ):
                self._texts.pop(CLOSING, None)
                self._forget(CLOSING)
            case e.OutcomeChanged() | e.BallotCast() | e.BallotAbstained():
                self._n_counts += 1
            case _:
                pass

    def _forget(self, of: str) -> None:
        """Mark a text for rendering again."""
        self._visible[of], self._states[f"text of {of}"] = None, UNSEEN

    def mark_visible(self) -> None:
        """Mark everything so far as shown."""
        for _ in self._changes():
            pass

    @property
    def is_closed(self) -> bool:
        """True if the session was closed."""
        return self.board.phase == "closed"

    @property
    def session(self) -> Session:
        """The session so far."""
        return Session.of(self._events)

    @property
    def seat_names(self) -> SeatNames:
        """The current names of the seats."""
        if self._seat_names is None:
            # Names of given texts are known to the reader.
            revealed = self.shows_names or self._opening.judging is not None
            self._seat_names = SeatNames.of(self.session, hides_names=not revealed)
        return self._seat_names

    @property
    def news(self) -> tuple[str, ...]:
        """Events that changed the course of the session."""
        return tuple(map(self.seat_names.sentence, self.board.news))

    @property
    def authors(self) -> frozenset[str]:
        """Names of the seats that answer."""
        return frozenset(seat.name for seat in self._opening.members)

    @property
    def places(self) -> Iterator[tuple[str, str]]:
        """Key and title of the sections to jump to."""
        judges_texts = self._opening.judging is not None
        if not judges_texts:
            yield "answer", "Answer"
        yield from (("ranking", "Ranking"), ("ballots", "Ballots"))
        yield "answers", "Texts" if judges_texts else "Answers"
        yield from [("run", "Reviewers")] if self.is_rejudgment else []

    @property
    def is_mixed(self) -> bool:
        """True if scripts play some seats but not all."""
        seats = (*self._opening.seats, *self._opening.callable_seats)
        return len({seat.simulated for seat in seats}) > 1

    @property
    def is_rejudgment(self) -> bool:
        """True if the answers come from an earlier session."""
        return bool(self._opening.answers)

    @property
    def _opening(self) -> e.SessionOpened:
        first = self._events[0]
        assert isinstance(first, e.SessionOpened)  # noqa: S101 - every session begins with it
        return first

    @property
    def address(self) -> str:
        """Address of the patches of this page."""
        revealed = "&reveal=1" if self.shows_names else ""
        place = f"{self.seq}-{self._mark}" if self._mark else self.seq
        return f"{self._site.at('sessions', self._opening.session, 'live')}?after={place}{revealed}"

    def page(self) -> SessionPage:
        """Return the page of the session so far."""
        return session_page(
            CouncilSession(self.session, under_way=True), show_names=self.shows_names
        )

    def blind_vote(self) -> str:
        """Return a reader's kind of vote: ``early``, ``blind`` or ``seen``.

        It is ``seen`` once ballots are shown, and empty if votes are not stored or the page shows
        names.
        """
        if not self._site.keeps or self.shows_names or self._opening.judging is not None:
            return ""
        if any(isinstance(each, e.BallotCast) for each in self._events):
            return "seen"
        has_begun = any(isinstance(each, e.ReviewStarted) for each in self._events)
        return "blind" if has_begun else "early"

    def matrix(self) -> BallotMatrix:
        """Return the ballots so far."""
        return ballot_matrix(self.session, self.seat_names, is_closed=False)

    def banner(self) -> Banner:
        """Return the verdict so far."""
        return session_banner(self.session, self.seat_names, is_closed=False)

    def ranking(self) -> list[Block]:
        """Return the ranking so far."""
        outcome = self.board.outcome
        return [] if outcome is None else [*outcome_parts(outcome, self.seat_names)]

    def gaps(self) -> Shortfall | None:
        """Return which seats failed so far, or None."""
        names = self.seat_names
        lines = [line for line in self.board.seats if line.mark == "bad"]
        if not lines:
            return None
        text = f"{names.name_list(line.name for line in lines)} failed"
        reasons = [f"{names.name(line.name)}: {names.sentence(line.note)}" for line in lines]
        return Shortfall("under way", text, tuple(names.sort(reasons)))

    def lanes(self) -> tuple[Lane, ...]:
        """Return every seat, with its text so far."""
        return tuple(self._whole_lane(key, line) for key, line in enumerate(self._lines()))

    def _whole_lane(self, key: int, line: LiveLine) -> Lane:
        return replace(
            self._lane(key, line),
            writes=line.name in self.authors,
            partial=self._growing(line.name),
            text=self._answers.get(line.name),
            is_open=self._is_open(line),
        )

    def _is_open(self, line: LiveLine) -> bool:
        return line.name not in self._answers and line.state in ("waiting", "answering")

    def _lane(self, key: int, line: LiveLine) -> Lane:
        elapsed = line.elapsed_seconds(self._clock())
        seconds = None if elapsed is None else round(elapsed, 1)
        name, note = self.seat_names.name(line.name), self.seat_names.sentence(line.note)
        marked = line.simulated and self.is_mixed
        return Lane(key, name, line, seconds, note, is_marked=marked)

    def _lines(self) -> tuple[LiveLine, ...]:
        lines = {line.name: line for line in self.board.seats}
        return tuple(lines[seat] for seat in self.seat_names.order(lines))

    def writer(self) -> Lane | None:
        """Return the seat that writes the final answer, or None."""
        line = self.board.writer
        if line is None:
            return None
        lane = self._lane(-1, line)
        return replace(lane, name=CHAIRMAN) if self.seat_names.hides_names else lane

    def final_text(self) -> GrowingText:
        """Return the final answer so far."""
        return self._growing(CLOSING)

    def _growing(self, of: str) -> GrowingText:
        text = self.seat_names.quote_partial(self._texts.get(of, ""))
        return (self._visible.get(of) or NOTHING_WRITTEN).grow(text)

    def patch(self) -> str:
        """Return what changed since the last patch, as partials."""
        if not self._events:
            return ""
        if self.is_closed:
            return self.final_patch()
        return "\n".join(_partial(at, swap, write()) for at, swap, write in self._changes())

    def final_patch(self, problem: str = "") -> str:
        """Return a patch that replaces the live page by the final one."""
        page = session_page(self.session, show_names=self.shows_names)
        councils = self._site.councils
        talk = conversation_of(self.session, show_names=self.shows_names, councils=councils)
        words = clean(problem)
        body = render("parts/session.html", site=self._site, page=page, problem=words, talk=talk)
        ending = to_html(f"The session is over: {page.status}.")
        announced = _partial("announced", "textContent", ending)
        return f"{announced}\n{_partial('session', 'innerMorph', body)}"

    def _changes(self) -> Iterator[Change]:
        lanes = [each for pair in enumerate(self._lines()) for each in self._lane_changes(*pair)]
        if self._differs("labels", self.seat_names.labels if self.seat_names.hides_names else None):
            # A failed seat gets no label of the final answer, so the labels of others change.
            yield "lanes", "innerHTML", self._write_lanes
        else:
            yield from lanes
        outcome, writer = self.board.outcome, self.board.writer
        if outcome is not None and self._differs("ranking", outcome):
            ranking = partial(_part, "blocks")
            yield "banner", "innerMorph", lambda: _part("banner", self.banner())
            yield "ranking-so-far", "innerMorph", lambda: ranking(self.ranking(), self._site, {})
        if self._differs("ballots", self._n_counts):
            matrix = partial(_part, "matrix")
            yield "ballots-so-far", "innerMorph", lambda: matrix(self.matrix(), self._site, True)
        if self._differs("gaps", gaps := self.gaps()):
            yield "gaps", "innerHTML", lambda: part(LIVE, "gaps", gaps)
        if self._differs("writer", writer and writer.at_rest):
            yield "writer", "innerHTML", lambda: part(LIVE, "writer", self.writer())
        if self._differs(f"text of {CLOSING}", self._texts.get(CLOSING, "")):
            yield from self._text_changes("final-text", CLOSING)
        if self._differs("blind", state := self.blind_vote()):
            session = self._opening.session
            yield "blind", "innerHTML", partial(part, LIVE, "blind", state, session, self._site)
        board = self.board
        if self._differs("status", (board.stage_text, board.news, board.provisional)):
            yield "status", "innerHTML", lambda: part(LIVE, "status", board, self.news)
            yield "announced", "textContent", lambda: to_html(board.stage_text)

    def _differs(self, name: str, state: object) -> bool:
        """Store the state of a part; return true if it has changed."""
        before, self._states[name] = self._states.get(name, UNSEEN), state
        return before is not state and before != state

    def _write_lanes(self) -> str:
        return "".join(part(LIVE, "lane", lane) for lane in self.lanes())

    def _lane_changes(self, key: int, line: LiveLine) -> Iterator[Change]:
        target, name = f"lane-{key}-text", line.name
        answer, text = self._answers.get(name), self._texts.get(name, "")
        has_new_head = self._differs(f"head of {name}", line.at_rest)
        has_new_text = self._differs(f"text of {name}", text if answer is None else answer)
        if self._differs(f"lane of {name}", self._is_open(line)):
            self._visible[name] = self._growing(name)
            lane = partial(part, LIVE, "lane")
            yield f"lane-{key}", "outerHTML", lambda: lane(self._whole_lane(key, line))
            return
        if has_new_head:
            head = partial(part, LIVE, "lane_head")
            yield f"lane-{key}-head", "innerHTML", lambda: head(self._lane(key, line))
        if not has_new_text:
            return
        if answer is not None:
            yield target, "outerHTML", lambda: f'<div id="{target}" class="prose">{answer}</div>'
            return
        yield from self._text_changes(target, name)
        if text:
            amount = to_html(count_noun(line.words, "word"))
            yield f"lane-{key}-amount", "textContent", lambda: amount

    def _text_changes(self, target: str, of: str) -> Iterator[Change]:
        """Yield a growing text's unsent finished blocks, and its last one."""
        old, new = self._visible.get(of, NOTHING_WRITTEN), self._growing(of)
        self._visible[of] = new
        if old is None or not new.continues(old):  # the earlier text is invalid, or shows a name
            yield target, "outerHTML", lambda: part(LIVE, "stream", target, new)
            return
        if new.tail_start > old.tail_start:
            yield f"{target}-tail", "beforebegin", lambda: new.blocks(old.tail_start)
        if new != old:
            yield f"{target}-tail", "innerMorph", lambda: new.tail


def _part(name: str, *values: object) -> str:
    return part(DOCUMENT, name, *values)


def _partial(target: str, swap: str, content: str) -> str:
    return f'<hx-partial hx-target="#{target}" hx-swap="{swap}">{content}</hx-partial>'


class Feed:
    """The patches of one page, for all its readers.

    `seq` is the number of the last event in them; `end` is the last one, with the whole page, once
    there is one.
    """

    def __init__(self, page: Callable[[], LivePage]) -> None:
        self._page, self._live = page, page()
        self._patches: deque[bytes] = deque(maxlen=MAX_PATCHES)
        self.n_patches = 0
        self._latest = 0
        self._next_at = 0.0
        self.seq = 0
        self.end: bytes | None = None

    def is_behind(self, stream: Stream) -> bool:
        """Return true if the stream has messages that it has not applied."""
        return stream.has_ended or bool(stream.messages_after(self._latest))

    async def wait(self, stream: Stream) -> None:
        """Wait for a message and simultaneous ones.

        Seats that start together are shown together, in their order.
        """
        if not self.is_behind(stream):
            await stream.wait_for_change()
        await anyio.sleep_until(max(self._next_at, anyio.current_time() + FRAME_SECONDS))

    def take(self, stream: Stream, problem: Callable[[], str]) -> None:
        """Render the messages since the last patch, if there are any."""
        if self.end is not None:
            return
        began = anyio.current_time()
        is_over = stream.has_ended  # read before the messages, so that none is missed
        for message in stream.messages_after(self._latest):
            self._latest = message.seq
            self._live.take(message.event)
        self.seq = self._live.seq
        if is_over:
            page = self._live.final_patch(problem())
            self.end = frame(f"{self.seq}-{stream.mark}", page) + END
            self._live = self._page()  # frees the texts of the finished page
            self._patches.clear()
            return
        # After `session_closed` comes the end, with the whole page.
        if patch := "" if self._live.is_closed else self._live.patch():
            self._patches.append(frame(f"{self.seq}-{stream.mark}", patch))
            self.n_patches += 1
            now = anyio.current_time()
            self._next_at = now + max(FRAME_SECONDS, REST * (now - began))

    @property
    def is_resting(self) -> bool:
        """Return true if it has just made a patch."""
        return anyio.current_time() < self._next_at

    def patches_after(self, number: int) -> bytes | None:
        """Return the patches after a number; None: no longer stored."""
        lacks = self.n_patches - number
        if lacks > len(self._patches):
            return None
        return b"".join([*self._patches][len(self._patches) - lacks :])

    def catch_up(self, stream: Stream, after: int) -> bytes:
        """Return a patch for a page that shows events up to `after`."""
        if after >= self.seq:
            return b""
        live = self._page()
        messages = [message for message in stream.messages_after(0) if message.seq <= self.seq]
        for message in messages:
            if message.seq <= after:
                live.take(message.event)
        if live.seq:
            live.mark_visible()
        for message in messages:
            if message.seq > after:
                live.take(message.event)
        patch = "" if live.is_closed else live.patch()
        return frame(f"{self.seq}-{stream.mark}", patch) if patch else b""


class Feeds:
    """The feeds of sessions with readers, dropped with their sessions."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Stream, dict[bool, Feed]] = WeakKeyDictionary()

    def of(self, stream: Stream, page: Callable[[], LivePage], *, show_names: bool) -> Feed:
        """Return the feed of a session, with names shown or hidden."""
        feeds = self._of.setdefault(stream, {})
        if show_names not in feeds:
            feeds[show_names] = Feed(page)
        return feeds[show_names]


def frame(last: str, patch: str) -> bytes:
    """Write a patch as a server-sent event; `last` becomes its id."""
    # A bare carriage return would also end the line.
    lines = patch.replace("\r", "").split("\n")
    return "\n".join([f"id: {last}", *(f"data: {line}" for line in lines), "", ""]).encode()


async def last_patch(live: LivePage) -> AsyncGenerator[bytes, None]:
    """Yield the whole page of a finished session, and the event ``end``."""
    yield frame(str(live.seq), live.final_patch()) + END


async def follow_live(
    stream: Stream,
    feed: Feed,
    *,
    after: int = 0,
    heartbeat_seconds: float = LIVE_SECONDS,
    problem: Callable[[], str] = lambda: "",
) -> AsyncGenerator[bytes, None]:
    """Yield patches as server-sent events until the stream ends; then ``end``.

    `stream`: all events of the session; patches need its past.
    `feed`: the shared patches; the first reader renders them for all.
    `after`: the number of the last event on the reader's page.
    `problem`: returns a problem to report at the end.
    """
    heartbeat_at = anyio.current_time() + heartbeat_seconds
    n_read: int | None = None
    while True:
        if n_read is None or (piece := feed.patches_after(n_read)) is None:
            feed.take(stream, problem)
            piece = b"" if feed.end else feed.catch_up(stream, after)
        if feed.end is not None:
            yield feed.end
            return
        n_read, after = feed.n_patches, feed.seq
        if piece:
            yield piece
            heartbeat_at = anyio.current_time() + heartbeat_seconds
            continue
        with anyio.CancelScope(deadline=heartbeat_at):
            await feed.wait(stream)
            if not feed.is_resting:  # unless another reader has made the patch
                feed.take(stream, problem)
        if anyio.current_time() >= heartbeat_at:
            yield HEARTBEAT
            heartbeat_at = anyio.current_time() + heartbeat_seconds
