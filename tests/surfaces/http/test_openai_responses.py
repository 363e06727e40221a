"""The council as a model: whole and streamed responses through OpenAI's official client."""

import time
from itertools import pairwise

import pytest
from pydantic import BaseModel

import openai_clients
from openai_clients import client_of, modelled, openai
from served import served
from services import councils, write_config
from witan.deliberation.ports import Message
from witan.history import History
from witan.service.config.serve import ServeSettings

ASKED = {"model": "witan", "input": "Is it so?"}

ASKED_TURNS = [{"role": "user", "content": "Is it so?"}]

TOOL = {"type": "function", "name": "f", "parameters": {}}


class Weather(BaseModel):
    """The weather of a place."""

    city: str
    degrees: int


GOOD = '{"city": "Oslo", "degrees": 12}'

FORM = {"format": {"type": "json_object"}}


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """One history for the module."""
    with History.open(tmp_path_factory.mktemp("history") / "history.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def server(tmp_path_factory, history):
    """One server of three scripted members."""
    with served(councils(write_config(tmp_path_factory.mktemp("scripts")), history)) as running:
        yield running


@pytest.fixture(scope="module")
def council(server):
    """The official client of that server."""
    with client_of(server) as client:
        yield client


@pytest.fixture
def slow(tmp_path, history):
    """A server with slow reviewers."""
    file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 20}])
    with served(councils(file, history)) as running:
        yield running


def validated(reply):
    """The reply, validated against the protocol, as the client accepts anything."""
    openai.types.responses.Response.model_validate(
        reply.model_dump(exclude_unset=True), strict=True
    )
    return reply


def ask(client, **more):
    """The response to a question."""
    return validated(client.responses.create(**{**ASKED, **more}))


def read_stream(client, **more):
    """The events of a streamed response."""
    return [*client.responses.create(**{**ASKED, **more}, stream=True)]


def plain(**more):
    """Options that omit the mark of simulated sessions, and others."""
    return {"extra_body": {"witan": {"mark": False, **more}}}


def name_of(response):
    return response.removeprefix("resp_")


class TestWhole:
    """A session as a response."""

    def test_the_text_is_the_final_answer(self, council, history):
        """With usage and the session, without progress."""
        reply = ask(council, temperature=0.2)
        session = history.session(reply.witan["session"])
        spent = [each.spent.usage for each in session.events if hasattr(each, "spent")]
        [message] = reply.output

        assert reply.id == f"resp_{session.id}"
        assert reply.output_text.startswith(session.text)
        assert reply.output_text.endswith("]")
        assert (message.type, message.status, reply.status) == ("message", *["completed"] * 2)
        assert reply.usage.output_tokens == sum(each.output_tokens for each in spent)
        assert reply.witan["ignored"] == ["temperature"]
        assert reply.store is True

    def test_progress_is_a_reasoning_item(self, council):
        """Before the message, on request."""
        reasoning, message = ask(council, **plain(narration=True)).output

        assert reasoning.type == "reasoning"
        assert "ada leads" in reasoning.summary[0].text
        assert message.content[0].text == "All told: so, as [A] has it."

    def test_a_truncated_text_is_incomplete(self, tmp_path):
        """As for a model."""
        with (
            modelled(tmp_path) as (models, file),
            served(councils(file)) as server,
            client_of(server) as client,
        ):
            models.fault("chair", "ends", stage="synthesis", finish="length")
            reply = ask(client)
            events = read_stream(client)

        assert reply.status == events[-1].response.status == "incomplete"
        assert reply.incomplete_details.reason == "max_output_tokens"
        assert events[-1].type == "response.incomplete"

    def test_headers_name_the_session_and_its_trust(self, council):
        """As for a chat completion."""
        raw = council.responses.with_raw_response.create(**ASKED)

        assert raw.headers["Witan-Session"] == raw.parse().witan["session"]
        assert raw.headers["Witan-Trust"].startswith("simulated | 3 of 3 reviewers | ")

    def test_a_council_without_an_answer_is_a_bad_gateway(self, tmp_path):
        """With every member's reason."""
        file = write_config(
            tmp_path, answer=[{"error": "is out of order"}], more="[limits]\nattempts = 1\n"
        )
        with (
            served(councils(file)) as server,
            client_of(server) as client,
            pytest.raises(openai.InternalServerError, match="bob did not answer") as caught,
        ):
            ask(client)

        assert (caught.value.status_code, caught.value.code) == (502, "no_text")


