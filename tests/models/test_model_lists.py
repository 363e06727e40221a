"""Lists of models in each provider's form, and replies that are not lists."""

import anyio
import pytest

from model_listing import listing
from witan.errors import ModelError
from witan.models.connections import Connections, ListedModel, list_models, seems_to_chat
from witan.models.providers import PROVIDERS


def fetch_models(url: str, key: str | None = None, **how: str) -> tuple[ListedModel, ...]:
    """Fetch the list of models from there."""

    async def ask() -> tuple[ListedModel, ...]:
        async with Connections() as connections:
            return await list_models("acme", url, key, connections, **how)

    return anyio.run(ask)


class TestForms:
    """Providers describe models in different forms."""

    def test_age_is_a_number_or_a_date(self):
        """OpenAI counts seconds, Anthropic writes a date, others give none."""
        with listing(
            {"id": "a", "created": 10},
            {"id": "b", "created_at": "1970-01-01T00:00:20Z"},
            {"id": "c", "created": 0},
            {"id": "d", "created_at": "soon"},
        ) as server:
            models = fetch_models(f"{server.url}/models")

        assert [model.created for model in models] == [10.0, 20.0, None, None]

    def test_bare_list_is_accepted(self):
        """Some servers send the entries without an object around them."""
        with listing(body=[{"id": "a", "type": "chat"}, {"id": "b", "type": "image"}]) as server:
            assert [m.chats for m in fetch_models(f"{server.url}/models")] == [True, False]

    @pytest.mark.parametrize(
        ("entry", "chats"),
        [
            ({"id": "gpt-x"}, True),
            ({"id": "meta/Llama-9-Instruct"}, True),
            ({"id": "text-embedding-9"}, False),
            ({"id": "gpt-x-realtime-preview"}, False),
            ({"id": "whisper-9"}, False),
            ({"id": "claude-x", "type": "model"}, True),
            ({"id": "x", "capabilities": {"completion_chat": False}}, False),
            ({"id": "audio-x", "capabilities": {"completion_chat": True}}, True),
            ({"id": "x", "architecture": {"output_modalities": ["text", "image"]}}, False),
        ],
    )
    def test_list_overrides_the_id(self, entry, chats):
        """If the list states a model's purpose, its name does not matter."""
        with listing(entry) as server:
            [model] = fetch_models(f"{server.url}/models")

        assert model.chats is chats

    def test_folder_before_an_id_is_removed_for_google(self):
        """Google rejects its folder in a call; others take ids as listed."""
        folder = PROVIDERS["google"].models_folder
        with listing("models/gemini-x") as server:
            assert fetch_models(f"{server.url}/models", folder=folder)[0].id == "gemini-x"
            assert fetch_models(f"{server.url}/models")[0].id == "models/gemini-x"

    @pytest.mark.parametrize(
        ("name", "chats"),
        [
            *((name, True) for name in ("gpt-oss-20b", "qwen3", "llama3.2", "models/gemma3.gguf")),
            *((name, False) for name in ("Qwen3Guard-Gen-8B", "qwen2audio", "wan2video", "bge-m3")),
            *((name, False) for name in ("e5-large", "text-embedding-3", "all-minilm:33m")),
        ],
    )
    def test_id_shows_the_purpose_of_a_model(self, name, chats):
        """A word for another use counts anywhere in the id, even after a digit."""
        assert seems_to_chat(name) is chats


class TestKeys:
    """A key is sent in its header only."""

    def test_anthropic_key_has_its_own_header(self):
        """Anthropic's key goes in its own header, others' as a bearer token."""
        with listing("a") as server:
            fetch_models(f"{server.url}/models", "k", key_header="x-api-key")
            fetch_models(f"{server.url}/models", "k")
            fetch_models(f"{server.url}/models")

        first, second, third = server.headers
        assert first["x-api-key"] == "k"
        assert "authorization" not in first
        assert second["authorization"] == "Bearer k"
        assert not {"x-api-key", "authorization"} & third.keys()

    @pytest.mark.parametrize("answers", [{"status": 401}, {"status": 404}, {"body": "sk-4711"}])
    def test_errors_never_show_the_key(self, answers):
        """They name the server."""
        with listing(**answers) as server, pytest.raises(ModelError, match="acme: ") as caught:
            fetch_models(f"{server.url}/models", "sk-4711")

        assert "4711" not in str(caught.value)


class TestFailures:
    """A reply that is not a list is a clear error."""

    @pytest.mark.parametrize(
        ("body", "status", "problem"),
        [
            ("", 200, "sent something other than a list of models"),
            ({"models": []}, 200, "sent something other than a list of models"),
            ({"data": [{"id": 3}]}, 200, "sent something other than a list of models"),
            ({"data": [{}]}, 200, "sent something other than a list of models"),
            ({}, 403, r"rejected the key \(403\)"),
            ({}, 500, r"lists no models at .* \(status 500\)"),
        ],
    )
    def test_error_distinguishes_status_and_shape(self, body, status, problem):
        """The error says whether the status or the body was wrong."""
        with listing(body=body, status=status) as server, pytest.raises(ModelError, match=problem):
            fetch_models(f"{server.url}/models")

    def test_closed_port_is_a_transient_error(self):
        """A closed port cannot be reached; a retry may help."""
        with pytest.raises(ModelError, match="cannot be reached at http://127") as caught:
            fetch_models("http://127.0.0.1:9/v1/models")

        assert caught.value.transient
