"""Imports: files are stored whole, once, and never over other ballots."""

import json
from datetime import UTC, datetime, timedelta
from math import nan

import numpy as np
import pytest

from clocks import SetClock
from elections import ballot, ballots
from histories import ASKED, session_events
from witan.core.ballot import Ballot, to_record
from witan.core.session_ballots import Entries, MatchupEntry, SessionEntry
from witan.deliberation.session import Session
from witan.errors import HistoryError
from witan.history import History, ImportCounts, SessionImport
from witan.history.rows import Rows


def session(name, *lines, **fields):
    cast = ballots(*(lines or ("a: b > c", "b: c > a", "c: b > a")), session=name)
    return SessionImport(name, ASKED, "Which?", ballots=tuple(cast), **fields)


def everything(history):
    tables = ("sessions", "events", "ballots", "answers", "standings", "matchups", "imports")
    return {
        table: sorted(map(repr, history.database.rows(f"SELECT * FROM {table}")))  # noqa: S608
        for table in tables
    }


class TestAdding:
    """A file of ballots."""

    def test_import_has_standings(self, history):
        """Sessions, ballots, answers and standings are stored, and listed with their file."""
        one = session("s1", answers={"b": "B!"}, lengths={"c": 7}, category="coding")

        assert history.add([one], "votes.csv", "d1") == ImportCounts(1, 0, 3)

        assert history.ballots("s1") == list(one.ballots)
        assert history.answers("s1") == {"b": "B!"}
        [found] = history.find()
        assert (found.source, found.status, found.leader) == ("votes.csv", "complete", "b")
        lengths = history.database.rows("SELECT seat, chars FROM answers ORDER BY seat")
        assert ("b", 2) in lengths
        assert ("c", 7) in lengths

    def test_importing_a_file_twice_changes_nothing(self, history):
        """A file known by its digest is not read."""
        history.add([session("s1"), session("s2")], "votes.csv", "d1")
        before = everything(history)

        def unread():
            raise AssertionError
            yield

        assert history.add(unread(), "again.csv", "d1") == ImportCounts(0, 2, 0)
        assert everything(history) == before

    def test_session_with_the_same_ballots_stays(self, history):
        """Another file with an old session and a new one adds the new one."""
        history.add([session("s1")], "old.csv", "d1")

        assert history.add([session("s1"), session("s2")], "new.csv", "d2") == ImportCounts(1, 1, 3)
        assert len(history.ballots("s1")) == 3

    def test_ballots_as_earlier_versions_wrote_them_are_known(self, history):
        """Earlier versions put spaces between the fields, and escaped letters beyond ASCII."""
        one = session("s1", "é: b > c", "b: c > b")
        history.add([one], "votes.csv", "d1")
        for number, cast in enumerate(one.ballots, start=1):
            history.database.execute(
                "UPDATE ballots SET body = :body WHERE ballot = :number",
                {"body": json.dumps(to_record(cast)), "number": number},
            )
        before = everything(history)["ballots"]

        assert history.add([one], "other.csv", "d2") == ImportCounts(0, 1, 0)
        assert everything(history)["ballots"] == before

    def test_grades_of_numpy_are_known_again(self, history):
        """They are stored as the plain numbers that are read back, beside any name."""
        cast = Ballot("é", grades={"b": np.float64(8.5), "c": 5}, session="s1")
        one = SessionImport("s1", ASKED, ballots=(cast,))

        assert history.add([one], "a frame", "d1") == ImportCounts(1, 0, 1)
        assert history.add([one], "the same frame", "d2") == ImportCounts(0, 1, 0)

    def test_other_ballots_for_a_stored_session_are_refused(self, history):
        """The error names the session, and nothing of the file is stored."""
        history.add([session("s1")], "old.csv", "d1")
        before = everything(history)

        with pytest.raises(HistoryError, match=r"session s1.*with other ballots"):
            history.add([session("s0"), session("s1", "a: c > b")], "new.csv", "d2")
        assert everything(history) == before

    def test_duplicate_session_in_a_file_is_refused(self, history):
        """Where its ballots agree, it is counted as known instead."""
        assert history.add([session("s1"), session("s1")], "f", "d1") == ImportCounts(1, 1, 3)
        with pytest.raises(HistoryError, match="other ballots"):
            history.add([session("s2"), session("s2", "a: c > b")], "f", "d2")

    def test_interrupted_import_stores_nothing(self, history):
        """A reader that fails after a thousand sessions leaves no row of them."""
        before = everything(history)

        def broken():
            for k in range(1000):
                yield session(f"s{k}", "a: b > c")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            history.add(broken(), "cut.csv", "d1")
        assert everything(history) == before
        assert history.database.rows("SELECT * FROM names") == []

    def test_file_without_times_is_dated_by_the_clock(self, place):
        """Sessions without a time get the time of the import."""
        with History.open(place, clock=SetClock(datetime(2026, 1, 1, tzinfo=UTC))) as history:
            history.add([SessionImport("s1", ballots=(ballot("a: b > c"),))], "f", "d")

            assert history.find()[0].at == datetime(2026, 1, 1, tzinfo=UTC)

    def test_every_list_is_json(self, history):
        """Booleans, nulls and non-finite numbers, in any mixture."""
        lists = ((True, 2.0), (False, 1e-9), (True, True), (nan, None))
        entry = SessionEntry("s1", ASKED, None)
        rows = Rows()
        rows.add(
            "s1", Entries(entry, matchups=(MatchupEntry("model", ("a", "b"), *lists),)), (), {}
        )
        with history.database.transaction():
            rows.write(history.database)

        [found] = history.database.rows("SELECT wins, losses, ties, p_beats FROM matchups")
        assert list(map(json.loads, found)) == [[1, 2.0], [0, 1e-9], [1, 1], [None, None]]

    def test_people_and_models_have_separate_standings(self, history):
        """Ballots of people have standings of their own."""
        cast = (ballot("a: b > c"), ballot("eve: c > b", kind="human"))
        history.add([SessionImport("s1", ASKED, ballots=cast)], "f", "d")

        kinds = history.database.rows("SELECT DISTINCT human FROM standings ORDER BY human")

        assert kinds == [(0,), (1,)]

    def test_vote_on_an_imported_session_is_counted(self, history):
        """A person votes on it, and the file can still be imported again."""
        history.add([session("s1", answers={"b": "B!"})], "f", "d1")

        history.vote("s1", [ballot("eve: a > b", kind="human")])

        assert history.add([session("s1", answers={"b": "B!"})], "f", "d2") == ImportCounts(0, 1, 0)
        assert [b.reviewer for b in history.ballots("s1")] == ["a", "b", "c", "eve"]
        assert history.answers("s1") == {"b": "B!"}

    def test_imported_ballots_cannot_be_resumed(self, history):
        """Ballots without events are no session to resume."""
        history.add([session("s1")], "votes.csv", "d1")

        with pytest.raises(HistoryError, match=r"as ballots, from votes\.csv"):
            history.claim("s1")

    def test_every_field_of_a_ballot_is_stored(self, history):
        """Grades by criterion, positions, authors, weights and notes are unchanged."""
        full = Ballot(
            "r",
            (("x",), ("y", "z")),
            {"x": {"clarity": 9.0, "overall": 8.0}, "y": 5.0, "z": "7/10"},
            session="s1",
            candidates=("x", "y", "z"),
            authors={"x": "m1", "y": "m2"},
            positions={"x": 2, "y": 1},
            weight=0.5,
            category="c",
            at=ASKED + timedelta(microseconds=1),
            notes="n",
            scale="1-10",
        )
        history.add([SessionImport("s1", ASKED, ballots=(full,))], "f", "d")

        assert history.ballots("s1") == [full]


