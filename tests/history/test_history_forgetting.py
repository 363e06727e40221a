"""Forgotten sessions are deleted from every table, and from the file."""

import time
from datetime import timedelta

import pytest

from clocks import SetClock
from elections import ballot
from histories import ASKED, record_sessions
from witan.errors import UnknownName
from witan.history import History, SessionImport

TABLES = (
    *("sessions", "events", "ballots", "answers", "standings", "matchups", "counted"),
    *("names", "imports", "imported"),
)


LATER = ASKED + timedelta(days=400)


def sizes(history, tables=TABLES):
    return {
        table: history.database.rows(f"SELECT COUNT(*) FROM {table}")[0][0]  # noqa: S608
        for table in tables
    }


class TestForgetting:
    """One session."""

    def test_session_is_deleted_from_every_table(self, history):
        """No row of it is left, and the other session is unchanged."""
        record_sessions(history, "s1")
        before = sizes(history)
        record_sessions(history, "s2")
        history.vote("s2", [ballot("eve: ada > bo", kind="human")])

        history.forget("s2")

        assert sizes(history) == before
        assert [found.session for found in history.find()] == ["s1"]

    @pytest.mark.parametrize("journal", ["as it is", "wal"])
    def test_no_byte_is_left_in_the_file(self, file, journal):
        """Neither the file nor its log holds the question, an answer or the name of a voter."""
        plans = "the plan for the island"
        with History.open(file) as history:
            if journal == "wal":
                history.database.rows("PRAGMA journal_mode = wal")
            record_sessions(history, "s1")
            record_sessions(history, "s2", question=plans, closing=plans.upper())
            history.vote("s2", [ballot("Evangeline: ada > bo", kind="human")])
            assert any(plans.encode() in p.read_bytes() for p in beside(file))

            history.forget("s2")

            for path in beside(file):
                held = path.read_bytes()
                for text in (plans, plans.upper(), "Evangeline", "ada says s2"):
                    assert text.encode() not in held, (path.name, text)

    def test_name_of_a_voter_elsewhere_stays(self, history):
        """Only people without a vote in another session lose their names."""
        for name in ("s1", "s2"):
            record_sessions(history, name)
            history.vote(name, [ballot("eve: ada > bo", kind="human")])

        history.forget("s1")
        assert ("eve",) in history.database.rows("SELECT name FROM names")
        history.forget("s2")
        assert ("eve",) not in history.database.rows("SELECT name FROM names")

    def test_file_can_be_imported_again_once_forgotten(self, history):
        """After its last session is forgotten, the import counts as new."""
        brought = [SessionImport(n, ASKED, ballots=(ballot("a: b > c"),)) for n in ("s1", "s2")]
        history.add(brought, "f", "d")
        history.forget("s1")
        assert history.add(brought, "f", "d").sessions == 0
        history.forget("s2")

        assert history.add(brought, "f", "d").sessions == 2

    def test_rejudging_no_longer_names_the_forgotten_session(self, history):
        """A second jury's session outlives the first, without its name."""
        record_sessions(history, "s1")
        record_sessions(history, "s2")
        history.database.execute("UPDATE sessions SET parent = 's1' WHERE session = 's2'")

        history.forget("s1")

        assert history.find()[0].parent is None


class TestForgettingFiles:
    """A file with forgotten sessions."""

    def test_session_of_two_files_can_be_imported_from_either(self, history):
        """Neither file still counts as imported."""
        brought = [SessionImport("q1", ASKED, ballots=(ballot("a: b > c"),))]
        history.add(brought, "a.jsonl", "d1")
        history.add(brought, "b.jsonl", "d2")

        history.forget("q1")

        assert history.add(brought, "b.jsonl", "d2").sessions == 1

    def test_two_contents_of_one_path_are_two_files(self, history):
        """The first can be imported again while the second, of the same path, is there."""
        first = [SessionImport("p1", ASKED, ballots=(ballot("a: b > c"),))]
        history.add(first, "a.jsonl", "d1")
        history.add([SessionImport("p2", ASKED, ballots=(ballot("a: b > c"),))], "a.jsonl", "d2")

        history.forget("p1")

        assert history.add(first, "a.jsonl", "d1").sessions == 1
        assert history.find_import("d2") == 1


