"""Sessions of a service, for clients of every protocol."""

import gc
import json
from dataclasses import replace
from functools import partial

import anyio
import pytest
from pydantic import ValidationError

from histories import record_sessions
from services import councils, until, write_config, write_priced
from witan.deliberation.ports import Message
from witan.errors import (
    Busy,
    ConfigError,
    HistoryError,
    InvalidParameter,
    NothingToCount,
    OverBudget,
    TooLarge,
    UnknownName,
)
from witan.history import History
from witan.service.dispatch import dispatch, keep_typed
from witan.service.json_output import to_json
from witan.service.operations.ask import (
    QuestionRequest,
    RejudgeRequest,
    ResumeRequest,
    RetryRequest,
)
from witan.service.operations.reports import LeaderboardParameters, leaderboard
from witan.service.parameters import validate_parameters
from witan.service.redaction import redact_session
from witan.service.sessions.manager import Service
from witan.service.sessions.spending import Client, Ledger
from witan.service.settings import CouncilSettings

QUESTION = "Is it so?"

SLOW = [{"text": "Ada says so.", "seconds": 30}]

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    """The event loop that servers run on."""
    return "asyncio"


@pytest.fixture
async def service(tmp_path, history):
    """A service with a history, the configured council and the demonstration."""
    async with Service.open(councils(write_config(tmp_path), history)) as opened:
        yield opened


async def test_waiting_clients_share_a_leaderboard_count(service):
    """Two counts serve six clients: the running one, and one for those that asked meanwhile."""
    record_sessions(service.history, *"vwxyz")
    boards = []

    async def ask(name):
        parameters = LeaderboardParameters(min_sessions=1)
        boards.append(await dispatch(leaderboard, service, Client(name), parameters, keep_typed))

    async with anyio.create_task_group() as group:
        for name in "abcdef":
            group.start_soon(ask, name)

    assert len(boards) == 6
    assert len({id(board) for board in boards}) == 2
    assert len({to_json(board) for board in boards}) == 1


