"""What a server writes down: every line can be read, and none can be forged."""

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


def written(tmp_path, kind, *seen):
    """What is logged of a session, of a question that is refused, and of paths that were asked."""
    heard = []
    file = write_config(tmp_path, f'[serve]\nlog = "{kind}"')
    with (
        serving_process(
            "--config", file, cwd=tmp_path, environment={"WITAN_TOKEN": TOKEN}, heard=heard
        ) as (url, process),
        httpx2.Client(base_url=url, headers={"X-Api-Key": TOKEN}, timeout=30) as client,
    ):
        answered = client.post("/api/sessions", params={"wait": 20}, json=QUESTION)
        refused = client.post("/api/sessions", json={"question": 5})
        stranger = httpx2.get(f"{url}/api/profiles")
        for path in seen:
            client.get(path)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    return heard, [answered, refused, stranger]


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The lines of JSON, and the answers to what was asked."""
    return written(tmp_path_factory.mktemp("json"), "json", FORGED)


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """The lines of text."""
    folder = tmp_path_factory.mktemp("text")
    return written(folder, "text", FORGED, "/api/rules/x=1%20status=200%22")[0]


class TestJson:
    """A line is an object, whatever happens."""

    def test_every_line_is_an_object_with_a_time(self, logged):
        """From the first to the last."""
        lines = [json.loads(line) for line in logged[0]]

        assert len(lines) > 6
        for line in lines:
            assert {"at", "level", "message"} <= set(line)

    def test_a_request_is_told_with_who_asked_and_what_came_of_it(self, logged):
        """Under the name that its answer has in a header."""
        heard, answers = logged
        requests = {
            line["request"]: line for line in map(json.loads, heard) if line["message"] == "request"
        }
        told = [requests[answer.headers["witan-request"]] for answer in answers]

        assert [line["status"] for line in told] == [200, 422, 401]
        assert [line["client"] for line in told] == ["default", "default", None]
        assert [line["path"] for line in told] == ["/api/sessions"] * 2 + ["/api/profiles"]
        assert all(line["ms"] > 0 for line in told)

    def test_a_session_is_told_from_its_opening_to_its_close(self, logged):
        """With what it cost, and who asked."""
        lines = [json.loads(line) for line in logged[0]]
        [opened] = [line for line in lines if line["message"] == "session opened"]
        [closed] = [line for line in lines if line["message"] == "session closed"]

        assert opened["session"] == closed["session"]
        assert (opened["client"], closed["status"], closed["usd"]) == ("default", "complete", 0)

    def test_a_path_cannot_pass_for_a_line_or_for_a_field(self, logged):
        """It stays what it is."""
        lines = [json.loads(line) for line in logged[0]]
        [odd] = [line for line in lines if "\x1b" in str(line.get("path"))]

        assert (odd["client"], odd["status"]) == ("default", 404)
        assert not any("\x1b" in line for line in logged[0])


@pytest.mark.slow
class TestText:
    """A line is for people, and for nobody's tricks."""

    def test_a_line_says_when_and_what_in_order(self, heard):
        """A request in one line, a session in two."""
        [asked] = [line for line in heard if "method=POST" in line and "status=200" in line]
        time, what, *fields = asked.split()

        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", time)
        assert what == "request"
        assert [field.partition("=")[0] for field in fields] == [
            "request", "method", "path", "status", "ms", "client"
        ]  # fmt: skip
        assert sum("session opened" in line for line in heard) == 1

    def test_nothing_moves_a_cursor_or_turns_text_round(self, heard):
        """No control character is written but the end of the line."""
        for line in heard:
            for char in line.removesuffix("\n"):
                assert unicodedata.category(char) not in ("Cc", "Cf"), repr(line)

    def test_a_path_cannot_pass_for_a_line_or_for_a_field(self, heard):
        """What could be taken for other fields stands in quotes."""
        odd = [line for line in heard if "client=root" in line or "x=1" in line]
        outside = [re.sub(r'"(\\.|[^"\\])*"', "", line) for line in odd]
        requests = [line for line in outside if " request " in line]

        assert len(requests) == 2
        assert all("status=404" in line and "client=default" in line for line in requests)
        assert not [line for line in outside if "status=200" in line or "root" in line]
