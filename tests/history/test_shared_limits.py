"""Limits shared by processes through PostgreSQL: calls per minute, and a batch's ceiling."""

import time
from contextlib import ExitStack
from math import inf

import anyio
import pytest

from witan.deliberation.money import Amount
from witan.deliberation.ports import SystemClock
from witan.deliberation.procedure import ThrottlePolicy
from witan.deliberation.throttle import Throttles
from witan.errors import HistoryConflict, HistoryError
from witan.history import History
from witan.history.shared_limits import BatchCeiling, TokenBucket, require_server

RESERVES = """
import sys
from histories import stages
from witan.history import History
from witan.deliberation.money import Amount
from witan.history.shared_limits import BatchCeiling
history = History.open(sys.argv[1])
recording = history.recording()
[recording(event) for stage in list(stages("s1"))[:2] for event in stage]
recording.flush()
BatchCeiling(history, "b").reserve("s1", Amount(0.9, 9), 1)
print("reserved", flush=True)
sys.stdin.read()
"""


def test_a_history_in_a_file_is_refused(file):
    """The error names what to use in its place."""
    with (
        History.open(file) as history,
        pytest.raises(HistoryError, match="--history postgresql://"),
    ):
        require_server(history)


class TestTokens:
    """All processes together keep a provider's rate."""

    def test_concurrent_tokens_are_due_one_after_the_other(self, postgresql_url):
        """Each connection gets its own, in any order."""
        waits = []

        async def take(history):
            bucket = TokenBucket(require_server(history))
            waits.extend([await bucket.take("ada", 60, n) for n in (1, 2, 1)])

        async def take_all(histories):
            async with anyio.create_task_group() as group:
                for history in histories:
                    group.start_soon(take, history)

        with ExitStack() as stack:
            opened = [stack.enter_context(History.open(postgresql_url)) for _ in range(4)]
            anyio.run(take_all, opened)

        # Sixteen tokens of a minute each: the last is due after all that came before it.
        assert len(waits) == 12
        assert 13 * 60 < max(waits) <= 15 * 60
        assert all(late - early > 50 for early, late in zip(sorted(waits), sorted(waits)[1:]))  # noqa: B905

    def test_each_provider_has_its_own_tokens(self, postgresql_url):
        with History.open(postgresql_url) as history:
            bucket = TokenBucket(require_server(history))
            assert [anyio.run(bucket.take, name, 60, 5) for name in ("ada", "bo")] == [0, 0]

    def test_a_pause_applies_to_all_processes(self, postgresql_url):
        with History.open(postgresql_url) as one, History.open(postgresql_url) as other:
            anyio.run(TokenBucket(require_server(one)).take, "ada", 0.1, 1, 300)
            assert 200 < anyio.run(TokenBucket(require_server(other)).take, "ada", 0.1) <= 300.1

    def test_throttles_share_the_rate(self, postgresql_url):
        """Two of them start as many calls as one, and none in a burst."""
        starts = []

        async def call(throttles):
            async with throttles["ada"].slot():
                starts.append(anyio.current_time())

        async def call_all():
            async with anyio.create_task_group() as group:
                for history in (one, other):
                    tokens = TokenBucket(require_server(history))
                    limits = {"ada": ThrottlePolicy(per_minute=1_200)}
                    throttles = Throttles(limits, SystemClock(), tokens)
                    for _ in range(25):
                        group.start_soon(call, throttles)

        with History.open(postgresql_url) as one, History.open(postgresql_url) as other:
            anyio.run(call_all)

        assert len(starts) == 50
        for start in starts:  # of any second's window, with the second that a token may be late
            assert sum(start <= each < start + 1 for each in starts) <= 20 * 2 + 1
        assert max(starts) - min(starts) > 49 / 20 - 1