class TestAsking:
    """A question goes to the requested council."""

    async def test_the_configured_council_answers(self, service):
        """Its session is complete, and in the history once it has ended."""
        running = await service.start(QuestionRequest(QUESTION))
        session = await running.wait_for_session()

        assert session.status == "complete"
        assert service.history.session(running.id) == running.record
        assert redact_session(running.record) == session

    async def test_the_demonstration_is_always_available(self, service):
        """It is marked as simulated."""
        running = await service.start(QuestionRequest(QUESTION, profile="demo"))

        assert (await running.wait_for_session()).is_simulated
        assert service.profiles["demo"].simulated

    async def test_options_apply_to_one_session(self, service):
        """The next one deliberates as configured."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(rule="schulze", synthesis=False))
        chosen = await (await service.start(asked)).wait_for_session()
        usual = await (await service.start(QuestionRequest(QUESTION))).wait_for_session()

        assert (chosen.outcome.rule, chosen.synthesis) == ("schulze", None)
        assert usual.synthesis is not None

    async def test_a_request_can_choose_some_seats(self, service):
        """A chairman that was not chosen does not write the final answer either."""
        asked = QuestionRequest(
            QUESTION, members=("bob", "cyd"), options=CouncilSettings(mode="best")
        )
        session = await (await service.start(asked)).wait_for_session()

        assert [seat.name for seat in session.opening.callable_seats] == ["bob", "cyd"]

    @pytest.mark.parametrize(
        "seat", ["cmd:sh", "script:/etc/passwd", "http://10.0.0.1/v1#x", "eve"]
    )
    async def test_unconfigured_seats_are_refused(self, service, seat):
        """Whatever notation the request uses."""
        with pytest.raises(UnknownName, match="seat"):
            await service.start(QuestionRequest(QUESTION, members=(seat, "bob")))

    async def test_a_weight_for_an_unknown_reviewer_is_refused(self, service):
        """The error names the reviewers."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(weights={"nobody": 2}))

        with pytest.raises(UnknownName, match=r"unknown reviewer 'nobody'; known: .*bob"):
            await service.start(asked)

    @pytest.mark.parametrize("option", ["history", "url", "providers", "members", "host", "key"])
    async def test_connection_settings_are_not_options(self, option):
        """Clients choose how the council deliberates, and nothing else."""
        with pytest.raises(ValidationError, match=option):
            validate_parameters(QuestionRequest, {"question": QUESTION, "options": {option: "x"}})

    async def test_a_rubric_cannot_be_a_path(self, service):
        """A request makes the server read no file."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(rubric="/etc/rubric.toml"))

        with pytest.raises(InvalidParameter, match="rubric"):
            await service.start(asked)

    @pytest.mark.parametrize(
        ("option", "value"),
        [("session_seconds", 1e9), ("attempts", 10**9), ("max_tokens", 10**400)],
    )
    async def test_excessive_limits_are_refused(self, service, option, value):
        """A session cannot occupy a slot forever."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(**{option: value}))

        with pytest.raises(InvalidParameter, match=option):
            await service.start(asked)

    async def test_long_options_are_refused(self, service):
        """The server stores a session's options, so their size is limited."""
        weights = {f"seat {n}": 1.0 for n in range(10_000)}

        with pytest.raises(TooLarge, match="options"):
            await service.start(QuestionRequest(QUESTION, options=CouncilSettings(weights=weights)))

    async def test_an_invalid_value_is_refused_before_the_session_opens(self, service):
        """No session remains."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(rule="bordas"))

        with pytest.raises(ConfigError, match="borda"):
            await service.start(asked)
        assert service.registry.under_way == ()

    async def test_a_session_can_be_continued(self, service):
        """Its question and final answer become the conversation; it is recorded as parent."""
        first = await (await service.start(QuestionRequest(QUESTION))).wait_for_session()
        second = await (
            await service.start(QuestionRequest("And then?", parent=first.id))
        ).wait_for_session()

        assert second.opening.conversation == (
            Message("user", QUESTION),
            Message("assistant", first.text),
        )
        assert (second.opening.parent, second.opening.relation) == (first.id, "continued")


class TestEnding:
    """A session ends or is interrupted, and its record is complete up to there."""

    @pytest.fixture
    async def slow(self, tmp_path, history):
        """A service whose members review slowly."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 30}])
        async with Service.open(councils(file, history), most=2) as opened:
            yield opened

    async def test_a_cancelled_session_can_be_resumed(self, slow):
        """Its answers are stored, and the reviews are requested again."""
        running = await slow.start(QuestionRequest(QUESTION))
        await until(running, "review_started")
        running.cancel()
        broken = await running.wait_for_session()

        assert (broken.status, len(broken.answers)) == ("interrupted", 3)
        assert redact_session(slow.history.session(running.id)) == broken
        again = await slow.start(ResumeRequest(running.id))
        assert again.id == running.id
        assert len(again.session.answers) == 3

    async def test_a_fruitless_resume_stays_interrupted(self, tmp_path, history):
        """A closed session could never be resumed again; a later attempt completes this one."""
        async with Service.open(councils(write_config(tmp_path, answer=SLOW), history)) as service:
            running = await service.start(QuestionRequest(QUESTION))
            running.cancel()
            await running.wait_for_end()
        down = write_config(tmp_path, answer=[{"error": "is down", "status": 401}])
        async with Service.open(councils(down, history)) as service:
            in_vain = await (await service.start(ResumeRequest(running.id))).wait_for_session()
            stored = history.session(running.id)
        async with Service.open(councils(write_config(tmp_path), history)) as service:
            completed = await (await service.start(ResumeRequest(running.id))).wait_for_session()

        assert (in_vain.status, stored.status) == ("interrupted", "interrupted")
        assert stored.events[-1].kind == "sitting_in_vain"
        assert completed.status == "complete"

    async def test_a_running_session_is_not_resumed_or_deleted(self, slow):
        """The error says that it is under way."""
        running = await slow.start(QuestionRequest(QUESTION))

        with pytest.raises(HistoryError, match="under way"):
            await slow.start(ResumeRequest(running.id))
        with pytest.raises(HistoryError, match="under way"):
            await slow.forget(running.id)

    async def test_a_closed_session_is_not_resumed(self, service):
        """It has no calls left to make."""
        running = await service.start(QuestionRequest(QUESTION))
        await running.wait_for_session()

        with pytest.raises(NothingToCount, match="has ended"):
            await service.start(ResumeRequest(running.id))

    async def test_concurrent_sessions_are_limited(self, slow):
        """A further request is refused until one of them ends."""
        first = await slow.start(QuestionRequest(QUESTION))
        await slow.start(QuestionRequest(QUESTION))

        with pytest.raises(Busy, match="limit of 2 concurrent sessions"):
            await slow.start(QuestionRequest(QUESTION))
        first.cancel()
        await first.wait_for_session()
        await slow.start(QuestionRequest(QUESTION))

    async def test_a_closing_service_leaves_resumable_sessions(self, tmp_path, history):
        """The history has their progress."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 30}])
        async with Service.open(councils(file, history)) as service:
            running = await service.start(QuestionRequest(QUESTION))
            await until(running, "review_started")

        session = history.session(running.id)
        assert (session.status, len(session.answers)) == ("interrupted", 3)

    async def test_a_draining_service_lets_sessions_end(self, tmp_path, history):
        """It starts no new ones."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 0.3}])
        async with Service.open(councils(file, history)) as service:
            running = await service.start(QuestionRequest(QUESTION))
            async with anyio.create_task_group() as group:
                group.start_soon(service.drain, 10)
                await anyio.sleep(0.05)
                with pytest.raises(Busy, match="about to stop"):
                    await service.start(QuestionRequest(QUESTION))

        assert running.session.status == "complete"

    async def test_a_session_that_is_not_recorded_is_still_returned(self, tmp_path, history):
        """Beside it is the reason: another process took over its record."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 2}])
        async with Service.open(councils(file, history)) as service:
            running = await service.start(QuestionRequest(QUESTION))
            await until(running, "review_started")
            written = partial(anyio.to_thread.run_sync, history.has_record, running.id)
            while not await written():  # noqa: ASYNC110 - a thread writes it, and sets no event
                await anyio.sleep(0.01)
            with History.open(tmp_path / "history.sqlite") as other:
                other.claim(running.id, force=True)
            session = await running.wait_for_session()

        assert session.status == "degraded"  # no chairman is called any more
        assert running.problem is not None

    async def test_a_cancelled_service_interrupts_its_sessions(self, tmp_path, history):
        """The history has their progress."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 30}])
        with anyio.fail_after(25), anyio.CancelScope() as scope:
            async with Service.open(councils(file, history)) as service:
                running = await service.start(QuestionRequest(QUESTION))
                await until(running, "review_started")
                scope.cancel()
                await anyio.sleep_forever()

        assert not running.under_way
        assert history.session(running.id).status == "interrupted"

    @pytest.mark.parametrize("kept", [True, False])
    async def test_only_one_of_two_requests_resumes_a_session(self, tmp_path, history, kept):
        """Its calls are not made, and paid, twice."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 30}])
        came = []
        async with Service.open(councils(file, history if kept else None)) as service:
            running = await service.start(QuestionRequest(QUESTION))
            await until(running, "review_started")
            running.cancel()
            await running.wait_for_session()

            async def take_up():
                try:
                    came.append((await service.start(ResumeRequest(running.id))).id)
                except HistoryError as error:
                    came.append(error.problem)

            async with anyio.create_task_group() as group:
                group.start_soon(take_up)
                group.start_soon(take_up)

        assert sorted(came) == sorted([running.id, f"the session {running.id} is under way"])

    async def test_a_full_service_does_not_take_over_a_session(self, slow, tmp_path):
        """Without a free slot, the session stays with the process that has it."""
        running = await slow.start(QuestionRequest(QUESTION))
        await until(running, "review_started")
        running.cancel()
        await running.wait_for_session()
        with History.open(tmp_path / "history.sqlite") as other:
            recording = other.recording()
            *before, last = other.claim(running.id).events
            for event in before:
                recording(event)
            await anyio.to_thread.run_sync(recording.flush)
            await slow.start(QuestionRequest(QUESTION))
            await slow.start(QuestionRequest(QUESTION))
            with pytest.raises(Busy):
                await slow.start(ResumeRequest(running.id, take_over=True))

            recording(replace(last, seq=last.seq + 1))
            await anyio.to_thread.run_sync(recording.flush)


class Failing:
    """An observer that fails in the named method."""

    def __init__(self, where: str) -> None:
        self.where = where

    def watch(self, _):
        self._fail("watch")
        return lambda _: self._fail("hear")

    def end_session(self, _):
        self._fail("end_session")

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise ValueError(where)


@pytest.mark.parametrize("where", ["watch", "hear", "end_session"])
async def test_a_failing_observer_does_not_affect_sessions(tmp_path, where, caplog):
    """Sessions are complete, and the failure is in the log."""
    observers = [Failing(where)]
    async with Service.open(councils(write_config(tmp_path)), observers=observers) as service:
        for _ in range(2):
            session = await (await service.start(QuestionRequest(QUESTION))).wait_for_session()
            assert session.status == "complete"

    assert "Failing failed" in caplog.text


@pytest.mark.slow
async def test_sessions_stay_in_memory_by_the_time_of_their_end(tmp_path):
    """A session that was opened first but ended last stays."""
    file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 30}])
    demo = QuestionRequest(QUESTION, profile="demo", options=CouncilSettings(mode="best"))
    async with Service.open(councils(file), most=400) as service:
        first = await service.start(QuestionRequest(QUESTION))
        for _ in range(3):
            others = [await service.start(demo) for _ in range(90)]
            for other in others:
                other.cancel()
                await other.wait_for_session()
        first.cancel()
        await first.wait_for_session()

        assert service.registry.get(first.id) is first


class TestFinding:
    """A session is found by its name or an unambiguous beginning of it."""

    async def test_without_a_history_recent_sessions_are_found(self, tmp_path):
        """`last` is the latest."""
        async with Service.open(councils(write_config(tmp_path))) as service:
            running = await service.start(QuestionRequest(QUESTION))
            session = await running.wait_for_session()

            assert await service.session("last") == session
            assert await service.session(running.id[:17]) == session

    async def test_an_unknown_session_is_refused(self, service):
        """No other session is returned in its place."""
        with pytest.raises(UnknownName, match="session"):
            await service.session("nothing-of-the-kind")

    async def test_a_deleted_session_is_gone(self, service):
        """From memory, too."""
        running = await service.start(QuestionRequest(QUESTION))
        await running.wait_for_session()
        await service.forget(running.id)

        assert service.registry.get(running.id) is None
        with pytest.raises(UnknownName):
            await service.session(running.id)


class TestRate:
    """The limit of a client's sessions per minute."""

    async def test_a_session_over_the_rate_is_refused(self, service):
        """Whatever operation starts it; the error says when to retry. Other clients continue."""
        client = Client("ci", per_minute=2)
        first = await (await service.start(QuestionRequest(QUESTION), client)).wait_for_session()
        await (await service.start(RejudgeRequest(first.id), client)).wait_for_session()

        for again in (
            service.start(QuestionRequest(QUESTION), client),
            service.start(RejudgeRequest(first.id), client),
        ):
            with pytest.raises(Busy, match="ci may start 2 sessions") as caught:
                await again
            assert 50 < caught.value.retry_seconds <= 60
        await (
            await service.start(QuestionRequest(QUESTION), Client("ines", per_minute=2))
        ).wait_for_session()

    async def test_a_refused_request_does_not_count(self, service):
        """A client may correct its mistake at once."""
        client = Client("ci", per_minute=1)
        with pytest.raises(UnknownName):
            await service.start(QuestionRequest(QUESTION, members=("eve", "bob")), client)
        await (await service.start(QuestionRequest(QUESTION), client)).wait_for_session()


