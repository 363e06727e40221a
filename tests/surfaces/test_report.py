"""A report document says the same on a terminal and in Markdown, and nothing in it is markup."""

from typing import get_args

import markdown_it
import pytest

from witan import Ballot, tally
from witan.core.settings import Settings
from witan.core.stats.priors import Severity
from witan.core.verdict import judge_texts
from witan.service.catalogue import CATALOGUE, find_operation
from witan.service.text import Page
from witan.surfaces.report import _WRITERS
from witan.surfaces.report.document import (
    Cell,
    Column,
    Heading,
    Note,
    Quote,
    Report,
    Sentence,
    table_of,
)
from witan.surfaces.report.outcome import verdict_report
from witan.surfaces.report.text import report_markdown, report_text

NASTY = "\x1b]52;c;aGk=\x07\u202e<b>*a*</b> [x](http://e.x) www.e.x `$x$` | _a_\n# b"


def report(name="ada"):
    """Write a report with a block of each kind, about somebody of that name."""
    names = table_of(
        "Names",
        [
            (Column("model", "left", fit="middle", heads=True), [name, "bob", "cyd"]),
            (Column("score", meaning=f"mean, without {name}"), ["1.00", Cell("-0.50", "-1 to 0"),
                                                                Cell("0.10", has_mark=True)]),
            (Column("votes", keep=10), ["3", "3", "2"]),
        ],
        breaks={1},
        labels={2: f"without a rank, unlike {name}"},
        strong={0},
    )  # fmt: skip
    return Report(
        "Trial",
        ("borda", name),
        f"{name} leads.",
        (
            Heading("Names", "names"),
            names,
            Heading(f"More of {name}", "more"),
            Sentence(f"{name} is first.", quiet=True),
            Quote(f"I am {name}"),
            Note(f"{name} is new", "warning"),
            Note("prefers itself", "concern", name),
            Note(f"{name} abstained", "reason"),
            Note(f"ask {name}", "hint"),
        ),
    )


def test_a_report_as_text():
    """Groups are parted by lines and labels, meanings stand below, notes say what they are."""
    assert list(report_text(Page(), report())) == [
        "trial · borda · ada",
        "ada leads.",
        "",
        "Names",
        "model  score  votes",
        "ada     1.00      3",
        "-------------------",
        "bob    -0.50      3",
        "-------------------",
        "without a rank, unlike ada",
        "cyd    0.10!      2",
        "",
        "score: mean, without ada",
        "",
        "More of ada",
        "ada is first.",
        "",
        "I am ada",
        "",
        "note: ada is new",
        "! ada: prefers itself",
        "ada abstained",
        "ask ada",
    ]


def test_a_narrow_page_drops_the_column_needed_least():
    """It says which one."""
    lines = list(report_text(Page(width=13), report()))

    assert "model  score" in lines
    assert "(too narrow" in "\n".join(lines)


def test_cells_are_folded_or_lose_their_end_on_a_narrow_page():
    """What is folded takes further lines, a long text loses its end, and no column is dropped."""
    columns = [
        (Column("", "left"), ["borda"]),
        (Column("", "left", fit="end"), ["Which of the two trees is the older one?"]),
        (Column("", "left", fit="fold"), ["the share of its rivals that it is placed above"]),
    ]
    trial = Report("Trial", (), "", (table_of("Trial", columns),))

    assert list(report_text(Page(width=74), trial)) == [
        "trial",
        "",
        "borda  Which of the two trees is th…  the share of its rivals that it is",
        "                                      placed above",
    ]


def test_a_report_as_markdown():
    """Tables are pipe tables; a label has a row of its own."""
    assert report_markdown(report()).splitlines()[:12] == [
        "**Trial · borda · ada**",
        "",
        "ada leads.",
        "",
        "### Names",
        "",
        "| model | score | votes |",
        "| --- | ---: | ---: |",
        "| ada | 1.00 | 3 |",
        "| bob | -0.50 (-1 to 0) | 3 |",
        "| *without a rank, unlike ada* |  |  |",
        "| cyd | 0.10! | 2 |",
    ]


