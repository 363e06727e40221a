"""A session that judges the answers of another, in the history with its parent."""

from dataclasses import replace

import pytest

from histories import ASKED, told
from lessons import lessons
from witan.analytics.cache import CachedEngine
from witan.analytics.leaderboards import leaderboard
from witan.analytics.sums import Reductions
from witan.deliberation import events as e
from witan.deliberation.opening import collect_answers
from witan.deliberation.session import Session
from witan.history.schema import bucket_of


def rejudged(name: str, parent: str) -> list[e.Event]:
    """The events of a session whose jury casts the ballots that were cast in its parent."""
    first = Session.of(told(parent))
    opened, *later = told(name)
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


def test_parent_and_relation_are_kept(history):
    """They are there from the first event on, and still when the session is closed."""
    events = rejudged("s2", "s1")
    with history.recording() as recording:
        for event in (*told("s1"), events[0]):
            recording(event)
        recording.flush()
        assert (history.summary("s2").parent, history.summary("s2").relation) == ("s1", "rejudged")
        for event in events[1:]:
            recording(event)

    assert [found.session for found in history.find(parent="s1")] == ["s2"]
    assert history.find(parent="s2") == []
    assert history.summary("s2").parent == "s1"
    assert history.session("s2").opened.parent == "s1"


def test_a_parent_need_not_be_in_the_history(history):
    """The answers may come from a file: the name of its session is kept all the same."""
    with history.recording() as recording:
        for event in rejudged("s2", "elsewhere"):
            recording(event)

    assert history.summary("s2").parent == "elsewhere"


def test_candidates_and_reviewers_are_named_by_who_they_are(history):
    """The rows name those who answered as candidates, and the jurors as reviewers."""
    with history.recording() as recording:
        for event in rejudged("s2", "s1"):
            recording(event)

    sql = "SELECT n.name FROM ballots b JOIN names n ON n.code = b.reviewer ORDER BY b.ballot"
    assert {name for (name,) in history.database.rows(sql, {})} <= {
        f"test:twin-{seat}" for seat in ("ada", "bo", "cy", "di", "ed")
    }
    sql = "SELECT DISTINCT n.name FROM standings s JOIN names n ON n.code = s.model"
    assert all("twin" not in name for (name,) in history.database.rows(sql, {}))


def test_sessions_of_the_same_answers_are_one_group(history):
    """A jury on a jury's session has the bucket of the session that gave the answers."""
    with history.recording() as recording:
        for event in (*told("s1"), *rejudged("s2", "s1")):
            recording(event)
        recording.flush()
        opened, *later = rejudged("s3", "s1")
        for event in (replace(opened, parent="s2"), *later):
            recording(event)

    rows = history.database.rows("SELECT session, bucket, rejudged FROM sessions")
    assert sorted(rows) == [
        (name, bucket_of("s1"), int(name != "s1")) for name in ("s1", "s2", "s3")
    ]


def test_a_forgotten_jury_leaves_no_sum(history):
    """Its cell of the cache is that of the first session, and is summed anew."""
    with history.recording() as recording:
        for event in (*told("s1"), *rejudged("s2", "s1")):
            recording(event)
    assert Reductions(CachedEngine(history.database)).panel().sessions.sum() == 2

    history.forget("s2")

    assert Reductions(CachedEngine(history.database)).panel().sessions.sum() == 1


def test_a_leaderboard_counts_answers_once(history):
    """With every session judged twice more, scores and errors are those of the sessions alone."""

    def board():
        return leaderboard(history, now=ASKED).lines

    with history.recording() as recording:
        for k in range(20):
            for event in told(f"s{k}"):
                recording(event)
    alone = board()
    with history.recording() as recording:
        for k in range(20):
            for event in (*rejudged(f"s{k}-2", f"s{k}"), *rejudged(f"s{k}-3", f"s{k}")):
                recording(event)

    assert alone
    assert board() == alone


@pytest.mark.parametrize("asking", ["lesson 0", "lesson 1", "lesson 2"])
def test_nothing_is_learned_from_the_same_answers(history, asking):
    """Whichever of three sessions on the same answers asks, the 100 others alone teach."""
    history.add(lessons(103), "x", "x")
    for child, parent in (("lesson 1", "lesson 0"), ("lesson 2", "lesson 1")):
        with history.database.transaction():
            history.database.execute(
                "UPDATE sessions SET rejudged = 1, parent = :parent WHERE session = :child",
                {"child": child, "parent": parent},
            )

    assert history.learn(without=asking).prior("grades").n_sessions == 100