class TestSeveral:
    """Many sessions at once."""

    def test_unknown_session_among_them_deletes_none(self, history):
        """All are forgotten, or none."""
        record_sessions(history, "s1")

        with pytest.raises(UnknownName, match="s9"):
            history.forget("s1", "s9")
        assert [found.session for found in history.find()] == ["s1"]

    def test_reader_does_not_prevent_forgetting(self, file):
        """The sessions are deleted, and a note says what remains in the log."""
        with History.open(file) as history, History.open(file) as other:
            history.database.rows("PRAGMA journal_mode = wal")
            for name in ("s1", "s2", "s3"):
                record_sessions(history, name)
            with other.database.snapshot():
                assert len(other.find()) == 3
                began = time.monotonic()
                forgotten = history.forget("s1", "s2", "s3")
                took = time.monotonic() - began

            assert forgotten.n_sessions == 3
            assert "other processes" in forgotten.note
            assert history.find() == []
            assert took < 40
            assert history.database.rows("PRAGMA busy_timeout") == [(10_000,)]


class TestRetention:
    """Deletion by age."""

    def test_older_sessions_are_forgotten(self, history):
        """A session of that very time stays; the number forgotten is reported."""
        for hour in range(4):
            record_sessions(history, f"s{hour}", at=ASKED + timedelta(hours=hour))

        assert history.forget_before(ASKED + timedelta(hours=2)).n_sessions == 2
        assert [found.session for found in history.find()] == ["s3", "s2"]

    def test_more_than_one_block_is_forgotten(self, history):
        """Five hundred sessions of an import are forgotten in one call."""
        brought = [
            SessionImport(f"s{k}", ASKED, ballots=(ballot("a: b > c"),), question="?")
            for k in range(500)
        ]
        history.add(brought, "f", "d")

        assert history.forget_before(ASKED + timedelta(seconds=1)).n_sessions == 500
        assert sizes(history, ("sessions", "ballots", "standings", "imports")) == {
            "sessions": 0, "ballots": 0, "standings": 0, "imports": 0,
        }  # fmt: skip

    def test_names_of_many_people_take_one_search(self, file):
        """To forget the votes of four hundred people takes little longer than that of one."""
        seconds = [_seconds_to_forget(file, n_people) for n_people in (1, 400)]

        assert seconds[1] < 8 * seconds[0]

    def test_nothing_older_is_no_error(self, history):
        """An empty history has nothing to forget."""
        assert history.forget_before(ASKED).n_sessions == 0

    def test_age_of_an_import_counts_from_its_import(self, place):
        """Old sessions imported lately stay."""
        with History.open(place, clock=SetClock(LATER)) as history:
            record_sessions(history, "s1")
            history.add([SessionImport("old", ASKED, ballots=(ballot("a: b > c"),))], "f", "d")

            assert history.forget_added_before(LATER).n_sessions == 1
            assert [found.session for found in history.find()] == ["old"]
            assert history.forget_added_before(LATER + timedelta(1)).n_sessions == 1


def _seconds_to_forget(file, n_people):
    """Forget a session with votes of people, beside thousands of sessions without them."""
    names = [f"person {n}" for n in range(n_people)]
    cast = tuple(ballot(f"{name}: b > c", kind="human") for name in names)
    others = [SessionImport(f"s{k}", ASKED, ballots=(ballot("a: b > c"),)) for k in range(4_000)]
    with History.open(file) as history:
        history.add(others, "f", "d")
        history.add([SessionImport("voted", ASKED, ballots=cast)], "g", f"{n_people}")
        began = time.process_time()
        history.forget("voted")
        return time.process_time() - began


def beside(file):
    return [path for path in file.parent.iterdir() if path.name.startswith(file.name)]
