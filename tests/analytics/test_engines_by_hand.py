"""Ties, a partial ballot, an abstention and recusal, counted by hand, on each engine."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from generated_histories import store, sum_by_key

from postgres import database_of
from witan.analytics.lake import write_lake
from witan.analytics.sources import DuckLake, SparkLake
from witan.analytics.sums import WindowSums
from witan.analytics.views import SqlEngine
from witan.core.ballot import Ballot, Kind
from witan.core.entry_builder import entries_of
from witan.core.session_ballots import (
    BallotEntry,
    Entries,
    MatchupEntry,
    SessionBallots,
    SessionEntry,
    StandingEntry,
)
from witan.core.settings import Settings
from witan.core.stats.concordance import sides_with_people
from witan.core.stats.sums import (
    BallotSums,
    HumanSums,
    LengthSums,
    MatchupSums,
    PositionSums,
    ReviewerSums,
    StandingSums,
    UnitSums,
    VoteSums,
)
from witan.core.tally import prepare
from witan.deliberation.ports import SystemClock
from witan.history.database import LockWait
from witan.history.schema import bucket_of, code_of, open_database

# Four models. a ranks b first, c and d tied; b ranks only c above d (partial); c abstains; d
# shows its own candidate too and ranks itself first, then a = b. Recusal leaves a and b on it.
BUCKET = bucket_of("q1")
A, B, C, D = (code_of(name) for name in "abcd")
ENTRIES = Entries(
    SessionEntry("q1", datetime(2026, 5, 1, tzinfo=UTC), kendall_w=0.5),
    standings=(
        StandingEntry("model", "borda", "b", 0.75, None, 2, 3, 1.5),
        StandingEntry("model", "borda", "c", 0.625, None, 2, 2, 1.0),
        StandingEntry("model", "borda", "d", 0.125, None, 2, 2, 0.0),
        StandingEntry("model", "borda", "a", None, None, 0, 2, 0.5),
    ),
    matchups=(
        # Pairs ab, ac, ad, bc, bd, cd.
        MatchupEntry(
            "model", tuple("abcd"), (0, 0, 0, 1, 1, 1), (0,) * 6, (1, 0, 0, 0, 0, 1), (None,) * 6
        ),
    ),
    ballots=(
        BallotEntry("a", "model", ("b", "c", "d"), (False,) * 3, (1.0, 0.25, 0.25), (9.0, 6.0, 6.0),
                    (1, 2, 3), (100, 200, 100)),
        BallotEntry("b", "model", ("a", "c", "d"), (False,) * 3, (None, 1.0, 0.0), (None,) * 3,
                    (3, 1, 2), (50, 200, 100)),
        BallotEntry("c", "model", abstained=True),
        BallotEntry("d", "model", ("a", "b", "d"), (False, False, True), (0.5, 0.5, 1.0),
                    (None,) * 3, (1, 2, 3), (50, 100, 100)),
    ),
)  # fmt: skip

ENGINES_BY_HAND = [
    "sqlite",
    "postgresql",
    "duckdb",
    pytest.param("spark", marks=pytest.mark.slow),
]


# Models a and b gave the same answer, which stood first on the sheet of x and last on that of y.
COPIED = entries_of(
    SessionBallots(
        "q1",
        datetime(2026, 5, 1, tzinfo=UTC),
        [
            Ballot("x", (("c",), ("a", "b"), ("d",)), positions={"a": 1, "b": 1, "c": 2, "d": 3}),
            Ballot("y", (("d",), ("c",), ("a", "b")), positions={"a": 3, "b": 3, "c": 2, "d": 1}),
        ],
    )
)
X, Y = code_of("x"), code_of("y")


def comparison(reviewer: str, kind: Kind, outcome: str) -> Ballot:
    """A ballot on c and d, such as "c > d" or "d = c"; the first letter was shown first."""
    first, sign, second = outcome.split()
    groups = ((first,), (second,)) if sign == ">" else ((second,), (first,))
    if sign == "=":
        groups = ((first, second),)
    return Ballot(
        reviewer, groups, kind=kind, paired=True, positions={first: 1, second: 2}, session="q1"
    )


# Reviewers a and ben prefer c in one order and are undecided in the other.
ORDERS = [
    comparison("a", "model", "c > d"),
    comparison("a", "model", "d = c"),
    comparison("b", "model", "c > d"),
    comparison("b", "model", "d < c"),
    comparison("x", "model", "d < c"),
    comparison("y", "model", "c < d"),
    comparison("y", "model", "d < c"),
    comparison("ann", "human", "c < d"),
    comparison("ben", "human", "c > d"),
    comparison("ben", "human", "d = c"),
]


@pytest.fixture(scope="module", params=ENGINES_BY_HAND)
def sums(request, tmp_path_factory) -> Iterator[WindowSums]:
    with sums_of_entries(ENTRIES, request, tmp_path_factory.mktemp("by-hand")) as result:
        yield result


@pytest.fixture(scope="module", params=ENGINES_BY_HAND)
def sums_with_copies(request, tmp_path_factory) -> Iterator[WindowSums]:
    with sums_of_entries(COPIED, request, tmp_path_factory.mktemp("copied")) as result:
        yield result


@pytest.fixture(scope="module", params=ENGINES_BY_HAND)
def sums_with_orders(request, tmp_path_factory) -> Iterator[WindowSums]:
    entries = entries_of(SessionBallots("q1", datetime(2026, 5, 1, tzinfo=UTC), ORDERS))
    with sums_of_entries(entries, request, tmp_path_factory.mktemp("orders")) as result:
        yield result


@contextmanager
def sums_of_entries(entries: Entries, request, folder: Path) -> Iterator[WindowSums]:
    """The sums of these entries by one engine."""
    with ExitStack() as stack:
        if request.param == "postgresql":
            url = stack.enter_context(contextmanager(database_of)())
            database = stack.enter_context(open_database(url, SystemClock(), LockWait()))
            store(database, [entries])
            yield WindowSums(SqlEngine(database))
            return
        place = folder / "h.sqlite"
        database = stack.enter_context(open_database(place, SystemClock(), LockWait()))
        store(database, [entries])
        if request.param == "sqlite":
            yield WindowSums(SqlEngine(database))
            return
        write_lake(SimpleNamespace(database=database), folder / "lake")
        if request.param == "duckdb":
            yield WindowSums(stack.enter_context(DuckLake(folder / "lake")))
            return
        if shutil.which("java") is None:
            pytest.skip("Spark needs Java, and there is none")
        session = request.getfixturevalue("spark")
        yield WindowSums(stack.enter_context(SparkLake(folder / "lake", session=session)))


def test_a_model_without_votes_has_an_appearance_but_no_score(sums):
    """Its appearance and its share of a tie count; its sessions with a score do not."""
    result = sum_by_key(sums.table(StandingSums, rule="borda"))

    assert result[BUCKET, A] == {
        "appearances": 1, "sessions": 0, "total": 0.0, "squares": 0.0, "z_sessions": 0,
        "z_total": 0.0, "votes": 0, "offered": 2, "wins": 0.5,
    }  # fmt: skip
    assert (result[BUCKET, C]["total"], result[BUCKET, C]["squares"]) == (0.625, 0.390625)


def test_ties_and_partial_ballots_in_pairs(sums):
    """Model c against d is won once and tied once; a against c was never compared."""
    result = sum_by_key(sums.table(MatchupSums))

    assert result == {
        (BUCKET, A, B): {"wins": 0.0, "losses": 0.0, "ties": 1.0},
        (BUCKET, B, C): {"wins": 1.0, "losses": 0.0, "ties": 0.0},
        (BUCKET, B, D): {"wins": 1.0, "losses": 0.0, "ties": 0.0},
        (BUCKET, C, D): {"wins": 1.0, "losses": 0.0, "ties": 1.0},
    }


def test_an_abstention_is_a_ballot_without_a_vote(sums):
    """It counts among its reviewer's ballots and adds no row of votes."""
    ballots, votes = sum_by_key(sums.table(BallotSums)), sum_by_key(sums.table(VoteSums))

    assert ballots[BUCKET, C, 0]["ballots"] == ballots[BUCKET, C, 0]["abstained"] == 1
    assert [key for key in votes if key[1] == C] == []


