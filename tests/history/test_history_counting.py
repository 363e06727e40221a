"""Counting sessions: under later rules, rejudged, retried, and by a jury."""

from dataclasses import replace
from datetime import timedelta

import pytest

from elections import ballots
from histories import ASKED, record_sessions, session_events
from lessons import lessons
from witan.analytics.leaderboards import leaderboard
from witan.analytics.sums import CachedEngine, WindowSums
from witan.analytics.views import SqlEngine
from witan.core.stats.sums import AnswerSums, PanelSums
from witan.deliberation import events as e
from witan.deliberation.events import AnswerDone, BallotCast, GateVerdict, OutcomeChanged
from witan.deliberation.openings import collect_answers
from witan.deliberation.session import Session
from witan.history import SessionImport
from witan.history.schema import SUPERSEDED_SESSIONS, bucket_of


class TestCountingLater:
    """Sessions are counted under a further rule on the first request for it."""

    def test_every_session_is_counted_once(self, history):
        """Its standings are those of the rule, and nothing is left to count."""
        record_sessions(history, "s1", "s2", "s3")

        assert history.recount("schulze") == 3
        assert history.recount("schulze") == 0
        for name in ("s1", "s2", "s3"):
            expected = Session.of(session_events(name)).recount("schulze").standings
            assert scores(history, name, "schulze") == {
                f"test:{line.candidate}": pytest.approx(line.score) for line in expected
            }

    def test_session_keeps_its_own_settings(self, history):
        """An answer that failed the gate wins under no rule, however late it is counted."""
        gated = Session.of(failing("s1", "ada"))
        with history.recording() as recording:
            for event in gated.events:
                recording(event)

        history.recount("schulze")

        expected = {
            f"test:{line.candidate}": line.score for line in gated.recount("schulze").standings
        }
        found = scores(history, "s1", "schulze")
        assert found == pytest.approx(expected)
        assert found["test:ada"] == min(found.values())

    def test_imported_session_is_counted(self, history):
        """Its ballots are counted under the default settings."""
        cast = tuple(ballots("a: b > c", "b: c > a", "c: b > a", session="s1"))
        history.add([SessionImport("s1", ASKED, ballots=cast)], "f", "d")

        assert history.recount("schulze") == 1
        assert set(scores(history, "s1", "schulze")) == {"a", "b", "c"}

    def test_uncountable_session_is_tried_once(self, history):
        """A rule without a row for a session does not count it again and again."""
        cast = tuple(ballots("a: b > c", "b: c > a", session="s1"))
        history.add([SessionImport("s1", ASKED, ballots=cast)], "f", "d")

        assert history.recount("elo") == 1
        assert scores(history, "s1", "elo") == {}
        assert history.recount("elo") == 0

    def test_damaged_session_is_left_out_each_time(self, history):
        """Also where no other is left to count."""
        record_sessions(history, "s1")
        answer = next(each for each in session_events("s2") if isinstance(each, AnswerDone))
        with history.recording() as recording:
            for each in session_events("s2"):
                recording(replace(each, round=7) if each == answer else each)

        for n_counted in (1, 0):
            damaged = set()
            assert history.recount("schulze", damaged=damaged) == n_counted
            assert damaged == {"s2"}

    def test_simulated_sessions_are_not_counted(self, history):
        """Scripted models are on no leaderboard."""
        record_sessions(history, "s1", simulated=True)

        assert history.recount("schulze") == 0


def scores(history, session, rule):
    """Model to its score under a rule, by the models' ballots."""
    sql = (
        "SELECT n.name, t.score FROM standings t JOIN names n ON n.code = t.model"
        " WHERE t.session = :session AND t.rule = :rule AND t.human = 0"
    )
    return dict(history.database.rows(sql, {"session": session, "rule": rule}))


def failing(name, seat):
    """A session with a unanimous first choice that failed the gate."""
    events = []
    for event in session_events(name):
        if isinstance(event, BallotCast):
            others = tuple(group for group in event.ballot.groups if group != (seat,))
            first = () if event.seat == seat else ((seat,),)
            cast = replace(event.ballot, groups=(*first, *others), grades={})
            events.append(replace(event, ballot=cast))
        elif isinstance(event, OutcomeChanged):
            events.append(GateVerdict(seq=0, at=event.at, seat=seat, flags=("self_harm",)))
        else:
            events.append(event)
    return [replace(event, seq=number) for number, event in enumerate(events, start=1)]


