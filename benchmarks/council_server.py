"""A server of the OpenAI protocol that takes as many seconds as its argument says for every call.

A second argument is its address, by default that of this machine alone.
Under `/bodies` it lists the bodies of the latest calls, so that others can make the same calls,
under `/count` it says how many there were, and under `/times` when each came.
After `/hold/N` it answers the first N calls, and keeps the others waiting until another `/hold`.
"""

import asyncio
import json
import re
import sys
import time
from collections import deque
from functools import lru_cache
from math import inf
from typing import Any
from zlib import crc32

SECONDS = float(sys.argv[1])
ADDRESS = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
PIECES = 20
ANSWER = re.compile(r"<<<ANSWER (\w+) \w+>>>\n.*?of worth (\d)", re.DOTALL)
LATEST: deque[dict[str, Any]] = deque(maxlen=41)
TIMES: list[float] = []
ANSWERED = {"most": inf}
HOLD = asyncio.Condition()
USAGE = {"prompt_tokens": 400, "completion_tokens": 60, "total_tokens": 460}


def review(body: dict[str, Any]) -> str:
    """Grade by the worth that answers state, a point up or down by the reviewer's taste."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    labels = schema["ranking"]["items"]["items"]["enum"]
    criteria = schema["grades"]["properties"][labels[0]]["properties"]
    worths = dict(ANSWER.findall(body["messages"][-1]["content"]))
    grade = {
        label: max(1, min(10, int(worths[label]) + crc32(f"{body['model']} {label}".encode()) % 3))
        for label in labels
    }
    ranking = [[label] for label in sorted(labels, key=grade.__getitem__, reverse=True)]
    grades = {label: dict.fromkeys(criteria, grade[label]) for label in labels}
    return json.dumps({"notes": "By worth.", "grades": grades, "ranking": ranking})


def chunked(event: str) -> bytes:
    data = f"data: {event}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def delta(content: str | None) -> bytes:
    said = {"content": content} if content else {}
    choice = {"index": 0, "delta": said, "finish_reason": None if content else "stop"}
    event = {"id": "x", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}
    return chunked(json.dumps(event if content else {**event, "usage": USAGE}))


@lru_cache
def streamed(model: str) -> bytes:
    """Stream an answer that no other model gives: answers that are the same are not reviewed."""
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    number = int(model.rpartition("-")[2])
    words = (
        delta(f"Piece {n} of answer {number}, of worth {9 - number % 8}. ") for n in range(PIECES)
    )
    return b"".join([head, *words, delta(None), chunked("[DONE]"), b"0\r\n\r\n"])


def reply(body: dict[str, Any]) -> bytes:
    if body.get("stream"):
        return streamed(body["model"])
    message = {"role": "assistant", "content": review(body) if "response_format" in body else "Yes"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "choices": [choice]}
    return document({**whole, "usage": USAGE})


def document(content: object) -> bytes:
    sent = json.dumps(content).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(sent) + sent


async def wait_for_turn(number: int) -> None:
    async with HOLD:
        await HOLD.wait_for(lambda: number <= ANSWERED["most"])


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if head.startswith(b"get"):
                path = head.split(b" ")[1]
                if path.startswith(b"/hold/"):
                    ANSWERED["most"] = float(path[len(b"/hold/") :])
                    async with HOLD:
                        HOLD.notify_all()
                known = {b"/count": len(TIMES), b"/times": TIMES}
                writer.write(document(known.get(path, [*LATEST])))
                continue
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            LATEST.append(body)
            TIMES.append(time.time())
            number = len(TIMES)
            await asyncio.sleep(SECONDS)
            if number > ANSWERED["most"]:
                await wait_for_turn(number)
            writer.write(reply(body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, ADDRESS, 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
