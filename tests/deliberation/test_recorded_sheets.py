"""A session that continues draws the sheets again that it recorded."""

import pytest

from councils import QUESTION, council, member, members
from juries import prompts_of, record_calls
from witan.core.blinding import Sheet
from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.models.scripted import Line

pytestmark = pytest.mark.anyio

every_form = pytest.mark.parametrize(
    "options", [{}, {"mirrored": True}, {"spend": "adaptive"}, {"pairs": 2}, {"review_rounds": 2}]
)


def sheets(session: Session) -> list[Sheet]:
    """The recorded sheets."""
    return [event.sheet for event in session.events if isinstance(event, e.SheetDrawn)]


async def session_of_five(seated=None, **options) -> Session:
    """A session of five members."""
    async with council(seated or members(), **options) as opened:
        return await opened.ask(QUESTION, seed=5)


@every_form
async def test_a_resumed_reviewer_sees_its_recorded_sheet(options):
    """It has the recorded order and code, and is recorded once."""
    whole = await session_of_five(**options)
    first = next(at for at, x in enumerate(whole.events) if isinstance(x, e.BallotCast))
    broken = Session.of(whole.events[: first + 1])
    heard = record_calls(members())
    async with council(heard, **options) as opened:
        session = await opened.resume(broken)

    waiting = [seat for seat in heard if seat.name != whole.events[first].seat]
    for seat in waiting:
        for sheet in sheets(broken):
            if sheet.reviewer == seat.name:
                assert any(sheet.nonce in prompt for prompt in prompts_of([seat], "review"))
    assert sheets(session) == sheets(whole)
    assert session.status == "complete"


@every_form
async def test_a_retried_reviewer_sees_its_recorded_sheets(options):
    """They are balanced with those of the stored ballots; no other is drawn."""
    silent = member("b", "cabde", reviews=[Line(error="is down")])
    before = await session_of_five([silent, *members("acde")], attempts=1, **options)
    heard = record_calls(members("bacde"))
    async with council(heard, attempts=1, **options) as opened:
        after = await opened.retry(before)

    first_round = [x.sheet for x in before.events if isinstance(x, e.SheetDrawn) and x.round == 1]
    codes = [sheet.nonce for sheet in first_round if sheet.reviewer == "b"]
    prompts = prompts_of(heard[:1], "review")[: len(codes)]
    assert all(nonce in prompt for nonce, prompt in zip(codes, prompts, strict=True))
    assert first_round == [
        x.sheet for x in after.events if isinstance(x, e.SheetDrawn) and x.round == 1
    ]
    assert after.status == "complete"
