"""Providers without OpenAI's protocol, called through pydantic-ai.

The library is imported just before the first call, because that takes seconds, which a council
without such members saves.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import httpx2
from anyio import CancelScope, to_thread
from anyio.lowlevel import RunVar

from witan.core.escaping import is_blank
from witan.deliberation.call_headers import call_headers
from witan.deliberation.money import read_cost, read_tokens
from witan.deliberation.ports import BilledFailure, Call, Hear, Message, Reply, Usage
from witan.errors import MissingExtra, MissingKey, ModelError
from witan.models.openai_compatible import broken_connection
from witan.models.openai_replies import is_transient, words_of
from witan.models.providers import Redaction

if TYPE_CHECKING:
    import httpx
    from pydantic_ai import messages as m
    from pydantic_ai.exceptions import ModelAPIError
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings


def announce_in_options(provider: str, stack: AsyncExitStack) -> dict[str, Any]:
    """Return constructor options that add our headers to every call."""
    if provider != "cohere":
        return {}
    from pydantic_ai.models import create_async_http_client

    client = create_async_http_client()
    client.event_hooks["request"].append(_add)
    stack.push_async_callback(client.aclose)
    return {"http_client": client}


def announce(provider: str, model: Any) -> None:
    """Add our headers to an existing provider."""
    if provider == "huggingface":
        model.client.headers = _CallHeaders()


async def _add(request: "httpx.Request") -> None:
    request.headers.update(call_headers())


class _CallHeaders(Mapping[str, str]):
    """Headers that are computed per task at each access."""

    def __getitem__(self, name: str) -> str:
        return call_headers()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(call_headers())

    def __len__(self) -> int:
        return len(call_headers())


@dataclass(frozen=True, slots=True)
class Translation:
    """Wording of one model's errors.

    `redact`: makes foreign words safe for a message.
    """

    name: str
    model: str
    key_variable: str | None
    base_url: str | None
    redact: Redaction

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise `ModelError` in place of the library's exceptions."""
        from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior, UserError

        try:
            yield
        except ModelAPIError as error:
            raise self._api_error(error) from error
        except UnexpectedModelBehavior as error:
            problem = f"sent something that cannot be read as a reply: {self.redact(str(error))}"
            raise ModelError(self.name, problem, transient=True) from error
        except UserError as error:
            raise self.unusable(error) from error
        except httpx2.HTTPError as error:
            raise self._connection_error(error) from error

    def unusable(self, error: Exception) -> ModelError:
        """Return the error of a call that was not sent."""
        return ModelError(self.name, f"cannot be called: {self.redact(str(error))}")

    def _api_error(self, error: "ModelAPIError") -> ModelError:
        from pydantic_ai import exceptions as ai

        words = self.redact(words_of(error.body).strip() or error.message).rstrip(".")
        status = error.status_code if isinstance(error, ai.ModelHTTPError) else None
        if isinstance(error, ai.ModelConnectionError):
            return self._connection_error(error)
        if status is None and isinstance(error.__cause__, ValueError):
            problem = "broke off, or sent something that is not JSON"
            return ModelError(self.name, problem, transient=True)
        suffix = "" if status is None else f" ({status})"
        if isinstance(error, ai.ModelAuthenticationError):
            variable = self.key_variable
            credential_text = (
                "its credentials" if variable is None else f"the API key in {variable}"
            )
            problem = f"rejected {credential_text}{suffix}: {words}"
        elif isinstance(error, ai.ModelNotFoundError):
            problem = f"does not know the model {self.model!r}{suffix}: {words}"
        else:
            verb = "cannot answer now" if _is_transient(error) else "refused the call"
            problem = f"{verb}{suffix}: {words}"
        return ModelError(self.name, problem, status, error.retry_after, _is_transient(error))

    def _connection_error(self, error: Exception) -> ModelError:
        """Return the network error behind a library's and provider's error."""
        address = "the provider's address" if self.base_url is None else self.redact(self.base_url)
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, httpx2.HTTPError):
            cause = cause.__cause__
        if cause is None:
            return ModelError(self.name, f"broke off: {self.redact(str(error))}", transient=True)
        failure = broken_connection(cause, address)
        problem = self.redact(failure.problem)
        return ModelError(self.name, problem, transient=failure.transient, sent=failure.was_sent)


