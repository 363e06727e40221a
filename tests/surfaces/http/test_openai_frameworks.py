"""Frameworks that speak OpenAI's protocol get objects from a council: LangChain and the AI SDK."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from pydantic import BaseModel

from served import served
from services import councils, write_config

pytestmark = pytest.mark.slow  # LangChain takes seconds to import, and so does Node to start

GOOD = '{"city": "Oslo", "degrees": 12}'


class Weather(BaseModel):
    """The weather of a place."""

    city: str
    degrees: int


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server whose chairman writes the same JSON to every question."""
    file = write_config(tmp_path_factory.mktemp("scripts"), synthesis=[{"text": GOOD}])
    with served(councils(file)) as running:
        yield running


class TestLangChain:
    """`with_structured_output` asks for JSON in either shape."""

    @pytest.fixture
    def model(self, server):
        """Make LangChain's model of OpenAI."""
        chat = pytest.importorskip("langchain_openai", reason="LangChain is not installed")

        def make(**more):
            url = f"{server.url}/v1"
            return chat.ChatOpenAI(
                model="witan", base_url=url, api_key="none", max_retries=0, **more
            )

        return make

    @pytest.mark.parametrize("responses", [False, True])
    @pytest.mark.parametrize("method", ["json_schema", "json_mode"])
    def test_an_object_comes_back(self, model, responses, method):
        """By a chat completion, and by a response."""
        asking = model(use_responses_api=responses).with_structured_output(Weather, method=method)

        assert asking.invoke("How is it?") == Weather(city="Oslo", degrees=12)

    def test_what_needs_tools_is_refused(self, model):
        """Instead of an answer that calls none."""
        asking = model().with_structured_output(Weather, method="function_calling")

        with pytest.raises(Exception, match="calls no tools"):
            asking.invoke("How is it?")

    @pytest.mark.parametrize("responses", [False, True])
    def test_a_stream_brings_the_text(self, model, responses):
        """What the council did is no part of it."""
        chunks = [*model(use_responses_api=responses).stream("How is it?")]

        text = "".join(chunk.text for chunk in chunks)
        assert text.startswith(f"{GOOD}\n\n[simulated")

    def test_a_response_is_followed_up(self, model, server):
        """By its id, as LangChain hands it on."""
        asking = model(use_responses_api=True, use_previous_response_id=True)
        first = asking.invoke("How is it?")
        second = asking.invoke([("user", "How is it?"), first, ("user", "Why?")])
        name = second.response_metadata["id"].removeprefix("resp_")
        opened = server.service.find_running(name).session.opening

        assert f"resp_{opened.parent}" == first.response_metadata["id"]
        assert opened.question == "Why?"


@pytest.fixture(scope="module")
def replies(server):
    """What a program of the AI SDK prints, by provider."""
    folder = os.environ.get("TEST_AI_SDK", "")
    if shutil.which("node") is None or not Path(folder, "node_modules/ai").is_dir():
        pytest.skip("TEST_AI_SDK names no folder with the AI SDK, or there is no node")
    program = Path(__file__).parent / "clients.mjs"
    done = subprocess.run(  # noqa: S603 - our own program
        [str(shutil.which("node")), str(program), folder, f"{server.url}/v1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["provider"]: line for line in lines}


@pytest.mark.parametrize("provider", ["compatible", "chat", "responses"])
class TestAISDK:
    """`generateObject` asks for JSON by each of its providers."""

    def test_an_object_comes_back(self, replies, provider):
        """As its schema says."""
        assert replies[provider]["object"] == {"city": "Oslo", "degrees": 12}

    def test_a_conversation_goes_on(self, replies, provider):
        """With the messages of the first reply, which a response refers to by its id."""
        for key in ("text", "streamed"):
            assert replies[provider][key].startswith(f"{GOOD}\n\n[simulated")
        assert replies[provider]["finish"] == "stop"
