"""A server that ends, in good order or not: nothing is lost without a word, nothing is doubled."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress

import httpx2
import pytest

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
    """A council that answers at once and reviews after so many seconds."""
    return write_config(tmp_path, more, review=[{"prefers": ["Ada says"], "seconds": seconds}])


def serving(tmp_path, file, **more):
    history = tmp_path / "history.sqlite"
    return serving_process("--config", file, "--history", history, cwd=tmp_path, **more)


def client_of(url, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx2.Client(base_url=url, headers=headers, timeout=30)


def begun(client, kind="review_started"):
    """Ask, and wait until an event of this kind has happened; the name of the session."""
    session = client.post("/api/sessions", json=QUESTION).json()["session"]
    with client.stream("GET", f"/api/sessions/{session}/events") as response:
        for line in response.iter_lines():
            if line == f"event: {kind}":
                return session
    raise AssertionError(f"there was no {kind}")


def until(check, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def answered(tmp_path, session):
    """How many answers of a session the history has; a moment ago the reader was told of them."""
    with History.open(tmp_path / "history.sqlite") as history, suppress(UnknownName):
        return len(history.session(session).answers)
    return 0


def statuses(tmp_path):
    """Session to status, as the history has it."""
    with History.open(tmp_path / "history.sqlite") as history:
        return {found.session: found.status for found in history.find(simulated=None)}


class TestKilled:
    """Killed in the middle, it has lost no more than it says."""

    def test_a_session_is_there_after_a_restart_and_can_be_completed(self, tmp_path):
        """Answers were in and ballots were not: it says so, and only those are asked for again."""
        file = slow_reviews(tmp_path, 60)
        with serving(tmp_path, file) as (url, process), client_of(url) as client:
            session = begun(client)
            until(lambda: answered(tmp_path, session) == 3, "the answers are not kept")
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
        counted = Counter(event["event"] for event in whole["events"])
        assert counted["answer_done"] == counted["ballot_cast"] == 3
        assert [event["seq"] for event in whole["events"]] == sorted(
            {event["seq"] for event in whole["events"]}
        )
        assert again.status_code == 409
        assert statuses(tmp_path) == {session: "complete"}

    def test_what_had_ended_is_as_it_was(self, tmp_path):
        """A session that was whole before the kill is whole after it, byte for byte."""
        file = slow_reviews(tmp_path, 60)
        quick = {**QUESTION, "options": {"mode": "consensus", "call_seconds": 0.2}}
        with serving(tmp_path, file) as (url, process), client_of(url) as client:
            ended = client.post("/api/sessions", params={"wait": 20}, json=quick).json()["session"]
            before = client.get(f"/api/sessions/{ended}").json()
            begun(client)
            process.kill()
            process.wait()
        with serving(tmp_path, file) as (url, _), client_of(url) as client:
            after = client.get(f"/api/sessions/{ended}").json()

        assert after == before


class TestStopped:
    """Asked to stop, it lets sessions end, and leaves the others to be resumed."""

    def test_a_signal_as_soon_as_it_is_announced_stops_it_in_order(self, tmp_path):
        """Whoever reads the address can already stop it; the exit status is 0."""
        with serving(tmp_path, slow_reviews(tmp_path, 1)) as (_, process):
            process.send_signal(signal.SIGINT)

            assert process.wait(20) == 0

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_what_is_under_way_may_end(self, tmp_path, number):
        """New questions are refused meanwhile, with when to come back; the exit status is 0."""
        heard = []
        file = slow_reviews(tmp_path, 3)
        with serving(tmp_path, file, heard=heard) as (url, process), client_of(url) as client:
            session = begun(client)
            process.send_signal(number)
            until(lambda: client.get("/healthz").status_code == 503, "it goes on as before")
            refused = client.post("/api/sessions", json=QUESTION)
            chat = {"model": "witan/demo", "messages": [{"role": "user", "content": "So?"}]}
            openai = client.post("/v1/chat/completions", json=chat)
            read = client.get(f"/api/sessions/{session}")
            status = process.wait(20)

        for response in (refused, openai):
            assert response.status_code == 503
            assert int(response.headers["retry-after"]) > 0
            assert "about to stop" in response.text
        assert read.status_code == 200
        assert status == 0
        assert statuses(tmp_path) == {session: "complete"}
        assert any("stopping: 1 under way" in line for line in heard)
        assert sum("warning: request" in line for line in heard) == 2
        assert not any(" error: " in line for line in heard)
        assert not any("Traceback" in line for line in heard)

    def test_what_lasts_longer_is_broken_off_and_can_be_resumed(self, tmp_path):
        """Readers of its events are told so before the connection ends."""
        file = slow_reviews(tmp_path, 60, "[serve]\ngrace_seconds = 1")
        with serving(tmp_path, file) as (url, process), client_of(url) as client:
            session = begun(client)
            with client.stream("GET", f"/api/sessions/{session}/events") as response:
                process.send_signal(signal.SIGTERM)
                told = "".join(response.iter_text())
            status = process.wait(20)
        write_config(tmp_path)
        with serving(tmp_path, file) as (url, _), client_of(url) as client:
            left = client.get(f"/api/sessions/{session}").json()
            whole = client.post(f"/api/sessions/{session}/resume", params={"wait": 20}).json()

        assert status == 0
        assert '"status":"interrupted"' in told.split("event: end")[1]
        assert (left["status"], len(left["answers"])) == ("interrupted", 3)
        assert whole["status"] == "complete"

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_second_signal_breaks_off_at_once(self, tmp_path, number):
        """Whoever asks twice means it; what came in is kept, and it is said how to go on."""
        heard = []
        file = slow_reviews(tmp_path, 60)
        with serving(tmp_path, file, heard=heard) as (url, process), client_of(url) as client:
            session = begun(client)
            process.send_signal(number)
            until(lambda: client.get("/healthz").status_code == 503, "it goes on as before")
            started = time.monotonic()
            process.send_signal(number)
            status = process.wait(20)
            taken = time.monotonic() - started

        assert status == 0
        assert taken < 5
        assert statuses(tmp_path) == {session: "interrupted"}
        again = f"witan resume {session} --history {tmp_path / 'history.sqlite'}"
        assert any(line.strip() == f"interrupted; resume with: {again}" for line in heard)
        assert not any(" error: " in line for line in heard)

    def test_of_many_that_are_broken_off_some_are_named(self, tmp_path):
        """And where the others are listed."""
        heard = []
        file = slow_reviews(tmp_path, 60)
        with serving(tmp_path, file, heard=heard) as (url, process), client_of(url) as client:
            sessions = [begun(client, "session_opened") for _ in range(12)]
            process.send_signal(signal.SIGTERM)
            until(lambda: client.get("/healthz").status_code == 503, "it goes on as before")
            process.send_signal(signal.SIGTERM)
            process.wait(20)

        resumed = "resume with: witan resume "
        named = [line.partition(resumed)[2].split()[0] for line in heard if resumed in line]
        assert named == sessions[:10]
        assert any(
            all(fact in line for fact in ("2 more", "witan sessions --status")) for line in heard
        )

    def test_what_is_kept_nowhere_is_said_to_be_gone(self, tmp_path):
        """Nobody is sent to look for it."""
        heard = []
        with (
            serving_process(
                "--config", slow_reviews(tmp_path, 60), "--no-history", cwd=tmp_path, heard=heard
            ) as (url, process),
            client_of(url) as client,
        ):
            begun(client)
            process.send_signal(signal.SIGTERM)
            until(lambda: client.get("/healthz").status_code == 503, "it goes on as before")
            process.send_signal(signal.SIGTERM)
            process.wait(20)

        assert "interrupted, and kept nowhere: 1 session\n" in heard

    def test_without_anything_under_way_it_stops_at_once(self, tmp_path):
        """Also beside a connection that is kept open."""
        with serving(tmp_path, write_config(tmp_path)) as (url, process), client_of(url) as client:
            client.post("/api/sessions", params={"wait": 20}, json=QUESTION)
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            status = process.wait(20)

        assert status == 0
        assert time.monotonic() - started < 5


def test_a_port_that_is_taken_is_one_line(tmp_path):
    """It says which, and what to do; the exit status is that of misuse."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "witan", "serve", "--no-history", "--port", port],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert f"127.0.0.1:{port}" in line
    assert "--port" in line


