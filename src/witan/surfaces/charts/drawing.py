"""Chart files: a Vega-Lite spec drawn to a picture or a page, without browser or network."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from witan.core.escaping import readable
from witan.errors import InvalidParameter, MissingExtra

__all__ = ["KINDS", "check_chart", "save_chart"]

KINDS = (".svg", ".png", ".pdf", ".html", ".json")
"""What a chart can be drawn to; JSON is the Vega-Lite spec itself."""

PIXELS_PER_POINT = 2
"""PNG files are drawn at twice their nominal size, so that they stay sharp in print."""


PLACE = "witan-chart"
"""What stands in a page where its chart is to be."""


def check_chart(path: str | os.PathLike[str]) -> str:
    """Return the kind of chart file that a name stands for.

    Raises
    ------
    InvalidParameter
        If it stands for none.
    """
    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        expected = f"a name that ends in {', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise InvalidParameter("a chart file", os.fspath(path), expected)
    return kind


def save_chart(spec: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Draw a spec to a file of one of `KINDS`, whole or not at all, and return its path."""
    target = Path(path)
    _write(target, _render(_safe(dict(spec)), check_chart(target)))
    return target


def _safe(value: Any) -> Any:
    """Return the spec with every text in it made readable: names come from ballots."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, Mapping):
        return {_safe(key): _safe(held) for key, held in value.items()}
    return [_safe(held) for held in value] if isinstance(value, list | tuple) else value


def _render(spec: dict[str, Any], kind: str) -> bytes:
    if kind == ".json":
        return f"{json.dumps(spec, ensure_ascii=False, indent=1)}\n".encode(errors="replace")
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra("drawing plots", "plot") from error
    if kind == ".html":
        page: str = vl_convert.vegalite_to_html({PLACE: PLACE}, bundle=True)
        return _put(spec, page).encode()
    # An empty list allows no address: a spec that asks for outside data fails, it is not fetched.
    if kind == ".svg":
        drawn: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
        return drawn.encode()
    if kind == ".pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[]))
    png: bytes = vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT, allowed_base_urls=[])
    return png


def _put(spec: dict[str, Any], page: str) -> str:
    """Put the spec into a page, where it stands in a script that no name in it may end."""
    before, after = page.split(json.dumps({PLACE: PLACE}, separators=(",", ":")))
    held = json.dumps(spec).replace("<", "\\u003c")
    return before + held + after


def _write(target: Path, content: bytes) -> None:
    """Write beside the target, then rename over it: a reader sees the old file or the new one."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            part.write_bytes(content)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidParameter(
            "a chart file", str(target), f"a file that can be written ({reason})"
        ) from error
