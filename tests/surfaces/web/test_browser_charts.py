"""Charts on pages: their marks say what they stand for, to a mouse, a finger and a keyboard."""

import pytest

from browsers import AXE, NEEDS
from lessons import lessons
from witan import write_ballots

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

expect = sync_api.expect

pytestmark = [*NEEDS, pytest.mark.slow]

SMALLEST = """(chart) => {
    const sizes = [...chart.querySelectorAll("text")]
        .map(text => parseFloat(getComputedStyle(text).fontSize));
    return Math.min(...sizes) * chart.clientWidth / chart.viewBox.baseVal.width;
}"""
"""Height of the smallest letters of a chart, in pixels of the screen."""


@pytest.fixture
def leaderboard(window):
    """The page of the leaderboard on a desktop."""
    return window().open("/leaderboard?trend=1")


def marks(page):
    """The marks of the first chart that is shown."""
    return page.locator("figure.chart").first.locator("svg:visible [role=img]")


class TestWords:
    """What a mark stands for."""

    def test_a_mark_says_its_value_where_the_pointer_is(self, leaderboard):
        """At once, in view, and no longer than the pointer is there."""
        marks(leaderboard).first.locator("circle").hover()

        tip = leaderboard.locator(".tip")
        expect(tip).to_contain_text("interval")
        expect(tip).to_be_in_viewport(ratio=1)
        leaderboard.locator("h1").hover()
        expect(tip).to_be_hidden()

    def test_a_finger_gets_the_same_words(self, window):
        """By a tap, at the width of a phone."""
        phone = window(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
        page = phone.open("/leaderboard")
        marks(page).first.locator("circle").tap()

        expect(page.locator(".tip")).to_contain_text("may rank")
        expect(page.locator(".tip")).to_be_in_viewport(ratio=1)

    def test_arrow_keys_lead_from_mark_to_mark(self, leaderboard):
        """From the chart, which is one stop of the tab key; Escape takes the words away."""
        leaderboard.locator(".chart-box").first.focus()
        names = []
        for _ in range(2):
            leaderboard.keyboard.press("ArrowDown")
            names.append(leaderboard.evaluate("document.activeElement.getAttribute('aria-label')"))
            expect(leaderboard.locator(".tip")).to_have_text(names[-1])

        assert len({*names}) == 2
        leaderboard.keyboard.press("ArrowUp")
        assert leaderboard.evaluate("document.activeElement.ariaLabel") == names[0]
        leaderboard.keyboard.press("Escape")
        expect(leaderboard.locator(".tip")).to_be_hidden()

    def test_arrow_keys_cross_a_matrix_in_all_directions(self, leaderboard):
        """To the neighbour in the row, and in the column."""
        box = leaderboard.locator("section[aria-labelledby=h-beats] .chart-box").first
        box.focus()
        names = []
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
            leaderboard.keyboard.press(key)
            names.append(leaderboard.evaluate("document.activeElement.ariaLabel"))

        row = [name.split(" over ")[0] for name in names]
        column = [name.split(" over ")[1].split(":")[0] for name in names]
        assert row[0] == row[1] != row[2]
        assert column[1] == column[2]

    def test_a_cut_name_is_whole_under_the_pointer(self, window):
        """On a phone, where names are cut first."""
        page = window(viewport={"width": 390, "height": 844}).open("/leaderboard")
        cut = page.locator("svg:visible text:has(title)")
        if cut.count():
            whole = cut.first.locator("title").text_content()
            cut.first.hover()
            expect(page.locator(".tip")).to_have_text(whole)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_check_of_probabilities_is_drawn_with_its_diagonal(window, tmp_path, width):
    """Found against stated, each dot with its interval in words; the form is folded away."""
    ballots = [ballot for lesson in lessons(40, people=40) for ballot in lesson.ballots]
    here = window(viewport={"width": width, "height": 900})
    page = here.open("/calibrate")
    write_ballots(ballots, tmp_path / "lessons.jsonl")
    page.set_input_files("#file", tmp_path / "lessons.jsonl")
    page.get_by_role("button", name="Check probabilities").click()
    page.get_by_text("Other ballots or settings").wait_for()
    page.wait_for_load_state()

    chart = page.locator("figure.chart").first.locator("svg:visible")
    expect(chart).to_contain_text("3 reviewers")
    expect(page.locator("figure.chart").first).to_contain_text("line: observed as stated")
    expect(page.get_by_role("button", name="Check probabilities")).to_be_hidden()
    here.shoot(f"calibration-{width}")
    page.locator(".chart-box").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tip")).to_contain_text("observed")
    expect(page.locator(".tip")).to_contain_text("interval")


def test_who_leads_by_each_rule_fits_a_phone(window, tmp_path):
    """Each rule is a card of a few lines, and nothing of it has to be scrolled to."""
    page = window(viewport={"width": 390, "height": 844}).open("/compare")
    ballots = [ballot for lesson in lessons(4) for ballot in lesson.ballots]
    write_ballots(ballots, tmp_path / "lessons.jsonl")
    page.set_input_files("#file", tmp_path / "lessons.jsonl")
    page.get_by_role("button", name="Compare the rules").click()
    page.get_by_text("Other ballots or settings").wait_for()
    heading = page.get_by_role("heading", name="How stable each rule is")
    table = page.locator("section", has=heading).locator("table").first

    expect(table).to_contain_text("leads")
    assert table.evaluate("t => t.parentElement.scrollWidth <= t.parentElement.clientWidth")
    assert max(row.bounding_box()["height"] for row in table.locator("tbody tr").all()) < 130


def test_cost_is_logarithmic_with_the_line_of_the_best(leaderboard):
    """Below a headline of one line."""
    heading = leaderboard.get_by_role("heading", name="Cost against quality")
    drawing = leaderboard.locator("section", has=heading).locator("svg:visible")
    expect(drawing).to_contain_text("logarithmic")
    expect(drawing.locator(".front")).not_to_have_count(0)
    line = "each => each.clientHeight / parseFloat(getComputedStyle(each).lineHeight)"

    assert leaderboard.locator("h1").evaluate(line) < 1.5


@pytest.mark.parametrize("width", [1280, 390])
def test_letters_of_a_chart_can_be_read(window, width):
    """On a phone a chart is drawn anew, not shrunk; nothing hangs over its box."""
    here = window(viewport={"width": width, "height": 900})
    for path in ("/leaderboard?trend=1", "/audit", "/sessions/q00"):
        page = here.open(path)
        shown = page.locator("figure.chart svg:visible")
        assert shown.count() > 0
        for chart in shown.all():
            assert chart.evaluate(SMALLEST) >= 8.5
            assert chart.evaluate("c => c.parentElement.scrollWidth <= c.parentElement.clientWidth")


def test_every_chart_has_its_numbers_in_a_table(window):
    """Folded below it, without a script as well."""
    here = window(java_script_enabled=False)
    for path in ("/leaderboard?trend=1", "/audit", "/sessions/q00"):
        here.page.goto(f"{here.url}{path}")
        here.page.wait_for_url("**show=whole*" if path != "/sessions/q00" else "**/q00")
        for chart in here.page.locator("figure.chart").all():
            table = chart.locator("xpath=following-sibling::details[1]")
            expect(table.locator("summary").first).to_have_text("The numbers")
            expect(table.locator("table").first).to_be_hidden()


@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js of axe-core")
def test_axe_finds_no_problem_in_what_is_folded(window):
    """Tables, charts and filters, all of them opened."""
    here = window(bypass_csp=True)
    for path in ("/leaderboard?trend=1", "/audit", "/audit?reviewer=r1", "/history?reveal=1"):
        page = here.open(path)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert here.violations() == [], path


def test_models_without_a_rank_are_folded_below_the_others(leaderboard):
    """With too few sessions or ballots; their rows open by a click."""
    standings = leaderboard.locator(
        "section", has=leaderboard.get_by_role("heading", name="Standings")
    )
    standings.locator(":scope > details > summary", has_text="The numbers").click()
    fold = standings.locator("details", has_text="without a rank").last
    row = fold.get_by_role("rowheader", name="pine")
    expect(standings.get_by_role("rowheader", name="ash", exact=True)).to_be_visible()
    expect(row).to_be_hidden()
    fold.locator("summary").first.click()

    expect(row).to_be_visible()
