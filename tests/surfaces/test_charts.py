"""Chart files are drawn whole, without a network, or not at all."""

import json
import struct
import subprocess
import sys
from xml.parsers import expat

import pytest

from witan.core.ballot import Ballot
from witan.core.comparison import compare_rules
from witan.core.settings import Settings
from witan.errors import InvalidParameter, WitanError
from witan.surfaces.charts import comparison_chart, matchup_chart, standings_chart
from witan.surfaces.charts.drawing import save_chart

pytest.importorskip("vl_convert")

SPEC = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "data": {"values": [{"name": '"]; alert(1)//<b>', "x": 1}]},
    "mark": "text",
    "encoding": {"text": {"field": "name"}, "x": {"field": "x", "type": "quantitative"}},
}


def elements(svg):
    """The names of all elements, in order; fails unless the text is well-formed XML."""
    found = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, _: found.append(name)
    parser.Parse(svg, True)
    return found


def python(code):
    """Run code in a fresh interpreter and return what it prints."""
    done = subprocess.run(  # noqa: S603  our own code, our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


class TestFormats:
    """The suffix decides."""

    def test_svg_is_well_formed_and_markup_in_a_name_stays_text(self, tmp_path):
        """A name with markup makes no element of its own."""
        path = save_chart(SPEC, tmp_path / "chart.svg")

        svg = path.read_text(encoding="utf-8")
        assert elements(svg)[0] == "svg"
        assert "b" not in elements(svg)
        assert "alert(1)//&lt;b&gt;" in svg

    @pytest.mark.parametrize("name", ["chart.png", "CHART.PNG"])
    def test_png_is_a_picture_of_some_size(self, tmp_path, name):
        """The file has the signature of PNG and a width and height."""
        path = save_chart(SPEC, tmp_path / name)

        content = path.read_bytes()
        width, height = struct.unpack(">II", content[16:24])
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert min(width, height) > 100

    def test_the_same_spec_gives_the_same_file(self, tmp_path):
        """A chart under version control changes only when its data do."""
        first = save_chart(SPEC, tmp_path / "one.svg").read_bytes()
        second = save_chart(SPEC, tmp_path / "two.svg").read_bytes()

        assert first == second

    def test_pdf_is_a_document(self, tmp_path):
        """It begins as documents of that kind do."""
        assert save_chart(SPEC, tmp_path / "chart.pdf").read_bytes().startswith(b"%PDF-")

    def test_json_is_the_spec(self, tmp_path):
        """It can be read back."""
        path = save_chart(SPEC, tmp_path / "chart.json")

        assert json.loads(path.read_text(encoding="utf-8")) == SPEC

    def test_a_name_cannot_end_the_script_of_a_page(self, tmp_path):
        """A page holds everything that draws it, and no element that a name brought."""
        spec = {**SPEC, "title": "</script><script>alert(1)</script>"}
        page = save_chart(spec, tmp_path / "chart.html").read_text(encoding="utf-8")

        assert "<script>alert(1)" not in page
        assert "\\u003c/script>\\u003cscript>alert(1)" in page
        assert 'src="' not in page.partition("<body>")[2]

    @pytest.mark.parametrize("name", ["chart", "chart.gif", "chart.svg.txt"])
    def test_another_suffix_is_refused_with_those_that_work(self, tmp_path, name):
        """The error names the file and the kinds, and nothing is written."""
        with pytest.raises(InvalidParameter, match=r"\.svg, .* or \.json") as caught:
            save_chart(SPEC, tmp_path / name)

        assert name in str(caught.value)
        assert list(tmp_path.iterdir()) == []


class TestCouncils:
    """From ballots to pictures."""

    @pytest.mark.parametrize("n_sessions", [1, 2])
    def test_every_chart_of_a_counted_council_is_drawn(self, tmp_path, n_sessions):
        """All rules, all charts: each picture holds the candidates' names."""
        grades = [{"ada": 9, "bob": 7, "cyd": 4}, {"ada": 6, "bob": 7, "cyd": 5}, {"ada": 8}]
        council = [
            Ballot(f"r{k}", grades=given, session=f"q{s}", candidates=("ada", "bob", "cyd", "dee"))
            for s in range(n_sessions)
            for k, given in enumerate(grades)
        ]
        compared = compare_rules(council, Settings())
        outcomes = compared.outcomes["q0"].values()
        specs = [chart(held) for held in outcomes for chart in (standings_chart, matchup_chart)]

        for spec in [*specs, comparison_chart(compared, "q0")]:
            svg = save_chart(spec, tmp_path / "chart.svg").read_text(encoding="utf-8")
            assert elements(svg)[0] == "svg"
            assert all(f">{name}</text>" in svg for name in ("ada", "bob", "cyd", "dee"))
        agreement = save_chart(comparison_chart(compared), tmp_path / "all.svg")
        assert ">schulze</text>" in agreement.read_text(encoding="utf-8")


class TestWriting:
    """A file is replaced whole or left alone."""

    def test_an_older_chart_is_replaced(self, tmp_path):
        """Drawing again over a file leaves the new picture and nothing else."""
        path = tmp_path / "chart.svg"
        path.write_text("old")

        save_chart(SPEC, str(path))

        assert path.read_text(encoding="utf-8").startswith("<svg")
        assert list(tmp_path.iterdir()) == [path]

    def test_a_directory_that_does_not_exist_is_named(self, tmp_path):
        """The error holds the path."""
        path = tmp_path / "nowhere" / "chart.svg"

        with pytest.raises(WitanError, match="nowhere"):
            save_chart(SPEC, path)

    def test_a_directory_in_the_place_of_the_file_is_left_as_it_is(self, tmp_path):
        """What cannot be replaced is named, and no part of a file stays behind."""
        path = tmp_path / "chart.svg"
        path.mkdir()

        with pytest.raises(WitanError, match=r"chart\.svg"):
            save_chart(SPEC, path)

        assert list(tmp_path.iterdir()) == [path]

    def test_a_spec_that_cannot_be_drawn_leaves_the_old_file(self, tmp_path):
        """Outside data are not fetched, and the failure costs nothing that was there."""
        path = tmp_path / "chart.svg"
        path.write_text("old")
        outside = {**SPEC, "data": {"url": "https://example.invalid/data.csv"}}

        with pytest.raises(ValueError, match=r"(?i)url|allowed|denied|external"):
            save_chart(outside, path)

        assert path.read_text() == "old"


class TestExtra:
    """Drawing is optional."""

    def test_the_drawing_library_is_loaded_only_to_draw(self):
        """Importing the adapter imports no renderer."""
        code = "import sys, witan.surfaces.charts.drawing; print('vl_convert' in sys.modules)"

        assert python(code) == "False"

    def test_without_the_library_the_error_says_what_to_install(self, tmp_path):
        """The extra is named, and no file appears."""
        code = (
            "import sys; sys.modules['vl_convert'] = None\n"
            "from witan.surfaces.charts.drawing import save_chart\n"
            "from witan.errors import MissingExtra\n"
            f"try: save_chart({{}}, {str(tmp_path / 'chart.svg')!r})\n"
            "except MissingExtra as error: print(error)"
        )

        said = python(code)

        assert said == "drawing plots needs an extra: pip install 'witan[plot]'"
        assert list(tmp_path.iterdir()) == []
