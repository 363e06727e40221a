"""Reasoning that ends with a lone closing tag, black box: what a reader sees."""

import json
from dataclasses import replace

import pytest

from misbehaving import MisbehavingServer
from witan.models.connections import Connections
from witan.models.seats import parse_seat, seat

THOUGHT = "First, I should think about it. " * 5
ANSWER = "It is four, and it has been four ever since. " * 5


class Thinking(MisbehavingServer):
    """A server whose template opens the reasoning: texts of its models only close it."""

    def _manner(self, request):
        manner = super()._manner(request)
        if request.chat_request.stage != "answer":
            return manner
        return replace(manner, text=f"{THOUGHT}\n</think>\n{ANSWER}", pause_seconds=0.02)


def delta_kinds(witan, model: str) -> tuple[list[str], str]:
    """The kinds of events about the first member's text, and the final text."""
    with Thinking({model: 9}) as server:
        members = [w for n in "ab" for w in ("--member", f"{n}={server.url}#{model}")]
        said = witan("ask", "How many?", *members, "--events", "--no-history")
    events = [json.loads(line) for line in said.out.splitlines()]
    own = [x for x in events if x.get("seat") == "a" and x["event"] in KINDS]
    text, kinds = "", []
    for event in own:
        kinds += [] if kinds[-1:] == [event["event"]] else [event["event"]]
        text = "" if event["event"] == "text_withdrawn" else text + event.get("text", "")
    return kinds, text


KINDS = ("answer_delta", "text_withdrawn")


def test_reasoning_of_a_known_model_is_not_streamed(witan):
    """The stream begins with the answer."""
    kinds, text = delta_kinds(witan, "qwq-32b")

    assert (kinds, text.strip()) == (["answer_delta"], ANSWER.strip())


def test_what_another_model_reasons_is_withdrawn(witan):
    """An event says so before the answer begins; nothing of both is mixed."""
    kinds, text = delta_kinds(witan, "house-model")

    assert kinds == ["answer_delta", "text_withdrawn", "answer_delta"]
    assert text.strip() == ANSWER.strip()


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("http://127.0.0.1:8080/v1#qwq-32b", True),
        ("http://127.0.0.1:8080/v1#DeepSeek-R1-Distill-Qwen-7B", True),
        ("http://gpu.example:8000/v1#Qwen/Qwen3-30B-A3B-Thinking-2507", True),
        ("ollama:deepseek-r1:8b", True),
        ("ollama:magistral", True),
        ("ollama:llama3.2", False),
        ("ollama:qwen3-coder:30b", False),
        ("http://127.0.0.1:8080/v1#Qwen3-4B-Instruct-2507", False),
        ("http://127.0.0.1:8080/v1#mistral-small", False),
        ("http://127.0.0.1:8080/v1#rethinking-of-nothing", False),
        ("openai:gpt-5", False),
        ("openrouter:deepseek/deepseek-r1", False),
    ],
)
def test_which_models_may_reason_in_their_text(text, may):
    """Those whose names say so, on servers of one's own; providers tell reasoning apart."""
    keys = {"OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}
    spec = replace(parse_seat(text), name="a")

    assert seat(spec, keys, Connections()).may_reason is may
