"""OpenRouter's plugin fusion: its panel and its judge are the configured seats."""

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
    """The reply to a request with this plugin, and the opening of its session."""
    server, client = council
    body = {"plugins": [{"id": "fusion", **plugin}]}
    reply = client.chat.completions.create(**ASKED, extra_body=body)
    session = server.service.find_running(reply.witan["session"]).session
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

    def test_models_are_known_by_what_their_provider_calls_them(self, council):
        """Two seats of one model are taken one after the other."""
        _, opening = ask(council, analysis_models=["ada", "acme/tiny", "acme/tiny"], model="ada")

        assert seats(opening) == ["ada", "one", "two"]

    def test_without_models_it_is_the_configured_council(self, council):
        """Nothing is asked of it, as where it is switched off."""
        for plugin in ({}, {"enabled": False, "analysis_models": ["ada", "bob"]}):
            _, opening = ask(council, **plugin)
            assert seats(opening) == ["ada", "bob", "cyd", "one", "two"]
            assert [chairman.name for chairman in opening.chairmen] == ["cyd"]

    def test_its_limit_holds_and_what_changes_nothing_is_named(self, council):
        """Members look nothing up, however many calls they may make for it."""
        reply, opening = ask(
            council, analysis_models=["ada", "bob"], max_completion_tokens=500, max_tool_calls=4
        )

        assert opening.procedure.limits.max_tokens == 500
        assert reply.witan["ignored"] == ["plugins.max_tool_calls"]

    def test_a_response_takes_it_likewise(self, council):
        """As both protocols do there."""
        server, client = council
        body = {"plugins": [{"id": "fusion", "analysis_models": ["ada", "cyd"]}]}
        reply = client.responses.create(model="witan", input="Is it so?", extra_body=body)

        opening = server.service.find_running(reply.witan["session"]).session.opening
        assert seats(opening) == ["ada", "cyd"]

    @pytest.mark.parametrize(
        ("plugin", "param", "words"),
        [
            ({"analysis_models": ["ada", "openai/gpt-9"]}, "seat", "openai/gpt-9"),
            ({"model": "~openai/gpt-latest"}, "seat", "~openai/gpt-latest"),
            ({"analysis_models": ["ada"]}, "members", "at least two"),
            ({"analysis_models": []}, "plugins", "is empty"),
            ({"analysis_models": ["ada"] * 9}, "plugins", "more than 8"),
            ({"preset": "general-high"}, "plugins", "no presets"),
            ({"tools": [{"type": "openrouter:web_search"}]}, "plugins", "no tools"),
            ({"id": "web"}, "plugins", "no other plugin"),
        ],
    )
    def test_what_is_not_configured_is_refused(self, council, plugin, param, words):
        """By its name."""
        with pytest.raises(openai.BadRequestError, match=words) as caught:
            ask(council, **plugin)

        assert caught.value.param == param
