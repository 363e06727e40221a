"""Charts say what the outcome says, and nothing that a name tells them to do."""

import json
import math
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.core.comparison import Comparison
from witan.core.outcome import Interval, Outcome, Standing
from witan.errors import NothingToCount, UnknownName
from witan.surfaces.charts import comparison_chart, matchup_chart, standings_chart

HOSTILE = '"]; alert(1)//<b>'


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
        stability=MappingProxyType({}),
    )


def two_rules(**fields):
    """One session in which two rules disagree on the leader, one of them with a tie."""
    return {
        "borda": outcome(standing("a"), standing("b", 2), standing("c", 3), **fields),
        "schulze": outcome(
            standing("b"), standing("a", 2), standing("c", 2), rule="schulze", **fields
        ),
    }


def marks(spec, kind):
    """The layers drawn with one kind of mark."""
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


def words(spec):
    """Everything a reader reads above the plot."""
    return " ".join([*spec["title"]["text"], *spec["title"]["subtitle"]])


def strings(value):
    """Every string anywhere in a spec."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for held in value.values() for text in strings(held)]
    return [text for held in value for text in strings(held)] if isinstance(value, list) else []


def cell(spec, row, column):
    """One cell of a matrix."""
    found = [c for c in spec["datasets"]["cells"] if (c["row"], c["column"]) == (row, column)]
    assert len(found) == 1
    return found[0]


class TestStandings:
    """Dots with intervals, best on top."""

    def test_lines_run_downward_in_the_order_of_the_standings(self):
        """The best candidate stands on top."""
        spec = standings_chart(
            outcome(standing("z", 1, 0.9, tier=1), standing("a", 2, 0.4, tier=2))
        )

        lines = spec["datasets"]["lines"]
        y = marks(spec, "point")[0]["encoding"]["y"]
        assert [line["name"] for line in lines] == ["z", "a"]
        assert lines[0]["y"] < lines[1]["y"]
        assert y["scale"]["reverse"] is True

    def test_an_interval_is_drawn_with_its_level_named(self):
        """The bars carry the outcome's numbers, the subtitle their level."""
        line = standing("a", score=0.6, half=0.1)
        line = replace(line, interval=Interval(0.5, 0.75, 0.9))

        spec = standings_chart(outcome(line))

        drawn = spec["datasets"]["lines"][0]
        assert (drawn["low"], drawn["score"], drawn["high"]) == (0.5, 0.6, 0.75)
        assert "90 % intervals" in words(spec)

    def test_without_intervals_the_chart_says_so(self):
        """Dots alone are never taken for certainty."""
        spec = standings_chart(outcome(standing("a", half=None)))

        assert spec["datasets"]["lines"][0]["low"] is None
        assert "no intervals" in words(spec)

    def test_a_tier_of_several_is_boxed_and_labelled(self):
        """Only a box that holds more than one line says that they are too close to call."""
        spec = standings_chart(
            outcome(standing("a"), standing("b", 2), standing("c", 3, 0.1, tier=2))
        )

        shared, single = spec["datasets"]["tiers"]
        a, b, c = (line["y"] for line in spec["datasets"]["lines"])
        assert shared["top"] < a < b < shared["bottom"] <= single["top"] < c < single["bottom"]
        assert (shared["label"], single["label"]) == ("too close to call", "")

    def test_a_candidate_without_votes_is_listed_without_a_dot(self):
        """Borda's 0 for a candidate nobody ranked is no measurement, so it is not drawn."""
        spec = standings_chart(
            outcome(standing("a", tier=1), standing("b", 2, 0.0, tier=2, votes=0, half=None))
        )

        line = spec["datasets"]["lines"][1]
        assert (line["absent"], line["score"], line["rank"]) == ("no votes", None, "–")
        assert len(spec["datasets"]["tiers"]) == 1

    def test_a_candidate_with_votes_but_no_score_says_so(self):
        """A vote that gives no score is not called no vote."""
        spec = standings_chart(outcome(replace(standing("a", half=None), score=None)))

        assert spec["datasets"]["lines"][0]["absent"] == "no score"

    def test_a_failed_candidate_differs_in_shape_and_in_words(self):
        """The safety gate's verdict can be read without colour."""
        spec = standings_chart(
            outcome(standing("a"), standing("b", 2, 0.1, failed=("weapon_making",)))
        )

        passed, failed = spec["datasets"]["lines"]
        scale = marks(spec, "point")[0]["encoding"]["shape"]["scale"]
        shapes = dict(zip(scale["domain"], scale["range"], strict=True))
        assert shapes[passed["state"]] != shapes[failed["state"]]
        assert failed["remark"] == "failed the safety gate: weapon_making"
        assert passed["remark"] == ""

    def test_a_failed_candidate_stands_outside_the_boxes(self):
        """A candidate that may not win is not tied with one that may."""
        spec = standings_chart(
            outcome(standing("a"), standing("b", 2, 0.1, failed=("weapon_making",)))
        )

        (box,) = spec["datasets"]["tiers"]
        assert spec["datasets"]["lines"][1]["y"] > box["bottom"]
        assert box["label"] == ""

    @pytest.mark.parametrize(
        ("rule", "reverse", "word"), [("mean_rank", True, "lower"), ("borda", False, "higher")]
    )
    def test_better_is_always_to_the_right(self, rule, reverse, word):
        """A rule whose low scores are good has its axis turned round, and says so."""
        spec = standings_chart(outcome(standing("a", 1, 1.5), standing("b", 2, 2.5), rule=rule))

        x = marks(spec, "point")[0]["encoding"]["x"]
        assert x["scale"]["reverse"] is reverse
        assert x["axis"]["title"].endswith(f"{word} is better →")

    def test_the_title_is_the_interpretation_and_the_subtitle_its_circumstances(self):
        """A chart that is passed on alone still says what it is of."""
        spec = standings_chart(
            outcome(standing("a"), n_ballots=1, n_abstentions=2, effective_votes=2.34)
        )

        assert spec["title"]["text"] == ["a leads clearly."]
        for said in ("session q1", "rule borda", "1 ballot (2 abstentions)", "worth 2.3"):
            assert said in words(spec)

    def test_a_long_interpretation_is_wrapped_and_stays_whole_in_the_description(self):
        """A title over many candidates does not outgrow the picture."""
        sentence = "; ".join(f"model-{k} and model-{k}b are too close to call" for k in range(50))

        spec = standings_chart(outcome(standing("a"), interpretation=sentence))

        assert len(spec["title"]["text"]) <= 4
        assert spec["title"]["text"][-1].endswith("…")
        assert sentence in spec["description"]

    def test_negative_scores_are_printed_with_a_minus_and_a_line_at_zero(self):
        """Scores on both sides of zero show where zero is."""
        spec = standings_chart(
            outcome(standing("a", 1, 0.7), standing("b", 2, -0.7), rule="calibrated")
        )

        assert spec["datasets"]["zero"] == [{"zero": 0}]
        assert spec["datasets"]["lines"][1]["printed"] == "−0.70"

    def test_scores_on_one_side_of_zero_have_no_line_there(self):
        """An interval that runs below zero gives zero no meaning."""
        spec = standings_chart(outcome(standing("a", 1, 1.5, half=2.0), rule="mean_rank"))

        assert spec["datasets"]["zero"] == []

    @pytest.mark.parametrize(
        ("p", "printed"), [(None, "–"), (0.0, "<0.01"), (0.256, "0.26"), (0.999, ">0.99")]
    )
    def test_no_probability_is_printed_as_certain(self, p, printed):
        """What was integrated numerically is neither 0.00 nor 1.00."""
        spec = standings_chart(outcome(standing("a", p_best=p)))

        assert spec["datasets"]["lines"][0]["p_best"] == printed

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
    def test_every_dot_and_interval_end_lies_within_the_plot(self, scores):
        """No score falls outside the axis, whatever the scores are and however many."""
        ordered = sorted(scores, reverse=True)
        lines = [standing(f"c{k}", k + 1, score) for k, score in enumerate(ordered)]

        spec = standings_chart(outcome(*lines))

        low, high = marks(spec, "point")[0]["encoding"]["x"]["scale"]["domain"]
        assert all(low <= s - 0.1 and s + 0.1 <= high for s in ordered)
        assert low < high
        assert all(line["y"] > 0 for line in spec["datasets"]["lines"])
        assert len(spec["datasets"]["lines"]) == len(scores)

    @pytest.mark.parametrize("score", [0.0, 1.0, -3.0, 1000.0])
    def test_one_score_without_an_interval_has_an_axis(self, score):
        """A single value is drawn on an axis that also shows zero."""
        spec = standings_chart(outcome(standing("a", score=score, half=None)))

        low, high = marks(spec, "point")[0]["encoding"]["x"]["scale"]["domain"]
        assert low < min(score, 0) <= max(score, 0) < high

    def test_no_candidate_with_votes_means_no_axis(self):
        """Without a score there is nothing to measure along."""
        spec = standings_chart(outcome(standing("a", score=0.0, votes=0, half=None)))

        assert marks(spec, "point")[0]["encoding"]["x"]["axis"] is None

    def test_an_unknown_rule_is_an_error(self):
        """The direction of better is never guessed."""
        with pytest.raises(UnknownName, match="bord"):
            standings_chart(outcome(standing("a"), rule="bord"))


