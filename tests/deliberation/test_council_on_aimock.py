"""Whole councils over HTTP, against the third-party server aimock."""

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
    """A fixture: the response to matching requests, and how it fails."""
    made = {"match": match, "response": {"content": content}}
    return made if chaos is None else {**made, "chaos": chaos}


def text(seat: str) -> str:
    """The answer of a member."""
    return f"The lake is seven metres deep: {seat.upper()} sounded it with a line in March."


def review(sheet: Sheet | None = None) -> str:
    """A review in the order of the seats; without a sheet, in that of its labels."""
    labels = "ABC" if sheet is None else [sheet.label(s) for s in SEATS if s != sheet.reviewer]
    grades = {label: dict.fromkeys(CRITERIA, 9 - place) for place, label in enumerate(labels)}
    return json.dumps({"notes": "n", "grades": grades, "ranking": [[label] for label in labels]})


def play(server: Any, *first: Mapping[str, Any], sheets: Mapping[str, Sheet] | None = None):
    """Load a council into the server, preceded by these fixtures."""
    reviews = [says(review(), **REVIEWS)]
    if sheets is not None:
        reviews = [says(review(sheets[seat]), model=seat, **REVIEWS) for seat in SEATS]
    answers = [says(text(seat), model=seat) for seat in SEATS]
    server.load(*first, *reviews, says(CLOSING, **CHAIRS), *answers)


async def ask_council(server: Any, **options: Any) -> Session:
    """Ask the four members; return the session."""
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


async def test_a_council_makes_nine_calls(aimock):
    """They are four answers, four reviews by the schema, and the final answer."""
    play(aimock)
    drawn = sheets(await ask_council(aimock))
    aimock.reset()
    play(aimock, sheets=drawn)

    session = await ask_council(aimock)

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


async def test_reviewers_that_rank_by_place_tie_all_candidates(aimock):
    """Over four sheets every candidate is at every place."""
    play(aimock)

    session = await ask_council(aimock)

    for event in cast(session):
        candidates = sheets(session)[event.seat].candidates
        assert event.ballot.groups == tuple((each,) for each in candidates)
    assert session.outcome.leaders == SEATS
    assert session.outcome.clear_leader is None


@TABLE
async def test_a_failed_answer_leaves_three_members(aimock, rate, reason, more):
    """The member has no answer and no ballot, with the reason."""
    play(aimock, says("x", {rate: 1.0}, model="cyd"))

    session = await ask_council(aimock, **BRIEF)

    [(seat, why)] = session.unanswered.items()
    assert (seat, reason in why, more in why) == ("cyd", True, True)
    assert (session.status, session.missing) == ("degraded", (f"cyd did not answer: {why}",))
    assert sorted(event.seat for event in cast(session)) == ["ada", "bob", "dan"]
    assert {event.read_by for event in cast(session)} == {"tolerant"}  # their C is on no sheet
    assert session.text == CLOSING


@TABLE
async def test_a_failed_review_is_an_abstention(aimock, rate, reason, more):
    """It has a reason, and the reviewer's answer stays."""
    play(aimock, says("x", {rate: 1.0}, model="cyd", **REVIEWS))

    session = await ask_council(aimock, **BRIEF)

    [lost] = [event for event in session.events if isinstance(event, e.BallotAbstained)]
    assert (lost.seat, reason in lost.reason, more in lost.reason) == ("cyd", True, True)
    assert session.missing == (f"cyd cast no ballot: {lost.reason}",)
    assert sorted(event.seat for event in cast(session)) == ["ada", "bob", "dan"]
    assert len(session.outcome.standings) == 4
    assert session.text == CLOSING


@TABLE
async def test_a_failed_chairman_is_replaced_by_the_next(aimock, rate, reason, more):
    play(aimock, says("x", {rate: 1.0}, model="chair"))

    session = await ask_council(aimock, **BRIEF)

    [(chairman, why)] = session.synthesis.failed.items()
    assert (chairman, reason in why, more in why) == ("chair", True, True)
    assert session.missing == (f"chair did not write the final answer: {why}",)
    assert session.synthesis.chairman in session.outcome.leaders
    assert session.text == CLOSING


@TABLE
async def test_a_session_without_answers_has_failed(aimock, rate, reason, more):
    """Every seat has its reason."""
    play(aimock)
    aimock.chaos(**{rate: 1.0})

    session = await ask_council(aimock, **BRIEF)

    assert (session.status, session.text, session.outcome) == ("failed", None, None)
    assert list(session.unanswered) == list(SEATS)
    assert all(reason in why for why in session.unanswered.values())
    assert len(session.missing) == 4


async def test_a_call_is_repeated_after_the_wait_of_the_server(aimock):
    """It waits a second, and nothing is missing."""
    error = {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429}
    play(aimock, {"match": {"model": "cyd", "sequenceIndex": 0}, "response": error})

    session = await ask_council(aimock)

    [retried] = [event for event in session.events if isinstance(event, e.CallRetried)]
    assert (retried.seat, retried.stage, retried.wait_seconds) == ("cyd", "answer", 1.0)
    assert "(429): slow down" in retried.reason
    assert session.status == "complete"
    assert len(aimock.requests()) == 10


async def test_every_seat_is_accounted_for_under_random_faults(aimock):
    """The status of the session follows from them."""
    play(aimock)
    aimock.chaos(disconnectRate=0.25, malformedRate=0.25)

    for _ in range(8):
        session = await ask_council(aimock, attempts=1)

        assert [ballot.reviewer for ballot in session.ballots] == list(SEATS)
        assert {*session.answers, *session.unanswered} == set(SEATS)
        assert all(ballot.reason for ballot in session.ballots if ballot.abstained)
        assert (session.status == "complete") == (session.missing == ())
        assert (session.status == "failed") == (not session.answers)
        assert (session.text is None) == (not session.answers)
        assert (session.outcome is None) == (len(cast(session)) < 2)
