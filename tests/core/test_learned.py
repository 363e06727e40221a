"""What is learned of reviewers, and which of several sources decides."""

from dataclasses import replace

import numpy as np
import pytest

from elections import ballots
from witan.core.ballot import Ballot
from witan.core.settings import Settings
from witan.core.stats.calibration import (
    JudgedSession,
    StoredBallot,
    beside_people,
    calibrate,
    reliability_of,
)
from witan.core.stats.learning import (
    Tracks,
    consistency_weights,
    learn_consistency,
    learn_reliability,
    learn_weights,
    reliability_from_shares,
    reliability_from_tracks,
)
from witan.core.tally import prepare, tally, tally_sessions

STEADY = {"a": (90, 100), "b": (50, 100)}


def compared(session, reviewer, first, second, *, flips=False):
    """Both orders of one pair; who flips picks what is shown first."""
    for shown in ((first, second), (second, first)):
        winner = shown[0] if flips else first
        loser = second if winner == first else first
        yield Ballot(
            reviewer,
            ((winner,), (loser,)),
            session=session,
            positions={shown[0]: 1, shown[1]: 2},
            paired=True,
        )


class TestSources:
    """Order, agreement, people: which of them decides, and how far."""

    def test_order_goes_before_agreement(self):
        """Where half of the reviewers are known by order, agreement does not enter."""
        tracks = Tracks(order_kept=STEADY, agreement={"a": 0.1, "b": 1.9})

        assert reliability_from_tracks(tracks, "ab") == consistency_weights(STEADY)

    def test_agreement_stands_in_for_too_few_pairs(self):
        """Nineteen pairs of each are no knowledge of their order."""
        few = {"a": (19, 19), "b": (9, 19)}
        tracks = Tracks(order_kept=few, agreement={"a": 0.9, "b": 1.1})

        assert reliability_from_tracks(tracks, "ab") == {"a": 0.9, "b": 1.1}

    def test_people_count_by_their_number(self):
        """Fifty pairs weigh as much as all the rest, and ever more decide alone."""
        tracks = Tracks(agreement={"a": 0.9}, people={"a": 1.5}, judged={"a": 50.0})
        many = replace(tracks, judged={"a": 5e9})

        assert reliability_from_tracks(tracks, "a") == {"a": pytest.approx(1.2)}
        assert reliability_from_tracks(many, "a") == {"a": pytest.approx(1.5)}

    def test_others_than_the_council_do_not_enter(self):
        """A third reviewer's record changes nothing for two that sit."""
        more = Tracks(order_kept={**STEADY, "c": (0, 1000)})

        assert reliability_from_tracks(more, "ab") == consistency_weights(STEADY)

    def test_without_evidence_there_are_no_weights(self):
        """Nobody knows anything: nothing is said."""
        assert reliability_from_tracks(Tracks(), "ab") == {}


class TestFiles:
    """`weighted_borda` of a file learns by order where both orders are there."""

    def test_both_orders_teach_by_order(self):
        """A reviewer who picks the first shown weighs less than one who does not."""
        cast = [
            ballot
            for session in "12345678"
            for first, second in ("ab", "ac", "bc")
            for reviewer, flips in (("r", False), ("s", False), ("t", True))
            for ballot in compared(session, reviewer, first, second, flips=flips)
        ]
        settings = Settings.of("weighted_borda", recusal="off")
        everyone, _ = prepare(cast, settings)

        learned = learn_weights(everyone)

        assert learned == learn_consistency([held.order_kept for held in everyone])
        assert learned[0]["t"] < learned[0]["r"]
        given = next(tally_sessions(cast, replace(settings, reliability=learned[0])))
        assert next(tally_sessions(cast, settings)).standings == given.standings

    def test_one_order_teaches_by_agreement(self):
        """Files without both orders learn as they did."""
        cast = [
            replace(one, session=session)
            for session in "123"
            for one in ballots("x: a > b > c", "y: a > b > c", "z: a > b > c", "w: c > b > a")
        ]
        everyone, _ = prepare(cast, Settings.of("weighted_borda"))

        assert learn_weights(everyone) == learn_reliability(everyone)

    def test_stored_shares_teach_what_ballots_do(self):
        """The same sessions as shares give the same weights for one more."""
        shares = {"x": [1, 0.5, 0], "y": [1, 0.5, 0], "z": [1, 0.5, 0], "w": [0, 0.5, 1]}
        cast = [
            replace(one, session=session)
            for session in "123"
            for one in ballots("x: a > b > c", "y: a > b > c", "z: a > b > c", "w: c > b > a")
        ]
        everyone, _ = prepare(cast, Settings.of("weighted_borda"))

        stored = reliability_from_shares([{k: np.array([v]) for k, v in shares.items()}] * 2)

        assert stored == pytest.approx(dict(learn_reliability(everyone)[0]))


class TestBesidePeople:
    """Stored ballots beside those of people, by hand."""

    SESSION = JudgedSession(
        bucket=3,
        ballots=(
            StoredBallot(7, True, (1, 2, 3), (False, False, False), (1.0, 0.5, 0.0)),
            StoredBallot(1, False, (1, 2, 3), (True, False, False), (1.0, 1.0, 0.0)),
            StoredBallot(2, False, (3, 1, 2), (False, False, True), (1.0, 0.0, None)),
        ),
        models=(2, 1, 3),
        p_beats=(0.1, 0.5, 0.4),
    )

    def test_own_candidates_are_left_out(self):
        """Reviewer 1 is asked of 2 and 3 alone, and right; reviewer 2 of 1 and 3, and wrong."""
        beside = beside_people([self.SESSION])
        right = dict(zip(beside.reviewers, beside.correct.tolist(), strict=True))

        # Pairs in the order in which people decide them: (1, 2), (1, 3), (2, 3).
        assert right[1] == pytest.approx([np.nan, np.nan, 1], nan_ok=True)
        assert right[2] == pytest.approx([np.nan, -1, np.nan], nan_ok=True)

    def test_panels_are_banded_by_how_sure_they_were(self):
        """0.1 for 2 over 1 is 0.9 for 1, rightly; 0.4 for 1 over 3 is 0.6 for 3, wrongly."""
        table = beside_people([self.SESSION]).calibration

        rows = zip(table.bucket, table.band, table.pairs, table.matched, strict=True)
        assert sorted(rows) == [(3, 12, 1, 0), (3, 18, 1, 1)]


class TestReliability:
    """What is said of the first line over the second."""

    def test_it_is_unknown_without_people(self):
        """No calibration, too few pairs, or no outcome: unknown, with the reason."""
        outcome = tally(ballots("x: a > b", "y: a > b", "z: a > b"))
        empty = calibrate(beside_people([]).calibration)

        for calibration in (None, empty):
            found = reliability_of(outcome, calibration)
            assert found.value is None
            assert "not enough data" in found.why
        assert reliability_of(None, empty).value is None
