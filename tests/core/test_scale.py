"""Grades are read on the scale they are given on, and count from 1 to 10."""

import tracemalloc
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan import Ballot, tally
from witan.core.comparison import compare_rules
from witan.core.explanation import explain
from witan.core.scale import NATIVE, PASS_FAIL, Range, Scale, grade_on, read_grade
from witan.core.scale_recognition import GradeEvidence
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.errors import InvalidParameter, UnclearScale


def scale_of(*grades, **criteria):
    """The scale of a source with these grades, or with these on its criteria."""
    evidence = GradeEvidence()
    evidence.add(Ballot("r", grades={f"c{n}": grade for n, grade in enumerate(grades)}))
    for name, held in criteria.items():
        evidence.add(Ballot("r", grades={f"c{n}": {name: grade} for n, grade in enumerate(held)}))
    return evidence.scales().shared_scale


class TestReadGrade:
    """Grades are read as reviewers write them, and nothing else is."""

    @pytest.mark.parametrize(
        ("written", "grade"),
        [
            (8, 8.0), (8.5, 8.5), (1, 1.0), (10, 10.0), ("8", 8.0), ("8.5", 8.5), ("8/10", 8.0),
            ("8.5/10", 8.5), (" 9 / 10 ", 9.0), ("10/10", 10.0), (np.int64(7), 7.0),
            (np.float32(7.5), 7.5), ("80 %", 8.2), ("80%", 8.2), ("4/5", 8.2), ("16/20", 8.2),
            ("0 %", 1.0), ("100%", 10.0), ("75/100", 7.75),
            ("8,5", 8.5), ("8,25", 8.25), ("8,5/10", 8.5), ("82,5 %", 8.425),
        ],
    )  # fmt: skip
    def test_read(self, written, grade):
        """Numbers are read, alone, in per cent, or out of another."""
        assert read_grade(written) == grade

    @pytest.mark.parametrize(
        ("written", "grade"),
        [(0, 1.0), (11, 10.0), (0.99, 1.0), (10.01, 10.0), (10**400, 10.0), (-(10**400), 1.0),
         (-3, 1.0), ("0", 1.0), ("11", 10.0), ("-8", 1.0), ("110 %", 10.0), ("6/5", 10.0)],
    )  # fmt: skip
    def test_outside_it_is_the_nearer_end(self, written, grade):
        """Nothing that is a number is dropped."""
        assert grade_on(NATIVE, written) == (grade, True)

    @pytest.mark.parametrize(
        "written",
        [
            np.True_, None, nan, inf, -inf, [8], {"grade": 8}, b"8", "", "   ",
            "eight", "8 or 9", "8-9", "1e1", "nan", "inf", "8/10/10", "٨", "8" * 5_000, "4/0",
            "1,200", "8,", ",5",
        ],
    )  # fmt: skip
    def test_not_read(self, written):
        """What is neither a number nor a word for one of the ends is no grade."""
        assert read_grade(written) is None

    @given(
        st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none()),
        st.sampled_from([NATIVE, Range(0, 1), Range(5, 1), Range(-2, 2), PASS_FAIL]),
    )
    def test_never_out_of_range(self, written, within):
        """Whatever is given, what comes back is None or a float from 1 to 10."""
        grade = read_grade(written, within)

        assert grade is None or (type(grade) is float and 1 <= grade <= 10)


