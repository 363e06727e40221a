"""Every page: reachable by links, readable at any width, accessible, in light and dark."""

from contextlib import suppress

import httpx2
import pytest

from browsers import AXE, NEEDS
from services import until
from witan.errors import WitanError
from witan.history.ballots import prepare_paper
from witan.models.scripted import demonstration
from witan.service.config.configuration import DEMO
from witan.service.operations.ask import JudgeRequest, QuestionRequest
from witan.surfaces.web.routes import router

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

expect = sync_api.expect

pytestmark = [*NEEDS, pytest.mark.slow]


NAMES = ("Ada", "Bob", "Cyd")


def finish(at_desk, question):
    """Ask a question, stop what hangs, and return the name of the session."""
    service, portal = at_desk.server.service, at_desk.server.portal
    running = portal.call(service.start, QuestionRequest(question))
    if "(hang)" in question:
        portal.call(until, running, "review_started")
        portal.call(running.cancel)
    with suppress(WitanError):
        portal.call(running.wait_for_session)
    return running.id


def judge(at_desk, texts, **standard):
    """Have texts judged, and return the name of the session."""
    service, portal = at_desk.server.service, at_desk.server.portal
    running = portal.call(service.start, JudgeRequest(texts, **standard))
    portal.call(running.wait_for_session)
    return running.id


@pytest.fixture(scope="module")
def places(at_desk):
    """Pages of all kinds; one session is running."""
    shown = demonstration(fast=True)
    service, portal = at_desk.server.service, at_desk.server.portal
    over = portal.call(
        service.start, QuestionRequest(shown.question, profile=DEMO, seed=shown.seed)
    )
    portal.call(over.wait_for_end)
    going = portal.call(service.start, QuestionRequest("So (hang)?"))
    held = {name: finish(at_desk, f"Is it so ({name})?") for name in ("fail", "mute", "hang")}
    stuck = portal.call(service.start, QuestionRequest("So (stuck)?"))
    one = judge(at_desk, {"text 1": "Ada says so."}, pass_mark=6)
    several = judge(at_desk, {f"text {n}": f"{name} says so." for n, name in enumerate(NAMES)})
    choosing = f"as=zoe&paper={prepare_paper(at_desk.history, over.id, 'zoe').code}"
    paper = prepare_paper(at_desk.history, over.id, "ines")
    fields = {"as": "ines", "paper": paper.code}
    fields |= {f"place-{label}": str(n) for n, label in enumerate(paper.texts, start=1)}
    cast = httpx2.post(f"{at_desk.url}/sessions/{over.id}/vote", data=fields, timeout=60)
    assert cast.status_code == 303, cast.text
    return {
        "ask": "/",
        "history": "/history",
        "history-nothing": "/history?text=nothinglikeit",
        "leaderboard": "/leaderboard?trend=1",
        "leaderboard-rating": "/leaderboard?order_by=rating",
        "leaderboard-nothing": "/leaderboard?category=nothing",
        "audit": "/audit",
        "audit-reviewer": "/audit?reviewer=r1",
        "imported": "/sessions/q00",
        "session": f"/sessions/{over.id}",
        "session-revealed": f"/sessions/{over.id}?reveal=1",
        "session-recounted": f"/sessions/{over.id}?rule=schulze",
        "live": f"/sessions/{going.id}",
        "voter": f"/sessions/{over.id}/vote",
        "vote": f"/sessions/{over.id}/vote?as=zoe",
        "vote-choices": f"/sessions/{over.id}/vote?{choosing}&pair=A>B&pair=C=D",
        "vote-ranking": f"/sessions/{over.id}/vote?{choosing}&pair=A>B&all=1",
        "vote-all": f"/sessions/{over.id}/vote?as=zoe&all=1",
        "reveal": f"/sessions/{over.id}/vote?as=ines&cast=1",
        "problem": "/leaderboard?min_sessions=x",
        "unknown-session": "/sessions/none",
        "unknown-rule": f"/sessions/{over.id}?rule=none",
        "degraded": f"/sessions/{held['fail']}",
        "failed": f"/sessions/{held['mute']}",
        "stopped": f"/sessions/{held['hang']}",
        "answering": f"/sessions/{stuck.id}",
        "vote-waiting": f"/sessions/{stuck.id}/vote?as=zoe",
        "judge": "/judge",
        "judged": f"/sessions/{one}",
        "judged-again": f"/judge?again={one}",
        "judged-several": f"/sessions/{several}",
        "follow-up": f"/?parent={over.id}",
        "again": f"/?again={over.id}",
        "votes": "/votes",
        "votes-nobody": "/votes?as=nobody",
        **{name: f"/{name}" for name in ("tally", "compare", "calibrate", "estimate", "explain")},
    }


