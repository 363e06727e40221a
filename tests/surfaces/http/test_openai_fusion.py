"""OpenRouter's fusion plugin: panel and judge are configured seats."""

import json

import pytest

from openai_clients import ASKED, client_of, openai
from served import served
from services import councils, write_config


@pytest.fixture(scope="module")
def council(tmp_path_factory):
    """The official client of a server with four seats of models, one of them twice, and scripts."""
    folder = tmp_path_factory.mktemp("scripts")
    write_config(folder)
    scripts = [f"script:{folder / name}.toml" for name in ("ada", "bob", "cyd")]
    away = ["one=http://127.0.0.1:9/v1#acme/tiny", "two=http://127.0.0.1:9/v1#acme/tiny"]
    file = folder / "fusion.toml"
    text = f"members = {json.dumps([*scripts, *away])}\nchairman = {json.dumps(scripts[2])}\n"
    file.write_text(f"{text}[limits]\nattempts = 1\n", encoding="utf-8")
    with served(councils(file)) as server, client_of(server) as client:
        yield server, client


def ask(council, **plugin):
    """Reply to a request with this plugin, and the opening of its session."""
    server, client = council
    body = {"plugins": [{"id": "fusion", **plugin}]}
    reply = client.chat.completions.create(**ASKED, extra_body=body)
    session = server.service.registry.get(reply.witan["session"]).session
    return reply, session.opening


def seats(opening):
    return [seat.name for seat in opening.seats]


class TestPanel:
    """Models become members and chairman."""

    def test_models_are_members_and_the_judge_is_the_chairman(self, council):
        """By the names of their seats."""
        reply, opening = ask(council, analysis_models=["ada", "bob"], model="bob")

        assert seats(opening) == ["ada", "bob"]
        assert [chairman.name for chairman in opening.chairmen] == ["bob"]
        assert reply.witan["chairman"] == "bob"

    def test_models_match_by_the_provider_s_name(self, council):
        """Two seats of one model are used one after the other."""
        _, opening = ask(council, analysis_models=["ada", "acme/tiny", "acme/tiny"], model="ada")

        assert seats(opening) == ["ada", "one", "two"]

    def test_without_models_the_configured_council_answers(self, council):
        """Also where the plugin is switched off."""
        for plugin in ({}, {"enabled": False, "analysis_models": ["ada", "bob"]}):
            _, opening = ask(council, **plugin)
            assert seats(opening) == ["ada", "bob", "cyd", "one", "two"]
            assert [chairman.name for chairman in opening.chairmen] == ["cyd"]

    def test_its_limit_applies_and_ignored_settings_are_named(self, council):
        """Members make no tool calls, whatever the plugin allows."""
        reply, opening = ask(
            council, analysis_models=["ada", "bob"], max_completion_tokens=500, max_tool_calls=4
        )

        assert opening.procedure.limits.max_tokens == 500
        assert reply.witan["ignored"] == ["plugins.max_tool_calls"]

    def test_a_response_accepts_the_plugin_too(self, council):
        server, client = council
        body = {"plugins": [{"id": "fusion", "analysis_models": ["ada", "cyd"]}]}
        reply = client.responses.create(model="witan", input="Is it so?", extra_body=body)

        opening = server.service.registry.get(reply.witan["session"]).session.opening
        assert seats(opening) == ["ada", "cyd"]

    @pytest.mark.parametrize(
        ("plugin", "param", "words"),
        [
            ({"analysis_models": ["ada", "openai/gpt-9"]}, "seat", "openai/gpt-9"),
            ({"model": "~openai/gpt-latest"}, "seat", "~openai/gpt-latest"),
            ({"analysis_models": ["ada"]}, "members", "at least two"),
            ({"analysis_models": []}, "plugins", "is empty"),
            ({"analysis_models": ["ada"] * 9}, "plugins", "more than 8"),
            ({"preset": "general-high"}, "plugins", "presets are not supported"),
            ({"tools": [{"type": "openrouter:web_search"}]}, "plugins", "no tools"),
            ({"id": "web"}, "plugins", "no other plugin"),
        ],
    )
    def test_an_unknown_model_is_refused(self, council, plugin, param, words):
        """By name."""
        with pytest.raises(openai.BadRequestError, match=words) as caught:
            ask(council, **plugin)

        assert caught.value.param == param
