"""Entries: the rows of a session for leaderboards, votes and audits."""

import json
from dataclasses import fields, is_dataclass, replace

import pytest

from councils import QUESTION, CountingClock, member
from elections import ballot
from histories import session_events as of_five
from sessions import BEGAN, Story, expense
from witan.core.entry_builder import entries_of
from witan.core.session_ballots import AnswerEntry
from witan.core.settings import Settings
from witan.core.tally import tally
from witan.deliberation import events as e
from witan.deliberation.council import BaseCouncil
from witan.deliberation.ports import Seat, StoredAnswer, Usage
from witan.deliberation.procedure import Procedure
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.errors import InvalidParameter
from witan.history.counting import count_sessions, session_ballots, session_entries


def seats(**sources: str) -> tuple[Seat, ...]:
    """Seats by name, each with its source."""
    return tuple(Seat(name, source, "p") for name, source in sources.items())


def session_of(story: Story) -> Session:
    return Session.of(story)


def council_of_three(**fields) -> Story:
    """Three members answer and two of them review; the third abstains."""
    three = seats(a="openai:gpt-5", b="openai:gpt-5", c="")
    story = Story("a", "b", "c", **{"seats": three, **fields}).answers(a="Aye", b="Bee", c="Sea!")
    story.casts("a: c > b", positions={"b": 1, "c": 2}).casts("b: a > c")
    return story.abstains("c", "call timeout").closing("Done.").closed("one ballot")


