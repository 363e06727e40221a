"""The writer: sessions recorded while they run, also over a restart of the server."""

import threading
from dataclasses import replace
from threading import Thread

import anyio
import pytest

from elections import ballot
from histories import BALLOTS_IN, MODELS, send, session_events, stages
from postgres import restart
from witan.deliberation.events import AnswerDelta
from witan.deliberation.session import Session
from witan.errors import HistoryError
from witan.history import History, LockWait


def record(history, events):
    """Record all of these events, and wait until they are durable."""
    with history.recording() as recording:
        send(recording, events)


def count(history, table, session):
    sql = f"SELECT COUNT(*) FROM {table} WHERE session = :session"  # noqa: S608
    [(found,)] = history.database.rows(sql, {"session": session})
    return found


class TestRecording:
    """Recorded events are stored."""

    def test_closed_session_is_read_as_it_was(self, history):
        """Every event but the deltas is read back with its value."""
        with history.recording() as recording:
            send(recording, session_events("s1"))

        assert history.session("s1") == Session.of(session_events("s1"))

    def test_flush_makes_a_stage_durable(self, place, history):
        """After a flush, another connection reads the events before it."""
        opened, answers, *_ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers)
            recording.flush()

            with History.open(place) as other:
                assert other.session("s1").events == tuple(opened + answers)

    def test_deltas_are_not_stored(self, history):
        """A piece of an answer is shown and not stored."""
        events = session_events("s1")
        delta = AnswerDelta(seq=events[0].seq, at=events[0].at, seat="ada", text="ada")
        with history.recording() as recording:
            send(recording, [events[0], delta, *events[1:]])

        assert count(history, "events", "s1") == len(events)

    def test_closing_event_stores_the_entries(self, history):
        """A closed session has a ballot per reviewer, an answer per seat, and standings."""
        with history.recording() as recording:
            send(recording, session_events("s1"))

        assert count(history, "ballots", "s1") == len(MODELS)
        assert count(history, "answers", "s1") == len(MODELS)
        assert count(history, "standings", "s1") == len(MODELS)
        assert count(history, "matchups", "s1") == 1

    def test_open_session_has_no_entries(self, history):
        """A session counts once it is closed."""
        opened, answers, ballots, _ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots)

        assert count(history, "standings", "s1") == 0
        assert history.find()[0].status == "interrupted"

    def test_standings_name_models_rather_than_seats(self, history):
        """Standings name the model of a seat, not the seat."""
        with history.recording() as recording:
            send(recording, session_events("s1"))

        rows = history.database.rows(
            "SELECT DISTINCT n.name FROM standings t JOIN names n ON n.code = t.model"
        )

        assert sorted(rows) == [(f"test:{name}",) for name in MODELS]

    def test_concurrent_recordings_do_not_mix(self, history):
        """Eight threads record a session each; each is read as it was."""
        names = [f"s{k}" for k in range(8)]

        def run(name):
            with history.recording() as recording:
                for stage in stages(name):
                    send(recording, stage)
                    recording.flush()

        threads = [threading.Thread(target=run, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [history.session(name) for name in names] == [
            Session.of(session_events(n)) for n in names
        ]

    def test_clock_going_back_changes_no_order(self, history):
        """Events are in order of their numbers, whatever their times."""
        events = session_events("s1")
        times = [event.at for event in reversed(events)]
        turned = [replace(event, at=at) for event, at in zip(events, times, strict=True)]
        with history.recording() as recording:
            send(recording, turned)

        assert list(history.session("s1").events) == turned

    def test_session_without_its_opening_is_refused(self, history):
        """A recording refuses events of a session without its opening."""
        recording = history.recording()

        with pytest.raises(HistoryError, match="from its first event"):
            recording(session_events("s1")[1])

    def test_closed_history_refuses_events(self, place):
        """Events after closing are refused, not lost silently."""
        history = History.open(place)
        recording = history.recording()
        history.close()

        with pytest.raises(HistoryError, match="is closed"):
            recording(session_events("s1")[0])

    def test_closing_writes_pending_events(self, place):
        """Closing the history writes the events of its recordings, flushed or not."""
        with History.open(place) as history:
            send(history.recording(), session_events("s1"))

        with History.open(place) as again:
            assert again.session("s1") == Session.of(session_events("s1"))

    def test_closing_releases_waiting_threads(self, tmp_path):
        """Threads that flush while the history closes all return."""
        for number in range(20):
            history = History.open(tmp_path / f"{number}.sqlite")
            recording = history.recording()
            send(recording, session_events("s1"))

            def flush(recording=recording):
                for _ in range(50):
                    recording.flush()

            threads = [threading.Thread(target=flush, daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            history.close()
            for thread in threads:
                thread.join(10)

            assert not any(thread.is_alive() for thread in threads)

    def test_flush_after_closing_returns(self, place):
        """Closing leaves nothing to flush."""
        history = History.open(place)
        recording = history.recording()
        send(recording, session_events("s1"))
        history.close()

        recording.flush()


class TestFailing:
    """A failure of one session does not affect the next."""

    @pytest.fixture
    def refused(self, place, history):
        """A recording whose session a was taken up by another, and went on all the same."""
        opened, answers, *_ = stages("a")
        recording = history.recording()
        send(recording, opened)
        recording.flush()
        with History.open(place) as other:
            other.claim("a")
        send(recording, answers)
        return recording

    def test_next_session_is_durable_after_a_failure(self, refused):
        """Once the first failure was raised, a flush concerns the second session."""
        with pytest.raises(HistoryError, match="the session a"):
            refused.flush()
        send(refused, session_events("b"))

        refused.flush()
        assert refused.failure is None

    def test_failure_is_raised_though_another_session_began(self, refused):
        """An unreported failure is not lost behind a stored session."""
        send(refused, session_events("b"))

        with pytest.raises(HistoryError, match="the session a"):
            refused.flush()

    def test_failure_is_raised_until_another_session_begins(self, refused):
        """Two flushes raise it twice."""
        for _ in range(2):
            with pytest.raises(HistoryError, match="the session a"):
                refused.flush()


class TestClaiming:
    """A session has one writer."""

    def test_repeated_events_are_not_doubled(self, history):
        """A resumed session repeats its events; each is stored once."""
        opened, answers, ballots, closing = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers)
        history.claim("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots + closing)

        assert history.session("s1") == Session.of(session_events("s1"))

    def test_repeated_session_changes_nothing(self, history):
        """Recording a closed session again is no error, and doubles nothing."""
        for _ in range(2):
            with history.recording() as recording:
                send(recording, session_events("s1"))

        assert count(history, "events", "s1") == len(session_events("s1"))
        assert count(history, "ballots", "s1") == len(MODELS)

    def test_earlier_writer_is_refused(self, place, history):
        """Once a session is claimed, its first writer gets an error and adds nothing."""
        mine, yours = list(stages("s1")), list(stages("s1", taste="other"))
        first = history.recording()
        send(first, mine[0] + mine[1])
        first.flush()
        with History.open(place) as other:
            other.claim("s1")
            with other.recording() as second:
                for stage in yours:
                    send(second, stage)

        send(first, mine[BALLOTS_IN])

        with pytest.raises(HistoryError, match="resumed by another process"):
            first.flush()
        assert first.failure is not None
        assert history.session("s1") == Session.of(session_events("s1", taste="other"))

    def test_unclaimed_session_is_not_continued(self, place, history):
        """A second process that records more of a session is refused."""
        opened, answers, ballots, _ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers)

        with History.open(place) as other, pytest.raises(HistoryError, match="resumed by"):
            record(other, opened + answers + ballots)
        assert history.session("s1").events == tuple(opened + answers)

    def test_two_runs_are_never_merged(self, place, history):
        """A run that differs from the stored one is refused, even after a claim."""
        mine, yours = list(stages("s1")), list(stages("s1", taste="other"))
        with history.recording() as recording:
            send(recording, mine[0] + mine[1] + mine[BALLOTS_IN])

        with History.open(place) as other:
            other.claim("s1")
            with pytest.raises(HistoryError, match="never merged"):
                record(other, [event for stage in yours for event in stage])
        assert history.ballots("s1") == list(Session.of(session_events("s1")).ballots)

    def test_event_before_the_last_one_is_refused(self, place, history):
        """Events older than the last stored one, and not stored, are refused."""
        opened, answers, *_ = stages("s1")
        record(history, [*opened, answers[0], answers[2]])

        with History.open(place) as other:
            other.claim("s1")
            with pytest.raises(HistoryError, match="never merged"):
                record(other, [*opened, answers[0], answers[1], answers[2]])

    def test_refused_session_does_not_affect_another(self, place, history):
        """Of a refused and a good session in one commit, the good one is stored."""
        opened, answers, ballots, _ = stages("s1")
        first, good = history.recording(), history.recording()
        send(first, opened)
        first.flush()
        with History.open(place) as other:
            other.claim("s1")
            send(first, answers + ballots)
            send(good, session_events("s2"))

            good.flush()

        assert history.session("s2") == Session.of(session_events("s2"))
        assert history.session("s1").events == tuple(opened)

    def test_forgotten_session_takes_no_events(self, history):
        """Events of a session after it was forgotten are refused."""
        opened, answers, *_ = stages("s1")
        recording = history.recording()
        send(recording, opened)
        recording.flush()
        history.forget("s1")

        send(recording, answers)

        with pytest.raises(HistoryError, match="was deleted"):
            recording.flush()
        assert history.find() == []

    def test_claiming_a_closed_session_changes_nothing(self, history):
        """The claim returns the session."""
        with history.recording() as recording:
            send(recording, session_events("s1"))

        assert history.claim("s1").status == "complete"
        assert history.find()[0].status == "complete"


class TestVoting:
    """People vote on a closed session."""

    def test_vote_is_stored_and_counted_separately(self, history):
        """A person's ballot joins the session, with standings of its own kind."""
        with history.recording() as recording:
            send(recording, session_events("s1"))

        history.vote("s1", [ballot("eve: bo > ada", kind="human")])

        assert [b.reviewer for b in history.ballots("s1")] == [*MODELS, "eve"]
        people = history.database.rows("SELECT COUNT(*) FROM standings WHERE human = 1")
        assert people[0][0] >= 2
        assert count(history, "answers", "s1") == len(MODELS)

    @pytest.mark.parametrize(
        ("vote", "problem"),
        [
            (ballot("eve: bo > ada"), "only people can vote"),
            (ballot("eve: bo > zoe", kind="human"), "zoe, which has no answer"),
            (ballot("eve: bo > ada", kind="human", session="s2"), "belongs to the session s2"),
        ],
    )
    def test_invalid_vote_is_refused(self, history, vote, problem):
        """A model's ballot, a strange name or another session: a sentence, and no change."""
        with history.recording() as recording:
            send(recording, session_events("s1"))

        with pytest.raises(ValueError, match=problem):
            history.vote("s1", [vote])
        assert len(history.ballots("s1")) == len(MODELS)

    def test_person_votes_once(self, history):
        """The second ballot of a person in a session is refused."""
        with history.recording() as recording:
            send(recording, session_events("s1"))
        history.vote("s1", [ballot("eve: bo > ada", kind="human")])

        with pytest.raises(ValueError, match="a person votes once"):
            history.vote("s1", [ballot("eve: ada > bo", kind="human")])


@pytest.fixture
def restart_server():
    """Restart the server in the background; it is back when the test ends."""
    threads = []

    def begin(seconds):
        thread = Thread(target=restart, args=(seconds,))
        thread.start()
        threads.append(thread)
        return thread

    yield begin
    for thread in threads:
        thread.join()


def test_session_continues_over_a_restart(postgresql_url, restart_server):
    """Half of it is recorded before, half while the server is away: all is stored."""
    events = session_events("s1")
    with History.open(postgresql_url) as history, history.recording() as recording:
        send(recording, events[:6])
        recording.flush()
        thread = restart_server(1.0)
        send(recording, events[6:9])
        assert anyio.run(recording.commit, LockWait()) == events[8].seq
        thread.join()
        send(recording, events[9:])
        recording.flush()

        assert list(history.session("s1").events) == events
        assert recording.failure is None


@pytest.mark.slow
def test_reading_waits_for_the_server(postgresql_url, restart_server):
    """A reader waits for the new connection, without an error."""
    with History.open(postgresql_url) as history:
        with history.recording() as recording:
            send(recording, session_events("s1"))
        restart_server(1.0).join(0.5)

        assert [found.session for found in history.find()] == ["s1"]


def test_missing_server_is_refused_at_once():
    """Opening a history at a wrong address does not wait."""
    with pytest.raises(HistoryError, match="no connection"):
        History.open("postgresql://postgres@127.0.0.1:1/witan")
