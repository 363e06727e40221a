"""The body of a completion: read the same however it is split, without invented values."""

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.deliberation.ports import BilledFailure, Reply, Usage
from witan.errors import ModelError
from witan.models.openai_replies import LONGEST_REPLY, CompletionReader, words_of
from witan.models.providers import Redaction


def whole(content: Any, finish: str | None = "stop", **more: Any) -> bytes:
    """A chat completion in one piece."""
    choice = {"index": 0, "message": {"content": content}, "finish_reason": finish}
    return json.dumps({"choices": [choice], **more}).encode()


def stream(*documents: Any, end: str = "data: [DONE]\n\n") -> bytes:
    """A stream of these events."""
    return ("".join(f"data: {json.dumps(d)}\n\n" for d in documents) + end).encode()


def delta(content: Any = None, finish: str | None = None, **item: Any) -> dict[str, Any]:
    """A piece of a streamed completion."""
    return {"choices": [{"delta": {"content": content, **item}, "finish_reason": finish}]}


def read(*pieces: bytes) -> tuple[Reply, list[str]]:
    """Return the reply, and the pieces passed on."""
    streamed_text: list[str] = []
    reading = CompletionReader("test:m", Redaction([]), streamed_text.append)
    for piece in pieces:
        reading.feed(piece)
    return reading.reply(), streamed_text


BODIES = {
    "whole": whole("Ja, 🙂.", usage={"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5}),
    "streamed": stream(
        delta("Ja"), delta(", "), delta("🙂."), delta(finish="stop"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5}},
    ),
}  # fmt: skip


class TestSplits:
    """The reply does not depend on how the body was split or sent."""

    @pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
    @given(data=st.data())
    def test_any_split_gives_the_same_reply(self, body, data):
        """Whole or streamed, split twice anywhere: text, usage and cost are the same."""
        one, two = sorted(data.draw(st.tuples(*[st.integers(0, len(body))] * 2)))
        start = data.draw(st.sampled_from([b"", b"\n  \n", b"\xef\xbb\xbf"]))

        reply, pieces = read(start, body[:one], body[one:two], body[two:])

        assert reply == Reply("Ja, 🙂.", Usage(3, 4), 0.5)
        assert "".join(pieces) == reply.text

    def test_halves_of_a_character_are_joined(self):
        """An emoji split into two escapes is whole, and every piece is text."""
        reply, pieces = read(stream(delta("\ud83d"), delta("\ude42"), delta(finish="stop")))

        assert reply.text == "🙂"
        assert "".join(pieces).encode()


class TestText:
    """What counts as the text of a reply."""

    def test_parts_of_text_are_joined(self):
        """A list of parts is joined; parts that are not text are left out."""
        parts = [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "a"},
            {"text": "b"},
        ]

        assert read(whole(parts))[0].text == "ab"

    def test_reasoning_is_not_the_answer(self):
        """Reasoning is neither passed on nor part of the text."""
        reply, pieces = read(
            stream(delta(reasoning_content="hm"), delta("a"), delta(finish="stop"))
        )

        assert reply.text == "a"
        assert pieces == ["a"]

    def test_refusal_is_the_text(self):
        """Without content the refusal is the text."""
        assert (
            read(stream(delta(refusal="I will not."), delta(finish="stop")))[0].text
            == "I will not."
        )

    def test_other_choices_are_ignored(self):
        """The first of several choices is the reply."""
        second = {"choices": [{"index": 1, "delta": {"content": "no"}}]}

        assert read(stream(second, delta("yes"), delta(finish="stop")))[0].text == "yes"

    def test_reply_at_its_limit_is_marked_as_cut(self):
        """A reply that ends at its limit of tokens is marked as cut."""
        assert read(whole("So", finish="length"))[0].cut
        assert not read(whole("So"))[0].cut

    @pytest.mark.parametrize(
        "usage", [None, {}, [], {"prompt_tokens": -1, "completion_tokens": "9", "cost": "1"},
                  {"prompt_tokens": True, "completion_tokens": 1.5, "cost": True},
                  {"cost": float("nan")}],
    )  # fmt: skip
    def test_missing_counts_are_unknown(self, usage):
        """Missing or invalid counts are None, never 0."""
        reply, _ = read(whole("So", usage=usage))

        assert replace(reply, notes=(), bill_ignored=False) == Reply("So", Usage(None, None))

    @pytest.mark.parametrize(
        ("usage", "note"),
        [
            ({"cost": float("nan")}, "its server billed an invalid amount (nan dollars)"),
            ({"cost": -2}, "its server billed an invalid amount (-2 dollars)"),
            ({"cost": 10**400}, "its server billed an invalid amount (inf dollars)"),
            ({"prompt_tokens": -1}, "its server reported fewer than 0 tokens read"),
            ({"completion_tokens": -1}, "its server reported fewer than 0 tokens written"),
        ],
    )
    def test_impossible_usage_is_noted(self, usage, note):
        """A note says which cost or count is ignored."""
        [item] = read(whole("So", usage=usage))[0].notes

        assert item.startswith(note)
        assert item.endswith("is ignored")

    @pytest.mark.parametrize(
        ("usage", "output_tokens"),
        [
            ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115}, 105),
            ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, 5),
            ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 3}, 5),
            ({"prompt_tokens": 10, "total_tokens": 15}, 5),
            ({"completion_tokens": 5, "total_tokens": 115}, 5),
            ({"prompt_tokens": 10, "total_tokens": 3}, None),
        ],
    )
    def test_reasoning_tokens_are_counted(self, usage, output_tokens):
        """Tokens that only the total includes are output, and are paid for."""
        assert read(whole("So", usage=usage))[0].usage.output_tokens == output_tokens

    def test_stream_ends_at_a_finish_reason_or_done(self):
        """With a finish reason or [DONE], one of the two is enough."""
        assert read(stream(delta("a"), delta(finish="stop"), end=""))[0].text == "a"
        assert read(stream(delta("a")))[0].text == "a"

    @given(data=st.data())
    def test_key_is_redacted_across_pieces(self, data):
        """However a stream splits a key, the reply is without it."""
        key = "sk-0123456789abcdefg"
        one, two = sorted(data.draw(st.tuples(*[st.integers(0, len(key) + 2)] * 2)))
        text = f"a{key}b"
        reading = CompletionReader("test:m", Redaction([key]), (streamed_text := []).append)

        pieces = (text[:one], text[one:two], text[two:])
        reading.feed(stream(*(delta(piece) for piece in pieces), delta(finish="stop")))

        assert reading.reply().text == "a***b"
        assert not any(key in piece for piece in streamed_text)


