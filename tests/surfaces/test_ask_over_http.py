"""``witan ask`` over real HTTP, black box: the visible effect of each fault of a server."""

import json
import os
import re
import shlex
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faults import Manner, Received, fault
from good_replies import ChatRequest
from misbehaving import MisbehavingServer
from recorded import isolate, under_way
from witan.core.display import dollars
from witan.deliberation.ports import Price

KEY = "sk-very-secret-0123456789"

WORTH = {"ada": 9, "bob": 8, "cyd": 6, "dan": 4}

SEED = 17191
"""Draws waits of less than 0.1 s between the attempts of these calls."""

PRICE = Price(1.0, 2.0)

TEXT = "The council holds with [A] and [B] and [C] and [D] that it is so.\n"

COMPLETE = "4 of 4 reviewers · "

TEXT_OF_THREE = "The council holds with [A] and [B] and [C] that it is so.\n"


@pytest.fixture(autouse=True)
def _nothing_configured(tmp_path, monkeypatch):
    """Isolate the tests from any configuration, key and state of the machine."""
    isolate(tmp_path, monkeypatch)
    monkeypatch.setenv("COUNCIL_KEY", KEY)


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    """Four models and a chairman, without faults at first."""
    with MisbehavingServer(WORTH) as running:
        yield running
        assert running.open_connections() == 0


def seat(server: MisbehavingServer, name: str, keyed: bool) -> str:
    """The lines of a seat in a configuration."""
    lines = [
        f'seat = "{server.url}#{name}"',
        f'name = "{name}"',
        f"price = [{PRICE.input_usd}, {PRICE.output_usd}]",
        *(['key = "COUNCIL_KEY"'] if keyed else []),
    ]
    return "\n".join(lines)


@pytest.fixture
def write_configuration(server, tmp_path):
    """Write the council's configuration; return its path."""

    def write(keyed: bool = True) -> Path:
        members = [f"[[members]]\n{seat(server, name, keyed)}" for name in WORTH]
        chairman = f"[[chairmen]]\n{seat(server, 'chair', keyed)}"
        limits = "[limits]\nattempts = 2\nmax_tokens = 400"
        path = tmp_path / "council.toml"
        path.write_text("\n".join([*members, chairman, limits]), encoding="utf-8")
        return path

    return write


@pytest.fixture
def ask(witan, write_configuration, server, tmp_path):
    """Ask the council, and check the output against the invariants."""
    saved = tmp_path / "session.json"

    def run(*arguments: object):
        config = ["--config", write_configuration(), "--seed", SEED, "--save", saved]
        said = witan("ask", "Which?", *config, *arguments)
        everything = said.out + said.err + saved.read_text(encoding="utf-8")
        assert all(r.headers["authorization"] == f"Bearer {KEY}" for r in server.received)
        assert KEY not in everything
        assert "Traceback" not in everything
        *legend, _ = [x for x in said.err.splitlines() if not re.match(SEPARATION, x)]
        assert bool(legend) == ("[A]" in said.out and "--json" not in arguments)
        assert all(re.fullmatch(LEGEND, line) for line in legend)
        return said

    return run


SEPARATION = r"\d members (cannot )?separate "
"""The beginning of the sentence on what a council of this size can separate."""

LEGEND = r"(\[[A-D]\] (ada|bob|cyd|dan)(, )?){3,4}"


def trust(said) -> str:
    """The last line of standard error, which is the trust line."""
    return said.err.splitlines()[-1]


def test_a_council_without_faults_prints_the_answer(ask, server):
    """It is on standard output, legend and trust line on standard error."""
    said = ask()

    assert (said.status, said.out) == (0, TEXT)
    assert trust(said).startswith(COMPLETE)
    assert "degraded" not in said.err
    assert len(server.calls()) == 9


BRIEF = ("--call-seconds", 0.4)

CALLS = {
    "slow": ("slow", {}, ""),
    "hangs": ("hang", {}, "timed out after 0.4 s"),
    "401, with the key in its words": (
        "echoes key",
        {},
        "rejected the API key in COUNCIL_KEY (401)",
    ),
    "500, with the key in its words": ("echoes key", {"status": 500}, "cannot answer now (500)"),
    "403": ("403", {}, "rejected the API key in COUNCIL_KEY (403): Forbidden"),
    "429, for long": ("429", {"retry_after": 600}, "it asks to wait 600 s, longer than the "),
    "503, once": ("503", {"times": 1}, ""),
    "drops midway": ("drop", {"after": 3}, "broke off: "),
    "does not count": ("no usage", {}, ""),
}
"""Of each kind of fault one: all of them, at each stage, are tests of the deliberation."""

STAGES = {
    "answer": ("cyd", "3 of 4 reviewers · ", "cyd did not answer: ", TEXT_OF_THREE),
    "review": ("cyd", "3 of 4 reviewers · ", "cyd cast no ballot: ", TEXT),
    "synthesis": ("chair", "4 of 4 reviewers · ", "chair did not write the final answer: ", TEXT),
}


