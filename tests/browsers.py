"""A real Chromium, whose every request and complaint is noted."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

AXE = os.environ.get("TEST_AXE", "")
"""The file axe.min.js of the package axe-core, where it is at hand."""

ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]  # fmt: skip
"""What keeps it to this machine, and from tasks of its own."""

SECONDS = 60
"""How long anything may take to show: a busy machine is no failure."""

NEEDS = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, for as long as the block lasts."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        sync_api.expect.set_options(timeout=SECONDS * 1000)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


class Watched:
    """One window, and what went wrong in it.

    Parameters
    ----------
    options
        Of the context, such as ``viewport`` or ``color_scheme``.

    Attributes
    ----------
    problems
        What it complained about, dialogs that were opened, and what left the machine.
    """

    def __init__(self, browser: Any, url: str, shots: Path | None, **options: Any) -> None:
        size = {"width": 1280, "height": 900}
        self.context = browser.new_context(**{"viewport": size, **options})
        self.url, self._shots = url, shots
        self.problems: list[str] = []
        self.context.on("request", self._note_request)
        self.page = self.context.new_page()
        self.page.set_default_timeout(SECONDS * 1000)
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", self._note_dialog)

    def _note_request(self, request: Any) -> None:
        asked = urlsplit(request.url)
        if asked.netloc != urlsplit(self.url).netloc and asked.scheme != "file":
            self.problems.append(f"asked for {request.url}")

    def _note_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _note_dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: str) -> Any:
        """Go to a page of the server, and wait for whatever comes later than it."""
        self.page.goto(f"{self.url}{path}")
        self.page.locator("[aria-busy]").wait_for(state="detached")
        return self.page

    def shoot(self, name: str) -> None:
        """Store a picture of the page, where a folder for them is named."""
        if self._shots is None:
            return
        self._shots.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=self._shots / f"{name}.png", full_page=True)

    def violations(self) -> list[str]:
        """What axe has to say of the page; the context has to be one that bypasses its policy."""
        return violations_of(self.page)


VIOLATIONS = """axe.run({resultTypes: ["violations"]}).then(
    found => found.violations.map(each => `${each.id}: ${each.nodes[0].html}`))"""
"""Tells of nothing but violations: what passes is a megabyte for each page."""


def violations_of(page: Any) -> list[str]:
    """What axe has to say of a page."""
    page.evaluate(Path(AXE).read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(VIOLATIONS)
    return found
