"""The writer: sessions recorded as they run, also over a restart of the server."""

import threading
from dataclasses import replace
from threading import Thread

import anyio
import pytest

from elections import ballot
from histories import BALLOTS_IN, MODELS, send, stages, told
from postgres import restart
from witan.deliberation.events import AnswerDelta
from witan.deliberation.session import Session
from witan.errors import HistoryError
from witan.history import History, LockWait


def record(history, events):
    """Tell one recording all of these, and wait until they are durable."""
    with history.recording() as recording:
        send(recording, events)


def count(history, table, session):
    sql = f"SELECT COUNT(*) FROM {table} WHERE session = :session"  # noqa: S608
    [(found,)] = history.database.rows(sql, {"session": session})
    return found


class TestKeeping:
    """What was told is there."""

    def test_a_closed_session_comes_back_as_it_was(self, history):
        """Every event but the deltas is read back as the value that it was."""
        with history.recording() as recording:
            send(recording, told("s1"))

        assert history.session("s1") == Session.of(told("s1"))

    def test_a_flush_makes_a_stage_durable(self, place, history):
        """After a flush, another connection reads what was told before it."""
        opened, answers, *_ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers)
            recording.flush()

            with History.open(place) as other:
                assert other.session("s1").events == tuple(opened + answers)

    def test_deltas_are_not_kept(self, history):
        """A piece of an answer is shown and not stored."""
        events = told("s1")
        delta = AnswerDelta(seq=events[0].seq, at=events[0].at, seat="ada", text="ada")
        with history.recording() as recording:
            send(recording, [events[0], delta, *events[1:]])

        assert count(history, "events", "s1") == len(events)

    def test_the_closing_event_comes_with_its_entries(self, history):
        """A closed session has a ballot per reviewer, an answer per seat, and standings."""
        with history.recording() as recording:
            send(recording, told("s1"))

        assert count(history, "ballots", "s1") == len(MODELS)
        assert count(history, "answers", "s1") == len(MODELS)
        assert count(history, "standings", "s1") == len(MODELS)
        assert count(history, "matchups", "s1") == 1

    def test_an_open_session_has_no_entries(self, history):
        """Before it is closed a session counts for nothing."""
        opened, answers, ballots, _ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots)

        assert count(history, "standings", "s1") == 0
        assert history.find()[0].status == "interrupted"

    def test_the_models_are_those_behind_the_seats(self, history):
        """Standings name the model of a seat, not the seat."""
        with history.recording() as recording:
            send(recording, told("s1"))

        rows = history.database.rows(
            "SELECT DISTINCT n.name FROM standings t JOIN names n ON n.code = t.model"
        )

        assert sorted(rows) == [(f"test:{name}",) for name in MODELS]

    def test_many_recordings_at_once_do_not_mix(self, history):
        """Eight threads tell a session each; each comes back as it was."""
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

        assert [history.session(name) for name in names] == [Session.of(told(n)) for n in names]

    def test_a_clock_that_goes_back_changes_no_order(self, history):
        """Events keep the order of their numbers, whatever their times say."""
        events = told("s1")
        times = [event.at for event in reversed(events)]
        turned = [replace(event, at=at) for event, at in zip(events, times, strict=True)]
        with history.recording() as recording:
            send(recording, turned)

        assert list(history.session("s1").events) == turned

    def test_a_session_without_its_opening_is_refused(self, history):
        """A recording refuses events of a session without its opening."""
        recording = history.recording()

        with pytest.raises(HistoryError, match="from its first event"):
            recording(told("s1")[1])

    def test_a_closed_history_keeps_nothing_more(self, place):
        """What is told after closing is refused, not lost in silence."""
        history = History.open(place)
        recording = history.recording()
        history.close()

        with pytest.raises(HistoryError, match="is closed"):
            recording(told("s1")[0])

    def test_closing_keeps_what_was_told(self, place):
        """Closing the history writes what recordings were told, flushed or not."""
        with History.open(place) as history:
            send(history.recording(), told("s1"))

        with History.open(place) as again:
            assert again.session("s1") == Session.of(told("s1"))

    def test_closing_lets_go_of_whoever_waits(self, tmp_path):
        """Threads that flush while the history closes all come back."""
        for number in range(20):
            history = History.open(tmp_path / f"{number}.sqlite")
            recording = history.recording()
            send(recording, told("s1"))

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

    def test_a_flush_after_closing_returns(self, place):
        """Everything was dealt with when the history was closed."""
        history = History.open(place)
        recording = history.recording()
        send(recording, told("s1"))
        history.close()

        recording.flush()


