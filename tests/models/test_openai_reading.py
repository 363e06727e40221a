"""The body of a completion: any cut of it reads the same, and nothing is made up."""

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


def delta(content: Any = None, finish: str | None = None, **said: Any) -> dict[str, Any]:
    """A piece of a streamed completion."""
    return {"choices": [{"delta": {"content": content, **said}, "finish_reason": finish}]}


def read(*pieces: bytes) -> tuple[Reply, list[str]]:
    """The reply, and what was heard of it."""
    heard: list[str] = []
    reading = CompletionReader("test:m", Redaction([]), heard.append)
    for piece in pieces:
        reading.feed(piece)
    return reading.reply(), heard


BODIES = {
    "whole": whole("Ja, 🙂.", usage={"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5}),
    "streamed": stream(
        delta("Ja"), delta(", "), delta("🙂."), delta(finish="stop"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5}},
    ),
}  # fmt: skip


class TestCuts:
    """How a body was cut, and what it came as, is not seen in the reply."""

    @pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
    @given(data=st.data())
    def test_any_cut_gives_the_same_reply(self, body, data):
        """Whole or streamed, in any two cuts, text, usage and cost are the same."""
        one, two = sorted(data.draw(st.tuples(*[st.integers(0, len(body))] * 2)))
        start = data.draw(st.sampled_from([b"", b"\n  \n", b"\xef\xbb\xbf"]))

        reply, heard = read(start, body[:one], body[one:two], body[two:])

        assert reply == Reply("Ja, 🙂.", Usage(3, 4), 0.5)
        assert "".join(heard) == reply.text

    def test_halves_of_a_character_are_joined(self):
        """A server that cuts an emoji in two escapes loses nothing, and what is heard is text."""
        reply, heard = read(stream(delta("\ud83d"), delta("\ude42"), delta(finish="stop")))

        assert reply.text == "🙂"
        assert "".join(heard).encode()


class TestText:
    """What counts as the text."""

    def test_parts_of_text(self):
        """A list of parts is joined; what is no text is no part of the answer."""
        parts = [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "a"},
            {"text": "b"},
        ]

        assert read(whole(parts))[0].text == "ab"

    def test_reasoning_is_not_the_answer(self):
        """What a model thinks aloud is neither heard nor kept."""
        reply, heard = read(stream(delta(reasoning_content="hm"), delta("a"), delta(finish="stop")))

        assert reply.text == "a"
        assert heard == ["a"]

    def test_a_refusal_is_what_was_said(self):
        """Without content the refusal is the text."""
        assert (
            read(stream(delta(refusal="I will not."), delta(finish="stop")))[0].text
            == "I will not."
        )

    def test_other_choices_are_passed_over(self):
        """Of several choices the first is the reply."""
        second = {"choices": [{"index": 1, "delta": {"content": "no"}}]}

        assert read(stream(second, delta("yes"), delta(finish="stop")))[0].text == "yes"

    def test_a_cut_reply_says_so(self):
        """A reply that ends at its limit of tokens is marked as cut."""
        assert read(whole("So", finish="length"))[0].cut
        assert not read(whole("So"))[0].cut

    @pytest.mark.parametrize(
        "usage", [None, {}, [], {"prompt_tokens": -1, "completion_tokens": "9", "cost": "1"},
                  {"prompt_tokens": True, "completion_tokens": 1.5, "cost": True},
                  {"cost": float("nan")}],
    )  # fmt: skip
    def test_what_is_not_counted_is_unknown(self, usage):
        """Absent or senseless counts are None, never 0."""
        reply, _ = read(whole("So", usage=usage))

        assert replace(reply, notes=(), bill_ignored=False) == Reply("So", Usage(None, None))

    @pytest.mark.parametrize(
        ("usage", "note"),
        [
            ({"cost": float("nan")}, "its server billed nan dollars, which is no amount"),
            ({"cost": -2}, "its server billed -2 dollars, which is no amount"),
            ({"cost": 10**400}, "its server billed inf dollars, which is no amount"),
            ({"prompt_tokens": -1}, "its server counted fewer than 0 tokens read"),
            ({"completion_tokens": -1}, "its server counted fewer than 0 tokens written"),
        ],
    )
    def test_an_impossible_bill_is_noted(self, usage, note):
        """That a bill or a count is ignored is said."""
        [said] = read(whole("So", usage=usage))[0].notes

        assert said.startswith(note)
        assert said.endswith("is ignored")

    @pytest.mark.parametrize(
        ("usage", "written"),
        [
            ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115}, 105),
            ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, 5),
            ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 3}, 5),
            ({"prompt_tokens": 10, "total_tokens": 15}, 5),
            ({"completion_tokens": 5, "total_tokens": 115}, 5),
            ({"prompt_tokens": 10, "total_tokens": 3}, None),
        ],
    )
    def test_reasoning_is_counted(self, usage, written):
        """What a server counts in its total alone was written too, and is paid for."""
        assert read(whole("So", usage=usage))[0].usage.output_tokens == written

    def test_a_stream_may_stop_after_its_last_word(self):
        """With a finish reason or [DONE], one of the two is enough."""
        assert read(stream(delta("a"), delta(finish="stop"), end=""))[0].text == "a"
        assert read(stream(delta("a")))[0].text == "a"

    @given(data=st.data())
    def test_a_key_is_in_no_text(self, data):
        """However a stream cuts a key in pieces, the reply is without it."""
        key = "sk-0123456789abcdefg"
        one, two = sorted(data.draw(st.tuples(*[st.integers(0, len(key) + 2)] * 2)))
        text = f"a{key}b"
        reading = CompletionReader("test:m", Redaction([key]), (heard := []).append)

        pieces = (text[:one], text[one:two], text[two:])
        reading.feed(stream(*(delta(piece) for piece in pieces), delta(finish="stop")))

        assert reading.reply().text == "a***b"
        assert not any(key in piece for piece in heard)


