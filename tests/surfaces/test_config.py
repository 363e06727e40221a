"""The configuration: precedence, sources of values, and refusals."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processes import run_python
from witan.core.interpretation import Counting
from witan.core.settings import Settings
from witan.deliberation.procedure import Limits, Procedure
from witan.errors import ConfigError, UnknownName
from witan.models.providers import PROVIDERS
from witan.service.config.serve import HistorySettings, ServeSettings
from witan.service.config.tables import MemberTable, ProviderTable, TokenTable, fixed_keys
from witan.service.procedure_options import build_procedure, procedure_of
from witan.service.settings import NAME_TABLES, OPEN_TABLES


def variable_of(key: str) -> str:
    """The variable of a setting as the page states it: `WITAN_` and the key, with one exception."""
    return "WITAN_HISTORY" if key == "history.url" else f"WITAN_{key.upper().replace('.', '_')}"


@pytest.mark.parametrize("name", ["MYKEY", "K2", "_KEY", "TEAM_KEY", "OPENAIKEYOFTHETEAM"])
def test_a_name_in_capitals_is_a_variable(files, name):
    """It has capitals, digits and underscores."""
    config = files.load(WITAN_PROVIDERS_OPENAI_KEY=name)

    assert config.reach_by_provider["openai"].key_variable == name


@pytest.mark.parametrize("key", ["sk-4711", "mykey", "AKIA4711EXAMPLE4711X", "4711", "MY-KEY", ""])
def test_an_api_key_is_not_accepted_as_the_name_of_a_variable(files, key):
    """Small letters, dashes and long runs are refused, and not shown."""
    path = files.project / "named.toml"
    path.write_text(f'[providers.openai]\nkey = "{key}"')

    said = files.refusal(path=path)

    assert "must name the variable" in said
    assert not key or key not in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"members": ("zed", "script:a")}, "the command line: --member is not a seat: "
         "'zed' names no"),
        ({"members": ("script:a", "script:b"), "chairmen": ("zed",)}, "the command line: "
         "--chairman is neither a seat nor a name: unknown member 'zed'; known: a, b"),
        ({"max_cost_usd": -1}, "the command line: --max-cost cannot be -1"),
        ({"limits.call_seconds": "x"}, "the command line: --call-seconds should be a number"),
        ({"rubric_scoring": 3}, "the command line: --rubric-scoring"),
    ],
)  # fmt: skip
def test_an_error_names_the_option_of_the_command_line(files, given, said):
    """It does not name the setting behind it."""
    assert files.refusal(overrides=given).startswith(said)


class TestPrecedence:
    """The stronger source wins, value by value."""

    def test_without_any_source_everything_is_a_default(self, files):
        """No file is read, and there are no seats."""
        config = files.load()

        assert (config.members, config.origins, config.files) == ((), {}, ())
        assert procedure_of(config) == Procedure()

    def test_each_source_overrides_the_one_before(self, files):
        """The order is user's file, project's file, variable, override."""
        own = files.write_own('rule = "borda"\nmode = "best"\nquorum = 3\nenough = 2')
        project = files.write('rule = "schulze"\nmode = "verdict"\nquorum = 4')

        config = files.load(
            overrides={"rule": "kemeny"}, WITAN_RULE="copeland", WITAN_MODE="consensus"
        )

        assert dict(config.options) == {
            "rule": "kemeny", "mode": "consensus", "quorum": 4, "enough": 2,
        }  # fmt: skip
        assert config.origins == {
            "rule": "the command line", "mode": "WITAN_MODE", "quorum": project, "enough": own,
        }  # fmt: skip
        assert config.files == (own, project)

    def test_tables_are_merged_key_by_key(self, files):
        """One limit may come from a file and another from a variable."""
        files.write("[limits]\ncall_seconds = 30\nattempts = 2")

        limits = procedure_of(files.load(WITAN_LIMITS_ATTEMPTS="5")).limits

        assert (limits.call_seconds, limits.attempts) == (30.0, 5)

    def test_the_file_is_found_in_a_directory_above(self, files):
        """The nearest witan.toml at or above the directory is the project's."""
        path = files.write("quorum = 3")
        below = files.project / "a" / "b"
        below.mkdir(parents=True)

        assert files.load(directory=below).origins == {"quorum": path}

    @pytest.mark.parametrize("by", ["path", "variable"])
    def test_a_named_file_replaces_the_project_s(self, files, by):
        """It is given by path or WITAN_CONFIG, and no file is searched for."""
        files.write("quorum = 3")
        other = files.project / "other.toml"
        other.write_text("enough = 2", encoding="utf-8")

        config = (
            files.load(path="other.toml") if by == "path" else files.load(WITAN_CONFIG="other.toml")
        )

        assert config.origins == {"enough": str(other)}

    def test_an_empty_variable_sets_nothing(self, files):
        assert files.load(WITAN_RULE="", WITAN_MODE="  ").origins == {}

    def test_another_rubric_drops_earlier_weights(self, files):
        """They do not apply when a stronger source names another rubric."""
        files.write('rubric = "general"\nrule = "hybrid"\n[rule_parameters]\nalpha = 0.3\n'
                    "[rubric_weights]\naccuracy = 0.45\nclarity = 0.1")  # fmt: skip

        kept = procedure_of(files.load())
        other = procedure_of(files.load(WITAN_RUBRIC="coding", WITAN_RULE="schulze"))

        same = procedure_of(files.load(WITAN_RUBRIC="general", WITAN_RULE="hybrid"))

        assert kept == same
        assert kept.rubric.criteria[0].weight == 0.45
        assert kept.counting.parameters == {"alpha": 0.3}
        assert other.rubric.name == "coding"
        assert other.counting.parameters == {}


