"""Sessions are read as stored, and exported as imported."""

import pytest

from elections import ballot
from histories import ASKED, record_sessions, session_events
from witan.core.session_ballots import AnswerEntry
from witan.deliberation.record import event_to_json
from witan.deliberation.session import Session
from witan.errors import HistoryError, UnknownName
from witan.files.exports import write_sessions
from witan.files.imports import read_imports
from witan.history import SessionImport


class TestReading:
    """One session."""

    def test_ballots_and_answers_are_unchanged(self, history):
        """They are those of the session's events, closed or not."""
        record_sessions(history, "s1")
        with history.recording() as recording:
            for event in session_events("s2")[:-1]:
                recording(event)

        for name in ("s1", "s2"):
            assert history.ballots(name) == list(Session.of(session_events(name)).ballots)
            assert history.answers(name)["ada"] == f"ada says {name}."

    @pytest.mark.parametrize("method", ["session", "ballots", "answers", "claim", "forget"])
    def test_unknown_session_suggests_the_nearest(self, history, method):
        """The error on a misspelt name has the right one."""
        record_sessions(history, "session-one")

        with pytest.raises(UnknownName, match="did you mean 'session-one'"):
            getattr(history, method)("sesion-one")

    def test_all_council_sessions_are_read_in_blocks(self, history):
        """They are in order of name, whatever the size of a block."""
        record_sessions(history, "c", "a", "b")

        assert [session.id for session in history.sessions(size=2)] == ["a", "b", "c"]

    def test_a_damaged_session_is_named_with_what_helps(self, history):
        """A file is copied by a check; a server is not, so that is not suggested."""
        record_sessions(history, "s1")
        history.database.execute("UPDATE events SET body = '{}' WHERE kind = 'answer_done'")

        with pytest.raises(HistoryError, match=r"event \d+ of the session s1") as refused:
            history.session("s1")

        is_file = history.database.dialect == "sqlite"
        assert ("run witan doctor" in str(refused.value)) == is_file
        assert ("delete the session with witan forget" in str(refused.value)) == (not is_file)
        assert history.forget("s1").sessions == ("s1",)

    def test_unstorable_text_is_in_the_events(self, history):
        """NUL and lone surrogates are in the events, and break no list."""
        record_sessions(history, "s1", question="What \0 and \ud83d?")

        assert history.session("s1").question == "What \0 and \ud83d?"
        assert history.find("what")[0].session == "s1"


class TestBodies:
    """The stored form of an event."""

    @pytest.mark.parametrize("question", ["Which?", "A\u2028B \x85 \ud83d \0 é"])
    def test_stored_event_is_the_line_of_a_record(self, history, question):
        """Each event is stored as the very line that a record has of it."""
        record_sessions(history, "s1", question=question)

        stored = history.database.rows("SELECT body FROM events ORDER BY seq")
        lines = [event_to_json(event) for event in session_events("s1", question=question)]
        assert [body for (body,) in stored] == lines


def test_facts_of_the_seats_are_exported(history, tmp_path):
    """Models, order-consistency, repairs and costs survive export and import."""
    took = tuple(
        AnswerEntry(seat, f"lab:{seat}", len(seat), 1.0, 0.5, 5) for seat in ("ada", "bo", "cy")
    )
    one = SessionImport(
        "s1",
        ASKED,
        ballots=tuple(
            ballot(text, session="s1") for text in ("ada: bo > cy", "bo: ada > cy", "cy: ada > bo")
        ),
        answers={"ada": "ada", "bo": "bo", "cy": "cy"},
        models={"ada": "lab:ada", "bo": "lab:bo", "cy": "lab:cy"},
        kept={"ada": (1, 2)},
        repaired=("bo",),
        took=took,
    )

    history.add([one], "f", "d")

    assert history.export("s1") == one
    write_sessions([history.export("s1")], tmp_path / "out")
    assert list(read_imports(tmp_path / "out")) == [one]
    rows = history.database.rows(
        "SELECT n.name, b.kept, b.compared, b.repaired FROM ballots b"
        " JOIN names n ON n.code = b.reviewer ORDER BY b.ballot"
    )
    assert rows == [("lab:ada", 1, 2, 0), ("lab:bo", 0, 0, 1), ("lab:cy", 0, 0, 0)]
    assert history.database.rows("SELECT SUM(cost_usd) FROM answers") == [(1.5,)]
