"""Clients see members by name and model, never commands, prompts or locations."""

import json
import signal
import sys
from urllib.parse import urlsplit

import anyio
import httpx2
import psycopg
import pytest

from mcp_clients import over_http
from postgres import database_of
from served import free_port, serving_process
from witan.errors import (
    BallotFileError,
    HistoryConflict,
    InvalidRubric,
    OverBudget,
    UnknownName,
)
from witan.service.redaction import public_error
from witan.surfaces.cli.app import main

SECRET = "hunter2-of-the-command"  # noqa: S105 - of these tests alone

VAULT = "the-vault"
"""A folder, of which no client is to hear."""

PASSWORD = "ravens-0815-at-dusk"  # noqa: S105 - of these tests alone

PROGRAM = """\
import json, re, sys
if "fails" in sys.argv:
    sys.exit(f"{__file__}: no such key as {sys.argv[2]}")
sheet = re.search("Rank all of (.*), best first", sys.stdin.read())
if sheet is None:
    print(f"{sys.argv[1]} says that it is so.")
else:
    print(json.dumps({"ranking": [[label] for label in sheet[1].split(", ")]}))
"""
"""A member that answers and reviews; or, as it is told, fails with words of its own."""

BALLOTS = "".join(
    json.dumps({"session": f"q{n}", "reviewer": reviewer, "ranking": ranking}) + "\n"
    for n in range(12)
    for reviewer, ranking in (("x", ["y", "z"]), ("y", ["z", "x"]), ("z", ["x", "y"]))
)

MEMBER = f"cmd:/srv/{VAULT}/member --key {SECRET}"

SERVED = "http://127.0.0.1:8000/v1#llama-3"

WRITTEN = {
    "witan_imported": 1,
    "session": "w1",
    "question": "Which one?",
    "answers": {MEMBER: "It is this.", SERVED: "It is that.", f"/{VAULT}/q.gguf": "It is not."},
    "ballots": [
        {"reviewer": MEMBER, "ranking": [[SERVED], [f"/{VAULT}/q.gguf"]], "notes": f"by {MEMBER}"},
        {"reviewer": SERVED, "ranking": [[f"/{VAULT}/q.gguf"], [MEMBER]]},
        {"reviewer": "z", "abstained": True, "reason": f"{MEMBER} failed: no such key as {SECRET}"},
    ],
    "models": {"z": f"script:/srv/{VAULT}/zoe.toml"},
}
"""Sessions imported as ballots from where seats are called as they are written."""

QUESTION = {"question": "Is it so?"}

VOTE = {"as": "ines", "ranking": "A > B"}

PROTOCOL = ("profiles", "sessions", "leaderboard", "audit")
"""Tools that tell of what is kept, and by whom."""


def _config(folder, port):
    vault = folder / VAULT
    vault.mkdir()
    (vault / "member.py").write_text(PROGRAM)
    run = f"cmd:{sys.executable} {vault}/member.py"
    seats = [
        f"sage={run} --key {SECRET}",
        f"fool={run} fails {SECRET}",
        f"seer={run} --calm {SECRET}",
        f"muse=http://127.0.0.1:{port}/v1#muse-7b",
    ]
    file = folder / "council.toml"
    *others, seer, muse = map(json.dumps, seats)
    told = f"{{seat = {seer}, system = {json.dumps(f'Side with {SECRET}.')}}}"
    file.write_text(
        f"members = [{', '.join([*others, told, muse])}]\nchairman = {json.dumps('sage')}\n"
        "[limits]\nattempts = 1\n"
        f"[profiles.broken]\nmembers = {json.dumps([f'script:{vault}/none.toml', run])}\n"
    )
    return file


async def _mcp_replies(url, session):
    """Collect what MCP clients receive."""
    async with over_http(url) as client:
        told = {}
        for tool in PROTOCOL:
            told[f"tool {tool}"] = (await client.call_tool(tool, {})).model_dump_json()
        for tool in ("cancel", "result"):
            given = {"session": session, **({"full": True} if tool == "result" else {})}
            told[f"tool {tool}"] = (await client.call_tool(tool, given)).model_dump_json()
        told["tool result of w1"] = (
            await client.call_tool("result", {"session": "w1", "full": True})
        ).model_dump_json()
        told["tool recount"] = (
            await client.call_tool("recount", {"session": "w1", "without": ["llama-3"]})
        ).model_dump_json()
        broken = {"question": "Is it so?", "profile": "broken"}
        told["tool ask"] = (await client.call_tool("ask", broken)).model_dump_json()
        for resource in ("sessions", f"sessions/{session}", "leaderboard", "audit"):
            read = await client.read_resource(f"witan://{resource}")
            told[f"resource {resource}"] = read.model_dump_json()
        return told


