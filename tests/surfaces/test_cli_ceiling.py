"""``--max-cost`` over kill -9, black box: a ceiling holds however often a session is resumed."""
# ruff: noqa: S603 - every process started here is our own command

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from sqlite3 import connect
from threading import Event

import httpx2
import pytest

from misbehaving import MisbehavingServer
from recorded import WITAN, listed
from served import served
from services import councils
from witan.history import History

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="Windows kills otherwise"),
    pytest.mark.usefixtures("place"),
]


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    """Two models that count their calls."""
    with MisbehavingServer({"ada": 9, "bob": 8}) as running:
        yield running


@pytest.fixture
def config(server, tmp_path):
    """The configuration that seats them with prices."""
    seats = [
        f'[[members]]\nseat = "{server.url}#{name}"\nprice = [1.0, 2.0]' for name in server.worth
    ]
    path = tmp_path / "council.toml"
    path.write_text(
        "\n".join([*seats, "[limits]\nmax_tokens = 40000\ncall_seconds = 20"]), encoding="utf-8"
    )
    return path


@pytest.fixture
def worst(witan, config) -> float:
    """The maximum cost of one call for an answer."""
    lines = witan("plan", "Which?", "--config", config, "--json").json["lines"]
    [usd] = {line["worst_usd"] for line in lines if line["stage"] == "answer"}
    return usd


