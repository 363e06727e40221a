"""Each fault of a server, at each stage, and its effect on the session, over real HTTP."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from misbehaving import MisbehavingServer
from witan.deliberation import events as e
from witan.deliberation.procedure import ThrottlePolicy
from witan.deliberation.session import Session
from witan.service.council import Council

pytestmark = pytest.mark.anyio

WORTH = {"ada": 9, "bob": 8, "cyd": 6, "dan": 4, "eve": 2}

SEED = 17191
"""Draws waits of less than 0.1 s between the attempts of these calls."""

NO_BALLOT = "has no usable ranking"


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(WORTH) as running:
        yield running
        assert running.open_connections() == 0


async def ask_council(
    server: MisbehavingServer, seats: str = "ada bob cyd dan eve", **options
) -> Session:
    """Ask these members and a separate chairman; return the session."""
    members = [f"{name}={server.url}#{name}" for name in seats.split()]
    options = {"call_seconds": 20.0, "attempts": 2, **options}
    async with Council(members, f"chair={server.url}#chair", environment={}, **options) as council:
        return await council.ask("Which?", seed=SEED)


def stages(server: MisbehavingServer, model: str | None = None) -> Counter[str]:
    """How often a model was called for each stage."""
    return Counter(call.stage for call in server.calls(model))


def events_of(session: Session, kind: type[e.Event]) -> list[Any]:
    """The events of a kind."""
    return [event for event in session.events if isinstance(event, kind)]


@dataclass(frozen=True)
class Row:
    """A fault and its effect.

    Parameters
    ----------
    reason
        Part of why the call brings nothing; empty: it brings what it should.
    calls
        How often it is made.
    """

    fault: str
    reason: str = ""
    calls: int = 1
    times: float = float("inf")
    given: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)


BRIEF = {"call_seconds": 0.4}

ROWS = {
    "slow": Row("slow", given={"seconds": 0.05}),
    "a slow stream": Row("slow stream", given={"seconds": 0.005}),
    "hangs": Row("hang", "timed out after 0.4 s", limits=BRIEF),
    "never ends": Row("never done", "timed out", given={"lingers": True}, limits=BRIEF),
    "401": Row("401", "needs an API key (401): Unauthorized"),
    "403": Row("403", "needs an API key (403): Forbidden"),
    "404": Row("404", "does not know the model"),
    "422": Row("422", "refused the call (422)"),
    "408": Row("408", "cannot answer now (408): Request Timeout", 2),
    "429": Row("429", "rate limited (429): Too Many Requests", 2),
    "429, then well": Row("429", calls=2, times=1),
    "429, wait, then well": Row("429", calls=2, times=1, given={"retry_after": 0.15}),
    "429, wait too long": Row("429", "it asks to wait 60 s", given={"retry_after": 60}),
    "500": Row("500", "cannot answer now (500): Internal Server Error", 2),
    "503": Row("503", "cannot answer now (503): Service Unavailable", 2),
    "drops at once": Row("drop", "broke off: ", 2),
    "drops, then well": Row("drop", calls=2, times=1),
    "drops midway": Row("drop", "broke off: ", 2, given={"after": 3}),
    "drops midway, then well": Row("drop", calls=2, times=1, given={"after": 3}),
    "empty": Row("empty", "said nothing", 2),
    "null content": Row("null", "said nothing", 2),
    "truncated": Row("truncated", "broke off in the middle of its JSON", 2),
    "a web page": Row("body", "sent something other than a chat completion"),
    "oversize": Row("oversize", "sent more than the 8,000,000 bytes"),
    "an error in a 200": Row("error in 200", "failed: no room", 2, given={"words": "no room"}),
    "ignores the wish to stream": Row("ignores stream"),
    "does not say that it is done": Row("never done"),
    "does not count": Row("no usage"),
}  # fmt: skip

LATER = {
    name: ROWS[name]
    for name in (
        "slow", "hangs", "401", "429, then well", "500", "drops midway", "null content",
        "truncated", "oversize", "does not count",
    )
}  # fmt: skip
"""One row of each kind, for the stages whose calls fail in the same ways as answers do."""


@pytest.mark.parametrize("anyio_backend", ["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_a_fault_at_an_answer_leaves_four_members(server, row):
    """A member without an answer has no ballot either."""
    server.fault("cyd", row.fault, stage="answer", times=row.times, **row.given)

    session = await ask_council(server, **row.limits)

    lost = ["cyd"] if row.reason else []
    assert stages(server, "cyd")["answer"] == row.calls
    assert len(events_of(session, e.CallRetried)) == row.calls - 1
    assert list(session.unanswered) == lost
    assert row.reason in session.unanswered.get("cyd", "")
    assert [ballot.reviewer for ballot in session.ballots if ballot.abstained] == lost
    assert [missing.partition(":")[0] for missing in session.missing] == [
        f"{name} did not answer" for name in lost
    ]
    assert session.status == ("degraded" if lost else "complete")
    assert session.outcome.leaders == ("ada",)
    assert session.synthesis.chairman == "chair"


@pytest.mark.parametrize("row", LATER.values(), ids=LATER)
async def test_a_fault_at_a_review_is_an_abstention(server, row):
    """It has a reason, and the reviewer's answer stays."""
    server.fault("cyd", row.fault, stage="review", times=row.times, **row.given)

    session = await ask_council(server, **row.limits)

    lost = ["cyd"] if row.reason else []
    assert stages(server, "cyd") == {"answer": 1, "review": row.calls}
    assert list(session.answers) == list(WORTH)
    assert [event.seat for event in events_of(session, e.BallotAbstained)] == lost
    assert {event.read_by for event in events_of(session, e.BallotCast)} == {"schema"}
    assert len(session.missing) == len(lost)
    for missing in session.missing:
        assert missing.startswith("cyd cast no ballot: ")
        assert row.reason in missing
    assert session.status == ("degraded" if lost else "complete")
    assert session.outcome.leaders == ("ada",)
    assert len(session.outcome.standings) == 5
    assert session.outcome.n_ballots == 5 - len(lost)


