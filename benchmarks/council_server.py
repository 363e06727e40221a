"""A server of the OpenAI protocol that takes 100 ms for every call, in a process of its own."""

import asyncio
import json
import sys
from functools import lru_cache
from typing import Any

SECONDS = 0.1
PIECES = 20
GRADES = {"A": 9, "B": 8, "C": 7, "D": 5, "E": 4}
USAGE = {"prompt_tokens": 400, "completion_tokens": 60, "total_tokens": 460}


def review(body: dict[str, Any]) -> str:
    """Write a review by label, as the schema asks for it."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    labels = schema["ranking"]["items"]["items"]["enum"]
    criteria = schema["grades"]["properties"][labels[0]]["properties"]
    grades = {label: dict.fromkeys(criteria, GRADES[label]) for label in labels}
    ranking = [[label] for label in labels]
    return json.dumps({"notes": "By label.", "grades": grades, "ranking": ranking})


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
    words = (delta(f"Some words of {model}. ") for _ in range(PIECES))
    return b"".join([head, *words, delta(None), chunked("[DONE]"), b"0\r\n\r\n"])


def reply(body: dict[str, Any]) -> bytes:
    if body.get("stream"):
        return streamed(body["model"])
    message = {"role": "assistant", "content": review(body) if "response_format" in body else "Yes"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "choices": [choice]}
    sent = json.dumps({**whole, "usage": USAGE}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(sent) + sent


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            await asyncio.sleep(SECONDS)
            writer.write(reply(body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
