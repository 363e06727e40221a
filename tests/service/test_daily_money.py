"""The daily limit of money: refusals, and the spending of a killed server."""

import shutil
from functools import partial

import pytest

from services import councils, until, write_config, write_priced
from witan.core.display import dollars
from witan.deliberation.ports import SystemClock
from witan.deliberation.session import Session
from witan.errors import Busy, HistoryError, OverBudget
from witan.history import History
from witan.service.operations.ask import (
    QuestionRequest,
    RejudgeRequest,
    ResumeRequest,
    RetryRequest,
)
from witan.service.sessions.manager import Service, resume_job
from witan.service.sessions.spending import Client, Ledger, SessionReservation
from witan.service.settings import CouncilSettings

ASKED = QuestionRequest("Is it so?")

CI = Client("ci", daily_usd=50.0)

HANGS = [{"prefers": ["Ada says"], "seconds": 30}]

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    """The event loop that servers run on."""
    return "asyncio"


@pytest.fixture
def priced(tmp_path):
    """The configuration of a council of scripts with a price."""
    return partial(write_priced, tmp_path)


@pytest.fixture
def ledger():
    """A ledger in memory."""
    return Ledger(SystemClock())


class TestRefusals:
    """A refusal states the money spent and reserved, and when to retry."""

    async def test_a_refusal_states_spent_and_reserved_money_separately(self, priced, ledger):
        """Reserved money is released when a session ends, not tomorrow."""
        ledger.settle(ledger.reserve("ci", 0.25), 0.25)
        async with Service.open(councils(priced(review=HANGS)), ledger=ledger) as service:
            running = await service.start(ASKED, CI)
            held, _ = ledger.reserved_usd("ci")
            limit = 0.25 + held
            with pytest.raises(Busy) as caught:
                await service.start(ASKED, Client("ci", daily_usd=limit))
            running.cancel()

        for fact in (
            "ci ",
            "$0.250",
            f"{dollars(limit)} ",
            f"{dollars(held)} ",
            "1 session in progress",
        ):
            assert fact in str(caught.value)
        assert caught.value.retry_seconds == 5

    @pytest.mark.parametrize("kind", [QuestionRequest, ResumeRequest, RetryRequest, RejudgeRequest])
    async def test_a_limit_below_the_cheapest_call_is_refused(self, priced, history, ledger, kind):
        """The error states the least cost of a call, and no session starts."""
        review = HANGS if kind is ResumeRequest else [{"error": "is down"}]
        async with Service.open(councils(priced(review=review), history)) as service:
            before = await service.start(ASKED)
            if kind is ResumeRequest:
                await until(before, "review_started")
                before.cancel()
            await before.wait_for_session()
        request = ASKED if kind is QuestionRequest else kind(session=before.id)
        async with Service.open(councils(priced(), history), ledger=ledger) as service:
            poor = Client("ci", daily_usd=1e-4)
            with pytest.raises(Busy, match=r"at least \$0\.0\d+"):
                await service.start(request, poor)
            assert not service.registry.sessions

        assert len(history.find(simulated=None)) == 1
        assert ledger.spent_usd("ci") == 0

    async def test_a_limit_above_the_smallest_session_is_accepted(self, priced, ledger):
        """The session makes calls: the stated minimum is exact."""
        async with Service.open(councils(priced()), ledger=ledger) as service:
            plan, _ = await service.plan(ASKED)
            _, least = plan.least_usd()
            with pytest.raises(Busy):
                await service.start(ASKED, Client("ci", daily_usd=least * 0.99))
            client = Client("ci", daily_usd=least * 1.01)
            session = await (await service.start(ASKED, client)).wait_for_session()

        assert len(session.answers) >= 2

    async def test_a_session_over_its_own_ceiling_is_refused_as_over_budget(self, priced, ledger):
        """It has no time to retry: waiting would not help."""
        asked = QuestionRequest("Is it so?", options=CouncilSettings(max_cost_usd=1e-6))
        async with Service.open(councils(priced()), ledger=ledger) as service:
            client = Client("ci", daily_usd=1e-4)
            with pytest.raises(OverBudget, match="the smallest complete session needs"):
                await service.start(asked, client)


