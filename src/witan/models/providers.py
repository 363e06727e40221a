"""Providers for seats: addresses, keys and prices; and model servers on this machine."""

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
"""Kind to base URL, in the order in which servers are listed."""

_OLLAMA_PORT = 11434


def ollama_url(host: str) -> str:
    """Base URL from OLLAMA_HOST: a host, a port, both, or a URL."""
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
    models_folder
        The beginning of ids in its list that calls leave out.
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
    models_folder: str = ""
    url_variables: tuple[str, ...] = ()
    path: str = ""
    home: str | None = None
    key_header: str = "Authorization"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    local: bool = False

    def listing(self, address: str | None) -> str | None:
        """The address of its list of models, at the `address` address if any."""
        if address is None and self.models_url is not None:
            return self.models_url
        if self.url is not None:
            return f"{address or self.url}/models"
        return f"{address}{self.models_path}" if address and self.models_path else None

    @property
    def address(self) -> str | None:
        """Its default address; None: left to its client library."""
        return self.url or self.home


_PREFIXES = {"lmstudio": ("LMSTUDIO", "LM_STUDIO"), "vllm": ("VLLM", "HOSTED_VLLM")}
"""Prefixes of local servers' variables, where it is not the provider's name alone."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Address and key variable of a provider; None: the default."""

    url: str | None = None
    key_variable: str | None = None


def _moved_by(*prefixes: str, first: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Variables of an address: the library's first, then common ones."""
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


HALF_HOURS = 48
"""Of a day: some models cost less at night, and no hour of theirs begins at another minute."""


def list_price(provider: str, model: str, now: datetime | None = None) -> Price | None:
    """A model's maximum price over the next day; None: unlisted.

    Of its hours and of its tiers for long prompts the dearest count, since a ceiling on cost rests
    on this. Nothing is fetched: the list is as old as the package that holds it.
    """
    from genai_prices import Usage, calc_price  # 80 to 200 ms, and no use to whoever states prices

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
            return None  # it is paid for by the picture or the second, or writes nothing
        input_rates.append(_dearest(rates.input_mtok))
        output_rates.append(_dearest(rates.output_mtok))
    return Price(float(max(input_rates)), float(max(output_rates)))


def _dearest(rate: "Decimal | TieredPrices") -> Decimal:
    """The dollars of a million tokens, however long the prompt is."""
    if isinstance(rate, Decimal):
        return rate
    return max(rate.base, *(tier.price for tier in rate.tiers))


_HIDDEN = "***"
_LONGEST = 300
_SHORTEST_SECRET = 4
"""Fewer characters keep nothing secret, and taking them out would leave no sentence standing."""

_SHORTEST_IN_REPLIES = 16
"""Fewest characters of a key that no answer may hold; a stand-in such as "ollama" has fewer."""


class Redaction:
    """Takes known secrets out of texts; shows none itself."""

    __slots__ = ("_forms",)

    def __init__(self, secrets: Iterable[str]) -> None:
        whole = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
        forms = dict.fromkeys(f(secret) for secret in whole for f in (str, quote, unquote))
        self._forms = tuple(sorted(forms, key=len, reverse=True))

    def __repr__(self) -> str:
        return "Redaction()"

    def __call__(self, text: str) -> str:
        """The text on one line, ≤ 300 characters, *** for every secret."""
        line = "".join(filter(str.isprintable, " ".join(text.split())))
        for secret in self._forms:
            line = line.replace(secret, _HIDDEN)
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"

    def hide(self, text: str) -> str:
        """The unchanged reply, *** for every unmistakable secret."""
        for secret in self._forms:
            if len(secret) >= _SHORTEST_IN_REPLIES:
                text = text.replace(secret, _HIDDEN)
        return text
