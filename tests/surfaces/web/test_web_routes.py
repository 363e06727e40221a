"""The pages over real HTTP: forms and their results."""

import gzip
import re
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from urllib.parse import quote

import httpx2
import pytest

import witan
from desks import desk, write_desk
from histories import session_events
from markup import Element, parsed
from served import served
from services import councils, write_config
from stored_ballots import NOW, ballot, jury, sessions, store_sessions
from witan.core.ballot import Ballot
from witan.deliberation.session import Session
from witan.history import History, SessionImport
from witan.history.ballots import prepare_paper
from witan.models.scripted import SEED, demonstration
from witan.service.config.serve import ServeSettings, TokenSettings
from witan.service.operations.ask import QuestionRequest
from witan.surfaces.http.door import COOKIE
from witan.surfaces.report import report_of, report_to_html

HTML = {"Accept": "text/html,application/xhtml+xml"}

ADA = "ada-has-a-long-token"

QUESTION = {"question": "Is it so?"}


@pytest.fixture(scope="module")
def browser(at_desk):
    """A client that acts like a browser and follows redirects."""
    with httpx2.Client(
        base_url=at_desk.url, headers=HTML, timeout=60, follow_redirects=True
    ) as opened:
        yield opened


@pytest.fixture
def unsaved(tmp_path):
    """A server without a history."""
    with (
        served(councils(write_desk(tmp_path))) as server,
        httpx2.Client(base_url=server.url, headers=HTML, timeout=60) as opened,
    ):
        yield opened


def page(response: httpx2.Response, status: int = 200) -> Element:
    """The returned page, checked for the policy of every page."""
    assert response.status_code == status, response.text[:400]
    assert "default-src 'self'" in response.headers["content-security-policy"]
    assert "unsafe" not in response.headers["content-security-policy"]
    return parsed(response.text)


def report(client: httpx2.Client, path: str, status: int = 200) -> Element:
    """A report loaded separately, as by a browser without scripts."""
    waiting = page(client.get(path))
    assert waiting.one(id="report").text == "Counting …"
    [on] = waiting.one("noscript").all("meta")
    return page(client.get(on.attrs["content"].removeprefix("0; url=")), status)


def submit(client: httpx2.Client, path: str = "/sessions", **fields: str) -> str:
    """Send a form; return the path of the page that follows."""
    response = client.post(path, data=fields, follow_redirects=False)
    assert response.status_code == 303, response.text[:400]
    where: str = response.headers["location"]
    return where


def ask_and_wait(client: httpx2.Client, **fields: str) -> str:
    """Ask, wait for the end of the session, and return its name."""
    session = submit(client, **{**QUESTION, **fields}).rpartition("/")[2]
    client.get(f"/api/sessions/{session}/events")
    return session


def forms(root: Element) -> list[str]:
    """Targets of the forms of a page."""
    return [form.attrs["action"] for form in root.all("form")]


class TestAsking:
    """The form for a question."""

    def test_a_question_becomes_a_session_with_a_page(self, browser):
        """The form redirects to it."""
        session = ask_and_wait(browser)

        root = page(browser.get(f"/sessions/{session}"))
        assert root.one("h1").text == "Is it so?"
        assert root.all("figure", class_="chart")

    def test_a_plan_shows_the_cost_without_a_call(self, browser, at_desk):
        """The form keeps its values."""
        before = len(at_desk.history.find(simulated=None, limit=1000))
        given = {**QUESTION, "mode": "best"}
        root = page(browser.post("/plan", data=given))
        plan = browser.post("/api/plan", json={**QUESTION, "options": {"mode": "best"}}).json()

        [said] = root.all("section", role="status")
        assert f"{plan['calls']} calls if nothing fails" in said.text
        assert "; $0 at worst" in said.text
        assert root.one("textarea", id="question").text == QUESTION["question"]
        assert len(at_desk.history.find(simulated=None, limit=1000)) == before
        refused = page(browser.post("/plan", data={"question": " "}), 422)
        assert "something to ask" in refused.one(id="about-question").text

    def test_category_mode_and_files_are_sent(self, browser, at_desk):
        """The record has them."""
        files = [("files", ("a.txt", b"\xef\xbb\xbfOne.", "text/plain"))]
        data = {**QUESTION, "category": "law", "mode": "best"}
        response = browser.post("/sessions", data=data, files=files, follow_redirects=False)
        session = response.headers["location"].rpartition("/")[2]
        browser.get(f"/api/sessions/{session}/events")

        opened = at_desk.history.session(session).opening
        assert (opened.category, dict(opened.files)) == ("law", {"a.txt": "One."})
        assert opened.procedure.mode == "best"

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"question": "  "}, "something to ask"),
            ({"question": "So?", "profile": "nobody"}, "unknown profile"),
            ({"question": "So?", "mode": "loud"}, "consensus"),
            ({"question": "So?", "parent": "nothing"}, "unknown session"),
        ],
        ids=["nothing", "profile", "mode", "parent"],
    )
    def test_a_refused_question_stays_in_the_form(self, browser, fields, said):
        """With the error at its field alone; no text is lost."""
        response = browser.post("/sessions", data=fields)

        assert 400 <= response.status_code < 500
        root = parsed(response.text)
        assert said.lower() in root.one("span", class_="note").text.lower()
        assert said.lower() not in root.one(role="alert").text.lower()
        assert root.one("textarea", id="question").text == fields["question"].strip()

    def test_a_fault_without_a_field_is_said_above_the_form(self, browser):
        """Whatever the form has fields for; a text's fault stands at its own field."""
        files = page(browser.post("/judge", data={"text_1": "It is.", "files": "x"}), 422)
        long = {"text_1": "It is.", "text_2": "x" * 2_000_001}
        second = page(browser.post("/judge", data=long), 422)

        assert "files cannot be 'x'" in files.one(role="alert").text
        assert "Check" not in files.one(role="alert").text
        assert second.one("a", href="#text_2").text == "Text 2"
        assert "2,000,000 characters" in second.one(id="about-text_2").text

    def test_text_that_cannot_be_stored_is_refused(self, browser):
        """A character that no database holds."""
        root = page(browser.post("/sessions", data={"question": "So\0?"}), 422)

        assert "NUL" in root.one(role="alert").text

    def test_a_binary_file_is_refused(self, browser):
        """The error names it, and the files to select again, as a page cannot keep them."""
        files = [("files", ("a.png", b"\x89PNG\xff", "image/png"))]
        root = page(browser.post("/sessions", data=QUESTION, files=files), 422)

        assert "a.png" in root.one(role="alert").text
        files = [("files", ("a.txt", b"One.", "text/plain"))]
        given = {**QUESTION, "quorum": "none"}
        root = page(browser.post("/sessions", data=given, files=files), 422)
        assert root.one(id="about-files").text == "Choose them again: a.txt."

    def test_the_demonstration_is_deterministic(self, browser, at_desk):
        """Its question has a fixed seed, with any line ends."""
        shown = demonstration(fast=True).question.replace("\n", "\r\n")
        session = ask_and_wait(browser, question=shown, profile="demo")

        assert at_desk.history.session(session).opening.seed == SEED

    def test_options_of_the_form_apply_to_the_session(self, browser, at_desk):
        """As in the same request over HTTP; an earlier conversation may be entered."""
        given = {
            "members": ["ada", "bob"], "chairman": "bob", "seed": "7", "max_cost_usd": "0.5",
            "rule": "schulze", "weights": "ada=2\nbob=1", "mirrored": "true", "rho": "none",
            "debate_rounds": "1", "conversation": "user: Is it?\nassistant: It is.\nSo it is.",
        }  # fmt: skip
        opened = at_desk.history.session(ask_and_wait(browser, **given)).opening

        counting, limits = opened.procedure.counting, opened.procedure.limits
        assert [seat.name for seat in opened.seats] == ["ada", "bob"]
        assert [seat.name for seat in opened.chairmen] == ["bob"]
        assert (opened.seed, limits.max_cost_usd, counting.rule) == (7, 0.5, "schulze")
        assert (counting.weights, counting.rho) == ({"ada": 2.0, "bob": 1.0}, None)
        assert (opened.procedure.mirrored, opened.procedure.debate_rounds) == (True, 1)
        said = [(turn.role, turn.text) for turn in opened.conversation]
        assert said == [("user", "Is it?"), ("assistant", "It is.\nSo it is.")]

    @pytest.mark.parametrize(
        ("field", "text", "said"),
        [
            ("max_cost_usd", "abc", "ust be a number"),
            ("max_cost_usd", "2000000", "at most 1,000,000"),
            ("quorum", "1.5", "a whole number"),
            ("quorum", "0", "at least 1"),
            ("seed", "-1", "at least 0"),
            ("weights", "ada", "REVIEWER=NUMBER"),
            ("weights", "ada=-1", "at least 0"),
            ("rubric_weights", "nonsense=2", "nonsense"),
            ("level", "2", "less than 1"),
            ("mirrored", "perhaps", "true or false"),
            ("chairman", "dan", "Unknown seat"),
            ("members", "ada", "at least two"),
            ("conversation", "So.", "user:"),
            ("parent", "nothing", "Unknown session"),
        ],
    )
    def test_an_invalid_option_is_marked(self, browser, field, text, said):
        """It is opened with its error, and all values are kept."""
        given = {**QUESTION, "stage_seconds": "77", field: text}
        for path in ("/plan", "/sessions"):
            response = browser.post(path, data=given)
            root = parsed(response.text)
            [wrong] = [x for x in root.all(id=field) if x.attrs.get("aria-invalid") == "true"]
            told = root.one(id=wrong.attrs["aria-describedby"]).text

            assert 400 <= response.status_code < 500
            assert said in told
            assert root.one("a", href=f"#{field}")
            assert root.one("input", id="stage_seconds").attrs["value"] == "77"
            assert root.one("textarea", id="question").text == QUESTION["question"]
            behind = [x for d in root.all("details") for x in d.all(id=field)]
            opened = [d.all(id=field) for d in root.all("details", open="")]
            assert not behind or opened[-2:] == [[wrong], [wrong]]

    def test_a_session_can_be_followed_up(self, browser, at_desk):
        """Its page links to the form; the new session knows the conversation."""
        first = ask_and_wait(browser)
        root = page(browser.get("/", params={"parent": first, "profile": "demo"}))
        parent = root.one("input", name="parent").attrs["value"]
        second = ask_and_wait(browser, question="And then?", parent=parent)

        assert at_desk.history.session(second).opening.conversation[0].text == "Is it so?"

    def test_without_a_council_the_page_says_what_to_do(self, tmp_path):
        """The only form is that of the demonstration."""
        file = tmp_path / "council.toml"
        file.write_text('members = ["openai:a", "openai:b"]\n', encoding="utf-8")
        with served(councils(file)) as server:
            root = page(httpx2.get(server.url, headers=HTML, timeout=60))

        assert "OPENAI_API_KEY" in root.one("main").text
        assert not root.all("textarea")
        assert root.one("button").text == "Watch the demonstration"


