"""The page of a session in Chromium: its order, its place on the screen, its figures."""

import re

import pytest

from browsers import AXE, NEEDS, Watched, violations_of
from sessions import Story, expense
from witan.deliberation import events as e

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


expect = sync_api.expect

pytestmark = [*NEEDS, pytest.mark.slow]

SEATS = ("ada", "bob", "cyd")

FINAL = "So it is, as [A] says.\n\nThe others agree. " + "It takes a few more words. " * 20

TOPS = """() => Object.fromEntries([...document.querySelectorAll('#session > section[id]')]
    .map(each => [each.id, Math.round(each.getBoundingClientRect().top)]))"""

SIZES = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


@pytest.fixture
def screen(chrome, server, shots):
    """A factory of windows of a size, which complain of nothing."""
    opened: list[Watched] = []

    def new(size: str = "wide", **options) -> Watched:
        opened.append(Watched(chrome, server.url, shots, viewport=SIZES[size], **options))
        return opened[-1]

    yield new
    for each in opened:
        each.context.close()
    assert [problem for each in opened for problem in each.problems] == []


def whole_story(**fields) -> list[e.Event]:
    """Three members answer and vote, and a chairman writes in pieces."""
    story = Story(*SEATS, **fields)
    story.answers(**{seat: f"{seat} *says*. " + "And so on. " * 40 for seat in SEATS})
    story.casts("ada: bob > cyd").casts("bob: cyd > ada").casts("cyd: bob > ada")
    story.tell(e.SynthesisStarted, chairman="chair", mode="consensus")
    for at in range(0, len(FINAL), 40):
        story.tell(e.SynthesisDelta, chairman="chair", text=FINAL[at : at + 40])
    labels = {"A": "cyd", "B": "bob", "C": "ada"}
    story.tell(
        e.SynthesisDone, chairman="chair", mode="consensus", text=FINAL, labels=labels,
        spent=expense(),
    )  # fmt: skip
    return story.closed().events


def place(events: list[e.Event], kind: type[e.Event]) -> int:
    """Where the first event of a kind is."""
    return next(at for at, event in enumerate(events) if isinstance(event, kind))


class TestOrder:
    """What is read first stands first, on the screen and for whoever hears the page."""

    def test_the_accessibility_tree_reads_from_the_question_to_the_run(self, screen, server):
        """Question, verdict, answer, ranking, ballots, answers, run."""
        server.tell(*whole_story())
        server.end()
        page = screen().open("/sessions/s1")
        page.wait_for_selector("#run")

        tree = page.locator("#session").aria_snapshot()
        parts = (
            'heading "Which?"', 'heading "Verdict"', "Too close to call", 'heading "Answer"',
            "So it is", 'heading "Ranking"', 'heading "Ballots"', 'heading "Answers"',
            'heading "Run"',
        )  # fmt: skip
        places = [tree.index(part) for part in parts]
        assert places == sorted(places)

    def test_a_running_session_reads_in_the_same_order(self, screen, server):
        """With what there is so far, while the final answer is written."""
        events = whole_story()
        server.tell(*events[:-2])
        page = screen("phone").open("/sessions/s1")
        expect(page.locator("#final-text")).to_contain_text("The others agree.")

        tree = page.locator("#session").aria_snapshot()
        parts = (
            'heading "Which?"', 'heading "Verdict"', "Too close to call", 'heading "Answer"',
            "So it is", 'heading "Ranking"', 'heading "Ballots"', 'heading "Answers"',
        )  # fmt: skip
        places = [tree.index(part) for part in parts]
        assert places == sorted(places)

    def test_a_figure_opens_its_sentence_with_the_keyboard(self, screen, server):
        """Enter on it shows what it means; the rest stays folded."""
        server.tell(*whole_story())
        server.end()
        page = screen("phone").open("/sessions/s1")
        page.wait_for_selector("#run")
        chip = page.locator(".chip", has_text="match with people")
        expect(chip.locator("p")).to_be_hidden()
        chip.locator("summary").focus()
        page.keyboard.press("Enter")

        expect(chip.locator("p")).to_have_text("Unknown until people vote on the same answers.")
        assert page.locator(".chip[open]").count() == 1

    def test_a_card_offers_more_only_where_its_text_goes_on(self, screen, server):
        """Whatever the text's length lets one guess, and after the window is resized."""
        story = Story(*SEATS)
        story.answers(ada="So.\n" * 15, bob="Wherewithal " * 35, cyd="And so on. " * 200)
        story.casts("ada: bob > cyd").casts("bob: cyd > ada").casts("cyd: bob > ada")
        server.tell(*story.closed().events)
        server.end()
        here = screen("phone")
        page = here.open("/sessions/s1?reveal=1")
        page.wait_for_selector("#run")
        more = page.locator("a:visible", has_text="Show more")
        expect(more).to_have_count(2)
        page.set_viewport_size(SIZES["wide"])
        expect(more).to_have_count(1)
        more.click()

        expect(page.get_by_role("link", name="Show less")).to_be_visible()
        card = page.locator(".answer:target .prose")
        assert card.evaluate("text => text.scrollHeight === text.clientHeight")
        page.get_by_role("link", name="Show less").click()
        expect(more).to_have_count(1)