@pytest.mark.parametrize("row", LATER.values(), ids=LATER)
async def test_a_fault_at_the_synthesis_replaces_the_chairman(server, row):
    """The best-ranked member writes, and both are named."""
    server.fault("chair", row.fault, stage="synthesis", times=row.times, **row.given)

    session = await ask_council(server, **row.limits)

    lost = bool(row.reason)
    assert stages(server, "chair") == {"synthesis": row.calls}
    assert session.outcome.n_ballots == 5
    assert session.synthesis.chairman == ("ada" if lost else "chair")
    assert list(session.synthesis.failed) == (["chair"] if lost else [])
    assert row.reason in session.synthesis.failed.get("chair", "")
    assert session.text.startswith("The council holds with [A]")
    assert [missing.partition(":")[0] for missing in session.missing] == (
        ["chair did not write the final answer"] if lost else []
    )
    assert session.status == ("degraded" if lost else "complete")


FULL = (("ada",), ("bob",), ("dan",), ("eve",))

READ = {
    "labels twice": ("duplicate labels", FULL, "ranked more than once: "),
    "labels in small letters": ("lower-case labels", FULL, ""),
    "long labels": ("long labels", FULL, ""),
    "grades as text": ("string grades", FULL, ""),
}


@pytest.mark.parametrize(("fault", "groups", "note"), READ.values(), ids=READ)
async def test_a_review_in_another_form_is_read(server, fault, groups, note):
    """No repair is requested, and ignored parts are noted."""
    server.fault("cyd", fault)

    session = await ask_council(server)

    [cast] = [event for event in events_of(session, e.BallotCast) if event.seat == "cyd"]
    assert stages(server, "cyd") == {"answer": 1, "review": 1}
    assert (cast.read_by, cast.ballot.groups) == ("tolerant", groups)
    assert any(note in said for said in cast.notes) if note else cast.notes == ()
    assert session.status == "complete"
    assert session.outcome.n_ballots == 5


