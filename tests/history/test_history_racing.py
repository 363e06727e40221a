"""Concurrent changes to one session leave no half-finished state."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from elections import ballot
from histories import ASKED, record_sessions, session_events, stages
from witan.errors import HistoryError
from witan.history import History, SessionImport

TABLES = ("sessions", "events", "ballots", "answers", "standings", "matchups", "counted")


def row_counts(history):
    """The number of rows of each table."""
    return {
        table: history.database.rows(f"SELECT COUNT(*) FROM {table}")[0][0]  # noqa: S608
        for table in TABLES
    }


@pytest.fixture
def slow(postgresql_url):
    """A second history on the server, which can pause while deleting."""
    with History.open(postgresql_url) as history:
        history.database.execute(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_sleep(0.8); RETURN NULL; END'"
        )
        yield history


def waits_after(history, table):
    """Make deletions from a table pause before continuing."""
    history.database.execute(
        f"CREATE TRIGGER waits AFTER DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION wait()"
    )


def deleting(history):
    """Wait until another connection has begun to delete."""
    sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    for _ in range(2_000):
        if history.database.rows(sql) != [(0,)]:
            return
        threading.Event().wait(0.002)
    pytest.fail("nobody deletes")


class TestForgetting:
    """Writes to a session while it is being forgotten."""

    @pytest.mark.parametrize("table", ["ballots", "events", "sessions"])
    def test_recording_during_deletion_is_refused(self, slow, postgresql_url, table):
        """However far the deletion is, the recording stores nothing."""
        opened, answers, *later = stages("s1")
        with History.open(postgresql_url) as history:
            recording = history.recording()
            for event in opened + answers:
                recording(event)
            recording.flush()
            waits_after(slow, table)
            forgetting = threading.Thread(target=slow.forget, args=("s1",))
            forgetting.start()
            deleting(history)
            for stage in later:
                for event in stage:
                    recording(event)

            with pytest.raises(HistoryError, match="was deleted"):
                recording.flush()
            forgetting.join()

            assert set(row_counts(history).values()) == {0}

    def test_import_during_deletion_is_new(self, slow, postgresql_url):
        """A session deleted while its file is read again is imported again."""
        brought = [SessionImport("s1", ballots=(ballot("a: b > c"),))]
        with History.open(postgresql_url) as history:
            history.add(brought, "f", "d1")
            waits_after(slow, "sessions")
            forgetting = threading.Thread(target=slow.forget, args=("s1",))
            forgetting.start()
            deleting(history)

            added = history.add(brought, "g", "d2")
            forgetting.join()

            assert added.sessions == len(history.find()) == 1

    def test_votes_of_many_people_are_forgotten_beside_further_ones(self, postgresql_url):
        """Both lock the names in one order, so neither waits for the other forever."""
        cast = tuple(ballot(f"person {n}: b > c", kind="human") for n in range(450))
        waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        names = "SELECT 1 FROM names WHERE code"
        low = "SELECT code FROM names ORDER BY code OFFSET 8 LIMIT 1"
        with History.open(postgresql_url) as history, History.open(postgresql_url) as other:
            history.add([SessionImport("s1", ASKED, ballots=cast)], "f", "d")
            history.database.execute("ANALYZE")  # the server then groups codes by their hash
            with ThreadPoolExecutor() as threads:
                with other.database.transaction():
                    other.database.rows(f"{names} = ({low}) FOR KEY SHARE")
                    forgetting = threads.submit(history.forget, "s1")
                    while other.database.rows(waits) == [(0,)]:
                        threading.Event().wait(0.01)
                    other.database.rows(f"{names} > ({low}) ORDER BY code FOR KEY SHARE")

                assert forgetting.result(timeout=30).n_sessions == 1

    def test_sessions_of_several_files_are_forgotten_beside_others_of_them(self, postgresql_url):
        """Both lock the files in one order, however many sessions there are."""
        waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        lock = "SELECT 1 FROM imports WHERE digest = '{}' FOR UPDATE"
        names = [f"s{n:03}" for n in range(201)]
        imports = [SessionImport(name, ASKED, ballots=(ballot("r: b > c"),)) for name in names]
        with History.open(postgresql_url) as history, History.open(postgresql_url) as other:
            history.add(imports[:200], "f", "d2")
            history.add(imports[200:], "f", "d1")
            with ThreadPoolExecutor() as threads:
                with other.database.transaction():
                    other.database.rows(lock.format("d1"))
                    forgetting = threads.submit(history.forget, *names)
                    while other.database.rows(waits) == [(0,)]:
                        threading.Event().wait(0.01)
                    other.database.rows(lock.format("d2"))

                assert forgetting.result(timeout=30).n_sessions == 201


class TestCountingLater:
    """Changes to a session while it is counted under a further rule."""

    def test_vote_during_counting_is_counted(self, history):
        """Standings without the vote are discarded: the session is counted again."""
        record_sessions(history, "s1")
        votes = [ballot("eve: bo > ada", kind="human")]

        def weigh(casts):
            if votes:
                history.vote("s1", [votes.pop()])
            return {}

        assert history.recount("schulze", weigh) == 1

        sql = "SELECT DISTINCT human FROM standings WHERE rule = 'schulze' ORDER BY human"
        assert history.database.rows(sql) == [(0,), (1,)]

    def test_session_forgotten_during_counting_leaves_nothing(self, history):
        """Its standings are not written."""
        record_sessions(history, "s1")

        def weigh(casts):
            history.forget("s1")
            return {}

        assert history.recount("schulze", weigh) == 0
        assert set(row_counts(history).values()) == {0}

    def test_counting_waits_for_a_deletion(self, slow, postgresql_url):
        """The session's row is locked: standings are never added behind a deletion."""
        with History.open(postgresql_url) as history:
            record_sessions(history, "s1")
            waits_after(slow, "sessions")
            forgetting = threading.Thread(target=slow.forget, args=("s1",))

            def weigh(casts):
                forgetting.start()
                deleting(history)
                return {}

            assert history.recount("schulze", weigh) == 0
            forgetting.join()
            assert set(row_counts(history).values()) == {0}

    def test_concurrent_counting_doubles_nothing(self, place, history):
        """Of two counts of the same sessions, one adds them."""
        record_sessions(history, "s1")
        counted = []

        def weigh(casts):
            with History.open(place) as other:
                counted.append(other.recount("schulze"))
            return {}

        counted.append(history.recount("schulze", weigh))

        assert counted == [1, 0]
        sql = "SELECT COUNT(*) FROM standings WHERE rule = 'schulze'"
        assert history.database.rows(sql) == [(5,)]


