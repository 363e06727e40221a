"""The live view: what each event changes of it, and what it looks like."""

from dataclasses import replace
from datetime import timedelta
from io import StringIO
from itertools import accumulate, groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sessions import BEGAN, Story, expense
from witan.deliberation import events as e
from witan.surfaces.cli.panel import Panel
from witan.surfaces.live_board import Board, LiveLine


def board_after(story: Story) -> Board:
    """The board once all of the story is told."""
    board = Board()
    for event in story:
        board = board.apply_event(event)
    return board


def picture(board: Board, *, width: int = 100, seconds: float = 0.0, **console) -> list[str]:
    """The lines that the panel draws, so long after the session began."""
    out = StringIO()
    options = {"width": width, "height": 40, "force_terminal": False, **console}
    held = Console(file=out, **options)
    panel = Panel(held, clock=lambda: BEGAN + timedelta(seconds=seconds))
    panel.show(board)
    held.print(panel)
    return out.getvalue().splitlines()


def last_picture(board: Board) -> list[str]:
    """The lines that stay once the panel is closed."""
    out = StringIO()
    console = Console(file=out, width=100, height=40, force_terminal=True, color_system=None)
    panel = Panel(console, clock=lambda: BEGAN + timedelta(seconds=9))
    with panel:
        panel.show(board)
    return out.getvalue().rpartition("\x1b[2K")[2].replace("\x1b[?25h", "").splitlines()


def row(lines: list[str], name: str) -> str:
    """The line of a seat."""
    [found] = [line for line in lines if line.split()[1:2] == [name]]
    return found.rstrip()


class TestBoard:
    """The board is folded from the events, one after the other."""

    def test_a_seat_goes_through_its_states(self):
        """Waiting, answering, answered, reviewing, voted: the last of them is shown."""
        story = Story("a", "b").answers(a="yes", b="no").casts("a: b")
        boards = accumulate(story, Board.apply_event, initial=Board())
        states = [board.seats[0].state for board in boards if board.seats]

        assert [state for state, _ in groupby(states)] == [
            "waiting",
            "answering",
            "answered",
            "reviewing",
            "voted",
        ]

    @given(pieces=st.lists(st.text(alphabet="ab \n", max_size=6), max_size=12))
    def test_words_are_counted_as_they_come_in(self, pieces):
        """However a text is cut into pieces, it has as many words as when it is whole."""
        line = LiveLine("a")
        for piece in pieces:
            line = line.hear(piece)

        assert line.words == len("".join(pieces).split())

    def test_a_retry_makes_void_what_was_written(self):
        """The words of a failed attempt are not counted, and its reason is noted."""
        story = Story("a", "b").tell(e.AnswerStarted, seat="a")
        story.tell(e.AnswerDelta, seat="a", text="one two three")
        story.tell(
            e.CallRetried, seat="a", stage="answer", attempt=1, reason="429", wait_seconds=1.0
        )

        line = board_after(story).seats[0]

        assert (line.words, line.note) == (0, "attempt 1 failed: 429")

    def test_withdrawn_reasoning_is_reported(self):
        """Its words are not counted."""
        story = Story("a", "b").tell(e.AnswerStarted, seat="a")
        story.tell(e.AnswerDelta, seat="a", text="one two three")
        story.tell(e.TextWithdrawn, seat="a", stage="answer")

        line = board_after(story).seats[0]

        assert line.words == 0
        assert "reasoning and was withdrawn" in "\n".join(picture(board_after(story)))

    def test_a_failed_debate_leaves_the_answer_standing(self):
        """Who fails to revise its answer has answered all the same."""
        story = Story("a", "b").answers(a="yes", b="no")
        story.tell(e.AnswerFailed, seat="a", round=2, reason="timed out", spent=expense())

        assert board_after(story).seats[0].state == "answered"

    def test_a_failed_chairman_is_news(self):
        """The board says who failed, why, and who writes instead."""
        story = Story("a", "b").tell(e.SynthesisStarted, chairman="x", mode="consensus")
        story.tell(e.SynthesisFailedOver, chairman="x", reason="down", next="y", spent=expense())

        board = board_after(story)

        [line] = board.news
        assert all(fact in line for fact in ("chairman x failed", "y takes over"))
        assert board.writer.name == "y"


