"""Formulas in models' Markdown, written as MathML without a script."""

from collections.abc import Iterator
from html import unescape
from re import Match
from re import compile as pattern
from typing import Any
from xml.etree.ElementTree import Element

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markupsafe import Markup

from witan.surfaces.web.escaping import to_html, trusted_html

DELIMITERS = (("$$", "$$", True), ("$", "$", False), ("\\(", "\\)", False), ("\\[", "\\]", True))
"""Beginning and end of a formula, and whether it stands on its own line."""

MAX_CHARS = 4000
"""Characters of the longest formula; a longer one stays text."""

MAX_LINES = 100

ELEMENTS = frozenset(
    {
        "math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot",
        "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext",
        "mtr", "munder", "munderover",
    }
)  # fmt: skip
"""Elements of MathML that draw and do nothing else."""

_WORDS = pattern(r"[a-z -]{1,40}")
_LENGTH = pattern(r"[+-]?\d?(\.\d{1,4})?(em|ex|pt|mu)?|0")

ATTRIBUTES = {
    **dict.fromkeys(
        (
            "accent", "columnalign", "columnlines", "display", "displaystyle", "fence", "form",
            "largeop", "mathvariant", "movablelimits", "notation", "rowlines", "scriptlevel",
            "separator", "stretchy", "symmetric",
        ),
        _WORDS,
    ),
    **dict.fromkeys(
        (
            "depth", "height", "linethickness", "lspace", "maxsize", "minsize", "rspace",
            "scriptlevel", "voffset", "width",
        ),
        _LENGTH,
    ),
}  # fmt: skip
"""Attributes that are passed on, and how their values look; colours hide text, and are not."""


def add_maths(parser: MarkdownIt) -> None:
    """Let a parser find formulas between dollars, brackets or environments."""
    interrupted = ["paragraph", "blockquote", "list"]
    parser.block.ruler.before("fence", "formula", _find_block, {"alt": interrupted})
    parser.inline.ruler.before("escape", "formula", _find_inline)
    parser.add_render_rule("formula", _write_inline)
    parser.add_render_rule("formula_block", _write_block)


_DEFINITION = pattern(r"\\(?:(?:re)?new|provide|Declare|[egx]?def(?![a-z])|let(?![a-z]))")
"""A command that defines another: a few of them multiply a text beyond all bounds."""

_ENVIRONMENTS = {
    "align": "align*",
    "aligned": "split",
    "alignedat": "split",
    "alignat": "split",
    "dcases": "cases",
    "eqnarray": "eqnarray",
    "equation": "equation",
    "gather": "matrix",
    "gathered": "matrix",
    "multline": "matrix",
}
"""Environments to those of the library that look alike, without numbers of equations."""

_ENVIRONMENT_ENDS = pattern(
    rf"\\(begin|end)\{{({'|'.join(sorted(_ENVIRONMENTS, key=len, reverse=True))})\*?\}}"
    r"(?:(?<=at\})\{\d\}|(?<=at\*\})\{\d\})?"
)


_ESCAPED = pattern(r"\\.")


class _UnreadableFormula(ValueError):
    pass


def formula_html(source: str, *, on_own_line: bool = False) -> Markup:
    """Write a formula as MathML; what is no formula stays text."""
    try:
        return trusted_html("".join(_write_element(_read_formula(source, on_own_line))))
    except (Exception, RecursionError):  # noqa: BLE001 - the library fails in many ways
        return trusted_html(f'<code class="tex">{to_html(source)}</code>')


def _read_formula(source: str, on_own_line: bool) -> Element:
    """Read a formula.

    Raises
    ------
    _UnreadableFormula
        If the library would drop or misread a part of it.
    """
    from latex2mathml.converter import convert_to_element

    braces = _ESCAPED.sub("", source)
    if _DEFINITION.search(source) or braces.count("{") != braces.count("}"):
        raise _UnreadableFormula(source)
    known = _ENVIRONMENT_ENDS.sub(_replace_environment, source)
    known = known.replace(r"\operatorname*", r"\operatorname")
    display = "block" if on_own_line else "inline"
    root = convert_to_element(known, display=display)
    if any(each.get("linebreak") for each in root.iter("mspace")):
        root = convert_to_element(rf"\begin{{split}}{known}\end{{split}}", display=display)
    for each in root.iter():
        name = unescape(each.text or "") if each.tag == "mi" else ""
        if (name == "&" and r"\&" not in source) or name.startswith("\\"):
            raise _UnreadableFormula(source)
    return root