def _is_transient(error: "ModelAPIError") -> bool:
    """Check for a transient failure; exhausted credit is permanent."""
    from pydantic_ai import exceptions as ai

    if isinstance(error, ai.ModelQuotaExceededError):
        return False
    if isinstance(error, ai.ModelHTTPError):
        return is_transient(error.status_code)
    return isinstance(
        error, ai.ModelRateLimitError | ai.ModelUnavailableError | ai.ModelServerError
    )


Rung = Literal["native", "tool", "prompted"]
"""Ways to make a reply satisfy a schema: by the API, a tool's arguments, or the prompt."""

SILENCE_SECONDS = 1_200.0
"""Timeout of the clients, which require one; calls reach their own deadline long before."""

REFUSALS = (400, 422, 501)
"""Statuses by which a server refuses the form of a schema."""

_PACKAGES = {
    "anthropic": ("anthropic", "anthropic"),
    "bedrock": ("boto3", "bedrock"),
    "cohere": ("cohere", "cohere"),
    "google": ("google.genai", "google"),
    "google-cloud": ("google.genai", "google"),
    "huggingface": ("huggingface_hub", "huggingface"),
}
"""Package that each provider needs, and the extra that installs it."""

_ADDRESSES = {"azure": "azure_endpoint"}
"""Names of the base URL's parameter that differ between providers."""


_ClientKey: TypeAlias = tuple[str, str | None, str | None]
"""Provider, key and address."""

_IMPORTING = Lock()
"""Threads that import parts of one package at once could see incomplete modules."""


class Providers:
    """One shared HTTP client per provider, address and key.

    Each event loop has separate clients, which `aclose` on that loop closes.
    """

    def __init__(self) -> None:
        self._open: RunVar[dict[_ClientKey, tuple[Any, AsyncExitStack]]] = RunVar("witan.providers")

    async def get(self, provider: str, key: str | None, base_url: str | None) -> Any:
        """Return the provider of pydantic-ai, made on first use."""
        from pydantic_ai.providers import infer_provider_class

        clients = self._open.get(None)
        if clients is None:
            self._open.set(clients := {})
        if (provider, key, base_url) not in clients:
            kind: Any = infer_provider_class(provider)
            options = {"api_key": key, _ADDRESSES.get(provider, "base_url"): base_url}
            options = {name: value for name, value in options.items() if value is not None}
            unknown = [name for name in options if name not in inspect.signature(kind).parameters]
            if unknown:
                raise ValueError(f"{provider} takes no {unknown[0].replace('_', ' ')}")
            stack = AsyncExitStack()
            model = kind(**options, **announce_in_options(provider, stack))
            announce(provider, model)
            clients[provider, key, base_url] = model, stack
            await stack.enter_async_context(model)
        return clients[provider, key, base_url][0]

    async def aclose(self) -> None:
        """Close every client of this event loop."""
        clients = self._open.get({})
        self._open.set({})
        with CancelScope(shield=True):
            for _, stack in clients.values():
                await stack.aclose()


@dataclass(frozen=True, slots=True)
class _Request:
    messages: "list[m.ModelMessage]"
    settings: "ModelSettings"
    parameters: "ModelRequestParameters"


