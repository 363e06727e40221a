"""A session that had a jury of its own, in the history: its answers were given in it."""

from dataclasses import replace

from histories import told
from witan.deliberation import events as e


def with_jury(name: str) -> list[e.Event]:
    """The events of a session whose ballots are cast by jurors."""
    opened, *later = told(name)
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
    """Nobody but members stands in the standings, nobody but jurors casts a ballot."""
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


def test_its_answers_count(history):
    """It judges no other session's answers, as it would after a rejudging."""
    with history.recording() as recording:
        for event in with_jury("s1"):
            recording(event)

    assert history.database.rows("SELECT session, rejudged FROM sessions") == [("s1", 0)]
    sql = "SELECT COUNT(*) FROM answers WHERE chars IS NOT NULL"
    [(count,)] = history.database.rows(sql, {})
    assert count > 0