def switches(root):
    """Reviewers whose ballots the form for a recount leaves out."""
    return [box.attrs["value"] for box in root.one(id="recount").all("input", type="checkbox")]


class TestSession:
    """The page of one session."""

    def test_a_session_is_found_by_a_prefix_of_its_name(self, browser):
        """And `last` is the latest."""
        session = ask_and_wait(browser)

        assert session in browser.get("/sessions/last").text

    def test_a_recount_stands_beside_the_original(self, browser):
        """By another rule and without a reviewer, who stays anonymous."""
        session = ask_and_wait(browser)
        root = page(browser.get(f"/sessions/{session}", params={"rule": "schulze"}))
        assert "counted again by schulze" in root.one("p", class_="recounted").text

        box = root.one(id="recount").all("input", type="checkbox")[0].attrs
        without = page(browser.get(f"/sessions/{session}", params={box["name"]: box["value"]}))
        assert "without" in without.one("p", class_="recounted").text

    def test_an_address_weighs_ballots(self, browser):
        """As `recount` does; a weight that the session has is no recount."""
        session = ask_and_wait(browser)
        address = f"/sessions/{session}"
        plain = page(browser.get(address, params={"reveal": "1"}))
        weighed = page(
            browser.get(address, params={"reveal": "1", "reviewer": "bob", "weight": "3"})
        )
        counted = browser.post(f"/api/sessions/{session}/recount", json={"weights": {"bob": 3}})
        same = page(
            browser.get(address, params={"reveal": "1", "reviewer": "bob", "weight": "1.0"})
        )

        both = browser.get(f"{address}?reveal=1&reviewer=bob&weight=2&reviewer=cyd&weight=3")

        assert "weighing bob × 3" in weighed.one("p", class_="recounted").text
        leader = counted.json()["sessions"][0]["standings"][0]
        assert f"{leader['p_best']:.2f}" in weighed.one(id="counted").text
        assert weighed.one(id="counted").text != plain.one(id="counted").text
        assert not same.all("p", class_="recounted")
        assert "bob × 2 and cyd × 3" in page(both).one("p", class_="recounted").text

    @pytest.mark.parametrize(
        "query",
        [
            "rule=nobody", "without=nobody", "rule=mean_rank&without=x", "reviewer=bob&weight=much",
            "reviewer=bob&weight=-1", "reviewer=nobody&weight=2",
        ],
    )  # fmt: skip
    def test_an_impossible_recount_is_reported_on_the_page(self, browser, query):
        """The session is shown under its own count."""
        session = ask_and_wait(browser)
        root = page(browser.get(f"/sessions/{session}?{query}"), 422)

        assert "The recount failed" in root.one(class_="shortfall", role="alert").text
        assert root.all("figure", class_="chart")

    def test_an_unreadable_history_is_reported_without_its_location(self, tmp_path, caplog):
        """The location is in the log."""
        path = tmp_path / "vault" / "history.sqlite"
        path.parent.mkdir()
        sits = write_config(tmp_path)
        with History.open(path) as history, served(councils(sits, history)) as at:
            session = at.portal.call(at.service.start, QuestionRequest("Is it so?"))
            at.portal.call(session.wait_for_end)
            history.database.execute("ALTER TABLE matchups RENAME TO elsewhere", {})
            address = f"{at.url}/sessions/{session.id}?rule=weighted_borda"
            root = page(httpx2.get(address, headers=HTML, timeout=60), 503)

        told = root.one(class_="shortfall", role="alert").text
        assert told.startswith("The recount failed: the history is damaged: no such table")
        assert "vault" not in told
        assert any("vault" in str(getattr(each, "fields", "")) for each in caplog.records)

    def test_names_are_hidden_until_revealed(self, browser):
        """Nothing on the page attributes a text before."""
        session = ask_and_wait(browser)

        assert "bob" not in browser.get(f"/sessions/{session}").text.lower().replace("bob says", "")
        assert ">bob<" in browser.get(f"/sessions/{session}?reveal=1").text

    def test_an_imported_session_has_a_page(self, browser):
        """Outcome, ballots and metadata; it can be recounted."""
        root = page(browser.get("/sessions/q00"))

        assert root.one("h1").text == "Which tree?"
        assert "imported from" in root.one(class_="eyebrow").text
        assert [r.all("th")[0].text for r in root.one(id="ballots").one("table").all("tr")[1:]] == [
            "r1", "r2", "r3", "r4"
        ]  # fmt: skip
        assert len(root.all("article", class_="answer")) == 3
        again = page(browser.get("/sessions/q00?rule=schulze&without=r4"))
        assert "Without r4" in again.one(class_="recounted").text

    def test_votes_of_people_stand_beside_those_of_models(self, tmp_path):
        """The count uses the models' alone, and only theirs can be left out."""
        cast = [Ballot(r, (("a",), ("b",)), session="q") for r in ("r1", "r2")]
        vote = Ballot("ines", (("b",), ("a",)), session="q", kind="human")
        store_sessions(tmp_path / "history.sqlite", [SessionImport("q", ballots=(*cast, vote))])
        with desk(tmp_path, filled=False) as held:
            root = page(httpx2.get(f"{held.url}/sessions/q", headers=HTML, timeout=60))

        assert root.one("ul", class_="trust").all("li")[0].text == "2 of 2 reviewers"
        assert switches(root) == ["r1", "r2"]

    def test_ballots_of_people_alone_can_be_left_out(self, tmp_path):
        """Where they are counted; whoever is left out is marked in the table."""
        cast = [
            Ballot(who, (("a",), ("b",)), session="q", kind="human")
            for who in ("ines", "jo", "kim")
        ]
        store_sessions(tmp_path / "history.sqlite", [SessionImport("q", ballots=cast)])
        with desk(tmp_path, filled=False) as held:
            root = page(httpx2.get(f"{held.url}/sessions/q?without=jo", headers=HTML, timeout=60))

        assert switches(root) == ["ines", "jo", "kim"]
        assert root.one("ul", class_="trust").all("li")[0].text == "2 people"
        assert [row.one("th").text for row in root.one(id="ballots").one("tbody").all("tr")] == [
            "ines, a person",
            "jo, a person left out",
            "kim, a person",
        ]

    def test_candidates_that_look_like_numbers_keep_their_names(self, tmp_path):
        """Only real numbers get the typographic minus."""
        cast = [Ballot(r, (("-1",), ("-2",)), session="q") for r in ("r1", "r2", "r3")]
        store_sessions(tmp_path / "history.sqlite", [SessionImport("q", ballots=cast)])
        with desk(tmp_path, filled=False) as held:
            cells = page(httpx2.get(f"{held.url}/sessions/q", headers=HTML, timeout=60)).one(
                id="ballots"
            )

        assert [head.text for head in cells.one("thead").all("th")] == ["-1", "-2"]

    def test_many_ballots_of_a_reviewer_share_one_row(self, tmp_path):
        """Each order once with its count; a reviewer without ballots has its reason."""
        cast = [
            Ballot("r1", (("a",), ("b",)), session="q"),
            Ballot("r1", (("b",), ("c",)), session="q"),
        ]
        none = Ballot("r2", (), session="q", abstained=True, reason="was ill")
        store_sessions(
            tmp_path / "history.sqlite", [SessionImport("q", ballots=(*cast, cast[0], none))]
        )
        with desk(tmp_path, filled=False) as held:
            root = page(httpx2.get(f"{held.url}/sessions/q", headers=HTML, timeout=60))

        rows = [
            [cell.text for cell in (row.one("th"), *row.all("td"))]
            for row in root.one(id="ballots").one("table").one("tbody").all("tr")
        ]
        assert rows == [
            ["r1 3 ballots", "a > b (×2); b > c"],
            ["r2", "abstained: was ill"],
        ]

    def test_imported_ballots_are_a_matrix_like_those_of_a_council(self, tmp_path):
        """Twenty candidates, the best first; a cell opens grades and notes of the ballot."""
        names = [f"n{at:02}" for at in range(20)]
        cast = [
            Ballot(
                f"r{turn}",
                tuple((name,) for name in names[turn:] + names[:turn]),
                {name: {"clarity": 10 - at / 4} for at, name in enumerate(names)},
                session="q",
                notes="It is clear." if turn == 0 else None,
            )
            for turn in (0, 1)
        ]
        store_sessions(tmp_path / "history.sqlite", [SessionImport("q", ballots=cast)])
        with desk(tmp_path, filled=False) as held:
            root = page(httpx2.get(f"{held.url}/sessions/q", headers=HTML, timeout=60))

        ballots = root.one(id="ballots")
        table = ballots.one("table", class_="ballots")
        ranking = [row.text for row in root.one(id="ranking").all("svg")[0].all("a")]
        assert len(table.one("thead").all("th")) == 20
        assert [head.text for head in table.one("thead").all("th")][: len(ranking)] == ranking
        assert len(table.one("tbody").all("tr")) == 2
        review = ballots.one(id="review-0")
        assert "It is clear." in review.text
        assert "clarity" in review.one("table", class_="heat").text

    def test_ballots_on_many_candidates_are_a_list(self, tmp_path):
        """A matrix of sixty-five columns could not be read."""
        names = [f"n{at:02}" for at in range(65)]
        cast = [Ballot(f"r{at}", tuple((each,) for each in names), session="q") for at in range(2)]
        store_sessions(tmp_path / "history.sqlite", [SessionImport("q", ballots=cast)])
        with desk(tmp_path, filled=False) as held:
            root = page(httpx2.get(f"{held.url}/sessions/q", headers=HTML, timeout=60))

        assert not root.one(id="ballots").all("table", class_="ballots")
        assert "n00 > n01" in root.one(id="ballots").text

    def test_many_remarks_are_folded_below_the_first(self, tmp_path):
        """A remark on each of forty grades would bury the ballots."""
        names = [f"n{at:02}" for at in range(20)]
        cast = [
            Ballot(
                f"r{turn}",
                tuple((name,) for name in names),
                {name: {"clarity": 5} for name in names},
                session="q",
            )
            for turn in range(2)
        ]
        store_sessions(tmp_path / "history.sqlite", [SessionImport("q", ballots=cast)])
        with desk(tmp_path, filled=False) as held:
            root = page(httpx2.get(f"{held.url}/sessions/q", headers=HTML, timeout=60))

        first, rest = root.one(id="ranking").all("ul", class_="notes")
        assert len(first.all("li")) == 5
        [fold] = [each for each in root.all("details") if "more remarks" in each.text]
        assert fold.one("summary").text == f"{len(rest.all('li'))} more remarks"

    def test_grades_stand_beside_the_order(self, tmp_path):
        """Per criterion where given so, and grades alone, of whoever cast several ballots."""
        by_criterion = {"clarity": 7.5, "depth": "6/10"}
        cast = (
            Ballot("r1", (("a",), ("b",)), {"a": 8, "b": by_criterion}, session="q"),
            Ballot("r2", (), {"a": 9, "b": 4}, session="q"),
            Ballot("r3", (("a",), ("b",)), session="q"),
            Ballot("r3", (("a",), ("b",)), session="q"),
        )
        store_sessions(tmp_path / "history.sqlite", [SessionImport("q", ballots=cast)])
        with desk(tmp_path, filled=False) as held:
            root = page(httpx2.get(f"{held.url}/sessions/q", headers=HTML, timeout=60))

        rows = root.one(id="ballots").one("table").one("tbody").all("tr")
        assert [row.all("td")[0].text for row in rows] == [
            "a [8] > b [clarity 7.5, depth 6/10]",
            "grades alone: a [9] and b [4]",
            "a > b (×2)",
        ]

    def test_any_imported_name_leads_to_its_page(self, browser):
        """Slashes and symbols included."""
        name = "odd/name?#%"
        root = page(browser.get(f"/sessions/{quote(name, safe='')}"))

        assert name in root.one(class_="eyebrow").text
        assert forms(root)[-1].startswith("/sessions/odd%2Fname%3F%23%25")

    def test_a_running_session_is_followed_and_cancelled(self, browser):
        """Its page patches itself, and it can be resumed."""
        where = submit(browser, question="So (hang)?")
        root = page(browser.get(where))
        live = root.one(id="live").attrs["hx-sse:connect"]
        got = bytearray()

        def follow():
            with (
                httpx2.Client(base_url=str(browser.base_url), timeout=60) as reading,
                reading.stream("GET", live, headers={"Accept-Encoding": "gzip"}) as told,
            ):
                assert told.headers["content-type"].startswith("text/event-stream")
                assert "content-encoding" not in told.headers
                for piece in told.iter_bytes():
                    got.extend(piece)

        reader = threading.Thread(target=follow)
        reader.start()
        assert submit(browser, f"{where}/cancel") == where
        reader.join(60)
        assert got.endswith(b"event: end\ndata: end\n\n")
        over = page(browser.get(where))
        assert over.one(class_="shortfall").one("strong").text.endswith("finished calls are saved")

        assert submit(browser, f"{where}/resume") == where
        assert page(browser.get(where)).all(id="live")
        submit(browser, f"{where}/cancel")

    def test_a_second_resume_leads_to_the_running_session(self, browser):
        """Or to the finished one; an interrupted one is resumed."""
        where = submit(browser, question="So (hang)?")
        browser.post(f"{where}/cancel")
        first = submit(browser, f"{where}/resume")
        second = submit(browser, f"{where}/resume")
        under_way = page(browser.get(second))
        over = f"/sessions/{ask_and_wait(browser)}"
        again = submit(browser, f"{over}/resume")
        browser.post(f"{where}/cancel")

        assert first == second == where
        assert f"{where}/cancel" in forms(under_way)
        assert again == over

    def test_the_address_above_a_session_is_the_list(self, browser, unsaved):
        """The history, or without one the first page."""
        for above in ("/sessions", "/sessions/"):
            for client, where in ((browser, "/history"), (unsaved, "/")):
                response = client.get(above, follow_redirects=False)
                assert (response.status_code, response.headers["location"]) == (303, where)

    def test_a_late_reader_gets_the_end_of_the_session(self, browser):
        """Its stream ends at once."""
        response = browser.get("/sessions/held00/live")

        assert response.status_code == 200
        assert "The session is over: complete." in response.text
        assert response.text.endswith("event: end\ndata: end\n\n")

    def test_a_failed_seat_is_retried(self, browser, at_desk):
        """In a new session; a form without a seat is refused."""
        session = ask_and_wait(browser, question="So (fail)?")
        root = page(browser.get(f"/sessions/{session}"))
        [seat] = [box.attrs["value"] for box in root.all("input", name="seat")]
        assert browser.post(f"/sessions/{session}/retry", data={}).status_code == 409
        assert browser.post(f"/sessions/{session}/retry/plan", data={}).status_code == 409
        for name in ("max_cost_usd", "max_calls"):
            costly = {"seat": "A", name: "lots"}
            assert browser.post(f"/sessions/{session}/retry", data=costly).status_code == 422
        form = root.one("form", action=f"/sessions/{session}/retry")
        [plan] = [each.attrs["formaction"] for each in form.all("button")[1:]]
        planned = page(browser.post(plan, data={"seat": seat, "max_calls": "40"}))
        assert planned.one("input", name="max_calls").attrs["value"] == "40"
        assert "at worst" in planned.one("section", role="status").text
        assert planned.one("input", name="seat").attrs["value"] == seat
        again = submit(browser, f"/sessions/{session}/retry", seat=seat).rpartition("/")[2]
        browser.get(f"/api/sessions/{again}/events")

        assert at_desk.history.session(again).opening.parent == session
        assert again in browser.get(f"/sessions/{session}").text

    def test_another_jury_judges_the_answers(self, browser, at_desk):
        """In a new session, to which the form leads; names stay hidden in the form."""
        session = ask_and_wait(browser)
        form = page(browser.get(f"/sessions/{session}")).one(
            "form", action=f"/sessions/{session}/rejudge"
        )
        juries = {o.attrs["value"]: o.text for o in form.one("select").all("option")}
        assert juries == {"": "the configured council", "demo": "demo"}
        planned = page(browser.post(f"{form.attrs['action']}/plan", data={"profile": "demo"}))
        assert "6 calls if nothing fails" in planned.one("section", role="status").text
        again = submit(browser, form.attrs["action"], profile="demo").rpartition("/")[2]
        browser.get(f"/api/sessions/{again}/events")

        opened = at_desk.history.session(again).opening
        assert (opened.relation, opened.parent) == ("rejudged", session)
        assert "jury:" in page(browser.get(f"/sessions/{again}")).one("header", class_="ask").text
        assert again in browser.get(f"/sessions/{session}").text

    def test_a_jury_has_options_too(self, browser, at_desk):
        """Its own page keeps their values when planned, refused or started."""
        where = f"/sessions/{ask_and_wait(browser)}/rejudge"
        given = {"jury": "ada\nbob", "rule": "borda", "max_cost_usd": "0.5"}
        planned = page(browser.post(f"{where}/plan", data=given))
        wrong = page(browser.post(where, data={**given, "rule": "toss"}), 422)
        again = submit(browser, where, **given).rpartition("/")[2]
        browser.get(f"/api/sessions/{again}/events")

        for root in (planned, wrong):
            assert root.one("form", action=where).one("textarea", id="jury").text == "ada bob"
        assert "toss" in wrong.one(id=wrong.one(id="rule").attrs["aria-describedby"]).text
        opened = at_desk.history.session(again).opening
        assert [seat.name for seat in opened.jury] == ["ada", "bob"]
        assert opened.procedure.counting.rule == "borda"

    def test_a_form_without_a_jury_uses_the_configured_council(self, browser, at_desk):
        """As for a question."""
        session = ask_and_wait(browser)
        again = submit(browser, f"/sessions/{session}/rejudge").rpartition("/")[2]
        browser.get(f"/api/sessions/{again}/events")

        assert [seat.name for seat in at_desk.history.session(again).opening.jury] == [
            "ada", "bob", "cyd"
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("session", "profile", "status", "said"),
        [
            ("last", "nobody", 422, "unknown profile"),
            ("nothing", "", 404, "unknown session"),
            ("q00", "", 409, "ballots"),
        ],
        ids=["jury", "session", "imported"],
    )
    def test_a_jury_that_cannot_judge_is_refused(self, browser, session, profile, status, said):
        """A page says why."""
        ask_and_wait(browser)
        root = page(browser.post(f"/sessions/{session}/rejudge", data={"profile": profile}), status)

        assert said in root.one("main").text.lower()

    def test_without_a_history_the_first_page_lists_recent_sessions(self, unsaved):
        """The latest first, with any status but complete; leaders are hidden before the reveal."""
        first = ask_and_wait(unsaved)
        second = ask_and_wait(unsaved, question="So (fail)?")
        rows = page(unsaved.get("/")).one("ol", class_="sessions").all("li")

        assert [row.one("a").attrs["href"] for row in rows] == [
            f"/sessions/{second}",
            f"/sessions/{first}",
        ]
        assert ["degraded" in row.text for row in rows] == [True, False]
        assert "under way" not in rows[1].text
        assert not [row for row in rows if "bob" in row.text]

    def test_an_unsaved_session_is_shown_without_a_vote(self, unsaved):
        """Where there is no history."""
        session = ask_and_wait(unsaved)
        text = unsaved.get(f"/sessions/{session}").text

        assert "Vote blind" not in text
        assert "Reveal names" in text


