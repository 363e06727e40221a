"""Stopped and killed servers: no data is lost silently, nothing is written twice."""

import json
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from contextlib import ExitStack, suppress
from threading import Event

import httpx2
import pytest

from misbehaving import MisbehavingServer
from processes import run_witan, wait_until
from served import serving_process
from services import write_config, write_priced
from witan.errors import UnknownName
from witan.history import History

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="Windows sends no signals to a process"),
]

QUESTION = {"question": "Is it so?"}

HANGS = [{"prefers": ["Ada says"], "seconds": 60}]


def slow_reviews(tmp_path, seconds, more=""):
    """A council that answers at once and reviews after some seconds."""
    return write_config(tmp_path, more, review=[{"prefers": ["Ada says"], "seconds": seconds}])


def serving(tmp_path, file, **more):
    history = tmp_path / "history.sqlite"
    return serving_process("--config", file, "--history", history, cwd=tmp_path, **more)


def client_of(url, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx2.Client(base_url=url, headers=headers, timeout=60)


def ask_until(client, kind="review_started"):
    """Ask, wait for an event of this kind, and return the session's name."""
    session = client.post("/api/sessions", json=QUESTION).json()["session"]
    with client.stream("GET", f"/api/sessions/{session}/events") as response:
        for line in response.iter_lines():
            if line == f"event: {kind}":
                return session
    raise AssertionError(f"there was no {kind}")


def answer_count(tmp_path, session):
    """The number of a session's answers in the history."""
    with History.open(tmp_path / "history.sqlite") as history, suppress(UnknownName):
        return len(history.session(session).answers)
    return 0


def statuses(tmp_path):
    """The status of each session in the history."""
    with History.open(tmp_path / "history.sqlite") as history:
        return {found.session: found.status for found in history.find(simulated=None)}


class TestKilled:
    """A server killed during a session."""

    def test_a_session_survives_a_restart_and_can_be_completed(self, tmp_path):
        """Its answers are stored; only the missing ballots are requested again."""
        file = slow_reviews(tmp_path, 60)
        with serving(tmp_path, file) as (url, process), client_of(url) as client:
            session = ask_until(client)
            wait_until(lambda: answer_count(tmp_path, session) == 3, "the answers are not kept")
            process.kill()
            process.wait()
        write_config(tmp_path)
        with serving(tmp_path, file) as (url, _), client_of(url) as client:
            left = client.get(f"/api/sessions/{session}").json()
            listed = client.get("/api/sessions").json()["sessions"]
            taken_up = client.post(f"/api/sessions/{session}/resume", params={"wait": 20})
            whole = taken_up.json()
            again = client.post(f"/api/sessions/{session}/resume")

        assert (left["status"], left["under_way"]) == ("interrupted", False)
        assert len(left["answers"]) == 3
        assert "interrupted" in left["trust"]
        assert [line["status"] for line in listed] == ["interrupted"]
        assert (taken_up.status_code, whole["session"]) == (200, session)
        assert whole["status"] == "complete"
        kinds = Counter(event["event"] for event in whole["events"])
        assert kinds["answer_done"] == kinds["ballot_cast"] == 3
        assert [event["seq"] for event in whole["events"]] == sorted(
            {event["seq"] for event in whole["events"]}
        )
        assert again.status_code == 409
        assert statuses(tmp_path) == {session: "complete"}

    def test_complete_sessions_are_unchanged(self, tmp_path):
        """Byte for byte."""
        file = slow_reviews(tmp_path, 60)
        quick = {**QUESTION, "options": {"mode": "consensus", "call_seconds": 0.2}}
        with serving(tmp_path, file) as (url, process), client_of(url) as client:
            ended = client.post("/api/sessions", params={"wait": 20}, json=quick).json()["session"]
            before = client.get(f"/api/sessions/{ended}").json()
            ask_until(client)
            process.kill()
            process.wait()
        with serving(tmp_path, file) as (url, _), client_of(url) as client:
            after = client.get(f"/api/sessions/{ended}").json()

        assert after == before


class TestStopped:
    """On SIGTERM sessions may finish; the others can be resumed."""

    def test_a_signal_right_after_start_stops_the_server(self, tmp_path):
        """As soon as the address is printed; the exit status is 0."""
        with serving(tmp_path, slow_reviews(tmp_path, 1)) as (_, process):
            process.send_signal(signal.SIGINT)

            assert process.wait(60) == 0

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_running_sessions_may_finish(self, tmp_path, number):
        """New questions are refused with Retry-After; the exit status is 0."""
        heard, is_read = [], Event()
        file = tmp_path / "council.toml"
        with ExitStack() as stack:
            models = stack.enter_context(MisbehavingServer({"ada": 9, "bob": 8}))
            models.fault(None, "held", stage="review", until=is_read)
            seats = [f"{models.url}#{name}" for name in models.worth]
            file.write_text(f"members = {json.dumps(seats)}", encoding="utf-8")
            url, process = stack.enter_context(serving(tmp_path, file, heard=heard))
            client = stack.enter_context(client_of(url))
            session = ask_until(client)
            process.send_signal(number)
            wait_until(lambda: client.get("/healthz").status_code == 503, "it goes on as before")
            refused = client.post("/api/sessions", json=QUESTION)
            chat = {"model": "witan/demo", "messages": [{"role": "user", "content": "So?"}]}
            openai = client.post("/v1/chat/completions", json=chat)
            read = client.get(f"/api/sessions/{session}")
            is_read.set()
            status = process.wait(60)

        for response in (refused, openai):
            assert response.status_code == 503
            assert int(response.headers["retry-after"]) > 0
            assert "about to stop" in response.text
        assert read.status_code == 200
        assert status == 0
        assert statuses(tmp_path) == {session: "complete"}
        assert any("stopping: 1 running" in line for line in heard)
        assert sum("warning: request" in line for line in heard) == 2
        assert not any(" error: " in line for line in heard)
        assert not any("Traceback" in line for line in heard)

    def test_sessions_beyond_the_grace_period_are_interrupted_and_can_be_resumed(self, tmp_path):
        """Readers of their events learn it before the connection ends."""
        file = slow_reviews(tmp_path, 60, "[serve]\ngrace_seconds = 1")
        with serving(tmp_path, file) as (url, process), client_of(url) as client:
            session = ask_until(client)
            with client.stream("GET", f"/api/sessions/{session}/events") as response:
                process.send_signal(signal.SIGTERM)
                told = "".join(response.iter_text())
            status = process.wait(60)
        write_config(tmp_path)
        with serving(tmp_path, file) as (url, _), client_of(url) as client:
            left = client.get(f"/api/sessions/{session}").json()
            whole = client.post(f"/api/sessions/{session}/resume", params={"wait": 20}).json()

        assert status == 0
        assert '"status":"interrupted"' in told.split("event: end")[1]
        assert (left["status"], len(left["answers"])) == ("interrupted", 3)
        assert whole["status"] == "complete"

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_second_signal_interrupts_at_once(self, tmp_path, number):
        """What was received is stored, and the message says how to resume."""
        heard = []
        file = slow_reviews(tmp_path, 60)
        with serving(tmp_path, file, heard=heard) as (url, process), client_of(url) as client:
            session = ask_until(client)
            process.send_signal(number)
            wait_until(lambda: client.get("/healthz").status_code == 503, "it goes on as before")
            started = time.monotonic()
            process.send_signal(number)
            status = process.wait(60)
            taken = time.monotonic() - started

        assert status == 0
        assert taken < 20  # a grace of 30 s is not awaited
        assert statuses(tmp_path) == {session: "interrupted"}
        again = f"witan resume {session} --history {tmp_path / 'history.sqlite'}"
        assert any(line.strip() == f"interrupted; resume with: {again}" for line in heard)
        assert not any(" error: " in line for line in heard)

    def test_the_message_names_some_of_many_interrupted_sessions(self, tmp_path):
        """And where the others are listed."""
        heard = []
        file = slow_reviews(tmp_path, 60)
        with serving(tmp_path, file, heard=heard) as (url, process), client_of(url) as client:
            sessions = [ask_until(client, "session_opened") for _ in range(12)]
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: client.get("/healthz").status_code == 503, "it goes on as before")
            process.send_signal(signal.SIGTERM)
            process.wait(60)

        resumed = "resume with: witan resume "
        named = [line.partition(resumed)[2].split()[0] for line in heard if resumed in line]
        assert named == sessions[:10]
        assert any(
            all(fact in line for fact in ("2 more", "witan sessions --status")) for line in heard
        )

    def test_unsaved_sessions_are_reported_as_lost(self, tmp_path):
        """The message names no history to search."""
        heard = []
        with (
            serving_process(
                "--config", slow_reviews(tmp_path, 60), "--no-history", cwd=tmp_path, heard=heard
            ) as (url, process),
            client_of(url) as client,
        ):
            ask_until(client)
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: client.get("/healthz").status_code == 503, "it goes on as before")
            process.send_signal(signal.SIGTERM)
            process.wait(60)

        assert "interrupted and not recorded: 1 session\n" in heard

    def test_an_idle_server_stops_at_once(self, tmp_path):
        """Also with an open keep-alive connection."""
        with serving(tmp_path, write_config(tmp_path)) as (url, process), client_of(url) as client:
            client.post("/api/sessions", params={"wait": 20}, json=QUESTION)
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            status = process.wait(60)

        assert status == 0
        assert time.monotonic() - started < 20


