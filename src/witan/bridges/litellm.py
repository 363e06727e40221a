"""Councils as models of LiteLLM: a custom provider, registered on import."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any

import litellm

import witan
from witan.bridges.replies import CouncilCall, ProgressLine, iterate, session_facts, wait_for
from witan.councils import read_chat

if TYPE_CHECKING:
    from witan import Session

PROVIDER = "witan"


class CouncilProvider(litellm.CustomLLM):
    """LiteLLM provider: a model is the name of a council."""

    def completion(self, **request: Any) -> Any:
        """Return the whole reply."""
        with _translate_errors():
            call, ignored = _read_call(request)
            return _complete(request["model_response"], call, wait_for(call.ask), ignored)

    async def acompletion(self, **request: Any) -> Any:
        """Return the whole reply, under an event loop."""
        with _translate_errors():
            call, ignored = _read_call(request)
            return _complete(request["model_response"], call, await call.ask(), ignored)

    def streaming(self, **request: Any) -> Iterator[Any]:
        """Yield the final answer as it is written."""
        with _translate_errors():
            call, ignored = _read_call(request)
            for piece in iterate(call.stream):
                if not isinstance(piece, ProgressLine):
                    yield _chunk(piece, ignored)

    async def astreaming(self, **request: Any) -> AsyncIterator[Any]:
        """Yield the final answer as it is written, under an event loop."""
        with _translate_errors():
            call, ignored = _read_call(request)
            async with aclosing(call.stream()) as stream:
                async for piece in stream:
                    if not isinstance(piece, ProgressLine):
                        yield _chunk(piece, ignored)


def _read_call(request: dict[str, Any]) -> tuple[CouncilCall, list[str]]:
    """Read a request; list its parameters without effect."""
    name: str = request["model"]
    council = PROVIDER if name == PROVIDER else f"{PROVIDER}/{name}"
    values = {"model": council, "messages": request["messages"], **request["optional_params"]}
    body, request_options = read_chat(
        {name: each for name, each in values.items() if name != "stream"}
    )
    seats = {
        "members": request_options.members,
        "jury": request_options.jury,
        "chairman": request_options.chairman,
    }
    settings: dict[str, Any] = {name: list(each) for name, each in seats.items() if each}
    if request_options.profile:
        settings["profile"] = request_options.profile
    call = CouncilCall(
        council,
        request_options.question,
        tuple(
            witan.models.Message(turn.role, turn.content) for turn in request_options.conversation
        ),
        settings | request_options.options.collect_values(),
        {
            "seed": request_options.seed,
            "category": request_options.category,
            "files": request_options.files,
        },
        body.witan.mark,
        body.witan.legend,
    )
    without_effect = {"stop", "plugins"} & values.keys()
    return call, sorted({*body.ignored_parameters, *without_effect})


def _complete(reply: Any, call: CouncilCall, session: "Session", ignored: list[str]) -> Any:
    [choice] = reply.choices
    choice.message.content = call.whole_text(session)
    choice.message.provider_specific_fields = _facts(session, ignored)
    choice.finish_reason = _finish_reason(session)
    if (usage := _usage(session)) is not None:
        reply.usage = litellm.Usage(**usage)
    reply.model = call.council
    return reply


def _chunk(piece: "str | Session", ignored: list[str]) -> dict[str, Any]:
    chunk: dict[str, Any] = {"index": 0, "tool_use": None}
    if isinstance(piece, str):
        return chunk | {"text": piece, "is_finished": False, "finish_reason": "", "usage": None}
    return chunk | {
        "text": "",
        "is_finished": True,
        "finish_reason": _finish_reason(piece),
        "usage": _usage(piece),
        "provider_specific_fields": _facts(piece, ignored),
    }


def _facts(session: "Session", ignored: list[str]) -> dict[str, Any]:
    return {PROVIDER: {**session_facts(session), "ignored": ignored}}


def _finish_reason(session: "Session") -> str:
    return "length" if session.is_cut else "stop"


def _usage(session: "Session") -> dict[str, int] | None:
    n_read, n_written = session.usage.input_tokens, session.usage.output_tokens
    if n_read is None or n_written is None:
        return None
    return {
        "prompt_tokens": n_read,
        "completion_tokens": n_written,
        "total_tokens": n_read + n_written,
    }


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise our errors as LiteLLM's, with a status for retries."""
    errors = witan.errors
    try:
        yield
    except errors.WitanError as error:
        refused = errors.InvalidParameter | errors.UnknownName | errors.ConfigError
        status = 402 if isinstance(error, errors.OverBudget) else 500
        status = 400 if isinstance(error, refused) else status
        raise litellm.llms.custom_llm.CustomLLMError(status, str(error)) from error


def register() -> None:
    """Register ``witan/…`` as models of LiteLLM, once."""
    if all(each["provider"] != PROVIDER for each in litellm.custom_provider_map):
        litellm.custom_provider_map.append(
            {"provider": PROVIDER, "custom_handler": CouncilProvider()}
        )
        litellm.utils.custom_llm_setup()


register()