def started(*arguments: object) -> subprocess.Popen[str]:
    """Start the command and wait for calls to both members."""
    process = subprocess.Popen(
        [*WITAN, *map(str, arguments), "--events"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    begun = (line for line in process.stdout if '"answer_started"' in line)
    assert len(list(islice(begun, 2))) == 2
    return process


def kill_after(process: subprocess.Popen[str], server: MisbehavingServer, calls: int) -> None:
    """Kill the process once the server has had so many calls."""
    server.wait_for_requests(calls)
    process.kill()
    process.communicate(timeout=60)


@pytest.fixture
def busy_history(place, server):
    """A history that is locked before the first answer comes."""
    is_locked = Event()

    @contextmanager
    def kept_busy(*arguments: object) -> Iterator[subprocess.Popen[str]]:
        process = started(*arguments)
        server.wait_for_requests(2)
        with closing(connect(place, timeout=30, isolation_level=None)) as busy:
            busy.execute("BEGIN IMMEDIATE")
            is_locked.set()
            time.sleep(1.5)
            yield process
            busy.execute("ROLLBACK")

    server.fault(None, "held", stage="answer", until=is_locked)
    server.fault(None, "hang", stage="review")
    return kept_busy


@pytest.mark.slow
def test_a_call_is_recorded_before_it_is_made(witan, server, config, busy_history):
    """A locked history allows no call; after a kill it knows each one."""
    with busy_history("ask", "Which?", "--config", config, "--max-cost", 1.0) as process:
        time.sleep(0.5)
        assert len(server.calls()) == 2
    kill_after(process, server, calls=4)

    record = witan("show", "last", "--json").json
    begun = [each["worst_usd"] for each in record["events"] if each["event"] == "review_started"]
    assert len(begun) == 2
    known = record["cost"]["known_usd"]
    assert record["cost"]["committed_usd"] == pytest.approx(known + sum(begun))


@pytest.mark.slow
def test_a_kill_does_not_renew_the_ceiling(witan, server, config, worst):
    """Of four calls allowed, each run makes two, then none."""
    server.fault(None, "hang")
    ceiling = ["--config", config, "--max-cost", 4.5 * worst]
    kill_after(started("ask", "Which?", *ceiling), server, calls=2)
    kill_after(started("resume", "last"), server, calls=4)

    said = witan("resume", "last")

    assert len(server.calls()) == 4
    assert said.status == 4
    assert [line["status"] for line in listed(witan)] == ["interrupted"]
    assert witan("show", "last", "--json").json["cost"]["committed_usd"] <= 4.5 * worst


@pytest.mark.slow
def test_a_resumed_file_knows_its_calls(witan, server, config, worst, tmp_path):
    """Without a history the record itself stores each call before it is made."""
    server.fault(None, "hang")
    half = tmp_path / "half.json"
    kill_after(started("ask", "Which?", "--config", config, "--max-cost", 4.5 * worst), server, 2)
    half.write_text(witan("show", "last", "--json").out, encoding="utf-8")

    again = ["resume", half, "--no-history", "--trust"]
    kill_after(started(*again), server, calls=4)
    witan(*again)

    assert len(server.calls()) == 4
    record = json.loads(half.read_text(encoding="utf-8"))
    assert record["cost"]["committed_usd"] == pytest.approx(4 * worst)


@pytest.mark.slow
def test_without_a_ceiling_a_call_waits_only_briefly(server, config, busy_history):
    """A locked history delays a call by about ten seconds."""
    with busy_history("ask", "Which?", "--config", config) as process:
        time.sleep(0.5)
        assert len(server.calls()) == 2
        kill_after(process, server, calls=4)


@pytest.mark.slow
@pytest.mark.parametrize("ceiling", [[], ["--max-cost", 1.0]], ids=["no ceiling", "a ceiling"])
def test_failed_calls_count_against_the_ceiling(witan, server, config, worst, ceiling):
    """Calls that timed out may be billed, and a resumed session knows them."""
    server.fault(None, "hang", times=4)
    limits = ["--call-seconds", 1, "--attempts", 1, *ceiling]
    process = started("ask", "Which?", "--config", config, *limits)
    kill_after(process, server, calls=2)

    vain = witan("resume", "last")
    after = witan("show", "last", "--json").json

    [line] = listed(witan)
    words = f"resuming produced nothing new, only cost: {line['session']} is still interrupted"
    assert words in vain.err
    assert (line["status"], after["events"][-1]["event"]) == ("interrupted", "sitting_in_vain")
    assert after["cost"]["committed_usd"] >= 2 * worst * (1 - 1e-9)
    assert witan("resume", "last").status == 0
    whole = witan("show", "last", "--json").json
    assert (whole["status"], whole["cost"]["total_usd"]) == ("complete", None)
    assert len(whole["answers"]) == 2
    unknown = whole["cost"]["committed_usd"] - whole["cost"]["known_usd"]
    assert unknown == pytest.approx(after["cost"]["committed_usd"])


def test_a_resume_may_raise_the_ceiling_of_calls(witan, server, config):
    """Calls that were cut off count; the refusal names how many more the rest needs."""
    server.fault(None, "hang", stage="review", times=2)
    ask = ["ask", "Which?", "--config", config, "--max-calls", 5]
    kill_after(started(*ask), server, calls=4)

    kept = witan("resume", "last")
    lowered = witan("resume", "last", "--max-calls", 0)
    calls = len(server.calls())
    raised = witan("resume", "last", "--max-calls", 3)

    assert (kept.status, lowered.status, calls) == (4, 4, 4)
    assert "the ceiling of 5 calls (4 of them made) is too low for the rest" in kept.err
    assert "which needs 3 more; allow as many with --max-calls 3" in kept.err
    assert "the ceiling of 0 further calls is too low" in lowered.err
    assert "which needs 3; raise it with --max-calls 3, or leave it out" in lowered.err
    assert raised.status == 0
    assert witan("show", "last", "--json").json["cost"]["calls"] == 7


class TestRefusals:
    """A ceiling that is too low is refused before the first call, with the sum needed."""

    @pytest.fixture
    def interrupted(self, witan, server, config, worst):
        """A session with its answers and no money left for reviews."""
        server.fault(None, "hang", stage="review", times=2)
        ask = ["ask", "Which?", "--config", config, "--max-cost", 3 * worst]
        kill_after(started(*ask), server, calls=4)
        return listed(witan)[0]["session"]

    def needed(self, said) -> float:
        """The sum in an error message."""
        assert said.out == ""
        return float(re.search(r"the \$([\d.]+) that", said.err)[1])

    def test_a_resumed_session(self, witan, server, interrupted, worst):
        """The error states what is spent; the session stays interrupted."""
        said = witan("resume", interrupted)

        assert said.status == 4
        assert len(said.err.splitlines()) == 1
        assert "spent or set aside) leaves less" in said.err
        assert "keeps its ceiling" in said.err
        assert 0 < self.needed(said) < 4 * worst
        assert len(server.calls()) == 4
        assert listed(witan)[0]["status"] == "interrupted"

    @pytest.mark.slow
    def test_a_resumed_session_over_http(self, server, config, place, interrupted):
        """It is a 402 each time, and another client can still resume it."""
        path = f"/api/sessions/{interrupted}/resume"
        with (
            History.open(place) as history,
            served(councils(config, history)) as running,
            httpx2.Client(base_url=running.url, timeout=60) as client,
        ):
            refused = [client.post(path) for _ in range(2)]
            status = client.get(f"/api/sessions/{interrupted}").json()["status"]

        assert [each.status_code for each in refused] == [402, 402]
        assert "spent or set aside) leaves less" in refused[0].json()["detail"]
        assert (status, len(server.calls())) == ("interrupted", 4)

    def test_a_retry(self, witan, server, config, worst):
        """It has its parent's ceiling for its own calls; none is made."""
        server.fault(None, "empty", stage="review")
        ceiling = ["--max-cost", 5.5 * worst, "--attempts", 1]
        witan("ask", "Which?", "--config", config, *ceiling)
        record = json.loads(witan("show", "last", "--json").out)
        record["events"][0]["procedure"]["limits"]["max_cost_usd"] = 1e-6
        poor = config.with_name("poor.json")
        poor.write_text(json.dumps(record), encoding="utf-8")
        calls = len(server.calls())

        said = witan("retry", poor, "--trust", "--no-history")

        assert said.status == 4
        assert "the smallest complete session needs" in said.err
        assert "raise the ceiling with --max-cost 0." in said.err
        assert "the reviews are requested together" in said.err
        assert self.needed(said) < 4 * worst
        assert len(server.calls()) == calls

    def test_a_follow_up(self, witan, server, config):
        """It is refused like a first question."""
        witan("ask", "Which?", "--config", config)
        calls = len(server.calls())

        said = witan("ask", "Why?", "--continue", "last", "--config", config, "--max-cost", 1e-6)

        assert (said.status, len(server.calls())) == (4, calls)
        assert self.needed(said) > 0

    @pytest.mark.slow
    def test_current_prices_apply(self, config, place, interrupted):
        """A seat that became free no longer blocks the rest."""
        config.write_text(config.read_text().replace("[1.0, 2.0]", "[0.0, 0.0]"))
        path = f"/api/sessions/{interrupted}/resume"
        with (
            History.open(place) as history,
            served(councils(config, history)) as running,
            httpx2.Client(base_url=running.url, timeout=60) as client,
        ):
            ended = client.post(path, params={"wait": 20})
            record = client.get(f"/api/sessions/{interrupted}").json()

        assert ended.status_code < 300, ended.text
        assert record["status"] == "complete"
