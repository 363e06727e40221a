"""A session as text: the trust line, a model's words made safe, and everything it produced."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions import Story
from witan.core.blinding import Sheet
from witan.deliberation import events as e
from witan.deliberation.costs import Spending
from witan.deliberation.ports import Expense
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session
from witan.service.text import Folding, Page, readable, span
from witan.service.trust import cost_range_text, duration_text, session_trust
from witan.surfaces.report.session import session_report
from witan.surfaces.report.text import report_text


def three(**fields) -> Story:
    """Three seats that answer, a clearly ahead on all ballots."""
    story = Story("a", "b", "c", **fields).answers(a="Yes.", b="No.", c="Perhaps.")
    for reviewer in ("a", "b", "c"):
        story.casts(f"{reviewer}: a > b > c")
    return story


def session_text(story: Story) -> str:
    """The whole session as text."""
    return "\n".join(report_text(Page(), session_report(Session.of(story))))


def columns(line):
    """Columns that a line takes where every eighth is a tab stop."""
    taken = 0
    for piece in re.split("(\t)", line):
        taken += 8 - taken % 8 if piece == "\t" else span(piece)
    return taken


class TestTrust:
    """One line says how far the text above it can be trusted."""

    def test_a_complete_session_says_votes_cost_and_time(self):
        """Reviewers, ties, the firmness of the lead, effective votes, cost and seconds in order."""
        parts = session_trust(Session.of(three().closing("Yes.").closed())).split(" · ")

        assert parts[0] == "3 of 3 reviewers"
        assert parts[-2:] == ["$0.070", "38 s"]
        assert any("could end the lead" in part for part in parts)
        assert any("effective votes" in part for part in parts)

    def test_a_degraded_session_says_by_what(self):
        """The line ends with the status and every sentence of what is missing."""
        line = session_trust(Session.of(three().closed("d timed out", "e refused")))

        assert line.endswith(" · degraded: d timed out; e refused")

    def test_an_interrupted_session_never_looks_complete(self):
        """Without its end a session is called interrupted."""
        line = session_trust(Session.of(three()))

        assert " s until its last event · " in line
        assert line.endswith(" · interrupted: 3 of 3 answers, 3 of 3 ballots kept")

    def test_interrupted_before_an_outcome_it_says_once_how_far_it_came(self):
        """That too few ballots were cast would be no news."""
        line = session_trust(Session.of(Story("a", "b").answers(a="Yes.")))

        assert line.count("interrupted") == line.count(" of 2 ") == 1
        assert line.endswith(" · interrupted: 1 of 2 answers kept")
        assert "no outcome" not in line

    def test_who_failed_the_gate_is_named(self):
        """An answer that was shut out is no detail of the standings."""
        story = three().tell(e.GateVerdict, seat="b", flags=("personal data",)).closed()

        assert " · b failed the safety gate · " in session_trust(Session.of(story))

    def test_without_an_outcome_the_trust_line_counts_the_ballots(self):
        """Too few ballots are not called a tie."""
        story = Story("a", "b").answers(a="Yes.", b="No.").abstains("a", "timed out")
        story = story.closed("a cast no ballot: timed out")

        assert session_trust(Session.of(story)).startswith("0 of 2 reviewers · no outcome · ")

    def test_a_simulated_session_is_marked_first(self):
        assert session_trust(Session.of(three(simulated=True).closed())).startswith("simulated · ")

    @pytest.mark.parametrize(
        ("approved", "words"),
        [(True, "approved"), (False, "rejected"), (None, "neither approved nor rejected")],
    )
    def test_the_trust_line_begins_with_the_verdict(self, approved, words):
        story = three().closing("…", mode="verdict", approved=approved).closed()

        assert session_trust(Session.of(story)).startswith(f"{words} · ")

    @pytest.mark.parametrize(
        ("cost", "text"),
        [
            (Spending(0.0412, 0.0412, 0.0412), "$0.041"),
            (Spending(0.0, 0.0, 0.0), "$0"),
            (Spending(0.00123, 0.00123, 0.00123), "$0.0012"),
            (Spending(0.00001, 0.00001, 0.00001), "$0.000010"),
            (Spending(None, 0.00001, 1.0), "cost unknown, at most $1.00"),
            (Spending(12.5, 12.5, 12.5), "$12.50"),
            (Spending(None, 0.012, None), "at least $0.012"),
            (Spending(None, 0.0, None), "cost unknown"),
        ],
    )
    def test_an_unknown_cost_is_never_shown_as_zero(self, cost, text):
        """The known part is a lower bound."""
        assert cost_range_text(cost) == text

    def test_a_session_says_how_much_a_lost_call_may_have_cost(self):
        """As the report of a batch does."""
        story = Story("ada", "bob").answers(ada="So.")
        story.tell(e.AnswerStarted, seat="bob", worst_usd=0.05)

        assert "at least $0.010, at most $0.060" in session_trust(Session.of(story))

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [(0.04, "0.0 s"), (4.21, "4.2 s"), (9.96, "10 s"), (38.2, "38 s"), (185.0, "3 min 5 s")],
    )
    def test_durations_are_rounded_to_what_matters(self, seconds, text):
        """Tenths of short ones, whole seconds of longer ones."""
        assert duration_text(seconds) == text


class TestReadable:
    """A model's text keeps its lines, and steers no terminal."""

    @given(st.text())
    def test_nothing_that_steers_is_left(self, text):
        """No control character but the end of a line and the tab survives."""
        left = set(readable(text))

        assert not {c for c in left if ord(c) < 32 or 127 <= ord(c) < 160} - {"\n", "\t"}
        assert not left & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069")

    @given(st.lists(st.text()))
    def test_it_may_come_in_pieces(self, pieces):
        """However a text is cut, the pieces read as the whole does."""
        assert "".join(map(readable, pieces)) == readable("".join(pieces))

    def test_ordinary_prose_is_untouched(self):
        """Line ends, tabs, no-break spaces and joined emoji stay as they are."""
        prose = "Un\u202fpeu\u00a0:\n\n\tif x: 👩\u200d💻 naïve 漢字\n"

        assert readable(prose) == prose

    @given(st.lists(st.text(alphabet="ab \t\n漢")), st.integers(3, 30))
    def test_wrapping_is_independent_of_chunks(self, pieces, width):
        whole, parts = Folding(width), Folding(width)
        folded = "".join(map(parts.take, pieces)) + parts.end()

        assert folded == whole.take("".join(pieces)) + whole.end()

    def test_an_escape_sequence_is_shown(self):
        """What would clear the screen is spelt out instead."""
        assert readable("a\x1b[2Jb\rc") == "a\\x1b[2Jbc"


