"""Labels of a sheet stay on it: elsewhere answers have names, or the labels of the page."""

import json
import re
from dataclasses import replace

import pytest

from markup import parsed
from scripts import write_council
from sessions import Story, expense
from witan.core.blinding import Sheet
from witan.deliberation import events as e
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.surfaces.report.names import SeatNames
from witan.surfaces.web.rendering import render_session

LABEL = re.compile(r"(?<![\w'’])[A-Z](?![\w'’])")
"""A capital letter that stands alone: no sentence of ours has one but for a label."""

PART = '{"notes": "[{1}] is right; answer {2} is long; {2} it is", "ranking": [["{1}"], ["{2}"]]}'
TWICE = '{"notes": "x", "ranking": [["{1}"], ["{2}"], ["{3}"], ["{1}"], ["Q"]]}'
ONE = '{"ranking": [["{1}"]]}'

ORDER = ["Ada says", "Bob says", "Cyd says", "Dan says"]


@pytest.fixture
def saved(witan, tmp_path):
    """A session whose reviewers leave answers out, repeat them, and judge too few."""
    others = {name: [each for each in ORDER if name not in each.lower()] for name in NAMES}

    def review(name, text):
        return {"review": [{"prefers": others[name], "text": text}]}

    members = {
        "ada": review("ada", PART),
        "bob": review("bob", TWICE),
        "cyd": review("cyd", ONE) | {"repair": [{"prefers": others["cyd"], "text": ONE}]},
        "dan": {"review": [{"prefers": others["dan"]}]},
    }
    file = tmp_path / "session.json"
    seats = write_council(tmp_path, **members)
    said = witan("ask", "Is it so?", *seats, "--rule", "borda", "--save", file, "--seed", 3)
    assert said.status == 0, said.err
    check_words(said.err)
    return file


NAMES = ("ada", "bob", "cyd", "dan")


def check_words(*sentences: str) -> None:
    assert [text for text in sentences if LABEL.search(text)] == []


def ours(session: Session) -> list[str]:
    """All sentences about reviews that a record holds."""
    found = []
    for event in session.events:
        match event:
            case e.BallotCast():
                found += [*event.notes, event.lost or ""]
            case e.BallotRepaired():
                found.append(event.problem)
            case e.BallotAbstained():
                found.append(event.reason)
            case e.OutcomeChanged():
                found += [*event.outcome.abstentions.values(), *event.outcome.warnings]
            case e.SessionClosed():
                found += event.missing
            case _:
                pass
    return [text for text in found if text]


