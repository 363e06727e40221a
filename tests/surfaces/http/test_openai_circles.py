"""Councils as members of councils, and the detection of circles."""

import json
import shutil

import httpx2
import pytest

from openai_clients import ASKED, client_of
from processes import run_program
from served import free_port, served
from services import councils, write_config
from witan.deliberation.call_headers import HOPS, TraceContext, within_trace
from witan.deliberation.ports import Call, Message, ignore_text
from witan.errors import ModelError
from witan.models.connections import Connections
from witan.models.openai_compatible import OpenAICompatible
from witan.models.pydantic_ai_model import PydanticAIModel

PARENT = f"00-{'a' * 32}-{'b' * 16}-01"


def write_circle(folder, *councils):
    """Seat ada, bob, and the councils at these ports in place of cyd."""
    folder.mkdir()
    write_config(folder)
    scripts = [f"script:{folder / name}.toml" for name in ("ada", "bob")]
    seats = [f"c{port}=http://127.0.0.1:{port}/v1#witan" for port in councils]
    file = folder / "circle.toml"
    text = f"members = {json.dumps([*scripts, *seats])}\nchairman = {json.dumps(scripts[0])}\n"
    file.write_text(text, encoding="utf-8")
    return file


class SessionWatch:
    """Records every session."""

    def __init__(self):
        self.held = []

    def watch(self, running):
        self.held.append(running)
        return lambda _: None

    def end_session(self, running):
        pass


class TestSeating:
    """A council is a member like any other."""

    def test_a_council_sits_in_another(self, tmp_path):
        """It answers and reviews; its cost and tokens are known."""
        inner = free_port()
        (tmp_path / "inner").mkdir()
        with (
            served(councils(write_config(tmp_path / "inner")), port=inner),
            served(councils(write_circle(tmp_path / "outer", inner))) as outer,
            client_of(outer) as client,
        ):
            reply = client.chat.completions.create(**ASKED)
            session = outer.service.registry.get(reply.witan["session"]).session
        held = session.answers[f"c{inner}"]

        assert held.text.startswith("All told: so")
        assert held.spent.usage.output_tokens > 100
        assert session.cost.total_usd == 0.0
        assert reply.witan["outcome"]["n_ballots"] >= 2

    def test_a_council_that_seats_itself_is_refused(self, tmp_path):
        """Once, with the reason; the others continue."""
        port, watching = free_port(), SessionWatch()
        file = write_circle(tmp_path / "own", port)
        with (
            served(councils(file), port=port, observers=[watching]) as server,
            client_of(server) as client,
        ):
            reply = client.chat.completions.create(**ASKED)
        [held] = watching.held
        [failed] = [each for each in held.session.events if each.kind == "answer_failed"]

        assert "would be a member of itself" in failed.reason
        assert failed.spent.calls == 1
        assert reply.witan["status"] == "degraded"

    def test_councils_that_seat_each_other_are_refused(self, tmp_path):
        """The second does not ask the first again."""
        one, two = free_port(), free_port()
        first, second = SessionWatch(), SessionWatch()
        with (
            served(
                councils(write_circle(tmp_path / "one", two)), port=one, observers=[first]
            ) as server,
            served(councils(write_circle(tmp_path / "two", one)), port=two, observers=[second]),
            client_of(server) as client,
        ):
            client.chat.completions.create(**ASKED)
        [outer] = first.held
        inner = [each.session for each in second.held]
        [asked] = [session for session in inner if session.question == "Is it so?"]

        assert "would be a member of itself" in asked.unanswered[f"c{one}"]
        assert outer.session.answers[f"c{two}"].text.startswith("All told: so")

    @pytest.mark.anyio
    @pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
    async def test_every_client_library_sends_the_path_and_the_trace(self, tmp_path, anyio_backend):
        """Over aiohttp, httpx2 and pydantic-ai, for each call."""
        with served(councils(write_config(tmp_path))) as server:
            name = server.service.name
            call = Call("answer", (Message("user", "Is it so?"),), 100)
            url = f"{server.url}/v1"
            async with Connections() as connections:
                ours = OpenAICompatible(name="c", url=url, model="witan", connections=connections)
                theirs = PydanticAIModel("c", "openai-chat:witan", "none", base_url=url)
                models = [ours, theirs] if anyio_backend == "asyncio" else [ours]
                for model in models:
                    token = HOPS.set(("elsewhere", name))
                    with pytest.raises(ModelError, match=f"elsewhere → {name}"):
                        await model.complete(call, ignore_text)
                    HOPS.reset(token)
                    with within_trace(TraceContext(PARENT, "a=1")):
                        reply = await model.complete(call, ignore_text)
                    trace = server.service.registry.sessions[-1].session.opening.trace
                    assert reply.text.startswith("All told")
                    assert (trace.traceparent[:36], trace.tracestate) == (PARENT[:36], "a=1")
                    assert trace.traceparent != PARENT
                await theirs.aclose()

    @pytest.mark.anyio
    @pytest.mark.parametrize("anyio_backend", ["asyncio"])
    @pytest.mark.parametrize("model", ["cohere:witan", "huggingface:witan"])
    async def test_clients_without_header_options_send_them_too(self, tmp_path, monkeypatch, model):
        """Though several calls share a client."""
        with served(councils(write_config(tmp_path))) as server:
            # Cohere's client gets the header per call; it sends more than the protocol requires.
            monkeypatch.setenv("CO_BASE_URL", server.url)
            url = None if model.startswith("cohere") else f"{server.url}/v1"
            theirs = PydanticAIModel("c", model, "none", base_url=url)
            call = Call("answer", (Message("user", "Is it so?"),), 100)
            token = HOPS.set(("elsewhere", server.service.name))
            with pytest.raises(ModelError, match="508"):
                await theirs.complete(call, ignore_text)
            HOPS.reset(token)
            try:
                await theirs.complete(call, ignore_text)
            except ModelError as error:  # OpenAI's protocol lacks what this client requests
                assert "508" not in str(error)  # noqa: PT017
            await theirs.aclose()

    def test_two_servers_never_share_an_identity(self, tmp_path):
        """Even with the same address behind proxies."""
        with (
            served(councils(write_config(tmp_path))) as one,
            served(councils(write_config(tmp_path))) as two,
        ):
            assert one.service.name != two.service.name