def _written(path):
    """Number to dollars, by the last line of each."""
    lines = map(json.loads, path.read_text().splitlines())
    return {line["number"]: line["usd"] for line in lines}


class TestMoney:
    """A client's limits of money hold for all its sessions."""

    async def test_a_client_over_its_daily_limit_is_refused(self, tmp_path, clock_now):
        """The error says whose limit it is; other clients continue."""
        ledger = Ledger(clock_now)
        ledger.settle(ledger.reserve("ci", 2.0), 2.0)
        spent = r"ci has spent \$2\.00 of the \$2\.00 of its last 24 hours; ask again tomorrow"
        async with Service.open(councils(write_config(tmp_path)), ledger=ledger) as service:
            with pytest.raises(Busy, match=spent) as caught:
                await service.start(QuestionRequest(QUESTION), Client("ci", daily_usd=2.0))
            assert caught.value.retry_seconds == 3600
            await (
                await service.start(QuestionRequest(QUESTION), Client("ines", daily_usd=2.0))
            ).wait_for_session()

    async def test_unspent_money_is_released(self, tmp_path, clock_now):
        """Scripts cost nothing."""
        ledger = Ledger(clock_now)
        async with Service.open(councils(write_config(tmp_path)), ledger=ledger) as service:
            await (
                await service.start(QuestionRequest(QUESTION), Client("ci", daily_usd=2.0))
            ).wait_for_session()

        assert ledger.spent_usd("ci") == 0

    async def test_a_session_s_ceiling_is_capped_at_the_remaining_money(self, tmp_path, clock_now):
        """Even if the request names a higher one."""
        ledger = Ledger(clock_now)
        ledger.reserve("ci", 1.5)
        asked = QuestionRequest(QUESTION, options=CouncilSettings(max_cost_usd=10.0))
        async with Service.open(councils(write_config(tmp_path)), ledger=ledger) as service:
            client = Client("ci", daily_usd=2.0, max_cost_usd=1.0)
            running = await service.start(asked, client)

            assert running.session.opening.procedure.limits.max_cost_usd == 0.5

    @pytest.fixture
    def priced(self, tmp_path):
        """The configuration of a council of scripts with a price."""
        return partial(write_priced, tmp_path)

    async def test_a_session_reserves_its_ceiling(self, priced, clock_now):
        """So concurrent sessions together stay within the daily limit."""
        ledger = Ledger(clock_now)
        file = priced(review=[{"prefers": ["Ada says"], "seconds": 30}])
        async with Service.open(councils(file), ledger=ledger) as service:
            running = await service.start(QuestionRequest(QUESTION), Client("ci", daily_usd=50.0))

            ceiling = running.session.opening.procedure.limits.max_cost_usd
            assert 0 < ceiling < 50
            assert ledger.spent_usd("ci") == ceiling

    @pytest.mark.parametrize(
        ("way", "request_of"),
        [("resume", ResumeRequest), ("retry", RetryRequest), ("rejudge", RejudgeRequest)],
    )
    async def test_continuing_a_session_reserves_only_its_remaining_cost(
        self, priced, history, clock_now, way, request_of
    ):
        """The client's other sessions can use the rest of its limit."""
        before = await self._earlier(priced, history, way)
        ledger = Ledger(clock_now)
        file = priced(review=[{"prefers": ["Ada says"], "seconds": 30}])
        async with Service.open(councils(file, history), ledger=ledger) as service:
            client = Client("ci", daily_usd=50.0)
            running = await service.start(request_of(before.id), client)
            await until(running, "review_started")

            assert 0 < ledger.spent_usd("ci") < before.opening.plan.worst_usd
            assert running.session.opening.plan.worst_usd < 50

    async def _earlier(self, priced, history, way):
        if way == "resume":
            return await self._broken_off(priced, history)
        file = priced(review=[{"error": "is down"}])
        async with Service.open(councils(file, history)) as service:
            return await (await service.start(QuestionRequest(QUESTION))).wait_for_session()

    async def test_a_session_s_cost_is_on_disk_before_its_end_is_reported(
        self, priced, clock_now, tmp_path
    ):
        """Its highest cost is on disk before it starts."""
        path = tmp_path / "spent.jsonl"
        file = priced(review=[{"prefers": ["Ada says"], "seconds": 0.1}])
        with Ledger(clock_now, path) as ledger:
            async with Service.open(councils(file), ledger=ledger) as service:
                running = await service.start(
                    QuestionRequest(QUESTION), Client("ci", daily_usd=50.0)
                )
                begun = _written(path)
                session = await running.wait_for_session()
                over = _written(path)

        [most] = begun.values()
        assert most == session.opening.procedure.limits.max_cost_usd
        assert over == dict.fromkeys(begun, session.cost.known_usd)

    async def test_no_session_starts_if_the_ledger_cannot_be_written(
        self, priced, clock_now, tmp_path
    ):
        """Its slot and its money are released."""
        path = tmp_path / "spent.jsonl"
        with Ledger(clock_now, path) as ledger:
            path.unlink()
            path.mkdir()
            async with Service.open(councils(priced()), ledger=ledger, most=1) as service:
                client = Client("ci", daily_usd=50.0)
                for _ in range(2):
                    with pytest.raises(HistoryError, match="cannot be recorded"):
                        await service.start(QuestionRequest(QUESTION), client)
                assert ledger.spent_usd("ci") == 0
                await (await service.start(QuestionRequest(QUESTION))).wait_for_session()

    async def test_resuming_a_session_pays_only_for_the_rest(self, priced, history, clock_now):
        """Its earlier cost stays on the other account."""
        ledger = Ledger(clock_now)
        broken = await self._broken_off(priced, history)
        async with Service.open(councils(priced(), history), ledger=ledger) as service:
            client = Client("ci", daily_usd=50.0)
            session = await (
                await service.start(ResumeRequest(broken.id), client=client)
            ).wait_for_session()

        assert session.status == "complete"
        assert broken.cost.committed_usd > 0
        paid = session.cost.committed_usd - broken.cost.committed_usd
        assert ledger.spent_usd("ci") == pytest.approx(paid)

    async def test_a_resumed_session_obeys_the_resuming_client_s_limit(self, priced, history):
        """Without ballots it is refused, whatever ceiling it started with."""
        broken = await self._broken_off(priced, history)
        async with Service.open(councils(priced(), history)) as service:
            with pytest.raises(OverBudget):
                await service.start(
                    ResumeRequest(broken.id), client=Client("ci", max_cost_usd=1e-6)
                )

        assert history.session(broken.id).cost.committed_usd == broken.cost.committed_usd

    async def _broken_off(self, priced, history):
        file = priced(review=[{"prefers": ["Ada says"], "seconds": 30}])
        async with Service.open(councils(file, history)) as service:
            running = await service.start(QuestionRequest(QUESTION))
            await until(running, "review_started")
            running.cancel()
            return await running.wait_for_session()

    @pytest.fixture
    def clock_now(self):
        """The time of this machine."""
        from witan.deliberation.ports import SystemClock

        return SystemClock()


