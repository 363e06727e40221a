"""Seats: how they are written and named, who is found, and what members are made of them."""

from dataclasses import replace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_listing import listing
from processes import run_python
from witan.deliberation.ports import Member, Price
from witan.errors import ConfigError, MissingKey, NoCouncil
from witan.models.connections import Connections
from witan.models.openai_compatible import OpenAICompatible
from witan.models.providers import PROVIDERS, Provider, Reach, is_loopback
from witan.models.seats import (
    SeatSpec,
    base_url,
    key_variables,
    name_seats,
    parse_seat,
    price_of_seat,
    seat,
)
from witan.service.council_discovery import DiscoveredCouncil, describe_search, find_council

NOWHERE = "http://127.0.0.1:9/v1"
"""Where nobody listens."""


def seats(*texts: str) -> list[str]:
    """The names of seats written like this."""
    return [spec.name for spec in name_seats([parse_seat(text) for text in texts])]


def make_member(text: str, environment: dict[str, str] | None = None) -> Member:
    """The member of one seat."""
    [spec] = name_seats([parse_seat(text)])
    return seat(spec, environment or {}, Connections())


class TestWriting:
    """The four ways to write a seat."""

    @pytest.mark.parametrize(
        ("text", "name", "provider", "model", "url"),
        [
            ("openai:gpt-x", "", "openai", "gpt-x", None),
            (" critic = openai:gpt-x ", "critic", "openai", "gpt-x", None),
            ("the critic=ollama:qwen:7b", "the critic", "ollama", "qwen:7b", None),
            ("openrouter:a/b:free", "", "openrouter", "a/b:free", None),
            ("http://h:8000/v1#m", "", "http://h:8000", "m", "http://h:8000/v1"),
            ("x=https://H/v1/#a#b=c", "x", "https://h", "a#b=c", "https://H/v1"),
            ("http://[::1]:8000/v1#m", "", "http://[::1]:8000", "m", "http://[::1]:8000/v1"),
            ("script:plays/a=b.toml", "", "script", "plays/a=b.toml", None),
            ("cmd:llm --model=x 'a b'", "", "cmd", "llm --model=x 'a b'", None),
        ],
    )
    def test_a_seat_is_parsed(self, text, name, provider, model, url):
        """It has name, provider, model and address, whatever the characters of the model."""
        spec = parse_seat(text)

        assert (spec.name, spec.provider, spec.model, spec.url) == (name, provider, model, url)

    @given(st.text(max_size=30))
    def test_any_text_is_a_seat_or_refused(self, text):
        """What is no seat is refused by an error of ours; what is one can be seated again."""
        try:
            spec = parse_seat(text)
        except ConfigError:
            return

        assert parse_seat(spec.source) == replace(spec, name="")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "is empty; a seat is written provider:model"),
            ("gpt-5", "'gpt-5' names no provider; a seat is written"),
            ("openai:", "'openai:' lacks a model"),
            ("openia:gpt-5", "unknown provider 'openia'; did you mean 'openai'?"),
            ("http://host/v1", "'http://host/v1' lacks a model: name it after a #"),
            ("http://#m", "'http://' is not a base URL"),
            ("http:/host#m", "is not a base URL"),
            ("https://host:port/v1#m", "is not a base URL"),
            ("script:", "it names no script"),
            ("cmd: ", "it names no program"),
            ("cmd:a 'b", "the command cannot be read: no closing quotation"),
        ],
    )
    def test_what_is_no_seat_is_refused_in_a_sentence(self, text, said):
        """The sentence says where, what is wrong, and how a seat is written."""
        with pytest.raises(ConfigError) as caught:
            parse_seat(text, origin="witan.toml", key="members[1]")

        assert str(caught.value).startswith("witan.toml: members[1] is ")
        assert said in str(caught.value)


