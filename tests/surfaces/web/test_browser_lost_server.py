"""The page of a running session while its server is unreachable."""

import os
import signal
import time
from contextlib import ExitStack, contextmanager

import pytest

from browsers import AXE, NEEDS, violations_of
from desks import write_desk
from processes import run_program
from recorded import WITAN
from served import free_port, serving_process

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

expect = sync_api.expect

pytestmark = [*NEEDS, pytest.mark.slow]

HANGS = "So (hang)?"

SECONDS = 15_000
"""Longer than the page takes, and far shorter than what it took to give up."""


class Place:
    """A server at a fixed address that can be killed and restarted."""

    def __init__(self, folder, more=""):
        self._folder, self._port = folder, free_port()
        self._file = write_desk(folder)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(more)
        self._running = ExitStack()
        self.process = None

    def start(self, **environment):
        options = ("--config", self._file, "--history", self._folder / "history.sqlite")
        running = serving_process(
            *options, "--port", self._port, cwd=self._folder, environment=environment
        )
        self.url, self.process = self._running.enter_context(running)

    def resume(self, session):
        """Resume a session by the command, with reviewers that reply."""
        for script in self._folder.glob("*.toml"):
            text = script.read_text(encoding="utf-8")
            script.write_text(text.replace("(hang)", "(no more)"), encoding="utf-8")
        options = ("--config", self._file, "--history", self._folder / "history.sqlite")
        command = [*WITAN, "resume", session, "--take-over", *map(str, options)]
        ended = run_program(*command, cwd=self._folder)
        assert ended.returncode == 0, ended.stderr

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._running.close()


@contextmanager
def started(folder, more="", **environment):
    """Run a server for the length of the block."""
    place = Place(folder, more)
    place.start(**environment)
    try:
        yield place
    finally:
        place.kill()


@pytest.fixture
def context(chrome):
    """A browser context that tolerates errors, as its server disappears."""
    opened = chrome.new_context()
    opened.set_default_timeout(SECONDS)
    yield opened
    opened.close()


def waiting_page(context, place):
    """The page of a session that waits for its reviewers."""
    page = context.new_page()
    page.goto(place.url)
    ask(page)
    return page


def ask(page):
    """Ask a question at which the reviewers hang."""
    page.get_by_label("Question").fill(HANGS)
    page.get_by_role("button", name="Ask the council").click()
    expect(page.locator("#status")).to_contain_text("reviews: 0 of 3", timeout=SECONDS)


def second_tab(context, page):
    """A second tab at the same page."""
    tab = context.new_page()
    tab.goto(page.url)
    expect(tab.locator("#status")).to_contain_text("reviews: 0 of 3", timeout=SECONDS)
    return tab


def shows_loss(page, timeout=SECONDS):
    """The page reports a lost connection, and its timer stops."""
    said = "connection to the server is lost"
    expect(page.locator("#connection")).to_contain_text(said, timeout=timeout)
    expect(page.locator("#connection")).to_be_visible()
    before = page.locator("[data-elapsed]").all_text_contents()
    page.wait_for_timeout(2200)
    assert page.locator("[data-elapsed]").all_text_contents() == before


def shows_interrupted(page):
    """The page reports the interruption and how to resume."""
    expect(page.locator("#verdict .shortfall")).to_contain_text(
        "finished calls are saved", timeout=SECONDS
    )
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.locator("#connection")).to_be_hidden()


def test_tabs_notice_the_loss_and_the_return_of_the_server(context, tmp_path):
    """Every tab reports the lost connection, then the interrupted session."""
    with started(tmp_path) as place:
        pages = [waiting_page(context, place)]
        pages.append(second_tab(context, pages[0]))
        place.kill()
        for page in pages:
            page.bring_to_front()
            shows_loss(page)
        place.start()
        for page in pages:
            page.bring_to_front()
            shows_interrupted(page)
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#status")).to_contain_text("reviews: 0 of 3", timeout=SECONDS)
        expect(page.locator(".lane .prose").first).to_contain_text("says so")


def test_a_page_continues_when_its_session_is_resumed_elsewhere(context, tmp_path):
    """By another tab, then by a command; no manual reload is needed."""
    with started(tmp_path) as place:
        first = waiting_page(context, place)
        tabs = [first, second_tab(context, first)]
        first.bring_to_front()
        first.get_by_role("button", name="Stop").click()
        for tab in tabs:
            tab.bring_to_front()
            shows_interrupted(tab)
        first.bring_to_front()
        first.get_by_role("button", name="Resume").click()
        tabs[1].bring_to_front()
        expect(tabs[1].locator("#status")).to_contain_text("reviews: 0 of 3", timeout=SECONDS)

        tabs[1].get_by_role("button", name="Stop").click()
        shows_interrupted(tabs[1])
        place.resume(first.url.rpartition("/")[2])
        expect(tabs[1].locator("#verdict .shortfall")).to_be_hidden(timeout=SECONDS)


def test_a_session_interrupted_meanwhile_is_shown_as_interrupted(context, chrome, tmp_path):
    """It was resumed and interrupted again before the page reconnected."""
    with started(tmp_path) as place:
        page = waiting_page(context, place)
        place.kill()
        shows_loss(page)
        page.route("**/live?*", lambda route: route.abort())
        place.start()
        other = chrome.new_context()
        tab = other.new_page()
        tab.goto(page.url)
        tab.get_by_role("button", name="Resume").click()
        tab.get_by_role("button", name="Stop").click()
        expect(tab.locator("#verdict .shortfall")).to_be_visible(timeout=SECONDS)
        other.close()
        expect(page.locator("#connection")).to_be_visible()
        page.unroute("**/live?*")
        shows_interrupted(page)


