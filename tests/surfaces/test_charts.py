"""Charts match the result and are safe against hostile names."""

import math
import re
import struct
from dataclasses import replace
from itertools import accumulate, combinations, pairwise
from types import MappingProxyType
from xml.parsers import expat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markup import parsed
from processes import run_python
from witan.core.ballot import Ballot
from witan.core.comparison import Comparison, compare_rules
from witan.core.outcome import BallotNote, Interval, Leads, Outcome, Standing
from witan.core.settings import Settings
from witan.core.tally import tally
from witan.errors import InvalidParameter, NothingToCount, UnknownName, WitanError
from witan.surfaces.report.chart import (
    Axis,
    Band,
    Dot,
    DotLine,
    DotPlot,
    Facet,
    Facets,
    LogAxis,
    Point,
    Scatter,
    Series,
    Strips,
)
from witan.surfaces.report.chart_files import save_chart
from witan.surfaces.report.comparison import comparison_chart, comparison_report
from witan.surfaces.report.document import Chart
from witan.surfaces.report.drawing import INKS, draw_chart, text_width
from witan.surfaces.report.standings import matchup_chart, standings_chart

HOSTILE = '"]; alert(1)//<b>'

ELEMENTS = {
    "a", "circle", "desc", "g", "line", "path", "rect", "svg", "text", "title",
}  # fmt: skip


def standing(candidate, rank=1, score=0.5, tier=1, half=0.1, **fields):
    """A line with an interval of this half-width, or none."""
    held = {
        "std_error": None,
        "interval": None if half is None else Interval(score - half, score + half, 0.95),
        "votes": 4,
        "wins": 0.0,
        "coverage": 1.0,
        "confidence": "high",
        "tied_with_next": False,
        "p_best": 0.5,
        "effect": None,
        "mean_grade": None,
        "band": None,
    }
    return Standing(candidate=candidate, rank=rank, score=score, tier=tier, **{**held, **fields})


def outcome(*standings, rule="borda", **fields):
    """An outcome with these lines, margins falling down the order."""
    n = len(standings)
    held = {
        "session": "q1",
        "rule": rule,
        "parameters": MappingProxyType({}),
        "why": "asked for",
        "interpretation": "a leads clearly.",
        "standings": standings,
        "p_beats": ((None,) * n,) * n,
        "unresolved": (),
        "disputed_by": (),
        "condorcet_winner": None,
        "cycles": (),
        "kendall_w": None,
        "n_ballots": 5,
        "n_abstentions": 0,
        "effective_votes": None,
        "rho": None,
        "ballots_to_flip": None,
        "flip_is_exact": True,
        "tie_broken_by": None,
        "ties": "contrast",
        "level": 0.95,
        "fit": None,
        "df": None,
        "prior": None,
        "recusal": "before",
        "unranked": "skip",
        "ballots": (),
        "abstentions": MappingProxyType({}),
        "margins": tuple(tuple(float(j - i) for j in range(n)) for i in range(n)),
        "order_kept": {},
        "fell_back_to": None,
        "details": MappingProxyType({}),
        "warnings": (),
    }
    return Outcome(**{**held, **fields})


def comparison(sessions, tau=((1.0, 0.5), (0.5, 1.0)), differs=((0, 1), (1, 0)), skipped=None):
    """Two rules over these sessions."""
    return Comparison(
        rules=("borda", "schulze"),
        skipped=MappingProxyType(skipped or {}),
        sessions=tuple(sessions),
        outcomes=MappingProxyType(sessions),
        tau=tau,
        leader_differs=differs,
        same_leaders=0,
        leads={name: Leads(len(sessions), 0, 0, {}) for name in ("borda", "schulze")},
        stability=MappingProxyType({"borda": None, "schulze": None}),
    )


def two_rules(**fields):
    """One session in which two rules disagree on the leader, one of them with a tie."""
    return {
        "borda": outcome(standing("a"), standing("b", 2), standing("c", 3), **fields),
        "schulze": outcome(
            standing("b"), standing("a", 2), standing("c", 2), rule="schulze", **fields
        ),
    }


def file_of(chart):
    """The root of a chart as a file."""
    return parsed(draw_chart(chart, with_frame=True)).one("svg")


def texts(root):
    """Everything that is written in a drawing, in order."""
    return [each.text for each in root.all("text")]


def lines_of(chart):
    """Each line of a chart of rows: its name, what is spoken of it, and its element."""
    root = file_of(chart)
    return [(each.all("title")[0].text, each) for each in root.all("g", role="img")]


def box_of(text):
    """Left, top, right and bottom of a text."""
    size = float(text.attrs.get("font-size", 13))
    words = "".join(each for each in text.children if isinstance(each, str))
    x, y, wide = float(text.attrs["x"]), float(text.attrs["y"]), text_width(words, size)
    left = x - wide if text.attrs.get("text-anchor") == "end" else x
    return left, y - 0.36 * size - 8, left + wide, y - 0.36 * size + 8


def squares(chart):
    """Words of each cell of a matrix, to the class of its colour and what is written in it."""
    return {
        each.all("title")[0].text: (each.one("rect").attrs["class"], texts(each))
        for each in file_of(chart).all("g", role="img")
    }


