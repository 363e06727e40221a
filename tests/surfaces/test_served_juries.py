"""A separate jury for a question: over HTTP, by tools and on the page."""

import json

import anyio
import httpx2
import pytest

from markup import parsed
from mcp_clients import over_http
from scripts import write_script
from served import served
from services import councils, write_config

CYD_FIRST = ["Cyd says", "Bob says", "Ada says"]

JURORS = ("xan", "yma", "zoe")

HTML = {"Accept": "text/html"}

QUESTION = {"question": "Is it so?"}


def write_jury(folder):
    """The line of a configuration that seats three jurors, who prefer Cyd's answer."""
    review = [{"prefers": CYD_FIRST}]
    seats = [f"script:{write_script(folder / f'{name}.toml', review=review)}" for name in JURORS]
    return f"jury = {json.dumps(seats)}\n"


@pytest.fixture
def plain(tmp_path, history):
    """A client of a server whose four members review each other."""
    file = write_config(tmp_path)
    dee = write_script(
        tmp_path / "dee.toml", answer=[{"text": "Dee says so."}], review=[{"prefers": CYD_FIRST}]
    )
    file.write_text(file.read_text().replace("members = [", f'members = ["script:{dee}", '))
    with (
        served(councils(file, history)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as opened,
    ):
        yield opened


@pytest.fixture
def server(tmp_path, history):
    """A server whose council has a jury."""
    with served(councils(write_config(tmp_path, write_jury(tmp_path)), history)) as running:
        yield running


@pytest.fixture
def client(server):
    """A client of it."""
    with httpx2.Client(base_url=server.url, timeout=60) as opened:
        yield opened


def finished_record(client, path="/api/sessions", **body):
    """The record of a session once it has ended."""
    body = QUESTION | body if path == "/api/sessions" else body
    response = client.post(path, json=body, params={"wait": 20})
    assert response.status_code < 300, response.text
    name = response.json()["session"]
    return client.get(f"/api/sessions/{name}").json()


def reviewers(record):
    """Who reviewed."""
    return [ballot["reviewer"] for ballot in record["ballots"]]


class TestHTTP:
    """``POST /api/sessions`` and its plan."""

    def test_a_configured_jury_judges(self, client):
        """It is in the profile and in the plan."""
        record = finished_record(client)
        plan = client.post("/api/plan", json=QUESTION).json()
        [profile, _] = client.get("/api/profiles").json()["profiles"]

        assert sorted(record["answers"]) == ["ada", "bob", "cyd"]
        assert reviewers(record) == list(JURORS)
        assert plan["calls"] == 7
        assert [seat["name"] for seat in profile["jury"]] == list(JURORS)

    def test_jurors_are_chosen_among_configured_seats(self, plain):
        """The other members answer; a juror does not."""
        record = finished_record(plain, jury=["bob", "dee"])

        assert sorted(record["answers"]) == ["ada", "cyd"]
        assert reviewers(record) == ["dee", "bob"]
        plan = plain.post("/api/plan", json=QUESTION | {"jury": ["bob", "dee"]}).json()
        assert [line["stage"] for line in plan["lines"]].count("review") == 2

    def test_an_invalid_jury_is_refused(self, plain):
        """The problem has the reason; no call is made."""
        refused = [
            ({"jury": ["bob"]}, "at least two seats, or none"),
            ({"jury": ["bob", "nobody"]}, "unknown seat 'nobody'"),
            ({"jury": ["bob", "dee"], "members": ["bob", "ada"]}, "jurors only review"),
            ({"jury": ["ada", "bob", "cyd"]}, "at least two seats"),
            ({"jury": "bob"}, "jury"),
            ({"options": {"jury": ["bob", "dee"]}}, "options.jury: is not known here"),
            ({"jury": ["bob", "dee"], "options": {"self_review": True}}, "False with a jury"),
        ]
        for body, said in refused:
            response = plain.post("/api/sessions", json=QUESTION | body)

            assert response.status_code in (400, 404, 422)
            assert said in response.text
            plan = plain.post("/api/plan", json=QUESTION | body)
            assert (plan.status_code, said in plan.text) == (response.status_code, True)

    def test_stored_answers_are_judged_by_the_jury(self, client):
        """The configured one, or whom a request names in either field."""
        first = finished_record(client)["session"]
        path = f"/api/sessions/{first}/rejudge"

        assert reviewers(finished_record(client, path)) == list(JURORS)
        assert reviewers(finished_record(client, path, members=["ada", "bob"])) == ["ada", "bob"]
        assert reviewers(finished_record(client, path, jury=["ada", "zoe"])) == ["ada", "zoe"]
        both = client.post(path, json={"members": ["ada", "bob"], "jury": ["xan", "yma"]})
        assert both.status_code in (400, 422)
        assert "none with a jury" in both.text

    def test_a_failed_juror_is_retried(self, tmp_path, history):
        """The session's council is found with its jury."""
        file = write_config(tmp_path, write_jury(tmp_path))
        write_script(tmp_path / "zoe.toml", review=[{"error": "unavailable"}])
        with (
            served(councils(file, history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            first = finished_record(client, options={"attempts": 1})
        write_jury(tmp_path)
        with (
            served(councils(file, history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            again = finished_record(client, f"/api/sessions/{first['session']}/retry", seats=[])

        assert [ballot.get("abstained", False) for ballot in first["ballots"]] == [
            False,
            False,
            True,
        ]
        assert again["events"][0]["retried"] == ["zoe"]
        assert not any(ballot.get("abstained") for ballot in again["ballots"])


class TestTools:
    """The tool `ask` over MCP."""

    def test_a_tool_takes_a_jury(self, server, client):
        """As a request does."""

        async def ask(**arguments):
            async with over_http(server.url) as connected:
                result = await connected.call_tool("ask", QUESTION | arguments)
                return result.structured_content["session"]

        name = anyio.run(lambda: ask(jury=["xan", "zoe"]))

        assert reviewers(client.get(f"/api/sessions/{name}").json()) == ["xan", "zoe"]

    def test_a_tool_refuses_what_a_request_is_refused_for(self, server):
        """The tool's error says that jurors have no answers of their own."""

        async def ask():
            async with over_http(server.url) as connected:
                options = {"self_review": True}
                return await connected.call_tool("ask", QUESTION | {"options": options})

        result = anyio.run(ask)

        assert result.is_error
        assert "expected False with a jury" in result.content[0].text


class TestPage:
    """The form that asks, and the page of the session."""

    def test_the_form_offers_a_jury(self, plain):
        """Every seat can be ticked as a juror; what is ticked judges."""
        page = parsed(plain.get("/", headers={"Accept": "text/html"}).text)
        boxes = page.one("fieldset", id="jury").all("input")
        assert [box.attrs["value"] for box in boxes] == ["dee", "ada", "bob", "cyd"]

        form = {"question": "Is it so?", "jury": ["bob", "dee"]}
        headers = {"Origin": str(plain.base_url).rstrip("/")}
        response = plain.post("/sessions", data=form, headers=headers)
        name = response.headers["location"].rpartition("/")[2]
        with plain.stream("GET", f"/api/sessions/{name}/events") as told:
            "".join(told.iter_text())  # ends with the session
        record = plain.get(f"/api/sessions/{name}").json()
        assert reviewers(record) == ["dee", "bob"]

    def test_the_form_that_judges_offers_a_jury_without_members(self, tmp_path, history):
        """It judges there, as over HTTP; the form that asks says what it lacks."""
        file = tmp_path / "witan.toml"
        file.write_text(write_jury(tmp_path), encoding="utf-8")
        with (
            served(councils(file, history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            pages = [parsed(client.get(path, headers=HTML).text) for path in ("/judge", "/")]
            form = {"text_1": "So.", "profile": ""}
            judged = client.post("/judge", data=form, headers={"Origin": server.url})

        options = [
            option.attrs["value"] for option in pages[0].one("select", id="profile").all("option")
        ]
        assert options == [""]
        assert judged.status_code == 303
        assert "no members to answer" in pages[1].text

    def test_the_form_shows_the_reason_of_a_refusal(self, plain):
        """The values stay filled in."""
        form = {"question": "Is it so?", "jury": ["bob", "dee"], "self_review": "true"}
        headers = {"Origin": str(plain.base_url).rstrip("/")}
        response = plain.post("/sessions", data=form, headers=headers)

        assert response.status_code == 422
        assert "expected False with a jury" in parsed(response.text).text

    def test_the_page_says_who_judged(self, client):
        """By name once names are shown."""
        name = finished_record(client)["session"]
        page = client.get(f"/sessions/{name}?reveal=1", headers={"Accept": "text/html"}).text

        assert "jury: xan, yma and zoe" in parsed(page).text