class TestMatchups:
    """Who beats whom."""

    def test_each_cell_prints_the_margin_of_row_over_column(self):
        """The number is there for those who do not see the colour."""
        spec = matchup_chart(
            outcome(standing("a"), standing("b", 2), margins=((0.0, 3.0), (-3.0, 0.0)))
        )

        assert cell(spec, 0, 1)["text"] == "+3"
        assert cell(spec, 1, 0)["text"] == "−3"
        assert cell(spec, 0, 0)["text"] == ""

    def test_fractional_and_equal_margins_are_printed_plainly(self):
        """Weighted ballots give fractions; a draw is 0."""
        margins = ((0.0, 1.5, 0.0), (-1.5, 0.0, 2.0), (0.0, -2.0, 0.0))

        spec = matchup_chart(
            outcome(standing("a"), standing("b", 2), standing("c", 3), margins=margins)
        )

        assert [cell(spec, 0, 1)["text"], cell(spec, 0, 2)["text"]] == ["+1.5", "0"]

    def test_opposite_margins_have_different_hues_and_a_draw_is_neutral(self):
        """Ahead and behind are told apart; equality takes no side."""
        margins = ((0.0, 2.0, 0.0), (-2.0, 0.0, 2.0), (0.0, -2.0, 0.0))

        spec = matchup_chart(
            outcome(standing("a"), standing("b", 2), standing("c", 3), margins=margins)
        )

        ahead, behind, draw = (cell(spec, *at)["fill"] for at in ((0, 1), (1, 0), (0, 2)))
        assert blueness(ahead) > 0 > blueness(behind)
        assert blueness(draw) == 0

    @pytest.mark.parametrize("margin", [-9.0, -4.0, -1.0, 0.0, 1.0, 4.0, 9.0])
    def test_numbers_are_legible_on_every_fill(self, margin):
        """The contrast of ink on fill is at least 4.5 to 1, as WCAG 2.2 asks of small text."""
        margins = ((0.0, margin, 9.0), (-margin, 0.0, 0.0), (-9.0, 0.0, 0.0))

        spec = matchup_chart(
            outcome(standing("a"), standing("b", 2), standing("c", 3), margins=margins)
        )

        ink = luminance(spec["config"]["text"]["color"])
        assert (luminance(cell(spec, 0, 1)["fill"]) + 0.05) / (ink + 0.05) >= 4.5

    def test_the_title_names_the_condorcet_winner(self):
        """The finding stands above the numbers."""
        lines = (standing("a"), standing("b", 2))

        assert "a beats every rival" in words(matchup_chart(outcome(*lines, condorcet_winner="a")))

    def test_the_title_names_a_cycle(self):
        """A circle of majorities is said, not hidden."""
        lines = (standing("a"), standing("b", 1), standing("c", 1))

        spec = matchup_chart(outcome(*lines, cycles=(("a", "b", "c"),)))

        assert "in a circle among a, b and c" in words(spec)

    @pytest.mark.parametrize("n", [1, 2, 5, 20, 50])
    def test_there_is_one_cell_for_every_ordered_pair(self, n):
        """Any number of candidates makes a square."""
        spec = matchup_chart(outcome(*(standing(f"c{k}", k + 1) for k in range(n))))

        assert len(spec["datasets"]["cells"]) == n * n
        assert spec["width"] == spec["height"]


