"""CPU of one model call, by what is around it, beside a bare `aiohttp` call of the same body.

Run `python benchmarks/one_call.py`. A server that replies at once runs in a process of its own. The
model adapter makes the body, sends it, and reads the reply; a caller adds the deadline, retries,
the provider's limits and the money. Who is compared runs in turn within one process; of its rounds
the cheapest counts, as other load only adds to one.
"""

import gc
import time
from collections.abc import Awaitable, Callable

import aiohttp
import anyio
import orjson
from council import server
from harness import Row, show

from witan.deliberation.calls import Caller, CallResult
from witan.deliberation.money import Purse
from witan.deliberation.ports import Call, Member, Message, Stage, SystemClock, ignore_text
from witan.deliberation.procedure import Limits
from witan.deliberation.throttle import Throttles
from witan.models.connections import Connections
from witan.models.openai_compatible import OpenAICompatible

TEXT = "Which of these designs would you take, and why? " * 60
ROUNDS, TIMES = 60, 60

Ask = Callable[[], Awaitable[object]]


def make_call(stage: Stage) -> Call:
    """An answer is streamed in twenty pieces, a review is not."""
    return Call(stage, (Message("user", TEXT),), max_tokens=500)


async def measure(url: str) -> list[Row]:
    """Microseconds of each kind of call."""
    clock = SystemClock()
    caller = Caller(
        limits=Limits(),
        throttles=Throttles({}, clock),
        purse=Purse(None),
        clock=clock,
        seed=(1,),
        on_retry=lambda *_: None,
        on_withdraw=lambda *_: None,
    )
    async with Connections() as connections, aiohttp.ClientSession() as client:
        model = OpenAICompatible(name="m", url=url, model="model-0", connections=connections)
        member = Member("m", model, provider="p")

        async def bare(stage: Stage) -> None:
            messages = [{"role": "user", "content": TEXT}]
            body = {"model": "model-0", "messages": messages, "stream": stage == "answer"}
            async with client.post(f"{url}/chat/completions", data=orjson.dumps(body)) as response:
                async for line in response.content:
                    if line.startswith((b"data: {", b"{")):
                        orjson.loads(line.removeprefix(b"data: "))

        async def adapted(stage: Stage) -> None:
            await model.complete(make_call(stage), hear[stage])

        async def whole(stage: Stage) -> None:
            result = await caller.call(member, make_call(stage), hear[stage])
            assert isinstance(result, CallResult)
            caller.collect_spent("m")

        hear: dict[Stage, Callable[[str], None]] = {"answer": lambda _: None, "review": ignore_text}
        kinds = {"bare": bare, "model adapter": adapted, "caller": whole}
        stages: tuple[Stage, ...] = ("review", "answer")
        least = {(stage, name): float("inf") for stage in stages for name in kinds}
        for _ in range(ROUNDS):
            for stage, name in least:
                gc.collect()
                start = time.process_time()
                for _ in range(TIMES):
                    await kinds[name](stage)
                seconds = (time.process_time() - start) / TIMES
                least[stage, name] = min(least[stage, name], seconds)
    return [
        Row(f"{stage}, {name}", f"{1e6 * seconds:.0f} µs, {seconds / least[stage, 'bare']:.2f} ×",
            "-" if name == "bare" else "≤ 1.6 × bare",
            None if name == "bare" else seconds <= 1.6 * least[stage, "bare"])
        for (stage, name), seconds in least.items()
    ]  # fmt: skip


def main() -> None:
    """Print the figures."""
    with server(0.0) as url:
        show("One call over HTTP", anyio.run(measure, url))


if __name__ == "__main__":
    main()
