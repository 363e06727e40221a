"""A council's reply for programs: text in pieces, then the session."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import witan
from witan import councils

if TYPE_CHECKING:
    from witan import Session, Verdict
    from witan.models import Message

    Piece: TypeAlias = "ProgressLine | str | Session"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """A progress line: what the council is doing."""

    text: str


@dataclass(frozen=True, slots=True)
class CouncilCall:
    """A program's question to a named council.

    Parameters
    ----------
    settings
        As in `Council.from_config`.
    about
        Arguments of `Council.ask` other than the question and the conversation.
    mark, legend
        As in `ReplyFooter`.
    """

    council: str
    question: str
    conversation: "Sequence[Message]"
    settings: Mapping[str, Any]
    about: Mapping[str, Any]
    mark: bool = True
    legend: bool = False

    async def stream(self) -> "AsyncGenerator[Piece, None]":
        """Yield progress and the final answer in pieces, then the session.

        For asyncio programs, which may leave the loop in any task; leaving it cancels running
        calls.

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
        from anyio import to_thread

        # The configuration is read from files, and local servers are asked for their models.
        seating = partial(councils.seat_by_name, self.council, **self.settings)
        council = await to_thread.run_sync(seating)
        board, final, events = councils.Board(), councils.FinalText(), []
        events_of = partial(council.deliberate, self.question, conversation=self.conversation)
        async with council, aclosing(events_of(**self.about)) as stream:
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

    async def ask(self) -> "Session":
        """Return the finished session; raise as `stream` does."""
        pieces: list[Piece] = []
        await self._deliberate(pieces.append)
        *_, session = pieces
        assert not isinstance(session, ProgressLine | str)  # noqa: S101 - it is put last
        return session

    def whole_text(self, session: "Session") -> str:
        """Return the final answer and the notes below it."""
        return final_answer(session) + self._footer(session)

    def _footer(self, session: "Session") -> str:
        return councils.ReplyFooter(self.mark, self.legend).of(session)


def _join(piece: str, void: str) -> str:
    return f"\n\n{void}\n\n{piece}" if void else piece


def session_facts(session: "Session") -> dict[str, Any]:
    """List the facts of a session: end, outcome, cost and gaps."""
    outcome = session.outcome
    return {
        "session": session.id,
        "status": session.status,
        "simulated": session.is_simulated,
        "missing": list(session.missing),
        "leaders": list(outcome.leaders) if outcome else [],
        "interpretation": outcome.interpretation if outcome else None,
        "cost_usd": session.cost.total_usd,
    }


def final_answer(session: "Session") -> str:
    """Return the final answer.

    Raises
    ------
    NothingToCount
        If there is none; the message names what is missing.
    """
    if session.text is None:
        raise witan.errors.NothingToCount(f"no final answer: {'; '.join(session.missing)}")
    return session.text


def wait_for(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine, even inside a running event loop (notebooks)."""
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:
        return portal.call(work)


def iterate(stream: Callable[[], AsyncGenerator[T, None]]) -> Iterator[T]:
    """Iterate over an asynchronous stream from a program without an event loop.

    Leaving the loop cancels running calls.
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


def verdict_reason(session: "Session", verdict: "Verdict") -> str:
    """Return the verdict's sentence, and what its session misses."""
    sentence, missing = witan.reports.verdict_sentence(verdict), "; ".join(session.missing)
    return f"{sentence}; {session.status}: {missing}" if missing else sentence


async def judge_output(
    text: str,
    question: str,
    jury: Any,
    options: Mapping[str, Any],
    *,
    pass_mark: float | None,
    reference: str | None,
) -> "Session":
    """Have a jury judge an output, optionally against a reference answer."""
    sources = {"reference answer": reference} if reference and reference.strip() else {}
    async with councils.seat_jury(jury, **options) as council:
        return await council.judge(text, question, pass_mark=pass_mark, files=sources)


def accepts(decision: str | None, *, allow_too_close: bool) -> bool:
    """Check whether a decision passes a text."""
    return decision == "passed" or (allow_too_close and decision == "too close to call")
