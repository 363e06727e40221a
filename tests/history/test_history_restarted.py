"""A PostgreSQL that is restarted while sessions run costs them nothing."""

from threading import Thread

import anyio
import pytest

from histories import told
from postgres import restart
from witan.errors import HistoryError
from witan.history import History, LockWait


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


def tell(recording, events):
    for event in events:
        recording(event)


def test_a_session_goes_on_over_a_restart(postgresql_url, restarting):
    """Half of it is told before, half while the server is away: all of it is kept."""
    events = told("s1")
    with History.open(postgresql_url) as history, history.recording() as recording:
        tell(recording, events[:6])
        recording.flush()
        thread = restarting(1.0)
        tell(recording, events[6:9])
        assert anyio.run(recording.commit, LockWait()) == events[8].seq
        thread.join()
        tell(recording, events[9:])
        recording.flush()

        assert list(history.session("s1").events) == events
        assert recording.failure is None


def test_what_is_read_is_read_once_the_server_is_back(postgresql_url, restarting):
    """A reader waits for the connection to be made again, and is told of nothing."""
    with History.open(postgresql_url) as history:
        with history.recording() as recording:
            tell(recording, told("s1"))
        restarting(1.0).join(0.5)

        assert [found.session for found in history.find()] == ["s1"]


def test_a_server_that_is_not_there_at_all_is_refused_at_once():
    """Whoever opens a history at a wrong address waits for nothing."""
    with pytest.raises(HistoryError, match="no connection"):
        History.open("postgresql://postgres@127.0.0.1:1/witan")