class TestConversion:
    """Every scale comes to 1–10 by a straight line."""

    @pytest.mark.parametrize(
        ("scale", "given", "grade"),
        [
            ("0-1", 0.85, 8.65), ("0-1", 1, 10.0), ("0-100", 50, 5.5), ("1-5", 3, 5.5),
            ("0-3", 2, 7.0), ("0-10", 0, 1.0), ("-2-2", 0, 5.5), ("6-1", 1, 10.0), ("6-1", 6, 1.0),
            ("pass-fail", "pass", 10.0), ("pass-fail", "Failed", 1.0), ("pass-fail", True, 10.0),
            ("pass-fail", 0, 1.0), ("0-1", True, 10.0), ("0-1", False, 1.0), ("1-5", "Pass", 10.0),
            ("0-100", "no", 1.0), ("6-1", "yes", 10.0),
            ("0-1", "80 %", 8.2), ("0-5", "4/5", 8.2), ("1-5", "4/5", 7.75),
        ],
    )  # fmt: skip
    def test_a_grade_in_our_own_numbers(self, scale, given, grade):
        """The worst is 1 and the best 10; the worst may be the larger number."""
        assert grade_on(Scale.parse(scale).whole, given) == (grade, False)

    @given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
    def test_order_stands(self, low, high, one, other):
        """The better of two grades on a scale is nowhere the worse one from 1 to 10."""
        if abs(high - low) < 1e-3:
            return
        within = Range(low, high)
        better, worse = (max, min) if high > low else (min, max)

        assert within.convert(better(one, other))[0] >= within.convert(worse(one, other))[0]

    @pytest.mark.parametrize(
        "text", ["0-1", "pass-fail", "1-10,style=1-5", "-3-250", "0-1,a=2-3,b=0-9"]
    )
    def test_text_and_record_come_back(self, text):
        """A scale is the same after it is written, as text and as data."""
        scale = Scale.parse(text)

        assert str(scale) == text
        assert Scale.of_record(scale.record()) == scale

    @pytest.mark.parametrize(
        "text", ["", "5", "1-1", "0-x", "a-b", "0-1,2-3", "0-1;2", 7, {"a": 1}]
    )
    def test_what_is_no_scale_is_refused(self, text):
        """The error shows how a scale is written."""
        with pytest.raises(InvalidParameter, match="expected a scale such as 0-1"):
            Scale.of_record(text)


