"""Server-sent events: what is read does not depend on how the bytes were cut."""

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


def cut(stream: bytes, sizes: list[int]) -> list[bytes]:
    """The stream in pieces of these sizes, and what is left."""
    pieces = []
    for size in sizes:
        pieces.append(stream[:size])
        stream = stream[size:]
    return [*pieces, stream]


def read(pieces: list[bytes]) -> list[str]:
    """Every event of a stream that comes in these pieces."""
    events = EventStream()
    return [data for piece in pieces for data in events.feed(piece)] + events.close()


def by_the_book(stream: str) -> list[str]:
    """The same line by line, as the HTML standard words it; an event left open counts."""
    found, data = [], []
    for line in [*re.split(r"\r\n|\r|\n", stream), ""]:
        name, _, value = line.partition(":")
        if not line and data:
            found.append("\n".join(data))
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))
    return found


@given(STREAMS, st.lists(st.integers(0, 9), max_size=40), st.booleans())
def test_any_cut_reads_as_the_standard_says(stream, sizes, marked):
    """Ends of lines, comments, other fields and characters cut in two change nothing."""
    encoded = ("\ufeff" if marked else "").encode() + stream.encode()

    assert read(cut(encoded, sizes)) == by_the_book(stream)


@given(st.binary(max_size=60), st.lists(st.integers(0, 9), max_size=20))
def test_bytes_that_are_no_text_are_read_all_the_same(stream, sizes):
    """Any bytes can be fed, in any pieces, to the same end."""
    assert read(cut(stream, sizes)) == read([stream])


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_an_event_is_given_with_its_blank_line(end):
    """Nothing waits for the next event: a lone carriage return ends a line too."""
    events = EventStream()

    assert events.feed(f"data: one{end}".encode()) == []
    assert events.feed(end.encode()) == ["one"]
    assert events.feed(f"data: two{end}{end}data: thr".encode()) == ["two"]
    assert events.n_buffered == len("data: thr")
    assert events.close() == ["thr"]
    assert events.n_buffered == 0