async def test_a_review_that_grades_part_of_its_sheet_is_repaired(server):
    """An unknown label leaves one answer without a grade; after the repair the ballot counts."""
    server.fault("cyd", "unknown labels")

    session = await ask_council(server)

    [repaired] = events_of(session, e.BallotRepaired)
    [cast] = [event for event in events_of(session, e.BallotCast) if event.seat == "cyd"]
    assert "3 of the 4 answers" in repaired.problem
    assert stages(server, "cyd") == {"answer": 1, "review": 1, "repair": 1}
    assert cast.ballot.groups == FULL[:3]
    assert any("not on its sheet" in said for said in cast.notes)
    assert session.outcome.n_ballots == 5


LONG_REVIEW = {"text": "I like all of them. " * 11_000}

UNREAD = {
    "prose": ("prose", {}, NO_BALLOT),
    "another object": ("wrong schema", {}, NO_BALLOT),
    "bare labels": ("bare labels", {}, NO_BALLOT),
    "a refusal": ("says", {"text": "I cannot compare these."}, NO_BALLOT),
    "the word null": ("says", {"text": "null"}, "says nothing"),
    "half of an object": ("says", {"text": '{"ranking": [["A"], ["B'}, NO_BALLOT),
    "a quarter of the sheet": ("says", {"text": '{"ranking": ["A"]}'}, "judges only 1 of the "),
    "a review without end": ("says", LONG_REVIEW, "has 220,000 characters"),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "given", "problem"), UNREAD.values(), ids=UNREAD)
@pytest.mark.parametrize("mended", [True, False], ids=["mended", "not mended"])
async def test_an_unreadable_review_is_repaired_once(server, fault, given, problem, mended):
    """The result is a ballot by the schema, or an abstention."""
    for stage in ("review",) if mended else ("review", "repair"):
        server.fault("cyd", fault, stage=stage, **given)

    session = await ask_council(server)

    [repaired] = events_of(session, e.BallotRepaired)
    assert (repaired.seat, problem in repaired.problem) == ("cyd", True)
    assert stages(server, "cyd") == {"answer": 1, "review": 1, "repair": 1}
    [request] = [call for call in server.calls("cyd") if call.stage == "repair"]
    assert problem in request.prompt
    if mended:
        [cast] = [event for event in events_of(session, e.BallotCast) if event.seat == "cyd"]
        assert (cast.read_by, cast.ballot.groups) == ("schema", FULL)
        assert session.status == "complete"
    else:
        [abstained] = events_of(session, e.BallotAbstained)
        assert abstained.reason.startswith(f"its review {repaired.problem}, ")
        assert len(abstained.replies) == 2
        assert session.missing == (f"cyd cast no ballot: {abstained.reason}",)


async def test_a_failed_repair_reports_both_reasons(server):
    """They are what was unreadable, and how the repair failed."""
    server.fault("cyd", "prose", stage="review")
    server.fault("cyd", "500", stage="repair")

    session = await ask_council(server)

    [abstained] = events_of(session, e.BallotAbstained)
    assert all(
        fact in abstained.reason
        for fact in (f"its review {NO_BALLOT}", "the repair failed", "(500)")
    )


async def test_a_server_without_json_schema_gets_a_weaker_request(server):
    """It still returns a ballot by the schema."""
    server.fault("cyd", "refuses", field="response_format", value="json_schema")
    server.fault("dan", "refuses", field="response_format")

    session = await ask_council(server)

    assert stages(server, "cyd") == {"answer": 1, "review": 2}
    assert stages(server, "dan") == {"answer": 1, "review": 3}
    assert {event.read_by for event in events_of(session, e.BallotCast)} == {"schema"}
    assert session.status == "complete"