def _replace_environment(end: Match[str]) -> str:
    kind, name = end[1], _ENVIRONMENTS[end[2]]
    if name == "equation":
        return ""
    if name == "eqnarray":
        return r"\begin{array}{rcl}" if kind == "begin" else r"\end{array}"
    return rf"\{kind}{{{name}}}"


def _write_element(element: Element) -> Iterator[str]:
    """Yield an element with listed names and values, the rest escaped."""
    tag = element.tag if element.tag in ELEMENTS else "mrow"
    attributes = (
        f' {name}="{to_html(value)}"'
        for name, value in element.attrib.items()
        if name in ATTRIBUTES and ATTRIBUTES[name].fullmatch(value)
    )
    yield f"<{tag}{''.join(attributes)}>"
    yield to_html(unescape(element.text or ""))
    for child in element:
        yield from _write_element(child)
        yield to_html(unescape(child.tail or ""))
    yield f"</{tag}>"


def _find_inline(state: StateInline, silent: bool) -> bool:
    """Find a formula within a line, by Pandoc's rule for dollars."""
    text, at = state.src, state.pos
    if text[at] not in "$\\":
        return False
    for begin, end, on_own_line in DELIMITERS:
        if not text.startswith(begin, at):
            continue
        start = at + len(begin)
        stop = _find_end(text, start, end)
        if stop < 0 or not text[start:stop].strip():
            return False
        if begin == "$" and _is_money(text, start, stop):
            return False
        if not silent:
            token = state.push("formula", "math", 0)
            token.content, token.meta = text[start:stop], {"on_own_line": on_own_line}
        state.pos = stop + len(end)
        return True
    return False


def _find_end(text: str, start: int, end: str) -> int:
    """Return where a formula ends; negative: it does not."""
    last = min(len(text), start + MAX_CHARS)
    stop = text.find(end, start, last)
    while end[0] == "$" and stop > 0 and text[stop - 1] == "\\":
        stop = text.find(end, stop + 1, last)
    return stop


def _is_money(text: str, start: int, stop: int) -> bool:
    before, after = text[start - 2 : start - 1], text[stop + 1 : stop + 2]
    return text[start].isspace() or text[stop - 1].isspace() or before == "$" or after.isdigit()


def _find_block(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Find a formula that fills whole lines."""
    if state.is_code_block(first):
        return False
    opening = state.src[state.bMarks[first] + state.tShift[first] : state.eMarks[first]].rstrip()
    delimiters = _block_delimiters(opening)
    if delimiters is None:
        return False
    begin, closing = delimiters
    lines, last = [opening.removeprefix(begin)], first
    while not lines[-1].rstrip().endswith(closing):
        last += 1
        if last >= min(end, first + MAX_LINES) or state.sCount[last] < state.blkIndent:
            return False
        lines.append(state.src[state.bMarks[last] + state.tShift[last] : state.eMarks[last]])
    source = "\n".join(lines).rstrip().removesuffix(closing)
    if not source.strip() or len(source) > MAX_CHARS or closing in source:
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        whole = f"{begin}{source}{closing}" if begin.startswith("\\begin") else source
        token.content, token.block, token.map = whole, True, [first, last + 1]
        state.line = last + 1
    return True


_ENVIRONMENT = pattern(r"\\begin\{((?:align|eqnarray|equation|gather|multline)\*?)\}")


def _block_delimiters(line: str) -> tuple[str, str] | None:
    for begin, end, on_own_line in DELIMITERS:
        if on_own_line and line.startswith(begin):
            return begin, end
    if (environment := _ENVIRONMENT.match(line)) is not None:
        return environment[0], f"\\end{{{environment[1]}}}"
    return None


def _write_inline(_renderer: Any, tokens: Any, at: int, *_others: Any) -> str:
    token = tokens[at]
    return formula_html(token.content, on_own_line=token.meta["on_own_line"])


def _write_block(_renderer: Any, tokens: Any, at: int, *_others: Any) -> str:
    formula = formula_html(tokens[at].content, on_own_line=True)
    return f'<div class="formula" tabindex="0" role="group" aria-label="Formula">{formula}</div>\n'