class TestCeiling:
    """A batch spends at most its ceiling, in all processes."""

    @pytest.fixture
    def history(self, postgresql_url):
        """An empty history on a server."""
        with History.open(postgresql_url) as history:
            yield history

    @pytest.fixture
    def ceiling(self, history):
        """The ceiling of an empty batch: a dollar, and 20 calls."""
        ceiling = BatchCeiling(history, "b")
        ceiling.open(Amount(1, 20), {})
        return ceiling

    def test_reserved_money_is_not_available(self, ceiling):
        """Another session waits until the cost of the first is known."""
        assert ceiling.reserve("s1", Amount(0.6, 6), 1) == (6, True)
        assert ceiling.reserve("s2", Amount(0.6, 6), 1) == (None, True)
        ceiling.settle("s1", Amount(0.3, 5))
        assert ceiling.reserve("s2", Amount(0.6, 6), 1) == (6, True)

    def test_the_last_session_gets_the_remaining_calls(self, ceiling):
        """They must be enough for a session."""
        ceiling.settle("s1", Amount(0.1, 16))
        assert ceiling.reserve("s2", Amount(0.1, 6), 5) == (None, False)
        assert ceiling.reserve("s2", Amount(0.1, 6), 3) == (4, True)

    def test_too_little_money_is_refused_without_waiting(self, ceiling):
        """Nobody can release more."""
        ceiling.settle("s1", Amount(0.8, 1))
        assert ceiling.reserve("s2", Amount(0.3, 1), 1) == (None, False)

    def test_earlier_runs_count_once(self, history, ceiling):
        """The batch may be started any number of times."""
        for _ in range(2):
            BatchCeiling(history, "b").open(Amount(1, inf), {"s1": Amount(0.5, 5)})
        assert ceiling.reserve("s2", Amount(0.6, 6), 1) == (None, False)
        assert ceiling.reserve("s2", Amount(0.4, 6), 1) == (6, True)

    def test_a_killed_process_releases_unspent_money(self, postgresql_url, ceiling, running):
        """The history has its costs; while it lives, others wait."""
        process = running(RESERVES, postgresql_url)
        assert ceiling.reserve("s2", Amount(0.5, 5), 1) == (None, True)
        process.kill()
        process.wait()
        deadline, calls = time.monotonic() + 60, None
        while calls is None and time.monotonic() < deadline:
            calls, may_wait = ceiling.reserve("s2", Amount(0.5, 5), 1)
            assert may_wait
        assert calls == 5

    @pytest.mark.parametrize("earlier", [{}, {"s1": Amount(0.0, 0)}])
    def test_late_costs_of_a_killed_run_count(
        self, history, postgresql_url, ceiling, running, earlier
    ):
        """Its workers may still run while the next run reads costs."""
        process = running(RESERVES, postgresql_url)
        process.kill()
        process.wait()
        ceiling.open(Amount(1, 20), earlier)

        spent = history.session("s1").cost.most
        assert spent.calls > 0
        assert history.database.rows("SELECT usd, calls FROM ceilings") == [pytest.approx(spent)]

    def test_a_session_missing_from_the_history_costs_nothing_in_the_next_run(self, ceiling):
        """Its maximum cost is released."""
        ceiling.settle("s1", Amount(0.5, 15))
        ceiling.open(Amount(1, 20), {})
        assert ceiling.reserve("s2", Amount(0.9, 20), 1) == (20, True)

    def test_two_attempts_at_a_session_count_once(self, ceiling):
        """Each settles the whole cost of the session; the larger sum counts."""
        for usd in (0.5, 0.9, 0.9):
            ceiling.settle("s1", Amount(usd, 9))
        assert ceiling.reserve("s2", Amount(0.2, 1), 1) == (None, False)
        assert ceiling.reserve("s2", Amount(0.1, 11), 1) == (11, True)

    def test_a_second_attempt_waits_for_the_first(self, history, postgresql_url, ceiling, running):
        """After the first process is killed, its cost counts in addition to the new reservation."""
        process = running(RESERVES, postgresql_url)
        ceiling.settle("s1", Amount(0, 0))
        assert ceiling.reserve("s1", Amount(0.05, 5), 1) == (None, True)
        assert ceiling.reserve("s2", Amount(0.5, 5), 1) == (None, True)
        process.kill()
        process.wait()
        deadline, calls = time.monotonic() + 60, None
        while calls is None and time.monotonic() < deadline:
            calls, _ = ceiling.reserve("s1", Amount(0.05, 5), 1)
        assert calls == 5

        [counted] = history.database.rows("SELECT usd, calls FROM ceilings")
        spent = history.session("s1").cost.most
        assert spent.calls > 0
        assert counted == pytest.approx((spent.usd + 0.05, spent.calls + 5))

    def test_a_dropped_connection_releases_nothing(self, history, postgresql_url, ceiling, running):
        """The process still runs and keeps its reservation."""
        process = running(RESERVES, postgresql_url)
        history.database.rows(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert ceiling.reserve("s1", Amount(0.05, 5), 1) == (None, True)
        with pytest.raises(HistoryConflict, match=f"is running in process {process.pid}"):
            history.claim("s1")

    def test_a_closed_ceiling_leaves_empty_tables(self, history, ceiling):
        ceiling.reserve("s1", Amount(0.5, 5), 1)
        ceiling.close()
        for table in ("ceilings", "reservations"):
            assert history.database.rows(f"SELECT * FROM {table}") == []  # noqa: S608
