"""The protocol's own client, at a process that we start, or at a server over HTTP."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


class ProgressLog:
    """The progress notifications that a client received."""

    def __init__(self) -> None:
        self.received: list[tuple[float, float | None, str]] = []

    async def __call__(self, done: float, total: float | None, message: str | None) -> None:
        self.received.append((done, total, message or ""))


def command(file: Path, *more: object) -> StdioServerParameters:
    """How ``witan mcp`` is started with a configuration and a history beside it."""
    history = file.parent / "history.sqlite"
    arguments = ["-m", "witan", "mcp", "--config", file, "--history", history, *more]
    return StdioServerParameters(command=sys.executable, args=[*map(str, arguments)])


@asynccontextmanager
async def over_http(
    url: str, token: str | None = None, mode: Any = "auto", **headers: str
) -> AsyncIterator[Client]:
    """A client of the server at this address."""
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(result: Any) -> str:
    """What a tool says to a reader."""
    [content] = result.content
    return content.text