def session_rows(root):
    """The sessions of a list, on whichever day."""
    return [row for rows in root.all("ol", class_="sessions") for row in rows.all("li")]


class TestDeleting:
    """A session is deleted on its page, permanently."""

    def test_the_name_must_be_typed(self, browser, at_desk):
        """Otherwise nothing is deleted; then the remaining sessions are shown."""
        session = ask_and_wait(browser)
        [form] = [
            form
            for form in page(browser.get(f"/sessions/{session}")).all("form")
            if form.attrs["action"].endswith("/forget")
        ]
        root = page(browser.post(form.attrs["action"], data={"session": session[:4]}))
        field = root.one("input", id="forget")
        assert (field.attrs["value"], field.attrs["aria-invalid"]) == (session[:4], "true")
        assert "Not deleted" in root.one(id=field.attrs["aria-describedby"]).text
        assert root.all("figure", class_="chart")
        assert at_desk.history.has_record(session)

        assert submit(browser, form.attrs["action"], session=session) == "/history"
        page(browser.get(f"/sessions/{session}"), 404)

    @pytest.mark.parametrize("session", ["held07", "q00"])
    def test_the_page_is_not_cached(self, browser, session):
        """Going back to a deleted session shows that it is gone."""
        assert browser.get(f"/sessions/{session}").headers["cache-control"] == "no-store"

    def test_the_history_hides_leaders_and_links_to_a_vote(self, browser):
        """A blind vote starts there, with the answers alone."""
        session = ask_and_wait(browser)
        rows = session_rows(page(browser.get("/history")))
        [links] = [
            links
            for links in ([a.attrs["href"] for a in row.all("a")] for row in rows)
            if links[0] == f"/sessions/{session}"
        ]

        assert links[1:] == [f"/sessions/{session}/vote"]
        assert not [row for row in rows if re.search(r"bob", row.text)]

    def test_the_history_names_leaders_on_request(self, browser):
        """With how sure it is; a page that is reached from there shows names as well."""
        session = ask_and_wait(browser)
        hidden = page(browser.get("/history?limit=30"))
        [row] = [row for row in session_rows(hidden) if session in row.all("a")[0].attrs["href"]]
        assert re.search(r"The leader is (over )?\d+% likely to be best", row.text)
        [to] = [a.attrs["href"] for a in hidden.all("a") if a.text == "Show names"]

        named = page(browser.get(to))
        [row] = [row for row in session_rows(named) if session in row.all("a")[0].attrs["href"]]
        assert re.search(r"bob leads, (over )?\d+% likely to be best", row.text)
        assert row.all("a")[0].attrs["href"] == f"/sessions/{session}?reveal=1"
        assert "limit=30" in to
        back = {a.text: a.attrs["href"] for a in named.all("a")}
        assert back["Hide names"] == "/history?limit=30"
        assert "reveal=1" in back.get("Older sessions", "reveal=1")

    def test_the_history_is_grouped_by_day(self, browser):
        """The latest first, each day once with its sessions."""
        root = page(browser.get("/history?limit=100"))
        days = [day.one("h2").text for day in root.all("section", class_="day")]

        assert "Saturday, 21 November 2026" not in days
        assert "Friday, 20 November 2026" in days
        assert len({*days}) == len(days) > 10
        for day in root.all("section", class_="day"):
            on = datetime.strptime(day.one("h2").text, "%A, %d %B %Y").replace(tzinfo=UTC)
            times = [time.attrs["datetime"] for time in day.all("time")]
            assert times == sorted(times, reverse=True)
            assert all(time.startswith(f"{on:%Y-%m-%d}") for time in times)

    def test_a_vote_after_seeing_the_session_is_marked(self, browser, at_desk):
        """By a note that the voter knew the panel's outcome."""
        session = ask_and_wait(browser)
        veil = page(browser.get(f"/sessions/{session}")).one(class_="veil")
        who = page(browser.get(veil.all("a")[0].attrs["href"]))
        hidden = {i.attrs["name"]: i.attrs["value"] for i in who.all("input", type="hidden")}
        paper = page(
            browser.get(f"/sessions/{session}/vote", params={**hidden, "as": "kim", "all": "1"})
        )
        fields = {i.attrs["name"]: i.attrs["value"] for i in paper.all("input", type="hidden")}
        fields |= {s.attrs["name"]: "1" for s in paper.all("select")}
        submit(browser, f"/sessions/{session}/vote", **fields)

        [vote] = [b for b in at_desk.history.ballots(session) if b.kind == "human"]
        assert "page of the session" in vote.notes