def _http_replies(client, session):
    """Collect replies of the native API, the OpenAI protocol and the page."""
    here = f"/api/sessions/{session}"
    told = {
        path: client.get(path, follow_redirects=True)
        for path in (
            "/api/profiles", "/api/sessions", "/api/leaderboard?min_sessions=1", "/api/audit",
            "/api/leaderboard?category=none", "/api/audit?category=none", "/api/audit?reviewer=ann",
            "/v1/models", "/openapi.json", "/healthz", "/metrics", here, f"{here}/events",
            f"{here}/export.html", "/api/sessions/q1", "/api/sessions/2",
            f"{here}/paper?as=ines", "/api/sessions/q1/paper?as=ines",
            "/api/sessions/w1", "/api/sessions/w1/export.html", "/api/sessions/w1/paper?as=ines",
            "/sessions/w1", "/sessions/w1?rule=schulze", "/sessions/w1?without=cmd:member",
            "/sessions/w1?without=nobody",
            "/", "/history", "/leaderboard?show=whole", "/audit?show=whole",
            f"/sessions/{session}", "/sessions/q1",
            f"/sessions/{session}?reveal=true", f"/sessions/{session}/vote?as=ines",
        )
    }  # fmt: skip
    chat = {"messages": [{"role": "user", "content": "Is it so?"}]}
    posted = {
        "/api/sessions": {**QUESTION, "profile": "broken"},
        "/api/plan": QUESTION,
        "/v1/chat/completions": {**chat, "model": "witan"},
        f"{here}/votes": {**VOTE},
        f"{here}/resume": None,
        f"{here}/recount": {"rule": "borda"},
        "/api/sessions/q1/votes": {**VOTE},
        "/api/sessions/q1/rejudge": {},
        "/api/sessions/q1/recount": {},
        "/api/sessions/w1/votes": {"as": "ines", "ranking": "A > B > C"},
        "/api/sessions/w1/recount": {"rule": "weighted_borda", "without": ["cmd:member"]},
    }
    for path, body in posted.items():
        if path.endswith("/votes"):
            shown = client.get(path.replace("/votes", "/paper?as=ines")).json()
            body["paper"] = shown.get("paper")
        told[f"POST {path}"] = client.post(path, json=body)
    told["POST again"] = client.post(f"{here}/votes", json=posted[f"{here}/votes"])
    broken = {**chat, "model": "witan/broken"}
    told["POST broken"] = client.post("/v1/chat/completions", json=broken)
    told["a vote on w1"] = client.get("/sessions/w1/vote?as=ines&cast=1")
    told["a vote"] = client.get(f"/sessions/{session}/vote?as=ines&cast=1")
    return told


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)
def replies(request, tmp_path_factory):
    """All replies to clients by surface, and the server's log."""
    folder = tmp_path_factory.mktemp("server")
    file, heard = _config(folder, free_port()), []
    databases = iter(()) if request.param == "sqlite" else database_of()
    place = str(folder / VAULT / "history.sqlite")
    if request.param == "postgresql":
        place = _password_url(next(databases))
    (folder / VAULT / "ballots.jsonl").write_text(BALLOTS)
    (folder / VAULT / "written.jsonl").write_text(json.dumps(WRITTEN))
    for name in ("ballots", "written"):
        brought = str(folder / VAULT / f"{name}.jsonl")
        assert main(["import", brought, "--history", place]) == 0
    with (
        serving_process("--config", file, "--history", place, cwd=folder, heard=heard) as served,
        httpx2.Client(base_url=served[0], timeout=60) as client,
    ):
        url, process = served
        asked = client.post("/api/sessions", params={"wait": 60}, json=QUESTION)
        answers = {"asked": asked, **_http_replies(client, asked.json()["session"])}
        texts = {where: f"{r.headers}\n{r.text}" for where, r in answers.items()}
        texts |= anyio.run(_mcp_replies, url, asked.json()["session"])
        for _ in databases:  # it is dropped, with whoever is connected to it
            pass
        if request.param == "postgresql":
            answers["away"] = client.get("/api/sessions")
            texts["away"] = answers["away"].text
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    return answers, texts, "".join(heard), place