class TestRecognition:
    """The scale of a source is read off all its grades."""

    @pytest.mark.parametrize(
        ("grades", "scale", "instead"),
        [
            ((0.85, 0.6, 1), "0-1", ()),
            ((0, 1, 1), "0-1", ()),
            ((1, 1), "0-1", ("1-5", "1-10")),
            ((0, 1, 2, 3), "0-3", ("0-5", "0-10")),
            ((0, 2.5, 4.5), "0-5", ("0-10",)),
            ((1, 3, 5), "1-5", ("1-10",)),
            ((4, 5, 5), "1-5", ("1-10",)),
            ((8, 3), "1-10", ()),
            ((0, 9, 7), "0-10", ()),
            ((85, 60, 100), "0-100", ()),
            ((0, 5, 12, 90), "0-100", ()),
            ((12, 8.5, 15, 17, 11), "0-20", ("0-100",)),
            ((1, 4, 7, 6), "1-10", ("1-7",)),
            (("4/5", "3/5"), "1-5", ()),
            (("0/5", "3/5"), "0-5", ()),
            (("16/20", "9/20"), "0-20", ()),
            (("80 %", "75%"), "0-100", ()),
            (("pass", "FAIL"), "pass-fail", ()),
            (("yes", "no"), "pass-fail", ()),
            ((True, False), "pass-fail", ()),
            (("8/10", 8, "80 %"), "0-10", ()),
            (("8/10", 8), "1-10", ()),
            ((8, "80 %"), "1-10", ()),
            (("3/5", "11/20"), "0-1", ()),
            (("3/5", "80 %"), "0-1", ()),
        ],
    )
    def test_of_all_grades_together(self, grades, scale, instead):
        """Where the grades fit another scale as well, it is named."""
        found = scale_of(*grades)

        assert (str(found), found.instead) == (scale, instead)
        assert found.recognised

    def test_of_words_alone_nothing_is_recognised(self):
        """Text that is no grade leaves the scale at 1-10, which is not said to be recognised."""
        found = scale_of("good", "bad")

        assert (str(found), found.recognised) == ("1-10", False)

    @pytest.mark.parametrize(
        ("grades", "stray", "scale", "wider"),
        [
            (range(1, 11), 11, "1-10", "0-20"),
            (range(1, 6), 50, "1-5", "0-100"),
            (range(1, 6), 999, "1-5", "0-999"),
            (range(1, 6), -1, "1-5", "-1-5"),
            (range(6), 15, "0-5", "0-20"),
            (range(4), 11, "0-3", "0-20"),
            (range(2), -1, "0-1", "-1-1"),
            (range(2), 50, "0-1", "0-100"),
        ],
    )
    def test_a_stray_number_does_not_move_the_scale(self, grades, stray, scale, wider):
        """One number outside the scale of many is clamped, and the wider scale is named."""
        found = scale_of(*[*grades] * 10, stray)

        assert (str(found), found.instead) == (scale, (wider,))

    @pytest.mark.parametrize(
        ("grades", "said"),
        [
            ((7, 8, 9, 6, 85), "from 6 to 85; scale=1-10 clamps 1 of 5 grades, or scale=0-100 "),
            ((0.85, 0.6, 1, 8, 9), "scale=0-1 clamps 2 of 5 grades, or scale=0-10 takes all"),
            ((-3, 250, 40), "to 250; scale=-3-250 takes all"),
            ((1000, 2000), "from 1000 to 2000; "),
            ((-1, -1), "from -1 to -1; scale=-1-0 takes all"),
            ((1000, 1000), "from 1000 to 1000; scale=0-1000 takes all"),
        ],
    )
    def test_what_is_unclear_is_refused(self, grades, said):
        """The error names the two nearest readings, and the parameter that picks each."""
        with pytest.raises(UnclearScale) as refused:
            scale_of(*grades)

        assert said in str(refused.value)
        for scale, _ in refused.value.readings:
            assert Scale.parse(scale)

    @pytest.mark.parametrize(
        ("criteria", "scale"),
        [
            ({"accuracy": (9, 8, 2), "style": (3, 5, 3)}, "1-10"),
            ({"accuracy": (0.9, 0.8), "style": (1, 5, 3)}, "1-5,accuracy=0-1"),
            ({"accuracy": (9, 8, 2), "safe": (0, 1)}, "1-10,safe=0-1"),
            ({"accuracy": (3, 0, 2), "safe": (0, 1)}, "0-3"),
            ({"accuracy": (9, 4), "share": (90, 35)}, "1-10,share=0-100"),
            ({"accuracy": (9, 4), "safe": ("yes", "no")}, "1-10,safe=pass-fail"),
            ({"accuracy": (9, 4), "safe": (1, 1)}, "1-10"),
            ({"accuracy": ("3/5", "4/5"), "style": ("3/10", "9/10")}, "1-10,accuracy=1-5"),
        ],
    )
    def test_a_criterion_may_have_another(self, criteria, scale):
        """Only where it cannot be on that of the others: low grades alone are none of that."""
        assert str(scale_of(**criteria)) == scale

    def test_what_else_fits_is_named_per_criterion(self):
        """Each alternative is a whole declaration, and none hides another."""
        found = scale_of(accuracy=(1, 3, 5), share=(12, 18), part=(11, 19))

        assert str(found) == "1-5,part=0-20,share=0-20"
        assert found.instead == (
            "1-10,part=0-20,share=0-20",
            "1-5,part=0-100,share=0-20",
            "1-5,part=0-20,share=0-100",
        )


