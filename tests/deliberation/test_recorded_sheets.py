"""Sheets recorded by another version are kept when a session is resumed."""

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from councils import QUESTION, council, member, members, says
from juries import prompts_of, record_calls
from witan.core.blinding import Sheet
from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.errors import SessionFileError
from witan.models.scripted import Line

pytestmark = pytest.mark.anyio


def sheets(session: Session, reviewer: str) -> list[Sheet]:
    """The recorded sheets of a reviewer."""
    drawn = [event.sheet for event in session.events if isinstance(event, e.SheetDrawn)]
    return [sheet for sheet in drawn if sheet.reviewer == reviewer]


def turned(sheet: Sheet) -> Sheet:
    """The sheet with its first and last candidate exchanged, and another code."""
    first, *others, last = sheet.candidates
    return replace(sheet, candidates=(last, *others, first), nonce=sheet.nonce[::-1])


def redrawn(events: Sequence[e.Event], draw=turned) -> Session:
    """An interrupted session of these events, with sheets of another version."""
    return Session.of(
        [
            replace(event, sheet=draw(event.sheet)) if isinstance(event, e.SheetDrawn) else event
            for event in events
        ]
    )


async def session_of_five(seated=None, **options) -> Session:
    """A session of five members."""
    async with council(seated or members(), **options) as opened:
        return await opened.ask(QUESTION, seed=5)


async def retry(failed: Session, again, **options) -> Session:
    """Retry the failed seats of a session."""
    with anyio.fail_after(60):
        async with council(again, attempts=1, **options) as opened:
            return await opened.retry(failed)


async def resume(broken: Session, seated=None, **options) -> Session:
    """Resume a session."""
    with anyio.fail_after(60):
        async with council(seated or members(), **options) as opened:
            return await opened.resume(broken)


async def test_a_reviewer_sees_the_recorded_sheet():
    """It has the recorded order and code; no other is drawn."""
    whole = await session_of_five()
    first = next(at for at, x in enumerate(whole.events) if isinstance(x, e.BallotCast))
    broken = redrawn(whole.events[: first + 1])
    heard = record_calls(members())
    session = await resume(broken, heard)

    waiting = [seat for seat in heard if seat.name != whole.events[first].seat]
    for seat in waiting:
        [sheet] = sheets(broken, seat.name)
        [prompt] = prompts_of([seat], "review")
        places = [prompt.index(f"says {name},") for name in sheet.candidates]
        assert sheet.nonce in prompt
        assert places == sorted(places)
    assert [sheets(session, name) for name in "abcde"] == [sheets(broken, n) for n in "abcde"]
    assert (session.status, len(session.ballots)) == ("complete", 5)


@pytest.mark.parametrize("spend", ["all", "adaptive"])
async def test_a_second_order_mirrors_the_recorded_first(spend):
    """The session was interrupted between the two."""
    whole = await session_of_five(mirrored=True, spend=spend)
    second = next(at for at, x in enumerate(whole.events) if getattr(x, "mirrored", False))
    broken = redrawn(whole.events[:second])
    session = await resume(broken, mirrored=True, spend=spend)

    first, mirrored = sheets(session, "a")
    assert [first] == sheets(broken, "a")
    assert mirrored.candidates == first.candidates[::-1]
    assert mirrored.nonce != first.nonce


