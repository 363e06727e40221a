"""A person goes on from an answer: asks a follow-up, reads what it continues, and asks again."""

import re

import pytest

from browsers import AXE, NEEDS

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

expect = sync_api.expect

pytestmark = [*NEEDS, pytest.mark.slow]

OVER = "#session #run"


@pytest.fixture(scope="module")
def first(at_desk):
    """A finished session."""
    from witan.service.operations.ask import QuestionRequest

    service, portal = at_desk.server.service, at_desk.server.portal
    running = portal.call(service.start, QuestionRequest("Is it so?", category="trees"))
    portal.call(running.wait_for_session)
    return running.id


def test_a_follow_up_is_asked_below_the_answer_and_shown_there(window, first):
    """Its page shows the question and the answer that it continues; theirs shows it in turn."""
    here = window()
    page = here.open(f"/sessions/{first}")
    page.get_by_label("Ask a follow-up").fill("And tomorrow?")
    here.shoot("conversation-form")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(OVER)

    expect(page.locator("h1")).to_have_text("And tomorrow?")
    before = page.get_by_label("Earlier conversation")
    expect(before.locator(".asked")).to_have_text("Is it so?")
    before.get_by_text("The answer", exact=True).click()
    expect(before.locator(".prose")).to_contain_text("All told: so")
    here.shoot("conversation-follow-up")
    before.get_by_role("link", name="Previous session").click()

    later = page.locator(".follow-up")
    expect(later.get_by_role("link")).to_have_text("And tomorrow?")
    expect(later).to_contain_text("complete")
    later.locator("summary").click()
    expect(later.locator(".prose")).to_contain_text("All told: so")
    here.shoot("conversation-below")


def test_a_third_question_folds_what_was_said_first(window, first):
    """The last question and answer stand above it, the earlier ones behind a line."""
    page = window().open(f"/sessions/{first}")
    for question in ("Why is that?", "And why that?"):
        page.get_by_label("Ask a follow-up").fill(question)
        page.get_by_role("button", name="Ask").click()
        expect(page.locator("h1")).to_have_text(question)
        page.wait_for_selector(OVER)

    before = page.get_by_label("Earlier conversation")
    expect(before.locator("> .asked")).to_have_text("Why is that?")
    expect(before.get_by_text("Is it so?")).not_to_be_visible()
    before.get_by_text("Earlier in this conversation").click()
    expect(before.get_by_text("Is it so?")).to_be_visible()


def test_a_question_is_edited_and_asked_again(window, first):
    """The form has the question and its category; the first session stays as it is."""
    here = window()
    page = here.open(f"/sessions/{first}")
    page.get_by_role("link", name="Edit the question and ask again").click()
    question = page.get_by_label("Question", exact=True)
    expect(question).to_have_value("Is it so?")
    assert page.locator("#category").input_value() == "trees"
    question.press("End")
    page.keyboard.type(" Surely?")
    page.get_by_role("button", name="Ask the council").click()
    page.wait_for_url(re.compile("/sessions/"))

    expect(page.locator("h1")).to_have_text("Is it so? Surely?")
    expect(page.get_by_label("Earlier conversation")).to_have_count(0)


def test_a_follow_up_with_options_shows_what_it_continues(window, first):
    """Before it is sent, on the form."""
    page = window().open(f"/sessions/{first}")
    page.get_by_role("link", name="Options and cost").click()

    before = page.get_by_label("Earlier conversation")
    expect(before.locator(".asked")).to_have_text("Is it so?")
    page.get_by_label("Question", exact=True).fill("And now?")
    page.get_by_role("button", name="Ask the council").click()
    page.wait_for_selector(OVER)
    expect(page.locator(".before .asked")).to_have_text("Is it so?")


@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js of axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_problem_in_a_conversation(window, first, theme):
    """On the session and on its follow-up, with everything open."""
    here = window(color_scheme=theme, bypass_csp=True)
    page = here.open(f"/sessions/{first}")
    page.get_by_label("Ask a follow-up").fill("And then?")
    page.get_by_role("button", name="Ask").click()
    page.wait_for_selector(OVER)
    for path in (page.url.removeprefix(here.url), f"/sessions/{first}"):
        here.open(path)
        page.evaluate("document.querySelectorAll('.said').forEach(each => { each.open = true })")
        assert here.violations() == []
