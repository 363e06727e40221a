"""Profiles: precedence, refusals, and selection on every surface."""

import pytest

from scripts import write_council
from witan import Council
from witan.errors import ConfigError, UnknownName
from witan.service.config.configuration import Config, load_config, profile_config
from witan.service.procedure_options import procedure_of

COUNCIL = """
members = ["openai:a", "openai:b", "openai:c"]
chairman = "b"
rule = "hybrid"
rule_parameters = {alpha = 0.3}
[limits]
attempts = 2
call_seconds = 30
[profiles.fast]
about = "Two members, one call each."
members = ["openai:x", "quick=openai:y"]
chairman = "quick"
mode = "verdict"
limits = {call_seconds = 5}
[profiles.fair]
rule = "schulze"
"""


@pytest.fixture
def load_profile(files):
    """Read the project's file under a profile, with other sources."""

    def take(text: str, profile: str, overrides=None, **variables: str) -> Config:
        files.write(text)
        environment = {"XDG_CONFIG_HOME": str(files.own.parents[1]), **variables}
        return load_config(environment, files.project, None, overrides or {}, profile=profile)

    return take


class TestPrecedence:
    """A profile changes only the settings that it names."""

    def test_a_profile_changes_only_its_own_settings(self, load_profile):
        """Seats, mode and one limit are the profile's; rule and the other limit stay."""
        config = load_profile(COUNCIL, "fast")
        procedure = procedure_of(config)

        assert [member.name for member in config.members] == ["x", "quick"]
        assert config.chairmen == (config.members[1],)
        assert (procedure.mode, procedure.counting.rule) == ("verdict", "hybrid")
        assert (procedure.limits.call_seconds, procedure.limits.attempts) == (5.0, 2)

    def test_another_rule_drops_parameters_of_the_first(self, load_profile):
        """They do not apply in the profile."""
        assert procedure_of(load_profile(COUNCIL, "fair")).counting.parameters == {}

    def test_a_profile_is_stronger_than_a_variable_and_weaker_than_an_option(self, load_profile):
        config = load_profile(COUNCIL, "fast", {"mode": "best"}, WITAN_MODE="consensus",
                       WITAN_LIMITS_CALL_SECONDS="60", WITAN_LIMITS_ATTEMPTS="9")  # fmt: skip
        limits = procedure_of(config).limits

        assert (procedure_of(config).mode, limits.call_seconds, limits.attempts) == ("best", 5.0, 9)

    def test_an_unselected_profile_changes_nothing(self, load_profile):
        bare = COUNCIL[: COUNCIL.index("[profiles.fast]")]

        without, config = load_profile(bare, ""), load_profile(COUNCIL, "")

        assert (config.members, config.chairmen) == (without.members, without.chairmen)
        assert config.options == without.options

    def test_profiles_are_independent_of_each_other(self, load_profile):
        """One configuration gives each in turn, and none."""
        config = load_profile(COUNCIL, "fast", {"quorum": 3})

        fair = profile_config(config, "fair")
        none = profile_config(fair, "", {"rule": "borda", "quorum": None})

        assert (fair.options["rule"], len(fair.members), fair.options["quorum"]) == (
            "schulze",
            3,
            3,
        )
        assert (none.options["rule"], none.options["quorum"]) == ("borda", 3)
        assert [(p.name, p.about) for p in none.profiles.values()] == [
            ("fair", ""), ("fast", "Two members, one call each."),
        ]  # fmt: skip

    def test_profiles_of_two_files_are_merged(self, files, load_profile):
        """The user's file applies where the project's says nothing."""
        files.write_own('[profiles.fair]\nrule = "borda"\nquorum = 3')

        options = load_profile(COUNCIL, "fair").options

        assert (options["rule"], options["quorum"]) == ("schulze", 3)

    @pytest.mark.parametrize(
        ("own", "project", "holds"),
        [
            ("[limits]\nmax_cost_usd = 1", "[profiles.p.limits]\nmax_cost_usd = 9", 1),
            ("[limits]\nmax_cost_usd = 1", "[profiles.p.limits]\nmax_cost_usd = 0.5", 0.5),
            ("[profiles.p.limits]\nmax_cost_usd = 1", "[profiles.p.limits]\nmax_cost_usd = 9", 1),
            ("[limits]\nmax_cost_usd = 9",
             "[limits]\nmax_cost_usd = 1\n[profiles.p.limits]\nmax_cost_usd = 5", 5),
        ],
    )  # fmt: skip
    def test_a_project_s_profile_cannot_raise_a_ceiling(
        self, files, load_profile, own, project, holds
    ):
        """It comes from a file found by searching."""
        files.write_own(own)

        assert procedure_of(load_profile(project, "p")).limits.max_cost_usd == holds

    @pytest.mark.parametrize("own", ["", "[limits]\nmax_cost_usd = 2"])
    def test_a_project_s_profile_cannot_raise_a_ceiling_of_a_variable(
        self, files, load_profile, own
    ):
        """The variable is the user's."""
        files.write_own(own)
        config = load_profile(
            "[profiles.p.limits]\nmax_cost_usd = 9", "p", WITAN_LIMITS_MAX_COST_USD="1"
        )

        assert procedure_of(config).limits.max_cost_usd == 1