def rejudged(name: str, parent: str) -> list[e.Event]:
    """The events of a session whose jury casts the ballots that were cast in its parent."""
    first = Session.of(session_events(parent))
    opened, *later = session_events(name)
    jury = tuple(
        replace(s, name=f"{s.name}'s twin", source=f"test:twin-{s.name}") for s in opened.seats
    )
    opened = replace(
        opened, jury=jury, answers=collect_answers(first), parent=parent, relation="rejudged"
    )
    events = [opened]
    for event in later:
        if isinstance(event, e.BallotCast):
            seat = f"{event.seat}'s twin"
            ballot = replace(event.ballot, reviewer=seat)
            events.append(replace(event, seat=seat, ballot=ballot))
        elif getattr(event, "seat", None) is None:
            events.append(event)
    return events


def test_parent_and_relation_are_stored(history):
    """They are there from the first event on, and after closing."""
    events = rejudged("s2", "s1")
    with history.recording() as recording:
        for event in (*session_events("s1"), events[0]):
            recording(event)
        recording.flush()
        assert (history.summary("s2").parent, history.summary("s2").relation) == ("s1", "rejudged")
        for event in events[1:]:
            recording(event)

    assert [found.session for found in history.find(parent="s1")] == ["s2"]
    assert history.find(parent="s2") == []
    assert history.summary("s2").parent == "s1"
    assert history.session("s2").opening.parent == "s1"


def test_parent_may_be_missing_from_the_history(history):
    """Answers may come from a file; its session's name is stored."""
    with history.recording() as recording:
        for event in rejudged("s2", "elsewhere"):
            recording(event)

    assert history.summary("s2").parent == "elsewhere"


def test_rows_name_members_as_candidates_and_jurors_as_reviewers(history):
    """The rows name the models by their role."""
    with history.recording() as recording:
        for event in rejudged("s2", "s1"):
            recording(event)

    sql = "SELECT n.name FROM ballots b JOIN names n ON n.code = b.reviewer ORDER BY b.ballot"
    assert {name for (name,) in history.database.rows(sql, {})} <= {
        f"test:twin-{seat}" for seat in ("ada", "bo", "cy", "di", "ed")
    }
    sql = "SELECT DISTINCT n.name FROM standings s JOIN names n ON n.code = s.model"
    assert all("twin" not in name for (name,) in history.database.rows(sql, {}))


def test_sessions_of_the_same_answers_share_a_bucket(history):
    """A rejudging of a rejudging has the bucket of the first session."""
    with history.recording() as recording:
        for event in (*session_events("s1"), *rejudged("s2", "s1")):
            recording(event)
        recording.flush()
        opened, *later = rejudged("s3", "s1")
        for event in (replace(opened, parent="s2"), *later):
            recording(event)

    rows = history.database.rows("SELECT session, bucket, rejudged FROM sessions")
    assert sorted(rows) == [
        (name, bucket_of("s1"), int(name != "s1")) for name in ("s1", "s2", "s3")
    ]


def test_forgotten_jury_leaves_no_sum(history):
    """Its cell of the cache is that of the first session, and is summed again."""
    with history.recording() as recording:
        for event in (*session_events("s1"), *rejudged("s2", "s1")):
            recording(event)
    assert WindowSums(CachedEngine(history.database)).table(PanelSums).sessions.sum() == 2

    history.forget("s2")

    assert WindowSums(CachedEngine(history.database)).table(PanelSums).sessions.sum() == 1


def test_leaderboard_counts_answers_once(history):
    """With each session judged twice more, scores and errors stay the same."""

    def board():
        return leaderboard(history, now=ASKED).lines

    with history.recording() as recording:
        for k in range(12):
            for event in session_events(f"s{k}"):
                recording(event)
    alone = board()
    with history.recording() as recording:
        for k in range(12):
            for event in (*rejudged(f"s{k}-2", f"s{k}"), *rejudged(f"s{k}-3", f"s{k}")):
                recording(event)

    assert alone
    assert board() == alone


@pytest.mark.parametrize("asking", ["lesson 0", "lesson 1", "lesson 2"])
def test_session_does_not_learn_from_its_own_answers(history, asking):
    """Three sessions share the answers; each learns from the 100 others alone."""
    history.add(lessons(103), "x", "x")
    for child, parent in (("lesson 1", "lesson 0"), ("lesson 2", "lesson 1")):
        with history.database.transaction():
            history.database.execute(
                "UPDATE sessions SET rejudged = 1, parent = :parent WHERE session = :child",
                {"child": child, "parent": parent},
            )

    assert history.learn(exclude=asking).prior("grades").n_sessions == 100


def retried(name: str, parent: str, days: int = 1) -> list[e.Event]:
    """The events of a retry some days after its parent."""
    later = timedelta(days=days)
    opened, *rest = (replace(event, at=event.at + later) for event in session_events(name))
    return [replace(opened, parent=parent, relation="retried"), *rest]


def record(history, *sessions) -> None:
    with history.recording() as recording:
        for events in sessions:
            for event in events:
                recording(event)


