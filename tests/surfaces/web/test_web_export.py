"""``witan show --html``: a session as one self-contained file."""

import re

import httpx2
import pytest

from desks import desk
from markup import parsed
from sessions import Story
from stored_ballots import store_sessions
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session
from witan.history import SessionImport
from witan.surfaces.web.rendering import style_source

HTML = {"Accept": "text/html"}


@pytest.fixture
def saved(tmp_path):
    """An exported session."""
    story = Story("ada", "bob", "cyd", simulated=True).answers(ada="A.", bob="B.", cyd="C.")
    story.casts("ada: bob > cyd").casts("bob: ada > cyd").abstains("cyd", "late")
    story.closing("So [A].", labels={"A": "ada", "B": "bob", "C": "cyd"}).closed("cyd was late")
    path = tmp_path / "session.json"
    path.write_text(session_to_json(Session.of(story)), encoding="utf-8")
    return path


class TestFile:
    def test_the_file_shows_everything(self, witan, saved, tmp_path):
        """Question, final answer, standings, ballots, answers, trust, simulation mark."""
        said = witan("show", saved, "--html", tmp_path / "s.html")

        assert (said.status, said.out) == (0, "")
        root = parsed((tmp_path / "s.html").read_text(encoding="utf-8"))
        assert root.one("h1").text == "Which?"
        assert len(root.all("article", class_="answer")) == 3
        assert root.all("figure", class_="chart")
        assert root.all("table", class_="matrix")
        assert "cyd was late" in root.one(class_="shortfall").text
        assert root.one(class_="ribbon").text.startswith("Simulated")

    def test_the_file_is_self_contained(self, witan, saved, tmp_path):
        """No script, form or address; its policy allows only its own style."""
        witan("show", saved, "--html", tmp_path / "s.html")
        text = (tmp_path / "s.html").read_text(encoding="utf-8")
        root = parsed(text)

        assert not [x for tag in ("script", "link", "form", "img", "iframe") for x in root.all(tag)]
        assert not [x for x in root.all() if "src" in x.attrs or "action" in x.attrs]
        assert all(a.attrs["href"].startswith("#") for a in root.all("a"))
        assert "url(" not in text
        assert "@import" not in text
        [policy] = root.all("meta", http_equiv="Content-Security-Policy")
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
        expected = f"default-src 'none'; style-src {style_source(style)}; base-uri 'none'"
        assert policy.attrs["content"] == expected

    def test_a_failed_write_keeps_the_earlier_file(self, witan, saved, tmp_path):
        """The error names the file; no partial page remains."""
        target = tmp_path / "no" / "s.html"

        said = witan("show", saved, "--html", target)

        assert said.status == 2
        assert str(target) in said.err
        assert not target.parent.exists()

    def test_html_and_json_are_exclusive(self, witan, saved, tmp_path):
        said = witan("show", saved, "--json", "--html", tmp_path / "s.html")

        assert said.status == 2
        assert "--json, --events and --html" in said.err
        assert not (tmp_path / "s.html").exists()


class TestHistory:
    """Data of the history beyond the record."""

    def test_an_imported_session_can_be_exported(self, witan, write, tmp_path):
        """With standings and every ballot."""
        history = f"--history={tmp_path / 'h.sqlite'}"
        cast = [{"session": "q", "reviewer": r, "ranking": ["y", "z"]} for r in ("ada", "bob")]
        witan("import", write("b.jsonl", *cast), history)
        said = witan("show", "q", "--html", tmp_path / "s.html", history)

        assert said.status == 0, said.err
        root = parsed((tmp_path / "s.html").read_text(encoding="utf-8"))
        assert root.all("figure", class_="chart")
        assert len(root.one(id="ballots").one("table").one("tbody").all("tr")) == 2
        assert not [x for tag in ("script", "link", "form") for x in root.all(tag)]

    def test_votes_of_people_are_on_the_page(self, witan, tmp_path):
        """With the person's name."""
        history = f"--history={tmp_path / 'h.sqlite'}"
        witan("demo", "--fast", history)
        voted = witan(
            "vote",
            "last",
            "--ranking",
            "aster > birch = cedar > dogwood > elder",
            "--as",
            "zoe",
            history,
        )
        assert voted.status == 0, voted.err

        witan("show", "last", "--html", tmp_path / "s.html", history)

        root = parsed((tmp_path / "s.html").read_text(encoding="utf-8"))
        [section] = [x for x in root.all("section") if x.attrs.get("aria-labelledby") == "h-votes"]
        assert "zoe" in section.text
        assert " > " in section.text


CONTROLS = {"form", "button", "svg", "style", "script"}
"""Elements of which a page of the server has more than a file, or draws otherwise."""


def read_sections(root):
    """Each section of a session: what it says, block by block in its order, without controls."""
    article = root.one(id="session")
    sections = {}
    for section in article.all("section"):
        if (key := section.attrs.get("id", "")) and section.all("h2"):
            sections[key] = [*read_blocks(section)]
    return sections


def read_blocks(element):
    """Headings, sentences, table cells and captions."""
    for child in element.children:
        if isinstance(child, str):
            if words := " ".join(child.split()):
                yield element.tag if element.tag != "a" else "text", words
        elif child.tag not in CONTROLS and "shortfall" not in child.attrs.get("class", ""):
            for tag, words in read_blocks(child):
                yield ("text" if child.tag in ("a", "span", "b", "strong") else tag), words


@pytest.mark.parametrize("names", ["shown", "hidden"])
def test_the_stored_page_says_what_the_file_says(witan, tmp_path, names):
    """Section by section: the same headings, sentences and tables in the same order."""
    story = Story("ada", "bob", "cyd", simulated=True).answers(ada="A.", bob="B *is*.", cyd="C.")
    story.casts("ada: bob > cyd", grades={"bob": {"accuracy": 8}, "cyd": 4}, notes="As [bob].")
    story.casts("bob: ada > cyd").abstains("cyd", "late")
    story.closing("So [A].", labels={"A": "ada", "B": "bob", "C": "cyd"}).closed("cyd was late")
    session = Session.of(story)
    place = tmp_path / "history.sqlite"
    store_sessions(place, [SessionImport("s1", session_record=session)])
    with desk(tmp_path, filled=False) as held:
        shown = "?reveal=1" if names == "shown" else ""
        stored = httpx2.get(f"{held.url}/sessions/s1{shown}", headers=HTML, timeout=60)
        saved = f"export.html{'' if shown else '?reveal=0'}"
        file = httpx2.get(f"{held.url}/api/sessions/s1/{saved}", timeout=60)
    if names == "shown":
        witan("show", "s1", "--history", place, "--html", tmp_path / "s.html")
        assert (tmp_path / "s.html").read_text(encoding="utf-8") == file.text
    on_page, in_file = (read_sections(parsed(each.text)) for each in (stored, file))

    assert list(on_page) == [*in_file, "conversation"]
    assert list(in_file) == ["verdict", "answer", "ranking", "ballots", "answers", "run"]
    for key, blocks in in_file.items():
        assert on_page[key] == blocks, key
    gaps = [
        [each.text for each in (box.all("p")[0], *box.all("li"))]
        for box in (parsed(each.text).one(class_="shortfall") for each in (file, stored))
    ]
    assert all(said in " ".join(gaps[1]) for said in gaps[0])