class TestComparison:
    """Rules side by side."""

    def test_one_session_shows_the_rank_under_every_rule(self):
        """A shared rank carries an equals sign."""
        spec = comparison_chart(comparison({"q1": two_rules()}))

        rows = [row["name"] for row in spec["datasets"]["rows"]]
        texts = {(c["candidate"], c["rule"]): c["text"] for c in spec["datasets"]["cells"]}
        assert sorted(rows) == ["a", "b", "c"]
        assert texts["a", "borda"] == "1"
        assert texts["a", "schulze"] == texts["c", "schulze"] == "2="

    def test_disagreement_on_the_leader_is_the_title(self):
        """Who leads under which rule is said first."""
        spec = comparison_chart(comparison({"q1": two_rules()}))

        said = words(spec)
        assert "The rules disagree" in said
        assert "a leads under borda" in said
        assert "b leads under schulze" in said

    def test_agreement_on_the_leader_keeps_its_name_as_it_is_written(self):
        """A name that begins the sentence is not capitalised."""
        same = {
            "borda": outcome(standing("gpt"), standing("b", 2)),
            "schulze": outcome(standing("gpt"), standing("b", 2), rule="schulze"),
        }

        spec = comparison_chart(comparison({"q1": same}))

        assert spec["title"]["text"] == ["gpt leads under borda and schulze."]

    def test_a_rule_that_could_not_count_is_named(self):
        """What is missing from the picture is written under its title."""
        spec = comparison_chart(comparison({"q1": two_rules()}, skipped={"range": "needs grades"}))

        assert "not counted: range" in words(spec)

    def test_several_sessions_show_agreement_and_how_often_leaders_differ(self):
        """Each pair of rules appears once, with τ and the number of sessions."""
        both = comparison({"q1": two_rules(), "q2": two_rules(session="q2")})

        spec = comparison_chart(both)

        (only,) = spec["datasets"]["cells"]
        assert (only["text"], only["note"]) == ("0.50", "1")
        assert "2 sessions" in words(spec)

    @pytest.mark.parametrize(("tau", "text"), [(None, "–"), (-0.25, "−0.25")])
    def test_undefined_and_negative_agreement_are_printed(self, tau, text):
        """A τ that is not defined is a dash, and a negative one has its sign."""
        both = comparison({"q1": two_rules(), "q2": two_rules()}, tau=((1.0, tau), (tau, 1.0)))

        assert comparison_chart(both)["datasets"]["cells"][0]["text"] == text

    def test_a_session_among_several_can_be_chosen(self):
        """With a session named, its ranks are shown."""
        both = comparison({"q1": two_rules(), "q2": two_rules(session="q2")})

        assert "session q2" in words(comparison_chart(both, "q2"))

    def test_an_unknown_session_is_an_error_with_the_nearest(self):
        """A mistyped session is named."""
        with pytest.raises(UnknownName, match="q1"):
            comparison_chart(comparison({"q1": two_rules()}), "q11")

    def test_nothing_to_compare_is_an_error(self):
        """No session, no picture."""
        with pytest.raises(NothingToCount, match="nothing to compare"):
            comparison_chart(comparison({}))

    def test_a_rule_alone_over_several_sessions_is_an_error(self):
        """Agreement takes two."""
        alone = replace(
            comparison({"q1": two_rules(), "q2": two_rules()}, tau=((1.0,),), differs=((0,),)),
            rules=("borda",),
        )

        with pytest.raises(NothingToCount, match="no other rule"):
            comparison_chart(alone)


