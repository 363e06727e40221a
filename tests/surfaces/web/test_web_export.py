"""``witan show --html``: a session as one self-contained file."""

import re

import pytest

from markup import parsed
from sessions import Story
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session
from witan.surfaces.web.rendering import style_source


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
