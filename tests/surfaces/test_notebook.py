"""Results at a prompt are one line, in a notebook their report; a misspelt option is explained."""

import html
import pickle
import re

import pytest

import witan
from sessions import Story
from witan.core.ballot import Ballot
from witan.errors import InvalidParameter, UnknownName, UnknownOption
from witan.surfaces.report import report_to_html
from witan.surfaces.report.document import Cell, Column, Report, table_of

BALLOTS = [
    Ballot(reviewer, groups=tuple((name,) for name in order), session="q1")
    for reviewer, order in {"r1": "abcdefgh", "r2": "abcdefhg", "r3": "bacdefgh"}.items()
]

NASTY = "\x1b]52;c;aGk=\x07\u202e<b>\n"


def session(question="Which?"):
    story = Story("ada", "bob", "cyd", question=question)
    story.answers(ada="A" * 20_000, bob="b", cyd="c")
    story.casts("ada: bob > cyd").casts("bob: ada > cyd")
    return witan.Session.of(story.closing("So.", labels={"A": "ada"}).closed())


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    path = tmp_path_factory.mktemp("history") / "history.db"
    from witan.surfaces.cli.app import main

    file = path.with_name("ballots.jsonl")
    witan.write_ballots(BALLOTS, file)
    assert main(["import", str(file), "--history", str(path)]) == 0
    return path


RESULTS = {
    "session": lambda _: session(),
    "outcome": lambda _: witan.tally(BALLOTS),
    "comparison": lambda _: witan.compare_rules(BALLOTS, witan.Settings()),
    "explanation": lambda _: witan.explain(BALLOTS),
    "leaderboard": lambda path: witan.leaderboard(path, witan.stats.Terms(min_sessions=1)),
    "audit": witan.audit,
    "plan": lambda _: council().plan("Which?"),
    "council": lambda _: council(),
    "ratings": lambda _: witan.rate(witan.stats.encode(*PAIRS)),
    "comparisons": lambda _: witan.stats.encode(*PAIRS),
}

PAIRS = ["abca", "bcab", ["first", "first", "second", "second"]]


def council():
    return witan.Council(
        [witan.Member(name, witan.models.ScriptedModel(name)) for name in ("x", "y")]
    )


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_is_one_line_at_a_prompt(kind, history):
    """The line says what it is of, however much the result holds."""
    line = repr(RESULTS[kind](history))

    assert line.startswith("<")
    assert "\n" not in line
    assert len(line) < 250


@pytest.mark.parametrize(
    "kind", ["outcome", "comparison", "explanation", "leaderboard", "audit", "plan"]
)
def test_a_notebook_shows_the_report_as_markdown(kind, history):
    """The report has its table."""
    result = RESULTS[kind](history)

    assert re.search(r"^\| --", result._repr_markdown_(), re.MULTILINE)


@pytest.mark.parametrize("kind", ["comparison", "explanation", "plan"])
def test_a_notebook_shows_no_page_of_other_results(kind, history):
    """Their Markdown is what is shown."""
    assert RESULTS[kind](history)._repr_html_() is None


def page_of(shown):
    """The page in a frame; nothing in it runs, and its styles are its own."""
    assert shown.startswith('<iframe sandbox="allow-popups"')
    page = html.unescape(shown[shown.index('srcdoc="') + 8 : -len('"></iframe>')])
    assert page.lstrip().startswith("<!doctype html>")
    assert "<script" not in page
    return page


@pytest.mark.parametrize(
    ("kind", "interval"),
    [
        ("outcome", "95% interval"),
        ("verdict", "9.0 (6.2 to 10.0)"),
        ("leaderboard", "95% interval"),
        ("audit", "not enough data"),
    ],
)
def test_a_notebook_shows_the_report_of_a_result_in_a_frame(kind, interval, history):
    """What it concludes, and its numbers with their intervals."""
    pytest.importorskip("jinja2")
    result = verdict() if kind == "verdict" else RESULTS[kind](history)
    page = page_of(result._repr_html_())

    assert interval in page
    assert "<h1" in page


def test_hostile_names_in_a_report_are_text():
    """Candidates are named by others."""
    pytest.importorskip("jinja2")
    ballots = [Ballot("r1", ((NASTY,), ("b",))), Ballot("r2", (("b",), (NASTY,)))]
    shown = witan.tally(ballots)._repr_html_()
    page = page_of(shown)

    assert "<b>" not in page.partition("<main")[2].replace("<b class", "")
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def verdict():
    """A jury of two on one text."""
    grades = dict.fromkeys(("accuracy", "relevance", "completeness", "conciseness", "clarity"), 9)
    line = witan.models.Line(grades={"moraine": grades})
    jury = [witan.models.ScriptedModel(name, reviews=[line]) for name in ("u", "v")]
    return witan.judge("a moraine", jury, pass_mark=6).verdict


def test_a_notebook_shows_the_page_of_a_session_in_a_frame():
    """Its styles stay in the frame, nothing in it runs, and hostile text is text."""
    pytest.importorskip("jinja2")

    shown = session(NASTY)._repr_html_()

    page_of(shown)
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_hostile_name_stays_in_its_line():
    """Names and questions in a line are cut and escaped."""
    line = repr(session(NASTY * 100))

    assert line.isprintable()
    assert len(line) < 250


@pytest.mark.parametrize(
    ("call", "nearest"),
    [
        (lambda: witan.tally([], ruel="x"), "rule"),
        (lambda: witan.tally(BALLOTS, "borda", leevl=0.9), "level"),
        (lambda: witan.tally(BALLOTS, "borda", varient="roster"), "variant"),
        (lambda: session().recount(ruel="borda"), "rule"),
        (lambda: witan.Council([], ruel="x"), "rule"),
        (lambda: witan.Council.from_config(mirored=True), "mirrored"),
        (lambda: witan.ask("Which?", ["a", "b"], qorum=2), "quorum"),
        (lambda: witan.rules.rule("mine", sorce="nobody"), "source"),
        (lambda: witan.Settings.of(treshold=1), "threshold"),
    ],
)
def test_a_misspelt_option_suggests_the_nearest(call, nearest):
    """The error is ours and a TypeError, as Python's own for such a call is."""
    with pytest.raises(TypeError, match=f"unknown option.*did you mean '{nearest}'") as caught:
        call()

    assert isinstance(caught.value, UnknownOption)
    assert isinstance(caught.value, UnknownName)
    assert pickle.loads(pickle.dumps(caught.value)).nearest == nearest  # noqa: S301 - our own


def test_a_parameter_without_its_rule_names_one():
    """A parameter that some rule has is refused under `auto`, with a rule to name."""
    with pytest.raises(InvalidParameter, match="such as rule='borda'"):
        witan.tally(BALLOTS, variant="roster")


def test_a_page_shows_the_interval_beside_its_number():
    """A terminal adds a column for it."""
    pytest.importorskip("jinja2")
    difference = (Column("difference", interval=90), [Cell("1.52", interval="[1.25, 1.80]")])
    page = report_to_html(Report("Arms", (), "", (table_of("Differences", [difference]),)))

    assert re.search(r"1\.52 <span[^>]*>\[1\.25, 1\.80\]", page)
