"""Model servers on this machine, found on their default ports."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from witan.errors import ConfigError

if TYPE_CHECKING:
    import httpx2


LOCAL_SERVERS: Mapping[str, str] = MappingProxyType(
    {
        "ollama": "http://127.0.0.1:11434/v1",
        "lmstudio": "http://127.0.0.1:1234/v1",
        "llamacpp": "http://127.0.0.1:8080/v1",
        "vllm": "http://127.0.0.1:8000/v1",
        "docker": "http://127.0.0.1:12434/engines/v1",
        "jan": "http://127.0.0.1:1337/v1",
    }
)
"""Kind to base URL, in the order in which servers are listed."""

LOOK_SECONDS = 0.3
LARGEST_LIST_BYTES = 1_000_000
"""What is kept of a list; one that is longer is none."""

_OLLAMA_PORT = 11434
_NOT_CHAT = frozenset({"bge", "e5", "gte", "minilm", "paraphrase", "rerank", "reranker"})


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A responding server.

    Parameters
    ----------
    url
        Its base URL, for a member that is written ``url#model``.
    models
        As it lists them, embedding models left out.
    """

    kind: str
    url: str
    models: tuple[str, ...]


async def find_local_servers(places: Mapping[str, str] = LOCAL_SERVERS) -> list[LocalServer]:
    """Ask every port for its models at once, within 0.3 s."""
    import httpx2  # 150 ms that a council with members of its own does not wait for

    servers: dict[str, LocalServer] = {}

    async def ask(client: "httpx2.AsyncClient", kind: str, url: str) -> None:
        try:
            models = await _list_models(client, f"{url}/models")
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError):
            return  # whatever listens there, it is no model server
        servers[kind] = LocalServer(kind, url, models)

    encrypted = any(url.startswith("https:") for url in places.values())
    # No proxy knows the way to this machine, and reading certificates takes a tenth of the time.
    async with httpx2.AsyncClient(trust_env=False, verify=encrypted, timeout=None) as client:
        with anyio.move_on_after(LOOK_SECONDS):
            async with anyio.create_task_group() as group:
                for kind, url in places.items():
                    group.start_soon(ask, client, kind, url)
    return [servers[kind] for kind in places if kind in servers]


def ollama_url(host: str) -> str:
    """Base URL from OLLAMA_HOST: a host, a port, both, or a URL.

    Raises
    ------
    ConfigError
        If it is none of these.
    """
    full = host if "://" in host else f"http://{host}"
    try:
        parts = urlsplit(full)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    name = parts.hostname or ("127.0.0.1" if parts.netloc.startswith(":") else None)
    if name is None or parts.scheme not in ("http", "https"):
        raise ConfigError("OLLAMA_HOST", "", "holds no address; expected one like 127.0.0.1:11434")
    if port is None:
        port = _OLLAMA_PORT if "://" not in host else (443 if parts.scheme == "https" else 80)
    # Every interface is where a server listens, not where it is called.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - nothing is bound
    literal = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{literal}:{port}{parts.path.rstrip('/')}/v1"


async def _list_models(client: "httpx2.AsyncClient", url: str) -> tuple[str, ...]:
    """Chat models in a server's list; ValueError for an unknown format."""
    body = bytearray()
    async with client.stream("GET", url) as response:
        if response.status_code != 200:
            raise ValueError(response.status_code)
        async for chunk in response.aiter_bytes():
            body += chunk[: LARGEST_LIST_BYTES - len(body)]
    listed: Any = json.loads(body)
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        raise ValueError(entries)
    return tuple(name for name in map(_name, entries) if _chats(name))


def _name(entry: object) -> str:
    name = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        raise ValueError(entry)
    return name


def _chats(name: str) -> bool:
    """Guess by name if a model may chat; lists give no more."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    return not any("embed" in word or word in _NOT_CHAT for word in words)
