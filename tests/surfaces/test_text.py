"""Names, numbers and tables as a reader meets them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.core.display import chance_percent, dollars, level_percent, percent, percent_range
from witan.core.outcome import Interval
from witan.service.text import Page, clean, count_noun, decimals, list_text, number, shorten, span
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (0.875, 3, "0.875"),
        (-0.0004, 3, "0.000"),
        (-0.0, 0, "0"),
        (None, 2, "–"),
        (float("nan"), 2, "–"),
        (1234.5, 1, "1234.5"),
    ],
)
def test_numbers(value, digits, shown):
    """A number has its decimals, zero no sign, and the unknown a dash."""
    assert number(value, digits) == shown


@pytest.mark.parametrize(
    ("values", "digits"), [([0.1, -9.9], 3), ([10, None], 2), ([1500], 1), ([], 3)]
)
def test_larger_numbers_have_fewer_decimals(values, digits):
    """Decimals follow the largest number of a column."""
    assert decimals(values) == digits


def test_percentages_have_no_space_before_their_sign():
    """A chance is never certain, a level keeps its decimals, and the unknown is a dash."""
    assert [percent(0), percent(0.35), percent(1), percent(None)] == ["0%", "35%", "100%", "–"]
    assert [*map(chance_percent, (0, 0.35, 1, None))] == ["<1%", "35%", ">99%", "–"]
    assert [*map(level_percent, (0.95, 0.999))] == ["95%", "99.9%"]
    assert [*map(level_percent, (0.999999999, 2.9 / 3))] == ["99.9999999%", "96.6667%"]
    assert percent_range(Interval(0.64, 0.77, 0.95)) == "64–77%"


@pytest.mark.parametrize(
    ("usd", "shown", "sufficient"),
    [
        (0.0, "$0", "$0"),
        (1204.501, "$1,204.50", "$1,204.51"),
        (0.1 + 0.2, "$0.300", "$0.300"),
        (0.0412, "$0.041", "$0.042"),
        (0.00123, "$0.0012", "$0.0013"),
        (0.0000312, "$0.000031", "$0.000032"),
        (1e-9, "under $0.000001", "$0.000001"),
        (1e308, "$1e+308", "$1e+308"),
    ],
)
def test_amounts_of_money(usd, shown, sufficient):
    """Only nothing is free, and an amount that must suffice is rounded up."""
    assert (dollars(usd), dollars(usd, up=True)) == (shown, sufficient)


def test_counts_agree_with_their_noun():
    """One ballot, two ballots, thousands with a comma."""
    assert count_noun(1, "ballot") == "1 ballot"
    assert count_noun(1204, "ballot") == "1,204 ballots"


def test_long_lists_are_cut():
    """Five names are listed; of seven, four, and how many more."""
    assert list_text(["a"]) == "a"
    assert list_text(["a", "b", "c"]) == "a, b and c"
    assert "and 3 more" in list_text(list("abcdefg"))


def test_control_characters_are_shown_not_obeyed():
    """Escapes, line ends and direction marks are written out; letters of any script stay."""
    assert clean("\x1b[31mred\n") == "\\x1b[31mred\\n"
    assert clean("a\u202eb") == "a\\u202eb"
    assert clean("模型 é 🙂") == "模型 é 🙂"


def test_names_give_up_their_middle():
    """A name too long keeps both ends, and wide characters count twice."""
    assert shorten("claude-opus-4-20250514", 13) == "claude…250514"
    assert shorten("模型模型模型", 7) == "模…型"
    assert shorten("short", 5) == "short"


@given(text=st.text(max_size=40), width=st.integers(1, 30))
def test_a_shortened_text_fits(text, width):
    """Whatever the text, it takes no more columns than it may."""
    assert span(shorten(text, width)) <= width


COLUMNS = [
    Column("rank"),
    Column("candidate", "left", fit="middle"),
    Column("score"),
    Column("votes", keep=2),
    Column("wins", keep=1),
]
ROWS = [["1", "claude-opus-4-20250514", "0.92", "4", "3"], ["2", "gpt", "0.50", "4", "1"]]


class TestTable:
    """A table keeps what matters most."""

    def test_a_pipe_gets_all_of_it(self):
        """Without a width nothing is shortened, numbers stand right, text left."""
        assert list(table(Page(), COLUMNS, ROWS, breaks={1})) == [
            "rank  candidate               score  votes  wins",
            "   1  claude-opus-4-20250514   0.92      4     3",
            "------------------------------------------------",
            "   2  gpt                      0.50      4     1",
        ]

    def test_names_are_shortened_before_columns_go(self):
        """Ten columns short, the name loses its middle and every column stays."""
        assert list(table(Page(width=38), COLUMNS, ROWS))[1] == (
            "   1  claude…50514   0.92      4     3"
        )

    def test_the_least_needed_column_goes_first(self):
        """Narrower still, wins go and votes stay; what went is named."""
        lines = list(table(Page(width=33), COLUMNS, ROWS))

        assert lines[0] == "rank  candidate      score  votes"
        assert lines[-1] == "(too narrow to show: wins)"

    def test_a_terminal_has_box_lines_and_colour_says_nothing_alone(self):
        """Without colour the text is the same but for the escape sequences."""
        coloured = list(
            table(Page(80, has_rules=True, has_colour=True), COLUMNS, ROWS, breaks={1}, bold={0})
        )
        plain = list(table(Page(80, has_rules=True), COLUMNS, ROWS, breaks={1}, bold={0}))

        assert coloured[1] == f"\x1b[1m{plain[1]}\x1b[0m"
        assert set(plain[2]) == {"─"}

    @given(names=st.lists(st.text(max_size=30), min_size=1, max_size=4), width=st.integers(40, 120))
    def test_no_line_is_wider_than_the_page(self, names, width):
        """Any names, any width of forty or more: every line fits."""
        rows = [["1", name, "0.5", "3", "1"] for name in names]

        assert all(span(line) <= width for line in table(Page(width), COLUMNS, rows))


def test_sentences_are_folded_at_words():
    """A long sentence is folded to the width, later lines hanging."""
    page = Page(width=30)

    assert page.sentence("gpt-4o leads clearly; the others are too close to call.", hang=2) == (
        "gpt-4o leads clearly; the\n  others are too close to\n  call."
    )
