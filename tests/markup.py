"""HTML as a test reads it: elements with their attributes and the text inside them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "hr", "img", "input", "link", "meta", "rect", "line", "circle", "path", "wbr"}


@dataclass
class Element:
    """One element and what is in it."""

    tag: str
    attrs: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside, spaces folded."""
        parts = [c if isinstance(c, str) else c.text for c in self.children]
        return " ".join(" ".join(parts).split())

    def all(self, tag: str = "", **attrs: str) -> list["Element"]:
        """Every element inside with this tag and these attributes, in order."""
        named = {key.rstrip("_").replace("_", "-"): value for key, value in attrs.items()}
        return [
            each
            for each in _inside(self)
            if tag in ("", each.tag)
            and all(
                value in each.attrs.get(key, "").split()
                if key == "class"
                else each.attrs.get(key) == value
                for key, value in named.items()
            )
        ]

    def one(self, tag: str = "", **attrs: str) -> "Element":
        """The only such element."""
        [found] = self.all(tag, **attrs)
        return found


def _inside(element: Element) -> Iterator[Element]:
    coming = element.children[::-1]
    while coming:
        child = coming.pop()
        if not isinstance(child, str):
            yield child
            coming += reversed(child.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(html: str) -> Element:
    """The root of a text of HTML, in which every element has to be closed."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.root], f"<{reader.open[-1].tag}> is not closed"
    return reader.root
