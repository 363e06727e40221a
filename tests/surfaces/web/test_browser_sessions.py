"""A person uses the page: asks, watches, reads, votes, interrupts and retries."""

import re

import pytest

from browsers import NEEDS

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

expect = sync_api.expect

pytestmark = NEEDS

OVER = "#session #run"


def submit_form(page, question: str) -> None:
    """Fill in the form and send it."""
    page.get_by_label("Question").fill(question)
    page.get_by_role("button", name="Ask the council").click()


@pytest.fixture(scope="module")
def session(at_desk):
    """A finished session."""
    from witan.service.operations.ask import QuestionRequest

    running = at_desk.server.portal.call(at_desk.server.service.start, QuestionRequest("Is it so?"))
    at_desk.server.portal.call(running.wait_for_session)
    return running.id


PROTOCOLS = "all => all.map(a => new URL(a.getAttribute('href'), document.baseURI).protocol)"
"""Where the links of a page lead, those in a drawing included."""


class TestRecount:
    """What would change an outcome, as a reader tries it."""

    @pytest.mark.slow
    def test_weights_and_ballots_move_ranking_and_verdict_at_once(self, window, session):
        """The server counts, the address is a permalink, and setting all back is the session."""
        here = window()
        page = here.open(f"/sessions/{session}?reveal=1")
        page.get_by_text("What would change this?").click()
        before = page.locator("#counted").inner_text(), page.locator(".ruling").inner_text()
        slider = page.get_by_role("slider").first
        slider.focus()
        page.keyboard.press("End")
        expect(page.locator(".recounted")).to_contain_text("× 3")
        expect(page.locator(".ballot-switches output").first).to_have_text("× 3")
        expect(slider).to_be_focused()
        page.locator(".ballot-switches li").nth(1).get_by_role("checkbox").check()
        expect(page.locator(".recounted")).to_contain_text("without")
        here.shoot("what-would-change-this")

        seen = page.locator("#counted").inner_text(), page.locator(".ruling").inner_text()
        assert seen[0] != before[0]
        other = window().open(page.url.removeprefix(here.url))
        assert other.locator("#counted").inner_text() == seen[0]
        assert other.locator(".ruling").inner_text() == seen[1]
        expect(other.get_by_role("checkbox", checked=True)).to_have_count(1)

        page.locator(".ballot-switches li").nth(1).get_by_role("checkbox").uncheck()
        slider.fill("1")
        expect(page.locator(".recounted")).to_have_count(0)
        assert (
            page.locator("#counted").inner_text(),
            page.locator(".ruling").inner_text(),
        ) == before
        assert page.url.endswith(f"{session}?reveal=1")


