"""The stream of a session's events, for any number of readers."""

from contextlib import aclosing
from datetime import UTC, datetime

import anyio
import pytest

from witan.deliberation import events as e
from witan.deliberation.ports import Expense
from witan.service.sessions.running import PACE_SECONDS, Stream

AT = datetime(2026, 11, 21, tzinfo=UTC)

pytestmark = pytest.mark.anyio


class ManualClock:
    """A clock set by the test."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def started(seq, seat="ada"):
    return e.AnswerStarted(seq=seq, at=AT, seat=seat)


def piece(seq, text, seat="ada"):
    return e.AnswerDelta(seq=seq, at=AT, seat=seat, text=text)


def done(seq, text, seat="ada"):
    return e.AnswerDone(seq=seq, at=AT, seat=seat, text=text, spent=Expense())


def stream_of(*events):
    stream = Stream(ManualClock())
    for event in events:
        stream.take(event)
    return stream


async def read(stream, after=0):
    return [message async for message in stream.follow(after)]


async def first(stream, count):
    messages = []
    async with aclosing(stream.follow()) as following:
        async for each in following:
            messages.append(each)
            if len(messages) == count:
                break
    return messages


class TestFollowing:
    """A reader receives every event, in order and once."""

    async def test_a_late_reader_receives_past_events(self):
        """They are the events that earlier readers received."""
        stream = Stream(ManualClock())
        stream.take(started(1))
        stream.take(started(2, "bob"))
        stream.end()

        assert [message.seq for message in await read(stream)] == [1, 2]

    async def test_a_reader_continues_after_a_number(self):
        """It receives only events with higher numbers."""
        stream = Stream(ManualClock())
        for seq in range(1, 6):
            stream.take(started(seq))
        stream.end()

        assert [message.seq for message in await read(stream, after=3)] == [4, 5]

    async def test_an_event_wakes_every_waiting_reader(self):
        """A hundred waiting readers receive it."""
        stream = Stream(ManualClock())
        received = []

        async def follow():
            received.append(await read(stream))

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(follow)
            await anyio.sleep(0.01)
            stream.take(started(1))
            await anyio.sleep(0.01)
            stream.end()

        assert [[message.seq for message in each] for each in received] == [[1]] * 100

    async def test_an_event_is_encoded_once(self):
        """Two readers share its bytes."""
        stream = Stream(ManualClock())
        stream.take(started(1))
        stream.end()

        [one], [other] = await read(stream), await read(stream)

        assert one.json is other.json

    async def test_a_stream_without_a_closing_event_is_interrupted(self):
        """It has the reason."""
        stream = Stream(ManualClock())
        stream.take(started(1))
        stream.end("the disk is full")

        assert stream.is_interrupted
        assert stream.failure == "the disk is full"


class TestReconnecting:
    """A disconnected reader names its last event and receives the rest."""

    def test_a_replaced_piece_is_still_a_resume_point(self):
        """The reader next receives the whole text."""
        stream = stream_of(started(1), piece(2, "To"))
        last = stream.messages_after(0)[-1].id
        stream.take(done(3, "To be"))

        assert stream.resume_point(last) == 2

    def test_a_piece_of_another_stream_is_not_a_resume_point(self):
        """The session was resumed from a stored event, so its numbers were used again."""
        before = stream_of(started(1), piece(2, "To"))
        after = stream_of(started(1), done(2, "Whether"))
        last = before.messages_after(0)[-1].id

        assert after.resume_point(last) == 0

    def test_a_stored_event_is_a_resume_point_in_every_stream(self):
        """Every stream gives it the same id."""
        before = stream_of(started(1), started(2, "bob"))
        after = stream_of(started(1), started(2, "bob"), started(3, "cyd"))

        assert after.resume_point(before.messages_after(0)[-1].id) == 2

    def test_a_lost_event_is_not_a_resume_point(self):
        """A machine that stops may lose its last events; others then get their numbers."""
        before = stream_of(started(1), started(2, "bob"))
        after = stream_of(started(1), started(2, "cyd"))

        assert after.resume_point(before.messages_after(0)[-1].id) == 0

    @pytest.mark.parametrize(
        ("last", "number"),
        [("2", 2), ("0", 0), ("", 0), ("two", 0), ("2-", 0), ("-2", 0), ("\u0662", 0)],
    )
    def test_a_bare_number_is_a_resume_point(self, last, number):
        """Anything else than a number starts from the beginning."""
        assert stream_of(started(1), started(2, "bob")).resume_point(last) == number


class TestTexts:
    """A text is streamed in pieces while it is written, and whole afterwards."""

    async def test_the_first_piece_is_published_immediately(self):
        """No reader waits for it."""
        stream = Stream(ManualClock())
        stream.take(piece(1, "To"))

        assert [message.event.text for message in stream.messages_after(0)] == ["To"]

    async def test_rapid_pieces_are_merged(self):
        """With the number of the last one."""
        stream = Stream(ManualClock())
        for seq, text in enumerate(["To", " be", " or", " not"], start=1):
            stream.take(piece(seq, text))
        stream.flush()

        assert [(t.seq, t.event.text) for t in stream.messages_after(0)] == [
            (1, "To"),
            (4, " be or not"),
        ]

    async def test_slow_pieces_are_published_one_by_one(self):
        """Buffering does not delay them."""
        clock = ManualClock()
        stream = Stream(clock)
        for seq, text in enumerate(["To", " be", " or"], start=1):
            stream.take(piece(seq, text))
            clock.now += 2 * PACE_SECONDS

        assert [message.seq for message in stream.messages_after(0)] == [1, 2, 3]

    async def test_buffered_pieces_are_published_before_other_events(self):
        """Numbers only grow, whichever seat writes."""
        stream = Stream(ManualClock())
        for event in (
            piece(1, "a"),
            piece(2, "b", "bob"),
            piece(3, "c"),
            piece(4, "d", "bob"),
            started(5, "c"),
        ):
            stream.take(event)

        messages = stream.messages_after(0)

        assert [each.seq for each in messages] == [1, 2, 3, 4, 5]

    async def test_buffered_pieces_are_published_after_a_moment(self):
        """Even if no other event follows."""
        stream = Stream(anyio.current_time)
        async with anyio.create_task_group() as group:
            group.start_soon(stream.pace)
            stream.take(piece(1, "To"))
            stream.take(piece(2, " be"))
            with anyio.fail_after(60):
                messages = await first(stream, 2)
            stream.end()

        assert [each.event.text for each in messages] == ["To", " be"]

    async def test_a_complete_text_replaces_its_pieces(self):
        """A slow reader receives the text once; other texts keep their pieces."""
        stream = Stream(ManualClock())
        for event in (piece(1, "To"), piece(2, " be"), piece(3, "No", "bob"), done(4, "To be")):
            stream.take(event)

        assert [(t.seq, t.event.kind) for t in stream.messages_after(0)] == [
            (3, "answer_delta"),
            (4, "answer_done"),
        ]

    async def test_a_restarted_text_loses_its_pieces(self):
        """The pieces of a failed attempt are void."""
        stream = Stream(ManualClock())
        stream.take(piece(1, "To"))
        stream.take(
            e.CallRetried(
                seq=2, at=AT, seat="ada", stage="answer", attempt=1, reason="500", wait_seconds=0
            )
        )
        stream.take(piece(3, "Whether"))

        assert [message.seq for message in stream.messages_after(0)] == [2, 3]

    async def test_a_complete_long_text_is_one_entry(self):
        """The log does not grow with the tokens of complete texts."""
        stream = Stream(ManualClock())
        for seq in range(1, 10_001):
            stream.take(piece(seq, "x"))
        stream.take(done(10_001, "x" * 10_000))

        assert len(stream) == 1

    async def test_a_growing_long_text_is_few_entries(self):
        """Old pieces of an incomplete text are merged."""
        clock = ManualClock()
        stream = Stream(clock)
        for seq in range(1, 20_001):
            stream.take(piece(seq, f"{seq} ", "ada" if seq % 2 else "bob"))
            clock.now += 2 * PACE_SECONDS

        assert len(stream) < 1_000
        messages = stream.messages_after(0)
        assert [each.seq for each in messages] == sorted({each.seq for each in messages})
        for seat, first in (("ada", 1), ("bob", 2)):
            text = "".join(each.event.text for each in messages if each.event.seat == seat)
            assert text.split() == [str(seq) for seq in range(first, 20_001, 2)]

    async def test_a_reader_disconnected_during_long_texts_misses_nothing(self):
        """A merged piece may end after an unread piece of another text."""
        clock = ManualClock()
        stream = Stream(clock)
        for seq in range(1, 1_001):
            stream.take(piece(seq, f"{seq} ", "ada" if seq % 2 else "bob"))
            clock.now += 2 * PACE_SECONDS

        messages = stream.messages_after(0)
        for n_received in range(1, len(messages) + 1):
            after = stream.resume_point(messages[n_received - 1].id)
            received = messages[: n_received if after else 0]
            text = "".join(each.event.text for each in (*received, *stream.messages_after(after)))
            assert sorted(map(int, text.split())) == [*range(1, 1_001)]

    async def test_a_slow_reader_receives_every_piece_once(self):
        """Wherever it stopped within a merged piece."""
        clock = ManualClock()
        stream = Stream(clock)
        for seq in range(1, 1_001):
            stream.take(piece(seq, f"{seq} "))
            clock.now += 2 * PACE_SECONDS

        for after in range(1_001):
            messages = stream.messages_after(after)
            text = "".join(each.event.text for each in messages)
            assert text.split() == [str(seq) for seq in range(after + 1, 1_001)]
            assert all(each.event.seq > after for each in messages)
            assert stream.resume_point(f"{after}-{stream.mark}") == after
