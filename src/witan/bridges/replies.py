"""A council's reply as programs that call models take it: in pieces, then the session."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import witan
from witan import councils

if TYPE_CHECKING:
    from witan import Session
    from witan.models import Message

    Piece: TypeAlias = "ProgressLine | str | Session"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """A line on what the council does."""

    text: str


@dataclass(frozen=True, slots=True)
class CouncilCall:
    """A conversation that a program puts to the council of a name.

    Parameters
    ----------
    messages
        What was said; the last message of the user is the question.
    options
        Settings as of `Council.from_config`, and ``seed``, ``category`` and ``parent`` of the
        session.
    legend
        The legend and the trust line stand below every text, not only below what lacks something.
    """

    council: str
    messages: "Sequence[Message]"
    options: Mapping[str, Any]
    legend: bool = False

    async def stream(self) -> "AsyncGenerator[Piece, None]":
        """Yield what happens and the final answer as they come, and last the session.

        For programs of asyncio, which may leave the loop in any task: that cancels what still runs.

        Raises
        ------
        NothingToCount
            If the council gives no final answer.
        """
        pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        running = asyncio.create_task(self._deliberate(pieces.put_nowait))
        running.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await running
        finally:
            running.cancel()
            await asyncio.wait([running])

    async def _deliberate(self, put: "Callable[[Piece], None]") -> None:
        of_session = {"seed", "category", "parent"}
        settings = {name: each for name, each in self.options.items() if name not in of_session}
        about = {name: each for name, each in self.options.items() if name in of_session}
        from anyio import to_thread

        question, conversation = self._split_question()
        # The configuration is read from files, and local servers are asked for their models.
        seating = partial(councils.seat_by_name, self.council, **settings)
        council = await to_thread.run_sync(seating)
        board, final, events = councils.Board(), councils.FinalText(), []
        async with (
            council,
            aclosing(council.deliberate(question, conversation=conversation, **about)) as stream,
        ):
            async for event in stream:
                events.append(event)
                board = board.apply_event(event)
                if board.line:
                    put(ProgressLine(board.line))
                if text := _join(*final.take(event)):
                    put(text)
        session = witan.Session.of(events)
        if text := _join(*final.end(final_answer(session))) + self._footer(session):
            put(text)
        put(session)

    async def ask(self) -> "tuple[str, Session]":
        """Return the whole text and the session; errors as of `stream`."""
        async with aclosing(self.stream()) as stream:
            async for piece in stream:
                if isinstance(piece, witan.Session):
                    return self.whole_text(piece), piece
        raise AssertionError("a stream ends with its session")

    def whole_text(self, session: "Session") -> str:
        """Return the final answer and what stands below it."""
        return final_answer(session) + self._footer(session)

    def _footer(self, session: "Session") -> str:
        return councils.ReplyFooter(legend=self.legend).of(session)

    def _split_question(self) -> "tuple[str, tuple[Message, ...]]":
        asked = [n for n, message in enumerate(self.messages) if message.role == "user"]
        if not asked:
            raise witan.errors.InvalidParameter("messages", [], "one of the user, the question")
        rest = (*self.messages[: asked[-1]], *self.messages[asked[-1] + 1 :])
        return self.messages[asked[-1]].text, rest


def _join(piece: str, void: str) -> str:
    return f"\n\n{void}\n\n{piece}" if void else piece


def final_answer(session: "Session") -> str:
    """Return the final answer.

    Raises
    ------
    NothingToCount
        If there is none; it says what is missing.
    """
    if session.text is None:
        raise witan.errors.NothingToCount(f"no final answer: {'; '.join(session.missing)}")
    return session.text


def iterate(stream: Callable[[], AsyncGenerator[T, None]]) -> Iterator[T]:
    """Iterate over an asynchronous stream from a program without an event loop.

    Leaving the loop cancels what still runs.
    """
    from anyio.from_thread import start_blocking_portal

    pieces: SimpleQueue[T | None] = SimpleQueue()

    async def produce() -> None:
        async with aclosing(stream()) as each:
            async for piece in each:
                pieces.put(piece)

    with start_blocking_portal() as portal:
        running = portal.start_task_soon(produce)
        running.add_done_callback(lambda _: pieces.put(None))
        try:
            while (piece := pieces.get()) is not None:
                yield piece
            running.result()
        finally:
            running.cancel()