def test_own_votes_are_summed_separately(sums):
    """Model d gives itself 1, which enters only the sum of own votes."""
    votes, lengths = sum_by_key(sums.table(VoteSums)), sum_by_key(sums.table(LengthSums))

    assert votes[BUCKET, D, 0, D, 1]["total"] == 1.0
    assert (BUCKET, D, 0, D, 0) not in votes
    assert (lengths[BUCKET, D, 0]["n"], lengths[BUCKET, D, 0]["decided"]) == (2, 0)


def test_votes_are_compared_with_other_reviewers_of_the_same_candidate(sums):
    """Model a gives c ¼ and d ¼ where b gives 1 and 0; beside b's ballot stands d's ½."""
    result = sum_by_key(sums.table(ReviewerSums))[BUCKET, A, 0]

    assert result["n_shares"] == 3
    assert (result["share_x"], result["share_y"]) == (1.5, 1.5)
    assert result["share_xy"] == 1.0 * 0.5 + 0.25 * 1.0 + 0.25 * 0.0


def test_copies_of_an_answer_share_its_place(sums_with_copies):
    """The first place and the last of four candidates count one vote each, for all four."""
    result = sum_by_key(sums_with_copies.table(PositionSums))

    ends = {key: sums for key, sums in result.items() if key[3] in (1, 4)}
    assert {key: sums["votes"] for key, sums in ends.items()} == {
        (BUCKET, X, 0, 1, 4): 1, (BUCKET, X, 0, 4, 4): 1,
        (BUCKET, Y, 0, 1, 4): 1, (BUCKET, Y, 0, 4, 4): 1,
    }  # fmt: skip
    assert [sums["total"] for _, sums in sorted(ends.items()) if _[1] == X] == [0.5, 0.0]
    assert [sums["total"] for _, sums in sorted(ends.items()) if _[1] == Y] == pytest.approx(
        [1.0, 1 / 6]
    )