def elements(svg):
    """The names of all elements, in order; fails unless the text is well-formed XML."""
    found = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, _: found.append(name)
    parser.Parse(svg, True)
    return found


def python(code):
    """Run code in a fresh interpreter and return what it prints."""
    done = run_python(code, check=True)
    return done.stdout.strip()


CHART = standings_chart(outcome(standing("a"), standing("b", 2, 0.3, tier=2)))


class TestStandings:
    """Dots with intervals, best on top."""

    def test_lines_run_downward_in_the_order_of_the_standings(self):
        """The best candidate stands on top."""
        chart = standings_chart(outcome(standing("z", 1, 0.9), standing("a", 2, 0.4, tier=2)))

        found = file_of(chart)
        tops = {each.text: float(each.attrs["y"]) for each in found.all("text")}
        assert tops["z"] < tops["a"]

    def test_an_interval_is_drawn_with_its_level_named(self):
        """The line is heard with its numbers, and the caption names the level."""
        line = replace(standing("a", score=0.6), interval=Interval(0.5, 0.75, 0.9))
        chart = standings_chart(outcome(line))

        [(spoken, drawn)] = lines_of(chart)
        [bar], [dot] = drawn.all("line", class_="bar"), drawn.all("circle")
        assert spoken == "a: score 0.600, 90% interval 0.500 to 0.750"
        assert float(bar.attrs["x1"]) < float(dot.attrs["cx"]) < float(bar.attrs["x2"])
        assert "90% intervals" in chart.caption

    def test_without_intervals_the_chart_says_so(self):
        """Dots alone are never taken for certainty."""
        chart = standings_chart(outcome(standing("a", half=None)))

        [(_, drawn)] = lines_of(chart)
        assert drawn.all("line") == []
        assert "no intervals" in chart.caption

    def test_a_tier_of_several_is_boxed_and_labelled(self):
        """Only a box that holds more than one line says that they are too close to call."""
        lines = (standing("a"), standing("b", 2), standing("c", 3, 0.1, tier=2))
        root = file_of(standings_chart(outcome(*lines, unresolved=(("a", "b"),))))

        shared, single = root.all("rect", class_="box")
        tops = {each.text: float(each.attrs["y"]) for each in root.all("text")}
        assert bottom(shared) < float(single.attrs["y"]) < tops["c"] < bottom(single)
        assert tops["a"] < tops["b"] < bottom(shared)
        assert texts(root).count("too close to call") == 1

    @pytest.mark.parametrize(
        ("unresolved", "label"),
        [
            ([("a", "b"), ("b", "c"), ("a", "c")], "too close to call"),
            ([("a", "b"), ("b", "c")], "some pairs too close to call"),
        ],
        ids=["all", "some"],
    )
    def test_a_box_claims_no_more_than_its_pairs(self, unresolved, label):
        """Where the first and the last of a box are separated, only some pairs are close."""
        lines = (standing("a"), standing("b", 2), standing("c", 3))
        root = file_of(standings_chart(outcome(*lines, unresolved=tuple(unresolved))))

        labels = {"too close to call", "some pairs too close to call"}
        assert [text for text in texts(root) if text in labels] == [label]

    def test_a_rule_without_uncertainty_has_no_boxes(self):
        """Elo makes no statement about closeness."""
        lines = (standing("a", half=None), standing("b", 2, half=None))
        root = file_of(standings_chart(outcome(*lines, rule="elo", unresolved=(("a", "b"),))))

        assert root.all("rect", class_="box") == []
        assert "too close" not in " ".join(texts(root))

    def test_a_candidate_with_one_vote_stands_outside_the_boxes(self):
        """One vote tests nothing, so there is no box to set it apart from others."""
        lines = (
            standing("a"),
            standing("b", 2, tier=2),
            standing("c", 3, tier=3, votes=1, half=None),
        )
        chart = standings_chart(outcome(*lines, unresolved=(("a", "c"), ("b", "c"))))

        assert len(file_of(chart).all("rect", class_="box")) == 2
        assert lines_of(chart)[2][0].endswith("not enough votes")

    def test_a_candidate_without_votes_is_listed_without_a_dot(self):
        """Borda's 0 for a candidate nobody ranked is no measurement, so it is not drawn."""
        chart = standings_chart(
            outcome(standing("a"), standing("b", 2, 0.0, tier=2, votes=0, half=None))
        )

        (_, _), (spoken, drawn) = lines_of(chart)
        assert spoken.endswith("no votes")
        assert drawn.all("circle") == []
        assert texts(drawn)[:2] == ["–", "no votes"]
        assert len(file_of(chart).all("rect", class_="box")) == 1

    def test_a_candidate_with_votes_but_no_score_says_so(self):
        """A vote that gives no score is not called no vote."""
        line = replace(standing("a", half=None), score=None)

        assert "no score" in texts(file_of(standings_chart(outcome(line))))

    def test_a_failed_candidate_differs_in_shape_and_in_words(self):
        """The safety verdict is legible without colour, outside every box."""
        chart = standings_chart(
            outcome(standing("a"), standing("b", 2, 0.1, failed=("weapon_making",)))
        )

        (_, passed), (_, failed) = lines_of(chart)
        assert passed.all("circle")
        assert failed.all("path", class_="cross")
        assert "fails the safety gate: weapon_making" in texts(failed)
        [box] = file_of(chart).all("rect", class_="box")
        assert float(failed.all("text")[0].attrs["y"]) > bottom(box)

    def test_a_failed_candidate_is_in_no_box_of_eligible_ones(self):
        """Though its score may lie between theirs."""
        lines = (standing("a"), standing("b", 2), standing("c", 3, failed=("weapon_making",)))
        chart = standings_chart(outcome(*lines))

        boxes = file_of(chart).all("rect", class_="box")
        rows = {
            spoken[0]: float(each.all("text")[0].attrs["y"]) for spoken, each in lines_of(chart)
        }
        inside = {
            name: any(float(box.attrs["y"]) < y < bottom(box) for box in boxes)
            for name, y in rows.items()
        }
        assert inside == {"a": True, "b": True, "c": False}

    @pytest.mark.parametrize("score", [math.inf, -math.inf, math.nan])
    def test_an_undefined_score_has_no_dot(self, score):
        """The rest is drawn as without it."""
        lines = [standing("a", 1, 0.9), standing("b", 2, 0.4)]
        with_it = standings_chart(outcome(*lines, standing("c", 3, score, half=None)))

        assert with_it.drawing.axes == standings_chart(outcome(*lines)).drawing.axes
        *_, (_, drawn) = lines_of(with_it)
        assert drawn.all("circle") == []
        assert "no score" in texts(drawn)

    @pytest.mark.parametrize("reach", [math.inf, 1.7e308])
    def test_an_unbounded_interval_runs_to_the_end_of_the_axis(self, reach):
        """The line stays within the plot."""
        line = replace(standing("a"), interval=Interval(-reach, reach, 0.95))
        root = file_of(standings_chart(outcome(line, standing("b", 2, 0.3))))

        ends = [
            float(each.attrs[end])
            for each in root.all("line", class_="bar")
            for end in ("x1", "x2")
        ]
        assert ends
        assert all(0 < end < float(root.attrs["width"]) for end in ends)

    @pytest.mark.parametrize(("rule", "word"), [("mean_rank", "lower"), ("borda", "higher")])
    def test_better_is_always_to_the_right(self, rule, word):
        """A rule whose low scores are good has its axis turned round, and says so."""
        best, worst = (1, 2) if rule == "mean_rank" else (2, 1)
        chart = standings_chart(outcome(standing("a", 1, best), standing("b", 2, worst), rule=rule))

        a, b = (float(drawn.one("circle").attrs["cx"]) for _, drawn in lines_of(chart))
        assert a > b
        assert any(text.endswith(f"{word} is better →") for text in texts(file_of(chart)))

    def test_the_headline_is_the_interpretation_above_its_context(self):
        """A chart on its own says what it shows."""
        chart = standings_chart(
            outcome(standing("a"), n_ballots=1, n_abstentions=2, effective_votes=2.34)
        )

        words = " ".join(texts(file_of(chart)))
        assert words.startswith("a leads clearly.")
        for said in ("session q1", "rule borda", "1 ballot (2 abstentions)", "worth 2.3"):
            assert said in words

    @pytest.mark.parametrize(("votes", "printed"), [(100.0, "worth 100 "), (3.14, "worth 3.1 ")])
    def test_whole_votes_have_no_decimals(self, votes, printed):
        chart = standings_chart(outcome(standing("a"), effective_votes=votes))

        assert any(each.startswith(printed) for each in chart.about)

    @pytest.mark.parametrize("length", range(1, 60))
    def test_no_line_below_the_headline_ends_in_a_separator(self, length):
        """A line break replaces the dot between two items."""
        found = outcome(standing("a"), session="s" * length, effective_votes=3.1)
        below = [each.text for each in file_of(standings_chart(found)).all("text", font_size="12")]

        assert len(below) > 1
        assert below == [line.strip(" ·") for line in below]

    def test_a_long_interpretation_is_wrapped_and_stays_whole_in_the_description(self):
        """A headline over many candidates does not outgrow the picture."""
        sentence = "; ".join(f"model-{k} and model-{k}b are too close to call" for k in range(50))
        root = file_of(standings_chart(outcome(standing("a"), interpretation=sentence)))

        assert len(root.all("text", font_weight="bold")) <= 6
        assert root.all("text", font_weight="bold")[-1].text.endswith("…")
        assert sentence in root.one("desc").text

    def test_negative_scores_are_printed_with_a_minus_and_a_line_at_zero(self):
        """Scores on both sides of zero show where zero is."""
        chart = standings_chart(
            outcome(standing("a", 1, 0.7), standing("b", 2, -0.7), rule="calibrated")
        )

        assert len(file_of(chart).all("line", class_="edge")) == 1
        assert "−0.700" in texts(file_of(chart))

    def test_scores_on_one_side_of_zero_have_no_line_there(self):
        """An interval across zero is no reason for one."""
        chart = standings_chart(outcome(standing("a", 1, 1.5, half=2.0), rule="mean_rank"))

        assert file_of(chart).all("line", class_="edge") == []

    @pytest.mark.parametrize(("p", "printed"), [(None, "–"), (0.0, "<0.01"), (0.999, ">0.99")])
    def test_no_probability_is_printed_as_certain(self, p, printed):
        """Numerical integrals print neither 0.00 nor 1.00."""
        [(_, drawn)] = lines_of(standings_chart(outcome(standing("a", p_best=p))))

        assert texts(drawn)[-2] == printed

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
    def test_every_dot_and_interval_lies_within_the_plot(self, scores):
        """No score falls outside its box, whatever the scores are and however many."""
        ordered = sorted(scores, reverse=True)
        lines = [standing(f"c{k}", k + 1, score) for k, score in enumerate(ordered)]

        root = file_of(standings_chart(outcome(*lines)))

        [box] = root.all("rect", class_="box")
        dots, bars = root.all("circle"), root.all("line", class_="bar")
        places = [float(each.attrs["cx"]) for each in dots]
        places += [float(each.attrs[end]) for each in bars for end in ("x1", "x2")]
        right = float(box.attrs["x"]) + float(box.attrs["width"])
        assert len(dots) == len(bars) == len(scores)
        assert all(float(box.attrs["x"]) < place < right for place in places)
        assert all(float(each.attrs["cy"]) < bottom(box) for each in dots)

    def test_an_unknown_rule_is_an_error(self):
        """The direction of better is never guessed."""
        with pytest.raises(UnknownName, match="bord"):
            standings_chart(outcome(standing("a"), rule="bord"))


