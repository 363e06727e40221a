"""Configuration of the server: its address, its tokens, and refusals."""

import hashlib

import pytest

from witan.errors import ConfigError
from witan.service.config.serve import ServeSettings, token_digests

TOKEN = "correct-horse-battery"  # noqa: S105 - of this test alone
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()


class TestSettings:
    """Settings of every source reach the server."""

    def test_defaults_serve_only_this_machine(self, files):
        """They are loopback, no token, and limits."""
        serve = files.load().serve

        assert serve == ServeSettings()
        assert (serve.url, serve.loopback, serve.refusal) == ("http://127.0.0.1:8717", True, None)

    def test_settings_come_from_files_variables_and_options(self, files):
        """Lists in variables have commas, or are JSON; an option is stronger than both."""
        files.write_own('[serve]\nport = 80\nlog = "json"\nallowed_hosts = ["a.example"]')

        serve = files.load(
            overrides={"serve.host": "::1"},
            WITAN_SERVE_PORT="81",
            WITAN_SERVE_ALLOWED_HOSTS="b.example, C.example",
            WITAN_SERVE_TRUSTED_PROXIES='["10.0.0.0/8", "::1"]',
            WITAN_SERVE_PUBLIC_URL="https://council.example/witan",
        ).serve

        assert (serve.url, serve.log, serve.loopback) == ("http://[::1]:81", "json", True)
        assert serve.hosts == ("b.example", "c.example", "council.example")
        assert serve.trusted_proxies == ("10.0.0.0/8", "::1")

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("host", "http://x", "should be the name or address of a host"),
            ("host", "x:80", "should be the name or address of a host"),
            ("allowed_hosts", "a.example,*", "should be the name or address of a host"),
            ("port", "65536", "should be less than or equal to 65535, not"),
            ("port", "-1", "should be greater than or equal to 0"),
            ("max_sessions", "0", "should be greater than or equal to 1"),
            ("heartbeat_seconds", "0", "should be greater than 0"),
            ("trusted_proxies", "everybody", "should be an address or a network"),
            ("log", "xml", "should be 'text' or 'json', not 'xml'"),
            ("public_url", "council.example", "is not a base URL"),
        ],
    )
    def test_an_invalid_value_is_refused_with_its_variable(self, files, name, value, said):
        with pytest.raises(ConfigError) as caught:
            _ = files.load(**{f"WITAN_SERVE_{name.upper()}": value}).serve

        assert str(caught.value).startswith(f"WITAN_SERVE_{name.upper()}: serve.{name}")
        assert said in str(caught.value)

    def test_an_error_names_the_option_of_the_command_line(self, files):
        said = files.refusal(overrides={"serve.max_sessions": 0})

        assert said.startswith("the command line: --max-sessions")

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "council.example", "192.168.0.7"])  # noqa: S104
    def test_a_public_address_requires_a_token(self, files, host):
        """An address of this machine does not."""
        refused = files.load(WITAN_SERVE_HOST=host).serve.refusal

        assert refused is not None
        assert host in refused
        assert "WITAN_TOKEN" in refused
        assert files.load(WITAN_SERVE_HOST=host, WITAN_TOKEN=TOKEN).serve.refusal is None


class TestTokens:
    """Tokens are never in files."""

    def test_witan_token_is_the_default_token(self, files):
        """Its limits may be in a file."""
        alone = files.load(WITAN_TOKEN=TOKEN)
        files.write_own("[serve.tokens.default]\nper_minute = 6")
        limited = files.load(WITAN_TOKEN=TOKEN)

        assert alone.serve.tokens["default"].key == "WITAN_TOKEN"
        assert limited.serve.tokens["default"].per_minute == 6
        assert token_digests(alone.serve, {"WITAN_TOKEN": TOKEN}) == {
            "default": bytes.fromhex(DIGEST)
        }
        assert TOKEN not in repr(alone)

    def test_each_token_has_its_own_limits(self, files):
        """It is given by a variable, or by its digest."""
        files.write_own(
            '[serve.tokens.team]\nkey = "WITAN_TEAM"\nper_minute = 60\nmax_cost_usd = 0.5\n'
            f'daily_usd = 5\n[serve.tokens."ci.2"]\nsha256 = "{DIGEST.upper()}"'
        )
        environment = {"WITAN_TEAM": "another-token-of-ours"}

        serve = files.load(**environment).serve
        team = serve.tokens["team"]

        assert (team.per_minute, team.max_cost_usd, team.daily_usd) == (60, 0.5, 5)
        assert (serve.tokens["ci.2"].per_minute, serve.tokens["ci.2"].key) == (None, None)
        assert token_digests(serve, environment)["ci.2"].hex() == DIGEST

    def test_a_variable_replaces_the_digest_of_a_token(self, files):
        """Its limits stay."""
        files.write_own(f'[serve.tokens.default]\nsha256 = "{"0" * 64}"\ndaily_usd = 1')

        token = files.load(WITAN_TOKEN=TOKEN).serve.tokens["default"]

        assert (token.key, token.sha256, token.daily_usd) == ("WITAN_TOKEN", None, 1)

    @pytest.mark.parametrize(
        ("table", "environment", "said"),
        [
            ('key = "TEAM"', {}, "serve.tokens.t cannot be used: TEAM is not set"),
            ('key = "TEAM"', {"TEAM": "x" * 15}, "the token in TEAM has fewer than 16 characters"),
            ("per_minute = 1", {}, "serve.tokens.t has neither key"),
            ("", {}, "serve.tokens.t has neither key nor sha256"),
            (f'key = "TEAM"\nsha256 = "{DIGEST}"', {}, "serve.tokens.t has both key and sha256"),
            (f'key = "TEAM"\n[serve.tokens.u]\nsha256 = "{DIGEST}"', {"TEAM": TOKEN},
             "serve.tokens.u is the same token as serve.tokens.t"),
            (f'key = "{TOKEN}"', {}, "serve.tokens.t.key must name the variable"),
            (f'sha256 = "{TOKEN}"', {}, "serve.tokens.t.sha256 must be the SHA-256"),
            ('keys = "TEAM"', {}, "serve.tokens.t.keys is not a setting; did you mean key?"),
            ('sha256 = 7', {}, "serve.tokens.t.sha256 must be the SHA-256"),
        ],
    )  # fmt: skip
    def test_an_invalid_token_is_refused_and_not_shown(self, files, table, environment, said):
        """The error names file and table."""
        own = files.write_own(f"[serve.tokens.t]\n{table}")

        with pytest.raises(ConfigError) as caught:
            token_digests(files.load(**environment).serve, environment)

        assert str(caught.value).startswith(f"{own}: serve.tokens.")
        assert said in str(caught.value)
        assert TOKEN not in str(caught.value)
        assert "x" * 15 not in str(caught.value)

    def test_the_name_of_a_token_is_safe_in_logs(self, files):
        """It has letters, digits, dashes, underscores and dots."""
        files.write_own(f'[serve.tokens."a b"]\nsha256 = "{DIGEST}"')

        assert "serve.tokens.a b" in files.refusal()
