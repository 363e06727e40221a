"""Assets of the page: origin, weight, and presence in the package."""

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
from witan.surfaces.web.live import LivePage
from witan.surfaces.web.rendering import ASSETS, asset, asset_href, render_live, render_session

WEB = Path(str(files("witan.surfaces.web")))

LIMIT = 300_000
"""Bytes of the whole page, compressed."""


class TestVendored:
    """Vendored files."""

    LOCK = json.loads((WEB / "assets" / "vendored.json").read_text(encoding="utf-8"))

    @pytest.mark.parametrize("name", LOCK)
    def test_every_file_matches_the_lock(self, name):
        """Its digest, version and license are those of its package."""
        held = (WEB / "assets" / name).read_bytes()

        assert hashlib.sha256(held).hexdigest() == self.LOCK[name]["sha256"]
        assert self.LOCK[name].keys() == {"package", "version", "path", "license", "sha256"}

    def test_the_script_reports_the_locked_version(self):
        version = self.LOCK["htmx.min.js"]["version"]

        assert f'version="{version}"' in asset("htmx.min.js").decode().replace("'", '"')

    def test_every_foreign_file_is_in_the_lock(self):
        """Every minified file and every license."""
        held = {path.name for path in (WEB / "assets").iterdir()}

        foreign = {name for name in held if ".min." in name or name.startswith("LICENSE")}
        assert foreign == set(self.LOCK)


class TestWeight:
    """Transfer size."""

    def test_the_heaviest_page_is_light(self):
        """A running session of twelve, with every asset, stays far under the limit."""
        names = [f"member-{n}" for n in range(12)]
        story = Story(*names).answers(**dict.fromkeys(names, "A word or two. " * 200))
        pages = [render_live(LivePage([*story])), render_session(Session.of(story))]
        weight = sum(len(gzip.compress(asset(name))) for name in ASSETS)

        assert weight + max(len(gzip.compress(page.encode())) for page in pages) < LIMIT / 5

    def test_nothing_is_loaded_from_other_hosts(self):
        """No stylesheet names an address, and no page links to another host."""
        for name in ("base.css", "session.css", "figures.css"):
            assert not re.search(r"url\(|@import|//[a-z]", asset(name).decode())

    def test_addresses_contain_a_hash(self):
        """So browsers may cache them for ever."""
        digest = hashlib.sha256(asset("page.js")).hexdigest()

        assert asset_href("page.js") == f"/assets/page.js?v={digest[:12]}"

    @pytest.mark.parametrize("name", ["../assets.py", "vendored.json", "", "base.css/../page.js"])
    def test_only_listed_assets_are_served(self, name):
        """An unknown name is refused before the file system is read."""
        with pytest.raises(UnknownName):
            asset(name)


class TestPackage:
    def test_no_template_or_style_is_long(self):
        """Our templates, styles and scripts have at most 400 lines."""
        ours = [path for path in WEB.rglob("*") if path.suffix in (".html", ".css", ".js")]
        lengths = {path.name: path.read_text(encoding="utf-8").count("\n") for path in ours}

        assert [n for n, lines in lengths.items() if lines > 400 and ".min." not in n] == []

    def test_no_template_disables_escaping(self):
        """None marks anything as safe."""
        for path in (WEB / "templates").rglob("*.html"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"\|\s*safe|autoescape|Markup|\bstyle=|\son\w+=", text)