class TestWatching:
    """From the question to the final answer."""

    def test_a_question_is_asked_and_watched_to_its_end(self, window):
        """Answers stream, ballots arrive, the ranking updates, the page ends as a stored one."""
        here = window()
        page = here.open("/")
        here.shoot("ask")
        submit_form(page, "Is it so (slowly)?")
        page.evaluate("window.same = true")

        expect(page.locator(".lane .growing").first).to_contain_text("and so")
        here.shoot("live-answers")
        expect(page.locator("#ballots .matrix > tbody > tr")).to_have_count(3)
        expect(page.locator("#ballots td.s1").first).to_be_visible()
        expect(page.locator("#ranking circle").first).to_be_attached()
        here.shoot("live-ballots")
        page.wait_for_selector(OVER)
        here.shoot("session")

        assert page.evaluate("window.same")
        expect(page.locator("#announced")).to_have_text("The session is over: complete.")
        expect(page.locator("#verdict")).to_contain_text("3 of 3 reviewers")

    @pytest.mark.slow
    def test_the_demonstration_takes_one_click(self, window):
        """It needs no key, says once that it is simulated, and greets with no alarm."""
        here = window()
        page = here.open("/")
        page.get_by_role("button", name="Watch the demonstration").click()
        page.wait_for_selector(OVER)
        here.shoot("demonstration")

        expect(page.get_by_text(re.compile("simulated", re.IGNORECASE))).to_have_count(1)
        expect(page.locator(".ribbon")).to_be_visible()
        expect(page.locator(".shortfall.fatal:visible")).to_have_count(0)

    @pytest.mark.slow
    def test_the_page_works_without_javascript(self, window):
        """It reloads until the session is over."""
        here = window(java_script_enabled=False)
        page = here.open("/")
        submit_form(page, "Is it so?")
        page.wait_for_selector(OVER)
        page.get_by_role("button", name="Recount").click()

        expect(page.locator(".recounted")).to_contain_text("The same leader")

    @pytest.mark.slow
    def test_a_session_is_interrupted_and_resumed(self, window):
        """Replies so far are stored; it continues from there."""
        here = window()
        page = here.open("/")
        submit_form(page, "So (hang)?")
        expect(page.locator("#status")).to_contain_text("reviews: 0 of 3")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator("#verdict .shortfall")).to_contain_text("finished calls are saved")
        here.shoot("interrupted")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#status")).to_contain_text("reviews: 0 of 3")
        expect(page.locator(".lane .prose").first).to_contain_text("says so")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator("#verdict .shortfall")).to_be_visible()

    @pytest.mark.slow
    def test_a_failed_seat_is_retried(self, window):
        """In a new session that links back."""
        here = window()
        page = here.open("/")
        submit_form(page, "So (fail)?")
        expect(page.locator("#verdict .shortfall")).to_contain_text("2 of 3 voted")
        first = page.url
        page.get_by_role("button", name="Retry").first.click()
        page.wait_for_selector(OVER)

        assert page.url != first
        page.get_by_role("link", name=first.rpartition("/")[2]).click()
        expect(page.locator(".ask")).to_contain_text("retried as")


class TestReading:
    """A finished session."""

    @pytest.mark.slow
    def test_a_citation_opens_the_answer(self, window, session):
        """In full, under its label."""
        page = window().open(f"/sessions/{session}")
        cite = page.locator("#answer .prose a.cite").first
        label = cite.text_content().strip("[]")
        cite.click()

        expect(page.locator(".answer:target .label")).to_have_text(label)

    @pytest.mark.slow
    def test_another_rule_shows_the_change_of_leader(self, window):
        """Above the ranking, with the former rank beside each new one."""
        here = window()
        page = here.open("/sessions/held07?reveal=1")
        page.get_by_label("Count by").select_option("irv")
        page.get_by_role("button", name="Recount").click()

        expect(page.locator(".recounted.changed")).to_contain_text("Another leader: di")
        expect(page.locator("#ranking .chart text", has_text="was ").first).to_be_visible()
        here.shoot("another-leader")
        page.get_by_role("link", name="Back to the session’s own count").click()
        expect(page.locator(".recounted")).to_have_count(0)

    @pytest.mark.slow
    def test_leaving_out_a_reviewer_changes_the_leader(self, window):
        """Its switch does, and its row in the matrix is struck out."""
        here = window()
        page = here.open("/sessions/held07?reveal=1")
        page.get_by_text("What would change this?").click()
        page.get_by_role("checkbox", name="leave out the ballot of ada").check()

        expect(page.locator(".recounted.changed")).to_contain_text("Another leader: bo")
        expect(page.locator("#ballots tr.left-out")).to_have_count(1)
        here.shoot("without")

    @pytest.mark.slow
    def test_a_review_opens_and_closes(self, window, session):
        """By a click on a cell; reviewers' names stay hidden with all others."""
        here = window()
        page = here.open(f"/sessions/{session}")
        page.locator("#ballots .cell").first.click()
        sheet = page.locator(".review:popover-open")
        expect(sheet.locator("h3")).to_contain_text("eview by")
        here.shoot("review")
        sheet.get_by_role("button", name="Close").click()
        expect(page.locator(".review:popover-open")).to_have_count(0)

    @pytest.mark.slow
    def test_names_are_revealed_on_demand(self, window, session):
        """And hidden again."""
        page = window().open(f"/sessions/{session}")
        expect(page.locator("#ranking .chart a").first).to_have_text(re.compile("^[A-C]$"))
        page.get_by_role("link", name="Reveal names").click()
        expect(page.locator("#ranking .chart a").first).to_have_text(re.compile("ada|bob|cyd"))
        page.get_by_role("link", name="Hide them").click()
        expect(page.locator("#ranking .chart a").first).to_have_text(re.compile("^[A-C]$"))

    def test_markup_of_a_member_is_inert(self, window, session):
        """No dialog, request or error; it shows as text or as a dead link."""
        here = window()
        for path in (f"/sessions/{session}", f"/sessions/{session}/vote?as=eve&all=1"):
            page = here.open(path)
            expect(page.locator("main")).to_contain_text("<script>alert(1)</script>")
            assert page.locator("main script, main style, main img, main iframe").count() == 0
            links = page.locator("main a").evaluate_all(PROTOCOLS)
            assert set(links) <= {"http:", "https:"}
            assert page.evaluate("getComputedStyle(document.body).display") == "block"

    @pytest.mark.slow
    def test_a_saved_session_opens_from_the_disk(self, window, session, tmp_path):
        """With its own styles, and without a request."""
        here = window()
        page = here.open(f"/sessions/{session}?reveal=1")
        with page.expect_download() as downloading:
            page.get_by_role("link", name="Save as one HTML file").click()
        file = tmp_path / "session.html"
        downloading.value.save_as(file)
        page.goto(file.as_uri())

        expect(page.locator("h1")).to_have_text("Is it so?")
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.places ul')).listStyleType")
            == "none"
        )
        here.shoot("saved")


