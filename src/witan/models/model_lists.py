"""A provider's list of models: ``GET /models`` by OpenAI, Anthropic and others."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

import httpx2

from witan.deliberation.ports import Price
from witan.errors import ModelError
from witan.models.connections import Connections
from witan.models.secrets import Redaction

LARGEST_LIST_BYTES = 8_000_000
"""Hundreds of models with their descriptions are half of this."""

BEARER = "Authorization"
"""The header in which most providers take a key."""

_NOT_CHAT = re.compile(
    "audio|bge|clip|codex|dall|embed|embedding|embeddings|flux|guard|image|imagen|moderation|ocr|"
    "realtime|rerank|reranker|research|safeguard|search|sora|speech|transcribe|tts|veo|video|"
    "whisper"
)
"""Words in the ids of models that do something else; a list mostly says no more than the id."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One model of a list.

    Parameters
    ----------
    created
        When it was made, in seconds since 1970; None: the list does not say.
    chats
        It answers text with text, as far as the list tells.
    price
        As the list states it; None: it does not.
    """

    id: str
    created: float | None
    chats: bool
    price: Price | None = None


async def list_models(
    name: str,
    url: str,
    key: str | None,
    connections: Connections,
    *,
    key_header: str = BEARER,
) -> tuple[Listed, ...]:
    """Ask for the list of models, in its own order.

    Parameters
    ----------
    name
        For messages.
    key_header
        The header that the key is sent in.

    Raises
    ------
    ModelError
        If there is no such list, or the key is refused; the key is never repeated.
    """
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ModelError(name, "is given a key that holds characters that no key has")
    short = Redaction([] if key is None else [key])
    try:
        status, body = await _fetch(url, _headers(key, key_header), connections)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        problem = f"cannot be reached at {url}: {short(str(error)) or type(error).__name__}"
        raise ModelError(name, problem, transient=True) from None
    if status in (401, 403):
        raise ModelError(name, f"refuses the key ({status})", status)
    if status != 200:
        raise ModelError(name, f"lists no models at {url} (status {status})", status)
    try:
        return tuple(_parse_entry(entry) for entry in _entries(json.loads(body)))
    except (ValueError, TypeError, KeyError):
        problem = f"sent something that is no list of models from {url}"
        raise ModelError(name, problem, status) from None


def _headers(key: str | None, key_header: str) -> Mapping[str, str]:
    if key is None:
        return {}
    if key_header == BEARER:
        return {BEARER: f"Bearer {key}"}
    # Anthropic's interface answers nobody who does not say which of its editions is meant.
    return {key_header: key, "anthropic-version": "2023-06-01"}


async def _fetch(
    url: str, headers: Mapping[str, str], connections: Connections
) -> tuple[int, bytes]:
    body = bytearray()
    async with (
        connections.client(url) as client,
        client.stream("GET", url, headers=headers) as response,
    ):
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > LARGEST_LIST_BYTES:
                raise httpx2.DecodingError("more than a list of models holds")
    return response.status_code, bytes(body)


def _entries(listed: Any) -> list[dict[str, Any]]:
    """Models in a list, with or without an envelope."""
    entries = listed["data"] if isinstance(listed, dict) else listed
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise TypeError
    return entries


def _parse_entry(entry: dict[str, Any]) -> Listed:
    name = entry["id"]
    if not isinstance(name, str):
        raise TypeError
    # Google lists its models under a folder that its own interface does not want back.
    return Listed(
        name.removeprefix("models/"), _parse_created(entry), _chats(name, entry), _price(entry)
    )


def _parse_created(entry: dict[str, Any]) -> float | None:
    number, text = entry.get("created"), entry.get("created_at")
    if isinstance(number, int | float) and not isinstance(number, bool) and number > 0:
        return float(number)
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None


def _price(entry: dict[str, Any]) -> Price | None:
    """A model's price: OpenRouter's per token, or Together's per million."""
    stated = entry.get("pricing")
    if not isinstance(stated, dict):
        return None
    for names, scale in ((("prompt", "completion"), 1e6), (("input", "output"), 1.0)):
        try:
            read, written = (float(stated[name]) * scale for name in names)
        except (KeyError, TypeError, ValueError):
            continue
        # A negative price stands for "it depends"; beyond the bound it is no price.
        if 0 <= read < inf and 0 <= written < inf:
            return Price(round(read, 9), round(written, 9))
    return None


def _chats(name: str, entry: dict[str, Any]) -> bool:
    """Recognise a chat model by the list's fields, else by its id."""
    kind = entry.get("type")
    capable = entry.get("capabilities")
    shape = entry.get("architecture")
    if isinstance(capable, dict) and isinstance(capable.get("completion_chat"), bool):
        return bool(capable["completion_chat"])
    if isinstance(shape, dict) and isinstance(shape.get("output_modalities"), list):
        return bool(shape["output_modalities"] == ["text"])
    if isinstance(kind, str) and kind != "model":
        return kind == "chat"
    return seems_to_chat(name)


def seems_to_chat(name: str) -> bool:
    """Recognise a chat model by its id, without words for other uses."""
    return not any(_NOT_CHAT.fullmatch(word) for word in re.split(r"[^a-z]+", name.lower()))