class TestNewSessions:
    """Records and displays of reviews that could not be read."""

    def test_the_record_names_answers(self, saved):
        """Notes, repairs, reasons and what is missing hold no label of a sheet."""
        session = session_from_json(saved.read_text(encoding="utf-8"))

        sentences = ours(session)

        check_words(*sentences)
        said = " ".join(sentences)
        assert "of its ranking: dan" in said
        assert "1 of the 3 answers" in said
        assert "not on its sheet" in said

    def test_show_names_answers_in_what_a_reviewer_wrote(self, witan, saved):
        """`show` names what a reviewer calls by its label; a bare letter stays, with its key."""
        shown = witan("show", saved).out

        assert "of its ranking: dan" in shown
        assert "more than once: ada" in shown
        quoted = r"said: \[bob\] is right; answer \[cyd\] is long; ([A-Z]) it is\n"
        key = re.search(rf"{quoted}\s+labels of its sheet: (.*)", shown)
        assert f"[{key[1]}] cyd" in key[2]
        readers = [line for line in shown.splitlines() if "reader:" in line or "abstain" in line]
        check_words(*readers)

    def test_the_page_has_its_own_labels_until_the_reveal(self, saved):
        """Before the reveal the page says its own labels of the same answers, then their names."""
        session = session_from_json(saved.read_text(encoding="utf-8"))
        labels = SeatNames.of(session, hides_names=True).labels

        veiled = parsed(render_session(session)).text
        revealed = parsed(render_session(session, show_names=True)).text

        assert f"of its ranking: {labels['dan']}" in veiled
        assert all(
            fact in veiled for fact in (f"[{labels['bob']}] is right", f"[{labels['cyd']}] is long")
        )
        assert all(fact in revealed for fact in ("[bob] is right", "[cyd] is long"))
        assert "of its ranking: dan" in revealed
        assert f"ranked more than once: {labels['ada']};" in veiled

    def test_a_review_in_two_orders_has_the_key_of_both_sheets(self, witan, tmp_path):
        """What it says of either sheet can be read: the page shows who stood where on each."""
        file = tmp_path / "mirrored.json"
        seats = write_council(tmp_path)
        assert witan("ask", "Is it so?", *seats, "--mirrored", "--save", file).status == 0
        session = session_from_json(file.read_text(encoding="utf-8"))

        page = parsed(render_session(session, show_names=True)).text

        assert page.count("Sheet, in order") == 3
        assert page.count("Reversed sheet, in order") == 3

    def test_events_name_answers(self, witan, saved):
        """Events for programs contain no label of a sheet either."""
        for line in witan("show", saved, "--events").out.splitlines():
            event = json.loads(line)
            if event["event"] in ("ballot_abstained", "ballot_repaired"):
                check_words(event.get("reason", ""), event.get("problem", ""))


def stored() -> Session:
    """A session as an earlier version recorded it, with labels of sheets in its sentences."""
    only = "its review judges only B of A, B, C, and the repair is no better"
    story = Story(*NAMES)
    story.answers(**{name: f"{name} says so." for name in NAMES})
    story.casts("ada: cyd > bob").casts("bob: dan > ada > cyd").casts("dan: ada > bob > cyd")
    story.tell(e.BallotRepaired, seat="cyd", problem="judges only B of A, B, C", reply="[B]")
    story.tell(e.BallotAbstained, seat="cyd", reason=only, spent=expense())
    story.closed(f"cyd cast no ballot: {only}")
    sheet = Sheet("ada", ("bob", "cyd", "dan"), ("A", "B", "C"), "n")
    notes = {
        "ada": ("not ranked: C", "not graded: A, B, C"),
        "bob": ("ranked more than once: 'Response A'; the first place counts",),
        "dan": ("not on the sheet: 'D'; dropped", "not ranked: B, C"),
    }
    events = []
    for event in story.events:
        if isinstance(event, e.SheetDrawn) and event.sheet.reviewer == "ada":
            events.append(replace(event, sheet=sheet))
        elif isinstance(event, e.BallotCast):
            shown = sheet.positions if event.seat == "ada" else None
            ballot = replace(event.ballot, positions=shown or event.ballot.positions)
            events.append(replace(event, ballot=ballot, notes=notes[event.seat]))
        else:
            events.append(event)
    return Session.of(events)


class TestStoredSessions:
    """Records of earlier versions, whose sentences hold labels of sheets."""

    def test_they_are_read_without_the_labels(self, witan, tmp_path):
        """They open, and say names where the ballot tells them, else how many answers are meant."""
        file = tmp_path / "old.json"
        file.write_text(session_to_json(stored()), encoding="utf-8")

        sentences = ours(session_from_json(file.read_text(encoding="utf-8")))
        shown = witan("show", file).out

        check_words(*sentences)
        assert "of its ranking: dan" in shown
        assert "a grade: bob, cyd, dan" in shown
        assert "ranked more than once" in shown
        assert "of its ranking: 2 answers" in shown
        assert "1 of the 3 answers" in shown

    def test_what_is_read_is_written_the_same_again(self):
        """A record that was read once is written, read and written to the same bytes."""
        once = session_to_json(session_from_json(session_to_json(stored())))

        assert session_to_json(session_from_json(once)) == once
