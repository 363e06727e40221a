"""The types a user sees; checked, never run."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Literal, assert_type

import witan
from witan import (
    Answer,
    Ballot,
    Council,
    Event,
    Limits,
    Member,
    Model,
    Outcome,
    Plan,
    Price,
    Procedure,
    Session,
    Settings,
    Standing,
    Synthesis,
)
from witan.models import Call, Line, Message, Options, Reply, ScriptedModel, ThrottlePolicy, Usage
from witan.rules import Scores
from witan.stats import Profile

ballots = [Ballot("x", groups=(("a",), ("b",))), Ballot("y", grades={"a": 8, "b": "7/10"})]

outcome = witan.tally(ballots, rule="borda", level=0.9)
assert_type(outcome, Outcome)
witan.tally(ballots, rule="borda", variant="roster", recusal="off", parameters={})
witan.tally(ballots, levle=0.9)  # type: ignore[call-arg]
witan.tally(ballots, ties="never")  # type: ignore[arg-type]
assert_type(outcome.standings, tuple[Standing, ...])
assert_type(outcome.standings[0].score, float | None)
assert_type(outcome.condorcet_winner, str | None)
assert_type(witan.tally_sessions(ballots, Settings()), Iterator[Outcome])


def score_everything(profile: Profile) -> Scores:
    return witan.RULES["schulze"](profile, strength="margins")


class Mine:
    """A model of one's own: no base class, one method."""

    async def complete(self, call: Call, hear: Callable[[str], None], /) -> Reply:
        assert_type(call.messages, tuple[Message, ...])
        assert_type(call.stage, Literal["answer", "review", "repair", "synthesis"])
        hear("7")
        return Reply("7", Usage(input_tokens=12, output_tokens=1), cost_usd=0.01)


class Mute:
    """No model: it takes no call."""

    async def answer(self, prompt: str) -> str:
        return prompt


scripted: Model = ScriptedModel(
    "ada", answers=["7"], reviews=[Line(prefers=("7",)), lambda call: "{}"]
)
mine: Model = Mine()
mute: Model = Mute()  # type: ignore[assignment]

member = Member(
    "critic", mine, options=Options(temperature=0.2, reasoning_effort="low"), price=Price(3, 15)
)
Options(reasoning_effort="endless")  # type: ignore[arg-type]

procedure = Procedure(
    counting=Settings(rule="schulze"),
    mode="verdict",
    limits=Limits(max_cost_usd=0.5, providers={"openai": ThrottlePolicy(per_minute=60)}),
)
Procedure(mode="vote")  # type: ignore[arg-type]


async def ask() -> Session:
    async with Council(["a=openai:MODEL", member, Mine(), scripted], "a", enough=3) as council:
        assert_type(council, Council)
        assert_type(council.members, tuple[Member, ...])
        assert_type(council.plan("Which?"), Plan)
        assert_type(council.plan("Which?").worst_usd, float | None)
        earlier = await council.ask("Which?", files={"notes.txt": "…"}, seed=7)
        async with aclosing(council.deliberate("And why?")) as events:
            async for event in events:
                assert_type(event, Event)
                assert_type(event.at, datetime)
                break
        return await council.resume(earlier)


def read(session: Session) -> None:
    assert_type(session.text, str | None)
    assert_type(session.answers, Mapping[str, Answer])
    assert_type(session.outcome, Outcome | None)
    assert_type(session.synthesis, Synthesis | None)
    assert_type(session.status, Literal["complete", "degraded", "failed", "interrupted", "running"])
    assert_type(session.missing, tuple[str, ...])
    assert_type(session.cost.total_usd, float | None)
    assert_type(session.recount("schulze", without=["ada"]), Outcome)
    assert_type(session.conversation, tuple[Message, ...])
    assert_type(witan.session_from_json(witan.session_to_json(session, indent=2)), Session)
    assert_type(witan.session_to_html(session), str)
    assert_type(
        [witan.events.event_from_json(witan.events.event_to_json(e)) for e in session.events],
        list[Event],
    )
    assert_type(Session.of(session.events), Session)
    assert_type(witan.events.EVENTS["ballot_cast"], type[Event])


async def follow(council: Council) -> AsyncIterator[Event]:
    async for event in council.deliberate("Which?"):
        yield event


assert_type(witan.ask("Which?"), Session)
assert_type(witan.ask("Which?", ["ada=openai:MODEL", mine], rule="borda"), Session)
assert_type(Council.from_config(mode="best"), Council)
witan.ask("Which?", [7, 8])  # type: ignore[list-item]
witan.ask("Which?", mod="best")  # type: ignore[call-arg]