class TestVoting:
    """A person's vote on the page."""

    def test_a_vote_is_signed_and_blind(self, browser, at_desk):
        """Then it is stored, and the authors are at an address that casts no second vote."""
        session = ask_and_wait(browser)
        assert page(browser.get(f"/sessions/{session}/vote")).one("input", name="as")
        paper = page(browser.get(f"/sessions/{session}/vote", params={"as": "zoe", "all": "1"}))
        fields = {s.attrs["name"]: str(n) for n, s in enumerate(paper.all("select"), start=1)}
        assert fields.keys() == {"place-A", "place-B", "place-C"}
        fields["paper"] = paper.one("input", name="paper").attrs["value"]

        seen = submit(browser, f"/sessions/{session}/vote", **fields, **{"as": "zoe"})
        for _ in range(2):
            root = page(browser.get(seen))
            names = [th.text for th in root.one("tbody").all("th")]
            assert sorted(name.split()[0] for name in names) == ["ada", "bob", "cyd"]
        [vote] = [b for b in at_desk.history.ballots(session) if b.kind == "human"]
        assert (vote.reviewer, vote.notes) == ("zoe", None)

        paper = page(browser.get(f"/sessions/{session}/vote", params={"as": "zoe", "all": "1"}))
        back = paper.one("p", class_="shortfall").one("a").attrs["href"]
        assert page(browser.get(back)).one("tbody").text == root.one("tbody").text
        submit(browser, f"/sessions/{session}/vote", **fields, **{"as": "zoe", "replace": "1"})

    def test_a_second_tab_ends_at_the_result_or_offers_to_replace_the_vote(self, browser, at_desk):
        """A form from before the vote: the same ballot leads to the result, another is kept."""
        session = ask_and_wait(browser)
        address = f"/sessions/{session}/vote"
        form = page(browser.get(address, params={"as": "zoe", "all": "1"})).one("form", id="ballot")
        fields = {i.attrs["name"]: i.attrs["value"] for i in form.all("input")}
        places = {s.attrs["name"]: str(n) for n, s in enumerate(form.all("select"), start=1)}
        seen = submit(browser, address, **fields, **places)
        assert submit(browser, address, **fields, **places) == seen

        changed = places | {"place-A": "2", "place-B": "1"}
        root = page(browser.post(address, data={**fields, **changed}), 409)
        kept = [
            [o.attrs["value"] for o in select.all("option") if "selected" in o.attrs]
            for select in root.all("select")
        ]
        [vote] = [b for b in at_desk.history.ballots(session) if b.kind == "human"]
        assert "earlier vote has other ranks" in root.one(role="alert").text
        assert kept == [["2"], ["1"], ["3"]]
        assert vote.notes is None

        fields = {i.attrs["name"]: i.attrs["value"] for i in root.one("form").all("input")}
        submit(browser, address, **fields, **changed)
        [replaced] = [b for b in at_desk.history.ballots(session) if b.kind == "human"]
        assert replaced.groups == (vote.groups[1], vote.groups[0], vote.groups[2])

    def test_the_name_of_a_candidate_gets_no_paper(self, browser):
        """On the page and over HTTP, a vote that cannot be cast is refused before it is begun."""
        session = ask_and_wait(browser)
        root = page(browser.get(f"/sessions/{session}/vote", params={"as": "ada"}), 422)
        refused = browser.get(f"/api/sessions/{session}/paper", params={"as": "ada"})

        assert "vote under another name" in root.one(role="alert").text
        assert refused.status_code == 422
        assert "vote under another name" in refused.json()["detail"]

    def test_choices_between_pairs_are_stored_as_they_were_made(self, browser, at_desk):
        """Every page of pairs passes the choices so far on to the next, with their paper."""
        session = ask_and_wait(browser)
        address = f"/sessions/{session}/vote"
        chosen = []
        root = page(browser.get(address, params={"as": "ann"}))
        while duel := root.all("form", class_="duel"):
            sent = [(i.attrs["name"], i.attrs["value"]) for i in duel[0].all("input")]
            chosen.append(duel[0].all("button")[0].attrs["value"])
            root = page(browser.get(address, params=[*sent, ("pair", chosen[-1])]))
        form = root.one("form", id="ballot")
        fields = {i.attrs["name"]: i.attrs["value"] for i in form.all("input")}
        for select in form.all("select"):
            [place] = [o for o in select.all("option") if "selected" in o.attrs]
            fields[select.attrs["name"]] = place.attrs["value"]
        submit(browser, address, **fields)

        [vote] = [b for b in at_desk.history.ballots(session) if b.kind == "human"]
        order = [name for [name] in vote.groups]
        sheet = prepare_paper(at_desk.history, session, "ann").sheet
        candidates = dict(zip(sheet.labels, sheet.candidates, strict=True))
        pairs = [[order.index(candidates[label]) for label in c.split(">")] for c in chosen]
        assert len(pairs) > 1
        assert all(left < right for left, right in pairs)

    @pytest.mark.parametrize("whole", [{}, {"all": "1"}], ids=["pairs", "whole"])
    @pytest.mark.parametrize("paper", [{}, {"paper": "aaaaaa"}], ids=["none", "other"])
    def test_choices_on_another_paper_are_dropped_with_a_notice(self, browser, paper, whole):
        """Its labels may have stood for other answers, as after an upgrade."""
        address = f"/sessions/{ask_and_wait(browser)}/vote"
        given = {"as": "zoe", "pair": ["A>B", "B>C"], **paper, **whole}
        root = page(browser.get(address, params=given))
        fresh = page(browser.get(address, params={"as": "zoe", **whole}))

        assert "made on another voting paper" in root.one(role="alert").text
        assert root.one("form").text == fresh.one("form").text
        assert not root.all("input", name="pair")
        assert not [o for o in root.all("option") if "selected" in o.attrs]

    @pytest.mark.parametrize("paper", [{}, {"paper": "aaaaaa"}])
    def test_a_form_with_another_paper_is_refused(self, browser, at_desk, paper):
        """Labels of somebody else's paper mean nothing on this one; no vote is stored.

        Nor are its places those of the form that follows, which has the code of this paper.
        """
        session = ask_and_wait(browser)
        given = {"as": "zoe", "place-A": "1", "place-B": "2", "place-C": "3", **paper}
        root = page(browser.post(f"/sessions/{session}/vote", data=given), 422)

        assert "belongs to another voting paper" in root.one(role="alert").text
        assert not [o for o in root.all("option") if "selected" in o.attrs]
        assert not [b for b in at_desk.history.ballots(session) if b.kind == "human"]

    def test_an_invalid_ranking_keeps_its_values(self, browser):
        """The error stands above the paper."""
        session = ask_and_wait(browser)
        paper = page(browser.get(f"/sessions/{session}/vote", params={"as": "zoe", "all": "1"}))
        given = {"as": "zoe", "place-A": "2", "place-B": "", "place-C": "1"}
        given["paper"] = paper.one("input", name="paper").attrs["value"]
        root = page(browser.post(f"/sessions/{session}/vote", data=given), 422)

        assert "does not rank B" in root.one(role="alert").text
        chosen = [o.attrs["value"] for o in root.all("option") if "selected" in o.attrs]
        assert chosen == ["2", "1"]