class TestErrors:
    """An error names the file and the key as written there."""

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('rule = "bordas"', "profiles.p.rule names an unknown rule 'bordas'"),
            ("quorum = 0", "profiles.p.quorum cannot be 0"),
            ('members = ["zed"]', "profiles.p.members[1] is not a seat"),
            ('members = ["openai:a", "openai:b"]\nchairman = "c"', "profiles.p.chairmen[1] is "),
            ("limits = {call_seconds = -1}", "profiles.p.limits.call_seconds cannot be -1"),
            ('rulle = "x"', "profiles.p.rulle is not a setting; did you mean rule?"),
            ("limits = {atempts = 2}", "profiles.p.limits.atempts is not a setting; did you mean"),
            ("attempts = 2", "profiles.p.attempts is not a setting here; it is in the table "
             "[profiles.p.limits]"),
            ('chairman = "a"\nchairmen = ["a"]', "profiles.p.chairman and chairmen are both set"),
            ("[history]\nurl = 1", "history.url should be text"),
            ("", "profiles.p sets nothing; give at least a description"),
        ],
    )  # fmt: skip
    def test_an_error_is_one_sentence(self, files, load_profile, text, said):
        """It has the file, the key under the profile, and the problem."""
        with pytest.raises(ConfigError) as caught:
            procedure_of(load_profile(f"[profiles.p]\n{text}", "p"))

        assert str(caught.value).startswith(f"{files.project / 'witan.toml'}: {said}")

    @pytest.mark.parametrize("name", ["best", "demo", "a b", "a/b", "-a", "", "ä"])
    def test_reserved_names_are_refused(self, files, name):
        """A name is used in URLs and after `witan/`, where some have a meaning already."""
        files.write(f'[profiles."{name}"]\nquorum = 2')

        said = files.refusal()

        assert f"witan.toml: profiles.{name} " in said
        assert "name of a profile" in said or "cannot be named" in said

    def test_an_unknown_profile_is_refused_with_the_nearest(self, load_profile):
        with pytest.raises(UnknownName, match=r"'fats'.*did you mean 'fast'"):
            load_profile(COUNCIL, "fats")


class TestSurfaces:
    """Every surface that seats a council accepts a profile."""

    @pytest.fixture
    def scripted(self, tmp_path, monkeypatch):
        """A project whose profile `pair` decides by verdict, among other members."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
        write_council(tmp_path)
        (tmp_path / "witan.toml").write_text(
            'members = ["script:ada.toml", "script:bob.toml", "script:cyd.toml"]\n'
            '[profiles.pair]\nmembers = ["script:ada.toml", "script:bob.toml"]\nmode = "best"\n'
        )

    @pytest.mark.usefixtures("scripted")
    def test_ask_plan_and_rejudge_accept_a_profile(self, witan):
        """Members and mode of the session are the profile's."""
        asked = witan("ask", "Which?", "--profile", "pair", "--json", "--save", "first.json")
        planned = witan("plan", "Which?", "--profile", "pair", "--json")
        judged = witan("rejudge", "first.json", "--profile", "pair", "--json")

        assert asked.json["events"][0]["procedure"]["mode"] == "best"
        assert list(asked.json["answers"]) == ["ada", "bob"]
        assert {line["seat"] for line in planned.json["lines"]} == {"ada", "bob"}
        assert [ballot["reviewer"] for ballot in judged.json["ballots"]] == ["ada", "bob"]

    @pytest.mark.usefixtures("scripted")
    def test_council_from_config_accepts_a_profile(self):
        """Options override it."""
        council = Council.from_config(environment={}, profile="pair", quorum=1)

        assert [member.name for member in council.members] == ["ada", "bob"]
        assert (council.procedure.mode, council.procedure.quorum) == ("best", 1)

    @pytest.mark.usefixtures("scripted")
    def test_the_demonstration_is_one(self, witan):
        """Scripts sit in it, whatever is configured: `profiles` lists it, `ask` and `plan` take it.

        It needs neither a key nor money.
        """
        planned = witan("plan", "Is it so?", "--profile", "demo", "--json").json

        assert "demo" in witan("profiles").out
        assert planned["worst_usd"] == 0

    @pytest.mark.usefixtures("scripted")
    def test_a_misspelt_profile_is_misuse(self, witan):
        """One line names the nearest profile."""
        said = witan("ask", "Which?", "--profile", "pear")

        assert said.status == 2
        assert all(fact in said.err for fact in ("'pear'", "did you mean 'pair'?"))