def test_a_token_that_is_missing_is_one_line(tmp_path):
    """Nothing says that it serves before it is sure to."""
    file = tmp_path / "council.toml"
    file.write_text('[serve.tokens.team]\nkey = "TEAM_TOKEN"\n', encoding="utf-8")
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "witan", "serve", "--no-history", "--config", str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "TEAM_TOKEN is not set" in line


def test_a_day_s_money_is_one_server_s_at_a_time(tmp_path):
    """A second does not start beside it; a program that is asked by its own user alone does.

    Once it is killed the next one starts, and what a session under way did cost, calls that were
    cut off at their worst, takes the place of what was held back for it.
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
        return subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "witan", *arguments, "--no-history", "--config", str(file)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def counted():
        """What the file says last of the one session."""
        lines = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
        assert len({line["number"] for line in lines}) == 1
        return lines[-1]

    with serving(tmp_path, file, environment=environment) as (url, process):
        second = run("serve", "--port", "0")
        beside = run("mcp")
        with client_of(url, environment["TEAM_TOKEN"]) as client:
            session = begun(client)
        until(lambda: answered(tmp_path, session) == 3, "the answers are not kept")
        process.kill()
        process.wait()
    held = counted()
    with serving(tmp_path, file, environment=environment):
        spent = counted()
    with History.open(tmp_path / "history.sqlite") as history:
        cost = history.session(session).cost

    assert second.returncode == 2
    [line] = second.stderr.splitlines()
    assert str(ledger) in line
    assert "stop that one" in line
    assert (beside.returncode, beside.stderr) == (0, "")
    assert (held["asker"], held["held"], held["session"]) == ("team", True, session)
    assert 0 < cost.known_usd < spent["usd"] < held["usd"]
    assert spent["usd"] == pytest.approx(cost.committed_usd)
    assert "held" not in spent