class TestErrors:
    """A body that is not a completion raises, and says whether to retry."""

    @pytest.mark.parametrize(
        ("body", "problem", "transient"),
        [
            (b"", "ended without a reply", True),
            (b": keep-alive\n\n", "broke off in the middle of its reply", True),
            (whole("So it is.")[:-20], "broke off in the middle of its JSON", True),
            (stream(delta("So"), end=""), "broke off in the middle of its reply", True),
            (stream(delta("So"), end='data: {"choi'), "broke off in the middle of its JSON", True),
            (b"[" * 100_000, "broke off in the middle of its JSON", True),
            (b"<html>", "other than a chat completion", False),
            (b"Yes", "other than a chat completion", False),
            (b"Hello there", "other than a chat completion", False),
            (b"[]", "other than a chat completion", False),
            (b"[1]", "other than a chat completion", False),
            (b'{"choices": "none"}', "other than a chat completion", False),
            (b'{"choices": [{"message": 3}]}', "other than a chat completion", False),
            (stream({"result": 1}), "other than a chat completion", False),
            (whole(None), "said nothing", True),
            (whole(" \n"), "said nothing", True),
            (stream(delta(finish="stop")), "said nothing", True),
            (whole(None, finish="length"), "raise max_tokens", False),
            (whole("", finish="content_filter"), "content filter", False),
        ],
    )
    def test_broken_body_is_an_error(self, body, problem, transient):
        """Each broken body has its sentence."""
        with pytest.raises(ModelError, match=problem) as caught:
            read(body)

        assert caught.value.transient is transient

    @pytest.mark.parametrize(
        "body",
        [
            whole("", usage={"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5}),
            stream(
                delta(finish="length"),
                {"choices": [], "usage": {"prompt_tokens": 3, "total_tokens": 7, "cost": 0.5}},
            ),
            json.dumps(
                {
                    "error": {"message": "Oh", "code": 502},
                    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5},
                }
            ).encode(),
        ],
        ids=["empty", "cut", "failed"],
    )
    def test_error_keeps_the_usage(self, body):
        """The error has tokens and dollars, even after pickling."""
        with pytest.raises(BilledFailure) as caught:
            read(body)

        assert caught.value.bill == Reply("", Usage(3, 4), 0.5)
        copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
        assert (copy.bill, copy.args) == (caught.value.bill, caught.value.args)

    def test_partial_usage_of_a_broken_stream_is_ignored(self):
        """A count in the middle of a stream is not the final one."""
        usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
        with pytest.raises(ModelError, match="broke off") as caught:
            read(stream(delta("So"), usage, end=""))

        assert not isinstance(caught.value, BilledFailure)

    @pytest.mark.parametrize(
        ("error", "problem", "status", "transient"),
        [
            ({"message": "Oh", "code": 502}, r"failed \(502\): Oh", 502, True),
            ({"message": "Oh", "code": "429"}, r"failed \(429\): Oh", 429, True),
            ({"message": "Oh", "code": 400}, r"failed \(400\): Oh", 400, False),
            ({"message": "Oh", "type": "invalid_request_error"}, "failed: Oh", None, False),
            ({"message": "Oh", "type": "overloaded_error"}, "failed: Oh", None, True),
            ("Oh", "failed: Oh", None, True),
            ({"code": None}, "gave no reason", None, True),
        ],
    )
    @pytest.mark.parametrize("streamed", [True, False])
    def test_error_object_is_raised(self, error, problem, status, transient, streamed):
        """An error object raises with its own words, in a whole body or in a stream."""
        body = stream(delta("So"), {"error": error}) if streamed else json.dumps({"error": error})

        with pytest.raises(ModelError, match=problem) as caught:
            read(body if isinstance(body, bytes) else body.encode())

        assert (caught.value.status, caught.value.transient) == (status, transient)

    @pytest.mark.parametrize(
        "pieces",
        [
            [b'{"a": "' + b"x" * LONGEST_REPLY],
            [b"data: " + b"x" * LONGEST_REPLY],
            [stream(delta("x" * 1_000_000), end="")] * 9,
        ],
        ids=["a body", "an event", "a text"],
    )
    def test_long_body_is_an_error(self, pieces):
        """The limit is eight million bytes."""
        with pytest.raises(ModelError, match="8,000,000") as caught:
            read(*pieces)

        assert not caught.value.transient

    def test_long_reasoning_is_read_to_its_end(self):
        """A stream may have more reasoning than a reply may have text."""
        thought = stream(delta(reasoning_content="x" * 1_000_000), end="")

        assert read(*[thought] * 9, stream(delta("So"), delta(finish="stop")))[0].text == "So"


class TestMessages:
    """The message of an error is found wherever servers put it."""

    @pytest.mark.parametrize(
        ("error", "words"),
        [
            ({"error": {"message": "a"}}, "a"),
            ({"error": "a"}, "a"),
            ({"detail": [{"loc": ["body"], "msg": "a"}, {"msg": "b"}]}, "a; b"),
            ({"error": {"message": "a", "metadata": {"raw": "b"}}}, "a: b"),
            ({"object": "error", "message": "a"}, "a"),
            ({"code": 3}, ""),
            (None, ""),
        ],
    )
    def test_message_is_extracted(self, error, words):
        """Each server's form gives the message alone."""
        assert words_of(error) == words


class Recorder:
    """A callback that is also notified of reasoning."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def __call__(self, text: str) -> None:
        self.pieces.append(text)

    def hear_reasoning(self) -> None:
        self.pieces.append("(reasoning)")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_callback_is_notified_of_reasoning(field):
    """It comes before the first word of the text, without the reasoning itself."""
    recorder = Recorder()
    reading = CompletionReader("test:m", Redaction([]), recorder)
    for item in (delta(**{field: "Hm."}), delta("Four."), delta(finish="stop")):
        reading.feed(stream(item, end=""))

    assert recorder.pieces == ["(reasoning)", "Four."]
