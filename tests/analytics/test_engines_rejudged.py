"""Answers that are judged twice count once, on each engine."""

from collections.abc import Iterator

import pytest
from families import ENGINES, insert_family, sums_of
from generated_histories import sum_by_key

from witan.analytics.sums import WindowSums
from witan.core.stats.sums import AnswerSums, BallotSums, MatchupSums, PanelSums, StandingSums
from witan.history.database import Database
from witan.history.schema import bucket_of, code_of

FAMILY = (("q1", None, None), ("q2", "q1", "rejudged"), ("q3", "q2", "rejudged"))
APART = (("q4", "q1", "continued"),)


def store(database: Database) -> None:
    """One session, two more juries on its answers, and a session that continues it."""
    insert_family(database, (*FAMILY, *APART))


@pytest.fixture(scope="module", params=ENGINES)
def sums(request, tmp_path_factory) -> Iterator[WindowSums]:
    yield from sums_of(request, tmp_path_factory.mktemp("rejudged"), store)


def test_rejudged_answers_are_counted_once(sums):
    """Standings, matchups, matches and answers come from the two sessions that gave answers."""
    b = code_of("b")

    standings = sum_by_key(sums.table(StandingSums, rule="borda"))
    answers = sum_by_key(sums.table(AnswerSums))

    assert {bucket for bucket, _ in standings} == {bucket_of("q1"), bucket_of("q4")}
    assert standings[bucket_of("q1"), b]["sessions"] == 1
    assert sums.coverage("borda") == 2
    assert sums.table(MatchupSums).ties.sum() == 4.0
    assert sum(match.ties for match in sums.matches()) == 4.0
    assert answers[bucket_of("q1"), code_of("a")]["answers"] == 1


def test_every_jury_is_audited_under_the_first_session(sums):
    """Ballots and agreement of all three juries are in the bucket of the first session."""
    ballots = sum_by_key(sums.table(BallotSums))
    panel = sums.table(PanelSums)

    assert ballots[bucket_of("q1"), code_of("a"), 0]["ballots"] == 3
    assert ballots[bucket_of("q4"), code_of("a"), 0]["ballots"] == 1
    sessions = dict(zip(panel.bucket.tolist(), panel.sessions.tolist(), strict=True))
    assert sessions == {bucket_of("q1"): 3, bucket_of("q4"): 1}