class TestEveryChart:
    """What holds whatever is drawn."""

    @pytest.mark.parametrize("name", [HOSTILE, "datum.x", "a\u202eb", "'", "\\", "${1}"])
    def test_a_name_reaches_data_titles_and_descriptions_only(self, name):
        """No expression, field, signal or address is ever made from a name."""
        specs = charts(name)

        for spec in specs:
            program = {key: spec[key] for key in spec if key not in SAID}
            assert not [text for text in strings(program) if name in text]
            assert not {"expr", "signal", "url", "href", "transform", "params"} & keys(spec)

    def test_a_hostile_name_is_shown_as_it_is(self):
        """Markup is text like any other."""
        spec = standings_chart(outcome(standing(HOSTILE)))

        assert spec["datasets"]["lines"][0]["name"] == HOSTILE

    def test_control_characters_are_drawn_as_escapes(self):
        """A name cannot turn the writing round or break the file."""
        spec = standings_chart(outcome(standing("a\u202eb\x00")))

        assert spec["datasets"]["lines"][0]["name"] == "a\\u202eb\\x00"

    def test_the_same_outcome_gives_the_same_bytes(self):
        """Specs can be compared, stored and diffed."""
        first, second = ([json.dumps(s, allow_nan=False) for s in charts("a")] for _ in range(2))

        assert first == second

    def test_a_changed_spec_changes_no_later_one(self):
        """Who restyles a chart restyles that chart alone."""
        first = standings_chart(outcome(standing("a")))
        first["config"]["text"]["color"] = "red"

        assert standings_chart(outcome(standing("a")))["config"]["text"]["color"] != "red"

    @pytest.mark.parametrize("length", [1, 40])
    def test_names_up_to_forty_characters_fit_their_room(self, length):
        """The limit at which a name is cut lies beyond forty wide characters."""
        spec = standings_chart(outcome(standing("W" * length)))

        limits = [m["mark"]["limit"] for m in marks(spec, "text") if "limit" in m["mark"]]
        assert spec["datasets"]["lines"][0]["name"] == "W" * length
        assert min(limits) >= 40 * spec["config"]["text"]["fontSize"] * 0.95


SAID = ("datasets", "title", "description")


def charts(name):
    """One of each chart, all with this candidate."""
    lines = (standing(name), standing("other", 2))
    held = outcome(*lines, condorcet_winner=name, session=name, interpretation=f"{name} leads.")
    rules = {"borda": held, "schulze": replace(held, rule="schulze")}
    return [
        standings_chart(held),
        matchup_chart(held),
        comparison_chart(comparison({name: rules})),
    ]


def keys(value):
    """Every key anywhere in a spec."""
    if isinstance(value, dict):
        return set(value).union(*(keys(held) for held in value.values()))
    return set().union(*(keys(held) for held in value)) if isinstance(value, list) else set()


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