class TestNavigation:
    def test_a_session_is_found_by_search_and_has_a_permanent_link(self, window):
        """From the history through the search form."""
        here = window()
        page = here.open("/")
        page.get_by_role("link", name="History").click()
        page.get_by_label("Words").fill("which tree")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="Which tree?").click()

        assert page.url.endswith("/sessions/q00")
        page.reload()
        expect(page.locator("h1")).to_have_text("Which tree?")

    def test_older_sessions_are_on_the_next_page(self, window):
        """And a link leads back to the latest."""
        page = window().open("/history")
        first = page.locator(".sessions a").first.text_content()
        page.get_by_role("link", name="Older sessions").click()
        assert page.locator(".sessions li").count() > 0
        page.get_by_role("link", name="Latest sessions").click()
        expect(page.locator(".sessions a").first).to_have_text(first)

    def test_the_history_is_read_day_by_day_and_names_leaders_on_request(self, window):
        """How sure a leader is stands beside its question; other filters open on request."""
        page = window().open("/history")
        day = page.locator("section.day", has=page.get_by_role("heading", name="20 November 2026"))
        outcome = day.locator("li", has_text="Which of the five?").first.locator(".outcome")
        expect(outcome).to_contain_text("likely to be best")
        expect(outcome).not_to_contain_text("leads")

        page.get_by_role("link", name="Show names").click()
        expect(outcome).to_contain_text("leads, ")
        expect(page.get_by_label("Status")).to_be_hidden()
        page.get_by_text("More filters").click()
        page.get_by_label("Status").select_option("complete")
        page.get_by_role("button", name="Search").click()
        expect(page.get_by_label("Status")).to_have_value("complete")
        expect(outcome).to_contain_text("leads, ")

    def test_the_leaderboard_is_sorted_by_its_form(self, window):
        """The address contains the order, and every chart has its numbers as a table."""
        page = window().open("/leaderboard")
        page.get_by_text("Filter and order").click()
        page.get_by_label("Order by").select_option("rating")
        page.get_by_role("button", name="Show").click()

        assert "order_by=rating" in page.url
        expect(page.get_by_label("Order by")).to_be_visible()
        expect(page.locator("figure.chart").first).to_contain_text("logits")
        page.get_by_role("link", name="Show scores over time").click()
        assert "order_by=rating" in page.url
        expect(page.locator("figure:visible")).to_have_count(4)
        expect(page.locator("#h-trend")).to_be_in_viewport()
        for section in page.locator("section:has(figure)").all():
            section.locator(":scope > details > summary", has_text="The numbers").first.click()
            expect(section.locator("table").first).to_be_visible()

    def test_a_reviewer_has_a_page_of_details(self, window):
        """Linked from its row of the chart."""
        page = window().open("/audit")
        page.locator("svg.wide").get_by_role("link", name="r1", exact=True).first.click()
        expect(page.locator("h1")).to_have_text("How r1 judges")


def forgive(here):
    """Forget the statuses of pages that tell of a mistake, which a browser notes."""
    here.problems[:] = [each for each in here.problems if "the server responded" not in each]


