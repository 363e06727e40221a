"""Texts before the jury of a server: over HTTP, by MCP, on the page, and with a plan."""

import httpx2
import pytest

from markup import parsed
from mcp_clients import over_http, text_of
from served import served
from services import councils, write_config
from witan.history import History

CRITERIA = ("accuracy", "relevance", "completeness", "conciseness", "clarity")

GRADES = {word: dict.fromkeys(CRITERIA, grade) for word, grade in {"moraine": 9, "ice": 3}.items()}

TEXTS = {"texts": {"a": "It is the moraine."}, "pass_mark": 6}


@pytest.fixture(scope="module")
def anyio_backend():
    """The event loop of the client."""
    return "asyncio"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of three scripts, who like moraines."""
    file = write_config(tmp_path_factory.mktemp("jury"), review=[{"grades": GRADES}])
    with served(councils(file)) as server:
        yield server


@pytest.fixture
def client(server):
    """A client of it."""
    with httpx2.Client(base_url=server.url, timeout=60, follow_redirects=True) as opened:
        yield opened


class TestHttp:
    """``POST /api/judge`` starts a session whose record has the verdict."""

    def test_the_record_has_the_verdict(self, client):
        """Where it ends within the wait, at once."""
        reply = client.post("/api/judge", params={"wait": 20}, json=TEXTS)
        verdict = reply.json()["verdict"]

        assert reply.status_code == 200
        assert (verdict["decision"], verdict["text"]) == ("passed", "a")
        assert verdict["texts"][0]["overall"]["mean"] == 9

    def test_a_plan_makes_no_call(self, client):
        """It has one review for each reviewer."""
        reply = client.post("/api/judge/plan", json=TEXTS)

        assert reply.json()["calls"] == 3

    @pytest.mark.parametrize(
        ("more", "where"),
        [
            ({"texts": {}}, "texts"),
            ({"pass_mark": 11}, "pass_mark"),
            ({"members": ["ada"]}, "members"),
            ({"options": {"mode": "best"}}, "options.mode"),
        ],
    )
    def test_what_is_wrong_is_named(self, client, more, where):
        """By its field; who judges has neither members nor a final answer."""
        reply = client.post("/api/judge", json=TEXTS | more)

        assert reply.status_code == 422
        assert [fault["where"] for fault in reply.json()["faults"]] == [where]

    def test_an_unknown_text_is_named(self, client):
        """With those that there are."""
        reply = client.post("/api/judge", json={**TEXTS, "expected": "b"})

        assert reply.status_code in (404, 422)
        assert "'b'" in reply.json()["detail"]


class TestPage:
    """A form takes texts, and the page of the session begins with the verdict."""

    def test_without_a_jury_there_is_no_form(self, tmp_path):
        """The page says so before anything is typed, and where the reason is."""
        file = tmp_path / "council.toml"
        file.write_text('members = ["script:lost.toml", "script:gone.toml"]', encoding="utf-8")
        with served(councils(file)) as lost:
            page = parsed(httpx2.get(f"{lost.url}/judge", timeout=60).text)

        assert not page.all("form", action="/judge")
        assert page.one("p", class_="first-up").text.startswith("No council is ready to judge")

    def test_texts_are_judged(self, client):
        """Empty fields are no texts."""
        form = {"text_1": "the moraine", "text_2": "the ice", "text_3": "", "question": "What?"}
        started = client.post("/judge", data=form)
        session = str(started.url).rsplit("/", 1)[1]
        client.get(f"/api/sessions/{session}/result", params={"wait": 20})
        text = client.get(f"/sessions/{session}").text

        assert "<strong>Passed.</strong> text 1 leads clearly" in text
        assert text.index("Passed.") < text.index("the moraine")

    def test_the_form_is_shown_again_with_what_is_wrong(self, client):
        """And with what was filled in."""
        reply = client.post("/judge", data={"text_1": "the moraine", "pass_mark": "high"})
        page = parsed(reply.text)

        assert reply.status_code == 422
        assert "the moraine" in reply.text
        assert page.one("input", id="pass_mark").attrs["aria-invalid"] == "true"
        assert page.one("a", href="#pass_mark").text == "Lowest passing grade"
        assert page.one(id="about-pass_mark").text.startswith("Must be a number")

    def test_one_text_shows_grades_in_place_of_ranks(self, client):
        """A rank among one says nothing; the form is filled in to judge again."""
        started = client.post("/judge", data={"text_1": "the moraine", "pass_mark": "6"})
        session = str(started.url).rsplit("/", 1)[1]
        client.get(f"/api/sessions/{session}/result", params={"wait": 20})
        main = parsed(client.get(f"/sessions/{session}").text).one("main")

        assert main.one("h1").text == "How good is this text?"
        assert {cell.one("b").text for cell in main.all("button", class_="cell")} == {"9.0"}
        assert "rank" not in main.one("article", class_="answer").text
        form = parsed(client.get(f"/judge?again={session}").text)
        assert form.one("textarea", id="text_1").text == "the moraine"
        assert form.one("input", id="pass_mark").attrs["value"] == "6"

    def test_a_plan_is_above_the_form(self, client):
        """The texts stay filled in."""
        reply = client.post("/judge/plan", data={"text_1": "the moraine"})

        assert "What a judgment would cost" in reply.text
        assert "the moraine" in reply.text


@pytest.mark.anyio
async def test_a_list_of_sessions_has_their_verdicts(tmp_path):
    """From the history: over HTTP, on the page, by MCP; a text without a pass mark has none."""
    file = write_config(tmp_path, review=[{"grades": GRADES}])
    with (
        History.open(tmp_path / "history.sqlite") as history,
        served(councils(file, history)) as server,
    ):
        async with httpx2.AsyncClient(base_url=server.url, timeout=60) as client:
            for asked in (
                {"texts": {"a": "The ice."}, "pass_mark": 8},
                {"texts": {"a": "The ice."}},
                {"texts": {"a": "The ice.", "b": "The moraine."}},
            ):
                await client.post("/api/judge", params={"wait": 20}, json=asked)
            listed = (await client.get("/api/sessions?simulated=true")).json()["sessions"]
            page = parsed((await client.get("/history?simulated=true")).text)
        async with over_http(server.url) as tools:
            told = await tools.call_tool("sessions", {"simulated": True})

    assert [each["decision"] for each in listed] == ["passed", None, "failed"]
    outcomes = [each.text for each in page.all("p", class_="outcome")]
    assert outcomes == ["Passed: the leader is >99% likely to be best", "Failed"]
    assert [x["decision"] for x in told.structured_content["sessions"]] == [
        "passed",
        None,
        "failed",
    ]


@pytest.mark.anyio
async def test_a_tool_judges_texts(server):
    """Its text begins with the decision, its result has the session."""
    async with over_http(server.url) as client:
        result = await client.call_tool("judge", TEXTS)
        plan = await client.call_tool("judge", {**TEXTS, "plan": True})

    assert not result.is_error, text_of(result)
    assert "passed: 9.0" in text_of(result)
    assert result.structured_content["text"].startswith("passed: 9.0")
    assert plan.structured_content["worst_usd"] == 0