class TestFailing:
    """What is not kept of one session says nothing of the next."""

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

    def test_the_next_session_is_durable_without_a_word(self, refused):
        """Once the failure of the first was raised, a flush speaks of the second."""
        with pytest.raises(HistoryError, match="the session a"):
            refused.flush()
        send(refused, told("b"))

        refused.flush()
        assert refused.failure is None

    def test_a_failure_is_raised_once_though_another_session_began(self, refused):
        """A failure that nobody was told of is not lost behind a session that is kept."""
        send(refused, told("b"))

        with pytest.raises(HistoryError, match="the session a"):
            refused.flush()

    def test_it_is_raised_again_until_another_begins(self, refused):
        """Asking twice is answered twice."""
        for _ in range(2):
            with pytest.raises(HistoryError, match="the session a"):
                refused.flush()


class TestHolding:
    """A session has one writer."""

    def test_what_is_told_again_is_not_doubled(self, history):
        """A resumed listener is told of everything before; all is there once."""
        opened, answers, ballots, closing = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers)
        history.claim("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots + closing)

        assert history.session("s1") == Session.of(told("s1"))

    def test_a_whole_session_told_twice_changes_nothing(self, history):
        """Telling a closed session again is no error, and doubles nothing."""
        for _ in range(2):
            with history.recording() as recording:
                send(recording, told("s1"))

        assert count(history, "events", "s1") == len(told("s1"))
        assert count(history, "ballots", "s1") == len(MODELS)

    def test_the_earlier_writer_is_refused(self, place, history):
        """Once a session was taken up, its first writer adds nothing, and is told so."""
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

        with pytest.raises(HistoryError, match="taken up by another process"):
            first.flush()
        assert first.failure is not None
        assert history.session("s1") == Session.of(told("s1", taste="other"))

    def test_a_session_that_was_not_taken_up_is_not_gone_on_with(self, place, history):
        """A second process that merely tells more of a session is refused."""
        opened, answers, ballots, _ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers)

        with History.open(place) as other, pytest.raises(HistoryError, match="taken up"):
            record(other, opened + answers + ballots)
        assert history.session("s1").events == tuple(opened + answers)

    def test_two_runs_are_never_merged(self, place, history):
        """A run that differs in what is there already is refused, though it was taken up."""
        mine, yours = list(stages("s1")), list(stages("s1", taste="other"))
        with history.recording() as recording:
            send(recording, mine[0] + mine[1] + mine[BALLOTS_IN])

        with History.open(place) as other:
            other.claim("s1")
            with pytest.raises(HistoryError, match="never merged"):
                record(other, [event for stage in yours for event in stage])
        assert history.ballots("s1") == list(Session.of(told("s1")).ballots)

    def test_a_run_that_starts_behind_what_is_there_is_refused(self, place, history):
        """Events that are older than the last one there, and not there, are refused."""
        opened, answers, *_ = stages("s1")
        record(history, [*opened, answers[0], answers[2]])

        with History.open(place) as other:
            other.claim("s1")
            with pytest.raises(HistoryError, match="never merged"):
                record(other, [*opened, answers[0], answers[1], answers[2]])

    def test_one_refused_session_does_not_disturb_another(self, place, history):
        """In one commit a refused session and a good one: the good one is kept."""
        opened, answers, ballots, _ = stages("s1")
        first, good = history.recording(), history.recording()
        send(first, opened)
        first.flush()
        with History.open(place) as other:
            other.claim("s1")
            send(first, answers + ballots)
            send(good, told("s2"))

            good.flush()

        assert history.session("s2") == Session.of(told("s2"))
        assert history.session("s1").events == tuple(opened)

    def test_a_forgotten_session_is_not_written_on(self, history):
        """What is told of a session after it was forgotten is refused."""
        opened, answers, *_ = stages("s1")
        recording = history.recording()
        send(recording, opened)
        recording.flush()
        history.forget("s1")

        send(recording, answers)

        with pytest.raises(HistoryError, match="was forgotten"):
            recording.flush()
        assert history.find() == []

    def test_a_closed_session_is_taken_up_as_it_is(self, history):
        """Taking up a closed session returns it and changes nothing."""
        with history.recording() as recording:
            send(recording, told("s1"))

        assert history.claim("s1").status == "complete"
        assert history.find()[0].status == "complete"