class TestShares:
    """Grades out of different numbers, or in per cent, are shares of the best grade."""

    WRITTEN = st.one_of(
        st.builds(lambda y, x: (x / y, f"{x}/{y}"), st.just(5), st.integers(0, 5)),
        st.builds(lambda y, x: (x / y, f"{x} / {y}"), st.sampled_from([4, 10, 20, 100]),
                  st.integers(0, 4)),
        st.builds(lambda x: (x / 100, f"{x} %"), st.integers(0, 100)),
    )  # fmt: skip

    def test_three_of_five_are_more_than_eleven_of_twenty(self):
        """The outcome says that they are read as shares."""
        cast = [Ballot(f"r{n}", grades={"a": "3/5", "b": "11/20", "c": "1/5"}) for n in range(3)]
        outcome = tally(cast, "range")

        assert [line.score for line in outcome.standings] == pytest.approx([6.4, 5.95, 2.8])
        [warning] = outcome.warnings
        assert all(
            fact in warning for fact in ("0-1 (recognised)", "3/5 and 60%", "converted to 1-10")
        )

    def test_plain_grades_beside_them_begin_at_0(self):
        """6, 6/10 and 60 % are one grade."""
        [ballot] = [Ballot("r", grades={"a": 6, "b": "6/10", "c": "60 %", "d": 9, "e": 2})]
        outcome = tally([ballot], "range")

        assert {outcome[name].score for name in "abc"} == {6.4}

    @given(st.lists(WRITTEN, min_size=2, max_size=8), st.randoms())
    def test_the_order_of_rows_decides_nothing(self, written, rng):
        """The scale is the same in any order, and the greater share has the better grade."""
        shuffled = rng.sample(written, len(written))
        scale = scale_of(*(text for _, text in written))
        graded = sorted((share, read_grade(text, scale.whole)) for share, text in written)

        assert scale == scale_of(*(text for _, text in shuffled))
        assert [grade for _, grade in graded] == sorted(grade for _, grade in graded)

    @given(
        st.lists(
            st.one_of(
                st.integers(0, 10), st.integers(0, 100), st.floats(0, 1), st.booleans(),
                st.sampled_from(["3/5", "11/20", "7/10", "80 %", "pass", "7.5", "n/a"]),
            ),
            min_size=1,
            max_size=12,
        ),
        st.randoms(),
    )  # fmt: skip
    def test_nor_for_any_other_grades(self, grades, rng):
        """Whatever is given, the same grades in another order are read alike or refused alike."""

        def read(held):
            try:
                scale = scale_of(*held)
            except UnclearScale as error:
                return str(error)
            return scale, scale.instead, scale.shares

        assert read(grades) == read(rng.sample(grades, len(grades)))


def shared_scale(cast):
    """The scale of all that are counted together."""
    evidence = GradeEvidence()
    for ballot in cast:
        evidence.add(ballot)
    return str(evidence.scales().shared_scale)


