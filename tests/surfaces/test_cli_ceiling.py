"""``--max-cost`` over kill -9, black box: however often a session goes on, its ceiling holds."""
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

import httpx2
import pytest

from misbehaving import MisbehavingServer
from recorded import WITAN, listed, place_of_its_own
from served import served
from services import councils
from witan.history import History

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows kills otherwise")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A history of the test's own, and no other trace of the machine."""
    return place_of_its_own(tmp_path, monkeypatch)


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    """Two models, who count how often they are asked."""
    with MisbehavingServer({"ada": 9, "bob": 8}) as running:
        yield running


@pytest.fixture
def config(server, tmp_path):
    """The configuration that seats them at a price."""
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
    """What one call to answer can cost at most."""
    lines = witan("plan", "Which?", "--config", config, "--json").json["lines"]
    [usd] = {line["worst_usd"] for line in lines if line["stage"] == "answer"}
    return usd


def started(*arguments: object) -> subprocess.Popen[str]:
    """The command, once it has begun to ask both members."""
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


def killed(process: subprocess.Popen[str], server: MisbehavingServer, calls: int) -> None:
    """Kill it the moment that the server has had so many calls."""
    server.wait_for_requests(calls, seconds=30)
    process.kill()
    process.communicate(timeout=30)


@pytest.fixture
def busy_history(place, server):
    """Answers take a while; once they are under way, the history cannot be written."""

    @contextmanager
    def kept_busy(*arguments: object) -> Iterator[subprocess.Popen[str]]:
        process = started(*arguments)
        server.wait_for_requests(2, seconds=30)
        with closing(connect(place, timeout=30, isolation_level=None)) as busy:
            busy.execute("BEGIN IMMEDIATE")
            time.sleep(2.5)
            yield process
            busy.execute("ROLLBACK")

    server.fault(None, "slow", stage="answer", seconds=1.0)
    server.fault(None, "hang", stage="review")
    return kept_busy


@pytest.mark.slow
def test_what_a_call_is_begun_with_is_durable_before_it_is_made(
    witan, server, config, busy_history
):
    """While the history cannot be written no call is made; killed later, it knows of each."""
    with busy_history("ask", "Which?", "--config", config, "--max-cost", 1.0) as process:
        time.sleep(0.5)
        assert len(server.calls()) == 2
    killed(process, server, calls=4)

    record = witan("show", "last", "--json").json
    begun = [each["worst_usd"] for each in record["events"] if each["event"] == "review_started"]
    assert len(begun) == 2
    known = record["cost"]["known_usd"]
    assert record["cost"]["committed_usd"] == pytest.approx(known + sum(begun))


@pytest.mark.slow
def test_a_ceiling_is_not_renewed_by_killing(witan, server, config, worst):
    """Of four calls that it allows two are made each time, and then none."""
    server.fault(None, "hang")
    ceiling = ["--config", config, "--max-cost", 4.5 * worst]
    killed(started("ask", "Which?", *ceiling), server, calls=2)
    killed(started("resume", "last"), server, calls=4)

    said = witan("resume", "last")

    assert len(server.calls()) == 4
    assert said.status == 4
    assert [line["status"] for line in listed(witan)] == ["interrupted"]
    assert witan("show", "last", "--json").json["cost"]["committed_usd"] <= 4.5 * worst


@pytest.mark.slow
def test_a_file_that_is_taken_up_knows_of_its_calls(witan, server, config, worst, tmp_path):
    """Without a history the record itself says what was begun, before it is."""
    server.fault(None, "hang")
    half = tmp_path / "half.json"
    killed(started("ask", "Which?", "--config", config, "--max-cost", 4.5 * worst), server, 2)
    half.write_text(witan("show", "last", "--json").out, encoding="utf-8")

    again = ["resume", half, "--no-history", "--trust"]
    killed(started(*again), server, calls=4)
    witan(*again)

    assert len(server.calls()) == 4
    record = json.loads(half.read_text(encoding="utf-8"))
    assert record["cost"]["committed_usd"] == pytest.approx(4 * worst)


@pytest.mark.slow
def test_without_a_ceiling_a_call_does_not_wait_for_ever(server, config, busy_history):
    """A history that cannot be written holds a call up, but not beyond ten seconds or so."""
    with busy_history("ask", "Which?", "--config", config) as process:
        time.sleep(0.5)
        assert len(server.calls()) == 2
        killed(process, server, calls=4)