class TestClaiming:
    """A session that another process still holds."""

    HOLDER = (
        "import sys; from histories import stages; from witan.history import *\n"
        "recording = History.open(sys.argv[1]).recording()\n"
        "[recording(event) for stage in list(stages('s1'))[:2] for event in stage]\n"
        "recording.flush(); print('held', flush=True); sys.stdin.read()"
    )

    @pytest.fixture
    def holder(self, place, running):
        """A process that holds the session s1."""
        return running(self.HOLDER, place)

    def test_claim_is_refused_while_the_holder_lives(self, history, holder):
        """The error names the process; its hold stays."""
        with pytest.raises(HistoryError, match=f"process {holder.pid}") as refused:
            history.claim("s1")

        assert "take_over" in str(refused.value)

    @pytest.mark.usefixtures("holder")
    def test_forced_claim_succeeds(self, history):
        """The caller holds the session from then on."""
        history.claim("s1", force=True)

        with history.recording() as recording:
            for event in session_events("s1"):
                recording(event)
        assert history.session("s1").status == "complete"

    def test_claim_succeeds_once_the_holder_is_gone(self, history, holder):
        """A killed process holds nothing, and neither does another with its number."""
        holder.kill()
        holder.wait()

        assert history.claim("s1").status == "interrupted"