class TestReports:
    """Pages over all sessions."""

    def test_a_place_in_the_history_that_is_none_is_refused(self, browser):
        """An address that was cut, say."""
        assert "'zz'" in page(browser.get("/history?after=zz"), 422).one(role="alert").text

    def test_sessions_are_found_by_words(self, browser):
        """And by status, category, time and simulation."""
        rows = session_rows(page(browser.get("/history?text=which+tree")))

        assert [row.one("a").attrs["href"] for row in rows] == ["/sessions/q00"]
        law = page(browser.get("/history?category=law&simulated=no"))
        assert len(session_rows(law)) == 4
        assert "No matching sessions" in browser.get("/history?text=nothinglikeit").text
        for wrong in ("since=soon", "status=lost", "simulated=perhaps"):
            assert page(browser.get(f"/history?{wrong}"), 422).one(role="alert").text

    def test_the_first_page_links_to_sessions_of_this_server(self, tmp_path):
        """However many were imported since."""
        at = datetime(2026, 1, 1, tzinfo=UTC)
        with History.open(tmp_path / "history.sqlite") as history:
            with history.recording() as listen:
                for event in session_events("held", at=at):
                    listen(event)
            history.add(
                [SessionImport(f"s{n}", ballots=jury(f"s{n}")) for n in range(12)], "a", "b"
            )
        with desk(tmp_path, filled=False) as here:
            root = page(httpx2.get(f"{here.url}/", headers=HTML, timeout=60))

        [row] = root.one("ol", class_="sessions").all("li")
        assert row.all("a")[0].attrs["href"] == "/sessions/held"

    def test_unrevealed_answers_can_be_voted_on_from_the_list(self, tmp_path):
        """For sessions with a record; imported ballots name the authors."""
        at = datetime(2026, 1, 1, tzinfo=UTC)
        record = SessionImport("held", session_record=Session.of(session_events("held", at=at)))
        store_sessions(tmp_path / "history.sqlite", [record, SessionImport("q", ballots=jury("q"))])
        with desk(tmp_path, filled=False) as here:
            root = page(httpx2.get(f"{here.url}/history", headers=HTML, timeout=60))

        cast, held = session_rows(root)
        assert "imported from" in held.text
        assert held.all("a")[-1].attrs["href"] == "/sessions/held/vote"
        assert [a.attrs["href"] for a in cast.all("a")] == ["/sessions/q"]

    def test_every_session_is_on_one_page_of_the_history(self, tmp_path):
        """Exactly once, also with equal times, as in imports."""
        place = store_sessions(
            tmp_path / "history.sqlite",
            [SessionImport(f"s{n:03}", ballots=jury(f"s{n:03}")) for n in range(70)],
        )
        at = datetime(2026, 1, 1, tzinfo=UTC)
        with History.open(place) as history, history.recording() as listen:
            for n in range(35):
                for event in session_events(f"held{n}", at=at + timedelta(hours=n)):
                    listen(event)
        with (
            desk(tmp_path, filled=False) as held,
            httpx2.Client(base_url=held.url, timeout=60) as client,
        ):
            seen, where = [], "/history"
            while where:
                root = page(client.get(where, headers=HTML))
                rows = session_rows(root)
                seen += [row.all("a")[0].attrs["href"] for row in rows]
                where = next((a.attrs["href"] for a in root.all("a", rel="next")), "")
            with History.open(place) as history:
                names = {f"/sessions/{found.session}" for found in history.find()}

        assert sorted(seen) == sorted(names)
        assert len(seen) == 105

    def test_the_leaderboard_matches_the_command(self, browser):
        """Tiers with intervals, pairwise wins, cost, and history over time."""
        root = report(browser, "/leaderboard?trend=1")

        bars, beats, with_unranked, costs, trend = (figure.one("svg", class_="wide") for figure in
                                     root.all("figure", class_="chart"))  # fmt: skip
        numbers, unranked = root.one("section", aria_labelledby="h-board").all("table")
        names = [each.text for each in numbers.all("th", scope="row")]
        assert len(bars.all("g", role="img")) == len(names) > 4
        assert len(unranked.all("th", scope="row")) == 1
        assert [h.text for h in numbers.all("th")[:4]] == ["group", "rank", "model", "score"]
        labels = [each.text for each in bars.all("text") if each.text.startswith("group")]
        assert [label[:7] for label in labels] == ["group 1", "group 2"]
        assert beats.all("rect", class_="s3")
        assert len(beats.all("rect", class_="own")) == len(names)
        assert len(with_unranked.all("rect", class_="own")) == len(names) + 1
        assert costs.all("circle")
        assert {*names} <= {each.text for each in trend.all("text")}

    @pytest.mark.parametrize(
        "query", ["order_by=rating", "order_by=elo", "rule=mean_rank", "kind=model"]
    )
    def test_the_leaderboard_is_sorted_on_request(self, browser, query):
        """By rating, by Elo, under another rule."""
        root = report(browser, f"/leaderboard?{query}")

        assert root.all("figure", class_="chart")[0].all("circle")
        chosen = [o.attrs["value"] for o in root.all("option") if "selected" in o.attrs]
        assert query.partition("=")[2] in chosen

    def test_a_row_of_a_single_ballot_is_folded(self, tmp_path):
        """It stands among those without a rank, and nowhere else in the numbers."""
        once = SessionImport("once", NOW, ballots=(ballot("once", "r1", ("ash", "yew")),))
        board = witan.leaderboard(store_sessions(tmp_path / "history.sqlite", [*sessions(), once]))
        root = parsed(report_to_html(report_of(board)))
        numbers = root.all("section")[0]
        [fold] = [
            each
            for each in numbers.all("details")
            if "without a rank" in each.all("summary")[0].text
        ]

        assert "yew" in [each.text for each in fold.all("th", scope="row")]
        assert [each.text for each in numbers.all("th", scope="row")].count("yew") == 1

    def test_elo_is_a_column_on_request(self, browser):
        for query, there in (("?elo=1", True), ("", False)):
            table = report(browser, f"/leaderboard{query}").all("table", class_="numbers")[0]
            assert ("Elo" in [h.text for h in table.all("th")]) == there

    @pytest.mark.parametrize(
        ("path", "said"),
        [("/leaderboard?order=rating", "did you mean 'order_by'?"), ("/audit?text=x", "known here"),
         ("/history?rule=x", "known here"), ("/?questoin=x", "known here"),
         ("/tally?rule=borda", "known here: none"), ("/sessions/q00?rul=x", "did you mean 'rule'?"),
         ("/sessions/q00/vote?who=x", "known here: all, as, cast, pair, paper, seen")],
    )  # fmt: skip
    def test_an_unknown_parameter_is_refused(self, browser, path, said):
        """In the words of the API, on a page."""
        told = page(browser.get(path), 422)

        assert "unknown parameter" in told.one(role="alert").text
        assert said in told.one(role="alert").text

    @pytest.mark.parametrize("path", ["/leaderboard", "/audit"])
    def test_an_empty_report_says_why(self, browser, path):
        """An empty window, or an invalid time."""
        root = report(browser, f"{path}?category=nothing")
        assert "no session" in root.one(role="status").text.lower()
        assert page(browser.get(f"{path}?since=soon"), 422).one(role="alert").text

    def test_the_audit_has_a_row_per_reviewer(self, browser):
        """Each measure has interval and sample size, or what is missing."""
        root = report(browser, "/audit")
        [prefer] = [x for x in root.all("section") if x.one("h2").text == "What they prefer"]
        agree = root.all("table", class_="audited")[-1]

        rows = {row.one("a").text: row for row in agree.all("tr")[1:]}
        assert {"r1", "r4"} <= rows.keys()
        few = [x for x in prefer.all("details") if "without enough data" in x.text][-1]
        assert "r1" in few.text
        assert re.search(r"n \d+", rows["r1"].text)
        assert "not enough data" in root.text
        one = report(browser, rows["r1"].one("a").attrs["href"])
        assert one.one("h1").text == "How r1 judges"
        narrow = report(browser, "/audit?reviewer=r1&until=2026-12-01&category=coding")
        assert narrow.one("main").all("a")[-1].attrs["href"] == (
            "/audit?until=2026-12-01&category=coding"
        )
        assert sum(len(body.all("tr")) for body in one.all("tbody")) == 20
        assert "unknown reviewer" in report(browser, "/audit?reviewer=x", 422).text

    @pytest.mark.parametrize(
        "path", ["/leaderboard?order_by=rating", "/audit", "/audit?reviewer=r1"]
    )
    def test_a_slow_report_is_loaded_by_the_page(self, browser, path):
        """It patches heading and report, without a page around them."""
        waiting = page(browser.get(path))
        html = browser.get(waiting.one(id="report").attrs["hx-get"]).text
        parts = {x.attrs["hx-target"]: x for x in parsed(html).all("hx-partial")}

        whole = report(browser, path)
        assert parts.keys() == {"#heading", "#report", "#announced"}
        assert {each.attrs["id"] for each in waiting.all() if "id" in each.attrs} >= {
            "heading", "report", "announced",
        }  # fmt: skip
        assert parts["#heading"].text == whole.one(id="heading").text
        assert parts["#report"].one(id="report").text == whole.one(id="report").text
        assert not parsed(html).all("html")

    def test_without_a_history_there_are_no_reports(self, unsaved):
        """The page says how to get one."""
        for path in ("/history", "/leaderboard", "/audit"):
            assert "keeps no history" in page(unsaved.get(path), 409).one(role="alert").text


