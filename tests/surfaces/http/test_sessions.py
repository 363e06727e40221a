"""The native API over real HTTP: sessions, from the question to what is kept of them."""

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
    """A client of one server whose council is three scripts."""
    file = write_config(tmp_path_factory.mktemp("scripts"))
    with (
        served(councils(file, archive)) as server,
        httpx2.Client(base_url=server.url, timeout=20) as opened,
    ):
        yield opened


@pytest.fixture
def slow(tmp_path, history):
    """A client of a server whose reviewers take their time."""
    file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 20}])
    with (
        served(councils(file, history)) as server,
        httpx2.Client(base_url=server.url, timeout=20) as opened,
    ):
        yield opened


def events(client, session, after=0, **headers):
    """What the stream tells, as (id, event, data)."""
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
    """Follow a session until so many events of this kind, then leave; give the id of the last."""
    last = ""
    with client.stream("GET", f"/api/sessions/{session}/events") as response:
        for line in response.iter_lines():
            last = line.removeprefix("id: ") if line.startswith("id: ") else last
            times -= line == f"event: {kind}"
            if not times:
                return last
    raise AssertionError(f"there was no {kind}")


def number_of(last):
    """The number of an event, of how a reader names it."""
    return int(last.partition("-")[0])


def _kept(told):
    """What is told alike whenever one listens: everything but the pieces of texts."""
    return [each for each in told if not each[1].endswith("_delta")]


class TestAsking:
    """A question over HTTP becomes a session."""

    def test_the_record_comes_back_where_it_is_waited_for(self, client, archive):
        """It is what the history keeps, as clients see it, and reads as a session file."""
        response = client.post("/api/sessions", params={"wait": 10}, json=QUESTION)

        assert response.status_code == 200
        session = session_from_json(response.text)
        assert session.status == "complete"
        assert redact_session(archive.session(session.id)) == session

    def test_else_it_says_where_the_session_is(self, client):
        """The place is a link, and the session is there."""
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
    def test_what_is_not_accepted_is_named(self, client, body, said):
        """No session comes of it."""
        response = client.post("/api/sessions", json=body)

        assert response.status_code == 422
        assert response.headers["content-type"] == "application/problem+json"
        assert said in response.json()["detail"]

    def test_what_is_quoted_steers_no_terminal(self, client):
        """A client that prints the answer is shown escapes in place of control characters."""
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
            (b'{"question', {"Content-Type": "application/json"}, "no JSON"),
        ],
    )
    def test_a_body_that_is_no_json_is_told_how_to_be(self, client, content, headers, said):
        """The commonest slips of the hand get the remedy."""
        response = client.post("/api/sessions", content=content, headers=headers)

        assert response.status_code == 422
        assert said in response.json()["detail"]

    def test_a_plan_makes_no_call(self, client, archive):
        """It says how many there would be."""
        before = archive.find(simulated=None)

        response = client.post("/api/plan", json=QUESTION)

        assert response.json()["calls"] == 7
        assert archive.find(simulated=None) == before