def middle(path):
    """The middle of a path of moves and lines, the first absolute and the others relative."""
    steps = [tuple(map(float, re.findall(r"-?[\d.]+", step))) for step in re.split("[Mmlz]", path)]
    places = [*accumulate(filter(None, steps), lambda at, by: (at[0] + by[0], at[1] + by[1]))]
    return tuple((min(each) + max(each)) / 2 for each in zip(*places, strict=True))


def bottom(box):
    """The lower edge of a rectangle."""
    return float(box.attrs["y"]) + float(box.attrs["height"])


class TestAxis:
    """Numbers on an axis are round, few, and within it."""

    @given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.integers(1, 8))
    def test_ticks_are_round_numbers_within_the_axis(self, one, other, most):
        """They are multiples of 1, 2 or 5 times a power of ten, evenly apart."""
        axis = Axis.of_numbers("", [(one, None), (other, None)])

        ticks = [value for value, _ in axis.ticks(most)]
        assert len(ticks) <= most + 1
        assert all(-1e-6 <= axis.share(value) <= 1 + 1e-6 for value in ticks)
        for before, after in pairwise(ticks):
            assert f"{after - before:.1e}"[:3] in ("1.0", "2.0", "5.0")

    @pytest.mark.parametrize(
        ("low", "high", "printed"),
        [
            (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (-4.5, 4.6, ["−4", "−2", "0", "2", "4"]),
            (1180.0, 1330.0, ["1200", "1250", "1300"]),
        ],
    )
    def test_they_are_printed_with_no_more_digits_than_they_have(self, low, high, printed):
        """And with the minus sign of print."""
        assert [
            words for _, words in Axis.of_numbers("", [(low, None), (high, None)]).ticks(6)
        ] == printed

    @pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e9, 5e-324])
    def test_a_single_value_lies_in_the_middle_of_its_axis(self, value):
        axis = Axis.of_numbers("", [(value, None)])

        assert axis.share(value) == pytest.approx(0.5)
        assert axis.ticks(5)