class PydanticAIModel:
    """A model of any pydantic-ai provider.

    `name`: name in messages.
    `model_string`: the model in pydantic-ai's notation, such as ``anthropic:claude-…``.
    `key`, `key_variable`: the key, and the variable searched for it; without a variable none is
    needed.
    `base_url`: address; None for the provider's own.
    `providers`: clients shared with other models and closed by their owner; None for the model's
    own.

    Raises `MissingKey` if the key is missing although a variable for it was given; `MissingExtra`
    if the provider's package is not installed.
    """

    def __init__(
        self,
        name: str,
        model_string: str,
        key: str | None = None,
        key_variable: str | None = None,
        base_url: str | None = None,
        *,
        providers: Providers | None = None,
    ) -> None:
        self.provider, _, self.model = model_string.partition(":")
        self.name = name
        if not key and key_variable is not None:
            raise MissingKey(name, key_variable)
        _require_package(name, self.provider)
        self._key, self._base_url = key, base_url
        self._owns_providers = providers is None
        self._providers = Providers() if providers is None else providers
        password = None if base_url is None else urlsplit(base_url).password
        self._secrets = Redaction([secret for secret in (key, password) if secret is not None])
        self._translation = Translation(name, self.model, key_variable, base_url, self._secrets)
        self._is_loaded = False
        self._rung = 0

    def __repr__(self) -> str:
        return f"PydanticAIModel({self.name!r})"

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        """Answer one call in one attempt, without streaming structured output."""
        model = await self._model()
        with self._translation.errors():
            if call.schema is None:
                return self._reply(await self._stream_reply(model, _request(model, call), hear))
            return self._reply(await self._request_structure(model, call, call.schema))

    async def prepare(self) -> None:
        """Import the libraries and make the client; this can take seconds."""
        await self._model()

    async def aclose(self) -> None:
        """Close the HTTP client, unless it is shared."""
        if self._owns_providers:
            await self._providers.aclose()

    async def _model(self) -> "Model":
        try:
            if not self._is_loaded:  # so that the replies of others do not wait for it
                await to_thread.run_sync(_load, self.provider, abandon_on_cancel=True)
                self._is_loaded = True
        except (ImportError, ValueError) as error:
            raise self._translation.unusable(error) from error
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model

        try:
            provider = await self._providers.get(self.provider, self._key, self._base_url)
            return infer_model(f"{self.provider}:{self.model}", lambda _: provider)
        except (UserError, ValueError) as error:
            raise self._translation.unusable(error) from error

    async def _stream_reply(
        self, model: "Model", request: _Request, hear: Hear
    ) -> "m.ModelResponse":
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        async with model_request_stream(
            model,
            request.messages,
            model_settings=request.settings,
            model_request_parameters=request.parameters,
        ) as stream:
            async for event in stream:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    piece = event.part.content
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    piece = event.delta.content_delta
                else:
                    continue
                if piece:
                    hear(self._secrets.hide(piece))
            response = stream.get()
        details = response.provider_details or {}
        has_finished = response.finish_reason is not None or "finish_reason" in details
        if response.state != "complete" or not has_finished:
            raise ModelError(self.name, "broke off before the end of its reply", transient=True)
        return response

    async def _request_structure(
        self, model: "Model", call: Call, schema: Mapping[str, Any]
    ) -> "m.ModelResponse":
        """Request schema-conforming output by the model's best method.

        A method that the model refused once is not tried again.
        """
        from pydantic_ai.direct import model_request
        from pydantic_ai.exceptions import ModelHTTPError, UserError

        rungs = _rungs(model)
        at = min(self._rung, len(rungs) - 1)
        while True:
            request = _request(model, call, rungs[at], schema)
            try:
                response = await model_request(
                    model,
                    request.messages,
                    model_settings=request.settings,
                    model_request_parameters=request.parameters,
                )
            except (ModelHTTPError, UserError) as error:
                if at + 1 == len(rungs) or not _refuses_form(error):
                    raise
                at += 1
            else:
                self._rung = at
                return response

    def _reply(self, response: "m.ModelResponse") -> Reply:
        text = self._secrets.hide(_text(response))
        cost, problems = read_cost((response.provider_details or {}).get("cost"))
        input_tokens, more = read_tokens(response.usage.input_tokens, "read")
        output_tokens, others = read_tokens(response.usage.output_tokens, "written")
        reply = Reply(
            text,
            Usage(input_tokens or None, output_tokens or None),  # the library writes 0 for unknown
            cost_usd=cost,
            cut=response.finish_reason == "length",
            notes=(*problems, *more, *others),
            bill_ignored=bool(problems),
        )
        if not is_blank(text):
            return reply
        filtered = response.finish_reason == "content_filter"
        problem = "was blocked by its content filter"
        problem = problem if filtered else "said nothing"
        raise BilledFailure(reply, self.name, problem, None, None, not filtered)