class TestFollowing:
    """Whoever follows a session is told everything, and can take up where it left."""

    def test_the_stream_tells_everything_and_how_it_ended(self, client):
        """The numbers grow, and the last event is the end."""
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
    def test_a_stream_is_taken_up_after_the_last_that_was_heard(self, client, way):
        """By a browser's header, or by a parameter, which takes a number alone, too."""
        session = client.post("/api/sessions", json=QUESTION).json()["session"]
        whole = events(client, session)
        last = whole[4][0]
        if way == "header":
            rest = events(client, session, **{"Last-Event-ID": last})
        else:
            rest = events(client, session, after=number_of(last) if way == "number" else last)

        assert _kept(rest) == _kept(whole[5:])

    def test_a_reader_misses_nothing_of_a_session_that_is_resumed(self, tmp_path, history):
        """Pieces of a lost text had numbers that come again: it is told from the beginning."""
        closing = [{"text": "so " * 300, "tokens_per_second": 300}]
        file = write_config(tmp_path, synthesis=closing)
        with (
            served(councils(file, history)) as server,
            httpx2.Client(base_url=server.url, timeout=20) as client,
        ):
            session = client.post("/api/sessions", json=QUESTION).json()["session"]
            last = until(client, session, "synthesis_delta", times=5)
            client.post(f"/api/sessions/{session}/cancel")
            client.post(f"/api/sessions/{session}/resume")
            told = events(client, session, **{"Last-Event-ID": last})
            whole = events(client, session)

        assert _kept(told) == _kept(whole)
        assert {"synthesis_started", "synthesis_done"} <= {kind for _, kind, _ in told}

    def test_what_is_kept_is_known_to_the_next_server(self, tmp_path, history):
        """A reader of one that was restarted is told the rest alone."""
        with (
            served(councils(write_config(tmp_path), history)) as server,
            httpx2.Client(base_url=server.url) as before,
        ):
            posted = before.post("/api/sessions", params={"wait": 9}, json=QUESTION).json()
            whole = events(before, posted["session"])
        with (
            served(councils(write_config(tmp_path), history)) as server,
            httpx2.Client(base_url=server.url) as after,
        ):
            rest = events(after, posted["session"], **{"Last-Event-ID": whole[4][0]})
            again = events(after, posted["session"])

        assert rest == whole[5:]
        assert again == whole

    def test_a_session_of_an_earlier_server_is_told_from_the_history(self, tmp_path, history):
        """Kept events have the numbers that they had."""
        with (
            served(councils(write_config(tmp_path), history)) as server,
            httpx2.Client(base_url=server.url) as before,
        ):
            session = before.post("/api/sessions", params={"wait": 9}, json=QUESTION).json()
        with (
            served(councils(write_config(tmp_path), history)) as server,
            httpx2.Client(base_url=server.url) as after,
        ):
            told = events(after, session["session"])

        kept = [event["seq"] for event in session["events"]]
        assert [number_of(last) for last, kind, _ in told if kind != "end"] == kept

    def test_a_silent_stream_shows_that_it_is_there(self, tmp_path, history):
        """A comment comes while nothing happens."""
        from witan.service.config.serve import ServeSettings

        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 20}])
        settings = ServeSettings(heartbeat_seconds=0.1)
        with (
            served(councils(file, history), settings) as server,
            httpx2.Client(base_url=server.url, timeout=5) as client,
        ):
            session = client.post("/api/sessions", json=QUESTION).json()["session"]
            with client.stream("GET", f"/api/sessions/{session}/events") as response:
                for line in response.iter_lines():
                    if line.startswith(":"):
                        break
                else:
                    raise AssertionError("no heartbeat")

    def test_a_session_under_way_does_not_look_broken_off(self, slow):
        """Its record has no status yet."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        record = slow.get(f"/api/sessions/{session}").json()

        assert (record["under_way"], record["status"], record["missing"]) == (True, None, [])

    @pytest.mark.slow
    def test_the_document_promises_a_session_under_way_as_it_is(self, slow):
        """What has no value yet may be null."""
        import schemathesis
        from schemathesis.specs.openapi.checks import response_schema_conformance

        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        document = schemathesis.openapi.from_url(str(slow.base_url.join("/openapi.json")))
        asked = document["/api/sessions/{session}"]["GET"].Case(
            path_parameters={"session": session}
        )

        asked.call_and_validate(checks=[response_schema_conformance])


class TestEnding:
    """A session can be interrupted, taken up, judged again and forgotten."""

    def test_one_that_is_cancelled_is_interrupted_and_can_be_resumed(self, slow):
        """What came in is kept."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        until(slow, session, "review_started")
        record = slow.post(f"/api/sessions/{session}/cancel").json()

        assert (record["status"], len(record["answers"])) == ("interrupted", 3)
        resumed = slow.post(f"/api/sessions/{session}/resume")
        assert (resumed.status_code, resumed.json()["session"]) == (202, session)

    def test_its_end_is_waited_for(self, slow):
        """For some seconds; then it is given as far as it came."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        early = slow.get(f"/api/sessions/{session}/result", params={"wait": 0.1}).json()
        slow.post(f"/api/sessions/{session}/cancel")
        late = slow.get(f"/api/sessions/{session}/result").json()

        assert (early["under_way"], late["under_way"]) == (True, False)
        assert late["status"] == "interrupted"

    def test_one_that_is_resumed_is_under_way_again(self, slow):
        """It can be followed, and interrupted, like the first time."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]
        until(slow, session, "review_started")
        slow.post(f"/api/sessions/{session}/cancel")
        slow.post(f"/api/sessions/{session}/resume")

        assert slow.get(f"/api/sessions/{session}").json()["under_way"] is True
        until(slow, session, "review_started")
        slow.post(f"/api/sessions/{session}/cancel")
        assert slow.get("/healthz").json()["under_way"] == 0

    def test_one_under_way_is_neither_resumed_nor_forgotten(self, slow):
        """It is said that it is under way."""
        session = slow.post("/api/sessions", json=QUESTION).json()["session"]

        for response in (
            slow.post(f"/api/sessions/{session}/resume"),
            slow.delete(f"/api/sessions/{session}"),
        ):
            assert response.status_code == 409
            assert "under way" in response.json()["detail"]

    def test_one_that_is_forgotten_is_gone(self, client, archive):
        """Neither the server nor the history has it."""
        session = client.post("/api/sessions", params={"wait": 9}, json=QUESTION).json()["session"]

        assert client.delete(f"/api/sessions/{session}").status_code == 200
        assert client.get(f"/api/sessions/{session}").status_code == 404
        assert not archive.has_record(session)

    def test_another_jury_judges_the_same_answers(self, client):
        """In a session of its own, whose parent is the first."""
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

    def test_a_rule_that_no_session_can_be_counted_by_is_refused_by_its_field(self, client):
        """The field of the request is named, so that a form can mark it."""
        wrong = {**QUESTION, "options": {"rule": "elo"}}
        response = client.post("/api/sessions", json=wrong)

        assert response.status_code == 422
        assert [fault["where"] for fault in response.json()["faults"]] == ["rule"]

    def test_a_name_that_looks_like_an_option_is_repeated_as_it_was_sent(self, client):
        """Remedies are worded for requests; what a client wrote is not."""
        response = client.get("/api/sessions/--scale%20witan%20resume%20--take-over")

        assert response.status_code == 404
        assert "'--scale witan resume --take-over'" in response.json()["detail"]

    @pytest.mark.parametrize(
        "path", ["", "/events", "/cancel", "/resume", "/retry", "/rejudge", "/retry/plan"]
    )
    def test_one_that_is_not_there_is_not_found(self, client, path):
        """Whatever is wanted of it."""
        method = "GET" if path in ("", "/events") else "POST"
        response = client.request(method, f"/api/sessions/nope{path}", json={})

        assert response.status_code == 404
        assert "nope" in response.json()["detail"]


def test_a_small_answer_waits_for_no_acknowledgement(client):
    """On a connection that is kept, a request takes far less than the 40 ms of a delayed one."""
    taken = []
    for _ in range(15):
        started = time.perf_counter()
        client.get("/healthz")
        taken.append(time.perf_counter() - started)

    assert min(taken[1:]) < 0.03