class TestVoting:
    """People vote on a closed session."""

    def test_a_vote_is_kept_and_counted_apart(self, history):
        """A person's ballot joins the session, with standings of its own kind."""
        with history.recording() as recording:
            send(recording, told("s1"))

        history.vote("s1", [ballot("eve: bo > ada", kind="human")])

        assert [b.reviewer for b in history.ballots("s1")] == [*MODELS, "eve"]
        people = history.database.rows("SELECT COUNT(*) FROM standings WHERE human = 1")
        assert people[0][0] >= 2
        assert count(history, "answers", "s1") == len(MODELS)

    @pytest.mark.parametrize(
        ("vote", "problem"),
        [
            (ballot("eve: bo > ada"), "only people vote later"),
            (ballot("eve: bo > zoe", kind="human"), "zoe, which has no answer there"),
            (ballot("eve: bo > ada", kind="human", session="s2"), "of the session s2"),
        ],
    )
    def test_a_vote_that_does_not_belong_is_refused(self, history, vote, problem):
        """A model's ballot, a strange name or another session: a sentence, and no change."""
        with history.recording() as recording:
            send(recording, told("s1"))

        with pytest.raises(ValueError, match=problem):
            history.vote("s1", [vote])
        assert len(history.ballots("s1")) == len(MODELS)

    def test_a_person_votes_once(self, history):
        """The second ballot of a person in a session is refused."""
        with history.recording() as recording:
            send(recording, told("s1"))
        history.vote("s1", [ballot("eve: bo > ada", kind="human")])

        with pytest.raises(ValueError, match="a person votes once"):
            history.vote("s1", [ballot("eve: ada > bo", kind="human")])

    def test_nobody_votes_on_an_open_session(self, history):
        """A session that is not closed takes no vote."""
        with history.recording() as recording:
            send(recording, told("s1")[:3])

        with pytest.raises(HistoryError, match="not closed"):
            history.vote("s1", [ballot("eve: bo > ada", kind="human")])


@pytest.fixture
def restarting():
    """Restart the server meanwhile; it is back when the test ends."""
    threads = []

    def begin(seconds):
        thread = Thread(target=restart, args=(seconds,))
        thread.start()
        threads.append(thread)
        return thread

    yield begin
    for thread in threads:
        thread.join()


def test_a_session_goes_on_over_a_restart(postgresql_url, restarting):
    """Half of it is told before, half while the server is away: all of it is kept."""
    events = told("s1")
    with History.open(postgresql_url) as history, history.recording() as recording:
        send(recording, events[:6])
        recording.flush()
        thread = restarting(1.0)
        send(recording, events[6:9])
        assert anyio.run(recording.commit, LockWait()) == events[8].seq
        thread.join()
        send(recording, events[9:])
        recording.flush()

        assert list(history.session("s1").events) == events
        assert recording.failure is None


@pytest.mark.slow
def test_what_is_read_is_read_once_the_server_is_back(postgresql_url, restarting):
    """A reader waits for the connection to be made again, and is told of nothing."""
    with History.open(postgresql_url) as history:
        with history.recording() as recording:
            send(recording, told("s1"))
        restarting(1.0).join(0.5)

        assert [found.session for found in history.find()] == ["s1"]


def test_a_server_that_is_not_there_at_all_is_refused_at_once():
    """Whoever opens a history at a wrong address waits for nothing."""
    with pytest.raises(HistoryError, match="no connection"):
        History.open("postgresql://postgres@127.0.0.1:1/witan")
