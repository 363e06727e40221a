"""Models' text as safe HTML: no markup, pictures or unsafe links.

Formulas become MathML without scripts.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from itertools import groupby
from re import Match
from re import compile as pattern
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup
from mdit_py_plugins.footnote import footnote_plugin

from witan.service.text import readable
from witan.surfaces.web.escaping import to_html, trusted_html

if TYPE_CHECKING:
    from pygments.lexer import Lexer


DELIMITERS = (("$$", "$$", True), ("$", "$", False), ("\\(", "\\)", False), ("\\[", "\\]", True))
"""Beginning and end of a formula, and whether it stands on its own line."""

MAX_FORMULA_CHARS = 4000
"""Most characters of a formula; a longer one stays text."""

MAX_LINES = 100

ELEMENTS = frozenset(
    {
        "math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot",
        "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext",
        "mtr", "munder", "munderover",
    }
)  # fmt: skip
"""Elements of MathML that only draw."""

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
"""Allowed attributes with patterns of their values; no colours, which can hide text."""

_DEFINITION = pattern(r"\\(?:(?:re)?new|provide|Declare|[egx]?def(?![a-z])|let(?![a-z]))")
"""A command that defines another; nested ones can expand without bound."""

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
"""Equivalent environments of the library, without equation numbers."""

_ENVIRONMENT_ENDS = pattern(
    rf"\\(begin|end)\{{({'|'.join(sorted(_ENVIRONMENTS, key=len, reverse=True))})\*?\}}"
    r"(?:(?<=at\})\{\d\}|(?<=at\*\})\{\d\})?"
)

_ESCAPED = pattern(r"\\.")

_ENVIRONMENT = pattern(r"\\begin\{((?:align|eqnarray|equation|gather|multline)\*?)\}")

_CITATION = re.compile(r"\[([A-Z]{1,3}\d{0,3})\]")

_TASK = re.compile(r"\[([ xX])\]\s+")

_DIRECTED = ("bullet_list_open", "ordered_list_open", "blockquote_open")
"""Blocks with a sign at the beginning of their lines, right or left."""

TABLE_BEGIN = (
    '<div class="table-box" dir="auto" tabindex="0" role="group" aria-label="Table"><table>\n'
)

_SAFE_LINK = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)

LANGUAGES = frozenset(
    {
        "awk", "bash", "c", "c++", "c#", "clojure", "cmake", "console", "cpp", "cs", "csharp",
        "css", "dart", "diff", "docker", "dockerfile", "elixir", "erlang", "fortran", "fsharp",
        "go", "golang", "graphql", "haskell", "html", "ini", "java", "javascript", "js", "json",
        "jsx", "julia", "kotlin", "latex", "lisp", "lua", "matlab", "nginx", "nix", "objectivec",
        "ocaml", "pascal", "perl", "php", "postgresql", "powershell", "protobuf", "ps1", "py",
        "pycon", "python", "python3", "r", "rb", "rs", "ruby", "rust", "scala", "scheme", "scss",
        "sh", "shell", "sql", "swift", "tex", "toml", "ts", "tsx", "typescript", "vim", "xml",
        "yaml", "yml", "zig", "zsh",
    }
)  # fmt: skip
"""Names of languages with coloured code."""

MAX_CHARS, MAX_TEXT_CHARS = 6000, 24_000
"""Most characters to colour, in a block and in a text, because some code takes long."""

CLASSES = (
    ("Comment", "hl-comment"),
    ("Literal.String", "hl-string"),
    ("Literal.Number", "hl-number"),
    ("Keyword", "hl-keyword"),
    ("Operator.Word", "hl-keyword"),
    ("Name.Function", "hl-name"),
    ("Name.Class", "hl-name"),
    ("Name.Tag", "hl-keyword"),
    ("Name.Attribute", "hl-name"),
    ("Name.Decorator", "hl-name"),
    ("Name.Builtin", "hl-builtin"),
    ("Generic.Deleted", "hl-deleted"),
    ("Generic.Inserted", "hl-inserted"),
    ("Generic.Heading", "hl-name"),
    ("Generic.Subheading", "hl-name"),
    ("Generic.Prompt", "hl-comment"),
)
"""CSS class by Pygments' kind of token; other kinds have none."""

FINE_CHARS = 512
"""Length up to which the last block is always rendered again."""

STEPS = 16
"""Renderings of a longer last block until its length doubles."""


def add_maths(parser: MarkdownIt) -> None:
    """Make a parser find formulas between dollars, in brackets or in environments."""
    interrupted = ["paragraph", "blockquote", "list"]
    parser.block.ruler.before("fence", "formula", _find_block, {"alt": interrupted})
    parser.inline.ruler.before("escape", "formula", _find_inline)
    parser.add_render_rule("formula", _write_inline)
    parser.add_render_rule("formula_block", _write_block)


class _UnreadableFormula(ValueError):
    pass