class TestRows:
    """Contents of the rows."""

    def test_the_session_row_has_name_time_and_agreement(self):
        """Sessions of scripts are marked as simulated."""
        session = session_of(council_of_three())
        scripted = session_of(Story("a", "b", simulated=True).answers(a="A", b="B").closed("all"))

        row = session_entries(session).session

        assert (row.session, row.at, row.category, row.simulated) == ("s1", BEGAN, None, False)
        assert row.kendall_w == session.outcome.kendall_w
        assert session_entries(scripted).session.simulated

    def test_models_are_named_by_the_source_of_their_seats(self):
        """Two seats of one model have one standing; a Python object is named by its seat."""
        entries = session_entries(session_of(council_of_three()))

        standings = {s.model: s for s in entries.standings if s.rule == "borda"}
        assert set(standings) == {"openai:gpt-5", "c"}
        # On the seats: a 1 from b; b 0 from a; c 1 from a and 0 from b.
        assert standings["openai:gpt-5"].score == 0.5
        assert (standings["c"].score, standings["c"].votes, standings["c"].offered) == (0.5, 2, 2)
        assert [row.reviewer for row in entries.ballots] == ["openai:gpt-5", "openai:gpt-5", "c"]

    def test_every_seat_has_a_ballot_row(self):
        """It has places and lengths of answers; without a ballot it is an abstention."""
        first, second, third = session_entries(session_of(council_of_three())).ballots

        assert first.models == ("openai:gpt-5", "c")
        assert (first.positions, first.chars, first.shares) == ((1, 2), (3, 4), (0.0, 1.0))
        assert (second.abstained, third.abstained) == (False, True)

    def test_standings_under_borda_and_the_rule_of_the_session(self):
        """Other rules are possible, too; each equals `tally`."""
        session = session_of(council_of_three(seats=seats(a="", b="", c="")))

        rules = ("borda", "schulze")
        entries = entries_of(session_ballots(session), rules=rules, settings=session.settings)

        assert {s.rule for s in entries.standings} == {"borda", "schulze"}
        for rule in ("borda", "schulze"):
            expected = {
                line.candidate: line.score for line in tally(session.ballots, rule).standings
            }
            assert {s.model: s.score for s in entries.standings if s.rule == rule} == expected

    def test_answers_have_time_cost_and_tokens(self):
        """They include all rounds; a failure has a cost and no time."""
        story = Story("a", "b", "c")
        story.tell(e.AnswerDone, seat="a", text="first", spent=expense())
        story.tell(e.AnswerDone, seat="a", text="second", round=2, spent=expense(cost_usd=0.02))
        story.tell(e.AnswerFailed, seat="b", reason="timeout", spent=expense(usage=Usage()))
        unasked = expense(cost_usd=0.0, seconds=0.0, calls=0)
        story.tell(e.AnswerFailed, seat="c", reason="dear", over_budget=True, spent=unasked)

        a, b, c = session_entries(session_of(story.closed("all", status="failed"))).answers

        assert a == AnswerEntry("a", "script:a.toml", 6, 4.0, pytest.approx(0.03), 14)
        assert b == AnswerEntry("b", "script:b.toml", cost_usd=0.01, failed=True)
        assert c == AnswerEntry("c", "script:c.toml", failed=True)

    def test_ballots_have_repairs_and_order_consistency(self):
        story = Story("a", "b", "c").answers(a="A", b="B", c="C")
        story.tell(e.BallotRepaired, seat="a", problem="says nothing", reply="")
        story.tell(e.BallotRepaired, seat="c", problem="says nothing", reply="")
        for name, others in (("a", ("b", "c")), ("b", ("a", "c"))):
            story.tell(
                e.BallotCast, seat=name, replies=(), read_by="schema", spent=expense(),
                ballot=ballot(f"{name}: {' > '.join(others)}", session="s1"),
                flipped=1, compared=3,
            )  # fmt: skip
        rows = session_entries(session_of(story.abstains("c", "unreadable").closed("one"))).ballots

        assert [row.repaired for row in rows] == [True, False, False]
        assert [(row.kept, row.compared) for row in rows] == [(2, 3), (2, 3), (0, 0)]

    def test_an_answer_that_failed_the_gate_is_marked(self):
        """It is counted as in the session."""
        story = Story("a", "b", "c").answers(a="A", b="B", c="C")
        story.tell(e.GateVerdict, seat="b", flags=("self_harm",))
        story.casts("a: b > c").casts("c: b > a")

        entries = session_entries(replace(session_of(story.closed()), outcome=None))

        standings = {s.model: s.score for s in entries.standings}
        assert standings["script:b.toml"] == 0
        assert entries.ballots[0].shares == (1.0, 0.0)

    def test_jurors_are_reviewers_under_their_own_models(self):
        """The answers cost nothing again."""
        jury = tuple(Seat(name, f"jury:{name}", "p") for name in ("j", "k"))
        answers = tuple(StoredAnswer(name, name * 3, False, expense(), ()) for name in "ab")
        story = Story("a", "b", jury=jury, answers=answers, parent="s0", relation="rejudged")
        story.casts("j: b > a").casts("k: b > a")

        entries = session_entries(session_of(story.closed()))

        assert [row.reviewer for row in entries.ballots] == ["jury:j", "jury:k"]
        assert {s.model: s.score for s in entries.standings} == {
            "script:a.toml": 0.0,
            "script:b.toml": 1.0,
        }
        assert entries.answers[0] == AnswerEntry("a", "script:a.toml", 3)

    def test_a_session_without_answers_has_no_entries(self):
        story = Story("a", "b")
        for name in ("a", "b"):
            story.tell(e.AnswerFailed, seat=name, reason="timeout", spent=expense())

        entries = session_entries(session_of(story.closed("everything", status="failed")))

        assert (entries.standings, entries.matchups) == ((), ())
        assert (entries.answers, entries.ballots) == ((), ())

    def test_a_seat_that_reached_no_model_has_no_failure(self):
        """It has no failure to answer and no abstention: a wrong address says nothing of a model.

        Who answered, and was not reached afterwards, has both as they are.
        """
        story = Story("a", "b", "c").answers(a="A", b="B")
        story.tell(
            e.AnswerFailed, seat="c", reason="not found (404)", misconfigured=True, spent=expense()
        )
        story.casts("a: b")
        story.tell(
            e.BallotAbstained, seat="b", reason="cannot be reached", misconfigured=True,
            spent=expense(),
        )  # fmt: skip

        entries = session_entries(session_of(story.closed("all", status="degraded")))

        assert [row.seat for row in entries.answers] == ["a", "b"]
        assert [row.reviewer for row in entries.ballots] == ["script:a.toml", "script:b.toml"]
        assert [row.abstained for row in entries.ballots] == [False, True]