class TestReviewersApart:
    """Reviewers who plainly use different scales are each read on their own."""

    def cast(self, **sheets):
        """A ballot per sheet."""
        return [Ballot(name, grades=dict(zip("abcd", held))) for name, held in sheets.items()]  # noqa: B905

    def scales(self, cast):
        """Reviewer to scale; the shared one where nobody is apart."""
        evidence = GradeEvidence()
        for ballot in cast:
            evidence.add(ballot)
        scales = evidence.scales()
        return {ballot.reviewer: str(scales.of(ballot.reviewer)) for ballot in cast}

    @pytest.mark.parametrize(
        ("sheets", "scales"),
        [
            ({"x": (90, 70, 80), "y": (5, 3, 4)}, {"x": "0-100", "y": "1-5"}),
            ({"x": (90, 70, 80), "y": (9, 3, 4)}, {"x": "0-100", "y": "1-10"}),
            ({"x": (90, 70, 80), "y": (0.9, 0.3, 1)}, {"x": "0-100", "y": "0-1"}),
            ({"x": (9, 7, 8), "y": (0.9, 0.3, 1)}, {"x": "1-10", "y": "0-1"}),
            ({"x": (9, 7, 8), "y": (0, 1, 1)}, {"x": "1-10", "y": "0-1"}),
            (
                {"x": (90, 70, 80), "y": (5, 3, 4), "z": (0.5, 0.3, 0.4)},
                {"x": "0-100", "y": "1-5", "z": "0-1"},
            ),
            ({"x": (9, 7, 8), "y": (5, 3, 4)}, {"x": "1-10", "y": "1-10"}),
            ({"x": (90, 70, 5, 80), "y": (5,)}, {"x": "0-100", "y": "0-100"}),
            ({"x": (90, 70, 5), "y": (0, 0, 0)}, {"x": "0-100", "y": "0-100"}),
            ({"x": (2, 3, 0), "y": (0, 1, 1)}, {"x": "0-3", "y": "0-3"}),
        ],
    )
    def test_only_what_is_plain_is_apart(self, sheets, scales):
        """A strict reviewer stays on the scale of the others; the order of ballots is nothing."""
        cast = self.cast(**sheets)

        assert self.scales(cast) == scales
        assert self.scales(cast[::-1]) == scales

    @pytest.mark.parametrize(
        "strict",
        [
            {"dora": [{"d": 5}]},
            {"dora": [{"d": grade} for grade in (5, 4, 3, 5)]},
            {"dora": [{"d": 4}], "eve": [{"d": 5}]},
            {"dora": [{"c": 5, "d": 4}]},
            {"dora": [{"a": 5}]},
            {"dora": [{"a": 4, "b": 4, "c": 4, "d": 4}]},
            {"dora": [{"e": 5, "f": 3, "g": 4}]},
        ],
        ids=["one", "repeated", "two reviewers", "the poor", "one good", "all equal", "unknown"],
    )
    @pytest.mark.parametrize("poor", [58, 14])
    def test_the_grades_of_a_strict_reviewer_stay_low(self, strict, poor):
        """A low grade on the scale of the others never becomes a high one on a smaller scale."""
        cast = self.cast(anna=(81, 72, 62, 60), ben=(80, 85, 60, 66), carl=(92, 82, 58, poor))
        sheets = [(name, grades) for name, held in strict.items() for grades in held]
        cast += [
            Ballot(name, grades=grades, session=f"s{n}") for n, (name, grades) in enumerate(sheets)
        ]

        assert set(self.scales(cast).values()) == {"0-100"}
        assert set(self.scales(cast[::-1]).values()) == {"0-100"}

    def test_the_lowest_grade_does_not_raise_a_candidate(self):
        """A 5 beside grades from 58 to 92 lowers whom it is for."""
        cast = self.cast(anna=(81, 72, 60), ben=(80, 85, 66), carl=(92, 82, 58))
        before = tally(cast, "range")["c"].score
        outcome = tally([*cast, Ballot("dora", grades={"c": 5})], "range")

        assert outcome["c"].score < before
        assert outcome.standings[-1].candidate == "c"

    def test_no_option_is_named_that_reads_the_others_wrongly(self):
        """A scale for some of the reviewers is no scale for all of them."""
        outcome = tally(self.cast(x=(90, 70, 80), y=(5, 3, 4)), "range")

        assert outcome.warnings[1].endswith("converted to 1-10; they also fit 1-10")

    def test_of_a_crowd_nobody_is_apart(self):
        """Above 1,000 reviewers all are read on one scale, in any order."""
        cast = [Ballot(f"r{n}", grades={"a": 90, "b": 70 - n % 9}) for n in range(1000)]
        few = [*cast[:-1], Ballot("y", grades={"a": 5, "b": 3})]
        many = [*cast, Ballot("y", grades={"a": 5, "b": 3})]

        assert self.scales(few[-2:] + few[:-2])["y"] == "1-5"
        assert shared_scale(many) == shared_scale(many[::-1]) == "0-100"

    @pytest.mark.parametrize(
        "cast",
        [
            lambda n: Ballot("r", grades={"a": f"{n}" + "x" * 20_000, "b": 3}),
            pytest.param(
                lambda n: Ballot("r", grades={"a": n / 7, "b": f"{n}x"}), marks=pytest.mark.slow
            ),
            lambda n: Ballot(f"r{n}", grades={"a": n % 10 + 1, "b": 7 * n % 10 + 1}),
            pytest.param(
                lambda n: Ballot("r", grades={f"a{n}": n % 10 + 1}), marks=pytest.mark.slow
            ),
        ],
        ids=["long texts", "many values", "many reviewers", "many candidates"],
    )
    def test_memory_does_not_grow_with_the_ballots(self, cast):
        """What is counted is bounded, whatever the grades, reviewers and candidates are."""
        evidence = GradeEvidence()
        for n in range(2_000):
            evidence.add(cast(n))
        tracemalloc.start()
        try:
            for n in range(2_000, 12_000):
                evidence.add(cast(n))
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert grown < 500_000

    def test_the_outcome_says_whose_grades_are_read_how(self):
        """And five of five is worth as much as a hundred of a hundred."""
        outcome = tally(self.cast(x=(100, 70, 0), y=(5, 3, 1), z=(5, 4, 1)), "range")

        assert [outcome[name].score for name in "ac"] == [10, 1]
        assert [warning.partition(";")[0] for warning in outcome.warnings] == [
            "grades of x are read as 0-100 (recognised), and converted to 1-10",
            "grades of y and z are read as 1-5 (recognised), and converted to 1-10",
        ]

    def test_a_criterion_that_all_use_alike_stays_shared(self):
        """Only on the criterion where they differ are reviewers apart."""
        cast = [
            Ballot("x", grades={"a": {"depth": 90, "style": 9}, "b": {"depth": 70, "style": 6}}),
            Ballot("y", grades={"a": {"depth": 4, "style": 3}, "b": {"depth": 3, "style": 2}}),
            Ballot("x", grades={"c": {"depth": 88, "style": 8}}),
        ]
        held = [Scale.parse(text) for text in self.scales(cast).values()]

        assert [str(scale.of("style")) for scale in held] == ["1-10", "1-10"]
        assert [str(scale.of("depth")) for scale in held] == ["0-100", "1-10"]


