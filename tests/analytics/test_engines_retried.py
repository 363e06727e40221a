"""Of a session and its retries only the latest counts, on each engine."""

from collections.abc import Iterator

import pytest
from families import ENGINES, insert_family, sums_of
from generated_histories import sum_by_key

from witan.analytics.sums import WindowSums
from witan.core.stats.sums import AnswerSums, BallotSums, MatchupSums, PanelSums, StandingSums
from witan.history.database import Database
from witan.history.schema import bucket_of, code_of

FAMILY = (
    ("q1", None, None),
    ("q2", "q1", "retried"),
    ("q3", "q2", "retried"),
    ("q4", "q1", "retried"),
    ("q5", "q4", "rejudged"),
)
APART = (("r1", None, None), ("r2", "elsewhere", "retried"))
UNDER_WAY = (("r3", "r1", "retried"),)


def store(database: Database) -> None:
    """A session retried three times (the second a retry of a retry), one rejudged, and others."""
    insert_family(database, (*FAMILY, *APART))
    insert_family(database, UNDER_WAY, holder="somebody")


@pytest.fixture(scope="module", params=ENGINES)
def sums(request, tmp_path_factory) -> Iterator[WindowSums]:
    yield from sums_of(request, tmp_path_factory.mktemp("retried"), store)


def test_reused_answers_and_ballots_count_once(sums):
    """Standings, matchups and answers come from the last retry and from unrelated sessions."""
    b = code_of("b")

    standings = sum_by_key(sums.table(StandingSums, rule="borda"))
    answers = sum_by_key(sums.table(AnswerSums))

    apart = {bucket_of("r1"), bucket_of("elsewhere")}
    assert {bucket for bucket, _ in standings} == {bucket_of("q1"), *apart}
    assert standings[bucket_of("q1"), b]["sessions"] == 1
    assert standings[bucket_of("r1"), b]["sessions"] == 1
    assert sums.coverage("borda") == 3
    assert sums.table(MatchupSums).ties.sum() == 6.0
    assert answers[bucket_of("q1"), code_of("a")]["answers"] == 1


def test_each_ballot_is_audited_once(sums):
    """The jury that judged the last retry is audited beside it, in the same group."""
    ballots = sum_by_key(sums.table(BallotSums))
    panel = sums.table(PanelSums)

    assert ballots[bucket_of("q1"), code_of("a"), 0]["ballots"] == 2
    assert ballots[bucket_of("r1"), code_of("a"), 0]["ballots"] == 1
    sessions = dict(zip(panel.bucket.tolist(), panel.sessions.tolist(), strict=True))
    assert sessions[bucket_of("q1")] == 2
