"""Server-sent events: the events do not depend on where the bytes are split."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.models.openai_replies import EventStream

LINES = [
    "data: {}", "data:no space", "data:  two", "data", "data:", "data: é 🙂\u2028", "datax: y",
    ": a comment", "event: error", "id: 7", "retry: 10", "prose", "", "", "",
]  # fmt: skip
STREAMS = st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from(["\n", "\r", "\r\n"])), max_size=30
).map(lambda lines: "".join(line + end for line, end in lines))


def split(stream: bytes, sizes: list[int]) -> list[bytes]:
    """Split the stream into pieces of these sizes, and the rest."""
    pieces = []
    for size in sizes:
        pieces.append(stream[:size])
        stream = stream[size:]
    return [*pieces, stream]


def read(pieces: list[bytes]) -> list[str]:
    """Read every event from these pieces."""
    events = EventStream()
    return [data for piece in pieces for data in events.feed(piece)] + events.close()


def read_line_by_line(stream: str) -> list[str]:
    """Parse line by line as in the HTML standard, counting an open event."""
    events, data = [], []
    for line in [*re.split(r"\r\n|\r|\n", stream), ""]:
        name, _, value = line.partition(":")
        if not line and data:
            events.append("\n".join(data))
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))
    return events


@given(STREAMS, st.lists(st.integers(0, 9), max_size=40), st.booleans())
def test_any_split_reads_as_the_standard_says(stream, sizes, marked):
    """Line ends, comments, other fields and split characters change nothing."""
    encoded = ("\ufeff" if marked else "").encode() + stream.encode()

    assert read(split(encoded, sizes)) == read_line_by_line(stream)


@given(st.binary(max_size=60), st.lists(st.integers(0, 9), max_size=20))
def test_bytes_that_are_not_text_are_accepted(stream, sizes):
    """Any bytes, in any pieces, give the same events."""
    assert read(split(stream, sizes)) == read([stream])


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_event_is_returned_at_its_blank_line(end):
    """Nothing waits for the next event: a lone carriage return ends a line too."""
    events = EventStream()

    assert events.feed(f"data: one{end}".encode()) == []
    assert events.feed(end.encode()) == ["one"]
    assert events.feed(f"data: two{end}{end}data: thr".encode()) == ["two"]
    assert events.n_buffered == len("data: thr")
    assert events.close() == ["thr"]
    assert events.n_buffered == 0
