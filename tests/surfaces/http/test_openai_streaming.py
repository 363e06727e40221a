"""The council as a model: streamed chat completions through OpenAI's official client."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection

import anyio
import pytest

import openai_clients
from openai_clients import ASKED, client_of, modelled, streamed, text_of_chunks
from processes import wait_until
from served import Served, served
from services import councils, write_config
from witan.deliberation import events as e
from witan.service.config.serve import ServeSettings
from witan.service.operations.ask import ResumeRequest
from witan.surfaces.openai.replies import StopFilter


@pytest.fixture
def stream_reply(tmp_path, history):
    """Stream the reply of a scripted council, with some stages set by the test."""

    def stream(*, asked=None, settings=None, more="", **stages):
        file = write_config(tmp_path, more, **stages)
        with (
            served(councils(file, history), settings) as server,
            client_of(server) as client,
        ):
            return streamed(client, **(asked or {}))

    return stream


async def _task_count():
    """The number of tasks in the server's loop."""
    return len(asyncio.all_tasks())


def _reached_reviews(server):
    """Whether a session has reached its reviews."""
    sessions = [running.session for running in server.service.registry.under_way]
    return any(isinstance(event, e.ReviewStarted) for each in sessions for event in each.events)


@dataclass(frozen=True, slots=True)
class SlowServer(Served):
    """A server, and the number of its tasks when idle."""

    at_rest: int


class TestStops:
    """A stream ends before a stop sequence, however its pieces are cut."""

    @pytest.mark.parametrize("size", [1, 2, 3, 50])
    def test_a_stop_sequence_is_never_streamed(self, size):
        """Text that may begin one is buffered until it is certain."""
        text, stops = "one END two STOP three", ("STOP", "EN!")
        stop = StopFilter(stops)
        pieces = [text[at : at + size] for at in range(0, len(text), size)]

        assert "".join(map(stop.feed, pieces)) + stop.feed("", last=True) == "one END two "

    def test_the_official_client_reads_the_text_before_it(self, stream_reply):
        """As in a whole reply."""
        asked = {"stop": "as [A]", "extra_body": {"witan": {"mark": False}}}

        assert text_of_chunks(stream_reply(asked=asked)) == "All told: so, "


class TestStream:
    """A session streams as it happens."""

    def test_progress_comes_first_and_the_finish_reason_last(self, stream_reply):
        """The role; who answers, votes and leads; the final answer; the reason."""
        chunks = stream_reply(asked={"extra_body": {"witan": {"mark": False}}})
        kinds = [next(iter(each.choices[0].delta.model_fields_set), "end") for each in chunks]
        reasoning = text_of_chunks(chunks, "reasoning_content").splitlines()

        assert chunks[0].choices[0].delta.role == "assistant"
        assert "as [A] has it" in text_of_chunks(chunks)
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert chunks[-1].witan["status"] == "complete"
        assert kinds[-1] == "end"
        assert "ada, bob and cyd" in reasoning[0]
        assert "ada writes the final answer" in reasoning[-1]
        for line in ("ada answers …", "cyd has voted: 3 of 3", "after 3 ballots ada leads"):
            assert any(each.startswith(f"simulated · {line}") for each in reasoning)

    def test_the_legend_comes_last_on_request(self, stream_reply):
        """Authors of the cited labels, and the trust line, follow the text."""
        chunks = stream_reply(asked={"extra_body": {"witan": {"legend": True}}})
        text, legend, trust = text_of_chunks(chunks).split("\n\n")

        assert "as [A] has it" in text
        assert legend.startswith("[A] ")
        assert trust.startswith("[simulated · 3 of 3 reviewers · ")

    def test_a_stream_and_a_whole_reply_agree(self, tmp_path):
        """Same text, finish reason and mark."""
        with served(councils(write_config(tmp_path))) as server, client_of(server) as client:
            chunks = streamed(client, model="witan/best", seed=7)
            whole = client.chat.completions.create(**{**ASKED, "model": "witan/best"}, seed=7)

        [choice] = whole.choices
        text, mark = text_of_chunks(chunks).rsplit("\n\n", 1)
        assert (text, mark[:12]) == (choice.message.content.rsplit("\n\n", 1)[0], "[simulated ·")
        assert chunks[-1].choices[0].finish_reason == choice.finish_reason
        assert chunks[-1].witan.keys() == whole.witan.keys()

    def test_usage_comes_last_on_request(self, stream_reply, history):
        """In a chunk without a choice."""
        chunks = stream_reply(asked={"stream_options": {"include_usage": True}})
        whole = history.session(chunks[-2].witan["session"])
        spent = [each.spent.usage for each in whole.events if hasattr(each, "spent")]

        assert chunks[-1].choices == []
        assert chunks[-1].usage.completion_tokens == sum(each.output_tokens for each in spent)
        assert all(chunk.usage is None for chunk in chunks[:-1])

    def test_a_silent_stream_sends_comments(self, tmp_path):
        """Clients skip them; also while answers are written."""
        words = " ".join(["word"] * 40)
        file = write_config(
            tmp_path, answer=[{"text": f"Ada says {words}", "tokens_per_second": 50}]
        )
        settings = ServeSettings(heartbeat_seconds=0.1)
        with (
            served(councils(file), settings) as server,
            client_of(server) as client,
            client.chat.completions.with_streaming_response.create(**ASKED, stream=True) as raw,
        ):
            lines = [*raw.iter_lines()]

        written = lines[: next(i for i, line in enumerate(lines) if "has answered" in line)]
        assert sum(line == ": still here" for line in written) >= 4
        assert lines[-2] == "data: [DONE]"

    def test_a_chairman_s_failure_is_reported_in_the_text(self, stream_reply, history):
        """Streamed text cannot be withdrawn; the final text follows whole."""
        broken = {"text": "All told: n", "error": "is overloaded", "status": 400}
        chunks = stream_reply(synthesis=[broken], asked={"extra_body": {"witan": {"mark": False}}})
        session = history.session(chunks[-1].witan["session"])

        assert text_of_chunks(chunks) == (
            "All told: n\n\n[interrupted: ada failed: is overloaded; it starts again]\n\n"
            f"{session.text}"
        )
        assert chunks[-1].witan["status"] == "degraded"

    def test_a_retry_is_reported_in_the_text(self, stream_reply):
        """The last attempt counts."""
        broken = {"text": "All told: n", "error": "is overloaded", "status": 503, "times": 1}
        whole = {"text": "All told: so."}
        chunks = stream_reply(
            synthesis=[broken, whole], asked={"extra_body": {"witan": {"mark": False}}}
        )

        assert text_of_chunks(chunks) == (
            "All told: n\n\n[interrupted: attempt 1 failed: is overloaded; it starts again]\n\n"
            "All told: so."
        )