class TestMatchups:
    """Who beats whom."""

    def test_each_cell_prints_the_margin_of_row_over_column(self):
        """The number is there for those who do not see the colour."""
        lines = (standing("a"), standing("b", 2))
        found = squares(matchup_chart(outcome(*lines, margins=((0.0, 3.0), (-3.0, 0.0)))))

        assert [written for _, written in found.values()] == [["+3"], ["−3"]]
        assert list(found) == ["a over b: +3", "b over a: −3"]

    def test_fractional_and_equal_margins_are_printed_plainly(self):
        """Weighted ballots give fractions; a draw is 0, and takes no side."""
        margins = ((0.0, 1.5, 0.0), (-1.5, 0.0, 2.0), (0.0, -2.0, 0.0))
        lines = (standing("a"), standing("b", 2), standing("c", 3))
        found = squares(matchup_chart(outcome(*lines, margins=margins)))

        assert found["a over b: +1.5"] == ("s2", ["+1.5"])
        assert found["a over c: 0"] == ("s0", ["0"])
        assert found["c over b: −2"][0] == "b3"

    def test_margins_of_weighted_ballots_are_weights(self):
        """The caption says what the numbers count."""
        lines, margins = (standing("a"), standing("b", 2)), ((0.0, 1.5), (-1.5, 0.0))
        note = BallotNote("x", 1.0, 1.5, mismatch=False, ranking=(("a",), ("b",)))
        for weight, unit in ((1.0, "Number: ballots"), (1.5, "Number: weight of the ballots")):
            ballots = (replace(note, weight=weight),)
            chart = matchup_chart(outcome(*lines, margins=margins, ballots=ballots))
            assert chart.caption.startswith(f"{unit} that place")

    @pytest.mark.parametrize(
        "ink", [name for name in INKS if name[0] in "sb" and name[1:].isdigit()]
    )
    def test_numbers_are_legible_on_every_fill(self, ink):
        """The contrast of ink on fill is at least 4.5 to 1, as WCAG 2.2 asks of small text."""
        light, dark = luminance(INKS[ink]["fill"]), luminance(INKS["ink"]["fill"])

        assert (light + 0.05) / (dark + 0.05) >= 4.5

    def test_ahead_behind_and_a_draw_differ_in_colour(self):
        """Ahead is blue, behind is orange, however little; a draw is grey."""
        blues = {name: blueness(INKS[name]["fill"]) for name in INKS if name[1:].isdigit()}

        assert blues["s0"] == 0
        assert all(blues[f"s{depth}"] > 0 > blues[f"b{depth}"] for depth in (1, 2, 3))
        assert blues["s1"] < blues["s2"] < blues["s3"]
        assert blues["b1"] > blues["b2"] > blues["b3"]

    @pytest.mark.parametrize("margin", [1.0, 16.0, 50.0])
    def test_only_a_draw_has_no_colour(self, margin):
        """A narrow lead beside a wide one is shaded too."""
        margins = ((0.0, 100.0, margin), (-100.0, 0.0, 0.0), (-margin, 0.0, 0.0))
        lines = (standing("a"), standing("b", 2), standing("c", 3))
        found = squares(matchup_chart(outcome(*lines, margins=margins)))

        assert found[f"a over c: +{margin:g}"][0] in {"s1", "s2"}
        assert found[f"c over a: −{margin:g}"][0] in {"b1", "b2"}
        assert found["b over c: 0"][0] == "s0"

    def test_the_headline_names_the_condorcet_winner_or_a_cycle(self):
        """The finding stands above the numbers."""
        lines = (standing("a"), standing("b", 1), standing("c", 1))
        won = matchup_chart(outcome(*lines, condorcet_winner="a"))
        circle = matchup_chart(outcome(*lines, cycles=(("a", "b", "c"),)))

        assert "a beats every rival" in won.finding
        assert "among a, b and c" in circle.finding

    @pytest.mark.parametrize("n", [1, 2, 5, 20, 50])
    def test_there_is_one_cell_for_every_ordered_pair(self, n):
        """Any number of candidates makes a square."""
        chart = matchup_chart(outcome(*(standing(f"c{k}", k + 1) for k in range(n))))

        assert len(squares(chart)) == n * n - n
        assert len(file_of(chart).all("rect", class_="own")) == n

    def test_a_crowd_is_cut_to_the_first_fifty(self):
        """The chart says so, and so does the table of probabilities."""
        names = [f"c{c}" for c in range(120)]
        ballots = [Ballot(f"r{r}", groups=tuple((c,) for c in names)) for r in range(5)]
        found = tally(ballots, "borda", flips=False)
        chart = matchup_chart(found)

        assert len(squares(chart)) == 50 * 49
        assert "for the first 50 of 120 candidates" in chart.caption
        page = found._repr_html_()
        assert "for the first 50 of 120 candidates" in page
        assert len(page) < 1_000_000


