"""Models' text as harmless HTML: no markup, pictures or odd links."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from witan.service.text import readable
from witan.surfaces.web.escaping import trusted_html

_CITATION = re.compile(r"\[([A-Z]{1,3}\d{0,3})\]")

_SAFE_LINK = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)

_SHIFT = 3
"""Levels by which headings of a text are lowered below ours."""


def render_html(
    text: str, anchors: Mapping[str, str] | None = None, unresolved_labels: Collection[str] = ()
) -> Markup:
    """Render a text as HTML, with the labels in `anchors` as links.

    Labels in `unresolved_labels` are marked as naming no answer.
    """
    parser = _parser()
    tokens = parser.parse(readable(text))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + _SHIFT, 6)}"
        elif token.type in ("th_open", "td_open"):
            _align(token)
        if token.children:
            token.children = _link_citations(token.children, anchors or {}, unresolved_labels)
    html: str = parser.renderer.render(tokens, parser.options, {})
    return trusted_html(html)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # A definition such as "[A]: http://…" would turn every citation into a link of its own.
    parser.disable("reference")
    parser.validateLink = _may_link  # type: ignore[method-assign]
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("image", _image)
    return parser


def _may_link(url: str) -> bool:
    return _SAFE_LINK.match(url) is not None


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
            attrs, kind, tag = {"class": "uncited", "title": "names no answer"}, "mark", "mark"
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
