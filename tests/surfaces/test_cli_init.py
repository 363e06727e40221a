"""``witan init``, black box: its questions, and the files it writes or keeps."""

import io
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator

import pytest

from model_listing import Listing, listing
from recorded import place_of_its_own
from terminals import run_on_terminal
from witan.core.display import dollars
from witan.models.providers import PROVIDERS

KEY = "sk-very-secret-0123456789"

MODELS = ("gpt-4.1", "gpt-4o", "gpt-4o-mini", "o1-pro", "gpt-4.1-mini", "nobody-knows")


@pytest.fixture(autouse=True)
def gateway(tmp_path, monkeypatch) -> Iterator[Listing]:
    """One key, whose provider lists models at a gateway here; no other server is found."""
    for provider in PROVIDERS.values():
        for variable in (*provider.variables, *provider.url_variables):
            monkeypatch.delenv(variable, raising=False)
        if provider.local:
            monkeypatch.setenv(provider.url_variables[0], "http://127.0.0.1:9/v1")
    place_of_its_own(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with listing(*MODELS) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
def run(witan, monkeypatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command with these lines on its standard input."""

    def command(*arguments: str, answers: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(answers.encode())))
        said = witan(*arguments)
        return subprocess.CompletedProcess(arguments, said.status, said.out, said.err)

    return command


class TestDefaults:
    """``--yes`` takes every default."""

    def test_the_file_passes_doctor_and_has_no_key(self, run, tmp_path):
        """Four priced models of the list, under a ceiling that a question fits."""
        said = run("init", "--yes")

        text = (tmp_path / "witan.toml").read_text(encoding="utf-8")
        written = tomllib.loads(text)
        assert (said.returncode, said.stdout) == (0, "")
        assert written["members"] == [
            "openai:gpt-4.1", "openai:gpt-4o", "openai:gpt-4o-mini", "openai:gpt-4.1-mini",
        ]  # fmt: skip
        assert written["limits"]["max_cost_usd"] > 0
        assert KEY not in text + said.stderr
        checked = run("doctor")
        assert checked.returncode == 0, checked.stdout
        assert "gpt-4.1, gpt-4o, gpt-4o-mini and gpt-4.1-mini" in (" ".join(checked.stdout.split()))
        planned = run("plan", "Which?")
        assert planned.returncode == 0
        assert "refused" not in planned.stdout

    def test_an_existing_file_is_kept(self, run, tmp_path):
        """Only --force overwrites it; otherwise the exit status is 2."""
        (tmp_path / "witan.toml").write_text("# mine\n")

        refused, forced = run("init", "--yes"), None
        left = (tmp_path / "witan.toml").read_text()
        forced = run("init", "--yes", "--force")

        assert (refused.returncode, left) == (2, "# mine\n")
        assert "--force overwrites it" in refused.stderr
        assert forced.returncode == 0
        assert "gpt-4o" in (tmp_path / "witan.toml").read_text()

    def test_members_may_be_named(self, run, tmp_path, gateway):
        """No list is requested then."""
        said = run("init", "--yes", "--member", "openai:gpt-4o", "--member", "openai:o1-pro",
                   "--max-cost", "2", "--output", "own.toml")  # fmt: skip

        assert said.returncode == 0
        written = tomllib.loads((tmp_path / "own.toml").read_text())
        assert written == {
            "members": ["openai:gpt-4o", "openai:o1-pro"], "limits": {"max_cost_usd": 2.0},
        }  # fmt: skip
        assert gateway.paths == []

    def test_without_a_key_it_suggests_how_to_continue(self, run, monkeypatch, tmp_path):
        """It names a key and the option that needs none; nothing is written."""
        monkeypatch.delenv("OPENAI_API_KEY")

        said = run("init", "--yes")

        assert said.returncode == 2
        assert all(fact in said.stderr for fact in ("OPENAI_API_KEY", "--member"))
        assert not (tmp_path / "witan.toml").exists()


class TestAnswers:
    """Without --yes it asks, on a terminal and through a pipe alike."""

    def test_it_asks_for_keys_members_and_ceiling(self, run, tmp_path):
        """Numbers select from the priced list; seats may be typed."""
        said = run("init", answers="openai\n2,1,openai:gpt-4o-mini\n0.75\n")

        written = tomllib.loads((tmp_path / "witan.toml").read_text())
        assert said.returncode == 0, said.stderr
        assert written["members"] == ["openai:gpt-4o", "openai:gpt-4.1", "openai:gpt-4o-mini"]
        assert written["limits"] == {"max_cost_usd": 0.75}
        assert "Keys found: OPENAI_API_KEY" in said.stderr
        assert "   2  openai:gpt-4o  $2.5 / $10" in said.stderr
        assert "1 model above $10 in or $30 out" in said.stderr
        assert "3 members separate answers 5.4 grades apart" in said.stderr
        assert run("doctor").returncode == 0

    @pytest.mark.parametrize(
        ("answers", "told"),
        [
            ("", "the input ended before the last question; use --yes for the defaults"),
            (
                ",\n",
                "no provider was chosen and no model server runs here; choose another provider",
            ),
            ("groq\n", "there is no key for 'groq'; there is one for openai"),
            ("\n9\n", "there is no model 9; expected 1 to 4"),
            ("\n1\n", "a council needs at least two members"),
            ("\nnobody,1\n", "is not a seat: 'nobody' names no provider"),
            ("\n\nmuch\n", "'much' is not an amount of US dollars"),
            ("\n\n", "the input ended before the last question"),
        ],
    )
    def test_an_invalid_answer_writes_nothing(self, run, tmp_path, answers, told):
        """One line names it, and the exit status is 2."""
        said = run("init", answers=answers)

        assert said.returncode == 2
        assert told in said.stderr
        assert "Traceback" not in said.stderr
        assert not list(tmp_path.glob("*witan.toml*"))

    def test_on_a_terminal_an_invalid_answer_is_asked_again(self, tmp_path):
        """The earlier answers stand."""
        steps = [
            ("Which providers?", "groq\n"),
            ("there is no key for 'groq'", "openai\n"),
            ("Which members?", "9\n"),
            ("there is no model 9", "nobody,1\n"),
            ("names no provider", "1,2\n"),
            ("Maximum cost", "much\n"),
            ("'much' is not an amount", "0.75\n"),
        ]
        status, shown = run_on_terminal(["init"], steps, columns=120)

        written = tomllib.loads((tmp_path / "witan.toml").read_text())
        assert status == 0, shown
        assert written["members"] == ["openai:gpt-4.1", "openai:gpt-4o"]
        assert written["limits"] == {"max_cost_usd": 0.75}

    @pytest.mark.skipif(os.name == "nt", reason="Windows sends no signals to a process")
    def test_ctrl_c_writes_nothing(self, tmp_path):
        """The exit status is 130."""
        with subprocess.Popen(
            [sys.executable, "-m", "witan", "init"],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write("\n")
            process.stdin.flush()
            assert any("Models" in line for line in process.stderr)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)

        assert process.returncode == 130
        assert not list(tmp_path.glob("*witan.toml*"))


def test_prices_may_go_to_the_user_s_own_file(run, tmp_path, monkeypatch):
    """Prices of the provider's list only, so that a ceiling applies."""
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    own = {"prompt": "0.000001", "completion": "0.000002"}
    models = [{"id": f"{maker}/unheard-of", "pricing": own} for maker in "abcd"]
    with listing(*models) as server:
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
        said, project = run("init", "--yes", "--user"), run("init", "--yes")
        planned = run("plan", "Which?")

    [file] = (path for path in tmp_path.rglob("witan.toml") if path.parent != tmp_path)
    assert said.returncode == 0, said.stderr
    assert tomllib.loads(file.read_text())["price"]["openrouter:a/unheard-of"] == [1.0, 2.0]
    assert project.returncode == 0
    assert planned.returncode == 0
    assert "unknown" not in planned.stdout


class TestListPrices:
    """Prices that only the provider's list has apply to the configuration as written."""

    @pytest.fixture
    def openrouter(self, monkeypatch) -> Iterator[Listing]:
        """OpenRouter lists four models that no published price list knows; it answers no call."""
        monkeypatch.delenv("OPENAI_API_KEY")
        monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
        pricing = {"prompt": "0.000003", "completion": "0.000012"}
        models = [{"id": f"{maker}/unheard-of", "pricing": pricing} for maker in "abcd"]
        with listing(*models) as server:
            monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
            yield server

    @pytest.mark.usefixtures("openrouter")
    def test_init_plan_doctor_and_ask_agree_on_the_prices(self, run):
        """The plan is the same before and after, and ask calls every member under the ceiling."""
        before = json.loads(run("plan", "Which?", "--json").stdout)
        made = run("init", "--yes")
        after = json.loads(run("plan", "Which?", "--json").stdout)
        checked = json.loads(run("doctor", "--json").stdout)
        asked = run("ask", "Which?", "--attempts", "1")

        assert made.returncode == 0, made.stderr
        assert "--price" not in made.stderr
        assert after["expected_usd"] == before["expected_usd"] is not None
        assert after["max_cost_usd"] >= after["least_usd"]
        assert [seat["price"] for seat in checked["members"]] == [
            {"input_usd": 3.0, "output_usd": 12.0}
        ] * 4
        # The server answers no call; that each was made shows that none was refused for its price.
        assert asked.returncode == 3, asked.stderr
        assert "not called" not in asked.stderr

    @pytest.mark.usefixtures("openrouter")
    def test_the_expected_cost_matches_the_plan(self, run):
        """For a question as long as init assumes."""
        made = run("init", answers="\n\n\n")
        planned = json.loads(run("plan", "x" * 2_000, "--json").stdout)

        expected = dollars(planned["expected_usd"])
        said = f"A question of 2,000 characters is expected to cost {expected}."
        assert said in made.stderr

    def test_jurors_and_chairmen_are_priced_too(self, run, tmp_path, openrouter):
        """One request for the list prices every configured seat."""
        (tmp_path / "witan.toml").write_text(
            'members = ["openrouter:a/unheard-of", "openrouter:b/unheard-of"]\n'
            'jury = ["openrouter:c/unheard-of", "openrouter:d/unheard-of"]\n'
            'chairman = "openrouter:d/unheard-of"\n'
        )

        planned = json.loads(run("plan", "Which?", "--json").stdout)

        assert planned["unpriced"] == []
        assert len(openrouter.paths) == 1

    def test_a_missing_price_stays_unknown(self, run, openrouter):
        """Init names these members, and how to use them under a ceiling."""
        openrouter.body = {"data": [{"id": f"{maker}/unheard-of"} for maker in "abcd"]}
        members = [f"--member=openrouter:{maker}/unheard-of" for maker in "abcd"]

        made = run("init", "--yes", "--max-cost", "1", *members)

        assert made.returncode == 0
        assert "a/unheard-of, b/unheard-of, c/unheard-of" in (made.stderr)
        assert "--price a/unheard-of=IN,OUT" in made.stderr