class TestExport:
    """A session as one file."""

    def test_the_file_is_self_contained(self, browser):
        """An attachment, with names or without, that loads nothing."""
        session = ask_and_wait(browser)
        response = browser.get(f"/api/sessions/{session}/export.html")

        assert "attachment" in response.headers["content-disposition"]
        root = parsed(response.text)
        assert not [x for tag in ("script", "link", "form", "img") for x in root.all(tag)]
        assert ">bob<" in response.text
        assert ">bob<" not in browser.get(f"/api/sessions/{session}/export.html?reveal=0").text

    def test_an_imported_session_is_exported(self, browser):
        """Its page links to the file."""
        links = page(browser.get("/sessions/q00", headers=HTML)).all("a")
        [link] = [each for each in links if "download" in each.attrs]
        response = browser.get(link.attrs["href"])

        assert response.status_code == 200
        assert "Imported ballots." in response.text


class TestResponses:
    """Errors, assets, and content negotiation."""

    def test_browsers_get_pages_and_programs_get_problems(self, browser):
        """By path and by the Accept header."""
        assert page(browser.get("/sessions/nope"), 404).one(role="alert").text
        assert page(browser.get("/nope"), 404).one("h1").text == "Not found"
        problem = browser.get("/sessions/nope", headers={"Accept": "*/*"})
        assert problem.headers["content-type"] == "application/problem+json"
        api = browser.get("/api/sessions/nope")
        assert api.headers["content-type"] == "application/problem+json"
        assert page(browser.get("/leaderboard?min_sessions=x"), 422).one(role="alert").text

    def test_assets_are_cached_for_ever(self, browser):
        """Their address holds a hash; each is compressed."""
        root = page(browser.get("/"))
        hrefs = [x.attrs["href"] for x in root.all("link")]
        hrefs += [x.attrs["src"] for x in root.all("script")]
        for href in hrefs:
            response = browser.get(href)
            assert "immutable" in response.headers["cache-control"]
            assert response.headers.get("content-encoding") == "gzip" or len(response.text) < 1000
        assert "immutable" not in browser.get("/assets/base.css").headers["cache-control"]
        assert browser.get("/assets/nothing.js").status_code == 422

    def test_every_page_is_light(self, browser):
        """Compressed, with all its assets."""
        session = ask_and_wait(browser)
        for path in ("/", "/history", "/leaderboard", "/audit", f"/sessions/{session}"):
            html = browser.get(path).text
            hrefs = re.findall(r'(?:href|src)="(/assets/[^"]+)"', html)
            parts = [html.encode(), *(browser.get(href).content for href in hrefs)]
            assert sum(len(gzip.compress(part)) for part in parts) < 100_000

    def test_only_the_export_is_in_the_openapi_document(self, browser):
        """Pages are not."""
        paths = browser.get("/openapi.json").json()["paths"]

        assert "/api/sessions/{session}/export.html" in paths
        assert not {"/", "/history", "/sessions", "/sign-in"} & paths.keys()


