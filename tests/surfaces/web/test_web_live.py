"""A session under way: its page at any moment, and what is patched into it after that."""

import re
from dataclasses import replace
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from markup import Element, parsed
from sessions import BEGAN, Story, spent
from witan.deliberation import events as e
from witan.service.sessions.stream import Stream
from witan.surfaces.web.live import Feed, LivePage, follow_live
from witan.surfaces.web.rendering import render_live


def story() -> Story:
    """Ada writes in pieces, Bob at once; both vote."""
    told = Story("ada", "bob", simulated=True)
    told.tell(e.AnswerStarted, seat="ada").tell(e.AnswerStarted, seat="bob")
    told.tell(e.AnswerDelta, seat="ada", text="Ada ")
    told.tell(e.AnswerDelta, seat="ada", text="<says> *so*")
    told.tell(e.AnswerDone, seat="ada", text="Ada <says> *so*", spent=spent())
    told.tell(e.AnswerDone, seat="bob", text="Bob.", spent=spent())
    told.casts("ada: bob").casts("bob: ada")
    told.tell(e.SynthesisStarted, chairman="chair", mode="consensus")
    told.tell(e.SynthesisDelta, chairman="chair", text="All told")
    told.tell(
        e.SynthesisDone,
        chairman="chair",
        mode="consensus",
        text="All told [A].",
        labels={"A": "ada", "B": "bob"},
        spent=spent(),
    )
    return told.closed()


def partials(patch: str) -> dict[str, Element]:
    """Target and way of swapping, to what is swapped in."""
    found = parsed(patch).all("hx-partial")
    keys = [f"{p.attrs['hx-target']} {p.attrs['hx-swap']}" for p in found]
    assert len(keys) == len(set(keys))
    return dict(zip(keys, found, strict=True))


def after(n: int, **options) -> LivePage:
    """The page after the first n events."""
    return LivePage([*story()][:n], **{"show_names": True, "clock": lambda: BEGAN, **options})


def patched(live: LivePage, *events: e.Event) -> dict[str, Element]:
    for event in events:
        live.take(event)
    return partials(live.patch())


EVENTS = [*story()]


class TestPage:
    """The page as it is first sent."""

    def test_every_member_has_a_lane(self):
        """It says what the member does, for how long, and how much it has written."""
        root = parsed(render_live(after(4, clock=lambda: EVENTS[3].at)))
        lanes = root.all(class_="lane")

        assert [lane.one("h3").text for lane in lanes] == ["ada", "bob"]
        assert lanes[0].one(class_="state").text == "answering"
        assert lanes[0].one(id="lane-0-amount").text == "1 word"
        assert lanes[0].one(data_elapsed="2.0").text == "2.0 s"
        assert lanes[0].one(id="lane-0-text").text == "Ada"
        assert all(lane.all(class_="mark") for lane in lanes)

    def test_whole_answers_are_rendered(self):
        """What is complete stands as markdown, what is not as plain text."""
        root = parsed(render_live(after(6)))

        assert root.one(id="lane-0-text").one("em").text == "so"
        assert root.one(id="lane-1-text").text == ""

    def test_it_follows_the_rest_from_where_it_stands(self):
        """The address of the patches holds the number of the last event that is on the page."""
        live = parsed(render_live(after(5))).one(id="live")

        assert live.attrs["hx-sse:connect"] == "/sessions/s1/live?after=5&reveal=1"
        assert live.attrs["hx-sse:close"] == "end"

    def test_it_says_whose_number_that_is(self):
        """One that was taken up again has others; see `Stream.heard`."""
        live = parsed(render_live(after(5, show_names=False, mark="9f31ab02"))).one(id="live")

        assert live.attrs["hx-sse:connect"] == "/sessions/s1/live?after=5-9f31ab02"

    def test_without_a_script_it_is_asked_for_again(self):
        """A browser that runs none reloads the page."""
        [meta] = parsed(render_live(after(5))).one("noscript").all("meta")

        assert meta.attrs["http-equiv"] == "refresh"

    def test_names_are_hidden_unless_asked_for(self):
        """Lanes are called by the labels that the answers will have."""
        html = render_live(after(9, show_names=False))

        names = [lane.one("h3").text for lane in parsed(html).all(class_="lane")]
        assert names == ["A", "B"]
        assert '"ada"' not in html
        assert ">ada<" not in html

    def test_a_jury_is_shown_with_the_answers_that_it_judges(self):
        """Jurors write no answers; those of the earlier session stand beside them."""
        told = Story("ada", "bob")
        jury = (told.seat("pat"), told.seat("quin"))
        answers = tuple(e.StoredAnswer(seat, f"{seat} said.") for seat in ("ada", "bob"))
        told = Story("ada", "bob", jury=jury, answers=answers, parent="s0", relation="rejudged")

        root = parsed(render_live(LivePage([*told], show_names=True)))

        assert [lane.one("h3").text for lane in root.all(class_="lane")] == ["pat", "quin"]
        assert [card.text[-9:] for card in root.all(class_="answer")] == ["ada said.", "bob said."]


