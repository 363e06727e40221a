"""A person's blind vote: the paper as a form, the form as a ranking, and what is revealed."""

from dataclasses import replace

import pytest

from markup import parsed
from sessions import Story
from stored_ballots import store_sessions
from witan.core.blinding import Sheet
from witan.deliberation.openings import own_question
from witan.deliberation.session import Session
from witan.errors import InvalidBallot
from witan.history import History, SessionImport
from witan.history.ballots import Paper, prepare_paper, reveal
from witan.surfaces.web.rendering import render_reveal, render_vote
from witan.surfaces.web.routes_sessions import read_places

SHEET = Sheet("zoe", ("x", "y", "z"), ("A", "B", "C"), "n")

PAPER = Paper(
    "s1", "Which?", simulated=False, sheet=SHEET, texts={"A": "One *is*.", "B": "Two.", "C": "3."}
)


class TestPaper:
    """Before the vote."""

    def test_it_is_a_form_that_works_without_a_script(self):
        """Every answer has a place to be chosen, which has a label."""
        form = parsed(render_vote(PAPER)).one("form")

        assert (form.attrs["method"], form.attrs["action"]) == ("post", "/sessions/s1/vote")
        assert [s.attrs["name"] for s in form.all("select")] == ["place-A", "place-B", "place-C"]
        assert all("required" in s.attrs for s in form.all("select"))
        assert [o.attrs["value"] for o in form.all("select")[0].all("option")] == [
            "",
            "1",
            "2",
            "3",
        ]
        named = {label.attrs["for"] for label in form.all("label")}
        assert named == {s.attrs["id"] for s in form.all("select")}

    def test_a_question_that_nobody_asked_is_shown_without_its_instruction(self):
        """What reviewers are told of texts without a question is none of a voter's business."""
        question = own_question({"a": "One.", "b": "Two."})

        heading = parsed(render_vote(replace(PAPER, question=question))).one("h1")
        assert heading.text == "Which of these texts is best?"

    def test_it_tells_nothing_of_who_wrote_what(self):
        """Neither candidates nor the panel's ranking are on it."""
        html = render_vote(PAPER)

        assert '"x"' not in html
        assert ">x<" not in html
        assert "standings" not in html

    def test_a_mistake_keeps_what_was_chosen(self):
        """The problem is told, and the places stay as they were given."""
        given = {"place-A": "2", "place-B": ""}
        root = parsed(render_vote(PAPER, problem="the ballot of zoe does not rank B", values=given))

        assert "not rank B" in root.one(role="alert").text
        chosen = [o.attrs["value"] for o in root.all("option") if "selected" in o.attrs]
        assert chosen == ["2"]


class TestForm:
    """From places to a ranking."""

    def test_equal_places_are_ties(self):
        """Places order the answers; gaps between them do not matter."""
        form = {"place-A": "3", "place-B": "1", "place-C": "3"}

        assert read_places(SHEET, form) == (("y",), ("x", "z"))

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ("", "not rank"),
            ("0", "the rank '0'"),
            ("4", "from 1 to 3"),
            ("1.5", "the rank '1.5'"),
            ("²", "the rank '²'"),
            ("9" * 5000, "from 1 to 3"),
        ],
        ids=["none", "zero", "too low", "fraction", "superscript", "long"],
    )
    def test_a_place_that_is_none_is_refused(self, given, said):
        """The error names the label and what a place is."""
        form = {"place-A": "1", "place-B": given, "place-C": "2"}

        with pytest.raises(InvalidBallot, match="B") as raised:
            read_places(SHEET, form)

        assert said in str(raised.value)


class TestReveal:
    """After the vote."""

    def test_names_and_the_panels_ranking_stand_beside_ones_own(self, tmp_path):
        """Each answer has the person's place, its author and the panel's rank."""
        story = Story("ada", "bob", "cyd").answers(ada="A.", bob="B.", cyd="C.")
        story.casts("ada: bob > cyd").casts("bob: ada > cyd").casts("cyd: ada > bob")
        record = Session.of(story.closed())
        place = store_sessions(tmp_path / "h.sqlite", [SessionImport("s1", session_record=record)])
        with History.open(place) as history:
            paper = prepare_paper(history, "s1", "zoe")
            revealed = reveal(history, paper, (("cyd",), ("ada", "bob")))

        root = parsed(render_reveal(paper.question, revealed))

        rows = [row.all()[0].text for row in root.one("tbody").all("tr")]
        assert rows == ["1", "2", "2"]
        assert root.one("tbody").all("th")[0].text == "cyd"
        assert "picked different answers" in root.one(role="status").text
