"""Final answers as JSON: written, checked against the schema, and repaired once."""

import json
from contextlib import ExitStack

import pytest
from pydantic import BaseModel

from openai_clients import ASKED, client_of, openai, streamed, text_of_chunks
from scripts import write_script
from served import served
from services import councils, write_config
from witan.deliberation import events as e
from witan.history import History

GOOD = '{"city": "Oslo", "degrees": 12}'
FORM = {"type": "json_object"}


class Weather(BaseModel):
    """The schema of a reply."""

    city: str
    degrees: int


@pytest.fixture
def council(tmp_path):
    """Serve a scripted council whose chairman gives these replies in turn."""

    def serve(first, repaired=None, silent=()):
        lines = [{"text": first}]
        if repaired is not None:
            lines.insert(0, {"text": repaired, "contains": "cannot be used: it"})
        file = write_config(tmp_path, synthesis=lines)
        for name in silent:
            write_script(tmp_path / f"{name}.toml", answer=[{"error": "is away"}])
        opened = stack.enter_context(History.open(tmp_path / "history.sqlite"))
        server = stack.enter_context(served(councils(file, opened)))
        return stack.enter_context(client_of(server)), opened

    with ExitStack() as stack:
        yield serve


def parse(client, **more):
    """Ask by the official client, which parses the reply into the schema."""
    return client.chat.completions.parse(**ASKED, response_format=Weather, **more)


class TestWhole:
    """A whole reply is the requested JSON or an error."""

    @pytest.mark.parametrize("reply", [GOOD, f"Here it is:\n```json\n{GOOD}\n```\nThat is all."])
    def test_the_official_client_reads_it(self, council, reply):
        """Without a trust paragraph and without surrounding prose."""
        client, _ = council(reply)
        done = parse(client)

        assert done.choices[0].message.parsed == Weather(city="Oslo", degrees=12)
        assert json.loads(done.choices[0].message.content) == json.loads(GOOD)
        assert done.witan["simulated"] is True
        assert "simulated" in done.witan["trust"]

    def test_a_reply_that_fails_the_schema_is_repaired_once(self, council):
        """The chairman receives the errors; the session is complete."""
        client, history = council('{"city": "Oslo"}', GOOD)
        done = parse(client)
        session = history.session(done.witan["session"])
        [retried] = [x for x in session.events if isinstance(x, e.CallRetried)]

        assert done.choices[0].message.parsed.degrees == 12
        assert '"degrees" is a required property' in retried.reason
        assert session.status == "complete"
        assert session.synthesis.text == GOOD

    def test_an_error_names_the_field(self, council):
        """Which is no path of this machine."""
        client, _ = council('{"city": "Oslo", "degrees": "warm"}')
        with pytest.raises(openai.APIStatusError) as caught:
            parse(client)

        assert 'at degrees: "warm" is not of type "integer"' in caught.value.message

    def test_a_second_invalid_reply_is_an_error(self, council):
        """With the reason and no broken JSON; the client does not retry."""
        client, history = council('{"city": "Oslo"}')
        with pytest.raises(openai.APIStatusError) as caught:
            parse(client)
        [session] = history.sessions()

        assert caught.value.status_code == 502
        assert caught.value.code == "schema_not_met"
        assert '"degrees" is a required property' in caught.value.message
        assert "even after a repair" in caught.value.message
        assert caught.value.response.headers["X-Should-Retry"] == "false"
        assert session.status == "degraded"

    def test_any_object_is_valid_without_a_schema(self, council):
        """A list is repaired."""
        client, _ = council("[1]", GOOD)
        done = client.chat.completions.create(**ASKED, response_format=FORM)

        assert json.loads(done.choices[0].message.content) == json.loads(GOOD)

    def test_a_lone_answer_is_converted_to_json(self, council):
        """A member's prose is never returned as JSON."""
        client, _ = council(GOOD, silent=("bob", "cyd"))
        done = parse(client)

        assert done.choices[0].message.parsed.city == "Oslo"
        assert done.witan["status"] == "degraded"

    def test_best_answer_mode_refuses_a_schema(self, council):
        """No chairman writes there."""
        client, _ = council(GOOD)
        with pytest.raises(openai.BadRequestError, match="where no chairman writes"):
            client.chat.completions.create(**{**ASKED, "model": "witan/best"}, response_format=FORM)

    def test_headers_name_the_session_and_its_trust(self, council):
        """For programs that read only the text."""
        client, _ = council(GOOD)
        raw = client.chat.completions.with_raw_response.create(**ASKED, response_format=FORM)

        assert raw.headers["Witan-Session"] == raw.parse().witan["session"]
        assert raw.headers["Witan-Trust"].startswith("simulated | 3 of 3 reviewers | ")


class TestStream:
    """A stream sends JSON once it is whole."""

    def test_the_text_comes_in_one_piece_after_its_repair(self, council):
        """The invalid reply and its repair are not streamed."""
        client, _ = council("No object.", GOOD)
        chunks = streamed(client, response_format=FORM)

        assert text_of_chunks(chunks) == GOOD

    def test_an_invalid_final_reply_ends_the_stream_in_an_error(self, council):
        """With no text before it."""
        client, _ = council("No.")
        with pytest.raises(openai.APIError, match="satisfies the schema"):
            streamed(client, response_format=FORM)