def test_names_are_no_markup():
    """A hostile name makes as many elements of HTML as a plain one, and no link."""
    parser = markdown_it.MarkdownIt("gfm-like", {"linkify": False}).enable("table")
    plain, hostile = (
        [token.type for token in parser.parse(report_markdown(report(name)))]
        for name in ("ada", NASTY)
    )
    inline = {
        child.type
        for token in parser.parse(report_markdown(report(NASTY)))
        for child in token.children or ()
    }

    assert hostile == plain
    assert not inline & {"html_inline", "link_open", "em_open_", "code_inline", "image"}
    assert "\x1b" not in report_markdown(report(NASTY))
    assert "\u202e" not in report_markdown(report(NASTY))


def test_measures_too_wide_for_a_page_are_sentences():
    """What a measure rests on is never dropped."""
    columns = [
        (Column("measure", "left", heads=True), ["severity", "slope"]),
        (Column("value"), ["+0.10", Cell(None)]),
        (Column("interval", "left"), ["-0.05 to +0.24", "–"]),
        (Column("rests on", "left"), ["48 grades", "not enough data: 2 grades, 30 needed"]),
        (Column("is", "left"), ["grade less the others'", "slope of its grades"]),
    ]
    found = Report("Trial", (), "", (table_of("Measures", columns, form="measures"),))

    wide, narrow = (list(report_text(Page(width), found)) for width in (120, 76))
    assert wide[2].split()[:2] == ["measure", "value"]
    assert narrow[2:] == [
        "severity +0.10 (-0.05 to +0.24; 48 grades): grade less the others'",
        "slope: not enough data: 2 grades, 30 needed",
    ]


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_operation_returns_a_result_with_a_writer(name):
    """Its command, tool and page show the report."""
    operation = find_operation(name)
    results = get_args(operation.result) or (operation.result,)

    assert operation.kind == "session" or {each.__name__ for each in results} <= _WRITERS.keys()


def test_intervals_of_criteria_alone_are_explained():
    """Too few criteria are graded for an overall grade."""
    grades = {"t": {"clarity": 7.0}}
    ballots = [
        Ballot(name, (("t",),), grades, session="s", candidates=("t",), scale="1-10")
        for name in ("ada", "bob", "cyd")
    ]
    verdict = judge_texts(ballots, tally(ballots), Settings.of("auto"))
    text = "\n".join(report_text(Page(width=200), verdict_report(verdict)))

    assert verdict.texts[0].overall is None
    assert "Intervals cover the mean grade of similar reviewers" in text


def corrected_verdict_text(*texts):
    """The report of a verdict in which two of three reviewers have a known severity."""
    ballots = [
        Ballot(name, grades=dict.fromkeys(texts, 7.0), session="s", candidates=texts, scale="1-10")
        for name in ("ada-4o", "bob", "cyd")
    ]
    severity = Severity(("ada-4o", "bob"), (1.0, 0.01), ((0.1, 0.0), (0.0, 0.1)), 0.5, 60)
    settings = Settings.of("auto", prior="learn", severity=severity)
    outcome = tally(ballots, prior="learn", severity=severity)
    verdict = judge_texts(ballots, outcome, settings)
    return " ".join(report_text(Page(width=200), verdict_report(verdict)))


def test_only_known_severity_corrects_a_verdict():
    """A correction of nothing has no sign of its own, and no name is changed."""
    text = corrected_verdict_text("t")

    assert "Grades are corrected for the severity that 60 other sessions show" in text
    assert "ada-4o −1.0 and bob +0.0; the severity of cyd is unknown." in text


def test_the_report_names_which_of_two_mean_grades_is_corrected():
    """The ranking of several texts shows mean grades as the reviewers gave them."""
    text = corrected_verdict_text("t", "u")

    assert "These grades, unlike those of the ranking, are corrected for the severity" in text