class TestTally:
    """Ballots made in Python may be on any scale."""

    def cast(self, **more):
        grades = ({"a": 0.9, "b": 0.6}, {"a": 0.8, "b": 0.7}, {"a": 1, "b": 0.5})
        return [Ballot(f"r{n}", grades=held, **more) for n, held in enumerate(grades)]

    @pytest.mark.parametrize(
        ("cast", "scale"), [({}, None), ({}, "0-1"), ({"scale": "0-1"}, None)],
        ids=["recognised", "option", "ballot"],
    )  # fmt: skip
    def test_count_as_grades_from_1_to_10(self, cast, scale):
        """However the scale is known, the outcome says it and has grades from 1 to 10."""
        outcome = tally(self.cast(**cast), "range", scale=scale)

        assert outcome["a"].score == pytest.approx(1 + 9 * 0.9)
        assert [str(held) for held in outcome.scales] == ["0-1"]
        assert outcome.warnings[0].startswith("grades are read as 0-1")

    def test_a_vote_to_pass_says_nothing_of_other_grades(self):
        """A person may pass or fail what the jury grades from 1 to 10."""
        jury = [Ballot(f"r{n}", grades={"a": 7}, scale="1-10") for n in range(3)]
        person = Ballot("ann", grades={"a": "fail"}, scale="pass-fail", kind="human")
        outcome = tally([*jury, person])

        assert outcome.warnings == ("pass and fail are read as 10 and 1",)

    def test_a_stray_grade_is_no_other_scale(self):
        """Where most are from 1 to 10, what lies outside is the nearer end."""
        cast = [Ballot(f"r{n}", grades={"a": 10, "b": 1, "c": 6, "d": 8}) for n in range(5)]
        outcome = tally([*cast, Ballot("x", grades={"a": 11, "b": 1, "c": 6, "d": 8})], "range")

        assert [outcome[name].score for name in "abcd"] == [10, 1, 6, 8]
        assert len(outcome.warnings) == 2

    def test_grades_from_1_to_10_are_what_they_are(self):
        """Nothing is said of them."""
        outcome = tally([Ballot("x", grades={"a": 5, "b": 2, "c": 6})], "range")

        assert (outcome["a"].score, outcome["b"].score) == (5, 2)
        assert (outcome.scales, outcome.warnings) == ((), ())


