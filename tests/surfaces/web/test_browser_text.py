"""A person reads and copies what models write: while it is written, and afterwards."""

import pytest

from browsers import AXE, NEEDS, Watched
from desks import RICH
from sessions import Story, expense
from witan.deliberation import events as e

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

expect = sync_api.expect

pytestmark = [*NEEDS, pytest.mark.slow]

PASTED = "navigator.clipboard.readText()"


def ask_and_wait(at_desk, question):
    """The name of a session, once it has ended."""
    from witan.service.operations.ask import QuestionRequest

    running = at_desk.server.portal.call(at_desk.server.service.start, QuestionRequest(question))
    at_desk.server.portal.call(running.wait_for_session)
    return running.id


@pytest.fixture(scope="module")
def rich(at_desk):
    """A session whose texts have formulas, code, tasks, tables and footnotes."""
    return ask_and_wait(at_desk, "Why (rich)?")


class TestWriting:
    def test_markdown_is_rendered_while_it_is_written(self, chrome, server, shots):
        """Formulas and code appear before the answer is whole, and nothing is lost on the way."""
        story = Story("ada", "bob").tell(e.AnswerStarted, seat="ada")
        written = RICH[: RICH.index("    return")]
        story.tell(e.AnswerDelta, seat="ada", text=written)
        server.tell(*story)
        here = Watched(chrome, server.url, shots)
        page = here.open("/sessions/s1")

        growing = page.locator(".lane .growing").first
        expect(growing.locator("h4")).to_have_text("What it takes")
        expect(growing.locator("math").first).to_be_visible()
        here.shoot("live-markdown")
        expect(growing.locator("pre code")).to_contain_text("def total")
        n_told = len(story.events)
        story.tell(e.AnswerDelta, seat="ada", text=RICH[len(written) :])
        story.tell(e.AnswerDone, seat="ada", text=RICH, spent=expense())
        story.answers(bob="So.").casts("ada: bob").casts("bob: ada").closing(RICH).closed()
        server.tell(*story.events[n_told:])
        server.end()
        page.wait_for_selector("#run")
        expect(page.locator("#answer .prose math")).to_have_count(4)
        here.context.close()
        assert here.problems == []


class TestCopying:
    def test_an_answer_is_copied_as_it_was_written(self, window, rich):
        """Each answer has a button, and the final answer has one; both give Markdown."""
        here = window(permissions=["clipboard-read", "clipboard-write"])
        page = here.open(f"/sessions/{rich}?reveal=1")
        page.get_by_role("button", name="Copy the final answer").click()
        assert page.evaluate(PASTED).strip() == RICH.strip()
        page.get_by_role("button", name="Copy answer").first.click()
        expect(page.get_by_role("status").filter(has_text="Copied.")).to_have_count(1)

        assert page.evaluate(PASTED).startswith(RICH)

    def test_code_is_copied_without_its_colours(self, window, rich):
        """With the keyboard alone; the focus stays."""
        here = window(permissions=["clipboard-read", "clipboard-write"])
        page = here.open(f"/sessions/{rich}")
        button = page.get_by_role("button", name="Copy the code").first
        button.focus()
        page.keyboard.press("Enter")
        expect(page.locator(":focus")).to_have_text("Copied")

        assert page.evaluate(PASTED).startswith("def total(n: int) -> int:")

    def test_copying_works_without_a_clipboard_for_scripts(self, window, rich):
        """As on a page that came over plain HTTP from another machine."""
        here = window(permissions=["clipboard-read", "clipboard-write"])
        page = here.open(f"/sessions/{rich}")
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject() }")
        page.get_by_role("button", name="Copy the code").first.click()

        expect(page.get_by_role("status").filter(has_text="Copied.")).to_have_count(1)
        assert page.evaluate(PASTED).startswith("def total(n: int) -> int:")

    def test_without_a_script_there_is_no_button(self, window, rich):
        page = window(java_script_enabled=False).open(f"/sessions/{rich}")

        assert not [each for each in page.locator(".copy").all() if each.is_visible()]


DRAWN = """() => [...document.querySelectorAll("math")].map(math => math.getBoundingClientRect())
    .filter(box => box.width < 4 || box.height < 8).length"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_rich_text_fits_the_page(window, rich, width, theme):
    """Formulas are drawn, and long code scrolls in its own box."""
    here = window(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = here.open(f"/sessions/{rich}")
    here.shoot(f"rich-{width}-{theme}")

    assert page.evaluate(DRAWN) == 0
    assert page.evaluate("document.documentElement.scrollWidth") == width
    if width == 390:
        assert page.locator("#answer .code pre").evaluate("e => e.scrollWidth > e.clientWidth")


def test_a_footnote_leads_there_and_back(window, rich):
    """Within its own answer."""
    page = window().open(f"/sessions/{rich}")
    final = page.locator("#answer .prose")
    final.locator(".footnote-ref a").click()
    expect(final.locator(".footnote-item:target")).to_contain_text("By induction.")
    final.locator(".footnote-backref").click()
    expect(final.locator(".footnote-ref a:target")).to_have_count(1)


@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js of axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_problem_in_rich_text(window, rich, theme):
    """Contrast of colours in code, names of what scrolls, and signs of tasks."""
    here = window(color_scheme=theme, bypass_csp=True)
    here.open(f"/sessions/{rich}?reveal=1")

    assert here.violations() == []


BEGINS_RIGHT = """element => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const parts = [...range.getClientRects()];  // one per direction
    const line = parts.filter(part => part.top < parts[0].bottom);
    const box = element.parentElement.getBoundingClientRect();
    const left = Math.min(...line.map(part => part.left));
    return box.right - Math.max(...line.map(part => part.right)) < left - box.left;
}"""
"""Whether the first line of an element is nearer to the right edge of its box."""


class TestRightToLeft:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("width", [1280, 390])
    def test_texts_begin_where_their_script_does(self, window, at_desk, width, theme):
        """With the numbers of lists, the bars of quotes and the columns of tables; code stays."""
        session = ask_and_wait(at_desk, "كيف نحفظ موعدًا (PostgreSQL) بالعربية؟")
        here = window(viewport={"width": width, "height": 800}, color_scheme=theme)
        page = here.open(f"/sessions/{session}?reveal=1")
        here.shoot(f"right-to-left-{width}-{theme}")
        final = page.locator("#final-text")

        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator("h1").evaluate(BEGINS_RIGHT)
        for each in ("h3", "p >> nth=0", "ol li >> nth=0", "blockquote p"):
            assert final.locator(each).evaluate(BEGINS_RIGHT), each
        for each in ("ol", "blockquote", "table"):
            assert final.locator(each).evaluate("e => getComputedStyle(e).direction") == "rtl"
        english = final.get_by_text("In English")
        assert not english.evaluate(BEGINS_RIGHT)
        assert not final.locator("pre code").evaluate(BEGINS_RIGHT)
        page = here.open(f"/sessions/{session}/vote?as=ines&seen=1")
        for each in ("h1", ".answer ol li >> nth=0"):
            assert page.locator(each).evaluate(BEGINS_RIGHT), each

    def test_a_question_is_written_from_right_to_left(self, window):
        """Each line of the field by its own script, whatever the page is in."""
        page = window().open("/")
        field = page.get_by_label("Question", exact=True)
        field.fill("كيف؟\nHow?")

        style = field.evaluate(
            "e => [getComputedStyle(e).unicodeBidi, getComputedStyle(e).textAlign]"
        )
        assert style == ["plaintext", "start"]
