"""Resuming with sheets that another version drew: what is recorded stays."""

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from councils import QUESTION, council, member, members
from juries import asked, overheard
from witan.core.blinding import Sheet
from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.models.scripted import Line

pytestmark = pytest.mark.anyio


def sheets(session: Session, reviewer: str) -> list[Sheet]:
    """The recorded sheets of a reviewer."""
    drawn = [event.sheet for event in session.events if isinstance(event, e.SheetDrawn)]
    return [sheet for sheet in drawn if sheet.reviewer == reviewer]


def turned(sheet: Sheet) -> Sheet:
    """The sheet with its first and its last candidate exchanged, and another code."""
    first, *others, last = sheet.candidates
    return replace(sheet, candidates=(last, *others, first), nonce=sheet.nonce[::-1])


def redrawn(events: Sequence[e.Event], draw=turned) -> Session:
    """An interrupted session of these events, whose sheets another version drew."""
    return Session.of(
        [
            replace(event, sheet=draw(event.sheet)) if isinstance(event, e.SheetDrawn) else event
            for event in events
        ]
    )


async def held(seated=None, **options) -> Session:
    """A session of five."""
    async with council(seated or members(), **options) as opened:
        return await opened.ask(QUESTION, seed=5)


async def retried(failed: Session, again, **options) -> Session:
    """The session after its failed seats were asked again."""
    with anyio.fail_after(60):
        async with council(again, attempts=1, **options) as opened:
            return await opened.retry(failed)


async def resumed(broken: Session, seated=None, **options) -> Session:
    """The session after it went on."""
    with anyio.fail_after(60):
        async with council(seated or members(), **options) as opened:
            return await opened.resume(broken)


async def test_a_reviewer_sees_the_recorded_sheet():
    """In its order and with its code; no other is drawn."""
    whole = await held()
    first = next(at for at, x in enumerate(whole.events) if isinstance(x, e.BallotCast))
    broken = redrawn(whole.events[: first + 1])
    heard = overheard(members())
    session = await resumed(broken, heard)

    waiting = [seat for seat in heard if seat.name != whole.events[first].seat]
    for seat in waiting:
        [sheet] = sheets(broken, seat.name)
        [prompt] = asked([seat], "review")
        places = [prompt.index(f"says {name},") for name in sheet.candidates]
        assert sheet.nonce in prompt
        assert places == sorted(places)
    assert [sheets(session, name) for name in "abcde"] == [sheets(broken, n) for n in "abcde"]
    assert (session.status, len(session.ballots)) == ("complete", 5)


@pytest.mark.parametrize("spend", ["all", "adaptive"])
async def test_a_second_order_mirrors_the_recorded_first(spend):
    """If the session broke off between the two."""
    whole = await held(mirrored=True, spend=spend)
    second = next(at for at, x in enumerate(whole.events) if getattr(x, "mirrored", False))
    broken = redrawn(whole.events[:second])
    session = await resumed(broken, mirrored=True, spend=spend)

    first, mirrored = sheets(session, "a")
    assert [first] == sheets(broken, "a")
    assert mirrored.candidates == first.candidates[::-1]
    assert mirrored.nonce != first.nonce


@pytest.mark.parametrize(("most", "n_pairs"), [(10, 6), (3, 3)])
async def test_recorded_pairs_are_completed(most, n_pairs):
    """Each of as many pairs in both orders, though the session broke off within a pair."""
    whole = await held(pairs=most)
    third = [at for at, x in enumerate(whole.events) if isinstance(x, e.SheetDrawn)][2]
    orders = iter([("d", "e"), ("e", "d"), ("c", "d")])
    broken = redrawn(
        whole.events[: third + 1], lambda sheet: replace(sheet, candidates=next(orders))
    )
    session = await resumed(broken, pairs=most)

    drawn = sheets(session, "a")
    pairs = {frozenset(sheet.candidates) for sheet in drawn}
    assert drawn[:3] == sheets(broken, "a")
    assert len(drawn) == 2 * n_pairs == 2 * len(pairs)
    assert [x.candidates for x in drawn[1::2]] == [x.candidates[::-1] for x in drawn[::2]]
    assert session.status == "complete"


@pytest.mark.parametrize(
    "options", [{}, {"mirrored": True}, {"spend": "adaptive"}, {"pairs": 2}, {"review_rounds": 2}]
)
async def test_a_retried_reviewer_sees_its_recorded_sheets(options):
    """They are balanced with those of the ballots that stay; no other is drawn."""
    silent = member("b", "cabde", reviews=[Line(error="is down")])
    before = redrawn((await held([silent, *members("acde")], attempts=1, **options)).events)
    heard = overheard(members("bacde"))
    after = await retried(before, heard, **options)

    first_round = [x.sheet for x in before.events if isinstance(x, e.SheetDrawn) and x.round == 1]
    codes = [sheet.nonce for sheet in first_round if sheet.reviewer == "b"]
    prompts = asked(heard[:1], "review")[: len(codes)]
    assert all(nonce in prompt for nonce, prompt in zip(codes, prompts, strict=True))
    assert first_round == [
        x.sheet for x in after.events if isinstance(x, e.SheetDrawn) and x.round == 1
    ]
    assert after.status == "complete"