class TestComparison:
    """Rules side by side."""

    def test_one_session_shows_the_rank_under_every_rule(self):
        """A shared rank carries an equals sign."""
        chart = comparison_chart(comparison({"q1": two_rules()}))

        found = squares(chart)
        assert "a under borda: 1" in found
        assert {"a under schulze: 2=", "c under schulze: 2="} <= {*found}
        assert [*chart.drawing.rows] == ["a", "b", "c"]

    def test_the_headline_says_who_leads_under_which_rules(self):
        """In the words of the report."""
        compared = comparison({"q1": two_rules()})

        assert comparison_chart(compared).finding == comparison_report(compared).finding
        assert comparison_chart(compared).finding.startswith("a leads clearly under 1 rule")

    def test_a_rule_that_could_not_count_is_named(self):
        """Below the headline."""
        chart = comparison_chart(comparison({"q1": two_rules()}, skipped={"range": "needs grades"}))

        assert "not counted: range" in chart.about

    def test_several_sessions_show_agreement_and_how_often_leaders_differ(self):
        """Each pair of rules appears once, with τ and the number of sessions."""
        both = comparison({"q1": two_rules(), "q2": two_rules(session="q2")})
        chart = comparison_chart(both)

        [(_, written)] = squares(chart).values()
        assert written == ["0.50", "1"]
        assert "0 of 2 sessions" in chart.finding

    @pytest.mark.parametrize(("tau", "text"), [(None, "–"), (-0.25, "−0.25")])
    def test_undefined_and_negative_agreement_are_printed(self, tau, text):
        """A τ that is not defined is a dash, and a negative one has its sign."""
        both = comparison({"q1": two_rules(), "q2": two_rules()}, tau=((1.0, tau), (tau, 1.0)))

        [(_, written)] = squares(comparison_chart(both)).values()
        assert written[0] == text

    def test_nothing_to_compare_is_an_error(self):
        """No session, no picture; and agreement takes two rules."""
        both = comparison({"q1": two_rules(), "q2": two_rules()}, tau=((1.0,),), differs=((0,),))

        with pytest.raises(NothingToCount, match="nothing to compare"):
            comparison_chart(comparison({}))
        with pytest.raises(NothingToCount, match="no other rule"):
            comparison_chart(replace(both, rules=("borda",)))