class TestPatches:
    """What changes."""

    def test_a_piece_of_text_is_added_and_nothing_else_sent_of_it(self):
        """Many pieces become one; what stands already is not sent again."""
        live = after(3)

        patch = patched(live, EVENTS[3], EVENTS[4])

        assert patch["#lane-0-text beforeend"].text == "Ada <says> *so*"
        assert patch["#lane-0-amount textContent"].text == "3 words"
        assert set(patch) == {"#lane-0-text beforeend", "#lane-0-amount textContent"}
        assert live.patch() == ""

    def test_a_whole_text_takes_the_place_of_its_pieces(self):
        """It comes as markdown, once, and its lane says that it is answered."""
        patch = patched(after(4), EVENTS[4], EVENTS[5])

        assert patch["#lane-0-text outerHTML"].one("em").text == "so"
        assert "#lane-0-text beforeend" not in patch
        assert "answered" in patch["#lane-0-head innerHTML"].text
        assert "answers: 1 of 2" in patch["#status innerHTML"].text
        assert patch["#announced textContent"].text == "answers: 1 of 2"

    def test_a_failed_attempt_voids_its_text(self):
        """The lane holds what the next attempt writes, and nothing of before."""
        live = after(4)
        told = Story("ada", "bob")
        retried = e.CallRetried(
            seq=9, at=BEGAN, seat="ada", stage="answer", attempt=1, reason="503", wait_seconds=1
        )
        again = e.AnswerDelta(seq=10, at=told.at, seat="ada", text="Anew")

        patch = patched(live, EVENTS[4], retried, again)

        assert list(patch)[1] == "#lane-0-text outerHTML"
        assert patch["#lane-0-text outerHTML"].text == "Anew"
        assert "attempt 1 failed: 503" in patch["#lane-0-head innerHTML"].text

    def test_a_ballot_moves_ranking_and_matrix(self):
        """Both are morphed, so that dots move and focus stays."""
        patch = patched(after(7), *EVENTS[7:11])

        assert patch["#ranking innerMorph"].all("circle")
        assert "1 of 2 cast" in patch["#ballots innerMorph"].text
        assert "waited for" in patch["#ballots innerMorph"].text

    def test_what_the_history_lacks_is_said_to_be_unsaved_until_it_has_it(self):
        """The words come with an event that is shown early, and go with one that is not."""
        live = after(3)
        early = patched(live, replace(EVENTS[5], provisional=True))["#status innerHTML"].text
        same = patched(live, replace(EVENTS[6], provisional=True))
        later = patched(live, EVENTS[7])["#status innerHTML"].text

        assert early.split("\n")[0].endswith("not saved yet")
        assert "not saved yet" in same["#status innerHTML"].text
        assert "saved" not in later
        assert "not saved yet" in render_live(
            LivePage([*EVENTS[:5], replace(EVENTS[5], provisional=True)])
        )

    def test_who_did_not_answer_is_not_waited_for_to_review(self):
        """Its row says why at once, and it is none of those whose reviews are counted."""
        told = Story("ada", "bob", "cyd", "dan").answers(ada="A.", bob="B.", cyd="C.")
        told.tell(e.AnswerFailed, seat="dan", reason="is lost", spent=spent())
        before, root = (
            parsed(render_live(LivePage(events, show_names=True, clock=lambda: BEGAN)))
            for events in ([*told], [*told.casts("ada: bob > cyd")])
        )

        assert "Ballots are cast once" in before.one(id="ballots").text
        assert "did not answer: is lost" in root.one(id="ballot-3").text
        assert "waited for" in root.one(id="ballot-1").text
        assert "reviews: 1 of 3" in root.one(id="status").text

    def test_the_closing_text_grows(self):
        """As the answers do, and its writer has a lane's words."""
        start = next(i for i, x in enumerate(EVENTS) if isinstance(x, e.SynthesisStarted))
        patch = patched(after(start), *EVENTS[start : start + 2])

        assert patch["#verdict-text beforeend"].text == "All told"
        assert "writing" in patch["#writer innerHTML"].text

    def test_the_end_is_the_whole_page(self):
        """Everything of a stored session takes the place of the lanes, its status included."""
        patch = patched(after(6), *EVENTS[6:])

        page = patch["#session innerHTML"]
        assert set(patch) == {"#announced textContent", "#session innerHTML"}
        assert page.one(class_="closing").all("p")[0].one("a", class_="cite").text == "[A]"
        assert "complete" in page.one(class_="eyebrow").text
        assert patch["#announced textContent"].text == "The session is over: complete."

    def test_patches_reach_only_what_is_on_the_page(self):
        """Every target of every patch of a whole session is an element of its first page."""
        live = after(1)
        ids = {x.attrs.get("id") for x in parsed(render_live(live)).all()}
        targets = set()
        for event in EVENTS[1:]:
            live.take(event)
            targets |= {t.split()[0].removeprefix("#") for t in partials(live.patch())}

        assert targets <= ids

    def test_a_page_patched_to_the_end_is_the_page_sent_at_the_end(self):
        """It does not matter when one began to watch."""
        ends = [
            patched(after(n), *EVENTS[n:])["#session innerHTML"] for n in (1, 5, 9, len(EVENTS) - 1)
        ]

        assert all(end == ends[0] for end in ends)


