"""Answers that are judged twice count once, on each engine."""

from collections.abc import Iterator

import pytest
from families import ENGINES, insert_family, reductions_of
from generated_histories import merged

from witan.analytics.sums import Reductions
from witan.history.database import Database
from witan.history.schema import bucket_of, code_of

FAMILY = (("q1", None, None), ("q2", "q1", "rejudged"), ("q3", "q2", "rejudged"))
APART = (("q4", "q1", "continued"),)


def store(database: Database) -> None:
    """One session, two juries on its answers, and one that goes on from it."""
    insert_family(database, (*FAMILY, *APART))


@pytest.fixture(scope="module", params=ENGINES)
def reductions(request, tmp_path_factory) -> Iterator[Reductions]:
    yield from reductions_of(request, tmp_path_factory.mktemp("rejudged"), store)


def test_what_is_said_of_answers_is_said_once(reductions):
    """Standings, matchups, matches and answers are of the two sessions that gave answers."""
    b = code_of("b")

    standings = merged(reductions.standings("borda"))
    answers = merged(reductions.answers())

    assert {bucket for bucket, _ in standings} == {bucket_of("q1"), bucket_of("q4")}
    assert standings[bucket_of("q1"), b]["sessions"] == 1
    assert reductions.coverage("borda") == 2
    assert reductions.matchups().ties.sum() == 4.0
    assert sum(match.ties for match in reductions.matches()) == 4.0
    assert answers[bucket_of("q1"), code_of("a")]["answers"] == 1


def test_every_jury_is_audited_in_the_group_of_the_first(reductions):
    """Ballots and agreement of all three juries stand under the bucket of the first session."""
    ballots = merged(reductions.ballots())
    panel = reductions.panel()

    assert ballots[bucket_of("q1"), code_of("a"), 0]["ballots"] == 3
    assert ballots[bucket_of("q4"), code_of("a"), 0]["ballots"] == 1
    sessions = dict(zip(panel.bucket.tolist(), panel.sessions.tolist(), strict=True))
    assert sessions == {bucket_of("q1"): 3, bucket_of("q4"): 1}
