"""Charts as files: SVG, PNG and HTML."""

import os
from pathlib import Path

from witan.errors import BallotFileError, InvalidParameter, MissingExtra, SessionFileError
from witan.files.session_files import write_whole
from witan.surfaces.report.document import Chart
from witan.surfaces.report.drawing import FONTS, draw_chart, safe

KINDS = (".svg", ".png", ".html")
"""Types of chart files."""

ZOOM = 2
"""Scale of a PNG file relative to the drawing, so that it is sharp in print."""


def check_chart(path: str | os.PathLike[str], option: str = "a chart file") -> str:
    """Return the type of a chart file by its name; an error names the option."""
    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        expected = f"a name that ends in {', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise InvalidParameter(option, os.fspath(path), expected)
    return kind


def save_chart(chart: Chart, path: str | os.PathLike[str]) -> Path:
    """Draw a chart to a file; return its path.

    Raises
    ------
    MissingExtra
        If PNG is requested without the extra ``plot``.
    BallotFileError
        If the file cannot be written.
    InvalidParameter
        If no font can draw the text of a PNG.
    """
    kind, target = check_chart(path), Path(path)
    drawn = draw_chart(chart, with_frame=True)
    if kind == ".png":
        content = _rasterise(drawn, target)
    elif kind == ".html":
        head = f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{safe(chart.name)}"
        content = f"{head}</title>\n<body>\n{drawn}</body></html>\n".encode()
    else:
        content = drawn.encode()
    try:
        write_whole(content, target)
    except SessionFileError as error:
        problem = f"{error.problem}; name another file for the chart"
        raise BallotFileError(str(target), problem) from error
    return target


def _rasterise(svg: str, target: Path) -> bytes:
    try:
        from resvg_py import svg_to_bytes  # noqa: TID251 - the gate of images
    except ImportError as error:
        raise MissingExtra("a chart as .png, unlike .svg,", "plot") from error
    probe = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" font-family="{FONTS}">'
    with_text, without = (svg_to_bytes(svg_string=f"{probe}{text}</svg>") for text in
                          ('<text y="9">M</text>', ""))  # fmt: skip
    if with_text == without:
        problem = "an .svg file: no font for a PNG is installed (one of fonts-dejavu will do)"
        raise InvalidParameter("a chart file", str(target), problem)
    png: bytes = svg_to_bytes(svg_string=svg, zoom=ZOOM)
    return png
