"""Whole councils, over HTTP, against a server that no one here wrote."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from good_replies import CRITERIA
from witan.core.blinding import Sheet
from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.service.council import Council

pytest_plugins = ("aimock",)

pytestmark = pytest.mark.anyio

SEATS = ("ada", "bob", "cyd", "dan")

CLOSING = "Seven metres, as [A] and [C] have it."

SEED = 17191
"""Draws waits of less than 0.1 s between the attempts of these calls."""

REVIEWS = {"responseFormat": "json_schema"}

CHAIRS = {"systemMessage": "You are the chairman"}

CHAOS = {
    "rate limit": ("rateLimitRate", "rate limited (429): Chaos", "it asks to wait 1 s"),
    "disconnect": ("disconnectRate", "broke off: ", ""),
    "malformed": ("malformedRate", "broke off in the middle of its JSON", ""),
    "server error": ("dropRate", "cannot answer now (500): Chaos", ""),
}
"""The rate of each, and what is said of a call at the rate of one."""

TABLE = pytest.mark.parametrize(("rate", "reason", "more"), CHAOS.values(), ids=CHAOS)

BRIEF = {"call_seconds": 0.9}
"""Shorter than the second that this server asks to wait."""


def says(content: str, chaos: Mapping[str, float] | None = None, **match: Any) -> dict[str, Any]:
    """A fixture: what a request that matches is answered with, and how that goes wrong."""
    made = {"match": match, "response": {"content": content}}
    return made if chaos is None else {**made, "chaos": chaos}


def text(seat: str) -> str:
    """What a member answers."""
    return f"The lake is seven metres deep: {seat.upper()} sounded it with a line in March."


def review(sheet: Sheet | None = None) -> str:
    """A review in the order of the seats; without a sheet, in that of its labels."""
    labels = "ABC" if sheet is None else [sheet.label(s) for s in SEATS if s != sheet.reviewer]
    grades = {label: dict.fromkeys(CRITERIA, 9 - place) for place, label in enumerate(labels)}
    return json.dumps({"notes": "n", "grades": grades, "ranking": [[label] for label in labels]})


def play(server: Any, *first: Mapping[str, Any], sheets: Mapping[str, Sheet] | None = None):
    """Have the server play a council, and before all else what is given."""
    reviews = [says(review(), **REVIEWS)]
    if sheets is not None:
        reviews = [says(review(sheets[seat]), model=seat, **REVIEWS) for seat in SEATS]
    answers = [says(text(seat), model=seat) for seat in SEATS]
    server.load(*first, *reviews, says(CLOSING, **CHAIRS), *answers)


async def asked(server: Any, **options: Any) -> Session:
    """A session of the four."""
    options = {"call_seconds": 20.0, "attempts": 2, "rule": "borda", **options}
    members = [f"{seat}={server.url}#{seat}" for seat in SEATS]
    async with Council(members, f"{server.url}#chair", environment={}, **options) as council:
        return await council.ask("How deep is the lake?", seed=SEED)


def sheets(session: Session) -> dict[str, Sheet]:
    """Reviewer to sheet."""
    drawn = (event.sheet for event in session.events if isinstance(event, e.SheetDrawn))
    return {sheet.reviewer: sheet for sheet in drawn}


def cast(session: Session) -> list[e.BallotCast]:
    """The ballots that were cast."""
    return [event for event in session.events if isinstance(event, e.BallotCast)]


async def test_a_whole_council(aimock):
    """Nine calls: four answers, four reviews as the schema says, and the final answer."""
    play(aimock)
    drawn = sheets(await asked(aimock))
    aimock.reset()
    play(aimock, sheets=drawn)

    session = await asked(aimock)

    assert (session.status, session.missing) == ("complete", ())
    assert {seat: said.text for seat, said in session.answers.items()} == {
        seat: text(seat) for seat in SEATS
    }
    assert sheets(session) == drawn
    assert {event.read_by for event in cast(session)} == {"schema"}
    for event in cast(session):
        assert event.ballot.groups == tuple((s,) for s in SEATS if s != event.seat)
    assert [line.candidate for line in session.outcome.standings] == list(SEATS)
    assert (session.text, session.synthesis.chairman) == (CLOSING, "chair")
    assert len(aimock.requests()) == 9
    assert all(event.spent.usage.output_tokens for event in cast(session))


async def test_reviewers_who_go_by_place_alone_tell_nobody_apart(aimock):
    """Who ranks by label ranks by place; over four sheets all places are shared out evenly."""
    play(aimock)

    session = await asked(aimock)

    for event in cast(session):
        candidates = sheets(session)[event.seat].candidates
        assert event.ballot.groups == tuple((each,) for each in candidates)
    assert session.outcome.leaders == SEATS
    assert session.outcome.clear_leader is None


@TABLE
async def test_chaos_at_an_answer(aimock, rate, reason, more):
    """The member has no answer and no ballot, and says why; three hold the session."""
    play(aimock, says("x", {rate: 1.0}, model="cyd"))

    session = await asked(aimock, **BRIEF)

    [(seat, why)] = session.unanswered.items()
    assert (seat, reason in why, more in why) == ("cyd", True, True)
    assert (session.status, session.missing) == ("degraded", (f"cyd did not answer: {why}",))
    assert sorted(event.seat for event in cast(session)) == ["ada", "bob", "dan"]
    assert {event.read_by for event in cast(session)} == {"tolerant"}  # their C is on no sheet
    assert session.text == CLOSING


@TABLE
async def test_chaos_at_a_review(aimock, rate, reason, more):
    """The reviewer abstains and says why; its answer stands."""
    play(aimock, says("x", {rate: 1.0}, model="cyd", **REVIEWS))

    session = await asked(aimock, **BRIEF)

    [lost] = [event for event in session.events if isinstance(event, e.BallotAbstained)]
    assert (lost.seat, reason in lost.reason, more in lost.reason) == ("cyd", True, True)
    assert session.missing == (f"cyd cast no ballot: {lost.reason}",)
    assert sorted(event.seat for event in cast(session)) == ["ada", "bob", "dan"]
    assert len(session.outcome.standings) == 4
    assert session.text == CLOSING


@TABLE
async def test_chaos_at_the_synthesis(aimock, rate, reason, more):
    """The next in the chain writes the final answer."""
    play(aimock, says("x", {rate: 1.0}, model="chair"))

    session = await asked(aimock, **BRIEF)

    [(chairman, why)] = session.synthesis.failed.items()
    assert (chairman, reason in why, more in why) == ("chair", True, True)
    assert session.missing == (f"chair did not write the final answer: {why}",)
    assert session.synthesis.chairman in session.outcome.leaders
    assert session.text == CLOSING


@TABLE
async def test_chaos_everywhere(aimock, rate, reason, more):
    """Nobody answers: the session failed, and says why for every seat."""
    play(aimock)
    aimock.chaos(**{rate: 1.0})

    session = await asked(aimock, **BRIEF)

    assert (session.status, session.text, session.outcome) == ("failed", None, None)
    assert list(session.unanswered) == list(SEATS)
    assert all(reason in why for why in session.unanswered.values())
    assert len(session.missing) == 4


async def test_a_wait_that_the_server_asks_for(aimock):
    """After its second the call is made again, and nothing is missing."""
    error = {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429}
    play(aimock, {"match": {"model": "cyd", "sequenceIndex": 0}, "response": error})

    session = await asked(aimock)

    [retried] = [event for event in session.events if isinstance(event, e.CallRetried)]
    assert (retried.seat, retried.stage, retried.wait_seconds) == ("cyd", "answer", 1.0)
    assert "(429): slow down" in retried.reason
    assert session.status == "complete"
    assert len(aimock.requests()) == 10


async def test_chaos_now_and_then(aimock):
    """Whatever goes wrong where, every seat is accounted for, and the status is what it is."""
    play(aimock)
    aimock.chaos(disconnectRate=0.25, malformedRate=0.25)

    for _ in range(8):
        session = await asked(aimock, attempts=1)

        assert [ballot.reviewer for ballot in session.ballots] == list(SEATS)
        assert {*session.answers, *session.unanswered} == set(SEATS)
        assert all(ballot.reason for ballot in session.ballots if ballot.abstained)
        assert (session.status == "complete") == (session.missing == ())
        assert (session.status == "failed") == (not session.answers)
        assert (session.text is None) == (not session.answers)
        assert (session.outcome is None) == (len(cast(session)) < 2)
