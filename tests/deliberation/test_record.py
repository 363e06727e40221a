"""The record: sessions round-trip, bytes are reproducible, damage is refused in a sentence."""

import gc
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.core.ballot import Ballot
from witan.core.blinding import Sheet
from witan.core.gate import Gate
from witan.core.interpretation import Counting
from witan.core.outcome import Prior
from witan.core.rubric import Anchor, Ceiling, Criterion, Rubric
from witan.core.rules import RULES
from witan.core.scale import Scale
from witan.core.settings import Settings
from witan.core.stats.priors import Severity
from witan.core.tally import tally_sessions
from witan.deliberation import events as e
from witan.deliberation.plan import Plan, PlanLine
from witan.deliberation.ports import Expense, Message, Options, Price, Seat, Usage
from witan.deliberation.procedure import Limits, Procedure, ThrottlePolicy
from witan.deliberation.record import (
    event_from_json,
    event_to_json,
    procedure_to_json,
    session_from_json,
    session_to_json,
    to_plain,
)
from witan.deliberation.session import Session
from witan.errors import SessionFileError
from witan.files.ballots import read_ballots

NOON = datetime(2026, 11, 2, 12, 0, 0, 250_000, tzinfo=UTC)
NAMES = ("a", "b", "c")
SPENT = Expense(Usage(120, 40), 0.0031, 1.5, 2)
BALLOTS = (
    Ballot("a", (("b",), ("c",)), {"b": 9, "c": 8.5}, "q1", candidates=NAMES, notes="née\u2028…"),
    Ballot("b", (("a", "c"),), {"a": "8/10", "c": {"accuracy": 7, "clarity": 8.0}}, "q1"),
    Ballot("c", (("a",), ("b",)), session="q1", positions={"b": 1, "a": 2}, weight=2, at=NOON),
)


def open_session(**more: Any) -> e.SessionOpened:
    """Open a session of three seats in which no setting has its default."""
    seats = (
        Seat("a", "openai:gpt-5", "openai", Options(0.5, 900, "low", "Be brief."), Price(2, 8.5)),
        Seat("b", "script:b.toml", "script", simulated=True),
        Seat("c", "ollama:x", "ollama"),
    )
    counting = Settings.of(
        "hybrid", alpha=1, weights={"a": 2, "b": 0.5}, prior=Prior(1.5, 20, 0.25, "grades", 60)
    )
    throttling = {"openai": ThrottlePolicy(4, 30), "ollama": ThrottlePolicy(1, float("inf"))}
    given = {
        "session": "q1",
        "question": "Why is the sky blue?\x85\U0001f30d",
        "conversation": (Message("user", "Hello"), Message("assistant", "Hi")),
        "files": {"notes.txt": "one\ntwo"},
        "seats": seats,
        "chairmen": seats[:1],
        "procedure": Procedure(
            counting,
            "verdict",
            review_rounds=2,
            debate_rounds=1,
            enough=2,
            limits=Limits(60, max_cost_usd=1, providers=throttling),
        ),
        "plan": Plan((PlanLine("a", "answer", 1, 200, 900, None),), 3, None),
        "seed": 2**63,
        "witan": "0.1.0",
    }
    return e.SessionOpened(seq=1, at=NOON, **{**given, **more})