@pytest.mark.parametrize(
    ("scale", "best", "next_best"), [("1-5", 5, 4), ("pass-fail", 1, 0), ("1-5", 4.5, 4)]
)
def test_errors_grow_with_the_steps_of_the_scale(scale, best, next_best):
    """Unanimous grades one step apart are as many errors apart on every scale of whole numbers."""

    def errors_apart(scale: str, best: float, next_best: float) -> float:
        grades = {"a": best, "b": next_best, "c": next_best}
        cast = [Ballot(f"r{n}", grades=grades, scale=scale) for n in range(5)]
        lines = tally(cast, prior="none", rho="none").standings
        return (lines[0].score - lines[1].score) / lines[0].std_error

    assert errors_apart(scale, best, next_best) == pytest.approx(errors_apart("1-10", 9, 8))


def test_a_judge_with_finer_steps_does_not_hide_those_of_the_others():
    """Each judge's grades are as coarse as its own steps."""
    stars = [Ballot(f"r{n}", grades={"a": 5, "b": 4, "c": 4}, scale="1-5") for n in range(4)]
    fine = Ballot("x", grades={"a": 91, "b": 68, "c": 68}, scale="0-100")
    errors = [tally([*stars, one]).standings[0].std_error for one in (stars[0], fine)]

    assert errors[1] > 0.7 * errors[0]


def test_true_among_fractions_is_the_best_grade():
    """Words and booleans stand for the ends of the scale that the numbers beside them have."""
    cast = [Ballot(f"r{n}", grades={"a": best, "b": 0.5}) for n, best in enumerate((True, "pass"))]
    outcome = tally([*cast, Ballot("r2", grades={"a": 0.9, "b": False})], "range")

    assert [str(scale) for scale in outcome.scales] == ["0-1"]
    assert outcome["a"].score == pytest.approx((10 + 10 + 9.1) / 3)
    assert outcome["b"].score == pytest.approx((5.5 + 5.5 + 1) / 3)

    def test_of_letters_no_scale_is_said(self):
        """Grades that are all letters are dropped with a word each, and no scale is recognised."""
        ballots = [Ballot("ann", grades={"x": "A", "y": "B+"}), Ballot("bob", grades={"x": "A-"})]

        outcome = tally(ballots)

        assert not outcome.scales
        assert sum("not a grade; dropped" in warning for warning in outcome.warnings) == 3
        assert not any("read as" in warning for warning in outcome.warnings)


class TestEveryCaller:
    """Whatever counts ballots reads their grades on the same scale."""

    CAST = tuple(
        Ballot(f"r{n}", grades={"a": 0.85, "b": 0.55, "c": 0.1}, session="s") for n in range(3)
    )
    BEST_FIRST = pytest.approx((8.65, 5.95, 1.9))

    def scores(self, outcome):
        """The scores of an outcome, best first."""
        return tuple(line.score for line in outcome.standings)

    def test_sessions_comparison_and_explanation_agree(self):
        """One session, many, all rules, step by step: a grade of 0.85 is 8.65."""
        settings = Settings(rule="range")
        compared = compare_rules(self.CAST, settings, ["range"]).outcomes["s"]["range"]
        [counted] = tally_sessions(self.CAST, settings)

        assert self.scores(tally(self.CAST, "range")) == self.BEST_FIRST
        assert self.scores(counted) == self.BEST_FIRST
        assert self.scores(compared) == self.BEST_FIRST
        assert self.scores(explain(self.CAST, settings).outcome) == self.BEST_FIRST

    def test_settings_declare_the_scale(self):
        """As text or as a scale; what is no scale is refused."""
        settings = Settings(rule="range", scale="0-2")
        [counted] = tally_sessions(self.CAST, settings)

        assert settings == Settings(rule="range", scale=Scale.parse("0-2"))
        assert counted["a"].score == pytest.approx(1 + 9 * 0.425)
        with pytest.raises(InvalidParameter, match="a scale such as 0-1"):
            Settings(scale=5)
