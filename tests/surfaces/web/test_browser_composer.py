"""A person writes a question: on one screen, with the keyboard, and without losing a word."""

import re

import pytest

from browsers import AXE, NEEDS

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

expect = sync_api.expect

pytestmark = [*NEEDS, pytest.mark.slow]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 740)])
def test_the_form_fits_on_one_screen(window, width, height, theme):
    """Up to "Advanced", which is one line; opened as well it takes less than two on a desktop."""
    here = window(viewport={"width": width, "height": height}, color_scheme=theme)
    page = here.open("/")
    here.shoot(f"composer-{width}-{theme}")
    last = page.locator(".advanced > summary").bounding_box()
    fields = [page.locator(f"#{name}").bounding_box()["y"] for name in ("rule", "max_cost_usd")]

    assert last["y"] + last["height"] <= height
    assert abs(fields[0] - fields[1]) <= 1
    page.get_by_text("Advanced", exact=True).click()
    here.shoot(f"composer-advanced-{width}-{theme}")
    form = page.locator("form", has=page.locator(".advanced")).bounding_box()
    assert form["height"] < (2 if width == 1280 else 3.5) * height


def test_the_cost_is_in_sight_where_it_is_asked_for(window):
    """On a phone as well: the field below does not take the focus, and with it the page."""
    page = window(viewport={"width": 390, "height": 740}).open("/")
    page.get_by_label("Question", exact=True).fill("Is it so?")
    page.get_by_role("button", name="What would it cost?").click()

    expect(page.get_by_role("status", name="What it would cost")).to_be_in_viewport()


def test_control_and_enter_send_the_question(window):
    """The field has the focus on load; Enter alone begins a line."""
    page = window().open("/")
    page.keyboard.type("Is it so?")
    page.keyboard.press("Enter")
    page.keyboard.type("Surely?")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile("/sessions/"))

    expect(page.locator("h1")).to_have_text("Is it so? Surely?")


def test_a_draft_outlasts_a_reload_and_ends_with_its_session(window):
    """With its options, opened groups or not."""
    page = window().open("/")
    page.get_by_label("Question", exact=True).fill("Half a question")
    page.get_by_label("Cost ceiling in US dollars").fill("0.5")
    page.get_by_role("checkbox", name="ada").check()
    page.get_by_role("checkbox", name="bob").check()
    page.reload()
    expect(page.get_by_label("Question", exact=True)).to_have_value("Half a question")
    expect(page.get_by_label("Cost ceiling in US dollars")).to_have_value("0.5")
    assert [
        page.get_by_role("checkbox", name=name).is_checked() for name in ("ada", "bob", "cyd")
    ] == [1, 1, 0]
    page.get_by_role("button", name="Ask the council").click()
    page.wait_for_url(re.compile("/sessions/"))
    page.get_by_role("link", name="Ask", exact=True).click()

    expect(page.get_by_label("Question", exact=True)).to_have_value("")


def test_the_cost_is_stated_while_the_question_is_written(window):
    """By the server's own plan; what is wrong with an option is said there, too."""
    here = window()
    page = here.open("/")
    expect(page.locator("#estimate")).to_be_empty()
    page.keyboard.type("Is it so?")
    expect(page.locator("#estimate")).to_contain_text("7 calls")
    page.get_by_role("checkbox", name="ada").check()
    page.get_by_role("checkbox", name="bob").check()
    expect(page.locator("#estimate")).to_contain_text("5 calls")
    here.shoot("composer-estimate")
    page.get_by_label("Cost ceiling in US dollars").fill("much")
    expect(page.locator("#estimate")).to_contain_text("number")
    here.problems[:] = [each for each in here.problems if "status of 422" not in each]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_plan_stands_below_the_question_and_fits(window, width):
    """It pushes neither question nor buttons down, and its table needs no sideways scrolling."""
    page = window(viewport={"width": width, "height": 900}).open("/")
    page.get_by_label("Question", exact=True).fill("Is it so?")
    page.get_by_role("button", name="What would it cost?").click()
    table = page.get_by_role("region", name="Calls of each seat in each stage")
    expect(table).to_be_visible()

    assert page.get_by_role("button", name="Ask the council").bounding_box()["y"] < 700
    assert page.get_by_label("Question", exact=True).bounding_box()["y"] < 200
    assert table.evaluate("each => each.scrollWidth - each.clientWidth") <= 0


def test_a_refused_option_is_said_once(window):
    """At its field until it is changed; the alert leads there."""
    here = window()
    page = here.open("/")
    page.get_by_label("Question", exact=True).fill("Is it so?")
    page.get_by_label("Cost ceiling in US dollars").fill("much")
    page.get_by_role("button", name="Ask the council").click()
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("Nothing was sent. Check Cost ceiling in US dollars.")
    page.wait_for_timeout(1500)
    expect(page.get_by_text(re.compile("must be a number", re.IGNORECASE))).to_have_count(1)
    here.shoot("composer-refused")
    alert.get_by_role("link").click()
    ceiling = page.get_by_label("Cost ceiling in US dollars")
    expect(ceiling).to_be_focused()
    ceiling.fill("0.5")
    expect(page.get_by_text(re.compile("must be a number", re.IGNORECASE))).to_have_count(0)
    expect(page.locator("#estimate")).to_contain_text("7 calls")
    here.problems[:] = [each for each in here.problems if "status of 422" not in each]


@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js of axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_problem_in_an_open_form(window, theme):
    """With every group open."""
    here = window(color_scheme=theme, bypass_csp=True)
    page = here.open("/")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")

    assert here.violations() == []