class TestPydanticAI:
    """pydantic-ai as a client."""

    @pytest.fixture
    async def agent(self, tmp_path):
        """An agent whose model is the council."""
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        with served(councils(write_config(tmp_path))) as server:
            async with OpenAIProvider(base_url=f"{server.url}/v1", api_key="none") as provider:
                model = OpenAIChatModel("witan", provider=provider)
                yield Agent(model, instructions="Be brief.")

    @pytest.mark.anyio
    @pytest.mark.parametrize("anyio_backend", ["asyncio"])
    async def test_an_agent_receives_the_answer(self, agent):
        """Progress, if requested, is thinking; usage is counted."""
        first = await agent.run(
            "Is it so?", model_settings={"extra_body": {"witan": {"narration": True}}}
        )
        second = await agent.run("And why?", message_history=first.all_messages())

        assert first.output.startswith("All told: so")
        assert second.output.startswith("All told: so")
        assert "ada leads" in first.response.thinking
        assert first.usage.output_tokens > 50

    @pytest.mark.anyio
    @pytest.mark.parametrize("anyio_backend", ["asyncio"])
    async def test_an_agent_can_stream(self, agent):
        """The final text is the same."""
        async with agent.run_stream("Is it so?") as result:
            text = [piece async for piece in result.stream_text()][-1]

        assert text.startswith("All told: so")
        assert "ada leads" in result.response.thinking


class TestCurl:
    """curl as a client."""

    @pytest.fixture
    def curl(self, tmp_path):
        """Ask by curl; return status and body."""
        command = shutil.which("curl")
        if command is None:
            pytest.skip("there is no curl")
        with served(councils(write_config(tmp_path))) as server:

            def ask(body, *options):
                given = ["-sS", "-w", "\n%{http_code}", "-H", "Content-Type: application/json"]
                address = f"{server.url}/v1/chat/completions"
                done = run_program(
                    command, *given, *options, "-d", json.dumps(body), address, check=True
                )
                text, status = done.stdout.rsplit("\n", 1)
                return int(status), text

            yield ask

    def test_a_whole_reply(self, curl):
        """It is a JSON object."""
        status, text = curl(ASKED)

        assert status == 200
        assert json.loads(text)["choices"][0]["message"]["content"].startswith("All told: so")

    def test_a_stream(self, curl):
        """Every line is data, and the last is [DONE]."""
        status, text = curl({**ASKED, "stream": True}, "-N")
        lines = [line for line in text.splitlines() if line]

        assert status == 200
        assert all(line.startswith("data: ") for line in lines)
        assert lines[-1] == "data: [DONE]"

    def test_an_error(self, curl):
        """In the protocol's shape, even for a malformed request."""
        status, text = curl({"model": "witan"})
        assert (status, json.loads(text)["error"]["param"]) == (400, "messages")
        status, text = curl([])
        assert (status, json.loads(text)["error"]["type"]) == (400, "invalid_request_error")
        assert "a JSON object" in json.loads(text)["error"]["message"]

    def test_invalid_json_is_refused(self, curl):
        """The error names the position."""
        status, text = curl({}, "--data-raw", '{"model": ')

        assert (status, json.loads(text)["error"]["param"]) == (400, None)
        assert "the body is not valid JSON" in json.loads(text)["error"]["message"]


def test_the_protocol_is_in_the_openapi_document(tmp_path):
    """With the fields beyond the protocol."""
    with served(councils(write_config(tmp_path))) as server, httpx2.Client(timeout=60) as client:
        document = client.get(f"{server.url}/openapi.json").json()
    body = document["components"]["schemas"]["ChatBody"]["properties"]

    assert "/v1/chat/completions" in document["paths"]
    assert {"model", "messages", "stream", "witan"} <= body.keys()
