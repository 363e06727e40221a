"""The commands on the page about HTTP run with curl and print what the page shows."""

import json
import shlex
import shutil

import httpx2
import pytest

from pages import ROOT, blocks, same
from processes import run_program
from served import served, serving_process
from services import councils, write_config

PAGE = ROOT / "docs" / "http.md"

ADDRESS = "http://127.0.0.1:8717"

TOKEN = "the-token-of-the-docs"  # noqa: S105 - of the page alone

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a demonstration server with its own history."""
    folder = tmp_path_factory.mktemp("server")
    history = folder / "history.sqlite"
    with serving_process("--fast-demo", "--history", history, cwd=folder) as (url, _):
        yield url


@pytest.fixture(scope="module")
def address_of_thread(tmp_path_factory):
    """The address of a server in a thread of this process."""
    with served(councils(write_config(tmp_path_factory.mktemp("seats")))) as server:
        yield server.url


@pytest.fixture(scope="module")
def token_address(tmp_path_factory):
    """The address of a server that requires a token."""
    folder = tmp_path_factory.mktemp("guarded")
    environment = {"WITAN_TOKEN": TOKEN}
    with serving_process("--no-history", cwd=folder, environment=environment) as (url, _):
        yield url


def curl(command, address):
    """The output of curl."""
    words = shlex.split(command.replace("\\\n", "").replace(ADDRESS, address))
    assert words[0] == "curl"
    done = run_program(*words, cwd=ROOT, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_every_command_prints_the_output_shown(address):
    """Each command builds on those before it."""
    found = blocks(PAGE)
    commands = [place for place, block in enumerate(found) if block.language == "sh"]

    assert len(commands) > 9
    for place in commands:
        printed = curl(found[place].text, address)
        if '"under_way":true' in printed:  # the next one is about it
            [session] = [json.loads(printed)["session"]]
            curl(f"curl -sS {ADDRESS}/api/sessions/{session}/events", address)
        assert same(found[place + 1].text, printed), printed[:2000]


@pytest.mark.slow
class TestToken:
    """A server with a token, as curl meets it."""

    def test_curl_fails_without_a_token(self, token_address):
        """The reply is a problem document with status and remedy."""
        done = run_program("curl", "-sS", "--fail-with-body", f"{token_address}/api/profiles")

        assert done.returncode == 22
        told = json.loads(done.stdout)
        assert (told["status"], "Bearer" in told["detail"]) == (401, True)

    @pytest.mark.parametrize(
        "how", [f"-H 'Authorization: Bearer {TOKEN}'", f"-H 'X-Api-Key: {TOKEN}'"]
    )
    def test_curl_succeeds_with_a_token(self, token_address, how):
        """In either header."""
        told = json.loads(curl(f"curl -sS {ADDRESS}/api/profiles {how}", token_address))

        assert [profile["name"] for profile in told["profiles"]] == ["", "demo"]


def test_every_route_is_documented(address_of_thread):
    """The page, or the reference, names each route of the OpenAPI document."""
    text = "".join(page.read_text("utf-8") for page in (PAGE, PAGE.with_name("reference.md")))
    document = httpx2.get(f"{address_of_thread}/openapi.json", timeout=60).json()

    for path in document["paths"]:
        if path.startswith("/api"):
            plain = path.replace("{session:path}", "{session}")
            assert plain in text or plain.replace("{session}", "NAME") in text, path


def test_every_counter_and_span_is_documented(address_of_thread):
    """The page about serving names each with its meaning."""
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    counted = httpx2.get(f"{address_of_thread}/metrics", timeout=60).text
    names = [line.split()[2] for line in counted.splitlines() if line.startswith("# TYPE")]

    assert len(names) > 9
    for name in names:
        if not name.endswith("_created"):
            assert f"`{name}`" in text, name