class TestErrors:
    """What is no completion raises, and says whether to try again."""

    @pytest.mark.parametrize(
        ("body", "problem", "transient"),
        [
            (b"", "broke off before it said anything", True),
            (b": keep-alive\n\n", "broke off in the middle of its reply", True),
            (whole("So it is.")[:-20], "broke off in the middle of its JSON", True),
            (stream(delta("So"), end=""), "broke off in the middle of its reply", True),
            (stream(delta("So"), end='data: {"choi'), "broke off in the middle of its JSON", True),
            (b"[" * 100_000, "broke off in the middle of its JSON", True),
            (b"<html>", "no chat completion", False),
            (b"Yes", "no chat completion", False),
            (b"Hello there", "no chat completion", False),
            (b"[]", "no chat completion", False),
            (b"[1]", "no chat completion", False),
            (b'{"choices": "none"}', "no chat completion", False),
            (b'{"choices": [{"message": 3}]}', "no chat completion", False),
            (stream({"result": 1}), "no chat completion", False),
            (whole(None), "said nothing", True),
            (whole(" \n"), "said nothing", True),
            (stream(delta(finish="stop")), "said nothing", True),
            (whole(None, finish="length"), "raise max_tokens", False),
            (whole("", finish="content_filter"), "content filter", False),
        ],
    )
    def test_no_reply(self, body, problem, transient):
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
    def test_what_is_billed_without_a_text_is_known(self, body):
        """The error holds tokens and dollars, and can be pickled with them."""
        with pytest.raises(BilledFailure) as caught:
            read(body)

        assert caught.value.bill == Reply("", Usage(3, 4), 0.5)
        again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
        assert (again.bill, again.args) == (caught.value.bill, caught.value.args)

    def test_what_a_stream_that_breaks_off_counts_is_no_bill(self):
        """A count in its middle is not that of the end."""
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
            ({"code": None}, "does not say why", None, True),
        ],
    )
    @pytest.mark.parametrize("streamed", [True, False])
    def test_an_error_where_a_completion_should_be(
        self, error, problem, status, transient, streamed
    ):
        """An error object raises with its own words, in a whole body or amid a stream."""
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
    def test_too_long(self, pieces):
        """More than eight million bytes are not kept."""
        with pytest.raises(ModelError, match="8,000,000") as caught:
            read(*pieces)

        assert not caught.value.transient

    def test_a_model_may_think_at_length(self):
        """A stream whose thoughts alone are longer than any reply is read to its end."""
        thought = stream(delta(reasoning_content="x" * 1_000_000), end="")

        assert read(*[thought] * 9, stream(delta("So"), delta(finish="stop")))[0].text == "So"


class TestWords:
    """An error's words are found wherever servers put them."""

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
    def test_words(self, error, words):
        """Each server's form gives the words alone."""
        assert words_of(error) == words


class Ear:
    """A listener that is told, too, where reasoning comes apart from the text."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, text: str) -> None:
        self.told.append(text)

    def hear_reasoning(self) -> None:
        self.told.append("(reasoning)")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_a_listener_is_told_of_reasoning_that_comes_apart(field):
    """Before the first word of the text; the reasoning itself is not heard."""
    ear = Ear()
    reading = CompletionReader("test:m", Redaction([]), ear)
    for said in (delta(**{field: "Hm."}), delta("Four."), delta(finish="stop")):
        reading.feed(stream(said, end=""))

    assert ear.told == ["(reasoning)", "Four."]
