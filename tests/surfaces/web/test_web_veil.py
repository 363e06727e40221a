"""The order of the seats does not reveal authors before the reveal.

A council is seated in two orders, with seeds that give every seat the same label. All that is sent
to a reader, page by page and patch by patch, must be identical.
"""

import re
from dataclasses import replace
from functools import partial

import pytest

from markup import parsed
from sessions import BEGAN, Story, expense
from witan.core.blinding import Sheet
from witan.deliberation import events as e
from witan.deliberation.ports import Seat
from witan.deliberation.session import Session
from witan.service.sessions.running import Stream
from witan.surfaces.report.names import SeatNames
from witan.surfaces.report.session import RecountView
from witan.surfaces.web.live import Feed, LivePage
from witan.surfaces.web.rendering import export_html, render_live, render_session

SEATS = ("ada", "bob", "cyd", "dan")
TURNED = ("bob", "ada", "dan", "cyd")


def events(seats: tuple[str, ...], seed: int) -> list[e.Event]:
    """One member fails, two tie, one abstains, and the chairman is a member."""
    chairmen = (Seat("ada", "script:ada.toml", "script"),)
    notes = ("the chairman ada is also a member",)
    story = Story(*seats, seed=seed, chairmen=chairmen, notes=notes)
    for seat in SEATS:
        story.tell(e.AnswerStarted, seat=seat)
    story.tell(e.AnswerDelta, seat="bob", text="Bob says so at ")
    story.tell(e.AnswerFailed, seat="cyd", reason="is lost", spent=expense())
    for seat in ("bob", "dan", "ada"):
        text = f"The answer of {len(seat) * ord(seat[0])}."
        story.tell(e.AnswerDone, seat=seat, text=text, spent=expense())
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
    """The same session with two orders of seats and identical labels."""
    first, second = events(SEATS, 1), events(TURNED, 2)
    for n in (1, len(first)):
        assert labels_of(first[:n]) == labels_of(second[:n])
    return first, second


class TestSeatOrder:
    """Output is independent of it."""

    @pytest.mark.parametrize("write", [render_session, partial(export_html, show_names=False)])
    def test_the_session_page_does_not_depend_on_it(self, two, write):
        """Anchors, numbers, rows, cards, ties, sentences and forms are identical."""
        one, other = (write(Session.of(events)) for events in two)

        assert one == other
        assert "are too close to call" in one

    def test_the_legend_appears_only_with_names(self, two):
        """Labels without names would say nothing."""
        session = Session.of(two[0])
        blind, open_ = (
            parsed(render_session(session, show_names=shown)) for shown in (False, True)
        )

        assert blind.all("ul", class_="legend") == []
        assert "[A]" in open_.one("ul", class_="legend").text

    def test_a_recount_does_not_depend_on_it(self, two):
        """Nor do excluded reviewers and changes of leader."""
        pages = []
        for events in two:
            session = Session.of(events)
            again = session.recount(rule="schulze", without=["bob"])
            pages.append(render_session(session, recount=RecountView(again, ("bob",))))

        assert pages[0] == pages[1]

    def test_the_page_of_a_running_session_does_not_depend_on_it(self, two):
        """At any moment."""
        for n in range(1, len(two[0])):
            one, other = (render_live(LivePage(events[:n], clock=lambda: BEGAN)) for events in two)
            assert one == other

    @pytest.mark.anyio
    async def test_patches_do_not_depend_on_it(self, two):
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


class TestChairman:
    """Who knows the chairman does not learn its label."""

    def test_it_is_shown_by_role_not_by_label(self, two):
        """In notes, beside the final answer, and while it writes."""
        session = Session.of(two[0])
        at = next(n for n, x in enumerate(two[0], 1) if isinstance(x, e.SynthesisStarted))
        live = parsed(render_live(LivePage(two[0][:at], clock=lambda: BEGAN)))

        assert "the chairman is also a member" in render_session(session)
        assert live.one(id="writer").all("span")[0].text == "the chairman"


class TestLanes:
    """Lanes during a running session."""

    def test_lanes_are_relabelled_when_a_seat_fails(self, two):
        """A failed seat has no label in the final answer, so all lanes change at once."""
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
            p
            for p in parsed(sent).all("hx-partial")
            if p.attrs["hx-target"].startswith("#lane-0-text")
        ]
        assert "as [model]" in " ".join(p.text for p in shown)
