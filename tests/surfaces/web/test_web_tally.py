"""The page that counts ballots somebody brings along, over real HTTP."""

import gzip
import json

import httpx2
import pytest

from markup import Element, parsed

HTML = {"Accept": "text/html,application/xhtml+xml"}

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def browser(at_desk):
    """A client that asks as a browser does."""
    with httpx2.Client(base_url=at_desk.url, headers=HTML, timeout=20) as opened:
        yield opened


def ballots(*sessions: str, names: tuple[str, ...] = ("oak", "elm", "ash")) -> str:
    """Three reviewers of one mind in each session, as JSON lines."""
    lines = [
        {"session": session, "reviewer": f"r{number}", "ranking": [*names]}
        for session in sessions
        for number in range(3)
    ]
    return "\n".join(map(json.dumps, lines))


def counted(
    browser: httpx2.Client, text: str = "", *, rule: str = "auto", status: int = 200, **files: bytes
) -> Element:
    """The page that comes of sending the form as a browser does, its empty file field included."""
    sent = [("file", (name, content)) for name, content in files.items()]
    response = browser.post(
        "/tally", data={"ballots": text, "rule": rule}, files=sent or [("file", ("", b""))]
    )
    assert response.status_code == status, response.text[:400]
    assert "default-src 'self'" in response.headers["content-security-policy"]
    return parsed(response.text)


def ranked(root: Element) -> list[list[str]]:
    """The candidates of each ranking on a page, the best first."""
    tables = root.all("table", class_="standings")
    return [[cell.text.split()[0] for cell in each.all("th", class_="who")[1:]] for each in tables]


class TestForm:
    """What is asked for."""

    def test_the_navigation_leads_to_it(self, browser):
        """From the first page; there it is marked as the page one is on."""
        link = parsed(browser.get("/").text).one("a", href="/tally")
        root = parsed(browser.get(link.attrs["href"]).text)

        assert link.text == root.one("a", aria_current="page").text == "Count ballots"
        assert root.one("textarea").attrs["name"] == "ballots"
        assert {"auto", "borda", "elo"} <= {o.attrs["value"] for o in root.all("option")}


class TestCounting:
    """What comes of it."""

    def test_each_session_has_its_ranking(self, browser):
        """With the rule that was chosen; what was written stays in the form."""
        text = ballots("q1", "q2")
        root = counted(browser, text, rule="schulze")

        assert ranked(root) == [["oak", "elm", "ash"]] * 2
        assert {h.text for h in root.all("h2")} == {"q1", "q2"}
        assert "By schulze" in root.one("main").text
        assert root.one("textarea").text == " ".join(text.split())
        assert [o.text for o in root.all("option") if "selected" in o.attrs] == ["schulze"]

    def test_no_two_parts_of_the_page_share_a_name(self, browser):
        """And no link leads to an answer that is not there."""
        root = counted(browser, ballots("q1", "q2"))
        ids = [each.attrs["id"] for each in root.all() if "id" in each.attrs]

        assert len(ids) == len(set(ids))
        assert not [a for a in root.one("main").all("a") if a.attrs["href"].startswith("#")]

    @pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
    def test_a_file_is_counted_in_any_format(self, browser, packed):
        """CSV here, packed or not."""
        rows = ["session,reviewer,candidate,rank", "q1,ada,oak,1", "q1,ada,elm,2"]
        root = counted(browser, **{"b.csv": packed("\n".join(rows).encode())})

        assert ranked(root) == [["oak", "elm"]]

    def test_of_many_sessions_there_is_a_list_of_leaders(self, browser):
        """One line each, in place of rankings."""
        root = counted(browser, ballots(*(f"q{number:02}" for number in range(11))))
        rows = root.one("table", class_="numbers").one("tbody").all("tr")

        assert not ranked(root)
        assert root.one("h1").text == "11 sessions counted"
        assert [row.one("th").text for row in rows] == [f"q{number:02}" for number in range(11)]
        assert all(row.all("td")[0].text == "oak" for row in rows)

    def test_as_much_can_be_written_as_a_request_may_hold(self, browser):
        """More than a megabyte, here."""
        root = counted(browser, "\n".join([ballots("q1"), " " * 1_100_000, ballots("q2")]))

        assert len(ranked(root)) == 2

    def test_what_could_not_be_read_is_told_line_by_line(self, browser):
        """And the rest is counted."""
        root = counted(browser, f"{ballots('q1')}\nnonsense\n")

        assert ranked(root) == [["oak", "elm", "ash"]]
        [line] = root.one(role="alert", aria_label="Not read").all("li")
        assert line.text.startswith("line 4: is not JSON")

    def test_a_session_that_does_not_suit_the_rule_is_named(self, browser):
        """With the reason, and what to do."""
        root = counted(browser, ballots("q1"), rule="range")

        assert root.one("h1").text == "Nothing is counted"
        said = root.one(role="alert", aria_label="Not counted").text
        assert "needs grades" in said
        assert "'borda'" in said

    def test_names_are_text(self, browser):
        """Of candidates, reviewers and sessions, whatever markup they try."""
        text = ballots(HOSTILE, names=(HOSTILE, f"</textarea>{HOSTILE}"))
        for sent in (text, f"{text}\n{HOSTILE}", HOSTILE):
            body = browser.post("/tally", data={"ballots": sent}).text
            assert "<script>alert" not in body
            assert not parsed(body).all("img")
            assert HOSTILE in parsed(body).one("main").text


class TestRefused:
    """What cannot be counted at all."""

    @pytest.mark.parametrize(
        ("text", "rule", "status", "said"),
        [
            ("", "auto", 409, "no ballot was sent"),
            (" \n ", "auto", 409, "no ballot was sent"),
            ("hello there\n", "auto", 422, "not recognised as ballots"),
            (ballots("q1"), "loudest", 422, "unknown rule"),
            ("a\0b", "auto", 422, "NUL"),
        ],
        ids=["nothing", "blank", "no ballots", "rule", "nul"],
    )
    def test_it_is_a_sentence_above_the_form(self, browser, text, rule, status, said):
        """It says what is wrong; what was written is not lost, where it can be kept."""
        root = counted(browser, text, rule=rule, status=status)

        assert said.casefold() in root.one(role="alert").text.casefold()
        if "\0" not in text:
            assert root.one("textarea").text == " ".join(text.split())

    def test_a_text_and_a_file_are_not_guessed_between(self, browser):
        """One of them is to be taken out."""
        root = counted(browser, ballots("q1"), status=422, **{"b.jsonl": ballots("q2").encode()})

        assert "written here, or in a file" in root.one(role="alert").text

    def test_a_file_that_holds_no_ballots_is_refused(self, browser):
        """A picture, and an empty one."""
        assert counted(browser, status=422, **{"a.png": b"\x89PNG\xff\0"}).one(role="alert").text
        said = counted(browser, status=409, **{"a.csv": b""}).one(role="alert").text
        assert said == "no ballot was sent"

    def test_no_other_site_can_send_it(self, browser):
        """As with every form."""
        sent = browser.post(
            "/tally", data={"ballots": "x"}, headers={"Origin": "https://evil.example"}
        )

        assert sent.status_code == 403