class TestScatter:
    """Names beside a plot, each joined to its dot."""

    @given(st.lists(st.tuples(st.floats(0.001, 1), st.floats(0, 1)), min_size=1, max_size=40))
    def test_no_name_covers_another(self, places):
        """However many dots share a place; all are inside the drawing, whole or cut."""
        points = tuple(Point(f"m{k}", f"m{k}", x, Dot(y)) for k, (x, y) in enumerate(places))
        up = Axis.of_numbers("", [(y, None) for _, y in places])
        across = LogAxis.of_amounts("", [x for x, _ in places], zero="free")
        for narrow in (False, True):
            root = parsed(draw_chart(Chart(Scatter(across, up, points), "Costs"), narrow=narrow))
            boxes = [box_of(each) for g in root.one("svg").all("g", role="img")
                     for each in g.all("text")]  # fmt: skip
            wide, tall = (float(root.one("svg").attrs[side]) for side in ("width", "height"))
            assert all(x >= 0 and y2 <= tall and x2 <= wide + 1 for x, _, x2, y2 in boxes)
            assert not [
                (one, other)
                for one, other in combinations(boxes, 2)
                if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] - 0.2
                and other[1] < one[3] - 0.2
            ]  # fmt: skip

    def test_a_name_stands_beside_its_dot(self):
        """Where there is room for it, no line is needed to find it."""
        points = (Point("cheap", "", 0.01, Dot(0.1)), Point("dear", "", 1.0, Dot(0.9)))
        across = LogAxis.of_amounts("", [0.01, 1.0], zero="free")
        root = file_of(Chart(Scatter(across, Axis("", 0.0, 1.0), points), "Costs"))

        assert root.all("line", class_="join") == []
        for group in root.all("g", role="img"):
            x, _, x2, _ = box_of(group.one("text"))
            assert min(abs(x - float(group.one("circle").attrs["cx"])),
                       abs(x2 - float(group.one("circle").attrs["cx"]))) < 12  # fmt: skip

    def test_the_best_at_each_price_are_joined_by_steps(self):
        """From the cheapest to the right edge, never downward."""
        points = tuple(Point(f"{x}", "", x, Dot(y)) for x, y in ((0.01, 0.2), (0.1, 0.6)))
        across = LogAxis.of_amounts("", [0.01, 0.1], zero="free")
        scatter = Scatter(across, Axis("", 0.0, 1.0), points, (((0.01, 0.2), (0.1, 0.6)),))
        root = file_of(Chart(scatter, "Costs"))

        first, second = (each.attrs for each in root.all("circle"))
        path = root.one("path", class_="front").attrs["d"]
        assert path.startswith(f"M{first['cx']} {first['cy']}H{second['cx']}V{second['cy']}H")


class TestLogAxis:
    """Prices from thousandths of a cent to dollars on one axis."""

    @given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=20), st.integers(1, 8))
    def test_ticks_are_round_and_within_the_axis(self, amounts, most):
        """Each is a power of ten times 1, 2, 3 or 5, printed as it is."""
        axis = LogAxis.of_amounts("", amounts, zero="free")

        for value, words in axis.ticks(most):
            assert float(words) == pytest.approx(value, rel=1e-9)
            assert f"{value:e}"[0] in "1235"
            assert -1e-9 <= axis.share(value) <= 1 + 1e-9

    @given(st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=20))
    def test_dearer_stands_further_along_and_free_before_all(self, amounts):
        """Free has a place and a name of its own, since no logarithm has one for it."""
        axis = LogAxis.of_amounts("", [0.0, *amounts], zero="free")

        shares = [axis.share(amount) for amount in sorted([0.0, *amounts])]
        assert shares == sorted(shares)
        assert axis.share(0.0) < axis.share(min(amounts))
        assert axis.ticks(4)[0] == (0.0, "free")

    def test_equal_ratios_have_equal_lengths(self):
        axis = LogAxis.of_amounts("", [0.001, 0.01, 0.1], zero="free")

        first, second, third = (axis.share(amount) for amount in (0.001, 0.01, 0.1))
        assert second - first == pytest.approx(third - second)


class TestPhone:
    """The same chart, drawn to the width of a phone."""

    def test_every_form_fits_and_says_the_same(self):
        """No line or dot is left out of it."""
        axis = Axis("axis", 0.0, 1.0)
        row = DotLine("a model of some name", "", tuple(Dot(0.1 * k) for k in range(7)))
        drawings = [
            CHART.drawing,
            DotPlot((axis,) * 7, (), (Band((row,)),)),
            Strips(axis, "Monday", "Friday", (Series("ada", (Dot(0.1), Dot(0.2)), "0.2"),)),
            Facets(axis, axis, (Facet("3", ((0.5, Dot(0.5)),), ()),) * 3),
        ]
        for drawing in drawings:
            wide, narrow = (
                parsed(draw_chart(Chart(drawing, "chart"), narrow=phone)).one("svg")
                for phone in (False, True)
            )
            assert float(narrow.attrs["width"]) <= 352
            assert len(narrow.all("circle")) == len(wide.all("circle"))

    def test_a_wide_grid_has_numbered_columns(self):
        """Whose names stand before the rows, without the provider where they differ."""
        lines = (standing("one:ada"), standing("two:bob", 2), standing("three:cyd", 3))
        drawn = parsed(draw_chart(matchup_chart(outcome(*lines)), narrow=True))

        assert [each.text for each in drawn.all("text")][:4] == ["1", "2", "3", "1 ada"]


