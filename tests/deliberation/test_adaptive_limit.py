"""The limit on calls in flight adapts to what a provider can take."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import numpy as np
import pytest

from calling import LoopClock
from loops import jumping_loop
from witan import Council
from witan.deliberation.procedure import Limits, Procedure, ThrottlePolicy
from witan.deliberation.throttle import MOST, START, Throttle
from witan.errors import ModelError

pytestmark = pytest.mark.anyio


class Gateway:
    """An HTTP server of chat completions that works on a limited number of calls at a time.

    What is above is refused, or waits without being told so.
    """

    def __init__(self, *, seconds: float, refuses_above: int = 10_000, workers: int = 10_000):
        self.seconds, self.refuses_above = seconds, refuses_above
        self.workers = asyncio.Semaphore(workers)
        self.rng = np.random.default_rng(5)
        self.in_flight = self.refused = 0
        self.seen: list[int] = []

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Serve on a free port; yield the address."""
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0, backlog=2_000)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                writer.write(await self._reply(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _reply(self, body: dict) -> bytes:
        self.in_flight += 1
        self.seen.append(self.in_flight)
        try:
            if self.in_flight > self.refuses_above:
                self.refused += 1
                return _http("429 Too Many Requests", {"error": {"message": "too many calls"}})
            async with self.workers:
                await asyncio.sleep(self.seconds * self.rng.uniform(0.5, 1.5))
        finally:
            self.in_flight -= 1
        message = {"role": "assistant", "content": _text(body)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return _http("200 OK", {"object": "chat.completion", "choices": [choice]})


def _http(status: str, content: object) -> bytes:
    sent = json.dumps(content).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(sent)}"
    return f"{head}\r\n\r\n".encode() + sent


def _text(body: dict) -> str:
    if "response_format" not in body:
        return f"An answer of {body['model']}."
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    labels = schema["ranking"]["items"]["items"]["enum"]
    return json.dumps({"notes": "", "ranking": [[label] for label in labels]})


async def run_sessions_at_once(gateway: Gateway, councils: int, **limits: object) -> list[str]:
    """Run this many sessions against one gateway at once; return how each ended."""
    ends: list[str] = []
    procedure = Procedure(synthesis=False, rubric_scoring=False, limits=Limits(**limits))
    async with gateway.serve() as url:
        seats = [f"{name}={url}#{name}" for name in ("a", "b", "c", "d", "e")]
        async with (
            Council(seats, procedure=procedure) as council,
            anyio.create_task_group() as all_,
        ):

            async def ask() -> None:
                ends.append((await council.ask("Is it so?")).status)

            for _ in range(councils):
                all_.start_soon(ask)
    return ends


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
class TestGateways:
    """Concurrent sessions share the capacity of a gateway."""

    async def test_the_limit_settles_below_the_number_refused(self):
        """Above 20 calls a gateway refuses: few calls are refused, and all complete."""
        gateway = Gateway(seconds=0.2, refuses_above=20)

        ends = await run_sessions_at_once(gateway, 40, attempts=6)

        assert ends == ["complete"] * 40
        assert gateway.refused < 0.25 * 400
        later = gateway.seen[len(gateway.seen) // 2 : -40]
        # A busy machine sends fewer at once; that places are used is for `TestTime` to say.
        assert 5 <= np.mean(later) <= 24

    async def test_the_limit_grows_with_a_faster_gateway(self):
        """A gateway that answers hundreds at once as fast as one gets hundreds at once."""
        gateway = Gateway(seconds=0.3)

        ends = await run_sessions_at_once(gateway, 50)

        assert ends == ["complete"] * 50
        assert max(gateway.seen) > START

    async def test_the_limit_settles_where_more_calls_only_wait(self):
        """A gateway with 70 workers does not get hundreds of calls at once."""
        gateway = Gateway(seconds=0.2, workers=70)

        ends = await run_sessions_at_once(gateway, 60)

        assert ends == ["complete"] * 60
        assert max(gateway.seen) <= 3 * START

    async def test_a_configured_limit_is_never_exceeded(self):
        """A provider of eight gets eight calls at once, however fast it is."""
        gateway = Gateway(seconds=0.05)
        async with gateway.serve() as url:
            provider = url.removesuffix("/v1")
            limits = Limits(providers={provider: ThrottlePolicy(concurrency=8)})
            procedure = Procedure(synthesis=False, rubric_scoring=False, limits=limits)
            seats = [f"{name}={url}#{name}" for name in ("a", "b", "c", "d", "e")]
            council = Council(seats, procedure=procedure)
            async with council, anyio.create_task_group() as group:
                for _ in range(12):
                    group.start_soon(council.ask, "Is it so?")

        assert max(gateway.seen) == 8


async def load(
    take: Callable[[int], float], calls: int, *, refuses_above: int = 10_000
) -> tuple[list[int], int]:
    """Calls in flight whenever one begins, and how many are refused, of calls that come at once.

    `take` is given the calls in flight and returns how many seconds one takes.
    """
    throttle = Throttle(ThrottlePolicy(), LoopClock())
    in_flight = refused = 0
    seen: list[int] = []

    async def call() -> None:
        nonlocal in_flight, refused
        while True:
            try:
                async with throttle.slot():
                    in_flight += 1
                    seen.append(in_flight)
                    try:
                        if in_flight > refuses_above:
                            refused += 1
                            raise ModelError("m", "asks for fewer calls", 429, transient=True)
                        await anyio.sleep(take(in_flight))
                    finally:
                        in_flight -= 1
                return
            except ModelError:
                await anyio.sleep(0.5)

    async with anyio.create_task_group() as group:
        for _ in range(calls):
            group.start_soon(call)
    return seen, refused


@pytest.mark.parametrize("anyio_backend", [jumping_loop()])
class TestTime:
    """Durations of replies set the limit, on an event loop with a simulated clock."""

    async def test_the_limit_grows_while_replies_stay_as_fast(self):
        """Replies of very different lengths do not hide that more calls bring more replies."""
        rng = np.random.default_rng(1)

        seen, _ = await load(lambda _: float(rng.lognormal(2.0, 1.0)), 4_000)

        assert max(seen) == MOST

    async def test_the_limit_stays_where_more_calls_bring_no_more_replies(self):
        """A provider that works on 100 at a time gets about 100 calls."""
        rng = np.random.default_rng(2)

        def take(in_flight: int) -> float:
            return float(rng.lognormal(2.0, 0.5)) * max(1.0, in_flight / 100)

        seen, _ = await load(take, 3_000)

        assert max(seen) <= 260
        assert 64 <= np.mean(seen[1_000:-300]) <= 200

    async def test_the_limit_shrinks_when_a_provider_slows_down(self):
        """From 400 at a time to 50."""
        rng = np.random.default_rng(3)
        begun = 0

        def take(in_flight: int) -> float:
            nonlocal begun
            begun += 1
            capacity = 400 if begun < 3_000 else 50
            return float(rng.lognormal(2.0, 0.5)) * max(1.0, in_flight / capacity)

        seen, _ = await load(take, 6_000)

        assert max(seen) >= 300
        assert np.mean(seen[-1_500:-300]) <= 150

    async def test_few_calls_are_refused(self):
        """A provider of 30 calls at once refuses some at first and hardly any later."""
        rng = np.random.default_rng(4)

        seen, refused = await load(
            lambda _: float(rng.lognormal(2.0, 0.5)), 2_500, refuses_above=30
        )

        assert refused < 0.03 * 2_500
        assert 25 <= np.mean(seen[1_000:-100]) <= 31