def answers(history) -> int:
    """The number of counted answers, alike in the rows and in the cache."""
    by_rows = WindowSums(SqlEngine(history.database)).table(AnswerSums).answers.sum()
    by_sums = WindowSums(CachedEngine(history.database)).table(AnswerSums).answers.sum()
    assert by_rows == by_sums
    return int(by_rows)


@pytest.fixture
def n(history) -> int:
    """The answers of session s1, with its sums cached."""
    record(history, session_events("s1"))
    return answers(history)


def test_closed_retry_replaces_its_parent(history, n):
    """Until then the parent counts; its cached sums are recomputed."""
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
def test_one_session_of_a_family_counts(history, n, parents):
    """It holds for chains and siblings of retries, in any order of forgetting."""
    names = ["s2", "s3", "s4"]
    for day, (name, parent) in enumerate(zip(names, parents, strict=True), start=1):
        record(history, retried(name, parent, day))
        assert answers(history) == n
    for name in ("s2", "s1", "s4"):
        history.forget(name)
        assert answers(history) == n
        assert answers(history) == n


def test_imported_retry_replaces_its_parent(history, n):
    """An imported record belongs to the family of the session that it names."""
    held = Session.of(retried("s2", "s1"))
    imported = SessionImport(held.id, ballots=held.ballots, session_record=held)
    history.add([imported], "s2.json", "a digest")

    assert answers(history) == n
    assert answers(history) == n


def test_retries_teach_nothing_twice(history, n):
    """Excluding a session from learning excludes its family."""
    from witan.history.reading import sessions_sharing_answers

    record(history, retried("s2", "s1"))

    assert n
    assert sessions_sharing_answers(history.database, "s1") == ["s1", "s2"]
    assert sessions_sharing_answers(history.database, "s2") == ["s1", "s2"]


def without(events, *, ballots: int = 0, **closed) -> list[e.Event]:
    """A session with fewer ballots and another status."""
    left = [event for event in events if not isinstance(event, e.BallotCast)]
    cast = [event for event in events if isinstance(event, e.BallotCast)]
    at = events.index(cast[0])
    whole = [*left[:at], *cast[: len(cast) - ballots], *left[at:]]
    return [
        replace(event, seq=seq, **(closed if isinstance(event, e.SessionClosed) else {}))
        for seq, event in enumerate(whole, start=1)
    ]


@pytest.mark.parametrize("worse", [{"ballots": 2}, {"status": "failed"}])
def test_worse_retry_does_not_replace_its_parent(history, n, worse):
    """With fewer ballots, or none that count, its parent still counts."""
    counting = [("s1",), ("s2",)]
    record(history, without(retried("s2", "s1"), **worse))

    assert answers(history) == n
    assert superseded(history) == counting[1:]
    record(history, retried("s3", "s2", 2))
    assert answers(history) == n
    assert superseded(history) == counting


def superseded(history) -> list[tuple[str]]:
    """The sessions that no longer count."""
    return sorted(history.database.rows(SUPERSEDED_SESSIONS))


def with_jury(name: str) -> list[e.Event]:
    """The events of a session with a jury."""
    opened, *later = session_events(name)
    jury = tuple(
        replace(s, name=f"{s.name}'s twin", source=f"test:twin-{s.name}") for s in opened.seats
    )
    events: list[e.Event] = [replace(opened, jury=jury)]
    for event in later:
        if isinstance(event, e.BallotCast):
            seat = f"{event.seat}'s twin"
            ballot = replace(event.ballot, reviewer=seat)
            events.append(replace(event, seat=seat, ballot=ballot))
        else:
            events.append(event)
    return events


def test_jurors_are_reviewers_and_members_candidates(history):
    """Only members have standings, and only jurors cast ballots."""
    with history.recording() as recording:
        for event in with_jury("s1"):
            recording(event)

    sql = "SELECT n.name FROM ballots b JOIN names n ON n.code = b.reviewer"
    cast = {name for (name,) in history.database.rows(sql, {})}
    assert cast
    assert all("twin" in name for name in cast)
    sql = "SELECT DISTINCT n.name FROM standings s JOIN names n ON n.code = s.model"
    stood = {name for (name,) in history.database.rows(sql, {})}
    assert stood
    assert all("twin" not in name for name in stood)


def test_answers_of_a_session_with_a_jury_count(history):
    """Unlike a rejudging, it judges no other session's answers."""
    with history.recording() as recording:
        for event in with_jury("s1"):
            recording(event)

    assert history.database.rows("SELECT session, rejudged FROM sessions") == [("s1", 0)]
    sql = "SELECT COUNT(*) FROM answers WHERE chars IS NOT NULL"
    [(count,)] = history.database.rows(sql, {})
    assert count > 0