class TestStrips:
    """One series over time."""

    @pytest.mark.parametrize("mark", ["cross", "diamond"])
    def test_a_mark_is_centred_on_its_value(self, mark):
        """At any size."""
        axis = Axis.of_numbers("", [(1.0, None), (2.0, None)])

        def strips(dot):
            series = Series("ada", (dot,), "2")
            return file_of(Chart(Strips(axis, "Monday", "Friday", (series,)), "Time"))

        circle = strips(Dot(1.5)).one("circle").attrs
        assert middle(strips(Dot(1.5, mark=mark)).one("path").attrs["d"]) == pytest.approx(
            (float(circle["cx"]), float(circle["cy"])), abs=0.1
        )

    def test_a_gap_has_no_dot(self):
        """The line passes over it."""
        dots = (Dot(1.0, alt_text="Monday: 1"), None, Dot(2.0, alt_text="Friday: 2"))
        axis = Axis.of_numbers("", [(1.0, None), (2.0, None)])
        strips = Strips(axis, "Monday", "Friday", (Series("ada", dots, "2"),))
        drawn = file_of(Chart(strips, "Time"))

        assert [words for words, _ in lines_of(Chart(strips, "Time"))] == ["Monday: 1", "Friday: 2"]
        assert len(drawn.all("circle")) == 2
        assert len(drawn.all("line", class_="join")) == 1


def charts(name):
    """One chart of each kind for an outcome with this candidate."""
    lines = (standing(name), standing("other", 2))
    found = outcome(*lines, condorcet_winner=name, session=name, interpretation=f"{name} leads.")
    rules = {"borda": found, "schulze": replace(found, rule="schulze")}
    return [
        standings_chart(found),
        matchup_chart(found),
        comparison_chart(comparison({name: rules})),
    ]


class TestEveryChart:
    """Properties of all charts."""

    @pytest.mark.parametrize(
        "name", [HOSTILE, "</text><script>", "a\u202eb\x00", "'", "&amp;", "]]>"]
    )
    def test_a_name_is_escaped(self, name):
        """It creates neither element nor attribute."""
        for chart in charts(name):
            drawn = draw_chart(chart, with_frame=True)
            assert {*elements(drawn)} <= ELEMENTS
            assert not {"\u202e", "\x00"} & {*drawn}
            values = {v for each in parsed(drawn).all() for v in each.attrs.values()}
            assert not [value for value in values if "alert" in value or "script" in value]

    def test_a_hostile_name_is_shown_as_it_is(self):
        """Markup is text like any other; control characters are escapes."""
        assert HOSTILE in texts(file_of(standings_chart(outcome(standing(HOSTILE)))))
        control = standings_chart(outcome(standing("a\u202eb\x00")))
        assert "a\\u202eb\\x00" in texts(file_of(control))

    def test_the_same_outcome_gives_the_same_bytes(self):
        """A chart under version control changes only when its data do."""
        first, second = ([draw_chart(chart) for chart in charts("a")] for _ in range(2))

        assert first == second

    @pytest.mark.parametrize("name", ["W" * 60, "provider:" + "long-" * 30, "東京" * 40])
    def test_a_long_name_is_cut_and_whole_in_its_title(self, name):
        """Nothing runs into the plot, and whoever points at a name reads all of it."""
        for chart in charts(name):
            [cut, *_] = [each for each in file_of(chart).all("text") if each.all("title")]
            assert cut.one("title").text == name
            assert "…" in cut.text

    def test_a_page_and_a_file_draw_the_same_chart(self):
        """Both have title and description; only a file has a headline."""
        page, file = (draw_chart(CHART, with_frame=framed) for framed in (False, True))

        assert 'font-weight="bold"' in file
        assert 'font-weight="bold"' not in page
        body = page[page.index("</desc>") + 7 : -len("</svg>\n")]
        assert body in file


