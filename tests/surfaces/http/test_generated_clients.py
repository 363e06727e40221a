"""Clients generated from the OpenAPI document are typed and work."""

import os
import re
import subprocess
import sys
from datetime import datetime
from enum import Enum
from importlib import import_module
from pathlib import Path

import attrs
import pytest

from pages import ROOT
from processes import run_program
from served import served
from services import councils, write_config
from witan.history import History
from witan.surfaces.cli.app import main

pytestmark = pytest.mark.slow

DEFAULTS = "--default-non-nullable=false"
"""A field with a default may be left out."""

CONFIGURATION = """\
content_type_overrides:
  application/x-ndjson: application/octet-stream
  text/csv: application/octet-stream
"""

PROGRAM = """\
import type { components, paths } from "./witan";

type Schemas = components["schemas"];
type Answer<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": infer A } } } };
} ? A : never;

async function read<P extends keyof paths>(address: P): Promise<Answer<P>> {
  return (await (await fetch(address)).json()) as Answer<P>;
}

export async function leader(): Promise<string | null> {
  const session = await read("/api/sessions/{session}");
  const standings: Schemas["StandingRecord"][] = session.outcome?.standings ?? [];
  const [first] = standings;
  // @ts-expect-error A rank is a number.
  const rank: string = first.rank;
  return first.interval && first.interval.low > 0 ? first.candidate : rank;
}

export async function models(): Promise<[string, number | null][]> {
  const found = await read("/api/leaderboard");
  // @ts-expect-error A leaderboard has no such field.
  found.winner;
  return found.lines.map((line) => [line.model, line.score]);
}

export function say(event: Schemas["StreamedEvent"]): string {
  switch (event.event) {
    case "answer_done":
      return `${event.seat}: ${event.text}`;
    case "answer_delta":
      return event.text;
    case "outcome_changed":
      return event.outcome.interpretation;
    default:
      // @ts-expect-error Not every event has a text.
      return event.text;
  }
}

export const question: Schemas["AskBody"] = { question: "Is it so?", members: ["ada", "bob"] };
// @ts-expect-error A question is text.
export const wrong: Schemas["AskBody"] = { question: 5 };
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server whose history has the ballots of the examples."""
    folder = tmp_path_factory.mktemp("server")
    history = str(folder / "history.sqlite")
    assert main(["import", str(ROOT / "examples" / "ballots.jsonl"), "--history", history]) == 0
    with (
        History.open(history) as opened,
        served(councils(write_config(folder), opened)) as server,
    ):
        yield server.url


@pytest.fixture(scope="module")
def generated_folder(url, tmp_path_factory):
    """The folder of a Python client, generated without a warning."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "generator.yml").write_text(CONFIGURATION)
    subprocess.run(  # noqa: S603 - this Python, and our own server
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning"),
            *("--url", f"{url}/openapi.json", "--config", folder / "generator.yml"),
            *("--meta", "none", "--output-path", folder / "witan_client"),
        ],
        check=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    return folder


@pytest.fixture
def api(generated_folder, monkeypatch):
    """Import a module of the client."""
    monkeypatch.syspath_prepend(str(generated_folder))
    return lambda name: import_module(f"witan_client.{name}")


@pytest.fixture
def client(api, url):
    """The client of the server."""
    with api("client").AuthenticatedClient(url, "none", timeout=30) as opened:
        yield opened


class TestPython:
    """A client by `openapi-python-client`."""

    def test_every_field_of_a_model_has_a_type(self, generated_folder):
        """Fields of later servers go to the additional properties."""
        fields = [
            f"{model.name}: {line}"
            for model in (generated_folder / "witan_client" / "models").glob("*.py")
            for line in re.findall(r"^    \w+: .*\bAny\b.*$", model.read_text(), re.MULTILINE)
            if "additional_properties" not in line
        ]
        assert fields == []

    def test_a_question_returns_a_session(self, api, client):
        """With its outcome, ballots and events."""
        models = api("models")
        body = models.AskBody(question="Is it so?")
        session = api("api.sessions.ask").sync(client=client, body=body, wait=20)

        assert isinstance(session, models.SessionRecord)
        assert isinstance(session.outcome, models.OutcomeRecord)
        assert [line.candidate for line in session.outcome.standings] == ["ada", "bob", "cyd"]
        assert isinstance(session.events[0], models.SessionOpened)
        assert isinstance(session.events[-1], models.SessionClosed)
        assert untyped_fields(session) == []

        again = api("api.sessions.show").sync(session.session, client=client)
        assert again.to_dict() == session.to_dict()

    def test_a_leaderboard_has_rows(self, api, client):
        """Each with the interval of its score."""
        board = api("api.reports.leaderboard").sync(client=client, min_sessions=1)

        assert isinstance(board, api("models").Leaderboard)
        assert {type(line.interval).__name__ for line in board.lines} == {"Interval"}
        assert untyped_fields(board) == []

    def test_ballots_return_outcomes(self, api, client):
        """Whether sent as objects or as a file."""
        models = api("models")
        ballots = [models.BallotObject(reviewer=name, ranking=["b", "c"]) for name in ("x", "y")]
        counted = api("api.counting.tally").sync(
            client=client, body=models.TallyBody(ballots=ballots, rule="irv")
        )

        [outcome] = counted.sessions
        assert isinstance(outcome, models.OutcomeRecord)
        assert outcome.leaders == ["b"]
        assert untyped_fields(counted) == []

    def test_a_refusal_is_a_problem(self, api, client):
        """With its status and its remedy."""
        found = api("api.sessions.show").sync("nope", client=client)

        assert isinstance(found, api("models").Problem)
        assert (found.status, "unknown session" in found.detail) == (404, True)

    def test_a_completion_names_its_session(self, api, client):
        """In OpenAI's format, with the council's fields beside it."""
        models = api("models")
        body = models.ChatBody(
            model="witan",
            messages=[models.MessageBody(role=models.MessageBodyRole.USER, content="Is it so?")],
        )
        found = api("api.open_ai.complete").sync(client=client, body=body)

        assert isinstance(found.choices[0].message.content, str)
        assert isinstance(found.witan.outcome, models.OutcomeSummary)
        assert untyped_fields(found) == []


def test_a_typescript_program_compiles(url, tmp_path):
    """It reads sessions, leaderboards and events; a wrong use of each is a type error."""
    folder = os.environ.get("TEST_TYPESCRIPT")
    if folder is None:
        pytest.skip("TEST_TYPESCRIPT names no folder with openapi-typescript and typescript")
    programs = Path(folder) / "node_modules" / ".bin"
    (tmp_path / "program.ts").write_text(PROGRAM)
    for command in (
        (programs / "openapi-typescript", f"{url}/openapi.json", "-o", "witan.ts", DEFAULTS),
        (programs / "tsc", "--strict", "--noEmit", "--lib", "es2022,dom", "program.ts"),
    ):
        done = run_program(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


def untyped_fields(value, where=""):
    """Fields of a reply without a type of their own."""
    if isinstance(value, list):
        return [each for held in value for each in untyped_fields(held, where)]
    if not attrs.has(type(value)):
        known = isinstance(value, (bool, int, float, str, datetime, Enum, type(None)))
        return [] if known or type(value).__name__ == "Unset" else [f"{where}: {type(value)}"]
    found = []
    for field in attrs.fields(type(value)):
        held = getattr(value, field.name)
        if field.name != "additional_properties":
            found += untyped_fields(held, f"{where}.{field.name}")
        elif held and "dict[str, Any]" in str(field.type):
            found.append(f"{where}: {sorted(held)}")
    return found