def _require_package(name: str, provider: str) -> None:
    if provider not in _PACKAGES:
        return
    package, extra = _PACKAGES[provider]
    try:
        is_installed = find_spec(package) is not None
    except ModuleNotFoundError:
        is_installed = False
    if not is_installed:
        raise MissingExtra(f"the member {name}", extra)


def _load(provider: str) -> None:
    with _IMPORTING:
        from pydantic_ai import direct, output, tools  # noqa: F401 - imported for later use
        from pydantic_ai.providers import infer_provider_class

        infer_provider_class(provider)


def _rungs(model: "Model") -> Sequence[Rung]:
    """Return the model's output methods, best first; the last always works."""
    profile = model.profile
    rungs: list[Rung] = ["native"] if profile.get("supports_json_schema_output", False) else []
    if profile.get("supports_tools", True):
        rungs.append("tool")
    return [*rungs, "prompted"]


def _refuses_form(error: Exception) -> bool:
    from pydantic_ai import exceptions as ai

    if isinstance(error, ai.ModelContextWindowExceededError | ai.ModelQuotaExceededError):
        return False
    return not isinstance(error, ai.ModelHTTPError) or error.status_code in REFUSALS


def _request(
    model: "Model", call: Call, rung: Rung | None = None, schema: Mapping[str, Any] | None = None
) -> _Request:
    return _Request(
        _messages(call.messages), _settings(model, call), _parameters(call, rung, schema)
    )


def _messages(messages: Sequence[Message]) -> "list[m.ModelMessage]":
    from pydantic_ai import messages as m

    turns: list[m.ModelMessage] = []
    parts: list[m.ModelRequestPart] = []
    for message in messages:
        if message.role == "assistant":
            turns += [m.ModelRequest(parts), m.ModelResponse([m.TextPart(message.text)])]
            parts = []
        elif message.role == "system":
            parts.append(m.SystemPromptPart(message.text))
        else:
            parts.append(m.UserPromptPart(message.text))
    return [*turns, m.ModelRequest(parts)]


def _settings(model: "Model", call: Call) -> "ModelSettings":
    settings: ModelSettings = {"max_tokens": call.max_tokens}
    if "max_retries" not in model.unsupported_settings:
        settings["max_retries"] = 0
    if "timeout" not in model.unsupported_settings:
        settings["timeout"] = SILENCE_SECONDS
    if call.options.temperature is not None:
        settings["temperature"] = call.options.temperature
    if call.options.reasoning_effort is not None:
        settings["thinking"] = call.options.reasoning_effort
    if (headers := call_headers()) and "extra_headers" not in model.unsupported_settings:
        settings["extra_headers"] = headers
    return settings


def _parameters(
    call: Call, rung: Rung | None, schema: Mapping[str, Any] | None
) -> "ModelRequestParameters":
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    if rung is None or schema is None:
        return ModelRequestParameters()
    if rung == "tool":
        tool = ToolDefinition(
            name=call.stage,
            description="Submit the requested result.",
            parameters_json_schema=dict(schema),
            kind="output",
        )
        return ModelRequestParameters(
            output_mode="tool", output_tools=[tool], allow_text_output=False
        )
    return ModelRequestParameters(
        output_mode=rung, output_object=OutputObjectDefinition(dict(schema), name=call.stage)
    )


def _text(response: "m.ModelResponse") -> str:
    """Return the text, or the tool's arguments: our reader accepts both."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    tool_calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if tool_calls:
        return tool_calls[0].args_as_json_str()
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))