class TestWhole:
    """Everything a session produced, the verdict first."""

    def test_it_reads_from_the_verdict_to_the_run(self):
        """Question, verdict, answer, ranking, ballots, answers and run follow each other."""
        text = session_text(three().closing("Yes, it says [A].", labels={"A": "a"}).closed())

        places = [
            text.index(part)
            for part in (
                "Which?", "Verdict", "Too close to call. a leads", "$0.070",
                "Answer", "written by chair", "Yes, it says [A].", "[A] a",
                "The rule borda counted 3 ballots",
                "Ballots", "b: a > c", "Perhaps.", "Run",
            )
        ]  # fmt: skip
        assert places == sorted(places)

    def test_a_ballot_shows_places_and_notes(self):
        """They are places on the sheet and notes of the reviewer."""
        story = Story("a", "b", "c").answers(a="Yes.", b="No.", c="Perhaps.")
        story.casts("a: b > c", positions={"b": 2, "c": 1}, notes="b is\nright")

        text = session_text(story.closed())
        assert all(fact in text for fact in ("b [place 2]", "c [place 1]"))
        assert "place on the reviewer's sheet" in text

    def test_a_ballot_shows_its_grades(self):
        """Each candidate has a grade, weighed by the rubric."""
        story = Story("a", "b", "c").answers(a="Yes.", b="No.", c="Perhaps.")
        story.casts("a: b > c", positions={"b": 2, "c": 1}, grades={"b": {"accuracy": 9}, "c": 7})

        text = session_text(story.closed())
        assert "b [place 2] > c [place 1, grade 7.0]" in text

    def test_letters_are_joined_as_they_were_written(self):
        """Joiners of ordinary prose stay in question, answers, notes and final answer."""
        joined = "می\u200cخواهم"
        story = Story("a", "b", question=joined).answers(a=joined, b="No.")
        text = session_text(story.casts("b: a", notes=joined).closing(joined).closed())

        assert text.count(joined) == 4
        assert "\\u200c" not in text

    @given(
        st.text(alphabet=st.sampled_from("ab 漢字\t\n\u200d👩"), max_size=200), st.integers(20, 40)
    )
    @example("\u200d\t\t\ta", 20)  # a word without width
    def test_a_terminal_folds_at_words(self, text, width):
        """No line is wider than the terminal but for one long word, and no letter is lost."""
        lines = Page(width=width).prose(text).split("\n")

        assert "".join(lines).split() == text.replace("\n", "").split() or "".join(
            "".join(lines).split()
        ) == "".join(text.split())
        assert all(columns(line) <= width for line in lines if len(line.split()) > 1)

    def test_seats_without_answer_or_ballot_say_why(self):
        """Nobody is left out for having failed."""
        story = Story("a", "b", "c").answers(a="Yes.", b="No.")
        story.tell(e.AnswerFailed, seat="c", reason="401", spent=Expense())
        story.casts("a: b").abstains("b", "its review is no ballot").closed("c did not answer: 401")

        text = session_text(story)

        assert "c did not answer: 401" in text
        assert "b abstained" in text
        assert "degraded" in text.splitlines()[0]
        assert "note: degraded: 2 of 3 answered; 1 of 3 voted" in text

    def test_a_shortfall_names_the_command_that_mends_it(self):
        """Where commands are typed."""
        story = Story("a", "b", "c").answers(a="Yes.", b="No.", c="Perhaps.")
        story.casts("a: b > c").casts("b: a > c").abstains("c", "late").closed("c was late")
        lines = [*report_text(Page(commands=True), session_report(Session.of(story)))]

        assert "Retry c: witan retry s1" in lines

    def test_answers_steer_no_terminal(self):
        """An escape sequence in an answer, a note or a final answer is shown."""
        story = Story("a", "b").answers(a="\x1b[2J", b="No.")
        story.casts("a: b", notes="\x1b[2J").closing("\x1b[2J")

        assert "\x1b" not in session_text(story)

    def test_a_simulated_session_says_so_once(self):
        """In its first line."""
        text = session_text(three(simulated=True).closing("Yes.").closed())

        assert text.startswith("simulated session · s1")
        assert text.casefold().count("simulated") == 1


class TestInterrupted:
    """A session that was interrupted."""

    def test_reviewers_that_were_never_called_did_not_abstain(self):
        """Ballots and record state how far each reviewer came."""
        story = Story("a", "b", "c", "d").answers(a="Yes.", b="No.", c="Perhaps.", d="Never.")
        story.casts("a: b > c > d").abstains("b", "timed out")
        story.tell(e.SheetDrawn, sheet=Sheet("c", ("a", "b", "d"), ("A", "B", "C"), "n"))
        record = json.loads(session_to_json(Session.of(story)))

        lines = session_text(story).splitlines()
        assert {"b abstained: timed out", "c: did not finish", "d: not asked"} < set(lines)
        assert [ballot.get("reason") for ballot in record["ballots"]] == [
            None, "timed out", "did not finish", "not asked"
        ]  # fmt: skip

    def test_members_that_were_never_called_did_not_fail(self):
        """Only an answer that was begun did not finish."""
        story = Story("a", "b", "c").answers(a="Yes.").tell(e.AnswerStarted, seat="b")
        session = Session.of(story)

        assert session.unanswered == {"b": "did not finish", "c": "not asked"}
        assert [ballot.reason for ballot in session.ballots] == ["not asked"] * 3
