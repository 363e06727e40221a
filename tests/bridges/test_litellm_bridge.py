"""Councils as models, by the real LiteLLM in a process of its own."""

import json
import re

import pytest

from bridges.environments import needs_environment, run_in_environment

pytestmark = [pytest.mark.slow, needs_environment]  # LiteLLM takes five seconds to import

PROGRAM = """
import asyncio, json, sys
import litellm
from witan.bridges.litellm import register

register()  # again, which changes nothing
litellm.suppress_debug_info = True
ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "In UTC?"}]
FAST = {"options": {"mode": "best"}}
found = {"providers": [each["provider"] for each in litellm.custom_provider_map]}


def facts(reply):
    return reply.choices[0].message.provider_specific_fields["witan"]


whole = litellm.completion(model="witan/demo", messages=ASK, temperature=0.3, witan=FAST)
found["whole"] = {
    "text": whole.choices[0].message.content,
    "reason": whole.choices[0].finish_reason,
    "usage": whole.usage.total_tokens,
    "facts": facts(whole),
}
chunks = [*litellm.completion(model="witan/demo", messages=ASK, stream=True)]
found["streamed"] = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
found["pieces"] = len(chunks)
found["reason"] = chunks[-1].choices[0].finish_reason


async def main():
    reply = await litellm.acompletion(model="witan/demo", messages=ASK, witan={"legend": True})
    found["legend"] = reply.choices[0].message.content
    async for chunk in await litellm.acompletion(model="witan/demo", messages=ASK, stream=True):
        found["first"] = chunk.choices[0].delta.content
        break  # the rest is cancelled


asyncio.run(main())
found["errors"] = {}
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
for name, values in {
    "none": {"model": "witan/none"},
    "mode": {"model": "witan/demo", "witan": {"options": {"mode": "worst"}}},
    "image": {"model": "witan/demo", "messages": IMAGE},
    "n": {"model": "witan/demo", "n": 2},
}.items():
    try:
        litellm.completion(**{"messages": ASK, **values})
    except Exception as error:
        found["errors"][name] = [type(error).__name__, str(error)]
with open("found.json", "w") as file:
    json.dump(found, file)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Results of a program that calls the demonstration in every way."""
    folder = tmp_path_factory.mktemp("litellm")
    done = run_in_environment("python", "-c", PROGRAM, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "found.json").read_text())


def test_a_council_answers_as_a_model(found):
    """Text, usage and session are complete; a second registration changes nothing."""
    whole = found["whole"]

    assert found["providers"] == ["witan"]
    assert re.match(r"\[[A-E]\]\n", whole["text"])  # the best answers, under their labels
    assert whole["reason"] == "stop"
    assert whole["usage"] > 5000
    assert whole["facts"]["status"] == "complete"
    assert whole["facts"]["leaders"] == ["aster"]
    assert whole["facts"]["ignored"] == ["temperature"]


def test_a_council_streams_its_answer(found):
    """It works with and without an event loop, and marks simulated text."""
    assert found["pieces"] > 20
    assert found["streamed"].startswith("No, not UTC alone.")
    assert "[simulated · 5 of 5 reviewers" in found["streamed"]
    assert found["reason"] == "stop"
    assert found["first"]
    assert "\n\n[A] " in found["legend"]


def test_an_error_of_the_council_is_an_error_of_litellm(found):
    """LiteLLM does not retry it."""
    assert found["errors"]["none"][0] == "BadRequestError"
    assert "unknown council 'witan/none'" in found["errors"]["none"][1]
    assert "witan.options.mode: must be 'consensus'" in found["errors"]["mode"][1]
    assert "contains an image, which is not supported yet" in found["errors"]["image"][1]
    assert "the request: n: the council writes one text" in found["errors"]["n"][1]