class TestManyAtOnce:
    """Sessions that end together are counted together."""

    def test_each_session_has_the_entries_it_has_alone(self):
        """Settings, gates and ballots differ; numbers agree up to the last digits."""
        gated = Story("a", "b", "c").answers(a="A", b="B", c="C")
        gated.tell(e.GateVerdict, seat="b", flags=("self_harm",))
        gated.casts("a: b > c").casts("c: b > a")
        voteless = Story("a", "b").answers(a="A", b="B").closed("all", status="failed")
        plain = [Session.of(of_five(f"s{number}")) for number in range(2, 12)]
        other = council_of_three(procedure=Procedure(counting=Settings.of("schulze")))
        sessions = [
            session_of(gated.closed()),
            *plain,
            session_of(other),
            session_of(voteless),
            plain[0],
        ]

        together = [rows.entries for rows in count_sessions(sessions)]

        assert [rounded(held) for held in together] == [
            rounded(session_entries(session)) for session in sessions
        ]

    def test_no_sessions_have_no_entries(self):
        assert count_sessions([]) == []


def rounded(value: object) -> object:
    """A value with its numbers to nine digits."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if is_dataclass(value):
        return {f.name: rounded(getattr(value, f.name)) for f in fields(value)}
    return [rounded(held) for held in value] if isinstance(value, tuple) else value


class TestVotes:
    """People's votes on the answers."""

    def test_votes_are_counted_separately(self):
        """They follow the seats' ballots and leave the models' rows unchanged."""
        session = session_of(council_of_three(seats=seats(a="m:a", b="m:b", c="m:c")))
        person = ballot("ann: b > a", session="s1", kind="human")

        before = session_entries(session)
        after = session_entries(session, [person])

        assert [s for s in after.standings if s.kind == "model"] == list(before.standings)
        assert {s.model: s.score for s in after.standings if s.kind == "human"} == {
            "m:b": 1.0,
            "m:a": 0.0,
        }
        assert (after.ballots[:3], after.ballots[3].reviewer) == (before.ballots, "ann")
        assert after.matchups[1].models == ("m:a", "m:b")


class TestCategory:
    """The category of a question."""

    @pytest.mark.anyio
    async def test_the_category_is_in_record_and_row(self):
        """It is a parameter of `ask`."""
        async with BaseCouncil(
            [member("a", "ba"), member("b", "ab")], clock=CountingClock()
        ) as council:
            session = await council.ask(QUESTION, category="geography")
            streamed = [x async for x in council.deliberate(QUESTION, category="coding")]

        again = session_from_json(session_to_json(session))
        assert again.opening.category == "geography"
        assert session_entries(again).session.category == "geography"
        assert streamed[0].category == "coding"

    @pytest.mark.anyio
    async def test_a_blank_category_is_refused(self):
        async with BaseCouncil(
            [member("a", "ba"), member("b", "ab")], clock=CountingClock()
        ) as council:
            with pytest.raises(InvalidParameter, match="category"):
                await council.ask(QUESTION, category=" ")

    def test_a_record_without_the_field_has_no_category(self):
        record = json.loads(session_to_json(session_of(council_of_three())))
        del record["events"][0]["category"]

        session = session_from_json(json.dumps(record))

        assert session.opening.category is None
        assert session_entries(session).session.category is None


class TestRealSessions:
    """Real sessions of a council."""

    @pytest.mark.anyio
    async def test_rows_equal_the_outcome(self):
        """Scores, probabilities and agreement are equal."""
        names = "abcd"
        members = [member(name, "cabd") for name in names]
        async with BaseCouncil(members, procedure=Procedure(), clock=CountingClock()) as council:
            session = await council.ask(QUESTION)

        entries = session_entries(session)
        outcome = session.outcome

        own = {s.model: s.score for s in entries.standings if s.rule == outcome.rule}
        assert own == {f"script:{line.candidate}": line.score for line in outcome.standings}
        best = max(line.p_best for line in outcome.standings if line.rank == 1)
        assert entries.session.agreement == best
        assert entries.matchups[0].models == tuple(f"script:{name}" for name in names)
        assert all(row.models and not any(row.own) for row in entries.ballots)
