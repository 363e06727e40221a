"""OpenAI's own client, set on a server under test; and a council of models that play no script."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import LazyLoader, find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from misbehaving import MisbehavingServer
from served import Served


def _import_lazily(name: str) -> ModuleType:
    """Import a module once something of it is asked for: few processes that collect these ask."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    assert spec is not None, f"{name} is not installed"
    assert spec.loader is not None
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    import openai
    import openai.types.chat as oc
else:
    openai = _import_lazily("openai")

ASKED: dict[str, Any] = {
    "model": "witan",
    "messages": [{"role": "user", "content": "Is it so?"}],
}


def client_of(served: Served | str, **more: Any) -> "openai.OpenAI":
    """The official client, which asks once and no more."""
    url = served if isinstance(served, str) else served.url
    settings = {"api_key": "none", "max_retries": 0, "timeout": 20, **more}
    return openai.OpenAI(base_url=f"{url}/v1", **settings)


def streamed(client: "openai.OpenAI", **asked: Any) -> "list[oc.ChatCompletionChunk]":
    """The chunks of a stream, each of which is what the protocol says."""
    chunks = []
    for chunk in client.chat.completions.create(**{**ASKED, **asked}, stream=True):
        # The client itself takes whatever comes.
        strict = openai.types.chat.ChatCompletionChunk.model_validate
        strict(chunk.model_dump(exclude_unset=True), strict=True)
        chunks.append(chunk)
    return chunks


def text_of_chunks(chunks: "list[oc.ChatCompletionChunk]", field: str = "content") -> str:
    """What the chunks say, put together."""
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    return "".join(getattr(delta, field, None) or "" for delta in deltas)


@contextmanager
def modelled(folder: Path, more: str = "") -> Iterator[tuple[MisbehavingServer, Path]]:
    """Models ada, bob and cyd behind a server of their own, and the configuration of them."""
    with MisbehavingServer({"ada": 9, "bob": 8, "cyd": 6}) as models:
        seats = [f"{name}={models.url}#{name}" for name in ("ada", "bob", "cyd")]
        chair = json.dumps(f"chair={models.url}#chair")
        file = folder / "models.toml"
        file.write_text(f"members = {json.dumps(seats)}\nchairman = {chair}\n{more}", "utf-8")
        yield models, file
