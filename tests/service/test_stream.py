"""One session's events, followed by any number of readers."""

from contextlib import aclosing
from datetime import UTC, datetime

import anyio
import pytest

from witan.deliberation import events as e
from witan.deliberation.ports import Expense
from witan.service.sessions.running import PACE_SECONDS, Stream

AT = datetime(2026, 11, 21, tzinfo=UTC)

pytestmark = pytest.mark.anyio


class Hours:
    """A clock that goes only when it is told to."""

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
    stream = Stream(Hours())
    for event in events:
        stream.take(event)
    return stream


async def read(stream, after=0):
    return [told async for told in stream.follow(after)]


async def first(stream, count):
    told = []
    async with aclosing(stream.follow()) as following:
        async for each in following:
            told.append(each)
            if len(told) == count:
                break
    return told


class TestFollowing:
    """Whoever follows is told everything, in order, once."""

    async def test_a_reader_that_comes_late_is_told_what_is_past(self):
        """The same events reach one that was there from the start and one that was not."""
        stream = Stream(Hours())
        stream.take(started(1))
        stream.take(started(2, "bob"))
        stream.end()

        assert [told.seq for told in await read(stream)] == [1, 2]

    async def test_a_reader_goes_on_after_the_number_it_names(self):
        """Only what has a higher number follows."""
        stream = Stream(Hours())
        for seq in range(1, 6):
            stream.take(started(seq))
        stream.end()

        assert [told.seq for told in await read(stream, after=3)] == [4, 5]

    async def test_readers_are_woken_as_it_happens(self):
        """A hundred readers that wait are all told of the next event."""
        stream = Stream(Hours())
        heard = []

        async def follow():
            heard.append(await read(stream))

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(follow)
            await anyio.sleep(0.01)
            stream.take(started(1))
            await anyio.sleep(0.01)
            stream.end()

        assert [[told.seq for told in each] for each in heard] == [[1]] * 100

    async def test_an_event_is_encoded_once_for_all(self):
        """Two readers get the very same bytes."""
        stream = Stream(Hours())
        stream.take(started(1))
        stream.end()

        [one], [other] = await read(stream), await read(stream)

        assert one.json is other.json

    async def test_a_stream_that_ends_early_says_so(self):
        """Without the event that closes a session, it was interrupted."""
        stream = Stream(Hours())
        stream.take(started(1))
        stream.end("the disk is full")

        assert stream.is_interrupted
        assert stream.failure == "the disk is full"


class TestHeard:
    """Who was cut off names what it heard last, and is told the rest."""

    def test_pieces_of_this_stream_are_known_when_they_are_told_no_more(self):
        """The whole text in their place is what follows."""
        stream = stream_of(started(1), piece(2, "To"))
        last = stream.messages_after(0)[-1].id
        stream.take(done(3, "To be"))

        assert stream.resume_point(last) == 2

    def test_a_piece_of_another_stream_is_not_the_one_of_its_number(self):
        """The session went on from an event that was kept: its numbers came a second time."""
        before = stream_of(started(1), piece(2, "To"))
        after = stream_of(started(1), done(2, "Whether"))
        last = before.messages_after(0)[-1].id

        assert after.resume_point(last) == 0

    def test_a_kept_event_is_known_to_every_stream(self):
        """It says the same, whoever tells it."""
        before = stream_of(started(1), started(2, "bob"))
        after = stream_of(started(1), started(2, "bob"), started(3, "cyd"))

        assert after.resume_point(before.messages_after(0)[-1].id) == 2

    def test_an_event_that_was_lost_is_not_the_one_in_its_place(self):
        """A machine that stops may forget what it was just told."""
        before = stream_of(started(1), started(2, "bob"))
        after = stream_of(started(1), started(2, "cyd"))

        assert after.resume_point(before.messages_after(0)[-1].id) == 0

    @pytest.mark.parametrize(
        ("last", "number"),
        [("2", 2), ("0", 0), ("", 0), ("two", 0), ("2-", 0), ("-2", 0), ("\u0662", 0)],
    )
    def test_a_number_alone_is_taken_at_its_word(self, last, number):
        """What is none says nothing."""
        assert stream_of(started(1), started(2, "bob")).resume_point(last) == number