def test_a_stored_session_reads_from_the_question_to_the_run(window, session):
    """Its accessibility tree has the sections in the order of the page."""
    tree = window().open(f"/sessions/{session}").locator("#session").aria_snapshot()
    names = ("Is it so?", "Verdict", "Answer", "Ranking", "Ballots", "Answers", "Run", "Continue")
    places = [tree.index(f'heading "{name}" ') for name in names]

    assert places == sorted(places)


class TestVoting:
    def test_a_vote_comes_before_the_reveal(self, window, session):
        """Enter a name, order the answers, then see who wrote what."""
        here = window()
        page = here.open(f"/sessions/{session}")
        page.get_by_role("link", name="Vote blind first").click()
        page.get_by_label("Your name").fill("zoe")
        page.get_by_role("button", name="Show the answers").click()
        assert not re.search(r"\bbob\b", page.locator("main").inner_text())
        page.get_by_role("link", name="Rank all at once").click()
        for place, box in enumerate(page.get_by_label(re.compile("^Rank of")).all(), start=1):
            box.select_option(str(place))
        here.shoot("vote")
        page.get_by_role("button", name="Cast the vote").click()
        expect(page.locator("main").get_by_role("status")).to_contain_text("Your vote is saved")
        here.shoot("reveal")
        page.reload()
        expect(page.locator("tbody tr")).to_have_count(3)
        page.get_by_role("link", name="Show the session with names").click()
        expect(page.locator("[aria-labelledby=h-votes]")).to_contain_text("zoe")


@pytest.mark.slow
class TestKeyboard:
    def test_a_question_is_asked_and_read_with_the_keyboard(self, window):
        """Tab follows the order, Enter sends, arrow keys move in the matrix."""
        here = window()
        page = here.open("/")
        expect(page.locator(":focus")).to_have_attribute("id", "question")
        page.keyboard.type("Is it so?")
        focused = page.locator(":focus")
        for name in ("profile", "members", "members", "members", "rule", "max_cost_usd"):
            page.keyboard.press("Tab")
            expect(focused).to_have_attribute("name", name)
        page.keyboard.press("Tab")
        expect(focused).to_have_text("Ask the council")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        expect(focused).to_have_text("Advanced")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(focused).to_have_text("Question")
        for _ in range(3):
            page.keyboard.press("Shift+Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector(OVER)
        page.locator("#ballots tbody th button").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.locator(".review:popover-open")).to_have_count(1)
        page.keyboard.press("Escape")
        expect(page.locator(".review:popover-open")).to_have_count(0)