def formula_html(source: str, *, on_own_line: bool) -> Markup:
    """Write a formula as MathML, or as text if it does not parse."""
    try:
        return trusted_html("".join(_write_element(_read_formula(source, on_own_line))))
    except Exception:  # noqa: BLE001 - the library fails in many ways
        return trusted_html(f'<code class="tex">{to_html(source)}</code>')


def _read_formula(source: str, on_own_line: bool) -> Element:
    """Read a formula; refuse what the library would drop or misread."""
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
    """Return the end of a formula; negative: there is none."""
    last = min(len(text), start + MAX_FORMULA_CHARS)
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
    if not source.strip() or len(source) > MAX_FORMULA_CHARS or closing in source:
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        whole = f"{begin}{source}{closing}" if begin.startswith("\\begin") else source
        token.content, token.block, token.map = whole, True, [first, last + 1]
        state.line = last + 1
    return True


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


def render_html(
    text: str,
    anchors: Mapping[str, str] | None = None,
    unresolved_labels: Collection[str] = (),
    *,
    key: str = "",
    top_heading: int = 4,
) -> Markup:
    """Render a text as HTML, with the labels in `anchors` as links.

    `unresolved_labels`: labels without an answer, to be marked.
    `key`: prefix of the ids of its footnotes; empty: no footnotes, and no colours in code.
    `top_heading`: the level of its first headings, one below the page's.
    """
    parser = _parser(has_footnotes=bool(key))
    env = {"docId": key, "code_chars": MAX_TEXT_CHARS if key else 0}
    tokens = parser.parse(readable(text), env)
    _mark_tasks(tokens)
    _nest_headings(tokens, top_heading)
    for token in tokens:
        if token.type in ("th_open", "td_open"):
            _align(token)
        elif token.type in _DIRECTED and not token.level:
            token.attrs["dir"] = "auto"
        if token.children:
            token.children = _link_citations(token.children, anchors or {}, unresolved_labels)
    html: str = parser.renderer.render(tokens, parser.options, env)
    return trusted_html(html)


def last_block(text: str) -> int:
    """Return the start of the last block, which may still grow.

    Blocks before it are final. Line ends must be single line feeds.
    """
    tokens = list[Token]()
    parser = _parser(has_footnotes=False)
    parser.block.parse(readable(text), parser, {}, tokens)
    starts = [token.map[0] for token in tokens if token.map and not token.level]
    lines = text.split("\n")[: starts[-1] if starts else 0]
    return sum(len(line) + 1 for line in lines)


