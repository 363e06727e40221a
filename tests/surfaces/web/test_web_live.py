"""A running session: its page at any moment, and the patches that follow."""

import re
from dataclasses import replace
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from markup import Element, parsed
from sessions import BEGAN, Story, expense
from witan.deliberation import events as e
from witan.service.sessions.running import Stream
from witan.surfaces.web.live import Feed, LivePage, follow_live
from witan.surfaces.web.rendering import render_live


def story() -> Story:
    """Ada writes in pieces, Bob at once; both vote."""
    told = Story("ada", "bob", simulated=True)
    told.tell(e.AnswerStarted, seat="ada").tell(e.AnswerStarted, seat="bob")
    told.tell(e.AnswerDelta, seat="ada", text="Ada ")
    told.tell(e.AnswerDelta, seat="ada", text="<says> *so*")
    told.tell(e.AnswerDone, seat="ada", text="Ada <says> *so*", spent=expense())
    told.tell(e.AnswerDone, seat="bob", text="Bob.", spent=expense())
    told.casts("ada: bob").casts("bob: ada")
    told.tell(e.SynthesisStarted, chairman="chair", mode="consensus")
    told.tell(e.SynthesisDelta, chairman="chair", text="All told")
    told.tell(
        e.SynthesisDone,
        chairman="chair",
        mode="consensus",
        text="All told [A].",
        labels={"A": "ada", "B": "bob"},
        spent=expense(),
    )
    return told.closed()


def partials(patch: str) -> dict[str, Element]:
    """Map each target and kind of swap to its content."""
    found = parsed(patch).all("hx-partial")
    keys = [f"{p.attrs['hx-target']} {p.attrs['hx-swap']}" for p in found]
    assert len(keys) == len(set(keys))
    return dict(zip(keys, found, strict=True))


def after(n: int, **options) -> LivePage:
    """The page after the first n events."""
    return LivePage([*story()][:n], **{"show_names": True, "clock": lambda: BEGAN, **options})


def apply_patches(live: LivePage, *events: e.Event) -> dict[str, Element]:
    for event in events:
        live.take(event)
    return partials(live.patch())


EVENTS = [*story()]


class TestPage:
    """The page as first sent."""

    def test_every_member_has_a_lane(self):
        """It shows the member's state, its time and the length of its text."""
        root = parsed(render_live(after(4, clock=lambda: EVENTS[3].at)))
        lanes = root.all(class_="lane")

        assert [lane.one("h3").text for lane in lanes] == ["ada", "bob"]
        assert lanes[0].one(class_="state").text == "answering"
        assert lanes[0].one(id="lane-0-amount").text == "1 word"
        assert lanes[0].one(data_elapsed="2.0").text == "2.0 s"
        assert lanes[0].one(id="lane-0-text").text == "Ada"
        assert "open" in lanes[0].attrs
        assert root.one(class_="ribbon").text.startswith("Simulated: scripts play the members")
        assert not any(lane.all(class_="mark") for lane in lanes)

    def test_complete_answers_are_rendered(self):
        """As Markdown, and so are incomplete ones as far as they came."""
        for n in (5, 6):
            root = parsed(render_live(after(n)))
            assert root.one(id="lane-0-text").one("em").text == "so"
        assert root.one(id="lane-1-text").text == ""

    def test_patches_start_after_the_page(self):
        """Their address holds the number of the last event on the page."""
        live = parsed(render_live(after(5))).one(id="live")

        assert live.attrs["hx-sse:connect"] == "/sessions/s1/live?after=5&reveal=1"
        assert live.attrs["hx-sse:close"] == "end"

    def test_the_address_names_the_stream(self):
        """A resumed session numbers its events anew; see `Stream.heard`."""
        live = parsed(render_live(after(5, show_names=False, mark="9f31ab02"))).one(id="live")

        assert live.attrs["hx-sse:connect"] == "/sessions/s1/live?after=5-9f31ab02"

    def test_without_javascript_the_page_reloads(self):
        [meta] = parsed(render_live(after(5))).one("noscript").all("meta")

        assert meta.attrs["http-equiv"] == "refresh"

    def test_names_are_hidden_by_default(self):
        """Lanes have the labels that the answers will have."""
        html = render_live(after(9, show_names=False))

        names = [lane.one("h3").text for lane in parsed(html).all(class_="lane")]
        assert names == ["A", "B"]
        assert '"ada"' not in html
        assert ">ada<" not in html

    def test_a_jury_is_shown_with_the_answers_it_judges(self):
        """Jurors write no answers; those of the earlier session are shown."""
        told = Story("ada", "bob")
        jury = (told.seat("pat"), told.seat("quin"))
        answers = tuple(e.StoredAnswer(seat, f"{seat} said.") for seat in ("ada", "bob"))
        told = Story("ada", "bob", jury=jury, answers=answers, parent="s0", relation="rejudged")

        root = parsed(render_live(LivePage([*told], show_names=True)))

        assert [lane.one("h3").text for lane in root.all(class_="lane")] == ["pat", "quin"]
        cards = root.all(class_="answer")
        assert [card.one(class_="prose").text for card in cards] == ["ada said.", "bob said."]


