"""Providers for seats: addresses and key variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import urlsplit

from witan.models.local_servers import LOCAL_SERVERS


@dataclass(frozen=True, slots=True)
class Provider:
    """One place where models are called.

    Parameters
    ----------
    variables
        Where its key is looked for, in this order; empty: it takes none, or the client library
        finds its own credentials.
    url
        The base of its OpenAI-compatible interface; None: it is called through the client library.
    models_url
        Where it lists its models; None: under `url`, or nowhere.
    models_path
        Where it lists them behind another address, below that; None: nowhere that is known.
    url_variables
        Where an address to call in place of its own is looked for, in this order: the variables
        of its official library, of pydantic-ai and of LiteLLM.
    path
        Appended to an address from such a variable that lacks a version, as its library does.
    home
        The address that its client library calls by default, as far as that is known.
    key_header
        The header that its key is sent in for the list.
    max_tokens_field
        What the limit on a reply's tokens is called there.
    local
        It runs on a machine of one's own; on this one it costs nothing.
    """

    name: str
    variables: tuple[str, ...] = ()
    url: str | None = None
    models_url: str | None = None
    models_path: str | None = None
    url_variables: tuple[str, ...] = ()
    path: str = ""
    home: str | None = None
    key_header: str = "Authorization"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    local: bool = False

    def listing(self, moved: str | None) -> str | None:
        """The address of its list of models, at the `moved` address if any."""
        if moved is None and self.models_url is not None:
            return self.models_url
        if self.url is not None:
            return f"{moved or self.url}/models"
        return f"{moved}{self.models_path}" if moved and self.models_path else None

    @property
    def address(self) -> str | None:
        """Its default address; None: left to its client library."""
        return self.url or self.home


_PREFIXES = {"lmstudio": ("LMSTUDIO", "LM_STUDIO"), "vllm": ("VLLM", "HOSTED_VLLM")}
"""What variables of local servers begin with, where it is not the provider's name alone."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Address and key variable of a provider; None: the default."""

    url: str | None = None
    key_variable: str | None = None


def _moved_by(*prefixes: str, first: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Variables of an address: the library's first, then common ones."""
    common = (f"{prefix}_{end}" for end in ("BASE_URL", "API_BASE") for prefix in prefixes)
    return tuple(dict.fromkeys((*first, *common)))


def _direct(name: str, url: str, prefix: str, key: str = "", **more: Any) -> Provider:
    return Provider(
        name, (key or f"{prefix}_API_KEY",), url, url_variables=_moved_by(prefix), **more
    )


def _through_library(
    name: str, keys: tuple[str, ...], prefix: str, first: tuple[str, ...] = (), **more: Any
) -> Provider:
    return Provider(name, keys, url_variables=_moved_by(prefix, first=first), **more)


PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        provider.name: provider
        for provider in (
            _direct(
                "openai",
                "https://api.openai.com/v1",
                "OPENAI",
                max_tokens_field="max_completion_tokens",
            ),
            _through_library(
                "openai-responses", ("OPENAI_API_KEY",), "OPENAI", home="https://api.openai.com/v1"
            ),
            _through_library(
                "anthropic",
                ("ANTHROPIC_API_KEY",),
                "ANTHROPIC",
                models_url="https://api.anthropic.com/v1/models",
                models_path="/v1/models",
                home="https://api.anthropic.com",
                key_header="x-api-key",
            ),
            _through_library(
                "google",
                ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
                "GEMINI",
                ("GOOGLE_GEMINI_BASE_URL",),
                models_url="https://generativelanguage.googleapis.com/v1beta/openai/models",
                models_path="/v1beta/openai/models",
                home="https://generativelanguage.googleapis.com",
            ),
            _through_library("google-cloud", (), "VERTEX", ("GOOGLE_VERTEX_BASE_URL",)),
            _direct("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER"),
            _direct("mistral", "https://api.mistral.ai/v1", "MISTRAL"),
            _direct("groq", "https://api.groq.com/openai/v1", "GROQ", path="/openai/v1"),
            _direct("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK"),
            _direct("xai", "https://api.x.ai/v1", "XAI"),
            _direct("together", "https://api.together.xyz/v1", "TOGETHER"),
            _direct("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS"),
            _direct("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS", path="/v1"),
            _direct("moonshotai", "https://api.moonshot.ai/v1", "MOONSHOTAI"),
            _direct("zai", "https://api.z.ai/api/paas/v4", "ZAI"),
            _direct("sambanova", "https://api.sambanova.ai/v1", "SAMBANOVA"),
            _direct("nebius", "https://api.studio.nebius.com/v1", "NEBIUS"),
            _through_library("cohere", ("CO_API_KEY",), "COHERE", ("CO_BASE_URL", "CO_API_URL")),
            _through_library("huggingface", ("HF_TOKEN",), "HUGGINGFACE"),
            _through_library(
                "azure", ("AZURE_OPENAI_API_KEY",), "AZURE", ("AZURE_OPENAI_ENDPOINT",)
            ),
            _through_library(
                "bedrock",
                (),
                "BEDROCK",
                ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"),
            ),
            *(
                Provider(
                    kind,
                    url=url,
                    url_variables=_moved_by(*_PREFIXES.get(kind, (kind.upper(),))),
                    path="/v1",
                    local=True,
                )
                for kind, url in LOCAL_SERVERS.items()
            ),
        )
    }
)


def find_key(variables: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, str] | None:
    """The first variable with a key, and the key, if any."""
    for variable in variables:
        if key := environment.get(variable, "").strip():
            return variable, key
    return None


def is_loopback(url: str) -> bool:
    """Check that a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