@pytest.mark.parametrize(("most", "n_pairs"), [(10, 6), (3, 3)])
async def test_recorded_pairs_are_completed(most, n_pairs):
    """Each pair is compared in both orders, although the session was interrupted within one."""
    whole = await session_of_five(pairs=most)
    third = [at for at, x in enumerate(whole.events) if isinstance(x, e.SheetDrawn)][2]
    orders = iter([("d", "e"), ("e", "d"), ("c", "d")])
    broken = redrawn(
        whole.events[: third + 1], lambda sheet: replace(sheet, candidates=next(orders))
    )
    session = await resume(broken, pairs=most)

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
    """They are balanced with those of the stored ballots; no other is drawn."""
    silent = member("b", "cabde", reviews=[Line(error="is down")])
    before = redrawn(
        (await session_of_five([silent, *members("acde")], attempts=1, **options)).events
    )
    heard = record_calls(members("bacde"))
    after = await retry(before, heard, **options)

    first_round = [x.sheet for x in before.events if isinstance(x, e.SheetDrawn) and x.round == 1]
    codes = [sheet.nonce for sheet in first_round if sheet.reviewer == "b"]
    prompts = prompts_of(heard[:1], "review")[: len(codes)]
    assert all(nonce in prompt for nonce, prompt in zip(codes, prompts, strict=True))
    assert first_round == [
        x.sheet for x in after.events if isinstance(x, e.SheetDrawn) and x.round == 1
    ]
    assert after.status == "complete"


def changed(session: Session, nth: int = 0, number: int | None = None, **fields) -> Session:
    """The session up to its first ballot, with its nth sheet changed."""
    first = next(at for at, x in enumerate(session.events) if isinstance(x, e.BallotCast))
    events = list(session.events[:first])
    at = [at for at, x in enumerate(events) if isinstance(x, e.SheetDrawn)][nth]
    sheet = replace(events[at].sheet, **fields)
    events[at] = replace(events[at], sheet=sheet, round=number or events[at].round)
    return Session.of(events)


CODE = "0" * 32
DAMAGED = [
    ({"candidates": ("zz", "c", "d", "e")}, "a sheet with an answer of zz, which has none"),
    ({"candidates": ("a", "c", "d", "e")}, "a sheet that shows a its own answer"),
    ({"candidates": ("b", "b", "d", "e")}, "a malformed sheet of a"),
    ({"labels": ("A", "B", "C", "D", "E")}, "a malformed sheet of a"),
    ({"labels": ("A", "B", "C", "C")}, "a malformed sheet of a"),
    ({"nonce": ""}, "a malformed sheet of a"),
    ({"nonce": CODE + ">>>"}, "a malformed sheet of a"),
    ({"reviewer": "zz"}, "a sheet of the unknown reviewer zz"),
    ({"number": 2}, "a sheet of round 2 before the end of round 1"),
    ({"number": 3}, "a sheet of round 3 of 2"),
]


@pytest.mark.parametrize(("change", "problem"), DAMAGED)
async def test_a_damaged_sheet_is_refused_before_any_call(change, problem):
    """The error names the event."""
    broken = changed(await session_of_five(review_rounds=2), **change)
    [seq] = [x.seq for x in broken.events if isinstance(x, e.SheetDrawn)][:1]
    heard = record_calls(members())
    with pytest.raises(SessionFileError) as refusal:
        await resume(broken, heard, review_rounds=2)

    assert str(refusal.value) == (
        f"the session {broken.id}: event {seq} is {problem}; the session is damaged, or was "
        "written by a later version of Witan"
    )
    assert prompts_of(heard, "review") == []


async def test_a_sheet_of_the_last_seat_does_not_begin_the_next_round():
    """A later round cannot begin before the ballots of this one."""
    for nth in range(5):
        broken = changed(await session_of_five(review_rounds=2), nth, number=2)
        with pytest.raises(SessionFileError, match="before the end of round 1"):
            await resume(broken, review_rounds=2)


async def test_a_retry_refuses_a_damaged_sheet():
    """The retried reviewer would see it."""
    silent = member("a", "cabde", reviews=[Line(error="is down")])
    failed = await session_of_five([silent, *members("bcde")], attempts=1)
    with pytest.raises(SessionFileError, match="shows a its own answer"):
        await retry(
            redrawn(failed.events, lambda x: replace(x, candidates=("a", *x.candidates[1:]))),
            members(),
        )


async def test_an_answer_of_a_jurors_model_is_its_own_answer():
    """The name of the seat does not matter."""
    seats = members("abc")
    jury = [replace(seats[0], name="x"), *members("yz", "cab")]
    broken = changed(await session_of_five(seats, jury=jury), candidates=("a", "c"))
    with pytest.raises(SessionFileError, match="shows x its own answer"):
        await resume(broken, seats, jury=jury)