class TestKilled:
    """After a kill, the next server settles reservations by the history.

    A copy of the ledger's file stands in for the file after a kill.
    """

    async def _killed(self, tmp_path, file, history, kind):
        """The ledger's file after a kill at such an event, the reservation, and the session."""
        path, left = tmp_path / "spent.jsonl", tmp_path / "left.jsonl"
        with Ledger(SystemClock(), path) as ledger:
            async with Service.open(councils(file, history), ledger=ledger) as service:
                running = await service.start(ASKED, CI)
                await until(running, kind)
                shutil.copy(path, left)
                held = ledger.spent_usd("ci")
                running.cancel()
                session = await running.wait_for_session()
        return left, held, session

    async def _restarted(self, path, file, history):
        """The counted spending after a server, and then another, has started."""
        counted = []
        for _ in range(2):
            with Ledger(SystemClock(), path) as ledger:
                async with Service.open(councils(file, history), ledger=ledger):
                    counted.append(ledger.spent_usd("ci"))
                    assert ledger.reserved_usd("ci") == (0, 0)
        assert counted[0] == counted[1]
        return counted[0]

    async def test_a_reservation_is_replaced_by_the_session_s_highest_cost(
        self, priced, history, tmp_path
    ):
        """Interrupted calls count at their maximum."""
        file = priced(review=HANGS)
        path, held, session = await self._killed(tmp_path, file, history, "review_started")
        spent = await self._restarted(path, file, history)

        assert session.status == "interrupted"
        assert spent == pytest.approx(session.cost.committed_usd)
        assert session.cost.known_usd < spent < held

    async def test_only_the_rest_of_a_resumed_session_counts(self, priced, history, tmp_path):
        """Its earlier cost belongs to another account."""
        _, _, broken = await self._killed(tmp_path, priced(review=HANGS), history, "review_started")
        path, left = tmp_path / "spent.jsonl", tmp_path / "left.jsonl"
        path.unlink()
        file = priced(synthesis=[{"text": "So.", "seconds": 30}])
        with Ledger(SystemClock(), path) as ledger:
            async with Service.open(councils(file, history), ledger=ledger) as service:
                running = await service.start(ResumeRequest(broken.id), client=CI)
                await until(running, "synthesis_started")
                shutil.copy(path, left)
                running.cancel()
                session = await running.wait_for_session()
        spent = await self._restarted(left, file, history)

        assert spent == pytest.approx(session.cost.committed_usd - broken.cost.committed_usd)

    @pytest.mark.parametrize("kept", ["nowhere", "in another history"])
    async def test_without_a_history_the_whole_reservation_counts(
        self, priced, history, tmp_path, kept
    ):
        """All of it may have been spent."""
        file = priced(review=HANGS)
        held_in = None if kept == "nowhere" else history
        path, held, _ = await self._killed(tmp_path, file, held_in, "review_started")
        with History.open(tmp_path / "other.sqlite") as other:
            spent = await self._restarted(path, file, other)

        assert spent == held > 0

    async def test_an_incomplete_record_counts_in_full(self, priced, history, tmp_path):
        """Even if the history has the beginning of the session."""
        path = tmp_path / "spent.jsonl"
        file = priced(review=HANGS)
        _, _, session = await self._killed(tmp_path, file, history, "review_started")
        path.unlink()
        with Ledger(SystemClock(), path) as ledger:
            account = SessionReservation(ledger, ledger.reserve("ci", 1.0))
            await account.await_record(session.id, is_recorded=True)
            await account.await_record(session.id, is_recorded=False)
            await account.await_record(session.id, is_recorded=True)

        assert await self._restarted(path, file, history) == 1.0

    async def test_a_reservation_without_a_call_is_released(self, tmp_path, history):
        """No call is made before the session's name is on disk."""
        path = tmp_path / "spent.jsonl"
        with Ledger(SystemClock(), path) as ledger:
            ledger.reserve("ci", 1.0)
            await ledger.flush()

        assert await self._restarted(path, write_config(tmp_path), history) == 0


async def test_a_failed_write_for_one_client_does_not_block_others(tmp_path, caplog):
    """Only a client with unwritten lines gets the error, and may continue once they are written."""
    path = tmp_path / "spent.jsonl"
    with Ledger(SystemClock(), path) as ledger:
        ada, bob, cyd = (
            SessionReservation(ledger, ledger.reserve(name, 1.0)) for name in ("a", "b", "c")
        )
        await ada.await_record("ada's", is_recorded=True)
        path.rename(tmp_path / "away")
        path.mkdir()
        await bob.settle(None)
        assert "cannot be recorded" in caplog.text
        await ada.await_record("ada's", is_recorded=True)
        with pytest.raises(HistoryError, match="cannot be recorded"):
            await cyd.await_record("cyd's", is_recorded=True)
        await ada.await_record("ada's", is_recorded=True)
        path.rmdir()
        (tmp_path / "away").rename(path)
        await cyd.await_record("cyd's", is_recorded=True)
    with Ledger(SystemClock(), path) as after:
        assert [after.spent_usd(name) for name in "abc"] == [1.0, 0.0, 1.0]
        assert {left.session for left in after.reservations_left} == {"ada's", "cyd's"}


async def test_a_taken_over_session_is_paid_from_its_last_state(priced, ledger):
    """Money spent meanwhile by its other holder belongs to that holder."""
    seated = councils(priced())
    async with Service.open(seated) as service:
        whole = await (await service.start(ASKED)).wait_for_session()
        events = service.registry.get(whole.id).record.events
        kinds = [event.kind for event in events]
        found = Session.of(events[: kinds.index("answer_done")])
        left = Session.of(events[: kinds.index("synthesis_started")])

        async def take_up():
            return left

        job = resume_job(seated, found, take_up)
        account = SessionReservation(ledger, ledger.reserve("ci", 1.0))
        async with job.seat(None) as council:
            session = await job.run(council, lambda _: None, account)
        await account.settle(session)

    assert found.cost.committed_usd != left.cost.committed_usd
    spent = session.cost.committed_usd - left.cost.committed_usd
    assert ledger.spent_usd("ci") == pytest.approx(spent)
