"""The providers that a seat can name: where each is called, and which variable holds its key."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from witan.adapters.local_servers import LOCAL_SERVERS

__all__ = ["PROVIDERS", "Provider", "Reach", "is_loopback", "key_of"]


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
    key_header: str = "Authorization"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    local: bool = False

    @property
    def listing(self) -> str | None:
        """Where it lists its models, if anywhere."""
        return self.models_url or (None if self.url is None else f"{self.url}/models")


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a provider is called, and with which variable's key; None: as by default."""

    url: str | None = None
    key_variable: str | None = None


PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        provider.name: provider
        for provider in (
            Provider(
                "openai",
                ("OPENAI_API_KEY",),
                "https://api.openai.com/v1",
                max_tokens_field="max_completion_tokens",
            ),
            Provider("openai-responses", ("OPENAI_API_KEY",)),
            Provider(
                "anthropic",
                ("ANTHROPIC_API_KEY",),
                models_url="https://api.anthropic.com/v1/models",
                key_header="x-api-key",
            ),
            Provider(
                "google",
                ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
                models_url="https://generativelanguage.googleapis.com/v1beta/openai/models",
            ),
            Provider("google-cloud"),
            Provider("openrouter", ("OPENROUTER_API_KEY",), "https://openrouter.ai/api/v1"),
            Provider("mistral", ("MISTRAL_API_KEY",), "https://api.mistral.ai/v1"),
            Provider("groq", ("GROQ_API_KEY",), "https://api.groq.com/openai/v1"),
            Provider("deepseek", ("DEEPSEEK_API_KEY",), "https://api.deepseek.com/v1"),
            Provider("xai", ("XAI_API_KEY",), "https://api.x.ai/v1"),
            Provider("together", ("TOGETHER_API_KEY",), "https://api.together.xyz/v1"),
            Provider("fireworks", ("FIREWORKS_API_KEY",), "https://api.fireworks.ai/inference/v1"),
            Provider("cerebras", ("CEREBRAS_API_KEY",), "https://api.cerebras.ai/v1"),
            Provider("moonshotai", ("MOONSHOTAI_API_KEY",), "https://api.moonshot.ai/v1"),
            Provider("zai", ("ZAI_API_KEY",), "https://api.z.ai/api/paas/v4"),
            Provider("sambanova", ("SAMBANOVA_API_KEY",), "https://api.sambanova.ai/v1"),
            Provider("nebius", ("NEBIUS_API_KEY",), "https://api.studio.nebius.com/v1"),
            Provider("cohere", ("CO_API_KEY",)),
            Provider("huggingface", ("HF_TOKEN",)),
            Provider("azure", ("AZURE_OPENAI_API_KEY",)),
            Provider("bedrock"),
            *(Provider(kind, url=url, local=True) for kind, url in LOCAL_SERVERS.items()),
        )
    }
)


def key_of(variables: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, str] | None:
    """The first variable that holds a key, and the key; None: none does."""
    for variable in variables:
        if key := environment.get(variable, "").strip():
            return variable, key
    return None


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
