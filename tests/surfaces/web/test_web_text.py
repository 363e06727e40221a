"""Text of models as they write it: Markdown, code, formulas, and text that grows."""

import re
import time
from html import unescape

import pytest

from markup import parsed
from witan.surfaces.web.markdown import GrowingText, render_html


class TestMarkdown:
    """The subset of markdown that is rendered."""

    def test_headings_stand_below_ours(self):
        """The first level of a text is our fourth, and none is skipped."""
        root = parsed(render_html("## Two\n\n###### Six\n\n# One\n\n## Two\n\n### Three"))

        assert [h.tag for h in root.all()] == ["h4", "h5", "h4", "h5", "h6"]

    def test_citations_link_into_the_page(self):
        """A known label becomes a link; unknown labels and code stay text."""
        root = parsed(render_html("As [A] and [B]; not `[A]`.", {"A": "#answer-1"}))

        [link] = root.all("a")
        assert (link.attrs["href"], link.attrs["class"], link.text) == ("#answer-1", "cite", "[A]")
        assert "As [A] and [B]" in root.text

    def test_a_citation_inside_a_link_stays_text(self):
        """Links are not nested."""
        root = parsed(render_html("[see [A] there](https://a.example)", {"A": "#answer-1"}))

        assert [link.attrs["href"] for link in root.all("a")] == ["https://a.example"]

    def test_a_link_definition_cannot_redirect_a_citation(self):
        """Definitions in the text do not override labels."""
        text = "[A]: https://evil.example\n\nAs [A] says."
        root = parsed(render_html(text, {"A": "#answer-1"}))

        assert {link.attrs["href"] for link in root.all("a", class_="cite")} == {"#answer-1"}
        assert not [a for a in root.all("a") if "evil" in a.attrs["href"]]

    def test_a_picture_becomes_a_link(self):
        """It is not loaded; its alternative text is the link's."""
        [link] = parsed(render_html("![a cat](https://a.example/c.png)")).all("a")

        assert link.attrs["href"] == "https://a.example/c.png"
        assert link.text == "picture: a cat"

    def test_columns_keep_their_alignment(self):
        """By class, as inline styles are forbidden."""
        root = parsed(render_html("| a | b |\n|--:|:-:|\n| 1 | 2 |"))

        assert [cell.attrs for cell in root.all("td")] == [{"class": "right"}, {"class": "center"}]

    def test_tasks_are_signs_that_are_read_out(self):
        """A box in brackets at the beginning of an item, and nowhere else."""
        root = parsed(render_html("- [x] one\n- [ ] two\n- see [x] there"))

        assert [s.attrs["aria-label"] for s in root.all("span", role="img")] == ["done", "to do"]
        assert [li.text.split()[-1] for li in root.all("li")] == ["one", "two", "there"]

    def test_footnotes_of_two_texts_do_not_meet(self):
        """Their ids begin with the place of the text; a link leads there and back."""
        text = "So.[^1]\n\n[^1]: Why."
        ids = []
        for key in ("answer-1", "answer-2"):
            root = parsed(render_html(text, key=key))
            there, back = root.all("a")
            ids += [item.attrs["id"] for item in root.all("li")]
            assert there.attrs["href"] == f"#{ids[-1]}"
            assert back.attrs["href"] == f"#{there.attrs['id']}"
        assert len(set(ids)) == 2

    def test_a_wide_table_scrolls_in_its_own_box(self):
        root = parsed(render_html("| a | b |\n|--|--|\n| 1 | 2 |"))

        assert root.one(class_="table-box").attrs["tabindex"] == "0"


class TestCode:
    def test_code_is_coloured_by_classes(self):
        """Without styles of its own; the text stays as it is."""
        code = 'def f(x):\n    return "<b>"  # so\n'
        html = render_html(f"```python\n{code}```", key="answer-1")
        root = parsed(html)

        classes = {span.text: span.attrs["class"] for span in root.one("pre").all("span")}
        assert classes['"<b>"'] == "hl-string"
        assert classes["# so"] == "hl-comment"
        assert classes["f"] == "hl-name"
        written = html.partition("<code>")[2].partition("</code>")[0]
        assert unescape(re.sub("<[^>]*>", "", written)) == code
        assert {*classes.values()} == {"hl-keyword", "hl-name", "hl-string", "hl-comment"}

    @pytest.mark.parametrize("info", ["", "no-such-language", "html onload=x", "PYTHON"])
    def test_any_language_is_shown(self, info):
        """Its first word is named above; a button copies the code."""
        root = parsed(render_html(f"```{info}\nx = 1\n```", key="answer-1"))

        assert root.one("code").text == "x = 1"
        head = root.one(class_="code-head")
        assert head.all("span")[0].text == info.split(" ")[0]
        assert head.one("button").attrs["class"] == "copy"

    def test_long_code_stays_plain(self):
        """Beyond some thousand characters colours would take too long."""
        for code in ("x = 1\n" * 2000, "\n```\n\n```python\n".join(["x = 1\n" * 900] * 9)):
            began = time.process_time()
            root = parsed(render_html(f"```python\n{code}\n```", key="answer-1"))
            assert time.process_time() - began < 5
            assert not root.all("pre")[-1].all("span")


