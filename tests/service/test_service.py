"""Sessions held for whoever asks from outside."""

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
    """A service with a history, in which the configured council and the demonstration sit."""
    async with Service.open(councils(write_config(tmp_path), history)) as opened:
        yield opened


async def test_clients_that_wait_for_a_leaderboard_have_it_counted_once(service):
    """Two counts serve six clients: the one under way, and one for all who asked meanwhile."""
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
    """A question goes to the council that is asked for."""

    async def test_the_configured_council_answers(self, service):
        """Its session is whole, and in the history when it has ended."""
        running = await service.start(QuestionRequest(QUESTION))
        session = await running.wait_for_session()

        assert session.status == "complete"
        assert service.history.session(running.id) == running.record
        assert redact_session(running.record) == session

    async def test_the_demonstration_is_always_there(self, service):
        """It is marked as simulated."""
        running = await service.start(QuestionRequest(QUESTION, profile="demo"))

        assert (await running.wait_for_session()).is_simulated
        assert service.profiles["demo"].simulated

    async def test_options_are_for_one_session(self, service):
        """The next one deliberates as configured."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(rule="schulze", synthesis=False))
        chosen = await (await service.start(asked)).wait_for_session()
        usual = await (await service.start(QuestionRequest(QUESTION))).wait_for_session()

        assert (chosen.outcome.rule, chosen.synthesis) == ("schulze", None)
        assert usual.synthesis is not None

    async def test_some_of_the_seats_can_be_asked(self, service):
        """A chairman that was left out does not close the session either."""
        asked = QuestionRequest(
            QUESTION, members=("bob", "cyd"), options=CouncilSettings(mode="best")
        )
        session = await (await service.start(asked)).wait_for_session()

        assert [seat.name for seat in session.opening.callable_seats] == ["bob", "cyd"]

    @pytest.mark.parametrize(
        "seat", ["cmd:sh", "script:/etc/passwd", "http://10.0.0.1/v1#x", "eve"]
    )
    async def test_nobody_else_can_be_seated(self, service, seat):
        """A seat is one of those configured, whatever it is written like."""
        with pytest.raises(UnknownName, match="seat"):
            await service.start(QuestionRequest(QUESTION, members=(seat, "bob")))

    async def test_a_weight_is_of_somebody_who_reviews(self, service):
        """The name of no reviewer is refused, and those who review are named."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(weights={"nobody": 2}))

        with pytest.raises(UnknownName, match=r"unknown reviewer 'nobody'; known: .*bob"):
            await service.start(asked)

    @pytest.mark.parametrize("option", ["history", "url", "providers", "members", "host", "key"])
    async def test_how_a_model_is_reached_is_no_option(self, option):
        """Whoever asks chooses how the council deliberates, and no more."""
        with pytest.raises(ValidationError, match=option):
            validate_parameters(QuestionRequest, {"question": QUESTION, "options": {option: "x"}})

    async def test_a_rubric_is_no_file(self, service):
        """A request makes the server read nothing."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(rubric="/etc/rubric.toml"))

        with pytest.raises(InvalidParameter, match="rubric"):
            await service.start(asked)

    @pytest.mark.parametrize(
        ("option", "value"),
        [("session_seconds", 1e9), ("attempts", 10**9), ("max_tokens", 10**400)],
    )
    async def test_nobody_holds_a_place_for_ever(self, service, option, value):
        """Nor asks for more than can be reckoned with."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(**{option: value}))

        with pytest.raises(InvalidParameter, match=option):
            await service.start(asked)

    async def test_options_are_no_place_to_keep_things(self, service):
        """The server remembers how it was asked, so that has to be short."""
        weights = {f"seat {n}": 1.0 for n in range(10_000)}

        with pytest.raises(TooLarge, match="options"):
            await service.start(QuestionRequest(QUESTION, options=CouncilSettings(weights=weights)))

    async def test_a_wrong_value_is_refused_before_anything_is_opened(self, service):
        """No session comes of it."""
        asked = QuestionRequest(QUESTION, options=CouncilSettings(rule="bordas"))

        with pytest.raises(ConfigError, match="borda"):
            await service.start(asked)
        assert service.under_way == ()

    async def test_a_session_can_be_continued(self, service):
        """The conversation is what was said before, and the new one names the old."""
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
    """A session ends by itself, or is interrupted; nothing of it is lost."""

    @pytest.fixture
    async def slow(self, tmp_path, history):
        """A service whose members take their time to review."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 30}])
        async with Service.open(councils(file, history), most=2) as opened:
            yield opened

    async def test_one_that_is_cancelled_can_be_taken_up(self, slow):
        """Its answers are kept, and the reviews are asked for again."""
        running = await slow.start(QuestionRequest(QUESTION))
        await until(running, "review_started")
        running.cancel()
        broken = await running.wait_for_session()

        assert (broken.status, len(broken.answers)) == ("interrupted", 3)
        assert redact_session(slow.history.session(running.id)) == broken
        again = await slow.start(ResumeRequest(running.id))
        assert again.id == running.id
        assert len(again.session.answers) == 3

    async def test_one_that_is_resumed_in_vain_stays_interrupted(self, tmp_path, history):
        """Closed, it could never be resumed again; a later attempt completes it."""
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

    async def test_one_that_is_under_way_is_not_taken_up(self, slow):
        """Nor deleted."""
        running = await slow.start(QuestionRequest(QUESTION))

        with pytest.raises(HistoryError, match="under way"):
            await slow.start(ResumeRequest(running.id))
        with pytest.raises(HistoryError, match="under way"):
            await slow.forget(running.id)

    async def test_one_that_is_over_is_not_taken_up(self, service):
        """There is nothing left of it to do."""
        running = await service.start(QuestionRequest(QUESTION))
        await running.wait_for_session()

        with pytest.raises(NothingToCount, match="has ended"):
            await service.start(ResumeRequest(running.id))

    async def test_no_more_are_held_than_there_are_places(self, slow):
        """The next one is told to come again; a place that comes free is given away."""
        first = await slow.start(QuestionRequest(QUESTION))
        await slow.start(QuestionRequest(QUESTION))

        with pytest.raises(Busy, match="limit of 2 concurrent sessions"):
            await slow.start(QuestionRequest(QUESTION))
        first.cancel()
        await first.wait_for_session()
        await slow.start(QuestionRequest(QUESTION))

    async def test_a_service_that_closes_leaves_sessions_to_be_resumed(self, tmp_path, history):
        """They are in the history as far as they came."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 30}])
        async with Service.open(councils(file, history)) as service:
            running = await service.start(QuestionRequest(QUESTION))
            await until(running, "review_started")

        session = history.session(running.id)
        assert (session.status, len(session.answers)) == ("interrupted", 3)

    async def test_a_service_that_drains_lets_sessions_end(self, tmp_path, history):
        """It begins no more."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 0.3}])
        async with Service.open(councils(file, history)) as service:
            running = await service.start(QuestionRequest(QUESTION))
            async with anyio.create_task_group() as group:
                group.start_soon(service.drain, 10)
                await anyio.sleep(0.05)
                with pytest.raises(Busy, match="about to stop"):
                    await service.start(QuestionRequest(QUESTION))

        assert running.session.status == "complete"

    async def test_a_session_that_is_not_kept_is_told_all_the_same(self, tmp_path, history):
        """What became of its record, when another process took it over, is said beside it."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 0.3}])
        async with Service.open(councils(file, history)) as service:
            running = await service.start(QuestionRequest(QUESTION))
            await until(running, "review_started")
            written = partial(anyio.to_thread.run_sync, history.has_record, running.id)
            while not await written():  # noqa: ASYNC110 - a thread writes it, and sets no event
                await anyio.sleep(0.01)
            while not history.has_record(running.id):  # noqa: ASYNC110 - the writer tells nobody
                await anyio.sleep(0.01)
            with History.open(tmp_path / "history.sqlite") as other:
                other.claim(running.id, force=True)
            session = await running.wait_for_session()

        assert session.status == "complete"
        assert running.problem is not None

    async def test_a_service_that_is_cancelled_comes_to_its_end(self, tmp_path, history):
        """So do its sessions: they are in the history as far as they came."""
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
    async def test_of_two_who_take_up_the_same_session_one_does(self, tmp_path, history, kept):
        """Nothing is asked for, and paid for, a second time."""
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

    async def test_a_session_is_not_taken_from_another_process_for_nothing(self, slow, tmp_path):
        """Where there is no place to go on with it, it stays with whoever is at it."""
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
    """An observer that fails where it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where

    def watch(self, _):
        self._fail("watch")
        return lambda _: self._fail("told")

    def over(self, _):
        self._fail("over")

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise ValueError(where)


@pytest.mark.parametrize("where", ["watch", "told", "over"])
async def test_who_counts_sessions_and_fails_harms_none(tmp_path, where, caplog):
    """The session is whole, the next one is held, and the failure is in the log."""
    observers = [Failing(where)]
    async with Service.open(councils(write_config(tmp_path)), observers=observers) as service:
        for _ in range(2):
            session = await (await service.start(QuestionRequest(QUESTION))).wait_for_session()
            assert session.status == "complete"

    assert "Failing failed" in caplog.text


@pytest.mark.slow
async def test_what_ended_last_is_at_hand_longest(tmp_path):
    """However early a session was opened, it is there when it has ended."""
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

        assert service.find_running(first.id) is first


class TestFinding:
    """A session is found by its name, or by a beginning of it."""

    async def test_without_a_history_those_that_ended_lately_are_there(self, tmp_path):
        """The last one is called so."""
        async with Service.open(councils(write_config(tmp_path))) as service:
            running = await service.start(QuestionRequest(QUESTION))
            session = await running.wait_for_session()

            assert await service.session("last") == session
            assert await service.session(running.id[:17]) == session

    async def test_one_that_is_not_there_is_said_to_be_unknown(self, service):
        """Nothing else is shown in its place."""
        with pytest.raises(UnknownName, match="session"):
            await service.session("nothing-of-the-kind")

    async def test_one_that_is_forgotten_is_gone(self, service):
        """From what is at hand, too."""
        running = await service.start(QuestionRequest(QUESTION))
        await running.wait_for_session()
        await service.forget(running.id)

        assert service.find_running(running.id) is None
        with pytest.raises(UnknownName):
            await service.session(running.id)


class TestRate:
    """How many sessions an client may begin in a minute."""

    async def test_one_more_is_told_when_to_come_again(self, service):
        """Whatever it is begun by; others go on asking."""
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

    async def test_what_is_refused_is_not_counted(self, service):
        """Who is told of a slip may ask again at once."""
        client = Client("ci", per_minute=1)
        with pytest.raises(UnknownName):
            await service.start(QuestionRequest(QUESTION, members=("eve", "bob")), client)
        await (await service.start(QuestionRequest(QUESTION), client)).wait_for_session()


def _written(path):
    """Number to dollars, by the last word on each."""
    lines = map(json.loads, path.read_text().splitlines())
    return {line["number"]: line["usd"] for line in lines}


class TestMoney:
    """What an client may spend holds for all its sessions."""

    async def test_a_day_that_is_spent_is_refused(self, tmp_path, clock_now):
        """The refusal says whose limit it is; others go on asking."""
        ledger = Ledger(clock_now)
        ledger.settle(ledger.reserve("ci", 2.0), 2.0)
        spent = r"ci has spent \$2\.0000 of the \$2 of its last 24 hours; ask again tomorrow"
        async with Service.open(councils(write_config(tmp_path)), ledger=ledger) as service:
            with pytest.raises(Busy, match=spent) as caught:
                await service.start(QuestionRequest(QUESTION), Client("ci", daily_usd=2.0))
            assert caught.value.retry_seconds == 3600
            await (
                await service.start(QuestionRequest(QUESTION), Client("ines", daily_usd=2.0))
            ).wait_for_session()

    async def test_what_a_session_did_not_cost_is_given_back(self, tmp_path, clock_now):
        """Scripts cost nothing."""
        ledger = Ledger(clock_now)
        async with Service.open(councils(write_config(tmp_path)), ledger=ledger) as service:
            await (
                await service.start(QuestionRequest(QUESTION), Client("ci", daily_usd=2.0))
            ).wait_for_session()

        assert ledger.spent_usd("ci") == 0

    async def test_the_ceiling_of_a_session_is_no_more_than_what_is_left(self, tmp_path, clock_now):
        """A question that asks for more gets what there is."""
        ledger = Ledger(clock_now)
        ledger.reserve("ci", 1.5)
        asked = QuestionRequest(QUESTION, options=CouncilSettings(max_cost_usd=10.0))
        async with Service.open(councils(write_config(tmp_path)), ledger=ledger) as service:
            client = Client("ci", daily_usd=2.0, max_cost_usd=1.0)
            running = await service.start(asked, client)

            assert running.session.opening.procedure.limits.max_cost_usd == 0.5

    @pytest.fixture
    def priced(self, tmp_path):
        """The configuration of a council of scripts that have a price."""
        return partial(write_priced, tmp_path)

    async def test_what_is_held_back_is_the_ceiling(self, priced, clock_now):
        """However many are held at once, all of them together keep to the day's limit."""
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
    async def test_going_on_with_a_session_holds_back_what_is_to_come(
        self, priced, history, clock_now, way, request_of
    ):
        """Not all that the client may spend: others of its sessions find the rest."""
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

    async def test_what_a_session_cost_is_on_the_disk_before_it_is_said_to_be_over(
        self, priced, clock_now, tmp_path
    ):
        """What it could cost was there before."""
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

    async def test_where_it_cannot_be_written_nothing_is_begun(self, priced, clock_now, tmp_path):
        """The place is free for the next, and the money is given back."""
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

    async def test_who_takes_a_session_up_pays_for_the_rest_of_it(self, priced, history, clock_now):
        """What it had cost before is on another's account, and stays there."""
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

    async def test_a_session_taken_up_keeps_to_the_limit_of_who_does_it(self, priced, history):
        """Without ballots it is refused, whatever the ceiling of who had begun it."""
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
    """What a service holds of sessions that are over."""

    @pytest.mark.slow
    async def test_long_sessions_are_let_go_before_many_are_held(self, tmp_path, history):
        """What is held is bounded by its length; the latest is at hand, the others are recorded."""
        file = write_config(tmp_path, answer=[{"text": "Ada says " + "so" * 700_000}])
        async with Service.open(councils(file, history)) as service:
            names = []
            for _ in range(5):
                running = await service.start(QuestionRequest(QUESTION))
                await running.wait_for_session()
                names.append(running.id)
            held = [running.id for running in service.recent_sessions]
            first = await service.session(names[0])

        assert held == names[-len(held) :]
        assert 1 <= len(held) < 5
        assert len(first.answers["ada"].text) > 1_400_000

    async def test_a_session_that_is_deleted_is_not_held(self, service):
        """Nothing of it is left in memory."""
        running = await service.start(QuestionRequest(QUESTION))
        await running.wait_for_session()
        await service.forget(running.id)

        assert service.recent_sessions == ()

    @pytest.mark.slow
    async def test_sessions_leave_nothing_to_be_searched_for(self, service):
        """What they held goes when they do, prompts and replies above all."""
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