class TestEnd:
    """A session that ends under the eyes of a reader."""

    def test_what_was_opened_stays_open_and_in_focus(self, screen, server):
        """Its last patch replaces the verdict, whose figure is being read."""
        events = whole_story()
        server.tell(*events[:-2])
        page = screen("phone").open("/sessions/s1?reveal=1")
        chip = page.locator(".chip", has_text="match with people")
        chip.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(chip.locator("p")).to_be_visible()
        server.tell(*events[-2:])
        server.end()
        page.wait_for_selector("#run")

        expect(chip.locator("p")).to_be_visible()
        expect(chip.locator("summary")).to_be_focused()
        assert page.locator(".chip[open]").count() == 1

    @pytest.mark.parametrize("size", SIZES)
    def test_nothing_jumps_when_it_ends(self, screen, server, size):
        """Verdict, answer and its first line stay where they were, at the top of the page."""
        events = whole_story()
        server.tell(*events[:-2])
        page = screen(size).open("/sessions/s1?reveal=1")
        expect(page.locator("#final-text")).to_contain_text("The others agree.")
        before = page.evaluate(TOPS) | {"text": page.locator("#final-text").bounding_box()["y"]}
        server.tell(*events[-2:])
        server.end()
        page.wait_for_selector("#run")
        after = page.evaluate(TOPS) | {"text": page.locator("#final-text").bounding_box()["y"]}

        jumps = {key: abs(after[key] - before[key]) for key in ("verdict", "answer", "text")}
        assert max(jumps.values()) <= 2, jumps

    @pytest.mark.parametrize("size", SIZES)
    def test_whoever_reads_further_down_stays_there(self, screen, server, size):
        """The section that is read keeps its place on the screen."""
        events = whole_story()
        server.tell(*events[:-2])
        page = screen(size).open("/sessions/s1?reveal=1")
        expect(page.locator("#final-text")).to_contain_text("The others agree.")
        page.set_viewport_size({**SIZES[size], "height": 400})
        page.get_by_role("link", name="Ballots", exact=True).click()
        page.wait_for_timeout(200)
        before = page.evaluate(TOPS)["ballots"]
        server.tell(*events[-2:])
        server.end()
        page.wait_for_selector("#run", state="attached")
        page.wait_for_timeout(200)

        assert abs(page.evaluate(TOPS)["ballots"] - before) <= 2

    def test_a_lane_shrinks_to_a_line_once_it_is_done(self, screen, server):
        """And opens again for whoever wants to read it."""
        events = whole_story()
        first = place(events, e.AnswerDone)
        server.tell(*events[:first])
        page = screen().open("/sessions/s1?reveal=1")
        lane = page.locator("#lane-0")
        tall = lane.bounding_box()["height"]
        server.tell(events[first])
        expect(lane).not_to_have_attribute("open", "")
        assert lane.bounding_box()["height"] < 48
        assert tall > 200
        expect(page.locator("#lane-1")).to_have_attribute("open", "")
        lane.locator("summary").click()

        expect(lane.locator("em")).to_have_text("says")

    def test_the_final_answer_stands_under_the_verdict_from_the_beginning(self, screen, server):
        """It says what it waits for, and then fills without a box of its own to scroll."""
        events = whole_story()
        server.tell(*events[: place(events, e.AnswerDone)])
        page = screen().open("/sessions/s1?reveal=1")
        assert list(page.evaluate(TOPS)) == ["verdict", "answer", "ranking", "ballots", "answers"]
        expect(page.locator("#answer")).to_contain_text("Written once the ballots are counted.")
        server.tell(*events[place(events, e.AnswerDone) : -2])
        expect(page.locator("#final-text")).to_contain_text("The others agree.")

        inner = "each => each.scrollHeight - each.clientHeight"
        assert page.locator("#final-text").evaluate(inner) <= 1

    def test_a_failure_is_said_while_it_goes_on(self, screen, server):
        """In amber, with its reason folded."""
        story = Story(*SEATS).answers(ada="A.", bob="B.")
        story.tell(e.AnswerFailed, seat="cyd", reason="503 from its provider", spent=expense())
        server.tell(*story)
        page = screen().open("/sessions/s1?reveal=1")

        expect(page.locator("#gaps .shortfall strong")).to_have_text("cyd failed")
        expect(page.locator("#gaps li")).to_be_hidden()