class TestTooFew:
    """A fault in more than one seat."""

    async def test_without_a_quorum_there_is_no_outcome(self, server):
        """One ballot of the two needed; the chairman still writes."""
        for name in ("bob", "cyd", "dan", "eve"):
            server.fault(name, "500", stage="review")

        session = await ask_council(server)

        cast = [ballot for ballot in session.ballots if not ballot.abstained]
        assert [ballot.reviewer for ballot in cast] == ["ada"]
        assert session.outcome is None
        assert session.status == "degraded"
        assert "1 of the 2 ballots" in session.missing[-1]
        assert session.synthesis.chairman == "chair"

    async def test_a_single_answer_is_the_final_answer(self, server):
        """Nothing is ranked."""
        for name in ("bob", "cyd", "dan", "eve"):
            server.fault(name, "401")

        session = await ask_council(server)

        assert (session.status, session.outcome, session.synthesis) == ("degraded", None, None)
        assert "answer worth 9 of 10" in session.text
        assert "one member answered" in session.missing[-1]
        assert stages(server) == {"answer": 5}

    async def test_without_answers_the_session_has_failed(self, server):
        """It has a reason for every seat."""
        server.fault(None, "drop")

        session = await ask_council(server, attempts=1)

        assert (session.status, session.text) == ("failed", None)
        assert len(session.missing) == 5

    async def test_without_a_chairman_the_best_answer_is_final(self, server):
        """Both who failed to write are named."""
        server.fault(None, "503", stage="synthesis")

        session = await ask_council(server, prior="none", rho="none")

        assert session.synthesis.chairman is None
        assert "answer worth 9 of 10" in session.text
        assert list(session.synthesis.failed) == ["chair", "ada"]
        assert session.status == "degraded"

    async def test_a_straggler_gets_only_the_grace_period(self, server):
        """It starts once there are enough answers."""
        server.fault("eve", "hang")

        session = await ask_council(server, enough=4, grace_seconds=0.1)

        assert session.unanswered == {"eve": "did not finish within 0.1 s of the first 4 answers"}
        assert session.outcome.n_ballots == 4


class TestHedging:
    """A stalled call is made a second time."""

    @pytest.mark.parametrize(
        ("seat", "stage"), [("cyd", "answer"), ("cyd", "review"), ("chair", "synthesis")]
    )
    async def test_the_second_call_wins(self, server, seat, stage):
        """The first hangs and is cancelled; nothing is missing."""
        server.fault(seat, "hang", stage=stage, times=1)

        session = await ask_council(server, hedge_seconds=0.4)

        retried = [
            event
            for event in events_of(session, e.CallRetried)
            if (event.seat, event.stage) == (seat, stage)
        ]
        assert [event.reason for event in retried] == ["said nothing for 0.4 s"]
        assert stages(server, seat)[stage] == 2
        assert session.status == "complete"


class TestThrottling:
    """A provider's limits, as its server sees them."""

    async def test_concurrency_is_limited(self, server):
        """Eleven calls of one council use two connections."""
        server.seconds = 0.03
        provider = f"http://127.0.0.1:{server.port}"

        session = await ask_council(server, providers={provider: ThrottlePolicy(concurrency=2)})

        assert session.status == "complete"
        assert len(server.calls()) == 11
        assert server.accepted == 2

    async def test_the_rate_is_limited(self, server):
        """At 300 a minute, five calls begin at once and the others 0.2 s apart."""
        provider = f"http://127.0.0.1:{server.port}"

        session = await ask_council(server, providers={provider: ThrottlePolicy(per_minute=300)})

        at = [request.at for request in server.received]
        assert session.status == "complete"
        assert len(at) == 11
        for first in range(len(at)):
            for later in range(first, len(at)):
                due = (later - first - 4) * 0.2
                assert at[later] - at[first] > due - 0.3  # the first may have been late
        assert at[4] - at[0] < 0.6

    async def test_retry_after_pauses_every_member_of_the_provider(self, server):
        server.fault(None, "429", times=1, retry_after=0.4)
        provider = f"http://127.0.0.1:{server.port}"

        session = await ask_council(server, providers={provider: ThrottlePolicy(concurrency=1)})

        first, second, *_ = (request.at for request in server.received)
        assert second - first > 0.39
        assert session.status == "complete"


@pytest.mark.parametrize("stage", ["answer", "synthesis"])
async def test_reasoning_in_the_text_is_separated(server, stage):
    """It is at each stage."""
    text = "<think>\nHm, which?\n</think>\n\nThis one."
    server.fault("cyd" if stage == "answer" else "chair", "says", stage=stage, text=text)

    session = await ask_council(server)

    said = session.answers["cyd"].text if stage == "answer" else session.text
    assert said == "This one."
    assert "Hm, which?" not in "".join(call.prompt for call in server.calls(None))
