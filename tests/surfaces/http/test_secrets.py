"""API keys and client tokens never appear in output."""

import json
import signal
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import httpx2
import pytest

from handlers import QuietHandler, run_handler
from served import serving_process
from services import write_config

KEY = "sk-proj-5f0c41d09e2b7a86"
TOKEN = "the-token-of-ada-4711-0815"  # noqa: S105 - of these tests alone
SECRETS = (KEY, TOKEN)

SAYS = "<script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31mred"


class _KeyEcho(QuietHandler, BaseHTTPRequestHandler):
    """A model server that repeats its API key in replies and errors."""

    def do_POST(self) -> None:
        body = self.read_json()
        said = f"Your key is {self.headers['Authorization']}, to be sure."
        if body["model"] == "refuses":
            self.reply(401, {"error": {"message": said, "type": "invalid_request_error"}})
            return
        message = {"role": "assistant", "content": said}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.reply(200, {"id": "1", "object": "chat.completion", "choices": [choice]})


@pytest.fixture(scope="module")
def echo_server() -> Iterator[str]:
    """The address of that server."""
    with run_handler(_KeyEcho) as url:
        yield f"{url}/v1"


@pytest.fixture(scope="module", params=[pytest.param("text", marks=pytest.mark.slow), "json"])
def outputs(request, tmp_path_factory, echo_server):
    """Everything the server writes, by place."""
    folder, heard = tmp_path_factory.mktemp("server"), []
    file = write_config(folder)
    seats = json.loads(file.read_text().splitlines()[0].removeprefix("members = "))
    seats = [json.dumps(seat) for seat in seats]
    for name in ("tells", "refuses"):
        seats.append(f'{{ name = "{name}", seat = "{echo_server}#{name}", key = "THE_KEY" }}')
    file.write_text(
        f'members = [{", ".join(seats)}]\nchairman = "ada"\n[serve]\nlog = "{request.param}"\n'
    )
    environment = {"THE_KEY": KEY, "WITAN_TOKEN": TOKEN}
    with (
        serving_process(
            "--config", file, "--history", folder / "h.sqlite",
            cwd=folder, environment=environment, heard=heard,
        ) as (url, process),
        httpx2.Client(base_url=url, headers={"X-Api-Key": TOKEN}, timeout=60) as ada,
    ):  # fmt: skip
        asked = ada.post("/api/sessions", params={"wait": 60}, json={"question": SAYS})
        session = asked.json()["session"]
        found = {"the record": asked.text}
        for path in (
            "/metrics", "/openapi.json", "/api/profiles", "/api/sessions", "/api/leaderboard",
            "/v1/models", f"/api/sessions/{session}/events", f"/api/sessions/{session}",
            f"/api/sessions/{session}/export.html", "/", f"/sessions/{session}", "/history",
            f"/api/sessions/{TOKEN[:8]}", "/healthz", "/nothing",
        ):  # fmt: skip
            response = ada.get(path)
            found[path] = f"{response.headers}\n{response.text}"
        wrong = {"Authorization": f"Bearer {TOKEN}x"}
        for name, response in {
            "a wrong token": httpx2.get(f"{url}/api/profiles", headers=wrong, timeout=60),
            "a wrong host": ada.get("/api/profiles", headers={"Host": "elsewhere.example"}),
            "a body that is none": ada.post("/api/sessions", json={"question": 5}),
            "a chat": ada.post("/v1/chat/completions", json={"model": "witan", "messages": []}),
        }.items():
            found[name] = f"{response.headers}\n{response.text}"
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        found["the log"] = "".join(heard)
    for path in folder.glob("h.sqlite*"):
        found[path.name] = path.read_bytes().decode("latin-1")
    return found


def test_the_members_did_repeat_the_key(outputs):
    """Otherwise its absence would prove nothing."""
    assert outputs["the record"].count("Your key is ***, to be sure.") >= 2
    assert any("to be sure" in text for where, text in outputs.items() if "h.sqlite" in where)


@pytest.mark.parametrize("secret", SECRETS, ids=["key", "token"])
def test_the_key_is_never_shown(outputs, secret):
    """In replies, errors, metrics, pages, logs or the database, in any encoding."""
    forms = {secret, secret.encode().hex(), secret[4:]}
    for where, text in outputs.items():
        assert not [form for form in forms if form in text], where


def test_questions_are_inert_on_pages_and_absent_from_logs(outputs):
    """Pages contain no script of a question."""
    for where, text in outputs.items():
        if where.startswith("/") and "text/html" in text:
            assert "<script>alert" not in text, where
            assert "<img src=x" not in text, where
    assert "alert(" not in outputs["the log"]
    assert "\x1b" not in outputs["the log"]
