"""The native API over real HTTP: sessions from question to record."""

import json
import time
from urllib.parse import quote

import httpx2
import pytest

from served import served
from services import councils, write_config
from witan.deliberation.record import session_from_json
from witan.history import History
from witan.service.redaction import redact_session

QUESTION = {"question": "Is it so?"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The history of `client`."""
    with History.open(tmp_path_factory.mktemp("archive") / "history.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def client(tmp_path_factory, archive):
    """A client of one server of three scripted members."""
    file = write_config(tmp_path_factory.mktemp("scripts"))
    with (
        served(councils(file, archive)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as opened,
    ):
        yield opened


@pytest.fixture
def slow(tmp_path, history):
    """A client of a server with slow reviewers."""
    file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 20}])
    with (
        served(councils(file, history)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as opened,
    ):
        yield opened


def events(client, session, after=0, **headers):
    """The events of the stream as (id, event, data)."""
    told = []
    with client.stream(
        "GET", f"/api/sessions/{session}/events", params={"after": after}, headers=headers
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for block in "".join(response.iter_text()).split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
            if fields:
                told.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
    return told


def until(client, session, kind, times=1):
    """Follow a session for so many events of this kind, then leave; return the last id."""
    last = ""
    with client.stream("GET", f"/api/sessions/{session}/events") as response:
        for line in response.iter_lines():
            last = line.removeprefix("id: ") if line.startswith("id: ") else last
            times -= line == f"event: {kind}"
            if not times:
                return last
    raise AssertionError(f"there was no {kind}")


def number_of(last):
    """The number in an event id."""
    return int(last.partition("-")[0])


def _without_pieces(told):
    """Events that every reader receives, without pieces of text."""
    return [each for each in told if not each[1].endswith("_delta")]


class TestAsking:
    """A question becomes a session."""

    def test_waiting_returns_the_record(self, client, archive):
        """The stored record as clients see it, readable as a session file."""
        response = client.post("/api/sessions", params={"wait": 10}, json=QUESTION)

        assert response.status_code == 200
        session = session_from_json(response.text)
        assert session.status == "complete"
        assert redact_session(archive.session(session.id)) == session

    def test_otherwise_the_reply_links_to_the_session(self, client):
        response = client.post("/api/sessions", json=QUESTION)

        assert response.status_code == 202
        assert client.get(response.headers["location"]).json()["question"] == "Is it so?"

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ({}, "question"),
            ({"question": ""}, "question"),
            ({"question": "  "}, "question"),
            ({"question": 5}, "question"),
            ({**QUESTION, "foo": 1}, "foo"),
            ({**QUESTION, "profile": "fats"}, "fats"),
            ({**QUESTION, "members": ["cmd:sh", "ada"]}, "cmd:sh"),
            ({**QUESTION, "members": ["ada"]}, "two seats"),
            ({**QUESTION, "options": {"rule": "bordas"}}, "borda"),
            ({**QUESTION, "options": {"history": "elsewhere"}}, "history"),
            ({**QUESTION, "options": {"quorum": 99}}, "quorum"),
            ({**QUESTION, "seed": -1}, "seed"),
            ({**QUESTION, "question": "a\0b"}, "question"),
        ],
    )
    def test_a_refused_parameter_is_named(self, client, body, said):
        """No session starts."""
        response = client.post("/api/sessions", json=body)

        assert response.status_code == 422
        assert response.headers["content-type"] == "application/problem+json"
        assert said in response.json()["detail"]

    def test_control_characters_of_the_question_are_escaped(self, client):
        """Printing the reply does not steer a terminal."""
        name = "\x9b31m\u202e\u200b\x7f"

        named = client.get("/api/sessions/" + quote(name))
        asked = client.post("/api/sessions", json={**QUESTION, "profile": name})

        for response in (named, asked):
            assert response.status_code in (404, 422)
            assert not set(response.text) & set(name) - set("31m")
            assert response.headers["content-type"] == "application/problem+json"

    @pytest.mark.parametrize(
        ("content", "headers", "said"),
        [
            (b'{"question": "why?"}', {}, "Content-Type: application/json"),
            (b'{"question', {"Content-Type": "application/json"}, "not valid JSON"),
        ],
    )
    def test_errors_of_invalid_json_have_a_remedy(self, client, content, headers, said):
        """For the most common mistakes."""
        response = client.post("/api/sessions", content=content, headers=headers)

        assert response.status_code == 422
        assert said in response.json()["detail"]

    def test_a_plan_does_not_call_models(self, client, archive):
        """It states the number of calls."""
        before = archive.find(simulated=None)

        response = client.post("/api/plan", json=QUESTION)

        assert response.json()["calls"] == 7
        assert archive.find(simulated=None) == before


class TestFollowing:
    """Readers receive every event and can reconnect."""

    def test_the_stream_has_every_event_and_the_end(self, client):
        """Numbers grow, and the last event is the end."""
        session = client.post("/api/sessions", json=QUESTION).json()["session"]
        told = events(client, session)
        numbers = [number_of(last) for last, kind, _ in told if kind != "end"]

        assert numbers == sorted(set(numbers))
        assert told[0][1] == "session_opened"
        assert told[-1][1:] == (
            "end",
            {"session": session, "status": "complete", "failure": None},
        )

    @pytest.mark.parametrize("way", ["header", "parameter", "number"])
    def test_a_reader_reconnects_after_the_last_event(self, client, way):
        """By Last-Event-ID or by a parameter, which accepts a bare number."""
        session = client.post("/api/sessions", json=QUESTION).json()["session"]
        whole = events(client, session)
        last = whole[4][0]
        if way == "header":
            rest = events(client, session, **{"Last-Event-ID": last})
        else:
            rest = events(client, session, after=number_of(last) if way == "number" else last)

        assert _without_pieces(rest) == _without_pieces(whole[5:])

    def test_an_invalid_place_in_a_stream_is_refused_in_its_own_words(self, client):
        """It is not mistaken for a text with a NUL character, and neither is half a character."""
        session = client.post("/api/sessions?wait=60", json=QUESTION).json()["session"]
        place = client.get(f"/api/sessions/{session}/events", params={"after": "junk"})
        half = client.post(
            "/api/sessions",
            content=r'{"question": "\ud800"}',
            headers={"Content-Type": "application/json"},
        )

        assert (place.status_code, half.status_code) == (422, 422)
        assert place.json()["detail"].startswith("after: must match ^[0-9]")
        assert half.json()["detail"].startswith("question: contains half of a surrogate pair")

    def test_a_bound_is_written_as_people_write_it(self, client):
        """A whole number has no decimals, though a parameter may have."""
        late = client.post("/api/sessions?wait=601", json=QUESTION)

        assert late.json()["detail"] == "wait: must be at most 600"

    def test_a_reader_receives_all_of_a_resumed_session(self, tmp_path, history):
        """Numbers of lost pieces are reused, so the stream starts again."""
        closing = [{"text": "so " * 300, "tokens_per_second": 300}]
        file = write_config(tmp_path, synthesis=closing)
        with (
            served(councils(file, history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            session = client.post("/api/sessions", json=QUESTION).json()["session"]
            last = until(client, session, "synthesis_delta", times=5)
            client.post(f"/api/sessions/{session}/cancel")
            client.post(f"/api/sessions/{session}/resume")
            told = events(client, session, **{"Last-Event-ID": last})
            whole = events(client, session)

        assert _without_pieces(told) == _without_pieces(whole)
        assert {"synthesis_started", "synthesis_done"} <= {kind for _, kind, _ in told}

    def test_event_ids_survive_a_restart(self, tmp_path, history):
        """A reader that reconnects receives only the rest."""
        with (
            served(councils(write_config(tmp_path), history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as before,
        ):
            posted = before.post("/api/sessions", params={"wait": 9}, json=QUESTION).json()
            whole = events(before, posted["session"])
        with (
            served(councils(write_config(tmp_path), history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as after,
        ):
            rest = events(after, posted["session"], **{"Last-Event-ID": whole[4][0]})
            again = events(after, posted["session"])

        assert rest == whole[5:]
        assert again == whole

    def test_a_session_of_an_earlier_server_is_streamed_from_the_history(self, tmp_path, history):
        """Stored events have their original numbers."""
        with (
            served(councils(write_config(tmp_path), history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as before,
        ):
            session = before.post("/api/sessions", params={"wait": 9}, json=QUESTION).json()
        with (
            served(councils(write_config(tmp_path), history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as after,
        ):
            told = events(after, session["session"])

        kept = [event["seq"] for event in session["events"]]
        assert [number_of(last) for last, kind, _ in told if kind != "end"] == kept

    def test_a_silent_stream_sends_comments(self, tmp_path, history):
        from witan.service.config.serve import ServeSettings

        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 20}])
        settings = ServeSettings(heartbeat_seconds=0.1)
        with (
            served(councils(file, history), settings) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            session = client.post("/api/sessions", json=QUESTION).json()["session"]
            with client.stream("GET", f"/api/sessions/{session}/events") as response:
                for line in response.iter_lines():
                    if line.startswith(":"):
                        break
                else:
                    raise AssertionError("no heartbeat")

    def test_a_running_session_is_not_shown_as_interrupted(self, slow):
        """Its record has no status yet."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        record = slow.get(f"/api/sessions/{session}").json()

        assert (record["under_way"], record["status"], record["missing"]) == (True, None, [])

    @pytest.mark.slow
    def test_the_document_allows_null_in_a_running_session(self, slow):
        import schemathesis
        from schemathesis.specs.openapi.checks import response_schema_conformance

        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        document = schemathesis.openapi.from_url(str(slow.base_url.join("/openapi.json")))
        asked = document["/api/sessions/{session}"]["GET"].Case(
            path_parameters={"session": session}
        )

        asked.call_and_validate(checks=[response_schema_conformance])


class TestEnding:
    """Sessions can be cancelled, resumed, rejudged and deleted."""

    def test_a_cancelled_session_is_interrupted_and_can_be_resumed(self, slow):
        """Its replies are stored."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        until(slow, session, "review_started")
        record = slow.post(f"/api/sessions/{session}/cancel").json()

        assert (record["status"], len(record["answers"])) == ("interrupted", 3)
        resumed = slow.post(f"/api/sessions/{session}/resume")
        assert (resumed.status_code, resumed.json()["session"]) == (202, session)

    def test_cancelling_waits_for_the_end(self, slow):
        """For some seconds; then it returns what there is."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        early = slow.get(f"/api/sessions/{session}/result", params={"wait": 0.1}).json()
        slow.post(f"/api/sessions/{session}/cancel")
        late = slow.get(f"/api/sessions/{session}/result").json()

        assert (early["under_way"], late["under_way"]) == (True, False)
        assert late["status"] == "interrupted"

    def test_a_resumed_session_is_running_again(self, slow):
        """It can be followed and cancelled."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        until(slow, session, "review_started")
        slow.post(f"/api/sessions/{session}/cancel")
        slow.post(f"/api/sessions/{session}/resume")

        assert slow.get(f"/api/sessions/{session}").json()["under_way"] is True
        until(slow, session, "review_started")
        slow.post(f"/api/sessions/{session}/cancel")
        assert slow.get("/healthz").json()["under_way"] == 0

    def test_a_running_session_cannot_be_resumed_or_deleted(self, slow):
        """The error says that it is running."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]

        for response in (
            slow.post(f"/api/sessions/{session}/resume"),
            slow.delete(f"/api/sessions/{session}"),
        ):
            assert response.status_code == 409
            assert "under way" in response.json()["detail"]

    def test_a_deleted_session_is_gone(self, client, archive):
        """From the server and the history."""
        session = client.post("/api/sessions", params={"wait": 9}, json=QUESTION).json()["session"]

        assert client.delete(f"/api/sessions/{session}").status_code == 200
        assert client.get(f"/api/sessions/{session}").status_code == 404
        assert not archive.has_record(session)

    def test_another_jury_judges_the_same_answers(self, client):
        """In a new session whose parent is the first."""
        first = client.post("/api/sessions", params={"wait": 9}, json=QUESTION).json()
        rejudge = f"/api/sessions/{first['session']}/rejudge"
        jury = {"options": {"mirrored": True}}
        planned = client.post(f"{rejudge}/plan", json=jury).json()
        again = client.post(rejudge, params={"wait": 9}, json=jury).json()

        assert planned["lines"] == again["events"][0]["plan"]["lines"]
        assert again["events"][0]["parent"] == first["session"]
        assert again["answers"] == first["answers"]
        parent = client.get(f"/api/sessions/{first['session']}").json()
        assert [*parent["children"]] == [again["session"]]

    def test_a_rule_that_cannot_count_a_session_is_refused_by_its_field(self, client):
        """The error names the field, so that a form can mark it."""
        wrong = {**QUESTION, "options": {"rule": "elo"}}
        response = client.post("/api/sessions", json=wrong)

        assert response.status_code == 422
        assert [fault["where"] for fault in response.json()["faults"]] == ["rule"]

    def test_a_name_that_looks_like_an_option_is_repeated_unchanged(self, client):
        """Remedies are reworded for requests; a client's text is not."""
        response = client.get("/api/sessions/--scale%20witan%20resume%20--take-over")

        assert response.status_code == 404
        assert "'--scale witan resume --take-over'" in response.json()["detail"]

    @pytest.mark.parametrize(
        "path", ["", "/events", "/cancel", "/resume", "/retry", "/rejudge", "/retry/plan"]
    )
    def test_an_unknown_session_is_not_found(self, client, path):
        """By any operation."""
        method = "GET" if path in ("", "/events") else "POST"
        response = client.request(method, f"/api/sessions/nope{path}", json={})

        assert response.status_code == 404
        assert "nope" in response.json()["detail"]


def test_a_small_reply_is_not_delayed_by_nagle(client):
    """On a kept connection it takes far less than the 40 ms of a delayed acknowledgement."""
    taken = []
    while len(taken) < 2 or (taken[-1] >= 0.03 and len(taken) < 200):  # the machine is shared
        started = time.perf_counter()
        client.get("/healthz")
        taken.append(time.perf_counter() - started)

    assert min(taken[1:]) < 0.03
