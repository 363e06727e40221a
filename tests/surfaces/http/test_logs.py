"""Every line of the server's log can be parsed, and none can be forged."""

import json
import re
import signal
import unicodedata

import httpx2
import pytest

from served import serving_process
from services import write_config

TOKEN = "the-token-of-the-tests"  # noqa: S105 - of these tests alone

QUESTION = {"question": "Is it so?"}

FORGED = (
    "/api/sessions/%1b%5B31m%0a2026-11-22T00:00:00%20request%20status=200%20client=root%E2%80%AE"
)


def write_log(tmp_path, kind, *seen):
    """Log a session, a refused question and requests of several paths."""
    heard = []
    file = write_config(tmp_path, f'[serve]\nlog = "{kind}"')
    with (
        serving_process(
            "--config", file, cwd=tmp_path, environment={"WITAN_TOKEN": TOKEN}, heard=heard
        ) as (url, process),
        httpx2.Client(base_url=url, headers={"X-Api-Key": TOKEN}, timeout=60) as client,
    ):
        answered = client.post("/api/sessions", params={"wait": 20}, json=QUESTION)
        refused = client.post("/api/sessions", json={"question": 5})
        stranger = httpx2.get(f"{url}/api/profiles", timeout=60)
        for path in seen:
            client.get(path)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    return heard, [answered, refused, stranger]


@pytest.fixture(scope="module")
def json_log(tmp_path_factory):
    """The log as JSON, and the replies to the requests."""
    return write_log(tmp_path_factory.mktemp("json"), "json", FORGED)


@pytest.fixture(scope="module")
def text_log(tmp_path_factory):
    """The log as text."""
    folder = tmp_path_factory.mktemp("text")
    return write_log(folder, "text", FORGED, "/api/rules/x=1%20status=200%22")[0]


class TestJson:
    """Each line is a JSON object."""

    def test_every_line_is_an_object_with_a_time(self, json_log):
        lines = [json.loads(line) for line in json_log[0]]

        assert len(lines) > 6
        for line in lines:
            assert {"at", "level", "message"} <= set(line)

    def test_a_request_is_logged_with_its_client_and_status(self, json_log):
        """Under the request id of its reply's header."""
        heard, answers = json_log
        requests = {
            line["request"]: line for line in map(json.loads, heard) if line["message"] == "request"
        }
        told = [requests[answer.headers["witan-request"]] for answer in answers]

        assert [line["status"] for line in told] == [200, 422, 401]
        assert [line["client"] for line in told] == ["default", "default", None]
        assert [line["path"] for line in told] == ["/api/sessions"] * 2 + ["/api/profiles"]
        assert all(line["ms"] > 0 for line in told)

    def test_a_session_is_logged_from_start_to_end(self, json_log):
        """With its cost and its client."""
        lines = [json.loads(line) for line in json_log[0]]
        [opened] = [line for line in lines if line["message"] == "session opened"]
        [closed] = [line for line in lines if line["message"] == "session closed"]

        assert opened["session"] == closed["session"]
        assert (opened["client"], closed["status"], closed["usd"]) == ("default", "complete", 0)

    def test_a_path_cannot_forge_a_line_or_a_field(self, json_log):
        """It is logged unchanged as one value."""
        lines = [json.loads(line) for line in json_log[0]]
        [odd] = [line for line in lines if "\x1b" in str(line.get("path"))]

        assert (odd["client"], odd["status"]) == ("default", 404)
        assert not any("\x1b" in line for line in json_log[0])


@pytest.mark.slow
class TestText:
    """Each line is text for people."""

    def test_a_line_holds_time_and_event_in_order(self, text_log):
        """One line for a request, two for a session."""
        [asked] = [line for line in text_log if "method=POST" in line and "status=200" in line]
        time, what, *fields = asked.split()

        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", time)
        assert what == "request"
        assert [field.partition("=")[0] for field in fields] == [
            "request", "method", "path", "status", "ms", "client"
        ]  # fmt: skip
        assert sum("session opened" in line for line in text_log) == 1

    def test_control_characters_are_escaped(self, text_log):
        """The line end is the only control character written."""
        for line in text_log:
            for char in line.removesuffix("\n"):
                assert unicodedata.category(char) not in ("Cc", "Cf"), repr(line)

    def test_a_path_cannot_forge_a_line_or_a_field(self, text_log):
        """Text that looks like other fields is quoted."""
        odd = [line for line in text_log if "client=root" in line or "x=1" in line]
        outside = [re.sub(r'"(\\.|[^"\\])*"', "", line) for line in odd]
        requests = [line for line in outside if " request " in line]

        assert len(requests) == 2
        assert all("status=404" in line and "client=default" in line for line in requests)
        assert not [line for line in outside if "status=200" in line or "root" in line]
