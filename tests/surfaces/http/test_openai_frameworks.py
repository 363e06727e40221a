"""LangChain and the AI SDK read objects from a council through OpenAI's protocol."""

import json
import os
import shutil
from pathlib import Path

import pytest
from pydantic import BaseModel

from processes import run_program
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
    """`with_structured_output` requests JSON in two shapes."""

    @pytest.fixture
    def model(self, server):
        """Create LangChain's model for OpenAI."""
        chat = pytest.importorskip("langchain_openai", reason="LangChain is not installed")

        def make(**more):
            url = f"{server.url}/v1"
            return chat.ChatOpenAI(
                model="witan", base_url=url, api_key="none", max_retries=0, **more
            )

        return make

    @pytest.mark.parametrize("responses", [False, True])
    @pytest.mark.parametrize("method", ["json_schema", "json_mode"])
    def test_an_object_is_returned(self, model, responses, method):
        """By a chat completion and by a response."""
        asking = model(use_responses_api=responses).with_structured_output(Weather, method=method)

        assert asking.invoke("How is it?") == Weather(city="Oslo", degrees=12)

    def test_a_request_that_needs_tools_is_refused(self, model):
        """Rather than answered without a call."""
        asking = model().with_structured_output(Weather, method="function_calling")

        with pytest.raises(Exception, match="calls no tools"):
            asking.invoke("How is it?")

    @pytest.mark.parametrize("responses", [False, True])
    def test_a_stream_returns_the_text(self, model, responses):
        """Without the council's progress."""
        chunks = [*model(use_responses_api=responses).stream("How is it?")]

        text = "".join(chunk.text for chunk in chunks)
        assert text.startswith(f"{GOOD}\n\n[simulated")

    def test_a_response_is_followed_up(self, model, server):
        """By its id, as LangChain sends it."""
        asking = model(use_responses_api=True, use_previous_response_id=True)
        first = asking.invoke("How is it?")
        second = asking.invoke([("user", "How is it?"), first, ("user", "Why?")])
        name = second.response_metadata["id"].removeprefix("resp_")
        opened = server.service.registry.get(name).session.opening

        assert f"resp_{opened.parent}" == first.response_metadata["id"]
        assert opened.question == "Why?"


@pytest.fixture(scope="module")
def replies(server):
    """The output of an AI SDK program, by provider."""
    folder = os.environ.get("TEST_AI_SDK", "")
    if shutil.which("node") is None or not Path(folder, "node_modules/ai").is_dir():
        pytest.skip("TEST_AI_SDK names no folder with the AI SDK, or there is no node")
    program = Path(__file__).parent / "clients.mjs"
    done = run_program(str(shutil.which("node")), program, folder, f"{server.url}/v1")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["provider"]: line for line in lines}


@pytest.mark.parametrize("provider", ["compatible", "chat", "responses"])
class TestAISDK:
    """`generateObject` requests JSON with both of its providers."""

    def test_an_object_is_returned(self, replies, provider):
        """Valid under its schema."""
        assert replies[provider]["object"] == {"city": "Oslo", "degrees": 12}

    def test_a_conversation_continues(self, replies, provider):
        """With the messages of the first reply, or by the id of a response."""
        for key in ("text", "streamed"):
            assert replies[provider][key].startswith(f"{GOOD}\n\n[simulated")
        assert replies[provider]["finish"] == "stop"