class TestServers:
    """A server is no provider, whatever its host is called."""

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_a_host_called_like_a_provider_gets_no_key_and_runs_nothing(self, scheme):
        """The seat is a model behind that address, without a key, for every name there is."""
        keys = {variable: "sk-4711" for p in PROVIDERS.values() for variable in p.variables}

        for name in (*PROVIDERS, "script", "cmd"):
            text = f"{scheme}://{name}/v1#sh -c 'touch x'"
            member = make_member(text, keys)

            assert key_variables(parse_seat(text)) == ()
            assert isinstance(member.model, OpenAICompatible)
            assert (member.provider, member.key_variable) == (f"{scheme}://{name}", None)
            assert (member.simulated, member.price) == (False, None)

    @given(st.from_regex(r"[a-z0-9-]{1,12}(\.[a-z]{2,3})?(:[1-9][0-9]{0,3})?", fullmatch=True))
    def test_no_host_is_a_name(self, host):
        """Whatever the host is, nothing is looked up under its name."""
        spec = parse_seat(f"http://{host}/v1#m")

        assert spec.provider == f"http://{host}"
        assert key_variables(spec) == ()

    def test_servers_tell_apart_what_is_called_the_same(self):
        """The host goes before the name, without the scheme."""
        assert seats("http://one:1/v1#m", "https://two/v1#m") == ["one:1/m", "two/m"]


class TestNames:
    """Every seat has a name of its own."""

    def test_a_seat_is_named_after_its_model(self):
        """So it is after its script or program; an explicit name is kept."""
        assert seats("openai:gpt-x", "script:p/poet.toml", "cmd:/bin/oracle -v", "me=xai:g") == [
            "gpt-x", "poet", "oracle", "me",
        ]  # fmt: skip

    def test_providers_tell_apart_what_is_called_the_same(self):
        """The provider goes before the name where two providers have it, and only there."""
        assert seats("openai:m", "groq:m", "groq:n") == ["openai/m", "groq/m", "n"]

    def test_the_same_model_is_numbered(self):
        """Several seats of one model are numbered from the second on."""
        assert seats("openai:m", "openai:m", "openai:m") == ["m", "m (2)", "m (3)"]

    def test_an_explicit_name_is_kept_by_its_seat(self):
        """A model does not take it, wherever the seat is in the list."""
        assert seats("openai:m", "m=xai:g") == ["m (2)", "m"]

    @given(st.lists(st.sampled_from(["openai:m", "groq:m", "openai:m (2)", "xai:n"]), max_size=8))
    def test_names_differ_always(self, texts):
        """No two seats share a name."""
        assert len(set(seats(*texts))) == len(texts)


