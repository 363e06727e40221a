"""What the page is made of: whose it is, what it weighs, and that it comes with the package."""

import gzip
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from sessions import Story
from witan.deliberation.session import Session
from witan.errors import UnknownName
from witan.surfaces.web.assets import ASSETS, asset, asset_href
from witan.surfaces.web.live import LivePage
from witan.surfaces.web.rendering import render_live, render_session

WEB = Path(str(files("witan.surfaces.web")))

LIMIT = 300_000
"""Bytes of the whole page, compressed."""


class TestVendored:
    """What others wrote."""

    LOCK = json.loads((WEB / "assets" / "vendored.json").read_text(encoding="utf-8"))

    @pytest.mark.parametrize("name", LOCK)
    def test_is_exactly_what_was_locked(self, name):
        """Each file has the digest, version and license of the package that it is from."""
        held = (WEB / "assets" / name).read_bytes()

        assert hashlib.sha256(held).hexdigest() == self.LOCK[name]["sha256"]
        assert self.LOCK[name].keys() == {"package", "version", "path", "license", "sha256"}

    def test_says_the_version_that_is_locked(self):
        """The script itself agrees with the lock."""
        version = self.LOCK["htmx.min.js"]["version"]

        assert f'version="{version}"' in asset("htmx.min.js").decode().replace("'", '"')

    def test_is_all_that_is_not_ours(self):
        """Whatever is minified, or a license, is in the lock."""
        held = {path.name for path in (WEB / "assets").iterdir()}

        foreign = {name for name in held if ".min." in name or name.startswith("LICENSE")}
        assert foreign == set(self.LOCK)


class TestWeight:
    """What a browser has to fetch."""

    def test_the_heaviest_page_is_light(self):
        """A session of twelve under way, with every asset, stays far under the limit."""
        names = [f"member-{n}" for n in range(12)]
        story = Story(*names).answers(**dict.fromkeys(names, "A word or two. " * 200))
        pages = [render_live(LivePage([*story])), render_session(Session.of(story))]
        weight = sum(len(gzip.compress(asset(name))) for name in ASSETS)

        assert weight + max(len(gzip.compress(page.encode())) for page in pages) < LIMIT / 5

    def test_nothing_is_fetched_from_elsewhere(self):
        """No style of ours names an address, and no page links to another host."""
        for name in ("base.css", "session.css", "figures.css"):
            assert not re.search(r"url\(|@import|//[a-z]", asset(name).decode())

    def test_addresses_change_with_what_they_hold(self):
        """So that a browser may keep it for good."""
        digest = hashlib.sha256(asset("page.js")).hexdigest()

        assert asset_href("page.js") == f"/assets/page.js?v={digest[:12]}"

    @pytest.mark.parametrize("name", ["../assets.py", "vendored.json", "", "base.css/../page.js"])
    def test_only_what_is_listed_is_handed_out(self, name):
        """A name that is no asset is refused before any file is looked for."""
        with pytest.raises(UnknownName):
            asset(name)


class TestPackage:
    """What is in the package."""

    def test_no_template_or_style_is_long(self):
        """Templates, styles and scripts of ours hold one idea each: 400 lines at most."""
        ours = [path for path in WEB.rglob("*") if path.suffix in (".html", ".css", ".js")]
        lengths = {path.name: path.read_text(encoding="utf-8").count("\n") for path in ours}

        assert [n for n, lines in lengths.items() if lines > 400 and ".min." not in n] == []

    def test_no_template_turns_escaping_off(self):
        """None marks anything as safe."""
        for path in (WEB / "templates").rglob("*.html"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"\|\s*safe|autoescape|Markup|\bstyle=|\son\w+=", text)
