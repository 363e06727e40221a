"""A jury judges stored answers over HTTP, against the third-party server aimock."""

import json

import pytest

from good_replies import CRITERIA
from witan.deliberation import events as e
from witan.service.council import Council

pytest_plugins = ("aimock",)

pytestmark = pytest.mark.anyio

AUTHORS = ("ada", "bob", "cyd", "dan")

JURY = ("ada", "eve", "fay")

SEED = 17191


def says(content: str, **match: str):
    """A fixture: the response to matching requests."""
    return {"match": match, "response": {"content": content}}


def review(order: str) -> str:
    """A review that places these labels best first."""
    grades = {label: dict.fromkeys(CRITERIA, 9 - place) for place, label in enumerate(order)}
    return json.dumps({"notes": "n", "grades": grades, "ranking": [[label] for label in order]})


def council(server, names, chairman="chair") -> Council:
    """A council of these models of the server."""
    members = [f"{name}={server.url}#{name}" for name in names]
    options = {"call_seconds": 20.0, "attempts": 2, "rule": "borda"}
    return Council(members, f"{server.url}#{chairman}", environment={}, **options)


async def test_a_jury_makes_four_calls(aimock):
    """Three are reviews and one a final answer; Ada never reads her own answer."""
    chairs = {"systemMessage": "You are the chairman"}
    answers = [
        says(f"It is {len(name)} deep, says {name.upper()}.", model=name) for name in AUTHORS
    ]
    form = {"responseFormat": "json_schema"}
    aimock.load(says(review("ABC"), **form), says("So it is.", **chairs), *answers)
    async with council(aimock, AUTHORS) as asked:
        first = await asked.ask("How deep is the lake?", seed=SEED)
    aimock.reset()
    aimock.load(
        says(review("ABC"), model="ada", **form),
        says(review("ABCD"), **form),
        says("So it is after all, as [A] says.", model="judge", **chairs),
    )

    async with council(aimock, JURY, "judge") as jury:
        again = await jury.rejudge(first, seed=SEED)

    assert (again.status, again.missing) == ("complete", ())
    assert len(aimock.requests()) == 4
    assert "as [A] says" in again.text
    sheets = {
        event.sheet.reviewer: event.sheet
        for event in again.events
        if isinstance(event, e.SheetDrawn)
    }
    assert sorted(sheets["ada"].candidates) == ["bob", "cyd", "dan"]
    assert sorted(sheets["eve"].candidates) == list(AUTHORS)
    for ballot in again.ballots:
        assert ballot.groups == tuple((name,) for name in sheets[ballot.reviewer].candidates)