async def test_a_session_with_self_review_resumes():
    """Its reviewers may see their own answers."""
    options = {"self_review": True, "recusal": "off"}
    broken = changed(await session_of_five(**options))
    session = await resume(broken, **options)

    assert session.status == "complete"
    assert sheets(session, "a") == sheets(broken, "a")


@pytest.mark.parametrize(
    "fields",
    [
        {"candidates": ("b",), "labels": ("A",)},
        {"candidates": ("b", "c", "d"), "labels": ("A", "B", "C")},
    ],
)
async def test_an_incomplete_sheet_is_redrawn(fields):
    """Each reviewer sees all answers but its own."""
    broken = changed(await session_of_five(), **fields)
    heard = record_calls(members())
    session = await resume(broken, heard)

    [prompt] = prompts_of(heard[:1], "review")
    assert all(f"says {name}," in prompt for name in "bcde")
    assert len(sheets(session, "a")[-1].candidates) == 4
    assert (session.status, len(session.ballots)) == ("complete", 5)


async def test_a_second_order_that_is_not_the_mirror_is_redrawn():
    """The first order is kept."""
    whole = await session_of_five(mirrored=True)
    [order, _] = [sheet.candidates for sheet in sheets(whole, "a")]
    broken = changed(whole, 1, candidates=order)
    heard = record_calls(members())
    session = await resume(broken, heard, mirrored=True)

    first, _, mirrored = sheets(session, "a")
    prompts = prompts_of(heard[:1], "review")
    assert [nonce in prompts[0] for nonce in (first.nonce, mirrored.nonce)] == [True, False]
    assert first == sheets(broken, "a")[0]
    assert mirrored.candidates == first.candidates[::-1]
    assert mirrored.nonce in prompts[1]
    assert session.status == "complete"


async def test_a_sheet_with_copies_of_an_answer_is_redrawn():
    """Earlier versions did not join copies, so a reviewer might see its own answer."""
    seats = [*members("abc"), member("d", "cabd", answers=[says("c")])]
    whole = await session_of_five(seats)
    first = next(at for at, x in enumerate(whole.events) if isinstance(x, e.BallotCast))
    voted = whole.events[first].seat

    def apart(sheet: Sheet) -> Sheet:
        others = tuple(name for name in "abcd" if name != sheet.reviewer)
        return replace(sheet, candidates=others, labels=("A", "B", "C"))

    broken = redrawn(whole.events[: first + 1], apart)
    heard = record_calls(seats)
    session = await resume(broken, heard)

    for seat in (seat for seat in heard if seat.name != voted):
        [prompt] = prompts_of([seat], "review")
        own = "c" if seat.name in "cd" else seat.name
        assert f"says {own}," not in prompt
        assert prompt.count("says c,") == (own != "c")
    assert len(sheets(session, voted)) == 1
    assert session.status == "complete"


async def test_sheets_of_a_reviewer_have_different_codes():
    """Here two versions were interrupted within a pair."""
    session, others = await session_of_five(pairs=10), {0: "de", 2: "cd", 3: "dc", 4: "bc"}
    for n_sheets in (1, 5):
        at = [at for at, x in enumerate(session.events) if isinstance(x, e.SheetDrawn)]
        events = list(session.events[: at[n_sheets - 1] + 1])
        for nth, order in others.items():
            if nth < n_sheets:
                sheet = Sheet("a", tuple(order), ("A", "B"), f"{nth:032x}")
                events[at[nth]] = replace(events[at[nth]], sheet=sheet)
        session = await resume(Session.of(events), pairs=10)

    drawn = sheets(session, "a")
    assert [x.candidates for x in drawn[1::2]] == [x.candidates[::-1] for x in drawn[::2]]
    assert len({sheet.nonce for sheet in drawn}) == len(drawn) == 12