class TestPatches:
    def test_a_piece_of_text_is_sent_with_its_block(self):
        """Pieces are merged and rendered; nothing is sent again while nothing is added."""
        live = after(3)

        patch = apply_patches(live, EVENTS[3], EVENTS[4])

        assert patch["#lane-0-text-tail innerMorph"].text == "Ada <says> so"
        assert patch["#lane-0-text-tail innerMorph"].one("em").text == "so"
        assert patch["#lane-0-amount textContent"].text == "3 words"
        assert set(patch) == {"#lane-0-text-tail innerMorph", "#lane-0-amount textContent"}
        assert live.patch() == ""

    def test_a_finished_block_is_sent_once(self):
        """It goes before the block that is still being written."""
        live = after(3)
        pieces = ["# Title\n\nOne", " two.\n\n", "- three", "\n- four"]

        patches = [
            apply_patches(live, e.AnswerDelta(seq=9 + n, at=BEGAN, seat="ada", text=piece))
            for n, piece in enumerate(pieces)
        ]

        finished = [patch.get("#lane-0-text-tail beforebegin") for patch in patches]
        assert [each and each.text for each in finished] == ["Title", None, "One two.", None]
        tails = [patch.get("#lane-0-text-tail innerMorph") for patch in patches]
        assert [[li.text for li in tail.all("li")] for tail in tails[2:]] == [
            ["three"],
            ["three", "four"],
        ]
        whole = parsed(render_live(live)).one(id="lane-0-text")
        assert whole.text.split() == ["Title", "One", "two.", "three", "four"]

    def test_a_complete_text_shrinks_its_lane_to_a_line(self):
        """It is sent once, as markdown, in a lane that is closed and marked as answered."""
        patch = apply_patches(after(4), EVENTS[4], EVENTS[5])

        lane = patch["#lane-0 outerHTML"].one("details")
        assert "open" not in lane.attrs
        assert lane.one("em").text == "so"
        assert "answered" in lane.one("summary").text
        assert "#lane-0-text-tail innerMorph" not in patch
        assert "answers: 1 of 2" in patch["#status innerHTML"].text
        assert patch["#announced textContent"].text == "answers: 1 of 2"

    def test_a_failed_attempt_clears_its_text(self):
        """The lane shows only the next attempt."""
        live = after(4)
        told = Story("ada", "bob")
        retried = e.CallRetried(
            seq=9, at=BEGAN, seat="ada", stage="answer", attempt=1, reason="503", wait_seconds=1
        )
        again = e.AnswerDelta(seq=10, at=told.at, seat="ada", text="Anew")

        patch = apply_patches(live, EVENTS[4], retried, again)

        assert list(patch)[1] == "#lane-0-text outerHTML"
        assert patch["#lane-0-text outerHTML"].text == "Anew"
        assert "attempt 1 failed: 503" in patch["#lane-0-head innerHTML"].text

    def test_a_ballot_updates_ranking_and_matrix(self):
        """Both are morphed, so dots move and the focus stays."""
        patch = apply_patches(after(7), *EVENTS[7:11])

        assert patch["#ranking-so-far innerMorph"].all("circle")
        assert "1 of 2 cast" in patch["#ballots-so-far innerMorph"].text
        assert "pending" in patch["#ballots-so-far innerMorph"].text

    def test_an_unsaved_event_is_marked_until_it_is_saved(self):
        """The note appears with an early event and goes with a saved one."""
        live = after(3)
        early = apply_patches(live, replace(EVENTS[5], provisional=True))["#status innerHTML"].text
        same = apply_patches(live, replace(EVENTS[6], provisional=True))
        later = apply_patches(live, EVENTS[7])["#status innerHTML"].text

        assert early.split("\n")[0].endswith("not saved yet")
        assert "not saved yet" in same["#status innerHTML"].text
        assert "saved" not in later
        assert "not saved yet" in render_live(
            LivePage([*EVENTS[:5], replace(EVENTS[5], provisional=True)])
        )

    def test_a_member_without_an_answer_is_not_expected_to_review(self):
        """Its row says why at once, and it is not counted among the reviews."""
        told = Story("ada", "bob", "cyd", "dan").answers(ada="A.", bob="B.", cyd="C.")
        told.tell(e.AnswerFailed, seat="dan", reason="is lost", spent=expense())
        before, root = (
            parsed(render_live(LivePage(events, show_names=True, clock=lambda: BEGAN)))
            for events in ([*told], [*told.casts("ada: bob > cyd")])
        )

        assert "No ballots cast yet." in before.one(id="ballots").text
        assert "did not answer: is lost" in root.one(id="ballot-3").text
        assert "pending" in root.one(id="ballot-1").text
        assert "reviews: 1 of 3" in root.one(id="status").text

    def test_the_final_answer_streams(self):
        """Like the answers; the chairman has a lane's status."""
        start = next(i for i, x in enumerate(EVENTS) if isinstance(x, e.SynthesisStarted))
        patch = apply_patches(after(start), *EVENTS[start : start + 2])

        assert patch["#final-text-tail innerMorph"].text == "All told"
        assert "writing" in patch["#writer innerHTML"].text

    def test_the_last_patch_is_the_whole_page(self):
        """The stored session's page replaces the lanes and the status."""
        patch = apply_patches(after(6), *EVENTS[6:])

        page = patch["#session innerMorph"]
        assert set(patch) == {"#announced textContent", "#session innerMorph"}
        byline, text = page.one(id="answer").all("p")[:2]
        assert byline.text.startswith("written by")
        assert text.one("a", class_="cite").text == "[A]"
        assert "complete" in page.one(class_="eyebrow").text
        assert patch["#announced textContent"].text == "The session is over: complete."

    def test_the_writer_stands_above_the_final_answer_from_the_beginning(self):
        """Where the page of the stored session names it."""
        html = render_live(after(1))

        assert html.index('id="writer"') < html.index('id="final-text"')

    def test_patches_target_existing_elements(self):
        """Every target of a whole session is on its first page."""
        live = after(1)
        ids = {x.attrs.get("id") for x in parsed(render_live(live)).all()}
        targets = set()
        for event in EVENTS[1:]:
            live.take(event)
            targets |= {t.split()[0].removeprefix("#") for t in partials(live.patch())}

        assert targets <= ids

    def test_a_patched_page_equals_a_freshly_loaded_one(self):
        """From any moment on."""
        ends = [
            apply_patches(after(n), *EVENTS[n:])["#session innerMorph"]
            for n in (1, 5, 9, len(EVENTS) - 1)
        ]

        assert all(end == ends[0] for end in ends)