async def followed(stream: Stream, after: int) -> list[tuple[int, str]]:
    """Every message that a reader gets: number and data; a message without number is the end."""
    feed = Feed(partial(LivePage, show_names=True))
    with anyio.fail_after(10):
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
class TestFollowing:
    """Over server-sent events."""

    async def test_a_reader_gets_only_what_its_page_lacks(self):
        """A lost connection is taken up behind the last patch that came through."""
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
            messages = await followed(stream, after=6)

        assert "#lane-0-text" not in messages[0][1]
        assert "#lane-1-text" in messages[0][1]
        assert [number for number, _ in messages] == sorted({number for number, _ in messages})
        assert messages[-1][0] == EVENTS[-1].seq
        assert "#session" in messages[-1][1]

    async def test_a_page_of_before_a_session_was_taken_up_is_emptied_first(self):
        """Texts that it shows the beginning of are written anew, not after what is there."""
        start = next(i for i, x in enumerate(EVENTS) if isinstance(x, e.SynthesisDelta))
        stream = stream_of(*EVENTS[:5], *EVENTS[6 : start + 1])
        following = follow_live(stream, Feed(partial(LivePage, show_names=True)), after=0)

        patch = (await anext(following)).decode()
        await following.aclose()

        found = partials("\n".join(x[6:] for x in patch.splitlines() if x[:6] == "data: "))
        assert found["#verdict-text outerHTML"].text == "All told"
        assert found["#lane-0-text outerHTML"].text == "Ada <says> *so*"

    async def test_a_session_broken_off_ends_as_interrupted(self):
        """The page does not wait for ever, and does not look complete."""
        stream = stream_of(*EVENTS[:8])
        stream.end()

        [(_, data)] = await followed(stream, after=3)

        page = partials(data)["#session innerHTML"]
        assert page.one(class_="shortfall").one("h2").text == "This session is interrupted"

    async def test_many_pieces_at_once_are_few_patches(self):
        """A reader is not told of every token: what comes together is sent together."""
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
            messages = await followed(stream, after=3)

        assert len(messages) < 40

    async def test_a_silent_session_shows_that_it_is_there(self):
        """An event goes out where nothing else does: scripts hear of no comment."""
        following = follow_live(
            stream_of(*EVENTS[:8]), Feed(LivePage), after=8, heartbeat_seconds=0.05
        )

        with anyio.fail_after(5):
            pieces = [await anext(following) for _ in range(2)]
        await following.aclose()

        assert pieces == [b"event: here\ndata: here\n\n"] * 2

    async def test_what_became_of_the_record_is_told_at_the_end(self):
        """The page says what the session itself does not."""
        stream = stream_of(*EVENTS)
        stream.end()
        following = follow_live(stream, Feed(LivePage), problem=lambda: "the disk is full")

        [piece] = [piece async for piece in following]

        assert "the disk is full" in piece.decode()