class TestMembers:
    """What is made of a seat."""

    def test_a_missing_key_names_member_and_variable(self):
        """The error says whose key is missing and where it was looked for."""
        with pytest.raises(MissingKey, match=r"critic.*OPENAI_API_K"):
            make_member("critic=openai:gpt-x")
        with pytest.raises(MissingKey, match="GEMINI_API_KEY or GOOGLE_API_KEY"):
            make_member("google:gemini-x")

    def test_a_key_is_in_no_repr(self):
        """Neither member nor model show the key they hold."""
        member = make_member("openai:gpt-x", {"OPENAI_API_KEY": "sk-4711"})

        assert "4711" not in repr(member) + repr(member.model)

    def test_what_runs_here_costs_nothing_and_what_is_unknown_is_unknown(self, tmp_path):
        """Scripts and servers on this machine are free; any other server may charge."""
        script = tmp_path / "a.toml"
        script.write_text('[[answer]]\ntext = "x"')

        assert make_member(f"script:{script}").price == Price(0.0, 0.0)
        assert make_member("ollama:m").price == Price(0.0, 0.0)
        assert make_member("ollama:m", {"OLLAMA_HOST": "192.0.2.1"}).price is None
        assert make_member("ollama:gpt-oss:120b-cloud").price is None
        assert make_member("ollama:glm:cloud").price is None
        assert make_member("http://127.0.0.1:8000/v1#m").price == Price(0.0, 0.0)
        assert make_member("http://127.0.0.1:8000/v1#m-cloud").price is None
        assert make_member("http://192.0.2.1:8000/v1#m").price is None
        assert make_member("openai:no-such-model", {"OPENAI_API_KEY": "k"}).price is None

    def test_a_script_is_simulated_and_says_where_it_is(self, tmp_path):
        """A scripted member is marked, and its source seats it again."""
        script = tmp_path / "a.toml"
        script.write_text('[[answer]]\ntext = "x"')

        member = make_member(f"script:{script}")

        assert member.simulated
        assert make_member(member.source).source == member.source

    def test_ollama_is_called_where_its_variable_says(self):
        """OLLAMA_HOST moves the provider; a URL of the seat's own is stronger."""
        spec = parse_seat("ollama:m")

        assert base_url(spec, {}) == "http://127.0.0.1:11434/v1"
        assert base_url(spec, {"OLLAMA_HOST": "box:1"}) == "http://box:1/v1"
        assert base_url(replace(spec, url="http://x/v1"), {"OLLAMA_HOST": "b"}) == "http://x/v1"

    @pytest.mark.parametrize(
        ("text", "variable", "value", "url"),
        [
            ("openai:m", "OPENAI_BASE_URL", "https://gw.example/v1/", "https://gw.example/v1"),
            ("openai-responses:m", "OPENAI_BASE_URL", "https://gw/x", "https://gw/x"),
            ("openai:m", "OPENAI_API_BASE", "https://gw/x", "https://gw/x"),
            ("anthropic:m", "ANTHROPIC_BASE_URL", "https://gw/claude", "https://gw/claude"),
            ("google:m", "GOOGLE_GEMINI_BASE_URL", "https://gw/g", "https://gw/g"),
            ("google-cloud:m", "GOOGLE_VERTEX_BASE_URL", "https://gw/g", "https://gw/g"),
            ("azure:m", "AZURE_OPENAI_ENDPOINT", "https://gw/a", "https://gw/a"),
            ("cohere:m", "CO_BASE_URL", "https://gw/c", "https://gw/c"),
            ("cohere:m", "CO_API_URL", "https://gw/c", "https://gw/c"),
            ("bedrock:m", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "https://gw/b", "https://gw/b"),
            ("groq:m", "GROQ_BASE_URL", "https://gw/groq", "https://gw/groq/openai/v1"),
            ("groq:m", "GROQ_BASE_URL", "https://gw/openai/v1", "https://gw/openai/v1"),
            ("cerebras:m", "CEREBRAS_BASE_URL", "https://gw", "https://gw/v1"),
            ("mistral:m", "MISTRAL_BASE_URL", "https://gw/v1", "https://gw/v1"),
            ("openrouter:a/m", "OPENROUTER_BASE_URL", "https://gw/v1", "https://gw/v1"),
            ("ollama:m", "OLLAMA_BASE_URL", "http://box:1", "http://box:1/v1"),
            ("ollama:m", "OLLAMA_BASE_URL", "http://box:1/v1", "http://box:1/v1"),
            ("vllm:m", "VLLM_BASE_URL", "http://box:1/v1", "http://box:1/v1"),
        ],
    )
    def test_a_provider_is_called_where_its_own_variable_says(self, text, variable, value, url):
        """The variables of its library move it; a URL of the seat's own is stronger."""
        spec = parse_seat(text)
        given = {variable: value, "OLLAMA_HOST": "other:2"}

        assert base_url(spec, given) == url
        assert base_url(replace(spec, url="http://x/v1"), given) == "http://x/v1"

    @pytest.mark.parametrize("value", ["gw.example", "http://", "https://u:p4711@gw/v1"])
    def test_a_variable_without_an_address_is_named(self, value):
        """The provider's default is not called in its files, and no secret is repeated."""
        for name in (n for n in PROVIDERS if PROVIDERS[n].url_variables):
            variable = PROVIDERS[name].url_variables[0]

            with pytest.raises(ConfigError, match=f"^{variable}: is not a base URL") as caught:
                base_url(SeatSpec("", name, "m"), {variable: value})

            assert "4711" not in str(caught.value)

    @pytest.mark.parametrize("provider", [n for n in PROVIDERS if not PROVIDERS[n].local])
    def test_a_paid_provider_is_not_free_behind_a_gateway_here(self, provider):
        """A model that no list prices has an unknown price, unless one is set."""
        spec = replace(parse_seat(f"{provider}:no-such-model"), url="http://127.0.0.1:1/v1")

        assert price_of_seat(spec, {}) is None
        assert price_of_seat(replace(spec, price=Price(1, 2)), {}) == Price(1, 2)

    def test_behind_a_gateway_the_known_price_applies(self):
        """A gateway passes on what the provider charges, wherever it runs."""
        known = price_of_seat(parse_seat("openai:gpt-4o"), {})
        spec = parse_seat("openai:gpt-4o")

        assert known is not None
        for url in ("https://gw/v1", "http://127.0.0.1:1/v1"):
            assert price_of_seat(spec, {"OPENAI_BASE_URL": url}) == known
            assert price_of_seat(replace(spec, url=url), {}) == known

    @pytest.mark.parametrize(
        ("url", "here"),
        [
            ("http://localhost:1/v1", True),
            ("http://127.0.0.9", True),
            ("http://[::1]:2/v1", True),
            ("http://127.0.0.1.example.com", False),
            ("http://10.0.0.1", False),
        ],
    )
    def test_loopback_is_an_address_not_a_spelling(self, url, here):
        """Only what leads to this machine is local."""
        assert is_loopback(url) is here