class TestQuestion:
    """Input becomes a question and a conversation."""

    def test_the_last_message_of_the_user_is_the_question(self, council, history):
        """Output of earlier responses is the conversation; reasoning is ignored."""
        given = [
            {"role": "developer", "content": "In Norse."},
            {"role": "user", "content": "Is it so?"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "It is.", "annotations": []}],
            },
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"at": 1}'},
            {"type": "function_call_output", "call_id": "c", "output": "a tree"},
            {"role": "user", "content": [{"type": "input_text", "text": "And why?"}]},
        ]
        reply = ask(council, input=given, instructions="Be brief.")
        opened = history.session(reply.witan["session"]).opening

        assert reply.instructions == "Be brief."
        assert opened.question == "And why?"
        assert opened.conversation == (
            Message("system", "Be brief."),
            Message("system", "In Norse."),
            Message("user", "Is it so?"),
            Message("assistant", "It is."),
            Message("assistant", '[called look({"at": 1})]'),
            Message("user", "[look returned]\na tree"),
        )

    def test_the_council_s_settings_are_passed_on(self, council, history):
        """The limit on tokens, and the fields of `witan`."""
        more = {"category": "so", "seed": 7, "options": {"rule": "schulze"}}
        reply = ask(council, max_output_tokens=500, extra_body={"witan": more})
        opened = history.session(reply.witan["session"]).opening

        assert (opened.category, opened.seed) == ("so", 7)
        assert opened.procedure.limits.max_tokens == reply.max_output_tokens == 500
        assert reply.witan["outcome"]["rule"] == "schulze"

    def test_tools_that_may_not_be_called_are_accepted(self, council):
        """Clients send them with every request."""
        assert ask(council, tools=[TOOL], tool_choice="none").output_text

    @pytest.mark.parametrize(
        ("given", "param", "words"),
        [
            ({"background": True}, "background", "POST /api/sessions"),
            ({"conversation": "conv_1"}, "conversation", "previous_response_id"),
            ({"prompt": {"id": "pmpt_1"}}, "prompt", "keeps no prompts"),
            ({"context_management": [{"type": "x"}]}, "context_management", "shortened"),
            ({"moderation": {"model": "x"}}, "moderation", "moderation is not supported"),
            ({"top_logprobs": 2}, "top_logprobs", "probabilities"),
            (
                {"extra_body": {"response_format": {"type": "text"}}},
                "response_format",
                "use text.format",
            ),
            ({"tools": [TOOL]}, "tools", "no tools"),
            ({"input": []}, "input", "is empty"),
            ({"input": 5}, "input", "text, or a list"),
            ({"input": " "}, "input", "expected a question"),
            ({"input": [{"role": "system", "content": "x"}]}, "input", "user"),
            ({"input": [{"type": "web_search_call"}]}, "input", "'web_search_call'"),
            (
                {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
                "input",
                "contains an image",
            ),
            (
                {"text": {"format": {"type": "json_schema", "schema": {"type": "nonsense"}}}},
                "text",
                "a JSON Schema",
            ),
            ({"max_output_tokens": 0}, "max_output_tokens", "at least 1"),
            ({"extra_body": {"witan": {"foo": 1}}}, "witan", "witan.foo: is not known here"),
        ],
    )
    def test_a_refused_parameter_is_named(self, council, history, given, param, words):
        """Nothing that would change the reply is ignored, and no session starts."""
        before = history.find(simulated=None)

        with pytest.raises(openai.BadRequestError, match=words) as caught:
            council.responses.create(**{**ASKED, **given})

        assert caught.value.param == param
        assert history.find(simulated=None) == before

    def test_parameters_at_their_default_are_accepted(self, council):
        """Clients write them out."""
        usual = {"background": False, "tools": [], "top_logprobs": 0, "text": {"verbosity": "low"}}

        assert ask(council, **usual).witan["ignored"] == ["text.verbosity"]


class TestJson:
    """A response as JSON."""

    @pytest.fixture
    def writer(self, tmp_path):
        """The client of a council whose chairman writes JSON when told to."""
        repaired = {"text": GOOD, "contains": "cannot be used: it"}
        file = write_config(tmp_path, synthesis=[repaired, {"text": "No object."}])
        with served(councils(file)) as running, client_of(running) as client:
            yield client

    def test_the_official_client_parses_it(self, writer):
        """After one repair, and without a trust paragraph."""
        reply = writer.responses.parse(**ASKED, text_format=Weather)

        assert reply.output_parsed == Weather(city="Oslo", degrees=12)
        assert reply.text.format.type == "json_schema"

    def test_a_stream_returns_the_json_whole(self, writer):
        """With no text before it."""
        events = read_stream(writer, text=FORM)
        deltas = [event.delta for event in events if event.type.endswith(".delta")]

        assert deltas == [GOOD]
        assert events[-1].response.text.format.type == "json_object"


class TestStream:
    """A session as typed events."""

    def test_events_come_in_order(self, council):
        """Numbered without gaps; each item and part is added, streamed and done."""
        events = read_stream(council, **plain())
        kinds = [event.type.removeprefix("response.") for event in events]
        distinct = [kind for kind, after in pairwise([*kinds, ""]) if kind != after]

        assert [event.sequence_number for event in events] == [*range(len(events))]
        assert distinct == [
            "created",
            "in_progress",
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ]
        for event in events:
            kind = type(event)
            kind.model_validate(event.model_dump(exclude_unset=True), strict=True)

    def test_the_last_event_repeats_the_streamed_text(self, council):
        """The client's own accumulator agrees."""
        with council.responses.stream(**ASKED, **plain()) as stream:
            pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()

        assert "".join(pieces) == final.output_text == "All told: so, as [A] has it."
        assert final.output[0].summary[0].text.startswith("simulated · the council:")
        assert final.witan["status"] == "complete"

    def test_progress_can_be_switched_off(self, council):
        """Then the only item is the message."""
        events = read_stream(council, **plain(narration=False))

        assert [item.type for item in events[-1].response.output] == ["message"]
        assert not any("reasoning" in event.type for event in events)

    def test_a_council_without_an_answer_ends_in_a_failed_response(self, tmp_path):
        """With every member's reason."""
        more = "[limits]\nattempts = 1\n"
        file = write_config(tmp_path, more, answer=[{"error": "is out of order"}])
        with served(councils(file)) as server, client_of(server) as client:
            events = read_stream(client)
        [failed] = [event for event in events if event.type == "response.failed"]

        assert failed is events[-1]
        assert failed.response.status == "failed"
        assert "bob did not answer" in failed.response.error.message

    def test_a_disconnect_interrupts_the_session(self, slow, history):
        """As for a chat completion; it can be retrieved and resumed."""
        with client_of(slow) as client:
            with client.responses.create(**ASKED, stream=True) as stream:
                first = next(iter(stream)).response
                under_way = validated(client.responses.retrieve(first.id))
            deadline = time.monotonic() + 60
            while slow.service.registry.under_way:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            left = validated(client.responses.retrieve(first.id))

        assert (under_way.status, under_way.output) == ("in_progress", [])
        assert left.status == "cancelled"
        assert "resume it" in left.error.message
        assert history.session(name_of(first.id)).status == "interrupted"

    def test_a_full_server_says_so(self, tmp_path):
        """With Retry-After."""
        file = write_config(tmp_path, answer=[{"text": "Ada says so.", "seconds": 20}])
        with (
            served(councils(file), ServeSettings(max_sessions=1)) as server,
            client_of(server) as client,
            client.responses.create(**ASKED, stream=True) as stream,
        ):
            next(iter(stream))
            with pytest.raises(openai.RateLimitError, match="concurrent session") as caught:
                ask(client)
        assert "retry-after" in caught.value.response.headers


class TestStored:
    """A response is a session in the history."""

    def test_it_can_be_retrieved(self, council):
        """Under the model of its seats."""
        reply = ask(council, model="witan/demo", instructions="Be brief.")
        again = validated(council.responses.retrieve(reply.id))

        assert again.output_text == reply.output_text
        assert (again.model, again.instructions) == ("witan/demo", "Be brief.")
        assert again.usage == reply.usage
        assert again.witan["trust"] == reply.witan["trust"]

    def test_it_can_be_followed_up(self, council, history):
        """The conversation continues; new instructions replace the old ones."""
        first = ask(council, instructions="Be brief.")
        same = ask(council, input="And why?", previous_response_id=first.id)
        other = ask(council, input="And?", previous_response_id=same.id, instructions="Be long.")
        opened = history.session(name_of(other.id)).opening
        texts = [turn.text for turn in opened.conversation]

        assert other.previous_response_id == same.id
        assert (opened.parent, opened.relation) == (name_of(same.id), "continued")
        assert [turn.role for turn in opened.conversation] == [
            "system",
            *["user", "assistant"] * 2,
        ]
        assert texts[:2] == ["Be long.", "Is it so?"]
        assert history.session(name_of(same.id)).opening.conversation[0].text == "Be brief."

    def test_its_message_can_be_referenced(self, council, history):
        """By its id, as some clients do; its reasoning is ignored."""
        first = ask(council, **plain(narration=True))
        turns = [{"type": "item_reference", "id": item.id} for item in first.output]
        reply = ask(council, input=[*turns, {"role": "user", "content": "And why?"}])
        opened = history.session(name_of(reply.id)).opening

        assert opened.conversation == (Message("assistant", "All told: so, as [A] has it."),)
        with pytest.raises(openai.NotFoundError, match="item 'msg_1' was not found") as caught:
            ask(council, input=[{"type": "item_reference", "id": "msg_1"}, *ASKED_TURNS])
        assert caught.value.code == "item_not_found"

    def test_it_can_be_deleted(self, council):
        """It can then be neither retrieved nor followed up."""
        reply = ask(council)
        assert council.delete(f"/responses/{reply.id}", cast_to=object)["deleted"] is True

        with pytest.raises(openai.NotFoundError, match="deleted"):
            council.responses.retrieve(reply.id)
        with pytest.raises(openai.NotFoundError, match="deleted"):
            ask(council, previous_response_id=reply.id)
        with pytest.raises(openai.NotFoundError):
            council.responses.delete("resp_last")

    @pytest.mark.parametrize("store", [True, False])
    def test_it_can_be_cancelled(self, slow, store):
        """By another request, also where it is not stored."""
        asked = {**ASKED, "store": store, "stream": True}
        with client_of(slow) as client, client.responses.create(**asked) as stream:
            first = next(iter(stream)).response
            with pytest.raises(openai.ConflictError, match="under way"):
                ask(client, previous_response_id=first.id)
            with pytest.raises(openai.ConflictError, match="under way"):
                client.responses.delete(first.id)
            assert validated(client.responses.retrieve(first.id)).store is store
            done = validated(client.responses.cancel(first.id))
            *_, last = stream

        assert done.status == last.response.status == "cancelled"
        assert done.store is store
        assert last.type == "response.failed"

    def test_a_judgment_is_retrieved_without_text(self, server, council):
        """It is retrieved like any session, with the reason."""
        done = council.post(
            f"{server.url}/api/judge?wait=20",
            cast_to=object,
            body={"texts": {"x": "So.", "y": "Not so."}},
        )
        judged = validated(council.responses.retrieve(f"resp_{done['session']}"))

        assert judged.status == "failed"
        assert "judged texts, and has no final answer" in judged.error.message
        with pytest.raises(openai.APIStatusError, match="no final answer to continue from"):
            ask(council, previous_response_id=judged.id)

    def test_input_items_are_refused(self, council):
        """The refusal says where the question is."""
        with pytest.raises(openai.BadRequestError, match="/api/sessions/ID") as caught:
            council.responses.input_items.list(ask(council).id)
        assert caught.value.code == "not_supported"

    def test_a_stored_response_cannot_be_streamed(self, council):
        """It is returned whole."""
        with pytest.raises(openai.BadRequestError, match="stream"):
            council.responses.retrieve(ask(council).id, stream=True)

    @pytest.mark.parametrize("chat", [False, True])
    def test_a_response_not_stored_is_gone_after_its_end(self, server, council, history, chat):
        """From the history and from memory."""
        before = history.find(simulated=None)
        if chat:
            reply = council.chat.completions.create(**openai_clients.ASKED, store=False)
        else:
            reply = ask(council, store=False)
            assert reply.store is False
        name = reply.witan["session"]

        assert history.find(simulated=None) == before
        assert server.service.registry.get(name) is None
        assert reply.witan["status"] == "complete"
        with pytest.raises(openai.NotFoundError, match="never stored"):
            council.responses.retrieve(f"resp_{name}")