class TestFiles:
    """The suffix selects the format; a file is written whole or not at all."""

    @pytest.mark.parametrize("name", ["chart.png", "CHART.PNG"])
    def test_png_has_twice_the_pixels_of_the_drawing(self, tmp_path, name):
        pytest.importorskip("resvg_py", reason="resvg-py is not installed")
        content = save_chart(CHART, tmp_path / name).read_bytes()

        width, height = struct.unpack(">II", content[16:24])
        root = file_of(CHART)
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert width == pytest.approx(2 * float(root.attrs["width"]), abs=2)
        assert height == pytest.approx(2 * float(root.attrs["height"]), abs=2)

    def test_html_is_self_contained(self, tmp_path):
        """The drawing is inline, without scripts or addresses."""
        text = save_chart(CHART, tmp_path / "chart.html").read_text(encoding="utf-8")

        assert text.startswith("<!doctype html>")
        assert draw_chart(CHART, with_frame=True) in text
        assert "<script" not in text
        assert "src=" not in text

    @pytest.mark.parametrize("name", ["chart", "chart.gif", "chart.svg.txt", "chart.json"])
    def test_an_unknown_suffix_is_refused_with_the_known_ones(self, tmp_path, name):
        """Nothing is written."""
        with pytest.raises(InvalidParameter, match=r"\.svg, .* or \.html") as caught:
            save_chart(CHART, tmp_path / name)

        assert name in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("n_sessions", [1, 2])
    def test_every_chart_of_a_counted_council_is_drawn(self, tmp_path, n_sessions):
        """All rules, all charts: each picture holds the candidates' names."""
        grades = [{"ada": 9, "bob": 7, "cyd": 4}, {"ada": 6, "bob": 7, "cyd": 5}, {"ada": 8}]
        council = [
            Ballot(f"r{k}", grades=given, session=f"q{s}", candidates=("ada", "bob", "cyd", "dee"))
            for s in range(n_sessions)
            for k, given in enumerate(grades)
        ]
        compared = compare_rules(council, Settings())
        outcomes = compared.outcomes["q0"].values()
        drawn = [chart(found) for found in outcomes for chart in (standings_chart, matchup_chart)]

        for chart in drawn:
            svg = save_chart(chart, tmp_path / "chart.svg").read_text(encoding="utf-8")
            assert elements(svg)[0] == "svg"
            assert all(f">{name}</text>" in svg for name in ("ada", "bob", "cyd", "dee"))
        rules = save_chart(comparison_chart(compared), tmp_path / "rules.svg")
        assert ">schulze</text>" in rules.read_text(encoding="utf-8")

    def test_an_existing_chart_is_replaced(self, tmp_path):
        """No other file remains."""
        path = tmp_path / "chart.svg"
        path.write_text("old")

        save_chart(CHART, str(path))

        assert path.read_text(encoding="utf-8").startswith("<svg")
        assert list(tmp_path.iterdir()) == [path]

    def test_a_chart_goes_where_a_link_leads(self, tmp_path):
        """And the file there keeps its permissions."""
        file, link = tmp_path / "chart.svg", tmp_path / "latest.svg"
        file.touch(mode=0o600)
        link.symlink_to(file)

        save_chart(CHART, link)

        assert link.is_symlink()
        assert file.read_text(encoding="utf-8").startswith("<svg")
        assert file.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("name", ["chart.svg", "chart.html", "chart.png"])
    def test_a_failed_drawing_keeps_the_old_file(self, tmp_path, name):
        """A row without a dot has no axis."""
        path = tmp_path / name
        path.write_text("old")
        row = DotLine("a", "a", ())
        broken = DotPlot((Axis("", 0.0, 1.0),), (), (Band((row,)),))

        with pytest.raises(ValueError, match="zip"):
            save_chart(replace(CHART, drawing=broken), path)

        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_missing_directory_is_named(self, tmp_path):
        with pytest.raises(WitanError, match=r"nowhere/chart\.svg cannot be written: No such file"):
            save_chart(CHART, tmp_path / "nowhere" / "chart.svg")

    def test_a_directory_in_the_place_of_the_file_is_left_alone(self, tmp_path):
        """The error names it, and no temporary file remains."""
        path = tmp_path / "chart.svg"
        path.mkdir()

        with pytest.raises(WitanError, match=r"chart\.svg"):
            save_chart(CHART, path)

        assert list(tmp_path.iterdir()) == [path]


class TestExtra:
    """Only PNG needs an extra."""

    def test_the_png_library_is_imported_on_use(self, tmp_path):
        """Other kinds do not import it."""
        code = (
            "import sys\n"
            "from witan import tally, Ballot\n"
            "from witan.surfaces.report.chart_files import save_chart\n"
            "from witan.surfaces.report.standings import standings_chart\n"
            "chart = standings_chart(tally([Ballot('r', grades={'a': 9, 'b': 2})]))\n"
            f"save_chart(chart, {str(tmp_path / 'chart.svg')!r})\n"
            "print('resvg_py' in sys.modules)"
        )

        assert python(code) == "False"

    def test_without_the_library_the_error_says_what_to_install(self, tmp_path):
        """The extra is named, no file appears, and other kinds are written."""
        code = (
            "import sys; sys.modules['resvg_py'] = None\n"
            "from witan import tally, Ballot\n"
            "from witan.errors import MissingExtra\n"
            "from witan.surfaces.report.chart_files import save_chart\n"
            "from witan.surfaces.report.standings import standings_chart\n"
            "chart = standings_chart(tally([Ballot('r', grades={'a': 9, 'b': 2})]))\n"
            f"save_chart(chart, {str(tmp_path / 'chart.svg')!r})\n"
            f"try: save_chart(chart, {str(tmp_path / 'chart.png')!r})\n"
            "except MissingExtra as error: print(error)"
        )

        assert "pip install '.[plot]'" in python(code)
        assert [path.name for path in tmp_path.iterdir()] == ["chart.svg"]


def channels(colour):
    """Red, green and blue, 0 to 255."""
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]


def blueness(colour):
    """Blue less red."""
    red, _, blue = channels(colour)
    return blue - red


def luminance(colour):
    """Relative luminance of an sRGB colour, by the formula of WCAG 2.2."""
    shares = [channel / 255 for channel in channels(colour)]
    linear = [s / 12.92 if s <= 0.04045 else math.pow((s + 0.055) / 1.055, 2.4) for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