class TestCompleteness:
    """Everything can be configured."""

    def test_every_field_has_a_setting(self):
        """Fields are those of the procedure, its limits and its counting."""
        settings = {key[-1] for key in (*fixed_keys(), *OPEN_TABLES)}
        kinds = (Procedure, Limits, Settings, Counting)
        chosen = {field.name for kind in kinds for field in fields(kind)}
        made = {"counting", "limits", "providers", "gates", "kind", "parameters", "prior"}
        # A council asks for grades from 1 to 10: a scale belongs to ballots from elsewhere.
        made |= {"scale"}
        made |= {"looks", "severity"}  # planned by the session, learned from others

        assert chosen - made <= settings

    def test_every_setting_reaches_the_procedure(self, files):
        """A value in its variable replaces the default."""
        values = {
            "mode": "consensus", "rule": "schulze", "rubric": "coding", "rubric_scoring": "false",
            "holistic": "true", "synthesis": "yes", "json_schema": "{}",
            "self_review": "1", "mirrored": "on",
            "review_rounds": "2", "debate_rounds": "1", "spend": "until_decided",
            "safety": "true", "safety_cap": "1.5", "enough": "3", "quorum": "3",
            "limits.call_seconds": "1", "limits.stage_seconds": "2", "limits.session_seconds": "3",
            "limits.grace_seconds": "4", "limits.attempts": "5", "limits.hedge_seconds": "6",
            "limits.max_tokens": "7", "limits.max_cost_usd": "8", "limits.max_calls": "9",
            "counting.recusal": "off", "counting.unranked": "last",
            "counting.ties": "intervals", "counting.level": "0.9",
            "counting.threshold": "2", "counting.tie_break": "none", "counting.rho": "0.2",
            "counting.flips": "false", "history.url": "h.sqlite", "history.keep_days": "9",
            "history.enabled": "false", "counting.prior": "none", "serve.host": "::1",
            "serve.port": "80", "serve.max_sessions": "1", "serve.max_streams": "2",
            "serve.body_bytes": "3", "serve.per_minute": "4", "serve.heartbeat_seconds": "5",
            "serve.grace_seconds": "6", "serve.allowed_hosts": "council.example",
            "serve.public_url": "https://council.example", "serve.trusted_proxies": "10.0.0.1",
            "serve.log": "json", "serve.max_connections": "7", "serve.header_seconds": "8",
            "serve.body_seconds": "9", "serve.idle_seconds": "10", "serve.send_seconds": "11",
            "serve.narration": "true",
        }  # fmt: skip
        config = files.load(**{variable_of(key): value for key, value in values.items()})

        procedure, default = procedure_of(config), Procedure()

        elsewhere = {("members",), ("jury",), ("chairman",), ("chairmen",), ("pairs",)}
        assert {".".join(k) for k in fixed_keys() if k not in elsewhere} == set(config.origins)
        for name in ("counting", "limits"):
            for field in fields(getattr(default, name)):
                changed = getattr(getattr(procedure, name), field.name)
                if field.name in {key[-1] for key in fixed_keys()}:
                    assert changed != getattr(getattr(default, name), field.name), field.name
        assert procedure.counting.rho == 0.2
        assert procedure.counting.counting.recusal == "off"
        # Pairs exclude grades, a second round and stopping early.
        assert procedure_of(files.load(WITAN_PAIRS="3")).pairs == 3

    @pytest.mark.parametrize("key", ["members", "jury", "chairmen", "chairman"])
    def test_seats_can_be_set_by_variables(self, files, key):
        """These are members, jury and chairmen."""
        config = files.load(**{variable_of(key): "script:a"})

        assert list(config.origins.values()) == [variable_of(key)]

    def test_providers_are_throttled_by_file_and_by_variable(self, files):
        """Concurrency and rate are set per provider, from any source."""
        files.write("[providers.openai]\nconcurrency = 2")

        config = files.load(WITAN_PROVIDERS_OPENAI_PER_MINUTE="30")

        throttling = procedure_of(config).limits.providers["openai"]
        assert (throttling.concurrency, throttling.per_minute) == (2, 30.0)

    def test_the_path_of_a_rubric_is_relative_to_its_file(self, files):
        """It is found from any directory below."""
        from witan import RUBRICS
        from witan.files import rubric_to_toml

        files.write('rubric = "mine.toml"')
        (files.project / "mine.toml").write_text(rubric_to_toml(RUBRICS["creative"]))
        below = files.project / "below"
        below.mkdir()

        assert procedure_of(files.load(directory=below)).rubric == RUBRICS["creative"]

    def test_every_setting_and_provider_is_documented(self):
        """The pages name each key, and each provider with its variables."""
        docs = Path(__file__).parents[2] / "docs"
        names = ("configuration.md", "members.md")
        page = "".join((docs / name).read_text(encoding="utf-8") for name in names)

        for key in fixed_keys():
            assert f"| `{'.'.join(key)}` |" in page
        for table in (*OPEN_TABLES, *NAME_TABLES):
            assert f"| `[{'.'.join(table)}]` |" in page
        for provider in PROVIDERS.values():
            assert f"`{provider.name}`" in page
            assert all(f"`{variable}`" in page for variable in provider.variables)
        for table in (MemberTable, ProviderTable, TokenTable):
            assert all(f"`{field}`" in page for field in table.model_fields)

    def test_the_page_states_the_defaults(self):
        """Each default in code on the page is that of a procedure, the server or the history."""
        page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")
        procedure = Procedure()
        tables = {
            "limits": procedure.limits, "serve": ServeSettings(), "history": HistorySettings(),
        }  # fmt: skip
        stated = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)`", page, flags=re.MULTILINE)

        assert len(stated) > 35
        for key, default in stated:
            table, _, name = key.rpartition(".")
            counting = procedure.counting
            places = (tables.get(table, procedure), counting, counting.counting)
            actual = next(getattr(each, name) for each in places if hasattr(each, name))
            plain = getattr(actual, "name", actual)
            shown = f"{plain:.15g}" if isinstance(plain, float) else str(plain)
            assert shown.lower() == default, key

    def test_reading_a_configuration_imports_no_heavy_libraries(self):
        """Examples are numpy, an HTTP client and a terminal library."""
        code = (
            "import sys, witan.service.config.configuration;"
            "print([m for m in ('numpy', 'scipy', 'httpx2', 'rich') if m in sys.modules])"
        )
        run = run_python(code, check=True)

        assert run.stdout.strip() == "[]"

    @given(st.lists(st.floats(0.01, 1), min_size=5, max_size=5))
    def test_weights_that_sum_to_one_are_accepted(self, weights):
        """Rounding of the sum does not matter."""
        total = sum(weights)
        names = ("accuracy", "relevance", "completeness", "conciseness", "clarity")
        shares = {name: weight / total for name, weight in zip(names, weights, strict=True)}

        rubric = build_procedure({"rubric_weights": shares}).rubric

        assert {c.name: c.weight for c in rubric.criteria} == shares


class TestSeats:
    """Seats in files and variables."""

    def test_a_seat_is_a_string_or_a_table(self, files):
        """Both forms may be in one list; a table has options of the seat."""
        files.write_own(
            'members = ["openai:gpt-x", {seat = "anthropic:claude-x", name = "critic", '
            'temperature = 1, max_tokens = 9, reasoning_effort = "low", system = "Doubt.", '
            "price = [3, 15]}]"
        )

        first, second = files.load().members

        assert (first.name, first.source, first.price) == ("gpt-x", "openai:gpt-x", None)
        assert (second.name, second.provider, second.model) == ("critic", "anthropic", "claude-x")
        assert (second.options.temperature, second.options.max_tokens) == (1.0, 9)
        assert (second.options.reasoning_effort, second.options.system) == ("low", "Doubt.")
        assert second.price is not None
        assert second.price.of(1_000_000, 1_000_000) == 18.0

    @pytest.mark.parametrize(
        "text", ["openai:a, ollama:b:7b", '["openai:a", {"seat": "ollama:b:7b"}]']
    )
    def test_a_variable_lists_seats_with_commas_or_as_json(self, files, text):
        """Both forms give the same seats."""
        members = files.load(WITAN_MEMBERS=text).members

        assert [member.source for member in members] == ["openai:a", "ollama:b:7b"]

    def test_a_chairman_may_be_a_member_by_name_or_as_written(self, files):
        """It is then that seat; any other chairman has a name of its own."""
        files.write(
            'members = ["critic=openai:a", "openai:b"]\n'
            'chairmen = ["critic", "openai:b", "xai:b", {seat = "openai:b", temperature = 0}]'
        )

        config = files.load()

        assert config.chairmen[:2] == config.members
        assert [chairman.name for chairman in config.chairmen[2:]] == ["xai/b", "openai/b"]

    def test_chairman_is_short_for_a_list_of_one(self, files):
        """A stronger source replaces the chairmen of a weaker one."""
        files.write('members = ["openai:a", "openai:b"]\nchairmen = ["openai:a", "openai:b"]')

        config = files.load(WITAN_CHAIRMAN="openai:b")

        assert config.chairmen == (config.members[1],)

    def test_paths_are_relative_to_their_file(self, files):
        """A script is found from any working directory."""
        files.write('members = ["script:a.toml", "script:/b.toml"]')
        below = files.project / "below"
        below.mkdir()

        first, second = files.load(directory=below).members

        assert first.source == f"script:{files.project / 'a.toml'}"
        assert second.source == "script:/b.toml"

    def test_seats_inherit_key_and_address_of_their_provider(self, files):
        """A seat may override them."""
        files.write_own(
            'members = ["openai:a", {seat = "openai:b", key = "OTHER_KEY"}, "xai:c"]\n'
            '[providers.openai]\nkey = "TEAM_KEY"\nurl = "http://127.0.0.1:9/v1/"'
        )

        members = files.load().members

        assert [m.key_variable for m in members] == ["TEAM_KEY", "OTHER_KEY", None]
        assert [m.url for m in members] == ["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1", None]


class TestTrust:
    """A file found by searching may not run programs or redirect keys."""

    FORBIDDEN = (
        ('members = ["cmd:rm -rf x"]', "members[1]"),
        ('members = ["openai:a", "x=cmd:sh"]', "members[2]"),
        ('members = [{seat = "cmd:sh", name = "y"}]', "members[1]"),
        ('chairman = "cmd:sh"', "chairmen[1]"),
        ('members = [{seat = "http://evil/v1#m", key = "OPENAI_API_KEY"}]', "members[1].key"),
        ('members = [{seat = "openai:a", url = "http://evil/v1"}]', "members[1].url"),
        ('[providers.openai]\nurl = "http://evil/v1"', "providers.openai.url"),
        ('[providers.openai]\nkey = "AWS_SECRET_KEY"', "providers.openai.key"),
        ('members = [{seat = "openai:a", price = [0, 0]}]', "members[1].price"),
        ("[serve]\nport = 8000", "serve.port"),
        ('[serve.tokens.mine]\nkey = "HOME"', "serve.tokens.mine.key"),
        ('[profiles.fast]\nmembers = ["cmd:sh"]', "profiles.fast.members[1]"),
        (
            '[profiles.fast]\nchairman = {seat = "openai:a", url = "http://evil/v1"}',
            "profiles.fast.chairmen[1].url",
        ),
        ('[history]\nurl = "postgresql://evil/x"', "history.url"),
        ('[history]\nurl = "../elsewhere.sqlite"', "history.url"),
        ("[history]\nkeep_days = 1", "history.keep_days"),
    )

    @pytest.mark.parametrize(("text", "key"), FORBIDDEN)
    def test_an_untrusted_setting_is_refused_with_a_remedy(self, files, text, key):
        """The error names file and key, and how to trust the file."""
        path = files.write(text)

        said = files.refusal()

        assert said.startswith(f"{path}: {key} ")
        assert said.endswith(f"--config {path}")

    @pytest.mark.parametrize("text", [text for text, _ in FORBIDDEN])
    def test_a_named_file_is_trusted(self, files, text):
        """So is the user's own file."""
        path = files.write(text)
        files.load(path=path)
        files.load(WITAN_CONFIG=path)
        Path(path).unlink()
        files.write_own(text)
        files.load()

    def test_an_overridden_untrusted_setting_is_refused(self, files):
        """A stronger source would replace it."""
        files.write('members = ["cmd:sh"]')

        assert "runs a program" in files.refusal(WITAN_MEMBERS="openai:a,openai:b")

    @pytest.mark.parametrize("before", ["", " ", "x=", " x = "])
    @pytest.mark.parametrize("after", ["sh", " sh -c 'a'"])
    def test_a_program_is_refused_in_any_spelling(self, files, before, after):
        """The parsed seat decides, not the beginning of its text."""
        path = files.write(f"members = [{json.dumps(f'{before}cmd:{after}')}]")

        assert files.refusal().startswith(f"{path}: members[1] runs a program")

    def test_a_server_named_cmd_is_not_a_program(self, files):
        """The seat is a server without a key."""
        files.write('members = ["http://cmd/v1#sh -c x", "http://openai/v1#m"]')

        first, second = files.load().members

        assert (first.provider, first.url) == ("http://cmd", "http://cmd/v1")
        assert (second.provider, second.key_variable) == ("http://openai", None)

    @pytest.mark.parametrize("name", ["max_cost_usd", "max_calls"])
    @pytest.mark.parametrize(
        ("own", "theirs", "holds"), [("1", "5", 1.0), ("5", "1", 1.0), ("", "5", 5.0)]
    )
    def test_an_untrusted_file_may_only_lower_a_ceiling(self, files, name, own, theirs, holds):
        """The lower one of the user's and the file's applies."""
        if own:
            files.write_own(f"[limits]\n{name} = {own}")
        path = files.write(f"[limits]\n{name} = {theirs}")

        assert getattr(procedure_of(files.load()).limits, name) == holds
        assert getattr(procedure_of(files.load(path=path)).limits, name) == float(theirs)
        raised = files.load(**{f"WITAN_LIMITS_{name.upper()}": "9"})
        assert getattr(procedure_of(raised).limits, name) == 9.0

    def test_an_untrusted_file_may_seat_scripts_and_servers_without_a_key(self, files):
        files.write('members = ["http://127.0.0.1:8000/v1#m", "script:a.toml"]')

        assert [m.key_variable for m in files.load().members] == [None, None]


class TestRefusals:
    """Errors state problem, files and expectation."""

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("rule = 3", "rule should be text, not 3"),
            ('mirrored = "yes"', "mirrored should be true or false, not 'yes'"),
            ("[limits]\ncall_seconds = true", "limits.call_seconds should be a number"),
            ("[limits]\ncall_seconds = -1", "limits.call_seconds cannot be -1.0; expected a"),
            ("limits = 3", "limits should be a table"),
            ("members = 3", "members should be a list"),
            ("members = [3]", "members[1] should be a table"),
            ('members = [{name = "x"}]', "members[1].seat is missing"),
            ('members = [{seat = "openai:a", temperature = 3}]', "members[1].temperature should"),
            ('members = [{seat = "openai:a", temprature = 1}]', "did you mean temperature?"),
            ('members = ["openai:a", "openia:b"]', "members[2] is not a seat: unknown provider"),
            ('members = ["x=openai:a", "x=openai:b"]', "members[2] has the name of another seat"),
            ('members = ["openai:abc", "openai:b"]\nchairman = "abd"', "did you mean 'abc'?"),
            (
                'members = ["a=openai:x", "openai:b"]\nchairmen = ["b", "a=openai:y"]',
                "chairmen[2] has the name of another seat, 'a'",
            ),
            (
                'members = ["openai:x", "openai:b"]\nchairmen = ["c=xai:y", "c=xai:z"]',
                "chairmen[2] has the name of another seat, 'c'",
            ),
            ('mode = "verdict"\nsynthesis = false', "synthesis cannot be False; expected True"),
            ('chairman = "openai:a"\nchairmen = []', "chairman and chairmen are both set"),
            ('rules = "borda"', "rules is not a setting; did you mean rule?"),
            ("call_seconds = 3", "call_seconds is not a setting here; it is in the table [limit"),
            ('rule = "bordaa"', "rule names an unknown rule 'bordaa'; did you mean 'borda'?"),
            ('rubric = "codding"', "rubric names an unknown rubric 'codding'; did you mean"),
            ('rubric = "gone.toml"', "rubric cannot be used: the rubric"),
            ("[rubric_weights]\naccurcy = 0.4", "rubric_weights names an unknown criterion"),
            ("[rubric_weights]\naccuracy = 0.5", "rubric_weights has weights that sum to 1.15;"),
            ('rule = "hybrid"\n[rule_parameters]\nalfa = 1', "did you mean 'alpha'?"),
            ('mode = "concensus"', "mode cannot be 'concensus'; expected consensus, best or"),
            ("[providers.opnai]\nconcurrency = 2", "providers.opnai is of an unknown provider"),
            ("[providers.openai]\nconcurrency = 0", "providers.openai.concurrency cannot be 0"),
            ("quorum = ", "is not TOML: "),
            (f"quorum = {'[' * 10_000}", "is not TOML: "),
        ],
    )
    def test_errors_begin_with_file_and_key(self, files, text, said):
        """They state what was expected."""
        path = files.write(text)

        refusal = files.refusal()

        assert refusal.startswith(f"{path}: ")
        assert said in refusal

    def test_a_byte_order_mark_is_no_error(self, files):
        """Editors on Windows begin a file with one."""
        files.write('\ufeffrule = "borda"\r\n')

        assert procedure_of(files.load()).counting.rule == "borda"

    @pytest.mark.parametrize(
        ("variable", "value", "said"),
        [
            ("WITAN_MEMBRS", "a", "is not a setting of Witan; did you mean WITAN_MEMBERS?"),
            ("WITAN_LIMITS_CAL_SECONDS", "1", "did you mean WITAN_LIMITS_CALL_SECONDS?"),
            ("WITAN_ENOUGH", "two", "enough should be a whole number, not 'two'"),
            ("WITAN_MEMBERS", "[openai:a]", "is not JSON: "),
            ("WITAN_MEMBERS", "[" * 100_000, "is not JSON: "),
            ("WITAN_MEMBERS", "openai:a,", ""),
            ("WITAN_RUBRIC_WEIGHTS_ACCURACY", "0.5", "rubric_weights has weights that sum to 1.15"),
            ("WITAN_LIMITS_MAX_COST_USD", "nan", "limits.max_cost_usd should be a finite number"),
        ],
    )
    def test_errors_begin_with_the_variable(self, files, variable, value, said):
        if not said:
            assert len(files.load(**{variable: value}).members) == 1
            return

        refusal = files.refusal(**{variable: value})

        assert refusal.startswith(f"{variable}: ")
        assert said in refusal

    def test_weights_from_two_sources_are_traced_to_both(self, files):
        """Their sum is invalid: the error names the file and the variable."""
        path = files.write("[rubric_weights]\nclarity = 0.3")

        assert files.refusal(WITAN_RUBRIC_WEIGHTS_ACCURACY="0.5").startswith(
            f"{path}, WITAN_RUBRIC_WEIGHTS_ACCURACY: rubric_weights has"
        )

    def test_an_unknown_override_is_refused(self, files):
        """The error suggests the nearest option."""
        with pytest.raises(UnknownName, match=r"'mirored'.*did you mean 'mirrored'"):
            files.load(overrides={"mirored": True})

    def test_an_unreadable_named_file_is_an_error(self, files):
        """It is missing, or not text."""
        assert "cannot be read" in files.refusal(path="gone.toml")
        (files.project / "bytes.toml").write_bytes(b"\xff")
        assert all(fact in files.refusal(path="bytes.toml") for fact in ("not UTF-8", "at byte 0"))


class TestKeys:
    """API keys belong in variables, and are never printed."""

    @pytest.mark.parametrize(
        ("text", "variables"),
        [
            ('members = [{seat = "openai:a", key = "WITAN_TEAM_KEY"}]', {}),
            ('[providers.openai]\nkey = "WITAN_TEAM_KEY"', {}),
            ("", {"WITAN_PROVIDERS_OPENAI_KEY": "WITAN_TEAM_KEY"}),
            ("", {"WITAN_MEMBERS": '[{"seat": "openai:a", "key": "WITAN_TEAM_KEY"}]'}),
        ],
    )
    def test_a_variable_with_an_api_key_is_not_a_setting(self, files, text, variables):
        """Its name may begin with WITAN_; one that nothing refers to is refused."""
        files.write_own(text)

        config = files.load(WITAN_TEAM_KEY=self.LITERAL, **variables)

        assert self.LITERAL not in repr(config)
        with pytest.raises(ConfigError, match="WITAN_OTHER_KEY: is not a setting"):
            files.load(WITAN_TEAM_KEY="k", WITAN_OTHER_KEY="k", **variables)

    LITERAL = "sk-proj-4711abcdefghijkl"

    @pytest.mark.parametrize(
        "text",
        [
            'members = [{{seat = "openai:a", key = "{0}"}}]',
            '[providers.openai]\nkey = "{0}"',
            'members = [{{seat = "openai:a", api_key = "{0}"}}]',
            'members = ["http://user:{0}@host/v1#m"]',
            'members = ["http://host/v1?key={0}#m"]',
            'members = [{{seat = "openai:a", url = "http://u:{0}@host/v1"}}]',
            '[providers.openai]\nurl = "http://host/v1?key={0}"',
            'api_key = "{0}"',
        ],
    )
    def test_a_literal_key_is_refused_and_not_shown(self, files, text):
        """It may be anywhere in the file."""
        path = files.write_own(text.format(self.LITERAL))

        said = files.refusal()

        assert said.startswith(f"{path}: ")
        assert self.LITERAL not in said
