"""Reviewers that rank without grading, where the rule counts grades."""

import json

import pytest

from councils import council, member, members
from witan import tally
from witan.deliberation.events import BallotRepaired
from witan.deliberation.ports import Call
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.models.scripted import Line
from witan.service.trust import session_trust

pytestmark = pytest.mark.anyio


def by_place(call: Call) -> str:
    """Rank the answers in the order of the sheet, and grade none."""
    labels = call.schema["properties"]["ranking"]["items"]["items"]["enum"]
    return json.dumps({"notes": "In order.", "ranking": [[label] for label in labels]})


async def asked(repair: object = by_place, **options: object) -> Session:
    """Ask a council of five, of which the last ranks without grading."""
    last = member("e", reviews=[by_place], repairs=[repair])
    seated = [*members("abcd", "cabde"), last]
    async with council(seated, synthesis=False, **options) as held:
        return await held.ask("What now?")


async def test_a_ranking_without_grades_is_asked_for_again():
    """The reviewer is told what is missing, and its second review counts in full."""
    graded = Line(prefers=tuple(f"says {name}," for name in "cabde"))

    session = await asked(graded)

    [repair] = [event for event in session.events if isinstance(event, BallotRepaired)]
    assert repair.problem == "ranks the answers without grading them"
    assert session.status == "complete"
    assert session.outcome.n_ballots == 5
    assert session.outcome.without_effect == ()


async def test_a_ranking_that_stays_without_grades_is_said_to_have_no_effect():
    """The status, the trust line and the number of ballots leave it out, and name it."""
    session = await asked()

    assert session.status == "degraded"
    assert session.missing == ("e gave no grades, and calibrated counts nothing else",)
    assert session.outcome.n_ballots == 4
    assert session.outcome.without_effect == ("e",)
    assert "4 of 5 reviewers" in session_trust(session)
    assert session.recount(without=["e"]).standings[0].p_best == session.outcome.standings[0].p_best


async def test_low_grades_of_a_council_are_from_1_to_10_whoever_counts_them():
    """A tally of the session's ballots is the session's outcome, before and after the record."""

    def lowly(call: Call) -> str:
        labels = call.schema["properties"]["ranking"]["items"]["items"]["enum"]
        names = list(call.schema["properties"]["grades"]["properties"][labels[0]]["properties"])
        grades = {label: dict.fromkeys(names, 5 - n) for n, label in enumerate(labels)}
        ranking = [[label] for label in labels]
        return json.dumps({"notes": "None is good.", "ranking": ranking, "grades": grades})

    seated = [member(name, reviews=[lowly]) for name in "abcde"]
    async with council(seated, synthesis=False) as held:
        session = await held.ask("What now?")

    again = session_from_json(session_to_json(session))
    assert tally(session.ballots).standings == session.outcome.standings
    assert tally(again.ballots).standings == session.outcome.standings
    assert again == session


async def test_a_rule_that_reads_rankings_counts_it_at_once():
    """No repair is asked for, and all five ballots have an effect."""
    session = await asked(rule="borda")

    assert not any(isinstance(event, BallotRepaired) for event in session.events)
    assert session.status == "complete"
    assert session.outcome.n_ballots == 5


async def test_a_quorum_is_of_ballots_with_an_effect():
    """With fewer of them than the quorum there is no outcome, and the session says why."""
    session = await asked(quorum=5)

    assert session.outcome is None
    assert any("4 of the 5 ballots that a quorum needs" in line for line in session.missing)