class TestWholeSessions:
    """Council sessions from a file."""

    def test_record_is_imported_with_its_events(self, history):
        """It is read back whole, with the entries of a session recorded here."""
        record = Session.of(session_events("s1"))

        history.add([SessionImport("s1", session_record=record)], "s.jsonl", "d1")

        assert history.session("s1") == record
        assert history.find()[0].source == "s.jsonl"
        assert len(history.ballots("s1")) == 5
        assert history.database.rows("SELECT COUNT(*) FROM standings") == [(5,)]

    def test_different_run_of_a_known_record_is_refused(self, history):
        """The same record changes nothing; one that continues differently is refused."""
        for digest in ("d1", "d2"):
            history.add(
                [SessionImport("s1", session_record=Session.of(session_events("s1")))], "f", digest
            )

        other = Session.of(session_events("s1", taste="other"))
        with pytest.raises(HistoryError, match="another record"):
            history.add([SessionImport("s1", session_record=other)], "f", "d3")
        assert history.session("s1") == Session.of(session_events("s1"))

    def test_interrupted_record_can_be_resumed(self, history):
        """An incomplete record is stored as it is, and is resumed here."""
        broken = Session.of(session_events("s1")[:6])
        history.add([SessionImport("s1", session_record=broken)], "f", "d1")

        history.claim("s1")
        with history.recording() as recording:
            for event in session_events("s1"):
                recording(event)

        assert history.session("s1") == Session.of(session_events("s1"))