class TestPicture:
    """The picture on the terminal."""

    def test_before_the_session_it_says_what_it_waits_for(self):
        """Nothing is known yet but that a council is being seated."""
        out = StringIO()
        panel = Panel(Console(file=out, width=80), clock=lambda: BEGAN)
        Console(file=out, width=80).print(panel)

        assert out.getvalue() == "witan · preparing the council · 0.0 s\n"

    def test_a_line_per_seat_has_state_amount_and_seconds(self):
        """Who still answers shows words and running seconds; who is done, tokens and its own."""
        story = Story("a", "b").tell(e.AnswerStarted, seat="a").tell(e.AnswerStarted, seat="b")
        story.tell(e.AnswerDelta, seat="a", text="one two")
        story.tell(e.AnswerDone, seat="b", text="yes", spent=expense())

        lines = picture(board_after(story), seconds=9)

        assert lines[0] == "witan · answers: 1 of 2 · 9.0 s"
        assert row(lines, "a").split() == ["…", "a", "answering", "2", "words", "8.0", "s"]
        assert row(lines, "b").split() == ["✓", "b", "answered", "7", "tokens", "2.0", "s"]

    def test_a_seat_that_has_voted_shows_what_all_of_it_took(self):
        """Seconds and tokens of both its calls; while it reviews, what the review takes alone."""
        story = Story("a", "b").answers(a="one two", b="yes")
        story.tell(e.ReviewStarted, seat="a")

        lines = picture(board_after(story), seconds=9)
        over = picture(board_after(story.casts("a: b")), seconds=9)

        assert row(lines, "a").split() == ["…", "a", "reviewing", "4.0", "s"]
        assert over[1].split() == ["✓", "a", "voted", "14", "tokens", "4.0", "s"]

    def test_a_failed_seat_has_its_reason(self):
        story = Story("a", "b").tell(e.AnswerStarted, seat="a")
        story.tell(e.AnswerFailed, seat="a", reason="timed out after 120 s", spent=expense())

        assert "failed" in row(picture(board_after(story)), "a")
        assert row(picture(board_after(story)), "a").endswith("timed out after 120 s")

    def test_the_ranking_shows_intervals_once_there_are_ballots(self):
        """Rank, candidate, score, interval as numbers and as a line on one scale."""
        story = Story("a", "b", "c").answers(a="x", b="y", c="z")
        for reviewer in ("a", "b", "c"):
            story.casts(f"{reviewer}: a > b > c")

        lines = picture(board_after(story), width=120)
        start = lines.index("ranking by borda after 3 ballots")

        assert [line.split()[:2] for line in lines[start + 1 : start + 4]] == [
            ["1", "a"],
            ["2", "b"],
            ["3", "c"],
        ]
        assert " to " in lines[start + 2]
        assert "●" in lines[start + 2]

    def test_a_narrow_terminal_loses_no_seat(self):
        """At 40 columns every seat keeps its line, and no line is wider."""
        story = Story("a-rather-long-name-of-a-model", "b", "c").answers(b="x")
        story.casts("b: b > c")

        lines = picture(board_after(story), width=40)

        assert max(len(line) for line in lines) <= 40
        assert [line.split()[1][0] for line in lines[1:4]] == ["a", "b", "c"]

    def test_a_scripted_seat_is_marked(self):
        """Title and seats say that nothing here is a model's."""
        lines = picture(board_after(Story("a", "b", simulated=True)))

        assert lines[0].startswith("simulated · ")
        assert all("simulated" in row(lines, name) for name in "ab")

    def test_names_and_reasons_steer_no_terminal(self):
        """An escape sequence in a name or a reason is shown, not carried out."""
        story = Story("\x1b[2Ja", "b").tell(e.AnswerStarted, seat="b")
        story.tell(e.AnswerFailed, seat="b", reason="\x1b]0;hi\x07", spent=expense())

        shown = "\n".join(picture(board_after(story)))

        assert "\x1b" not in shown
        assert "\\x1b[2Ja" in shown

    def test_a_degraded_session_says_so_on_its_last_picture(self):
        """It does not look complete once it is closed, and tells each reason once."""
        story = Story("a", "b").answers(a="x", b="y").abstains("a", "timed out")
        story.closed("a cast no ballot: timed out")

        lines = picture(board_after(story))

        assert lines[0].startswith("witan · degraded · ")
        assert "\n".join(lines).count("timed out") == 1

    def test_unsaved_events_are_marked_in_the_title(self):
        """The mark is gone with the next saved event."""
        events = [*Story("a", "b").answers(a="x", b="y")]
        early = [*events[:-2], replace(events[-2], provisional=True)]

        assert picture(board_after(early))[0].endswith(" · not saved yet")
        assert "saved" not in picture(board_after([*early, events[-1]]))[0]

    def test_the_last_picture_is_true_for_good(self):
        """Nobody is shown at work, and no stage as going on, where nothing is redrawn any more."""
        story = Story("a", "b").answers(a="x", b="y").casts("a: b")
        story.tell(e.ReviewStarted, seat="b")
        story.tell(e.SynthesisStarted, chairman="hazel", mode="consensus")

        lines = last_picture(board_after(story))

        assert lines[0].startswith("witan · reviews: 1 of 2 · ")
        assert "did not finish" in lines[2]
        assert "hazel" not in "\n".join(lines)
        assert "writing" not in "\n".join(lines)

    @given(
        width=st.integers(30, 120),
        note=st.text(alphabet="ab ", max_size=200),
        count=st.integers(2, 6),
    )
    def test_an_echoed_interrupt_has_room(self, width, note, count):
        """No line reaches so far right that ^C behind it would wrap, and shift the next picture."""
        names = [f"seat-{number}" for number in range(count)]
        story = Story(*names).tell(e.AnswerFailed, seat=names[0], reason=note, spent=expense())

        assert max(map(len, picture(board_after(story), width=width))) <= width - len("^C")

    def test_rank_name_and_score_take_precedence_over_interval_and_plot(self):
        """At 60 columns with fifteen seats the plot is shortened."""
        names = [f"candidate-{number:02}" for number in range(15)]
        story = Story(*names).answers(**dict.fromkeys(names, "x"))
        for reviewer in names[:3]:
            story.casts(f"{reviewer}: {' > '.join(n for n in names if n != reviewer)}")
        board = board_after(story)

        lines = picture(board, width=60, height=60)
        start = lines.index("ranking by borda after 3 ballots")

        for line, standing in zip(lines[start + 1 :], board.outcome.standings, strict=True):
            assert line.split()[:3] == [
                str(standing.rank),
                standing.candidate,
                f"{standing.score:.3f}",
            ]
        assert "●" not in "".join(lines)

    @given(n_at_work=st.integers(1, 8), height=st.integers(14, 30))
    def test_who_works_stays_visible_on_a_low_screen(self, n_at_work, height):
        """Seats at rest are hidden first, counted, and the picture fits the screen."""
        names = [f"seat-{number:02}" for number in range(30)]
        story = Story(*names).answers(**dict.fromkeys(names, "x"))
        story.casts(f"{names[0]}: {' > '.join(names[1:])}")
        for name in names[-n_at_work:]:
            story.tell(e.ReviewStarted, seat=name)

        lines = picture(board_after(story), height=height)

        assert len(lines) < height
        assert all(row(lines, name) for name in names[-n_at_work:])
        shown = sum("seat-" in line and line[0] in "…✓" for line in lines)
        assert any(line.startswith(f"… and {30 - shown} more seat") for line in lines)

    def test_a_poor_terminal_gets_plain_characters(self):
        """Where only ASCII can be shown, the plot is drawn in it."""
        story = Story("a", "b", "c").answers(a="x", b="y", c="z")
        for reviewer in ("a", "b", "c"):
            story.casts(f"{reviewer}: a > b > c")
        console = Console(file=StringIO(), width=120)
        panel = Panel(console, clock=lambda: BEGAN)
        panel.show(board_after(story))
        options = console.options.update(width=120)
        options.encoding = "ascii"

        text = "".join(segment.text for segment in console.render(panel, options))

        assert "●" not in text
        assert "o" in text


class TestLive:
    """The panel as a block."""

    def test_it_draws_at_once_and_leaves_the_last_picture(self):
        """The first frame is out before anything else happens; the last one stays."""
        out = StringIO()
        console = Console(file=out, force_terminal=True, width=80, height=30)
        with Panel(console) as panel:
            first = out.getvalue()
            panel.show(board_after(Story("a", "b").answers(a="x", b="y")))

        assert "preparing the council" in first
        assert "answered" in out.getvalue()

    def test_a_failure_before_the_session_leaves_nothing_behind(self):
        """Where no session began, the view is wiped away."""
        out = StringIO()
        console = Console(file=out, force_terminal=True, width=80, height=30)
        with pytest.raises(RuntimeError), Panel(console):
            raise RuntimeError

        assert out.getvalue().endswith("\x1b[2K")