def priced(name: str, usd: float = 1.0, **more) -> dict:
    """An entry of a list of models, with what a million tokens cost."""
    pricing = {"prompt": f"{usd / 1e6:.9f}", "completion": f"{usd / 1e6:.9f}"}
    return {"id": name, "pricing": pricing, **more}


def find(environment=None, servers=None, providers=None, reached=None) -> DiscoveredCouncil:
    """Look for a council among these alone."""

    async def look() -> DiscoveredCouncil:
        return await find_council(environment or {}, servers or {}, providers or {}, reached or {})

    return anyio.run(look)


class TestFinding:
    """Without configuration, whom there is is seated."""

    @pytest.fixture
    def provider(self):
        """Stand in for a provider of that name at that address."""

        def at(name: str, url: str) -> dict[str, Provider]:
            return {name: replace(PROVIDERS[name], models_url=f"{url}/models")}

        return at

    def test_a_provider_with_a_key_gives_its_newest_chat_models(self, provider):
        """Embeddings and voices are left out, the newest come first, the key goes along."""
        models = [
            priced("old", created=1),
            priced("text-embedding-9", created=9),
            priced("undated"),
            priced("newest", created=3),
            priced("tts-2", created=8),
            priced("newer", created=2),
        ]
        with listing(*models) as server:
            found = find({"OPENAI_API_KEY": "k"}, providers=provider("openai", server.url))

        assert [s.source for s in found.seats] == [
            f"openai:{name}" for name in ("newest", "newer", "old", "undated")
        ]
        assert server.headers[0]["authorization"] == "Bearer k"
        assert found.notes[0].startswith("no council is configured")

    def test_every_source_takes_a_seat_before_any_takes_two(self, provider):
        """Two servers and a provider fill three seats with one model each, then the fourth."""
        with (
            listing("a", "b") as one,
            listing("c", "d") as two,
            listing(priced("e"), priced("f")) as three,
        ):
            found = find(
                {"MISTRAL_API_KEY": "k"},
                {"ollama": one.url, "vllm": two.url},
                provider("mistral", three.url),
            )

        assert [s.source for s in found.seats] == [
            "mistral:e", "ollama:a", "vllm:c", "mistral:f",
        ]  # fmt: skip
        assert [s.url for s in found.seats] == [None, one.url, two.url, None]

    def test_a_single_model_takes_four_seats_with_a_note(self):
        """Its votes are not independent."""
        with listing("tiny") as server:
            found = find(servers={"ollama": server.url})

        assert [s.name for s in found.seats] == ["tiny", "tiny (2)", "tiny (3)", "tiny (4)"]
        assert "their votes are not independent" in found.notes[1]

    @pytest.mark.parametrize("name", ["openai", "vllm"])
    def test_a_configured_provider_is_asked_at_its_own_address(self, name):
        """The default address and key are not used."""
        price = {"prompt": "0.000001", "completion": "0.000001"}
        with listing(*({"id": model, "pricing": price} for model in "mno")) as server:
            found = find(
                {"TEAM_KEY": "t", "OPENAI_API_KEY": "k"},
                {"vllm": NOWHERE},
                {name: PROVIDERS[name]},
                {name: Reach(server.url, "TEAM_KEY")},
            )

        assert {(s.provider, s.url, s.key_variable) for s in found.seats} == {
            (name, server.url, "TEAM_KEY")
        }
        assert server.headers[0]["authorization"] == "Bearer t"

    def test_without_the_configured_key_a_provider_is_not_asked(self):
        """The key in the default variable is not used in its files."""
        with listing("m") as server, pytest.raises(NoCouncil, match="TEAM_KEY"):
            find(
                {"OPENAI_API_KEY": "k"},
                providers={"openai": PROVIDERS["openai"]},
                reached={"openai": Reach(server.url, "TEAM_KEY")},
            )

        assert server.paths == []

    def test_a_moved_provider_whose_list_is_unknown_is_passed_over(self):
        """Its key goes neither to its own address nor to a guess."""
        with pytest.raises(NoCouncil, match="cohere was skipped"):
            find(
                {"CO_API_KEY": "k"},
                providers={"cohere": PROVIDERS["cohere"]},
                reached={"cohere": Reach(NOWHERE)},
            )

    @pytest.mark.parametrize(
        ("name", "variable", "path"),
        [
            ("openai", "OPENAI_BASE_URL", "/v1/models"),
            ("anthropic", "ANTHROPIC_BASE_URL", "/v1/v1/models"),
            ("google", "GOOGLE_GEMINI_BASE_URL", "/v1/v1beta/openai/models"),
            ("openrouter", "OPENROUTER_BASE_URL", "/v1/models"),
            ("vllm", "VLLM_BASE_URL", "/v1/models"),
        ],
    )
    def test_models_are_listed_at_the_address_of_the_variable(self, name, variable, path):
        """The gateway gets the request with the key, and nobody else does."""
        key = dict.fromkeys(PROVIDERS[name].variables[:1], "k")
        price = {"prompt": "0.000001", "completion": "0.000001"}
        models = [{"id": model, "pricing": price} for model in ("gpt-4o", "gpt-4o-mini", "m")]
        with listing(*models) as server:
            found = find(
                {variable: server.url, **key},
                {name: NOWHERE} if PROVIDERS[name].local else {},
                {name: PROVIDERS[name]},
            )

        assert {seat.provider for seat in found.seats} == {name}
        assert server.paths == [path]

    def test_a_provider_with_an_invalid_address_is_skipped(self):
        """The variable is named, and the default address is not used."""
        with pytest.raises(NoCouncil, match="OPENAI_BASE_URL: is not a base"):
            find(
                {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "gw.example"},
                providers={"openai": PROVIDERS["openai"]},
            )

    def test_what_does_not_chat_is_not_seated_and_named(self, provider):
        """Well-known words in an id keep it out, at a provider and at a server here."""
        with (
            listing("whisper-1", "dall-e-3", "omni-moderation-latest", priced("m")) as far,
            listing("tts-kokoro", "n", "bge-reranker") as near,
        ):
            found = find({"OPENAI_API_KEY": "k"}, {"ollama": near.url}, provider("openai", far.url))

        assert [s.source for s in found.seats] == ["openai:m", "ollama:n"]
        assert "skipped, apparently no chat models" in found.notes[-1]
        assert "ollama:bge-reranker, ollama:tts-kokoro, openai:dall-e-3" in found.notes[-1]

    def test_a_local_model_that_embeds_takes_no_seat(self):
        """However many a server here lists; the others sit under the names that it listed."""
        names = ("nomic-embed-text:latest", "models/llama-7b.gguf", "bge-m3", "Qwen3Guard-Gen-8B")
        with listing(*names) as server:
            found = find(servers={"llamacpp": server.url})

        assert {seat.model for seat in found.seats} == {"models/llama-7b.gguf"}

    def test_google_models_are_called_without_their_folder(self, provider):
        """Its list puts all ids into a folder that its own interface does not take."""
        with listing(priced("models/gemini-x")) as server:
            found = find({"GEMINI_API_KEY": "k"}, providers=provider("google", server.url))

        assert {seat.model for seat in found.seats} == {"gemini-x"}

    def test_no_expensive_or_unpriced_model_is_seated(self, provider):
        """A $600 model and one without a price are skipped, with how to seat them."""
        models = [
            priced("openai/o1-pro", 600.0, created=9),
            {"id": "z-ai/secret", "created": 8},
            priced("openrouter/auto", -1e6, created=7),
            priced("openai/gpt-x", 10.0, created=4),
            priced("openai/gpt-x-mini", 0.5, created=5),
            priced("openai/gpt-old", 5.0, created=1),
            priced("obscure/new", 1.0, created=9),
            priced("anthropic/claude-x", 3.0, created=3),
            priced("google/gem-x", 2.0, created=2),
            priced("google/gem-y-preview", 2.0, created=6),
        ]
        with listing(*models) as server:
            far = provider("openrouter", server.url)
            found = find({"OPENROUTER_API_KEY": "k"}, providers=far)

        assert [s.source.partition(":")[2] for s in found.seats] == [
            "anthropic/claude-x", "openai/gpt-x", "google/gem-x", "obscure/new",
        ]  # fmt: skip
        assert [s.price for s in found.seats] == [Price(u, u) for u in (3.0, 10.0, 2.0, 1.0)]
        assert all(
            fact in found.notes[-1]
            for fact in ("openrouter", "2 models", "1 model above $10", "openai/o1-pro")
        )

    def test_without_prices_no_model_is_seated(self, provider):
        """The error explains how to seat one."""
        with listing("m", "n") as server, pytest.raises(NoCouncil, match="2 models whose price is"):
            find({"OPENAI_API_KEY": "k"}, providers=provider("openai", server.url))

    def test_a_refused_key_is_a_note_if_others_are_seated(self, provider):
        """The note does not contain the key."""
        with listing("a", "b") as local, listing(status=401) as server:
            found = find(
                {"OPENAI_API_KEY": "sk-4711"},
                {"ollama": local.url},
                provider("openai", server.url),
            )

        assert [s.source for s in found.seats] == ["ollama:a", "ollama:b"]
        assert all(
            fact in found.notes[-1] for fact in ("openai: rejected the key", "OPENAI_API_KEY")
        )

    def test_a_blank_model_is_no_model(self, provider):
        """Ids that name nothing are passed over, at a provider and at a server here."""
        with listing("", " ", priced("m")) as far, listing("", "n") as near, listing("  ") as empty:
            found = find(
                {"OPENAI_API_KEY": "k"},
                {"ollama": near.url, "vllm": empty.url},
                provider("openai", far.url),
            )

        assert [s.source for s in found.seats] == ["openai:m", "ollama:n"]

    @pytest.mark.parametrize("name", ["openai", "anthropic"])
    def test_a_key_that_cannot_be_sent_is_a_note(self, provider, name):
        """A key with a letter that no header holds keeps its provider out, and is not shown."""
        variable = PROVIDERS[name].variables[0]
        with listing("a", "b") as local, listing("m") as server:
            found = find({variable: "sk-47é11"}, {"ollama": local.url}, provider(name, server.url))

        assert [s.source for s in found.seats] == ["ollama:a", "ollama:b"]
        assert "invalid characters" in found.notes[-1]
        assert variable in found.notes[-1]
        assert "47" not in found.notes[-1]
        assert server.paths == []

    @pytest.mark.parametrize("keys", [{}, {"OPENAI_API_KEY": "k"}])
    def test_an_address_that_is_none_is_one_sentence(self, provider, keys):
        """OLLAMA_HOST is named by an error of ours, not by a group of errors."""
        with listing("m") as server, pytest.raises(ConfigError, match="OLLAMA_HOST: is not an add"):
            find(
                {"OLLAMA_HOST": "ftp://x", **keys},
                {"ollama": NOWHERE},
                provider("openai", server.url),
            )

    def test_a_provider_without_its_extra_is_a_note(self):
        """It is not asked for models; the note says how to install the extra."""
        code = (
            "import sys, anyio; sys.modules['anthropic'] = None\n"
            "from witan.service.council_discovery import find_council\n"
            "from witan.models.providers import PROVIDERS, Reach\n"
            "from witan.errors import NoCouncil\n"
            "async def look():\n"
            "    one = {'anthropic': PROVIDERS['anthropic']}\n"
            "    await find_council({'ANTHROPIC_API_KEY': 'k'}, {}, one)\n"
            "try: anyio.run(look)\n"
            "except NoCouncil as error: print(error)\n"
        )
        run = run_python(code, check=True)

        assert "pip install '.[anthropic]'" in run.stdout

    def test_nothing_found_names_ways_on_in_two_lines(self):
        """A key, and the demonstration; the sentence fits two lines of a terminal."""
        with pytest.raises(NoCouncil) as caught:
            find(servers={"ollama": NOWHERE}, providers=dict(PROVIDERS))

        for words in ("export a key such as OPENAI_API_KEY", "ask the profile demo"):
            assert words in str(caught.value)
        assert len(f"witan: {caught.value}") <= 160

    def test_every_searched_place_is_listed(self):
        """These are all variables of keys and all servers."""
        said = describe_search()

        assert "OPENAI_API_KEY" in said
        assert "NEBIUS_API_KEY" in said
        assert "ollama" in said
        assert "more" not in said

    def test_the_failure_of_a_provider_is_the_reason_for_no_seats(self, provider):
        """A refused key is not a missing key."""
        with (
            listing(status=403) as server,
            pytest.raises(NoCouncil, match=r"rejected the key \(40"),
        ):
            find({"XAI_API_KEY": "sk-4711"}, providers=provider("xai", server.url))


def test_a_seat_s_name_is_that_of_its_spec():
    """Naming changes nothing else about a seat."""
    spec = parse_seat("openai:m")

    [named] = name_seats([spec])

    assert named == SeatSpec("openai:m", "openai", "m", name="m")