class TestPlaces:
    """The way to each section."""

    @pytest.mark.parametrize("size", SIZES)
    def test_it_stays_in_sight_and_says_where_one_is(self, screen, server, size):
        """Each link leads to its heading, below the bar."""
        server.tell(*whole_story())
        server.end()
        page = screen(size).open("/sessions/s1")
        page.wait_for_selector("#run")
        bar = page.locator(".places")
        assert [each.text_content() for each in bar.locator("a").all()] == [
            "Answer", "Ranking", "Ballots", "Answers", "Run"
        ]  # fmt: skip
        for name in ("Ranking", "Ballots", "Answers"):
            bar.get_by_role("link", name=name, exact=True).click()
            expect(bar.locator("[aria-current]")).to_have_text(name)
            low = bar.bounding_box()["y"] + bar.bounding_box()["height"]
            assert 0 <= bar.bounding_box()["y"] <= 1
            assert page.get_by_role("heading", name=name, exact=True).bounding_box()["y"] >= low
        assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size]["width"]


def crowd() -> list[e.Event]:
    """Twenty members with long names, each with grades for all others."""
    seats = [f"provider-{chr(97 + n)}-model-{n}" for n in range(20)]
    story = Story(*seats).answers(**{seat: f"{seat} says." for seat in seats})
    for at, reviewer in enumerate(seats):
        others = [seat for seat in seats if seat != reviewer]
        order = others[at % 3 :] + others[: at % 3]
        grades = {
            seat: {"accuracy": 10 - n // 2, "clarity": 1 + n // 2} for n, seat in enumerate(order)
        }
        places = {seat: n for n, seat in enumerate(others, start=1)}
        notes = f"[{order[0]}] is right, and [{order[1]}] nearly so."
        story.casts(
            f"{reviewer}: {' > '.join(order)}", grades=grades, positions=places, notes=notes
        )
    return story.closing("So.").closed().events


class TestBallots:
    """Ballots, reviews and pairs of a large council."""

    @pytest.fixture
    def crowded(self, screen, server):
        server.tell(*crowd())
        server.end()

        def new(size: str = "wide", **options):
            page = screen(size, **options).open("/sessions/s1?reveal=1")
            page.wait_for_selector("#run")
            return page

        return new

    def test_twenty_candidates_fit_a_wide_page(self, crowded):
        """Every name stands whole in the head of its column, and no cell is smaller than text."""
        page = crowded()
        box = page.locator("#ballots > .matrix-box")
        cells = page.locator("#ballots tbody tr").first.locator("td").all()

        assert box.evaluate("each => each.scrollWidth <= each.clientWidth + 1")
        assert min(each.bounding_box()["width"] for each in cells[:20]) >= 32
        cut = "all => all.filter(each => each.scrollHeight > each.clientHeight + 1).length"
        assert page.locator("#ballots thead span").evaluate_all(cut) == 0

    def test_a_phone_scrolls_the_matrix_and_not_the_page(self, crowded):
        """The reviewer's name stays in sight."""
        page = crowded("phone")
        page.locator("#ballots > .matrix-box").evaluate("each => each.scrollTo(400, 0)")

        assert page.evaluate("document.documentElement.scrollWidth") == 390
        head = page.locator("#ballots tbody th").first.bounding_box()
        assert 0 <= head["x"] < 40
        tall = "all => Math.max(...all.map(each => each.getBoundingClientRect().height))"
        for heads in ("#ballots tbody th", "#ranking .heat tbody th"):
            assert page.locator(heads).evaluate_all(tall) < 90, heads

    def test_pointing_at_a_cell_shows_grade_and_place(self, crowded):
        """By pointer and by keyboard, within the box."""
        page = crowded()
        cell = page.locator("#ballots .cell").nth(7)
        rest = cell.locator(".rest")
        expect(rest).to_be_hidden()
        cell.hover()
        expect(rest).to_be_visible()
        page.mouse.move(0, 0)
        expect(rest).to_be_hidden()
        page.locator("#ballots tbody th button").first.focus()
        page.keyboard.press("ArrowRight")
        shown = page.locator(":focus .rest")
        expect(shown).to_be_visible()
        box = page.locator("#ballots > .matrix-box").bounding_box()
        for at in (1, 18):
            page.locator("#ballots tbody tr").nth(5).locator(".cell").nth(at).hover()
            rests = page.locator("#ballots td:hover .rest").bounding_box()
            assert box["x"] <= rests["x"] < rests["x"] + rests["width"] <= box["x"] + box["width"]

    def test_a_tap_opens_the_review(self, crowded):
        """With its grades as a heat table, its reasons, and the reply folded away."""
        page = crowded("phone", has_touch=True)
        page.locator("#ballots .cell").nth(2).tap()
        review = page.locator(".review:popover-open")
        expect(review.locator(".heat tbody tr")).to_have_count(19)
        expect(review.locator(".prose")).to_contain_text("is right")
        expect(review.locator("pre")).to_be_hidden()
        colours = "all => new Set(all.map(each => getComputedStyle(each).backgroundColor)).size"

        assert review.locator(".heat td").evaluate_all(colours) >= 5

    def test_pairs_are_one_map(self, crowded):
        """In place of a sentence each."""
        page = crowded()
        pairs = page.locator("#ranking .heat")

        expect(pairs).to_have_count(1)
        expect(pairs.locator("tbody tr")).to_have_count(19)
        expect(page.locator("#ranking")).not_to_contain_text("is above with probability")
        expect(pairs).not_to_contain_text(re.compile("≈[<>]"))

    @pytest.mark.skipif(not AXE, reason="TEST_AXE does not name axe.min.js")
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("size", SIZES)
    def test_axe_finds_nothing(self, crowded, scheme, size):
        """On the finished page, and with a review open."""
        page = crowded(size, color_scheme=scheme, bypass_csp=True)
        for opened in (False, True):
            if opened:
                page.locator("#ballots .cell").first.click()
            assert violations_of(page) == []