@pytest.mark.parametrize(
    ("fault", "stage"),
    [
        ("slow", "answer"),
        ("hangs", "answer"),
        ("hangs", "synthesis"),
        ("401, with the key in its words", "answer"),
        ("500, with the key in its words", "review"),
        ("403", "synthesis"),
        ("429, for long", "review"),
        ("503, once", "synthesis"),
        ("drops midway", "answer"),
        ("does not count", "review"),
    ],
)
def test_a_failed_call_is_in_the_trust_line(ask, server, fault, stage):
    """The council answers with status 0."""
    name, given, reason = CALLS[fault]
    model, voted, lost, text = STAGES[stage]
    server.fault(model, name, stage=stage, **given)

    said = ask(*(BRIEF if fault == "hangs" else ()))

    assert said.status == 0
    if not reason:
        assert said.out == TEXT
        assert trust(said).startswith(COMPLETE)
        assert "degraded" not in said.err
        return
    assert said.out == text
    assert trust(said).startswith(voted)
    assert f" · degraded: {lost}" in said.err
    assert reason in said.err.partition(lost)[2]
    assert "$0.0" in said.err


REVIEWS = {"prose": "has no usable ranking", "duplicate labels": "", "refuses": ""}


@pytest.mark.parametrize(("fault", "problem"), REVIEWS.items())
def test_a_review_in_another_form_is_read(ask, server, fault, problem):
    """If it is unreadable, the reviewer abstains with a reason."""
    server.fault("cyd", fault)

    said = ask()

    assert (said.status, said.out) == (0, TEXT)
    if problem:
        assert trust(said).startswith("3 of 4 reviewers · ")
        assert all(fact in said.err for fact in ("cyd cast no ballot", f"its review {problem}"))
    else:
        assert trust(said).startswith(COMPLETE)
        assert "degraded" not in said.err


class TestStatus:
    """The exit status after faults in several seats."""

    def test_without_a_quorum_the_status_is_3(self, ask, server):
        """All reviewers fail, so there is no outcome; the answer is printed."""
        server.fault(None, "500", stage="review")

        said = ask()

        assert (said.status, said.out) == (3, TEXT)
        assert trust(said).startswith("0 of 4 reviewers · no outcome · ")
        assert said.err.endswith("; there is no outcome: 0 of the 2 ballots required\n")

    def test_a_single_answer_has_status_3(self, ask, server):
        """It is the final answer."""
        for name in ("bob", "cyd", "dan"):
            server.fault(name, "drop")

        said = ask()

        assert (said.status, said.out) == (3, "This is an answer worth 9 of 10.\n")
        assert said.err.endswith("only one member answered, so there is no ranking\n")

    def test_without_answers_the_status_is_3(self, ask, server):
        """Standard output is empty, and every seat has a reason."""
        server.fault(None, "echoes key")

        said = ask()

        assert (said.status, said.out) == (3, "")
        assert " · failed: ada did not answer: rejected the API key in COUNCIL_KEY" in said.err
        assert said.err.count("did not answer") == 4

    def test_a_tie_has_status_5_where_a_winner_is_required(self, ask, server):
        """Otherwise the status is 0."""
        server.worth = dict.fromkeys(WORTH, 7)

        assert ask().status == 0
        assert ask("--require-winner").status == 5

    def test_agreeing_reviewers_give_a_winner(self, ask):
        assert ask("--require-winner", "--prior", "none", "--rho", "none").status == 0


@fault
def expensive(manner: Manner, request: Received) -> Manner:
    """Count as many tokens as the call can use."""
    read, written = maximum_cost(request.chat_request)
    return replace(manner, usage={"prompt_tokens": read, "completion_tokens": written})


def maximum_cost(asked: ChatRequest) -> tuple[int, int]:
    """A token for every byte read, and the maximum written."""
    said: list[Any] = [message["content"] for message in asked.body["messages"]]
    said += [] if asked.schema is None else [json.dumps(asked.schema)]
    return sum(len(text.encode()) for text in said), asked.body["max_tokens"]


def billed(server: MisbehavingServer) -> float:
    """The cost of all calls so far, each at its maximum."""
    return sum(PRICE.of(*maximum_cost(call)) for call in server.calls())