class TestTexts:
    """A text is told piece by piece while it is written, and whole afterwards."""

    async def test_the_first_piece_is_told_at_once(self):
        """Nobody waits for it."""
        stream = Stream(Hours())
        stream.take(piece(1, "To"))

        assert [told.event.text for told in stream.messages_after(0)] == ["To"]

    async def test_pieces_that_follow_at_once_are_told_together(self):
        """They bear the number of the last."""
        stream = Stream(Hours())
        for seq, text in enumerate(["To", " be", " or", " not"], start=1):
            stream.take(piece(seq, text))
        stream.flush()

        assert [(t.seq, t.event.text) for t in stream.messages_after(0)] == [
            (1, "To"),
            (4, " be or not"),
        ]

    async def test_pieces_that_come_slowly_are_told_one_by_one(self):
        """Gathering delays nothing that is not in a hurry."""
        hours = Hours()
        stream = Stream(hours)
        for seq, text in enumerate(["To", " be", " or"], start=1):
            stream.take(piece(seq, text))
            hours.now += 2 * PACE_SECONDS

        assert [told.seq for told in stream.messages_after(0)] == [1, 2, 3]

    async def test_what_is_gathered_is_told_before_anything_else(self):
        """Numbers only grow, whoever writes."""
        stream = Stream(Hours())
        for event in (
            piece(1, "a"),
            piece(2, "b", "bob"),
            piece(3, "c"),
            piece(4, "d", "bob"),
            started(5, "c"),
        ):
            stream.take(event)

        told = stream.messages_after(0)

        assert [each.seq for each in told] == [1, 2, 3, 4, 5]

    async def test_gathered_pieces_are_told_after_a_moment(self):
        """Also where nothing else happens."""
        stream = Stream(anyio.current_time)
        async with anyio.create_task_group() as group:
            group.start_soon(stream.pace)
            stream.take(piece(1, "To"))
            stream.take(piece(2, " be"))
            with anyio.fail_after(60):
                told = await first(stream, 2)
            stream.end()

        assert [each.event.text for each in told] == ["To", " be"]

    async def test_a_whole_text_stands_in_place_of_its_pieces(self):
        """A slow reader is told the text once; other texts keep their pieces."""
        stream = Stream(Hours())
        for event in (piece(1, "To"), piece(2, " be"), piece(3, "No", "bob"), done(4, "To be")):
            stream.take(event)

        assert [(t.seq, t.event.kind) for t in stream.messages_after(0)] == [
            (3, "answer_delta"),
            (4, "answer_done"),
        ]

    async def test_a_text_that_is_begun_again_loses_its_pieces(self):
        """What an attempt had written before it failed is void."""
        stream = Stream(Hours())
        stream.take(piece(1, "To"))
        stream.take(
            e.CallRetried(
                seq=2, at=AT, seat="ada", stage="answer", attempt=1, reason="500", wait_seconds=0
            )
        )
        stream.take(piece(3, "Whether"))

        assert [told.seq for told in stream.messages_after(0)] == [2, 3]

    async def test_a_long_text_leaves_one_entry(self):
        """The log does not grow with the tokens of texts that are whole."""
        stream = Stream(Hours())
        for seq in range(1, 10_001):
            stream.take(piece(seq, "x"))
        stream.take(done(10_001, "x" * 10_000))

        assert len(stream) == 1

    async def test_a_long_text_that_is_still_written_leaves_few(self):
        """Nor with those of one that is not: what was told long ago is kept as one piece."""
        hours = Hours()
        stream = Stream(hours)
        for seq in range(1, 20_001):
            stream.take(piece(seq, f"{seq} ", "ada" if seq % 2 else "bob"))
            hours.now += 2 * PACE_SECONDS

        assert len(stream) < 1_000
        told = stream.messages_after(0)
        assert [each.seq for each in told] == sorted({each.seq for each in told})
        for seat, first in (("ada", 1), ("bob", 2)):
            text = "".join(each.event.text for each in told if each.event.seat == seat)
            assert text.split() == [str(seq) for seq in range(first, 20_001, 2)]

    async def test_a_reader_cut_off_among_long_texts_misses_nothing_of_any(self):
        """What is kept as one may end before a piece of another text that is older."""
        hours = Hours()
        stream = Stream(hours)
        for seq in range(1, 1_001):
            stream.take(piece(seq, f"{seq} ", "ada" if seq % 2 else "bob"))
            hours.now += 2 * PACE_SECONDS

        told = stream.messages_after(0)
        for n_heard in range(1, len(told) + 1):
            after = stream.resume_point(told[n_heard - 1].id)
            heard = told[: n_heard if after else 0]
            text = "".join(each.event.text for each in (*heard, *stream.messages_after(after)))
            assert sorted(map(int, text.split())) == [*range(1, 1_001)]

    async def test_a_reader_that_lags_is_told_every_piece_once(self):
        """Wherever it is in what is kept as one."""
        hours = Hours()
        stream = Stream(hours)
        for seq in range(1, 1_001):
            stream.take(piece(seq, f"{seq} "))
            hours.now += 2 * PACE_SECONDS

        for after in range(1_001):
            told = stream.messages_after(after)
            text = "".join(each.event.text for each in told)
            assert text.split() == [str(seq) for seq in range(after + 1, 1_001)]
            assert all(each.event.seq > after for each in told)
            assert stream.resume_point(f"{after}-{stream.mark}") == after
