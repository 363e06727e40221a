"""The council as a model: whole chat completions through OpenAI's official client."""

import pytest

import openai_clients
from openai_clients import ASKED, client_of, modelled
from served import served
from services import councils, write_config
from witan.deliberation.ports import Message
from witan.history import History
from witan.service.config.serve import ServeSettings, TokenSettings


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """One history for the module."""
    with History.open(tmp_path_factory.mktemp("history") / "history.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def council(tmp_path_factory, history):
    """One server of three scripted members."""
    file = write_config(tmp_path_factory.mktemp("scripts"))
    with served(councils(file, history)) as server, client_of(server) as client:
        yield client


@pytest.fixture(scope="module")
def model_server(tmp_path_factory, history):
    """One server of three models over HTTP."""
    with (
        modelled(tmp_path_factory.mktemp("models"), "[limits]\nattempts = 1\n") as (running, file),
        served(councils(file, history)) as server,
        client_of(server) as client,
    ):
        yield client, running


@pytest.fixture
def models(model_server):
    """A client of that server and its models, all without faults and calls."""
    client, running = model_server
    running.behave()
    return client, running


def ask(client, *messages, **more):
    """Return the reply, validated against the protocol."""
    turns = [{"role": role, "content": text} for role, text in messages]
    reply = client.chat.completions.create(**{**ASKED, "messages": turns, **more})
    openai_clients.openai.types.chat.ChatCompletion.model_validate(
        reply.model_dump(exclude_unset=True), strict=True
    )
    return reply


class TestReply:
    """A session as a completion."""

    def test_the_content_is_the_final_answer(self, models, history):
        """With the council's fields beside it, and its progress as reasoning."""
        client, _ = models
        reply = ask(client, ("user", "Is it so?"), extra_body={"witan": {"narration": True}})
        session = history.session(reply.witan["session"])
        [choice] = reply.choices

        assert choice.message.content == session.text
        assert choice.finish_reason == "stop"
        assert reply.id == f"chatcmpl-{session.id}"
        assert reply.witan["status"] == "complete"
        assert reply.witan["leaders"] == list(session.outcome.leaders)
        assert reply.witan["simulated"] is False
        assert "ada leads" in choice.message.reasoning_content

    def test_usage_is_the_sum_over_all_calls(self, council, history):
        """Tokens and cost of answers, reviews and the final answer."""
        reply = ask(council, ("user", "Is it so?"))
        session = history.session(reply.witan["session"])
        spent = [each.spent.usage for each in session.events if hasattr(each, "spent")]

        assert len(spent) == 7
        assert reply.usage.prompt_tokens == sum(each.input_tokens for each in spent)
        assert reply.usage.completion_tokens == sum(each.output_tokens for each in spent)
        assert reply.usage.cost == 0.0

    @pytest.mark.parametrize(("price", "cost"), [("", 0.0), ("[price]\nbob = [1, 2]\n", None)])
    def test_unknown_usage_is_omitted(self, tmp_path, price, cost):
        """An interrupted call counts only where it is free."""
        with (
            modelled(tmp_path, f"[limits]\nattempts = 1\n{price}") as (running, file),
            served(councils(file)) as server,
            client_of(server) as client,
        ):
            running.fault("bob", "hang", stage="answer")
            limits = {"options": {"call_seconds": 0.5}}
            reply = ask(client, ("user", "Is it so?"), extra_body={"witan": limits})

        assert reply.usage is None
        assert reply.witan["cost_usd"] == cost

    def test_a_simulated_text_says_so(self, council):
        """In its last paragraph."""
        content = ask(council, ("user", "Is it so?")).choices[0].message.content

        assert content.startswith("All told: so")

    def test_a_degraded_text_states_what_is_missing(self, models):
        """In its last paragraph and in the status."""
        client, running = models
        running.fault("bob", "401", stage="answer")
        reply = ask(client, ("user", "Is it so?"))
        [*_, last] = reply.choices[0].message.content.split("\n\n")

        assert reply.witan["status"] == "degraded"
        assert last.startswith("[")
        assert "degraded: " in last
        assert "bob" in last

    def test_the_mark_can_be_switched_off(self, council):
        """For clients that read the status."""
        reply = ask(council, ("user", "Is it so?"), extra_body={"witan": {"mark": False}})

        assert "as [A] has it" in reply.choices[0].message.content
        assert reply.witan["simulated"] is True

    def test_the_legend_and_the_trust_line_are_added_on_request(self, models):
        """Below the text of a complete session."""
        client, _ = models
        body = {"witan": {"legend": True}}
        reply = ask(client, ("user", "Is it so?"), extra_body=body)

        text, legend, trust = reply.choices[0].message.content.split("\n\n")
        assert "[A]" in text
        assert sorted(part.split()[1] for part in legend.split(", ")) == ["ada", "bob", "cyd"]
        assert trust.startswith("[3 of 3 reviewers · ")

    @pytest.mark.parametrize(
        ("model", "stage", "writer"),
        [("witan", "synthesis", "chair"), ("witan/best", "answer", "ada")],
    )
    def test_a_truncated_text_has_finish_reason_length(self, models, model, stage, writer):
        """Taken from the chairman, or from the answer that replaces the text."""
        client, running = models
        running.fault(writer, "ends", stage=stage, finish="length")
        reply = ask(client, ("user", "Is it so?"), model=model)

        assert reply.choices[0].finish_reason == "length"


class TestQuestion:
    """Messages become a question and a conversation."""

    def test_the_last_message_of_the_user_is_the_question(self, council, history):
        """Earlier messages of any role become the conversation."""
        turns = [
            ("system", "Be brief."),
            ("user", "Is it so?"),
            ("assistant", "It is."),
            ("user", [{"type": "text", "text": "And"}, {"type": "text", "text": "why?"}]),
        ]
        opened = history.session(ask(council, *turns).witan["session"]).opening

        assert opened.question == "And\n\nwhy?"
        assert opened.conversation == (
            Message("system", "Be brief."),
            Message("user", "Is it so?"),
            Message("assistant", "It is."),
        )

    def test_members_receive_the_system_message(self, models):
        """In one system message; reviewers and chairman read it in the conversation."""
        client, running = models
        ask(client, ("developer", "Answer in French."), ("user", "Is it so?"))
        answers = [call for call in running.calls() if call.stage == "answer"]
        others = [call for call in running.calls() if call.stage != "answer"]

        assert [call.roles for call in answers] == [["system", "user"]] * 3
        assert all("Answer in French." in call.prompt for call in answers)
        assert all("system: Answer in French." in call.prompt for call in others)

    def test_tool_results_are_passed_on_as_text(self, council, history):
        """With their call, before the question."""
        call = {"id": "c1", "type": "function"}
        call["function"] = {"name": "weather", "arguments": '{"city": "Oslo"}'}
        turns = [
            {"role": "user", "content": "Is it warm?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "12 degrees"},
        ]
        reply = council.chat.completions.create(model="witan", messages=turns)
        opened = history.session(reply.witan["session"]).opening

        assert opened.question == "Is it warm?"
        assert opened.conversation == (
            Message("assistant", '[called weather({"city": "Oslo"})]'),
            Message("user", "[weather returned]\n12 degrees"),
        )

    def test_the_council_s_settings_are_passed_on(self, council, history):
        """Files, category, seed, limit on tokens, and rule."""
        more = {"files": {"a.txt": "Yes."}, "category": "so", "options": {"rule": "schulze"}}
        reply = ask(
            council,
            ("user", "Is it so?"),
            seed=7,
            max_tokens=500,
            extra_body={"witan": more},
        )
        opened = history.session(reply.witan["session"]).opening

        assert (opened.files, opened.category, opened.seed) == ({"a.txt": "Yes."}, "so", 7)
        assert opened.procedure.limits.max_tokens == 500
        assert reply.witan["outcome"]["rule"] == "schulze"

    def test_the_extension_overrides_the_model_name_and_the_protocol(self, council, history):
        """Settings under `witan` win over those for any model."""
        options = {"mode": "consensus", "max_tokens": 600}
        reply = ask(
            council,
            ("user", "Is it so?"),
            model="witan/best",
            max_completion_tokens=500,
            seed=7,
            extra_body={"witan": {"options": options, "seed": 8}},
        )
        opened = history.session(reply.witan["session"]).opening

        assert (opened.procedure.mode, opened.procedure.limits.max_tokens) == ("consensus", 600)
        assert opened.seed == 8

    def test_ignored_parameters_are_named(self, council):
        """Sampling of members is configured, not requested."""
        reply = ask(council, ("user", "Is it so?"), temperature=0.2, user="me")

        assert reply.witan["ignored"] == ["temperature", "user"]

    @pytest.mark.parametrize("stop", [" as [A]", ["never", "so, as", " as"]])
    def test_the_final_answer_ends_at_a_stop_sequence(self, council, stop):
        """At the first one; members and reviewers do not receive it."""
        given = {"stop": stop, "extra_body": {"witan": {"mark": False}}}
        content = ask(council, ("user", "Is it so?"), **given).choices[0].message.content
        first = " as" if stop[0] == " " else "so, as"

        assert content == "All told: so, as [A] has it.".partition(first)[0]

    def test_tools_that_may_not_be_called_are_accepted(self, council):
        """Clients send them with every request."""
        given = {"tools": [TOOL], "tool_choice": "none"}

        assert ask(council, ("user", "Is it so?"), **given).choices[0].message.content


class TestNarration:
    """Progress can be switched off."""

    def test_a_whole_reply_is_the_final_answer_alone(self, council):
        """Graders would read reasoning as part of the answer."""
        message = ask(council, ("user", "Is it so?")).choices[0].message

        assert "reasoning_content" not in message.model_dump(exclude_unset=True)

    @pytest.mark.parametrize(
        ("configured", "wished", "narrated"),
        [(None, None, True), (False, None, False), (False, True, True), (True, False, False)],
    )
    def test_the_request_overrides_the_server(self, tmp_path, configured, wished, narrated):
        """And both override the default, by which streams narrate."""
        body = {} if wished is None else {"witan": {"narration": wished}}
        settings = ServeSettings(narration=configured)
        with (
            served(councils(write_config(tmp_path)), settings) as server,
            client_of(server) as client,
        ):
            chunks = openai_clients.streamed(client, extra_body=body)

        assert bool(openai_clients.text_of_chunks(chunks, "reasoning_content")) is narrated


class TestModelNames:
    """The model name selects the council and its mode."""

    def test_the_best_answer_is_a_model_of_its_own(self, council):
        """It needs no chairman."""
        reply = ask(council, ("user", "Is it so?"), model="witan/best")

        assert reply.model == "witan/best"
        assert reply.witan["chairman"] is None
        assert "Ada says so." in reply.choices[0].message.content

    def test_the_demonstration_works_without_a_key(self, council):
        """It has its own members."""
        reply = ask(council, ("user", "Is it so?"), model="witan/demo")

        assert reply.witan["chairman"] == "hazel"

    def test_councils_are_listed_as_models(self, council):
        """Each can be retrieved by its name, too."""
        names = [model.id for model in council.models.list()]

        assert names == ["witan", "witan/best", "witan/demo"]
        assert council.models.retrieve("witan/demo").owned_by == "witan"
        assert [council.models.retrieve(name).id for name in names] == names

    def test_a_council_that_cannot_be_seated_is_not_listed(self, tmp_path):
        """Requests to it fail and refer to the server's log."""
        file = tmp_path / "council.toml"
        file.write_text('members = ["script:no.toml", "script:no.toml"]\n', encoding="utf-8")
        with served(councils(file)) as server, client_of(server) as client:
            assert [model.id for model in client.models.list()] == ["witan/demo"]
            with pytest.raises(
                openai_clients.openai.InternalServerError, match=r"cannot be seated: .* log"
            ) as caught:
                ask(client, ("user", "Is it so?"))
        assert caught.value.status_code == 503

    def test_an_unknown_model_is_not_found(self, council):
        """In the protocol's shape, with the known names."""
        with pytest.raises(openai_clients.openai.NotFoundError, match="witan/demo") as caught:
            ask(council, ("user", "Is it so?"), model="gpt-4")
        assert caught.value.code == "model_not_found"
        with pytest.raises(openai_clients.openai.NotFoundError):
            council.models.retrieve("witan/nothing")


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,xx"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


class TestErrors:
    """Errors have the types of the official client."""

    @pytest.mark.parametrize(
        ("given", "param", "words"),
        [
            ({"n": 2}, "n", "one text"),
            ({"tools": [TOOL]}, "tools", "no tools"),
            ({"functions": [{"name": "f"}]}, "functions", "no tools"),
            ({"stop": ["a"] * 5}, "stop", "more than 4"),
            (
                {
                    "response_format": {
                        "type": "json_schema",
                        "json_schema": {"name": "x", "schema": {"type": "nonsense"}},
                    }
                },
                "response_format",
                "a JSON Schema",
            ),
            (
                {
                    "response_format": {
                        "type": "json_schema",
                        "json_schema": {"name": "x", "schema": {"anyOf": [{"$ref": "#"}]}},
                    }
                },
                "response_format",
                "a JSON Schema that takes at most 200,000 checks",
            ),
            ({"logprobs": True}, "logprobs", "probabilities"),
            ({"modalities": ["audio"]}, "modalities", "text alone"),
            ({"max_tokens": 0}, "max_tokens", "at least 1"),
            ({"seed": -1}, "seed", "at least 0"),
            ({"messages": []}, "messages", "is empty"),
            ({"messages": [{"role": "system", "content": "x"}]}, "messages", "user"),
            ({"messages": [{"role": "user", "content": [IMAGE]}]}, "messages", "contains an image"),
            ({"messages": [{"role": "user", "content": "a\0b"}]}, "messages", "NUL character"),
            ({"messages": [{"role": "user", "content": " "}]}, "messages", "expected a question"),
            ({"messages": [{"role": "robot", "content": "x"}]}, "messages", "role"),
            (
                {"messages": [*ASKED["messages"], {"role": "assistant", "content": "It"}]},
                "messages",
                "assistant",
            ),
            ({"extra_body": {"witan": {"rule": "borda"}}}, "witan", "rule"),
            ({"extra_body": {"witan": {"profile": "fats"}}}, "profile", "fats"),
            ({"extra_body": {"witan": {"members": ["cmd:sh"]}}}, "seat", "cmd:sh"),
            (
                {"extra_body": {"witan": {"options": {"history": "x"}}}},
                "witan",
                "options.history: is not known here",
            ),
            (
                {"extra_body": {"witan": {"options": {"members": []}}}},
                "witan",
                "options.members: is not known here",
            ),
            (
                {"extra_body": {"witan": {"files": {"": "x"}}}},
                "witan",
                r"\(a name in it\): is empty",
            ),
            ({"extra_body": {"witan": {"foo": 1}}}, "witan", "witan.foo: is not known here"),
            ({"extra_body": {"witan": {"options": {"rule": "bordas"}}}}, None, "borda"),
        ],
    )
    def test_a_refused_parameter_is_named(self, council, history, given, param, words):
        """The request is a bad request and starts no session."""
        before = history.find(simulated=None)

        with pytest.raises(openai_clients.openai.BadRequestError, match=words) as caught:
            council.chat.completions.create(**{**ASKED, **given})

        assert caught.value.param == param
        assert history.find(simulated=None) == before

    def test_parameters_at_their_default_are_accepted(self, council):
        """Clients write them out."""
        plain = {"n": 1, "tools": [], "response_format": {"type": "text"}, "logprobs": False}

        assert council.chat.completions.create(**{**ASKED, **plain}).choices

    @pytest.mark.parametrize("path", ["/embeddings", "/completions"])
    def test_an_unknown_path_is_not_found(self, council, path):
        """In the protocol's shape."""
        with pytest.raises(openai_clients.openai.NotFoundError) as caught:
            council.post(path, cast_to=object, body={})
        assert caught.value.type == "not_found_error"

    def test_a_wrong_method_is_refused(self, council):
        """In the protocol's shape."""
        with pytest.raises(openai_clients.openai.APIStatusError) as caught:
            council.get("/chat/completions", cast_to=object)
        assert caught.value.status_code == 405
        assert caught.value.type == "invalid_request_error"

    def test_a_missing_token_is_refused(self, tmp_path):
        """The client's API key is the token."""
        settings = ServeSettings(tokens={"me": TokenSettings("me", "a file", key="TOKEN")})
        token = {"TOKEN": "0123456789abcdef"}
        with served(councils(write_config(tmp_path)), settings, token) as server:
            with (
                client_of(server) as client,
                pytest.raises(openai_clients.openai.AuthenticationError),
            ):
                client.models.list()
            with client_of(server, api_key=token["TOKEN"]) as client:
                assert client.models.list().data

    def test_rate_limits_send_retry_after(self, tmp_path):
        """In the header that the client obeys."""
        settings = ServeSettings(per_minute=1)
        with (
            served(councils(write_config(tmp_path)), settings) as server,
            client_of(server) as client,
        ):
            client.chat.completions.create(**ASKED)
            with pytest.raises(
                openai_clients.openai.RateLimitError, match="may start 1 session"
            ) as caught:
                client.chat.completions.create(**ASKED)

        assert int(caught.value.response.headers["retry-after"]) > 0

    def test_a_full_server_says_so(self, tmp_path):
        """With Retry-After."""
        file = write_config(tmp_path, answer=[{"text": "Ada says so.", "seconds": 20}])
        settings = ServeSettings(max_sessions=1)
        with (
            served(councils(file), settings) as server,
            client_of(server) as client,
            client.chat.completions.create(**ASKED, stream=True) as stream,
        ):
            next(iter(stream))
            with pytest.raises(
                openai_clients.openai.RateLimitError, match="concurrent session"
            ) as caught:
                client.chat.completions.create(**ASKED)
        assert "retry-after" in caught.value.response.headers

    def test_a_council_without_an_answer_is_a_bad_gateway(self, tmp_path):
        """With every member's reason; the client need not retry, as members were retried."""
        file = write_config(
            tmp_path, answer=[{"error": "is out of order"}], more="[limits]\nattempts = 1\n"
        )
        with (
            served(councils(file)) as server,
            client_of(server) as client,
            pytest.raises(
                openai_clients.openai.InternalServerError,
                match="bob did not answer",
            ) as caught,
        ):
            client.chat.completions.create(**ASKED)

        assert (caught.value.status_code, caught.value.code) == (502, "no_text")
        assert caught.value.response.headers["x-should-retry"] == "false"

    def test_a_council_without_money_says_so(self, tmp_path):
        """The ceiling forbids every answer."""
        with modelled(tmp_path) as (models, file):
            seats = [
                f'[[members]]\nname = "{name}"\nseat = "{models.url}#{name}"\nprice = [100, 100]\n'
                for name in ("ada", "bob", "cyd")
            ]
            file.write_text("".join(seats), encoding="utf-8")
            with served(councils(file)) as server, client_of(server) as client:
                ceiling = {"witan": {"options": {"max_cost_usd": 0.0001}}}
                with pytest.raises(openai_clients.openai.APIStatusError) as caught:
                    client.chat.completions.create(**ASKED, extra_body=ceiling)

        assert (caught.value.status_code, caught.value.code) == (402, "over_budget")