class TestMemory:
    """Ended sessions use bounded memory."""

    @pytest.mark.slow
    async def test_long_sessions_are_dropped_from_memory_first(self, tmp_path, history):
        """Memory is limited by length; the latest session stays, the others are in the history."""
        file = write_config(tmp_path, answer=[{"text": "Ada says " + "so" * 700_000}])
        async with Service.open(councils(file, history)) as service:
            names = []
            for _ in range(5):
                running = await service.start(QuestionRequest(QUESTION))
                await running.wait_for_session()
                names.append(running.id)
            held = [running.id for running in service.registry.sessions]
            first = await service.session(names[0])

        assert held == names[-len(held) :]
        assert 1 <= len(held) < 5
        assert len(first.answers["ada"].text) > 1_400_000

    async def test_a_deleted_session_leaves_memory(self, service):
        """Nothing refers to it any more."""
        running = await service.start(QuestionRequest(QUESTION))
        await running.wait_for_session()
        await service.forget(running.id)

        assert service.registry.sessions == ()

    @pytest.mark.slow
    async def test_sessions_leave_no_reference_cycles(self, service):
        """Their prompts and replies are freed without the garbage collector."""
        for n_sessions in (2, 10):
            gc.collect()
            gc.disable()
            try:
                for _ in range(n_sessions):
                    await (await service.start(QuestionRequest(QUESTION))).wait_for_session()
                left = gc.collect()
            finally:
                gc.enable()

        assert left < 10 * 20