class TestSigningIn:
    """Where tokens are required."""

    @pytest.fixture
    def guarded(self, tmp_path):
        tokens = {"ada": TokenSettings("ada", "the test", key="ADAS")}
        settings = replace(ServeSettings(), tokens=MappingProxyType(tokens))
        with (
            served(councils(write_desk(tmp_path)), settings, {"ADAS": ADA}) as server,
            httpx2.Client(base_url=server.url, headers=HTML, timeout=60) as opened,
        ):
            yield opened

    def test_a_browser_signs_in_and_is_led_back(self, guarded):
        """A token is exchanged for a cookie that lasts until sign-out."""
        led = guarded.get("/history?text=x")
        assert led.status_code == 303
        root = page(guarded.get(led.headers["location"]))
        to = root.one("input", name="to").attrs["value"]
        signed = guarded.post("/sign-in", data={"token": ADA, "to": to})

        assert (signed.status_code, signed.headers["location"]) == (303, "/history?text=x")
        cookie = signed.headers["set-cookie"].lower()
        assert cookie.startswith(f"{COOKIE}=")
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "secure" not in cookie
        assert ADA not in signed.headers["set-cookie"]
        assert page(guarded.get("/")).one("form", class_="signed-in").text == "ada Sign out"
        held = dict(guarded.cookies)
        out = guarded.post("/sign-out")
        assert out.headers["location"] == "/sign-in"
        guarded.cookies.update(held)
        assert guarded.get("/").status_code == 303

    def test_behind_https_the_cookie_is_secure(self, tmp_path):
        """By the public URL."""
        tokens = {"ada": TokenSettings("ada", "the test", key="ADAS")}
        settings = replace(
            ServeSettings(),
            tokens=MappingProxyType(tokens),
            public_url="https://council.example/witan",
        )
        with served(councils(write_desk(tmp_path)), settings, {"ADAS": ADA}) as server:
            signed = httpx2.post(f"{server.url}/sign-in", data={"token": ADA}, timeout=60)
            led = httpx2.get(f"{server.url}/", headers=HTML, timeout=60)

        assert "secure" in signed.headers["set-cookie"].lower()
        assert "path=/witan" in signed.headers["set-cookie"].lower()
        assert led.headers["location"].startswith("/witan/sign-in?to=")

    @pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "/\\evil.example"])
    def test_redirects_stay_on_this_server(self, guarded, to):
        signed = guarded.post("/sign-in", data={"token": ADA, "to": to})

        assert signed.headers["location"] == "/"

    def test_wrong_tokens_are_rate_limited(self, guarded):
        """A valid token is still accepted."""
        codes = [
            guarded.post("/sign-in", data={"token": "wrong-but-long"}).status_code
            for _ in range(25)
        ]

        assert (codes[0], codes[-1]) == (401, 429)
        assert guarded.post("/sign-in", data={"token": ADA}).status_code == 303

    def test_without_tokens_the_sign_in_form_redirects(self, browser):
        """To the first page."""
        assert page(browser.get("/sign-in")).one("h1").text == "What should the council answer?"
