"""Before the reveal: the order in which a council is seated does not tell whose label is whose.

A council is seated in two orders, with seeds that give every seat the same label. All that is sent
to a reader, page by page and patch by patch, has to be the same to the letter.
"""

import re
from dataclasses import replace
from functools import partial

import pytest

from markup import parsed
from sessions import BEGAN, Story, spent
from witan.core.blinding import Sheet
from witan.deliberation import events as e
from witan.deliberation.ports import Seat
from witan.deliberation.session import Session
from witan.service.sessions.stream import Stream
from witan.surfaces.report.names import SeatNames
from witan.surfaces.web.live import Feed, LivePage
from witan.surfaces.web.rendering import export_html, render_live, render_session

SEATS = ("ada", "bob", "cyd", "dan")
TURNED = ("bob", "ada", "dan", "cyd")


def told(seats: tuple[str, ...], seed: int) -> list[e.Event]:
    """One fails, two are in a dead heat, one abstains, and the chairman is a member."""
    chairmen = (Seat("ada", "script:ada.toml", "script"),)
    notes = ("the chairman ada is a member too",)
    story = Story(*seats, seed=seed, chairmen=chairmen, notes=notes)
    for seat in SEATS:
        story.tell(e.AnswerStarted, seat=seat)
    story.tell(e.AnswerDelta, seat="bob", text="Bob says so at ")
    story.tell(e.AnswerFailed, seat="cyd", reason="is lost", spent=spent())
    for seat in ("bob", "dan", "ada"):
        text = f"The answer of {len(seat) * ord(seat[0])}."
        story.tell(e.AnswerDone, seat=seat, text=text, spent=spent())
    story.casts("ada: bob = dan").casts("bob: ada = dan").casts("dan: ada = bob")
    story.abstains("cyd", "late")
    labels = {label: seat for seat, label in labels_of(story.events).items() if seat != "cyd"}
    story.closing("So, by [A].", chairman="ada", labels=labels)
    story.closed("cyd did not answer: is lost", "cyd cast no ballot: late")
    # The order of a sheet is drawn: here it is the same.
    sheet = Sheet("", SEATS, tuple("ABCD"), "n")
    return [
        replace(each, sheet=replace(sheet, reviewer=each.sheet.reviewer))
        if isinstance(each, e.SheetDrawn)
        else each
        for each in story.events
    ]


def labels_of(events: list[e.Event]) -> dict[str, str]:
    return dict(SeatNames.of(Session.of(events), hides_names=True).labels)


@pytest.fixture(scope="module")
def two() -> tuple[list[e.Event], list[e.Event]]:
    """The same session of two orders of seats, alike in all labels from beginning to end."""
    first, second = told(SEATS, 1), told(TURNED, 226)
    for n in (1, len(first)):
        assert labels_of(first[:n]) == labels_of(second[:n])
    return first, second


class TestTheOrderOfTheSeats:
    """Nothing that is sent follows it."""

    @pytest.mark.parametrize("write", [render_session, partial(export_html, show_names=False)])
    def test_cannot_be_read_off_the_page_of_a_session(self, two, write):
        """Anchors, numbers, rows, cards, ties, sentences and forms: not one letter differs."""
        one, other = (write(Session.of(events)) for events in two)

        assert one == other
        assert "are too close to call" in one

    def test_has_a_legend_only_once_names_are_shown(self, two):
        """A row of labels without names would say nothing."""
        session = Session.of(two[0])
        blind, open_ = (
            parsed(render_session(session, show_names=shown)) for shown in (False, True)
        )

        assert blind.all("ul", class_="legend") == []
        assert "[A]" in open_.one("ul", class_="legend").text

    def test_cannot_be_read_off_a_recount(self, two):
        """Nor who is left out, nor what became of the leaders."""
        pages = []
        for events in two:
            session = Session.of(events)
            again = session.recount(rule="schulze", without=["bob"])
            pages.append(render_session(session, recount=again, without=("bob",)))

        assert pages[0] == pages[1]

    def test_cannot_be_read_off_the_page_of_a_session_under_way(self, two):
        """Whenever it is opened."""
        for n in range(1, len(two[0])):
            one, other = (render_live(LivePage(events[:n], clock=lambda: BEGAN)) for events in two)
            assert one == other

    @pytest.mark.anyio
    async def test_cannot_be_read_off_what_is_sent_to_a_reader_who_watches(self, two):
        """From the first patch to the whole page at the end, with a patch after every event."""
        sent = []
        for events in two:
            stream = Stream(lambda: 0.0)
            stream.mark = "0" * 8
            feed = Feed(partial(LivePage, clock=lambda: BEGAN))
            pieces = []
            for each in events:
                stream.take(each)
                stream.flush()
                made = feed.n_patches
                feed.take(stream, str)
                pieces.append(feed.patches_after(made))
            stream.end()
            feed.take(stream, str)
            sent.append(b"".join([*pieces, feed.end]))

        assert sent[0] == sent[1]
        assert sum(map(bool, pieces)) > 20
        assert b"session is over" in sent[0]


class TestTheChairman:
    """Who knows who that is does not know its label by that."""

    def test_is_called_so_and_by_no_label(self, two):
        """In notes, beside the final answer, and while it writes."""
        session = Session.of(two[0])
        at = next(n for n, x in enumerate(two[0], 1) if isinstance(x, e.SynthesisStarted))
        live = parsed(render_live(LivePage(two[0][:at], clock=lambda: BEGAN)))

        assert "the chairman is a member" in render_session(session)
        assert live.one(id="writer").all("span")[0].text == "the chairman"


class TestLanes:
    """What a reader who watches sees of them."""

    def test_are_called_anew_where_labels_move_up(self, two):
        """A seat that failed gets none of the final answer's, so that all lanes change at once."""
        cast = next(n for n, x in enumerate(two[0], 1) if isinstance(x, e.BallotCast))
        live = LivePage(two[0][: cast - 1], clock=lambda: BEGAN)
        for each in two[0][cast - 1 : cast]:
            live.take(each)
        patched = parsed(f"<main>{live.patch()}</main>")
        [lanes] = [p for p in patched.all("hx-partial") if p.attrs["hx-target"] == "#lanes"]

        assert [lane.one("h3").text for lane in lanes.all(class_="lane")] == ["A", "B", "C", "D"]

    def test_do_not_tell_a_name_while_it_is_written(self):
        """The end of a text waits for what follows, as that tells whether it is a name."""
        story = Story("gpt-4o", "bob").tell(e.AnswerStarted, seat="gpt-4o")
        live = LivePage(story.events, clock=lambda: BEGAN)
        sent = ""
        text = "Well, as GPT-4o I should say that it is so, surely."
        for n, piece in enumerate(re.findall(r"..?", text)):
            live.take(e.AnswerDelta(seq=9 + n, at=BEGAN, seat="gpt-4o", text=piece))
            sent += live.patch()

        assert "GPT" not in sent
        shown = [
            p for p in parsed(sent).all("hx-partial") if p.attrs["hx-target"] == "#lane-0-text"
        ]
        assert "as [model]" in " ".join(p.text for p in shown)
