"""A session that retries another, in the history: the most complete that is closed counts."""

from dataclasses import replace
from datetime import timedelta

import pytest

from histories import told
from witan.analytics.cache import CachedEngine
from witan.analytics.engine import SqlEngine
from witan.analytics.sums import Reductions
from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.history import Imported
from witan.history.counting import SUPERSEDED_SESSIONS
from witan.history.schema import bucket_of


def retried(name: str, parent: str, days: int = 1) -> list[e.Event]:
    """The events of a session that retries another some days after it."""
    later = timedelta(days=days)
    opened, *rest = (replace(event, at=event.at + later) for event in told(name))
    return [replace(opened, parent=parent, relation="retried"), *rest]


def record(history, *sessions) -> None:
    with history.recording() as recording:
        for events in sessions:
            for event in events:
                recording(event)


def answers(history) -> int:
    """How many answers count, by the rows and by the cache, which agree."""
    by_rows = Reductions(SqlEngine(history.database)).answers().answers.sum()
    by_sums = Reductions(CachedEngine(history.database)).answers().answers.sum()
    assert by_rows == by_sums
    return int(by_rows)


@pytest.fixture
def n(history) -> int:
    """Answers of one session, which is in the history as s1; its sums are cached."""
    record(history, told("s1"))
    return answers(history)


def test_it_takes_the_place_of_its_parent_when_it_is_closed(history, n):
    """Until then the parent counts; what was cached of it by then is summed anew."""
    *events, closed = retried("s2", "s1")
    with history.recording() as recording:
        for event in events:
            recording(event)
        recording.flush()
        assert answers(history) == n
        recording(closed)
    assert answers(history) == n
    assert answers(history) == n

    assert [found.session for found in history.find(parent="s1")] == ["s2"]
    rows = history.database.rows("SELECT session, bucket FROM sessions ORDER BY session")
    assert rows == [("s1", bucket_of("s1")), ("s2", bucket_of("s1"))]


@pytest.mark.parametrize("parents", [("s1", "s2", "s1"), ("s1", "s1", "s1"), ("s1", "s2", "s3")])
def test_of_a_family_one_counts_whoever_is_forgotten(history, n, parents):
    """Retried again and again, in a row or side by side; forgotten one by one."""
    names = ["s2", "s3", "s4"]
    for day, (name, parent) in enumerate(zip(names, parents, strict=True), start=1):
        record(history, retried(name, parent, day))
        assert answers(history) == n
    for name in ("s2", "s1", "s4"):
        history.forget(name)
        assert answers(history) == n
        assert answers(history) == n


def test_imported_it_takes_the_place_of_its_parent_as_well(history, n):
    """A record from elsewhere is of the family of the session that it names."""
    held = Session.of(retried("s2", "s1"))
    imported = Imported(held.id, ballots=held.ballots, session_record=held)
    history.add([imported], "s2.json", "a digest")

    assert answers(history) == n
    assert answers(history) == n


def test_nothing_is_learned_from_it_twice(history, n):
    """Whoever is to learn nothing from a session learns nothing from its family either."""
    from witan.history.reading import sessions_sharing_answers

    record(history, retried("s2", "s1"))

    assert n
    assert sessions_sharing_answers(history.database, "s1") == ["s1", "s2"]
    assert sessions_sharing_answers(history.database, "s2") == ["s1", "s2"]


def without(events, *, ballots: int = 0, **closed) -> list[e.Event]:
    """A session in which so many fewer ballots were cast, and that ended otherwise."""
    left = [event for event in events if not isinstance(event, e.BallotCast)]
    cast = [event for event in events if isinstance(event, e.BallotCast)]
    at = events.index(cast[0])
    whole = [*left[:at], *cast[: len(cast) - ballots], *left[at:]]
    return [
        replace(event, seq=seq, **(closed if isinstance(event, e.SessionClosed) else {}))
        for seq, event in enumerate(whole, start=1)
    ]


@pytest.mark.parametrize("worse", [{"ballots": 2}, {"status": "failed"}])
def test_one_that_came_out_worse_takes_no_place(history, n, worse):
    """With fewer ballots, or none that count, its parent goes on counting."""
    counting = [("s1",), ("s2",)]
    record(history, without(retried("s2", "s1"), **worse))

    assert answers(history) == n
    assert superseded(history) == counting[1:]
    record(history, retried("s3", "s2", 2))
    assert answers(history) == n
    assert superseded(history) == counting


def superseded(history) -> list[tuple[str]]:
    """The sessions that count for nothing."""
    return sorted(history.database.rows(SUPERSEDED_SESSIONS))
