"""Calls that reached no model add nothing to any sum, on each engine."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from families import ENGINES, sums_of
from generated_histories import sum_by_key

from histories import session_events
from sessions import Story, expense
from witan.analytics.sums import WindowSums
from witan.core.ballot import Ballot
from witan.core.stats.sums import AnswerSums, BallotSums, StandingSums
from witan.deliberation import events as e
from witan.deliberation.record import SessionImport
from witan.deliberation.session import Session
from witan.history.ballots import import_sessions
from witan.history.database import Database
from witan.history.schema import code_of

NOWHERE = "script:nowhere.toml"


def _unreached(story: Story, seat: str) -> None:
    story.tell(
        e.AnswerFailed, seat=seat, reason="not found (404)", misconfigured=True, spent=expense()
    )


def _with_one_unreached() -> Session:
    """Two members answer and vote; the address of the third is wrong."""
    story = Story("a", "b", "nowhere").answers(a="A", b="B")
    _unreached(story, "nowhere")
    for reviewer, other in ("ab", "ba"):
        story.tell(
            e.BallotCast, seat=reviewer, ballot=Ballot(reviewer, ((other,),), session="s1"),
            replies=("{}",), read_by="schema", spent=expense(),
        )  # fmt: skip
    return Session.of(story.closed("nowhere did not answer", status="degraded").events)


def _with_no_answers() -> Session:
    """No member answers: one times out, the address of the other is wrong."""
    story = Story("late", "nowhere", session="q2")
    story.tell(e.AnswerFailed, seat="late", reason="timed out", spent=expense())
    _unreached(story, "nowhere")
    return Session.of(story.closed("everything", status="failed").events)


def store(database: Database) -> None:
    """The two sessions above, and a complete one of other members."""
    sessions = [_with_one_unreached(), _with_no_answers(), Session.of(session_events("q3"))]
    imported = [SessionImport(one.id, session_record=one) for one in sessions]
    import_sessions(database, imported, "test", "digest", datetime(2026, 11, 22, tzinfo=UTC))


@pytest.fixture(scope="module", params=ENGINES)
def sums(request, tmp_path_factory) -> Iterator[WindowSums]:
    yield from sums_of(request, tmp_path_factory.mktemp("misconfigured"), store)


def models_in(sums_by_table) -> set[int]:
    """The models in sums by bucket and model."""
    return {key[1] for key in sum_by_key(sums_by_table)}


def test_leaderboards_and_audits_exclude_unreachable_models(sums):
    """The two members that answered have all their rows; the others have none."""
    there = {code_of(f"script:{name}.toml") for name in "ab"}
    there |= {code_of(f"test:{name}") for name in ("ada", "bo", "cy", "di", "ed")}

    for sums_by_table in (
        sums.table(StandingSums, rule="borda"),
        sums.table(AnswerSums),
        sums.table(BallotSums),
    ):
        assert models_in(sums_by_table) == there
    assert code_of(NOWHERE) not in there
    assert sum(row["abstained"] for row in sum_by_key(sums.table(BallotSums)).values()) == 0
