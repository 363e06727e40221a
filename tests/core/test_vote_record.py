"""A person's record against panels: shares clustered by session, over time."""

from datetime import UTC, datetime, timedelta

import pytest

from witan.core.blind_vote import ComparedVote, PanelMatch, vote_record

START = datetime(2026, 11, 1, 12, tzinfo=UTC)


def vote(number, alike, decided, *, clear=(0, 0), best=True, days=1):
    """A vote on a session of its own, some days after the one before."""
    at = START + timedelta(days=days * number)
    return ComparedVote(f"s{number:03}", at, PanelMatch(alike, decided, decided, best, *clear))


class TestShares:
    """How often person and panel agree."""

    def test_pairs_are_summed_and_clear_ones_stand_apart(self):
        """What is not clear is too close to call."""
        record = vote_record([vote(0, 4, 6, clear=(3, 3)), vote(1, 1, 2, clear=(1, 1), best=False)])

        assert record.votes == 2
        assert (record.match.value, record.match.n) == (5 / 8, 8)
        assert (record.clear.value, record.clear.n) == (1.0, 4)
        assert (record.close.value, record.close.n) == (1 / 4, 4)
        assert (record.same_best.value, record.same_best.n) == (1 / 2, 2)

    def test_an_interval_needs_five_votes(self):
        """Below that nothing is known of how much sessions vary."""
        votes = [vote(number, 2 + number % 2, 3) for number in range(5)]

        assert vote_record(votes[:4]).match.interval is None
        interval = vote_record(votes).match.interval
        assert interval.low < vote_record(votes).match.value < interval.high

    def test_pairs_of_one_session_do_not_count_as_independent(self):
        """Sessions that are all alike or all opposed leave the interval wide."""
        whole = vote_record([vote(number, 10 * (number % 2), 10) for number in range(10)])
        mixed = vote_record([vote(number, 5, 10) for number in range(10)])

        def width(record):
            return record.match.interval.high - record.match.interval.low

        assert width(whole) > 2 * width(mixed)

    def test_without_a_vote_nothing_is_claimed(self):
        """No share, no period."""
        record = vote_record([])

        assert (record.votes, record.periods, record.match.value) == (0, (), None)


class TestPeriods:
    """The same over time."""

    def test_votes_of_a_day_are_one_period(self):
        """In the order of time, whatever the order of the votes."""
        votes = [vote(2, 0, 3), vote(0, 3, 3), vote(1, 2, 3, days=0)]
        periods = vote_record(votes).periods

        assert [(each.since, each.votes) for each in periods] == [
            ("2026-11-01", 2),
            ("2026-11-03", 1),
        ]
        assert [each.match.value for each in periods] == [5 / 6, 0.0]

    @pytest.mark.parametrize(("n", "first"), [(30, "2026-11-01"), (31, "2026-11")])
    def test_many_days_become_months(self, n, first):
        """A chart of a year has twelve dots."""
        assert vote_record([vote(number, 1, 2) for number in range(n)]).periods[0].since == first