@pytest.mark.slow
@pytest.mark.parametrize("ceiling", [[], ["--max-cost", 1.0]], ids=["no ceiling", "a ceiling"])
def test_what_is_paid_in_vain_is_not_forgotten(witan, server, config, worst, ceiling):
    """Calls that timed out may be billed, though the session is left to be taken up again."""
    server.fault(None, "hang", times=4)
    limits = ["--call-seconds", 1, "--attempts", 1, *ceiling]
    process = started("ask", "Which?", "--config", config, *limits)
    killed(process, server, calls=2)

    vain = witan("resume", "last")
    after = witan("show", "last", "--json").json

    [line] = listed(witan)
    words = f"nothing more came of it but its cost: {line['session']} stays interrupted"
    assert words in vain.err
    assert (line["status"], after["events"][-1]["event"]) == ("interrupted", "sitting_in_vain")
    assert after["cost"]["committed_usd"] >= 2 * worst * (1 - 1e-9)
    assert witan("resume", "last").status == 0
    whole = witan("show", "last", "--json").json
    assert (whole["status"], whole["cost"]["total_usd"]) == ("complete", None)
    assert len(whole["answers"]) == 2
    unknown = whole["cost"]["committed_usd"] - whole["cost"]["known_usd"]
    assert unknown == pytest.approx(after["cost"]["committed_usd"])


class TestRefusedBeforehand:
    """What a ceiling cannot hold is refused before its first call, with the sum that is needed."""

    @pytest.fixture
    def interrupted(self, witan, server, config, worst):
        """A session that has its answers under a ceiling with nothing left for reviews."""
        server.fault(None, "hang", stage="review", times=2)
        ask = ["ask", "Which?", "--config", config, "--max-cost", 3 * worst]
        killed(started(*ask), server, calls=4)
        return listed(witan)[0]["session"]

    def needed(self, said) -> float:
        """The sum in a refusal."""
        assert said.out == ""
        return float(re.search(r"the \$([\d.]+) that", said.err)[1])

    def test_a_session_that_is_taken_up(self, witan, server, interrupted, worst):
        """The refusal says what is spent; the session stays interrupted."""
        said = witan("resume", interrupted)

        assert said.status == 4
        assert len(said.err.splitlines()) == 1
        assert "spent) leaves less" in said.err
        assert "keeps its ceiling" in said.err
        assert 0 < self.needed(said) < 4 * worst
        assert len(server.calls()) == 4
        assert listed(witan)[0]["status"] == "interrupted"

    @pytest.mark.slow
    def test_a_session_that_is_taken_up_over_http(self, server, config, place, interrupted):
        """It is a 402 each time, and the session can still be resumed by another."""
        path = f"/api/sessions/{interrupted}/resume"
        with (
            History.open(place) as history,
            served(councils(config, history)) as running,
            httpx2.Client(base_url=running.url, timeout=20) as client,
        ):
            refused = [client.post(path) for _ in range(2)]
            status = client.get(f"/api/sessions/{interrupted}").json()["status"]

        assert [each.status_code for each in refused] == [402, 402]
        assert "spent) leaves less" in refused[0].json()["detail"]
        assert (status, len(server.calls())) == ("interrupted", 4)

    def test_seats_that_are_asked_again(self, witan, server, config, worst):
        """A retry has the ceiling of its parent, for its own calls; nothing is called."""
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
        assert "the reviews are requested together" in said.err
        assert self.needed(said) < 4 * worst
        assert len(server.calls()) == calls

    def test_a_question_that_goes_on(self, witan, server, config):
        """A follow-up is refused as its first question would be."""
        witan("ask", "Which?", "--config", config)
        calls = len(server.calls())

        said = witan("ask", "Why?", "--continue", "last", "--config", config, "--max-cost", 1e-6)

        assert (said.status, len(server.calls())) == (4, calls)
        assert self.needed(said) > 0

    @pytest.mark.slow
    def test_a_price_of_today_counts(self, config, place, interrupted):
        """A seat that became free no longer holds up what is left."""
        config.write_text(config.read_text().replace("[1.0, 2.0]", "[0.0, 0.0]"))
        path = f"/api/sessions/{interrupted}/resume"
        with (
            History.open(place) as history,
            served(councils(config, history)) as running,
            httpx2.Client(base_url=running.url, timeout=20) as client,
        ):
            ended = client.post(path, params={"wait": 20})
            record = client.get(f"/api/sessions/{interrupted}").json()

        assert ended.status_code < 300, ended.text
        assert record["status"] == "complete"