def story(rule: str = "borda") -> list[e.Event]:
    """Tell a session with every kind of event."""
    [outcome] = tally_sessions(BALLOTS, Settings(rule=rule))
    sheet = Sheet("a", ("c", "b"), ("A", "B"), "5d41")
    told: list[tuple[type[e.Event], dict[str, Any]]] = [
        *((e.AnswerStarted, {"seat": name}) for name in NAMES),
        (e.AnswerDelta, {"seat": "a", "text": "Because"}),
        (e.CallRetried, {"seat": "a", "stage": "answer", "attempt": 1, "reason": "429",
                         "wait_seconds": 2}),
        (e.TextWithdrawn, {"seat": "a", "stage": "answer"}),
        *((e.AnswerDone, {"seat": s, "text": f"By {s}", "spent": SPENT}) for s in NAMES),
        (e.AnswerFailed, {"seat": "c", "round": 2, "reason": "call timeout", "spent": SPENT}),
        (e.GateVerdict, {"seat": "b", "flags": ("self_harm",)}),
        (e.SheetDrawn, {"sheet": sheet, "mirrored": True}),
        (e.ReviewStarted, {"seat": "a"}),
        (e.BallotRepaired, {"seat": "a", "problem": "says nothing", "reply": ""}),
        *((e.BallotCast, {"seat": b.reviewer, "ballot": b, "replies": ("{}", "half \ud83d"),
                          "read_by": "tolerant", "notes": ("left out of its ranking: a",),
                          "flipped": 1, "compared": 3, "spent": SPENT}) for b in BALLOTS),
        (e.BallotAbstained, {"seat": "b", "round": 2, "reason": "late", "spent": Expense()}),
        (e.OutcomeChanged, {"outcome": outcome, "counted": NAMES}),
        (e.Decided, {"leader": "a", "cancelled": ("c",)}),
        (e.FruitlessResume, {"since": 3}),
        (e.SynthesisStarted, {"chairman": "a", "mode": "verdict"}),
        (e.SynthesisDelta, {"chairman": "a", "text": "Yes"}),
        (e.SynthesisFailedOver, {"chairman": "a", "reason": "500", "next": None, "spent": SPENT}),
        (e.SynthesisDone, {"chairman": None, "mode": "verdict", "text": "Yes, as [A] says.",
                           "labels": {"A": "b"}, "approved": True, "spent": SPENT}),
        (e.SessionClosed, {"status": "degraded", "missing": ("one ballot",), "cost_usd": None,
                           "known_usd": 0, "seconds": 38.25}),
    ]  # fmt: skip
    later = [
        kind(seq=seq, at=NOON + timedelta(seconds=seq), **held)
        for seq, (kind, held) in enumerate(told, start=2)
    ]
    return [open_session(), *later]


