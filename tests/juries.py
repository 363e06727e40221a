"""Juries for stored answers: sessions to judge, who judges them, and what they were asked."""

from dataclasses import replace

import anyio

from councils import QUESTION, council, members
from witan.deliberation import events as e
from witan.deliberation.ports import Call, Hear, Model, Reply
from witan.deliberation.session import Session


class Overheard:
    """A model, and everything that it was asked."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls: list[Call] = []

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        self.calls.append(call)
        return await self.model.complete(call, hear)


def overheard(seated):
    """The members, each with an ear at its door."""
    return [replace(seat, model=Overheard(seat.model)) for seat in seated]


def asked(seated, stage: str) -> list[str]:
    """What these members were asked at a stage."""
    return [
        "\n".join(message.text for message in call.messages)
        for seat in seated
        for call in seat.model.calls
        if call.stage == stage
    ]


async def held(seated=None, **options) -> Session:
    """A session of five, who find the answer of c the best."""
    async with council(members() if seated is None else seated, **options) as opened:
        return await opened.ask(QUESTION, seed=5)


async def judged(session: Session, jury=None, chairmen=(), listener=None, **options) -> Session:
    """The same answers before a jury of three, who find that of e the best."""
    jury = members("xyz", "ebacd") if jury is None else jury
    with anyio.fail_after(60):
        async with council(jury, chairmen, **options) as opened:
            return await opened.rejudge(session, seed=7, listener=listener)


def sheets(session: Session) -> dict[str, tuple[str, ...]]:
    """Reviewer to what stood on its sheet."""
    drawn = [event.sheet for event in session.events if isinstance(event, e.SheetDrawn)]
    return {sheet.reviewer: tuple(sorted(sheet.candidates)) for sheet in drawn}


def votes(session: Session) -> dict[str, tuple[int, float]]:
    """Candidate to the ballots that say something of it, and their share of those that could."""
    return {line.candidate: (line.votes, line.coverage) for line in session.outcome.standings}