WIDER = """[...document.querySelectorAll(".matrix-box")]
    .filter(box => box.scrollWidth > box.clientWidth).map(box => box.ariaLabel)"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_renders_without_errors_or_overflow(window, places, width, theme):
    """Takes a screenshot of each page.

    On a desktop every table fits.
    """
    here = window(viewport={"width": width, "height": 900}, color_scheme=theme)
    expected = "rgb(20, 22, 26)" if theme == "dark" else "rgb(251, 250, 247)"
    for name, path in places.items():
        page = here.open(path)
        here.shoot(f"{name}-{width}-{theme}")
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        assert width < 1280 or page.evaluate(WIDER) == [], name
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == expected
    forgive(here)


def test_no_page_scrolls_sideways_on_a_narrow_phone(window, places):
    """At 360 pixels, wide content scrolls in its own box."""
    here = window(viewport={"width": 360, "height": 740}, has_touch=True)
    for name, path in places.items():
        page = here.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") == 360, name
    forgive(here)


@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js of axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_accessibility_problem(window, places, theme):
    """Names, roles, contrast and order on every page, running sessions included."""
    here = window(color_scheme=theme, bypass_csp=True)
    found = {}
    for name, path in places.items():
        here.open(path)
        found[name] = here.violations()
    forgive(here)

    assert {name: held for name, held in found.items() if held} == {}


NO_PAGES = {
    "/assets/{name}", "/sessions/{session:path}/live", "/sessions/{session:path}/state",
    "/sessions", "/sessions/",
}  # fmt: skip
"""Addresses that give files, patches and states, or lead to the history."""

SIGNED_IN = {"/sign-in"}
"""Pages of a server that knows its clients; `test_browser_lost_server` holds them to axe."""

ANSWERED = {
    "/plan": "planned",
    "/judge/plan": "judge planned",
    "/sessions/{session:path}/retry/plan": "retry",
    "/sessions/{session:path}/rejudge/plan": "rejudge",
    "/tally": "/tally", "/compare": "/compare", "/explain": "/explain",
    "/calibrate": "/calibrate", "/estimate": "/estimate",
}  # fmt: skip
"""Forms that answer with a page of their own, and the state that is held to axe."""

REDIRECTING = {
    "/sign-in", "/sign-out", "/sessions", "/judge", "/plan/estimate",
    *(f"/sessions/{{session:path}}/{what}"
      for what in ("resume", "retry", "rejudge", "cancel", "forget", "vote")),
}  # fmt: skip
"""Forms that lead to a page, or give a part of one."""


def test_every_address_of_a_page_is_held_to_axe(places):
    """A new page without a test of its accessibility fails here."""
    by_method = {
        method: [route for route in router.routes if method in route.methods]
        for method in ("GET", "POST")
    }
    visited = set()
    for place in places.values():
        path = place.partition("?")[0]
        visited.add(next(r.path for r in by_method["GET"] if r.path_regex.match(path)))
    pages = {route.path for route in by_method["GET"]} - NO_PAGES - SIGNED_IN

    assert pages == visited
    assert {route.path for route in by_method["POST"]} == {*ANSWERED, *REDIRECTING}


def states_of_forms(page):
    """Walk through what forms answer, and yield the name of each state."""
    page.get_by_label("Question", exact=True).fill("Is it so?")
    page.get_by_role("button", name="What would it cost?").click()
    expect(page.get_by_role("status", name="What it would cost")).to_be_visible()
    yield "planned"
    page.get_by_label("Cost ceiling in US dollars").fill("much")
    page.get_by_role("button", name="Ask the council").click()
    expect(page.get_by_role("alert")).to_be_visible()
    yield "refused"
    for path, button in COUNTING.items():
        page.goto(path)
        page.locator("#ballots").fill(OF_SESSIONS if path == "/estimate" else BALLOTS)
        page.get_by_role("button", name=button).click()
        page.get_by_text("Other ballots or settings").wait_for()
        page.wait_for_load_state()  # a page is laid out while it arrives
        yield path
    page.goto("/judge")
    page.get_by_label("Text 1").fill("It is so.")
    page.get_by_role("button", name="What would it cost?").click()
    expect(page.get_by_role("status", name="What it would cost")).to_be_visible()
    yield "judge planned"
    page.goto("/tally")
    page.locator("#ballots").fill("hello there")
    page.get_by_role("button", name="Count ballots").click()
    expect(page.get_by_role("alert")).to_contain_text("the text is not recognised as ballots;")
    yield "unread"


COUNTING = {
    "/tally": "Count ballots",
    "/compare": "Compare the rules",
    "/explain": "Explain an outcome",
    "/calibrate": "Check probabilities",
    "/estimate": "Estimate systems",
}

BALLOTS = "reviewer,candidate,grade\n" + "".join(
    f"{reviewer},{candidate},{(3 * at + 2 * of + at * of) % 9 + 1}\n"
    for at, reviewer in enumerate("rstu")
    for of, candidate in enumerate("abcd")
)

OF_SESSIONS = "session,reviewer,candidate,grade\n" + "".join(
    f"q{session},{reviewer},{candidate},{(3 * at + 2 * of + at * of + session) % 9 + 1}\n"
    for session in range(8)
    for at, reviewer in enumerate("rst")
    for of, candidate in enumerate("ab")
)


@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js of axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_problem_in_what_forms_answer(window, at_desk, width, theme):
    """Costs, refusals and counts, everything in them opened."""
    size = {"width": width, "height": 900}
    here = window(viewport=size, color_scheme=theme, bypass_csp=True, base_url=at_desk.url)
    page = here.open("/")
    found = {}
    for state in states_of_forms(page):
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        here.shoot(f"form-{state.strip('/')}-{width}-{theme}")
        assert page.evaluate("document.documentElement.scrollWidth") == width, state
        assert width < 1280 or page.evaluate(WIDER) == [], state
        found[state] = here.violations()
    forgive(here)

    assert {*found} >= {*ANSWERED.values()} - {"retry", "rejudge"}
    assert {state: held for state, held in found.items() if held} == {}


@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js of axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_problem_in_a_session_with_everything_open(window, places, width, theme):
    """Key figures, sliders that were moved, tables, and the form that deletes."""
    size = {"width": width, "height": 900}
    here = window(viewport=size, color_scheme=theme, bypass_csp=True)
    found = {}
    for name in ("session", "degraded", "failed", "stopped", "judged", "judged-several"):
        page = here.open(places[name])
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        if name == "session":
            page.get_by_role("slider").first.focus()
            page.keyboard.press("End")
            expect(page.locator(".recounted")).to_contain_text("× 3")
        here.shoot(f"open-{name}-{width}-{theme}")
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        found[name] = here.violations()

    assert {name: held for name, held in found.items() if held} == {}


@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js of axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_problem_in_plans_of_a_session(window, places, width, theme):
    """What asking failed seats again would cost, and another jury."""
    size = {"width": width, "height": 900}
    here = window(viewport=size, color_scheme=theme, bypass_csp=True)
    found = {}
    for plan in ("retry", "rejudge"):
        page = here.open(places["degraded"])
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        page.locator(f'button[formaction$="/{plan}/plan"]').first.click()
        page.wait_for_url(f"**/{plan}/plan")
        here.shoot(f"plan-{plan}-{width}-{theme}")
        assert page.evaluate("document.documentElement.scrollWidth") == width, plan
        assert width < 1280 or page.evaluate(WIDER) == [], plan
        found[plan] = here.violations()

    assert {plan: held for plan, held in found.items() if held} == {}