def test_a_port_in_use_gives_a_one_line_error(tmp_path):
    """With the port and a remedy; the exit status is that of misuse."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run_witan("serve", "--no-history", "--port", port, cwd=tmp_path)

    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert f"127.0.0.1:{port}" in line
    assert "--port" in line


def test_a_missing_token_gives_a_one_line_error(tmp_path):
    """No address is announced first."""
    file = tmp_path / "council.toml"
    file.write_text('[serve.tokens.team]\nkey = "TEAM_TOKEN"\n', encoding="utf-8")
    done = run_witan("serve", "--no-history", "--config", file, cwd=tmp_path)

    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "TEAM_TOKEN is not set" in line


def test_only_one_server_spends_a_day_s_money(tmp_path):
    """A second server does not start beside it; a program for its own user does.

    After a kill the next server replaces what was reserved by the actual cost, with interrupted
    calls at their maximum.
    """
    environment = {
        "TEAM_TOKEN": "the-token-of-the-tests",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    file = write_priced(tmp_path, review=HANGS)
    with file.open("a", encoding="utf-8") as settings:
        settings.write('[serve.tokens.team]\nkey = "TEAM_TOKEN"\ndaily_usd = 5\n')
    ledger = tmp_path / "state" / "witan" / "spent.jsonl"

    def run(*arguments):
        return run_witan(
            *arguments,
            "--no-history",
            "--config",
            file,
            cwd=tmp_path,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
        )

    def recorded_spending():
        """The spending that the file records for the only session."""
        lines = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
        assert len({line["number"] for line in lines}) == 1
        return lines[-1]

    with serving(tmp_path, file, environment=environment) as (url, process):
        second = run("serve", "--port", "0")
        beside = run("mcp")
        with client_of(url, environment["TEAM_TOKEN"]) as client:
            session = ask_until(client)
        wait_until(lambda: answer_count(tmp_path, session) == 3, "the answers are not kept")
        process.kill()
        process.wait()
    held = recorded_spending()
    with serving(tmp_path, file, environment=environment):
        spent = recorded_spending()
    with History.open(tmp_path / "history.sqlite") as history:
        cost = history.session(session).cost

    assert second.returncode == 2
    [line] = second.stderr.splitlines()
    assert str(ledger) in line
    assert "stop that server" in line
    assert (beside.returncode, beside.stderr) == (0, "")
    assert (held["asker"], held["held"], held["session"]) == ("team", True, session)
    assert 0 < cost.known_usd < spent["usd"] < held["usd"]
    assert spent["usd"] == pytest.approx(cost.committed_usd)
    assert "held" not in spent