def test_a_failed_first_connection_is_retried(context, tmp_path):
    """The page reloads when the server is up."""
    failed, opened = [], []

    def once(route):
        if failed:
            route.continue_()
        else:
            failed.append(route.request.url)
            route.abort()

    with started(tmp_path) as place:
        context.route("**/live?*", once)
        context.on("request", lambda each: each.is_navigation_request() and opened.append(each.url))
        page = waiting_page(context, place)
        ends = time.monotonic() + SECONDS / 1000
        while opened.count(page.url) < 2 and time.monotonic() < ends:
            page.wait_for_timeout(200)
        n_opened = opened.count(page.url)
        context.unroute("**/live?*")
        page.get_by_role("button", name="Stop").click()
        shows_interrupted(page)

    assert (len(failed), n_opened) == (1, 2)


def test_a_page_backs_off_from_a_busy_server(context, tmp_path):
    """It neither reloads nor polls often, and continues when there is room."""
    asked_for = []

    def note(request):
        asked_for.append(request.url)

    with started(tmp_path, "[serve]\nmax_streams = 1\n") as place:
        first = waiting_page(context, place)
        page = context.new_page()
        page.on("request", note)
        page.goto(first.url)
        expect(page.locator("#connection")).to_contain_text("The server is too busy")
        page.evaluate("window.first = true")
        asked_for.clear()
        page.wait_for_timeout(9000)
        n_asked = len(asked_for)
        expect(page.locator("#connection")).to_contain_text("The server is too busy")
        first.close()
        expect(page.locator("#connection")).to_be_hidden(timeout=SECONDS)
        same = page.evaluate("window.first")
        page.get_by_role("button", name="Stop").click()
        shows_interrupted(page)

    assert same
    assert n_asked <= 2


def test_a_page_waits_for_a_server_that_is_busy_after_a_restart(context, tmp_path):
    """If its stream was given away, the page says so and gets the next free one."""
    with started(tmp_path) as place:
        page = waiting_page(context, place)
        page.evaluate("window.first = true")
        refused = []

        def busy(route):
            refused.append(time.monotonic())
            route.fulfill(status=429, headers={"Retry-After": "5"}, body="{}")

        page.route("**/live?*", busy)
        place.kill()
        shows_loss(page)
        place.start()
        expect(page.locator("#connection")).to_contain_text(
            "The server is too busy", timeout=SECONDS
        )
        page.wait_for_timeout(9000)
        n_refused = len(refused)
        page.unroute("**/live?*")
        expect(page.locator("#verdict .shortfall")).to_contain_text(
            "finished calls are saved", timeout=40_000
        )

    assert n_refused <= 2


TOKEN = "a-token-of-the-tests"  # noqa: S105 - of this test


@pytest.fixture
def signed_in(context, tmp_path):
    """A server with a token, and a page that is signed in and waits for its reviewers."""
    more = '[serve.tokens.team]\nkey = "TEAM_TOKEN"\n'
    with started(tmp_path, more, TEAM_TOKEN=TOKEN) as place:
        page = context.new_page()
        page.goto(place.url)
        sign_in(page)
        ask(page)
        yield place, page


def sign_in(page):
    """Fill the form that asks for the token."""
    page.get_by_label("Token").fill(TOKEN)
    page.locator("main form button").click()


def restart_signed_out(place, page):
    """Restart the server, which forgets who is signed in; the page asks, and continues."""
    place.kill()
    shows_loss(page)
    place.start(TEAM_TOKEN=TOKEN)
    expect(page.get_by_label("Token")).to_be_visible(timeout=SECONDS)
    page.unroute("**/live?*")
    sign_in(page)
    shows_interrupted(page)


def test_a_restart_that_signs_out_asks_to_sign_in(signed_in):
    """The cookie is invalid; the token leads back to the session."""
    restart_signed_out(*signed_in)


def test_a_page_without_a_first_connection_asks_to_sign_in(signed_in):
    """The server was lost before the page could follow its session."""
    place, page = signed_in
    page.route("**/live?*", lambda route: route.abort())
    page.reload()
    expect(page.locator("#connection")).to_be_visible()
    restart_signed_out(place, page)


@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js of axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_problem_around_a_lost_connection(chrome, tmp_path, width, theme):
    """The page that signs in, the lost connection, and the interrupted session."""
    size = {"width": width, "height": 900}
    opened = chrome.new_context(bypass_csp=True, color_scheme=theme, viewport=size)
    opened.set_default_timeout(SECONDS)
    found = {}
    more = '[serve.tokens.team]\nkey = "TEAM_TOKEN"\n'
    with started(tmp_path, more, TEAM_TOKEN=TOKEN) as place:
        page = opened.new_page()
        page.goto(place.url)
        found["sign in"] = violations_of(page)
        sign_in(page)
        ask(page)
        place.kill()
        shows_loss(page)
        found["lost"] = violations_of(page)
        place.start(TEAM_TOKEN=TOKEN)
        expect(page.get_by_label("Token")).to_be_visible(timeout=SECONDS)
        found["signed out"] = violations_of(page)
        sign_in(page)
        shows_interrupted(page)
        found["interrupted"] = violations_of(page)
    opened.close()

    assert {name: held for name, held in found.items() if held} == {}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="a process cannot be stopped here")
def test_a_server_that_stops_sending_is_noticed(context, tmp_path):
    """Its connections stay open without data; the page continues when the server does."""
    with started(tmp_path) as place:
        page = waiting_page(context, place)
        os.kill(place.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        shows_loss(page, 20_000)
        taken = time.monotonic() - began
        os.kill(place.process.pid, signal.SIGCONT)
        expect(page.locator("#connection")).to_be_hidden(timeout=SECONDS)
        expect(page.locator("#status")).to_contain_text("reviews: 0 of 3")

    assert taken < 20
