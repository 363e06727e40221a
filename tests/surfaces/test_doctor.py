"""``witan doctor``: settings with their sources, seats with their keys and endpoints."""

import json
import signal

import pytest

from elections import ballot
from model_listing import listing
from terminals import run_on_terminal
from witan.deliberation.ports import Price
from witan.errors import ConfigError
from witan.history import History, SessionImport
from witan.models.providers import PROVIDERS
from witan.service.doctor import SeatFinding
from witan.service.text import Page
from witan.surfaces.cli.options import Status
from witan.surfaces.cli.setup import doctor_command, write_seats

SCRIPT = '[[answer]]\ntext = "x"\n'


@pytest.fixture
def doctor(tmp_path, monkeypatch, capsys):
    """Write a configuration, then run the command in its folder under these variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for provider in PROVIDERS.values():
        for variable in provider.variables:
            monkeypatch.delenv(variable, raising=False)
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(SCRIPT)

    def run(config: str, *args: str, **variables: str) -> tuple[int, str]:
        (tmp_path / "witan.toml").write_text(config)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        status = doctor_command.main(["--config", "witan.toml", *args], standalone_mode=False)
        return status, capsys.readouterr().out

    return run


class TestText:
    """The output for a reader."""

    def test_each_setting_has_its_value_and_source(self, doctor):
        """They come from a file and a variable."""
        status, out = doctor(
            'members = ["script:a.toml", "script:b.toml"]\nrule = "borda"',
            "--offline",
            WITAN_LIMITS_CALL_SECONDS="30",
        )

        lines = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
        assert lines["rule"][0] == "borda"
        assert lines["rule"][1].endswith("witan.toml")
        assert lines["limits.call_seconds"] == ["30", "WITAN_LIMITS_CALL_SECONDS"]
        assert "ready: a and b." in out.splitlines()[0]
        assert status == Status.ANSWERED

    def test_problems_come_first_and_defaults_are_not_listed(self, doctor):
        """Settings follow the seats."""
        _, out = doctor('members = ["script:a.toml", "script:b.toml"]', "--offline")

        firsts = [line.split()[0] for line in out.splitlines() if line.strip()]
        assert firsts[0] == "The"
        assert firsts.index("Members") < firsts.index("Configuration")
        assert "quorum" not in firsts

    def test_too_few_reviewers_are_reported(self, doctor):
        """Two are too few; the output states how many are enough."""
        _, out = doctor('members = ["script:a.toml", "script:b.toml"]', "--offline")

        assert all(fact in out for fact in ("2 members", "none judges its own"))

    def test_seats_have_their_source(self, doctor):
        """Members and chairmen are settings, too."""
        _, out = doctor('members = ["script:a.toml", "script:b.toml"]', "--offline",
                        WITAN_CHAIRMAN="a")  # fmt: skip

        lines = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
        assert lines["members"][:2] == ["a,", "b"]
        assert lines["members"][2].endswith("witan.toml")
        assert lines["chairmen"] == ["a", "WITAN_CHAIRMAN"]

    def test_findings_are_wrapped_on_a_narrow_terminal(self, doctor):
        """At 80 columns no word is lost."""
        doctor("", "--offline")
        seat = SeatFinding(
            "critic", "openai:gpt-5-long-name-of-a-model", "openai", "OPENAI_API_KEY", True,
            Price(1.25, 10), "unchecked", "answers, does not list gpt-6; did you mean gpt-5?",
        )  # fmt: skip

        told = list(write_seats(Page(width=80), "Members", [seat]))

        assert " ".join(told[-1].split()) == f"critic: {seat.finding}"
        assert "OPENAI_API_KEY present" in told[2]
        assert "unchecked" in told[2]
        assert max(map(len, told)) <= 80

    def test_a_missing_key_is_named_for_its_member(self, doctor):
        """One sentence has the member and the variable; the exit status is 2."""
        status, out = doctor('members = ["critic=xai:x", "script:a.toml", "script:b.toml"]',
                             "--offline")  # fmt: skip

        assert "critic needs a key: set XAI_API_KEY" in out
        assert "XAI_API_KEY missing" in out
        assert status == Status.MISUSED

    def test_an_invalid_value_does_not_hide_other_findings(self, doctor):
        """It is a wrong rule."""
        status, out = doctor('members = ["script:a.toml", "script:b.toml"]\nrule = "brda"',
                             "--offline")  # fmt: skip

        assert out.splitlines()[0] == "The council is not ready:"
        assert out.splitlines()[1].endswith("did you mean 'borda'?")
        assert "its script can be read" in out
        assert status == Status.MISUSED

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("quorum = 3", "quorum cannot be 3; expected at most the 2 members"),
            ("enough = 3", "enough cannot be 3; expected at most the 2 members"),
            ('rule = "calibrated"\nspend = "until_decided"', "where counting stops when decided"),
            ('chairman = "script:gone.toml"', "gone.toml"),
        ],
    )
    def test_problems_that_stop_a_question_are_reported(self, doctor, line, said):
        """The council is built as by ``witan ask``."""
        status, out = doctor(f'members = ["script:a.toml", "script:b.toml"]\n{line}', "--offline",
                             "--json")  # fmt: skip

        assert any(said in problem for problem in json.loads(out)["problems"])
        assert status == Status.MISUSED

    def test_problems_that_stop_a_question_have_their_source(self, doctor):
        """A quorum above the members comes from a variable."""
        _, out = doctor('members = ["script:a.toml", "script:b.toml"]', "--offline",
                        WITAN_QUORUM="3")  # fmt: skip

        assert all(fact in out for fact in ("WITAN_QUORUM", "at most the 2 members"))

    def test_an_invalid_file_is_an_error(self, doctor):
        """One sentence ends the command."""
        with pytest.raises(ConfigError, match="is not TOML"):
            doctor("members = ")

    def test_offline_no_provider_is_contacted_without_a_configuration(self, doctor):
        """The output says so."""
        status, out = doctor("", "--offline")

        assert "without --offline" in out
        assert status == Status.MISUSED


def test_the_check_of_a_history_shows_its_progress(tmp_path):
    """A terminal shows how many sessions of the history have been read so far."""
    sessions = [SessionImport(f"s{n}", ballots=(ballot("a: b > c"),)) for n in range(201)]
    with History.open(tmp_path / "history.sqlite") as history:
        history.add(sessions, "f", "d")
        command = ["doctor", "--offline", "--history", str(tmp_path / "history.sqlite")]

        _, shown = run_on_terminal(command, [], kind="xterm")

    assert "checking the history: 200 sessions read" in shown


def test_ctrl_c_ends_the_check_of_a_history(tmp_path):
    """The command ends at once with the status of an interrupt, without its report."""
    sessions = [SessionImport(f"s{n}", ballots=(ballot("a: b > c"),)) for n in range(4_001)]
    with History.open(tmp_path / "history.sqlite") as history:
        history.add(sessions, "f", "d")
    command = ["doctor", "--offline", "--history", str(tmp_path / "history.sqlite")]

    steps = [("sessions read", signal.SIGINT)]
    status, shown = run_on_terminal(command, steps, kind="xterm")

    assert status == 130
    assert "can sit" not in shown


class TestEndpoints:
    """Reachability of each endpoint, and its models."""

    KEY = "sk-proj-4711abcdefghijkl"

    def test_each_endpoint_is_asked_once(self, doctor):
        """Two seats of one server share the request; an unlisted model is reported."""
        with listing("tiny", "large") as server:
            status, out = doctor(
                f'members = ["{server.url}#tiny", "{server.url}#large", "{server.url}#lrge"]',
                "--json",
            )

        found = json.loads(out)
        assert [member["state"] for member in found["members"]] == ["ready", "ready", "unchecked"]
        assert all(
            fact in found["members"][2]["finding"] for fact in ("lrge", "did you mean large?")
        )
        assert server.paths == ["/v1/models"]
        assert (status, found["can_sit"]) == (Status.ANSWERED, True)

    def test_the_key_goes_to_its_endpoint_and_is_never_shown(self, doctor):
        """A provider with another address gets its key; the output names only the variable."""
        with listing("m", "n") as server:
            status, out = doctor(
                f'members = ["openai:m", "openai:n"]\n[providers.openai]\nurl = "{server.url}"',
                OPENAI_API_KEY=self.KEY,
            )

        assert server.headers[0]["authorization"] == f"Bearer {self.KEY}"
        assert "OPENAI_API_KEY present" in out
        assert self.KEY not in out
        assert status == Status.ANSWERED

    @pytest.mark.parametrize(
        ("answers", "finding"),
        [
            ({"status": 404}, "(status 404)"),
            ({"status": 500}, "(status 500)"),
            ({"body": "hello"}, "sent something other than a list of models"),
            ({"body": [1]}, "sent something other than a list of models"),
        ],
    )
    def test_a_server_without_a_list_of_models_is_not_a_problem(self, doctor, answers, finding):
        """Its reply is shown, and its seats are unchecked."""
        with listing(**answers) as server:
            status, out = doctor(f'members = ["{server.url}#a", "{server.url}#b"]', "--json")

        found = json.loads(out)
        assert finding in found["members"][0]["finding"]
        assert found["members"][0]["state"] == "unchecked"
        assert (status, found["problems"]) == (Status.ANSWERED, [])

    @pytest.mark.parametrize("status", [401, 403])
    def test_a_key_that_is_refused_keeps_its_seats_from_sitting(self, doctor, status):
        """With no two members left, the exit status is 2."""
        with listing(status=status) as server:
            left, out = doctor(f'members = ["{server.url}#a", "{server.url}#b"]', "--json")

        found = json.loads(out)
        assert f"rejected the key ({status})" in found["members"][0]["finding"]
        assert "no member can be called" in found["problems"][0]
        assert left == Status.MISUSED

    def test_a_key_that_no_header_can_hold_is_reported_without_it(self, doctor):
        """No request is made."""
        with listing("m", "n") as server:
            status, out = doctor(
                f'members = ["openai:m", "openai:n"]\n[providers.openai]\nurl = "{server.url}"',
                "--json",
                OPENAI_API_KEY="sk-47é11",
            )

        found = json.loads(out)
        assert "invalid characters" in found["members"][0]["finding"]
        assert (status, server.paths) == (Status.MISUSED, [])
        assert "sk-47" not in out

    @pytest.mark.parametrize(
        ("members", "stops"), [("", True), ('["ollama:m", "ollama:n"]', True),
                               ('["script:a.toml", "script:b.toml"]', False)]
    )  # fmt: skip
    def test_an_invalid_address_affects_only_its_seats(self, doctor, members, stops):
        """OLLAMA_HOST is named."""
        config = f"members = {members}" if members else ""
        status, out = doctor(config, "--json", OLLAMA_HOST="ftp://x")

        found = json.loads(out)
        told = [line for line in (*found["problems"], *found["notes"]) if "OLLAMA_HOST" in line]
        assert len(told) >= 1
        assert status == (Status.MISUSED if stops else Status.ANSWERED)

    def test_an_address_has_its_source(self, doctor):
        """It is a variable, a table of the file, a seat or a default."""
        with listing("m", "n") as server:
            config = (
                'members = ["openai:m", "xai:m", {seat = "groq:m", url = "http://127.0.0.1:9/s"}, '
                f'"mistral:m"]\n[providers.xai]\nurl = "{server.url}"\n'
            )
            keys = dict.fromkeys(["OPENAI_API_KEY", "XAI_API_KEY"], self.KEY)
            _, text = doctor(config, OPENAI_BASE_URL=server.url, **keys)
            _, out = doctor(config, "--json", OPENAI_BASE_URL=server.url, **keys)

        seats = [(m["url"], m["url_from"]) for m in json.loads(out)["members"]]
        assert seats[0] == (server.url, "OPENAI_BASE_URL")
        assert seats[1][0] == server.url
        assert seats[1][1].endswith("witan.toml")
        assert seats[2] == ("http://127.0.0.1:9/s", "the seat")
        assert seats[3] == ("https://api.mistral.ai/v1", "default")
        assert f"called at {server.url} (from OPENAI_BASE_URL)" in " ".join(text.split())
        assert server.paths == ["/v1/models"] * 4

    def test_without_a_configuration_models_are_listed_at_configured_addresses(self, doctor):
        """Configured addresses and keys are used."""
        price = {"pricing": {"prompt": "0.000001", "completion": "0.000002"}}
        with listing(*({"id": name, **price} for name in "mno")) as server:
            _, out = doctor(
                f'[providers.openai]\nurl = "{server.url}"\nkey = "TEAM_KEY"',
                "--json",
                TEAM_KEY=self.KEY,
                OPENAI_API_KEY="",
            )

        seats = json.loads(out)["members"]
        assert {(m["provider"], m["variable"]) for m in seats} >= {("openai", "TEAM_KEY")}
        assert set(server.paths) == {"/v1/models"}
        assert {h["authorization"] for h in server.headers} == {f"Bearer {self.KEY}"}

    def test_offline_no_request_is_made(self, doctor):
        """Seats are unchecked."""
        with listing("a", "b") as server:
            _, out = doctor(
                f'members = ["{server.url}#a", "{server.url}#b"]', "--json", "--offline"
            )

        assert [m["state"] for m in json.loads(out)["members"]] == ["unchecked", "unchecked"]
        assert server.paths == []

    def test_a_council_is_not_ready_with_seats_that_cannot_answer(self, doctor):
        """The first line names who can, and who cannot."""
        _, out = doctor('members = ["script:a.toml", "script:b.toml", "cmd:no-such-program-4711"]')

        first = out.splitlines()[0]
        assert first == "The council is ready without no-such-program-4711: a and b."

    def test_a_closed_port_and_a_missing_program_are_reported(self, doctor):
        _, out = doctor('members = ["http://127.0.0.1:9/v1#m", "cmd:no-such-program-4711"]',
                        "--json")  # fmt: skip

        closed, missing = json.loads(out)["members"]
        assert closed["finding"].startswith("cannot be reached at http://127.0.0.1:9/v1/models")
        assert missing["finding"] == "no such program"


def test_json_has_everything(doctor):
    """The object names files, settings, seats, servers and versions; unknown is null."""
    _, out = doctor('members = ["script:a.toml", "script:b.toml"]', "--json", "--offline")

    found = json.loads(out)

    assert found["files"] == ["witan.toml"] or found["files"][0].endswith("/witan.toml")
    assert [setting["key"] for setting in found["settings"]] == ["members", "history.url"]
    assert found["members"][0]["price"] == {"input_usd": 0.0, "output_usd": 0.0}
    assert found["versions"]["python"]
    assert found["servers"] == []


class TestServer:
    """Where the council would be served, and who could ask."""

    SEATS = 'members = ["script:a.toml", "script:b.toml"]\n'

    def test_the_default_server_is_for_this_machine(self, doctor):
        """The output has the address, and that no token is needed."""
        status, out = doctor(self.SEATS, "--offline")

        assert "Server at http://127.0.0.1:8717" in out
        assert "no token is set" in out
        assert status == Status.ANSWERED

    def test_elsewhere_without_a_token_it_would_not_start(self, doctor):
        """The warning says what to set; the council could sit all the same."""
        status, out = doctor(f'{self.SEATS}[serve]\nhost = "0.0.0.0"', "--offline")
        told = " ".join(out.split())

        assert all(fact in told for fact in ("would not start", "can reach 0.0.0.0"))
        assert "set a token in WITAN_TOKEN" in told
        assert status == Status.ANSWERED

    def test_tokens_are_listed_by_their_variables(self, doctor):
        """Missing ones are marked; no token and no digest is shown."""
        digest, token = "5e" * 32, "of-twenty-characters"
        config = (
            f'{self.SEATS}[serve.tokens.ci]\nsha256 = "{digest}"\n'
            '[serve.tokens.team]\nkey = "TEAM_TOKEN"\n[serve.tokens.lost]\nkey = "LOST_TOKEN"\n'
        )

        _, out = doctor(config, "--offline", TEAM_TOKEN=token)
        _, told = doctor(config, "--offline", "--json", TEAM_TOKEN=token)

        assert all(fact in out for fact in ("token ci", "digest"))
        assert "token team: in TEAM_TOKEN" in out
        assert "LOST_TOKEN is not set" in out
        assert not any(secret in out + told for secret in (digest, token))
        held = {token["name"]: token for token in json.loads(told)["serve"]["tokens"]}
        assert (held["team"]["state"], held["lost"]["state"]) == ("present", "unusable")

    def test_every_profile_is_looked_at(self, doctor):
        """Who would sit under it, with the sources of its settings, or what is wrong with it."""
        _, out = doctor(
            f'{self.SEATS}[profiles.fair]\nabout = "By pairs."\nrule = "schulze"\n'
            '[profiles.off]\nrule = "schulz"',
            "--offline",
        )
        lines = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
        told = " ".join(out.split())

        assert lines["profiles.fair.rule"][0] == "schulze"
        assert "Profile fair: By pairs" in told
        assert "Not usable:" in told
        assert all(
            fact in told for fact in ("profiles.off.rule", "'schulz'", "did you mean 'schulze'?")
        )
