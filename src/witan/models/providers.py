"""Providers for seats: addresses, keys, prices and local servers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_address
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote, urlsplit

from witan.deliberation.ports import Price
from witan.errors import ConfigError

if TYPE_CHECKING:
    from genai_prices.types import TieredPrices


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
"""Base URL by kind, in the order in which servers are listed."""

_OLLAMA_PORT = 11434


def ollama_url(host: str) -> str:
    """Return the base URL from OLLAMA_HOST: host, port, both, or URL."""
    full = host if "://" in host else f"http://{host}"
    try:
        parts = urlsplit(full)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    name = parts.hostname or ("127.0.0.1" if parts.netloc.startswith(":") else None)
    if name is None or parts.scheme not in ("http", "https"):
        raise ConfigError("OLLAMA_HOST", "", "is not an address; expected one like 127.0.0.1:11434")
    if port is None:
        port = _OLLAMA_PORT if "://" not in host else (443 if parts.scheme == "https" else 80)
    # A server may listen on every interface, but is called on one.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - nothing is bound
    literal = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{literal}:{port}{parts.path.rstrip('/')}/v1"


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models.

    `variables`: variables searched for its key, in this order; empty if it needs none, or the
    client library finds its own credentials.
    `url`: base URL of its OpenAI-compatible interface; None if called through the client library.
    `models_url`: address of its list of models; None if under `url`, or nowhere.
    `models_path`: path of the list below another address, if known.
    `models_folder`: prefix of listed ids that calls omit.
    `url_variables`: variables searched for another address, in this order: those of its official
    library, of pydantic-ai and of LiteLLM.
    `path`: appended to an address from these variables without a version, as its library does.
    `home`: default address of its client library, if known.
    `key_header`: header for the key when requesting the list.
    `max_tokens_field`: its name for the limit on a reply's tokens.
    `local`: it runs on the user's machines; on this one it costs nothing.
    """

    name: str
    variables: tuple[str, ...] = ()
    url: str | None = None
    models_url: str | None = None
    models_path: str | None = None
    models_folder: str = ""
    url_variables: tuple[str, ...] = ()
    path: str = ""
    home: str | None = None
    key_header: str = "Authorization"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    local: bool = False

    def listing(self, address: str | None) -> str | None:
        """Return the address of its list of models, below `address` if given."""
        if address is None and self.models_url is not None:
            return self.models_url
        if self.url is not None:
            return f"{address or self.url}/models"
        return f"{address}{self.models_path}" if address and self.models_path else None

    @property
    def address(self) -> str | None:
        """Its default address; None if left to its client library."""
        return self.url or self.home


_PREFIXES = {"lmstudio": ("LMSTUDIO", "LM_STUDIO"), "vllm": ("VLLM", "HOSTED_VLLM")}
"""Prefixes of local servers' variables that differ from the provider's name."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Address and key variable of a provider; None for the default."""

    url: str | None = None
    key_variable: str | None = None


def _moved_by(*prefixes: str, first: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the variables of an address: the library's first, then common ones."""
    common = (f"{prefix}_{end}" for end in ("BASE_URL", "API_BASE") for prefix in prefixes)
    return tuple(dict.fromkeys((*first, *common)))


def _direct(name: str, url: str, prefix: str, **more: Any) -> Provider:
    return Provider(name, (f"{prefix}_API_KEY",), url, url_variables=_moved_by(prefix), **more)


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
                models_folder="models/",
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
                "bedrock", (), "BEDROCK", ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
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
    """Return the first variable with a key, and the key, if any."""
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


HALF_HOURS = 48
"""Half hours of a day: some models cost less at night, from a full or half hour on."""


def list_price(provider: str, model: str, now: datetime | None = None) -> Price | None:
    """Return a model's highest price over the next day, if listed.

    The most expensive hour and tier for long prompts count, since a cost ceiling depends on them.
    Nothing is downloaded: the list is as old as its package.
    """
    from genai_prices import (
        Usage,
        calc_price,
    )  # takes 80 to 200 ms, not needed if prices are configured

    start = datetime.now(UTC) if now is None else now
    input_rates, output_rates = [], []
    for number in range(HALF_HOURS):
        at = start + timedelta(minutes=30 * number)
        try:
            price = calc_price(Usage(), model, provider_id=provider, genai_request_timestamp=at)
        except LookupError:
            return None
        rates = price.model_price
        if rates.input_mtok is None or rates.output_mtok is None:
            return None  # priced per picture or second, or without output
        input_rates.append(_highest_rate(rates.input_mtok))
        output_rates.append(_highest_rate(rates.output_mtok))
    return Price(float(max(input_rates)), float(max(output_rates)))


def _highest_rate(rate: "Decimal | TieredPrices") -> Decimal:
    """Return US dollars per million tokens for the longest prompts."""
    if isinstance(rate, Decimal):
        return rate
    return max(rate.base, *(tier.price for tier in rate.tiers))


_REDACTED = "***"
_MAX_CHARS = 300
_SHORTEST_SECRET = 4
"""Shortest text treated as a secret; removing shorter ones would ruin sentences."""

_SHORTEST_IN_REPLIES = 16
"""Shortest key removed from answers; a placeholder such as "ollama" is shorter."""


class Redaction:
    """Filter that removes known secrets from texts."""

    __slots__ = ("_forms",)

    def __init__(self, secrets: Iterable[str]) -> None:
        long_secrets = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
        forms = dict.fromkeys(f(secret) for secret in long_secrets for f in (str, quote, unquote))
        self._forms = tuple(sorted(forms, key=len, reverse=True))

    def __repr__(self) -> str:
        return "Redaction()"

    def __call__(self, text: str) -> str:
        """Return a line of ≤ 300 characters, with secrets as ``***``."""
        line = "".join(filter(str.isprintable, " ".join(text.split())))
        for secret in self._forms:
            line = line.replace(secret, _REDACTED)
        return line if len(line) <= _MAX_CHARS else f"{line[: _MAX_CHARS - 1].rstrip()}…"

    def hide(self, text: str) -> str:
        """Return the reply with *** for every unmistakable secret."""
        for secret in self._forms:
            if len(secret) >= _SHORTEST_IN_REPLIES:
                text = text.replace(secret, _REDACTED)
        return text