class TestFormulas:
    """By dollars, brackets and environments, as MathML."""

    @pytest.mark.parametrize(
        "text", ["so $x^2$ is", r"so \(x^2\) is", "so $$x^2$$ is", r"so \[x^2\] is"]
    )
    def test_a_formula_stands_in_its_line(self, text):
        root = parsed(render_html(text))

        assert [x.text for x in root.one("msup").all()] == ["x", "2"]
        assert root.one("p").text.startswith("so ")

    @pytest.mark.parametrize(
        "text",
        [
            "so\n\n$$\n\\frac{a}{b}\n$$\n\nis",
            "so\n\\[\n\\frac{a}{b}\n\\]\nis",
            "so\n$$\\frac{a}{b}$$\nis",
            "- so\n\n  $$\n  \\frac{a}{b}\n  $$\n- is",
            "> so\n> \\begin{align}\n> \\frac{a}{b}\n> \\end{align}\n>\n> is",
        ],
    )
    def test_a_formula_stands_on_its_own_line(self, text):
        """Between paragraphs, in a list, in a quotation."""
        root = parsed(render_html(text))

        box = root.one(class_="formula")
        assert box.one("math").attrs["display"] == "block"
        assert [x.text for x in box.one("mfrac").all("mi")] == ["a", "b"]
        assert "$" not in root.text
        assert "\\" not in root.text

    @pytest.mark.parametrize(
        "text", ["between $5 and $10", "US$5–$10 or $7", "$HOME and $PATH", r"a \$x\$ b", "`$x$`"]
    )
    def test_money_and_variables_are_no_formulas(self, text):
        assert not parsed(render_html(text)).all("math")

    @pytest.mark.parametrize(
        "source", [r"\nonsense{x}", r"\frac{a", r"a & b", r"\newcommand{\a}{b}\a", r"\left( x"]
    )
    def test_what_is_no_formula_stays_text(self, source):
        """Nothing of it is lost."""
        root = parsed(render_html(f"so ${source}$ is"))

        assert root.one("code", class_="tex").text == source

    def test_aligned_lines_are_a_table(self):
        root = parsed(render_html(r"\[\begin{aligned} a &= b \\ &= c \end{aligned}\]"))

        rows = [[cell.text for cell in row.all("mtd")] for row in root.all("mtr")]
        assert [row[0] for row in rows] == ["a", ""]
        assert [row[1][-1] for row in rows] == ["b", "c"]

    def test_long_and_unfinished_formulas_cost_little(self):
        """Tens of thousands of delimiters take no seconds."""
        for piece in (
            "$",
            "$$",
            "$x ",
            "\\(",
            "\\[\n",
            "$$\n",
            "\\begin{align}\n",
            "$x$ ",
            "$y\\$ ",
        ):
            began = time.process_time()
            render_html(piece * (20_000 // len(piece)))
            assert time.process_time() - began < 4, piece


RICH = """# Title

A paragraph with **bold**, $x^2$ and
a second line.

- one
- two

  more of two

1. first

```python
x = 1

y = 2
```

| a | b |
|---|---|
| 1 | 2 |

> quoted
lazily

\\[
a = b
\\]

The end.
"""


class TestGrowth:
    """A text as it is written."""

    @pytest.mark.parametrize("size", [1, 3, 17])
    def test_blocks_add_up_to_the_text(self, size):
        """Whatever the pieces, no block is lost, doubled or broken."""
        text, sent = GrowingText(), ""
        for end in range(0, len(RICH) + size, size):
            grown = text.grow(RICH[:end])
            assert grown.continues(text)
            sent += grown.blocks(text.tail_start)
            text = grown

        whole = render_html(RICH)
        assert sent + text.tail == whole
        assert len(sent) > len(whole) / 2

    @pytest.mark.parametrize("end", range(0, len(RICH), 29))
    def test_the_way_to_a_moment_does_not_matter(self, end):
        """A page loaded then and a page patched until then are the same."""
        text = GrowingText()
        for place in range(end % 7, end + 1, 7):
            text = text.grow(RICH[:place])

        assert text.grow(RICH[:end]) == GrowingText().grow(RICH[:end])

    def test_a_long_block_is_rendered_in_steps(self):
        """So that its length counts a few times, not once for each piece."""
        text, n_chars, whole = GrowingText(), 0, "word " * 2000
        for end in range(0, len(whole), 5):
            grown = text.grow(whole[:end])
            n_chars += len(grown.tail) if grown != text else 0
            text = grown
            assert len(text.text) >= end * 15 / 16 - 1

        assert n_chars < 30 * len(whole)

    def test_other_text_replaces_it(self):
        """When an attempt failed, or a name turned out to be one."""
        text = GrowingText().grow("One.\n\nTwo.")

        assert not text.grow("Other.\n\nTwo.").continues(text)