class TestFailures:
    """Failures after the first chunk are reported in the stream."""

    def test_a_council_without_an_answer_ends_in_an_error(self, tmp_path):
        """The client raises it, with every member's reason."""
        more = "[limits]\nattempts = 1\n"
        file = write_config(tmp_path, more, answer=[{"error": "is out of order"}])
        with (
            served(councils(file)) as server,
            client_of(server) as client,
            pytest.raises(openai_clients.openai.APIError, match="bob did not answer") as caught,
        ):
            streamed(client)

        assert caught.value.code == "no_text"

    def test_a_stopping_server_ends_its_streams_in_an_error(self, tmp_path, history):
        """The session can be resumed."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 20}])
        with (
            served(councils(file, history)) as server,
            client_of(server) as client,
            client.chat.completions.create(**ASKED, stream=True) as stream,
        ):
            chunk = next(iter(stream))
            server.portal.call(server.service.drain, 0)
            with pytest.raises(openai_clients.openai.APIError, match="interrupted") as caught:
                deque(stream)

        assert caught.value.code == "session_interrupted"
        assert history.session(chunk.id.removeprefix("chatcmpl-")).status == "interrupted"


class TestDisconnects:
    """A disconnect cancels further calls."""

    @pytest.fixture
    def slow(self, tmp_path, history):
        """A server with slow reviewers."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 20}])
        with served(councils(file, history)) as server:
            yield SlowServer(
                server.url, server.service, server.portal, server.portal.call(_task_count)
            )

    def _rests(self, server, history, session):
        wait_until(lambda: not server.service.registry.under_way)
        wait_until(lambda: server.portal.call(_task_count) <= server.at_rest)
        assert history.session(session).status == "interrupted"
        assert len(history.session(session).answers) == 3

    def test_a_disconnected_stream_leaves_a_resumable_session(self, slow, history):
        """Answers are stored, reviews are cancelled."""
        with client_of(slow) as client:
            with client.chat.completions.create(**ASKED, stream=True) as stream:
                for chunk in stream:
                    if "reviewed blind" in text_of_chunks([chunk], "reasoning_content"):
                        break
            self._rests(slow, history, chunk.id.removeprefix("chatcmpl-"))

    def test_a_client_that_hangs_up_leaves_a_resumable_session(self, slow, history):
        """While waiting for a whole reply."""
        waiting = HTTPConnection(slow.url.removeprefix("http://"))
        headers = {"Content-Type": "application/json"}
        waiting.request("POST", "/v1/chat/completions", json.dumps(ASKED), headers)
        wait_until(lambda: _reached_reviews(slow))
        [running] = slow.service.registry.under_way
        waiting.close()

        self._rests(slow, history, running.id)

    @pytest.mark.anyio
    @pytest.mark.parametrize("anyio_backend", ["asyncio"])
    @pytest.mark.parametrize("stream", [True, False])
    async def test_a_cancelled_task_leaves_a_resumable_session(self, slow, history, stream):
        """With the asynchronous client."""
        async with openai_clients.openai.AsyncOpenAI(
            base_url=f"{slow.url}/v1", api_key="none", max_retries=0
        ) as client:

            async def ask():
                reply = await client.chat.completions.create(**ASKED, stream=stream)
                async for _ in reply:
                    pass

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await anyio.to_thread.run_sync(wait_until, partial(_reached_reviews, slow))
                [running] = slow.service.registry.under_way
                group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(self._rests, slow, history, running.id)

    def test_an_interrupted_session_can_be_resumed(self, slow, history):
        """By the native API."""
        with client_of(slow) as client:
            with client.chat.completions.create(**ASKED, stream=True) as stream:
                for chunk in stream:
                    if "reviewed blind" in text_of_chunks([chunk], "reasoning_content"):
                        break
            session = chunk.id.removeprefix("chatcmpl-")
            self._rests(slow, history, session)
            taken_up = slow.portal.call(slow.service.start, ResumeRequest(session))
            assert taken_up.under_way
            assert len(taken_up.session.answers) == 3


class TestModels:
    """A council of models over HTTP."""

    def test_the_final_answer_is_streamed_in_pieces(self, tmp_path):
        """As the chairman writes it, unmarked when complete."""
        with modelled(tmp_path) as (models, file), served(councils(file)) as server:
            models.fault("chair", "slow stream", seconds=0.1)
            with client_of(server) as client:
                chunks = streamed(client)
        pieces = [each for each in chunks if text_of_chunks([each])]

        assert len(pieces) >= 3
        assert "[A] and [B] and [C]" in text_of_chunks(chunks)
        assert chunks[-1].witan["simulated"] is False