def test_pairs_won_by_the_longer_answer(sums):
    """Model a ranks b above the longer c, and ties c and d."""
    result = sum_by_key(sums.table(LengthSums))[BUCKET, A, 0]

    assert (result["decided"], result["longer"]) == (1, 0)


def test_a_candidate_with_one_judgment_is_not_a_unit(sums):
    """b, c and d have two shares each; a has one, and nothing was graded twice."""
    result = sum_by_key(sums.table(UnitSums))

    assert list(result) == [(BUCKET, 0, 0)]
    row = result[BUCKET, 0, 0]
    assert (row["units"], row["n"], row["total"]) == (3, 6, 3.0)
    # b (1, ½), c (¼, 1), d (¼, 0): (n Σx² − (Σx)²)/(n − 1) is (x − y)² for two.
    assert row["within"] == pytest.approx(0.25 + 0.5625 + 0.0625)


def test_a_preference_in_one_order_only_is_a_tie(sums_with_orders):
    """Reviewer a counts as a tie and ben decides nothing, as in a tally; ann decides for d."""
    result = sum_by_key(sums_with_orders.table(HumanSums))
    opinions = {key[1]: sums["x"] for key, sums in result.items() if key[1] == key[2]}
    electorates, _ = prepare(ORDERS, Settings())
    [(_, counted)] = sides_with_people(electorates)

    assert opinions == {A: 0, B: -1, X: -1, Y: 0}
    assert opinions == {code_of(name): side for name, side in counted.items()}