async def follow_messages(stream: Stream, after: int) -> list[tuple[int, str]]:
    """All messages to a reader: number and data; a message without number ends the stream."""
    feed = Feed(partial(LivePage, show_names=True))
    with anyio.fail_after(60):
        sent = [piece async for piece in follow_live(stream, feed, after=after)]
    text = b"".join(sent).decode()
    messages = [m for m in text.split("\n\n") if m and not m.startswith(":")]
    assert messages.pop() == "event: end\ndata: end"
    out = []
    for message in messages:
        number = re.match(rf"id: (\d+)-{stream.mark}\n", message)
        data = [line.removeprefix("data: ") for line in message.split("\n")[1:]]
        out.append((int(number[1]), "\n".join(data)))
    return out


def stream_of(*events: e.Event) -> Stream:
    stream = Stream(lambda: 0.0)
    for event in events:
        stream.take(event)
    return stream


@pytest.mark.anyio
class TestStream:
    """Over server-sent events."""

    async def test_a_reader_gets_only_new_patches(self):
        """A lost connection resumes after the last patch received."""
        stream = stream_of(*EVENTS[:6])

        async with anyio.create_task_group() as group:

            async def tell() -> None:
                await anyio.sleep(0.2)
                for event in EVENTS[6:-1]:
                    stream.take(event)
                await anyio.sleep(0.2)
                stream.take(EVENTS[-1])
                stream.end()

            group.start_soon(tell)
            messages = await follow_messages(stream, after=6)

        assert '"#lane-0"' not in messages[0][1]
        assert '"#lane-1"' in messages[0][1]
        assert [number for number, _ in messages] == sorted({number for number, _ in messages})
        assert messages[-1][0] == EVENTS[-1].seq
        assert "#session" in messages[-1][1]

    async def test_a_page_older_than_a_resume_is_cleared_first(self):
        """Texts that it shows in part are sent from the beginning."""
        start = next(i for i, x in enumerate(EVENTS) if isinstance(x, e.SynthesisDelta))
        stream = stream_of(*EVENTS[:5], *EVENTS[6 : start + 1])
        following = follow_live(stream, Feed(partial(LivePage, show_names=True)), after=0)

        patch = (await anext(following)).decode()
        await following.aclose()

        found = partials("\n".join(x[6:] for x in patch.splitlines() if x[:6] == "data: "))
        assert found["#final-text outerHTML"].text == "All told"
        assert found["#lane-0 outerHTML"].one(id="lane-0-text").text == "Ada <says> so"

    async def test_an_interrupted_session_ends_as_interrupted(self):
        """The page neither waits for ever nor looks complete."""
        stream = stream_of(*EVENTS[:8])
        stream.end()

        [(_, data)] = await follow_messages(stream, after=3)

        page = partials(data)["#session innerMorph"]
        assert "finished calls are saved" in page.one(class_="shortfall").text

    async def test_many_pieces_are_merged_into_few_patches(self):
        """What arrives together is sent together."""
        stream = stream_of(*EVENTS[:3])
        pieces = [
            e.AnswerDelta(seq=4 + n, at=BEGAN, seat=seat, text=f"{n} ")
            for n, seat in enumerate(["ada", "bob"] * 500)
        ]

        async with anyio.create_task_group() as group:

            async def tell() -> None:
                for piece in pieces:
                    stream.take(piece)
                    stream.flush()
                    await anyio.lowlevel.checkpoint()
                stream.end()

            group.start_soon(tell)
            messages = await follow_messages(stream, after=3)

        assert len(messages) < 40

    async def test_a_long_text_is_patched_less_often(self):
        """Rendering it takes the smaller part of the server's time."""
        rows = "| a | b |\n|---|---|\n" + "| cell | cell |\n" * 1_500
        pieces = [e.AnswerDelta(seq=n, at=BEGAN, seat="ada", text=rows) for n in (4, 5)]
        stream, feed = stream_of(*EVENTS[:3], pieces[0]), Feed(partial(LivePage, show_names=True))

        began = anyio.current_time()
        feed.take(stream, str)
        rendered = anyio.current_time()
        stream.take(pieces[1])
        stream.flush()
        await feed.wait(stream)

        assert anyio.current_time() - rendered > 2 * (rendered - began)

    async def test_a_silent_session_sends_a_ping(self):
        """As an event, because scripts do not see comments."""
        following = follow_live(
            stream_of(*EVENTS[:8]), Feed(LivePage), after=8, heartbeat_seconds=0.05
        )

        with anyio.fail_after(60):
            pieces = [await anext(following) for _ in range(2)]
        await following.aclose()

        assert pieces == [b"event: here\ndata: here\n\n"] * 2

    async def test_the_end_reports_whether_the_record_was_saved(self):
        """The page says what the session's events do not."""
        stream = stream_of(*EVENTS)
        stream.end()
        following = follow_live(stream, Feed(LivePage), problem=lambda: "the disk is full")

        [piece] = [piece async for piece in following]

        assert "the disk is full" in piece.decode()