def _password_url(url):
    """The same database with a password in its address."""
    parts = urlsplit(url)
    with psycopg.connect(url, autocommit=True) as connection:
        name = f"keeper_{parts.path.lstrip('/')}"
        connection.execute(f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{PASSWORD}'".encode())
    return f"postgresql://{name}:{PASSWORD}@{parts.hostname}:{parts.port}{parts.path}"


class TestClients:
    """What clients receive on every surface."""

    @pytest.mark.parametrize("private", [SECRET, VAULT, "history.sqlite", "http://127", "keeper_"])
    def test_paths_commands_and_addresses_are_hidden(self, replies, private):
        """Neither records nor errors contain them, on any protocol."""
        _, texts, _, _ = replies
        for where, text in texts.items():
            assert private not in text, f"{where}: {text[max(0, text.find(private) - 200) :][:400]}"

    def test_seat_instructions_are_hidden(self, replies):
        """Clients see that a seat has instructions; their text stays in the history."""
        answers, _, _, _ = replies
        [opened, *_] = answers["asked"].json()["events"]

        assert [seat["options"]["system"] for seat in opened["seats"]] == [None, None, "…", None]

    def test_names_and_models_are_shown(self, replies):
        """They attribute every text and tell seats of one program apart."""
        answers, _, _, _ = replies
        [council, *_] = answers["/api/profiles"].json()["profiles"]
        seats = {seat["name"]: seat["source"] for seat in council["seats"]}

        assert [*seats] == ["sage", "fool", "seer", "muse"]
        assert seats["muse"] == "muse-7b"
        assert len({*seats.values()}) == 4
        assert seats["sage"].startswith("cmd:python")

    def test_failures_are_shown_in_the_words_of_the_provider(self, replies):
        """Unless those words reveal something about the server."""
        answers, _, _, _ = replies
        record = answers["asked"].json()

        assert "exited with status 1" in record["unanswered"]["fool"]
        assert "…" in record["unanswered"]["fool"]
        assert "--key says" in record["answers"]["sage"]

    def test_leaderboard_and_audit_accept_the_names_shown(self, replies):
        """A model is found by the name that clients see."""
        answers, _, _, _ = replies
        board = answers["/api/leaderboard?min_sessions=1"].json()

        models = {line["model"] for line in (*board["lines"], *board["provisional"])}

        assert {"x", "y", "z"} < models
        assert len([model for model in models if model.startswith("cmd:python~")]) == 3

    def test_ballot_files_use_the_same_names(self, replies):
        """After a recount, on a counted page and after a vote."""
        answers, texts, _, _ = replies
        record = answers["/api/sessions/w1"].json()
        recount = answers["POST /api/sessions/w1/recount"].json()["sessions"][0]
        revealed = answers["POST /api/sessions/w1/votes"].json()

        assert {*record["answers"]} == {"cmd:member", "llama-3", "q.gguf"}
        cast = {ballot["reviewer"]: ballot for ballot in record["ballots"]}
        assert [*cast] == ["cmd:member", "llama-3", "z"]
        assert all(fact in cast["z"]["reason"] for fact in ("cmd:member failed", "…"))
        assert {line["candidate"] for line in recount["standings"]} == {"cmd:member", "q.gguf"}
        assert recount["n_ballots"] == 1
        assert {line["candidate"] for line in revealed["answers"]} == {*record["answers"]}
        assert all(line["panel_rank"] for line in revealed["answers"])
        assert "Without cmd:member" in texts["/sessions/w1?without=cmd:member"]
        assert answers["/sessions/w1?without=nobody"].status_code == 422

    def test_errors_do_not_begin_with_a_location(self, replies):
        """No message starts with the history's address or the program's name."""
        answers, _, _, _ = replies
        details = [
            response.json()["detail"]
            for response in answers.values()
            if "problem" in response.headers["content-type"]
        ]

        assert len(details) > 8
        for detail in details:
            assert detail[0] not in "/:…", detail
            assert not detail.startswith(("the server:", "postgresql")), detail


class TestOperator:
    """The operator reads everything in the log."""

    def test_log_names_the_missing_file_of_a_council(self, replies):
        """It says why a council cannot be seated."""
        answers, _, log, _ = replies

        assert f"{VAULT}/none.toml" in log
        assert answers["POST /api/sessions"].status_code == 503
        assert "profile broken" in answers["POST /api/sessions"].text

    def test_log_names_the_location_of_the_history(self, replies):
        """By path, or by address without the password."""
        _, _, log, place = replies
        assert (place if place.startswith("/") else urlsplit(place).path) in log

    def test_password_is_never_shown(self, replies):
        """No log, reply or error contains it, even when the database is down."""
        answers, texts, log, place = replies

        assert PASSWORD not in log
        assert not [where for where, text in texts.items() if PASSWORD in text]
        if "away" in answers:
            assert answers["away"].status_code == 503
            assert answers["away"].json()["detail"].startswith("the history: ")
            assert urlsplit(place).path.lstrip("/") in log


@pytest.mark.parametrize(
    "error",
    [
        BallotFileError("/srv/council/votes.csv", "cannot be read"),
        InvalidRubric("/srv/council/rubric.toml", "has no criterion"),
        UnknownName("rubric", "x", ["/srv/council/own.toml"]),
        OverBudget("ada", "has no price in /srv/council/council.toml"),
        HistoryConflict("the server", "the session is in /srv/council/history.sqlite", "wait"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_never_contain_a_path_of_the_server(error):
    """Every type of error is redacted, including future ones."""
    assert "/srv" in str(error)
    assert "/srv" not in public_error(error)