def exact(value: object) -> object:
    """The value, nested to the last field, with the type of every number."""
    if hasattr(value, "__dataclass_fields__"):
        held = {f.name: exact(getattr(value, f.name)) for f in fields(value)}
        return type(value).__name__, held
    if isinstance(value, Mapping):
        return {key: exact(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return type(value).__name__, [exact(inner) for inner in value]
    return type(value).__name__, value


class TestRoundTrip:
    """What is written is read back."""

    def test_the_story_has_every_kind_of_event(self):
        """These tests leave out no kind of event."""
        assert {event.kind for event in story()} == set(e.EVENTS)

    @pytest.mark.parametrize("event", story(), ids=lambda event: event.kind)
    def test_every_event_round_trips(self, event):
        """It takes one line, and whole numbers stay whole."""
        line = event_to_json(event)

        again = event_from_json(line)

        assert exact(again) == exact(event)
        assert event_to_json(again) == line
        assert len(line.splitlines()) == 1

    @pytest.mark.parametrize("event", story(), ids=lambda event: event.kind)
    @pytest.mark.parametrize("seconds", [1.5, float("inf")])
    def test_fields_are_written_in_the_order_of_declaration(self, event, seconds):
        """Only `provisional` is left out where it is false."""
        if hasattr(event, "spent"):
            event = replace(event, spent=replace(event.spent, seconds=seconds))

        again = json.loads(event_to_json(event))

        declared = {"event": event.kind, **to_plain(event)}
        del declared["provisional"]
        assert json.dumps(again) == json.dumps(declared)

    @pytest.mark.parametrize("rule", [name for name in RULES if name != "elo"])
    def test_the_outcome_of_every_rule_round_trips(self, rule):
        """It includes the numbers specific to the rule."""
        [outcome] = tally_sessions(BALLOTS, Settings(rule=rule))
        event = e.OutcomeChanged(seq=1, at=NOON, outcome=outcome, counted=NAMES)

        assert exact(event_from_json(event_to_json(event))) == exact(event)

    @pytest.mark.parametrize("prior", [None, Prior(0.5, inf, 1.0, "grades", 60)])
    @pytest.mark.parametrize("df", [2.5, inf])
    def test_infinite_degrees_of_freedom_round_trip(self, prior, df):
        """They may be in an event or a part of one."""
        [outcome] = tally_sessions(BALLOTS, Settings(rule="borda"))
        outcome = replace(outcome, prior=prior, df=df)
        event = e.OutcomeChanged(seq=1, at=NOON, outcome=outcome, counted=NAMES)

        assert exact(event_from_json(event_to_json(event))) == exact(event)

    @pytest.mark.parametrize("indent", [None, 2])
    def test_a_session_round_trips(self, indent):
        """It is equal after reading, and gives the same bytes again."""
        session = Session.of(story())
        text = session_to_json(session, indent=indent)

        again = session_from_json(text)

        assert again == session
        assert session_to_json(again, indent=indent).encode() == text.encode()

    def test_a_read_session_is_freed_at_once(self):
        """Reading leaves no cycle that keeps its texts until the next garbage collection."""
        record = session_to_json(Session.of(story()))
        session_from_json(record)
        gc.collect()

        session_from_json(record)

        assert gc.collect() == 0

    @pytest.mark.parametrize("length", range(1, 30, 4))
    def test_an_interrupted_session_round_trips(self, length):
        """It may be interrupted after any event."""
        session = Session.of(story()[:length])

        assert session_from_json(session_to_json(session)) == session

    def test_a_recount_needs_only_the_record(self):
        """It gives the same outcome as the live session."""
        session = Session.of(story())
        again = session_from_json(session_to_json(session))

        assert again.recount("schulze") == session.recount("schulze")
        assert again.recount() == session.recount()

    def test_a_time_keeps_its_zone(self):
        event = e.ReviewStarted(seq=1, at=NOON.astimezone(timezone(timedelta(hours=2))), seat="a")

        assert '"at":"2026-11-02T14:00:00.250000+02:00"' in event_to_json(event)
        assert event_from_json(event_to_json(event)) == event

    @given(
        text=st.text(),
        names=st.lists(st.text(), unique=True, max_size=3),
        grade=st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        seconds=st.floats(0, 1e300) | st.integers(0),
        cost=st.none() | st.floats(0, 9),
    )
    def test_any_text_number_and_name_round_trips(self, text, names, grade, seconds, cost):
        grades = {name: grade if i % 2 else {text: grade} for i, name in enumerate(names)}
        event = e.BallotCast(
            seq=1,
            at=NOON,
            seat=text,
            ballot=Ballot(text, (tuple(names),), grades),
            replies=(text,),
            read_by="schema",
            spent=Expense(cost_usd=cost, seconds=seconds),
        )

        assert exact(event_from_json(event_to_json(event))) == exact(event)


class TestOtherReaders:
    """Programs other than Witan read a summary in the record."""

    def test_the_summary_precedes_the_events(self):
        """It has question, status, texts and costs."""
        record = json.loads(session_to_json(Session.of(story())))

        assert list(record)[:4] == ["witan_session", "witan", "session", "simulated"]
        assert list(record)[-1] == "events"
        assert (record["witan_session"], record["session"]) == (1, "q1")
        assert (record["simulated"], record["status"]) == (True, "degraded")
        assert record["text"] == "Yes, as [A] says."
        assert record["answers"] == {"a": "By a", "b": "By b", "c": "By c"}
        assert record["cost"]["total_usd"] is None
        assert record["cost"]["known_usd"] == pytest.approx(0.0031 * 9)

    def test_the_ballots_are_lines_of_a_ballot_file(self, tmp_path):
        """Each is on a line, and any reader of ballots can read it."""
        session = Session.of(story())
        path = tmp_path / "votes.jsonl"
        lines = [json.dumps(b) for b in json.loads(session_to_json(session))["ballots"]]
        path.write_text("\n".join(lines), encoding="utf-8")

        assert list(read_ballots(path)) == list(session.ballots)

    def test_the_record_is_strict_json(self):
        """It contains no infinity and no lone surrogate, even if the session does."""
        text = session_to_json(Session.of(story()))

        json.loads(text, parse_constant=pytest.fail)
        assert "\\ud83d" in text
        assert "\U0001f30d" in text


def broken(change: Any) -> str:
    """Change the record of the story."""
    record = json.loads(session_to_json(Session.of(story())))
    change(record)
    return json.dumps(record)


def field(path: str, value: Any) -> str:
    """Set one field of the first event."""

    def change(record: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        held = record["events"][0]
        for name in parents:
            held = held[int(name)] if name.isdigit() else held[name]
        held[last] = value

    return broken(change)


SIGHT = "event 1: procedure.counting"
BROKEN = {
    "empty": ("", "is not JSON at line 1, column 1: the file is truncated there"),
    "ballots": ("{}\n{}", "holds more than one session: another value begins at line 2, column 1"),
    "not JSON": ("question: why", "is not JSON at line 1, column 1: Expecting value"),
    "a list": ("[]", "is not a JSON object; expected {…} with one session"),
    "another object": ("{}", "is not a session: it has no field witan_session"),
    "depth": ("[" * 100_000, "is not a session: something in it is nested too deeply"),
    "a later version": (
        '{"witan_session": 2}',
        "is a session of version 2, and this Witan reads version 1; update Witan to read it",
    ),
    "no events": ('{"witan_session": 1}', "is not a complete session: events is not a list"),
    "no opening": (
        broken(lambda r: r["events"].pop(0)),
        "the events do not begin with the opening of a session",
    ),
    "no event": (
        broken(lambda r: r["events"].insert(3, 7)),
        "events[3] is not an event; expected a map with the field 'event'",
    ),
    "an unknown kind": (
        broken(lambda r: r["events"][3].update(event="dance")),
        "event 4 is of the unknown kind 'dance'; a later version of Witan may read it",
    ),
    "a missing field": (
        broken(lambda r: r["events"][3].pop("seat")),
        "event 4: seat is missing",
    ),
    "text for a number": (field("seq", "1"), "events[0]: seq is the text '1'; expected a whole"),
    "true for a number": (field("seq", True), "events[0]: seq is true; expected a whole number"),
    "a negative seed": (
        field("seed", -8),
        "event 1: seed is the number -8; expected a whole number",
    ),
    "no zone": (field("at", "2026-11-02T12:00:00"), "event 1: at has no time zone; expected"),
    "no time": (field("at", 7), "event 1: at is the number 7; expected a time with its zone"),
    "another word": (
        field("procedure.mode", "war"),
        "event 1: procedure.mode is the text 'war'; expected 'consensus' or 'best' or 'verdict'",
    ),
    "a nested field": (
        field("seats.1.price", {"input_usd": 1, "output_usd": "2"}),
        "event 1: seats[1].price.output_usd is the text '2'; expected a number",
    ),
    "a map for a list": (field("seats", {}), "event 1: seats is a map; expected a list"),
    "a list for a map": (field("files", []), "event 1: files is a list; expected a map"),
    "neither of two": (
        field("procedure.counting.prior", {"noise_variance": 1}),
        f"{SIGHT}.prior.noise_df is missing",
    ),
    "a rule that is not there": (
        field("procedure.counting.rule", "bordda"),
        f"{SIGHT} cannot be: unknown rule 'bordda'; did you mean 'borda'?",
    ),
    "a rubric that does not add up": (
        field("procedure.counting.counting.rubric.criteria.0.weight", 0.9),
        f"{SIGHT}.counting.rubric cannot be: the rubric 'general' has weights that sum to",
    ),
}


class TestBroken:
    """An unreadable record is reported in a sentence, with the place."""

    @pytest.mark.parametrize(("text", "problem"), BROKEN.values(), ids=BROKEN)
    def test_the_error_names_file_field_and_expectation(self, text, problem):
        with pytest.raises(SessionFileError) as caught:
            session_from_json(text, "talk.json")

        assert str(caught.value).startswith(f"talk.json: {problem}")

    def test_a_truncated_file_is_reported(self):
        """The error states where it ends."""
        whole = session_to_json(Session.of(story()))

        for length in range(1, len(whole), 101):
            with pytest.raises(SessionFileError, match=r"line 1, column \d+"):
                session_from_json(whole[:length])

    def test_a_line_without_an_event_is_refused(self):
        with pytest.raises(SessionFileError, match=r"^line 7: seat is missing$"):
            event_from_json(
                '{"event": "review_started", "seq": 1, "at": "2026-11-02T12:00:00Z"}', "line 7"
            )

    def test_a_line_with_no_event_is_refused(self):
        with pytest.raises(
            SessionFileError, match=r"^line 7: the record is not an event; expected"
        ):
            event_from_json("{}", "line 7")

    def test_fields_of_a_later_minor_version_are_ignored(self):
        """They may be anywhere."""
        session = Session.of(story())

        def add(record: dict[str, Any]) -> None:
            record["mood"] = "calm"
            record["events"][0]["weather"] = [1, 2]
            record["events"][0]["procedure"]["limits"]["patience"] = None

        assert session_from_json(broken(add)) == session

    def test_a_negative_time_of_an_earlier_version_is_read(self):
        """That version wrote it when the clock was set back; it counts as none."""
        *events, last = story()
        ended = replace(last, seconds=-3.5)
        assert event_from_json(event_to_json(ended)) == ended
        assert Session.of([*events, ended]).seconds == 0

    @given(data=st.data())
    def test_any_damage_is_read_or_refused(self, data):
        """No other exception is raised, whatever is replaced."""
        event = json.loads(event_to_json(data.draw(st.sampled_from(story()))))
        held = event
        while True:
            key = data.draw(st.sampled_from(sorted(held) if isinstance(held, dict) else
                                            range(len(held))))  # fmt: skip
            if not held[key] or not isinstance(held[key], dict | list) or data.draw(st.booleans()):
                break
            held = held[key]
        held[key] = data.draw(st.sampled_from([None, True, 3, -0.5, "x", [], {}, [1], {"x": 1}]))

        try:
            event_from_json(json.dumps(event))
        except SessionFileError as refused:
            assert refused.path == "the event"  # noqa: PT017 - either end is right


def test_a_second_session_shares_nothing_with_the_first():
    """Changing the seed in the record changes only the seed of the session."""
    session = session_from_json(field("seed", 8))

    assert session.opening == replace(open_session(), seed=8)


def procedure_of(part: Any) -> Procedure:
    """A procedure that differs from the default only in this part."""
    if isinstance(part, Procedure):
        return part
    if isinstance(part, Anchor):
        part = replace(CRITERION, anchors=(part,))
    if isinstance(part, Criterion):
        part = Rubric("style", (part,))
    if isinstance(part, Ceiling):
        part = Rubric("style", (CRITERION,), (part,))
    if isinstance(part, Rubric):
        part = Counting(rubric=part)
    if isinstance(part, Counting):
        part = Settings(counting=part)
    if isinstance(part, ThrottlePolicy):
        part = Limits(providers={"openai": part})
    return Procedure(limits=part) if isinstance(part, Limits) else Procedure(counting=part)


ANCHOR = Anchor(1, 5, "hard to read")
CRITERION = Criterion("style", 1.0, "Does it read well?", (ANCHOR,))
PARTS: list[tuple[Any, dict[str, Any]]] = [
    (
        Procedure(),
        {
            "counting": Settings(),
            "mode": "best",
            "synthesis": False,
            "json_schema": "{}",
            "rubric_scoring": False,
            "holistic": True,
            "self_review": True,
            "mirrored": True,
            "pairs": 3,
            "review_rounds": 2,
            "debate_rounds": 1,
            "spend": "adaptive",
            "safety": True,
            "safety_cap": 1.0,
            "enough": 2,
            "quorum": 3,
            "limits": Limits(attempts=2),
        },
    ),
    (
        Settings("hybrid"),
        {
            "rule": "borda",
            "parameters": {"alpha": 0.25},
            "counting": Counting("after"),
            "scale": "0-1",
            "kind": "model",
            "ties": "intervals",
            "level": 0.9,
            "threshold": 2.0,
            "tie_break": "wins",
            "weights": {"a": 2},
            "rho": 0.2,
            "prior": None,
            "reliability": {"a": 2},
            "severity": Severity(("a",), (0.5,), ((0.1,),), 1.0, 60),
            "gates": {"q1": Gate({"a": ("a flag",)})},
            "flips": False,
            "looks": (3, 4),
        },
    ),
    (
        Counting(),
        {"recusal": "off", "unranked": "last", "rubric": Rubric("style", (CRITERION,))},
    ),
    (
        Rubric("style", (CRITERION,)),
        {
            "name": "tone",
            "criteria": (replace(CRITERION, anchors=()),),
            "ceilings": (Ceiling("style", 3, 5),),
            "scale": Scale(),
        },
    ),
    (
        CRITERION,
        {"name": "tone", "weight": 1.0005, "description": "Is it kind?", "anchors": ()},
    ),
    (ANCHOR, {"low": 2, "high": 6, "text": "easy to read"}),
    (Ceiling("style", 3, 5), {"criterion": "style", "below": 2, "at_most": 6}),
    (
        Limits(),
        {
            "call_seconds": 60.0,
            "stage_seconds": 200.0,
            "session_seconds": 800.0,
            "grace_seconds": 5.0,
            "attempts": 2,
            "hedge_seconds": 5.0,
            "max_tokens": 100,
            "max_cost_usd": 1.0,
            "max_calls": 90,
            "providers": {"openai": ThrottlePolicy(4)},
        },
    ),
    (ThrottlePolicy(), {"concurrency": 4, "per_minute": 30}),
]


class TestProcedure:
    """A procedure as a key."""

    @pytest.mark.parametrize(("part", "changes"), PARTS, ids=lambda value: type(value).__name__)
    def test_procedures_that_differ_in_a_field_differ_in_json(self, part, changes):
        variants = [part, *(replace(part, **{name: v}) for name, v in changes.items())]
        procedures = [procedure_of(variant) for variant in variants]
        texts = {procedure_to_json(procedure) for procedure in procedures}
        n_different = sum(one not in procedures[:n] for n, one in enumerate(procedures))

        assert changes.keys() == {each.name for each in fields(part) if each.init}
        assert len(texts) == n_different >= len(changes)

    def test_equal_procedures_have_equal_json(self):
        """The JSON stays the same after reading the record."""
        session = session_from_json(session_to_json(Session.of(story())))

        assert procedure_to_json(session.opening.procedure) == procedure_to_json(
            open_session().procedure
        )