@lru_cache(maxsize=2)
def _parser(*, has_footnotes: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # A definition such as "[A]: http://…" would redirect every citation.
    parser.disable("reference")
    parser.validateLink = lambda url: _SAFE_LINK.match(url) is not None  # type: ignore[method-assign]
    if has_footnotes:
        footnote_plugin(parser, inline=False)
    add_maths(parser)
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("fence", write_code)
    parser.add_render_rule("code_block", write_code)
    parser.add_render_rule("table_open", lambda *_: TABLE_BEGIN)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("task", _task)
    parser.add_render_rule("footnote_anchor", _footnote_anchor)
    return parser


def _mark_tasks(tokens: Sequence[Token]) -> None:
    """Replace a list item's leading box by a sign with a name."""
    for item, _, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if item.type != "list_item_open" or not inline.children:
            continue
        first = inline.children[0]
        box = _TASK.match(first.content) if first.type == "text" else None
        if box is None:
            continue
        first.content = first.content[box.end() :]
        item.attrs["class"] = "task"
        state = "to do" if box[1] == " " else "done"
        inline.children.insert(0, Token("task", "span", 0, meta={"state": state}))


def _nest_headings(tokens: Sequence[Token], top: int) -> None:
    """Nest a text's headings below the page's, without skipping a level."""
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    levels = sorted({token.tag for token in headings})
    last = top - 1
    for token in headings:
        if token.nesting > 0:
            last = min(top + levels.index(token.tag), last + 1, 6)
        token.tag = f"h{last}"


def _task(_renderer: Any, tokens: Sequence[Token], at: int, *_others: Any) -> str:
    state = tokens[at].meta["state"]
    sign = "☐" if state == "to do" else "☑"
    return f'<span role="img" aria-label="{state}">{sign}</span> '


def _footnote_anchor(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any
) -> str:
    rules: Any = renderer.rules
    name = rules["footnote_anchor_name"](tokens, at, options, env)
    again = tokens[at].meta.get("subId", 0)
    place = f"fnref{name}{f':{again}' if again else ''}"
    return f' <a href="#{place}" class="footnote-backref" aria-label="Back to the text">↩︎</a>'


def _align(token: Token) -> None:
    """Replace inline styles, which our policy forbids, by classes."""
    style = str(token.attrs.pop("style", ""))
    if style.endswith(("right", "center")):
        token.attrs["class"] = style.rpartition(":")[2]


def _link_citations(
    children: Sequence[Token], anchors: Mapping[str, str], unresolved_labels: Collection[str]
) -> list[Token]:
    """Turn citations of a paragraph into links, except inside links."""
    out: list[Token] = []
    depth = 0
    for token in children:
        depth += token.nesting if token.type.startswith("link_") else 0
        if token.type == "text" and not depth and (anchors or unresolved_labels):
            out += _split_citations(token.content, anchors, unresolved_labels)
        else:
            out.append(token)
    return out


def _split_citations(
    text: str, anchors: Mapping[str, str], unresolved_labels: Collection[str]
) -> list[Token]:
    out, end = list[Token](), 0
    for citation in _CITATION.finditer(text):
        label = citation[1]
        if label not in anchors and label not in unresolved_labels:
            continue
        out.append(_text(text[end : citation.start()]))
        attrs: dict[str, str | int | float] = {"href": anchors.get(label, ""), "class": "cite"}
        kind, tag = "link", "a"
        if label not in anchors:
            attrs, kind, tag = {"class": "uncited", "title": "matches no answer"}, "mark", "mark"
        out.append(Token(f"{kind}_open", tag, 1, attrs=attrs))
        out.append(_text(f"[{label}]"))
        out.append(Token(f"{kind}_close", tag, -1))
        end = citation.end()
    return [*out, _text(text[end:])]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _link_open(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any
) -> str:
    token = tokens[at]
    if token.attrs.get("class") != "cite":
        token.attrs["rel"] = "noopener noreferrer nofollow"
        token.attrs["class"] = "out"
    return renderer.renderToken(tokens, at, options, env)


def _image(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    """Write a picture as a link, so that none is fetched."""
    token = tokens[at]
    caption = renderer.renderInlineAsText(token.children or [], options, env) or "picture"
    link = Token("link_open", "a", 1, attrs={"href": str(token.attrs.get("src", ""))})
    parts = [link, _text(f"picture: {caption}"), Token("link_close", "a", -1)]
    return renderer.renderInline(parts, options, env)


def write_code(_renderer: Any, tokens: list[Token], at: int, _options: Any, env: Any) -> str:
    """Write a block of code, with its language and copy button."""
    token = tokens[at]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    may_colour = len(token.content) <= min(MAX_CHARS, env.get("code_chars", 0))
    if may_colour:
        env["code_chars"] -= len(token.content)
    shown, code = to_html(language[:24]), highlight(token.content, language if may_colour else "")
    name = f"Code, {shown}" if shown else "Code"
    return (
        f'<div class="code"><p class="code-head"><span>{shown}</span>'
        '<button type="button" class="copy">Copy<span class="hear"> the code</span></button></p>'
        f'<pre tabindex="0" role="group" aria-label="{name}"><code>{code}</code></pre></div>\n'
    )


def highlight(code: str, language: str) -> Markup:
    """Colour code by classes; that of an unknown language stays plain."""
    lexer = _lexer(language.casefold())
    return to_html(code) if lexer is None else trusted_html("".join(_spans(lexer, code)))


def _lexer(language: str) -> "Lexer | None":
    """Return a new lexer, because a lexer has state."""
    if language not in LANGUAGES:
        return None
    from pygments.lexers import get_lexer_by_name

    lexer: Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    return lexer


def _spans(lexer: "Lexer", code: str) -> Iterator[str]:
    """Yield runs of one class, escaped."""
    pieces = ((_class_of(str(kind)), text) for kind, text in lexer.get_tokens(code))
    for name, run in groupby(pieces, key=lambda piece: piece[0]):
        text = to_html("".join(text for _, text in run))
        yield f'<span class="{name}">{text}</span>' if name else text


def _class_of(kind: str) -> str:
    kind = kind.removeprefix("Token.")
    return next((name for prefix, name in CLASSES if kind.startswith(prefix)), "")


@dataclass(frozen=True, slots=True)
class GrowingText:
    """A growing text so far, which depends only on its characters.

    A page in any earlier state can apply the next patch. `text` is the visible part; before
    `tail_start`, the start of its last block, it does not change.
    """

    text: str = ""
    tail_start: int = 0

    def grow(self, text: str) -> "GrowingText":
        """Return the text with more, or other, characters."""
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        known = self.tail_start if lines.startswith(self.text) else 0
        start = known + last_block(lines[known:])
        length = len(lines) - start
        if length > FINE_CHARS:
            step = max(1, (1 << length.bit_length() - 1) // STEPS)
            length -= length % step
        return GrowingText(lines[: start + length], start)

    def continues(self, earlier: "GrowingText") -> bool:
        """Return true if this text begins with the finished blocks of `earlier`."""
        finished = earlier.text[: earlier.tail_start]
        return self.tail_start >= earlier.tail_start and self.text.startswith(finished)

    def blocks(self, start: int = 0) -> Markup:
        """Render the finished blocks from a place on."""
        return render_html(self.text[start : self.tail_start])

    @property
    def tail(self) -> Markup:
        """The last block, rendered."""
        return render_html(self.text[self.tail_start :])


NOTHING_WRITTEN = GrowingText()