class TestCeiling:
    """The server never bills more than ``--max-cost``."""

    @pytest.mark.parametrize(
        ("share", "breaking"),
        [
            (0, False),
            (0.04, True),
            (0.08, False),
            (0.12, True),
            (0.2, True),
            (0.22, False),
            (1, True),
        ],
    )
    def test_the_bill_stays_below_the_ceiling(
        self, witan, ask, write_configuration, server, share, breaking
    ):
        """Calls cost their maximum, and interrupted ones are billed."""
        server.fault(None, "expensive")
        if breaking:
            server.fault("cyd", "drop", after=5)
        plan = witan("plan", "Which?", "--config", write_configuration(), "--json").json
        ceiling = share * plan["worst_usd"]
        if ceiling < plan["least_usd"]:
            said = witan("ask", "Which?", "--config", write_configuration(), "--max-cost", ceiling)
            assert (said.status, server.calls()) == (4, [])
            assert f"ceiling of {dollars(ceiling)}" in said.err
            return

        said = ask("--max-cost", ceiling, "--json")

        assert billed(server) <= ceiling + 1e-9
        record = said.json
        assert record["cost"]["known_usd"] <= billed(server) + 1e-9
        assert said.status == (0 if record["outcome"] else 4)
        refused = [event for event in record["events"] if event.get("over_budget")]
        assert bool(refused) == any("not called: it could cost $" in m for m in record["missing"])
        assert bool(refused) == (share < 1)

    def test_without_a_ceiling_all_calls_are_made(self, witan, ask, write_configuration, server):
        """The council costs more than every ceiling above but the last."""
        server.fault(None, "expensive")
        plan = witan("plan", "Which?", "--config", write_configuration(), "--json").json

        said = ask("--json")

        assert billed(server) > 0.22 * plan["worst_usd"]
        assert said.json["cost"]["total_usd"] == pytest.approx(billed(server))
        assert said.json["status"] == "complete"

    def test_the_cost_of_a_complete_session_is_printed_before_the_first_call(
        self, witan, ask, write_configuration, server
    ):
        """Below it the status is 4 and no call is made; at the stated sum all are."""
        config = ("--config", write_configuration())

        refused = witan("ask", "Which?", *config, "--max-cost", 0.001)

        assert (refused.status, refused.out, server.received) == (4, "", [])
        assert refused.err.count("\n") == 2
        needed, enough = re.findall(r"\$([0-9.]+\d)", refused.err)[1:3]
        planned = witan("plan", "Which?", *config, "--max-cost", 0.001)
        assert all(fact in planned.out for fact in ("ceiling of $0.0010", f"the ${needed}"))
        assert f"${needed} set aside" in refused.err or f"below the ${needed}" in refused.err
        server.fault(None, "expensive")
        said = ask("--max-cost", enough, "--json")
        assert (said.status, said.json["status"]) == (0, "complete")
        assert billed(server) <= float(enough)


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signals to a process")
class TestInterrupt:
    """Ctrl-C closes every connection, and no reply is requested twice."""

    def interrupt(
        self,
        server: MisbehavingServer,
        n_requests: int,
        event: str,
        count: int,
        *arguments: object,
    ):
        """Send Ctrl-C after this many requests and events; return the command's output."""
        with under_way(*arguments, kind=event, times=count) as process:
            server.wait_for_requests(n_requests)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert server.open_connections() == 0
        return err

    @pytest.mark.parametrize(
        ("model", "stage", "event", "count", "kept", "keyed"),
        [
            pytest.param(
                "cyd", "answer", "answer_done", 3, "3 of 4 answers", True, marks=pytest.mark.slow
            ),
            ("cyd", "review", "ballot_cast", 3, "4 of 4 answers, 3 of 4 ballots", False),
            pytest.param(
                "chair",
                "synthesis",
                "synthesis_started",
                1,
                "4 of 4 answers, 4 of 4 ballots",
                True,
                marks=pytest.mark.slow,
            ),
        ],
    )
    def test_the_printed_command_resumes_the_session(
        self, witan, write_configuration, server, tmp_path, model, stage, event, count, kept, keyed
    ):
        """Calls in flight are repeated with the same key; all others are made once in all.

        From the history, or from a file.
        """
        server.fault(model, "hang", stage=stage, times=1)
        path = tmp_path / "half.json"
        asked = ["ask", "Which?", "--config", write_configuration(keyed), "--seed", SEED]
        in_file = ["--save", path, "--no-history"] if keyed else []

        n_requests = {"answer": 4, "review": 4 + 4, "synthesis": 4 + 4 + 1}[stage]
        err = self.interrupt(server, n_requests, event, count, *asked, *in_file)

        said, _, advice = err.partition("; resume with: witan ")
        assert said.endswith(f"\ninterrupted; {kept} saved")
        resumed = witan(*shlex.split(advice))
        assert (resumed.status, resumed.out) == (0, TEXT)
        assert trust(resumed).startswith(COMPLETE)
        assert "degraded" not in resumed.err
        calls = Counter((call.model, call.stage) for call in server.calls())
        once = {(name, at) for name in WORTH for at in ("answer", "review")}
        assert calls == Counter([*once, ("chair", "synthesis"), (model, stage)])
        keys = {request.headers.get("authorization") for request in server.received}
        assert keys == {f"Bearer {KEY}" if keyed else None}
        shown = witan("show", path if keyed else "last", "--json").out
        assert json.loads(shown)["status"] == "complete"
        assert KEY not in shown + err
