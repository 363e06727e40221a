"""Rubrics: grades on criteria, gates and ceilings, and the named ones."""

import pickle
from fractions import Fraction
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.core.rubric import (
    BANDS,
    RUBRICS,
    Anchor,
    Ceiling,
    Criterion,
    Rubric,
    find_rubric,
    overall,
)
from witan.errors import InvalidRubric, UnknownName

GENERAL = RUBRICS["general"]
FIRST_EDITION = RUBRICS["general-first-edition"]


def rubric(*weights: float, ceilings: tuple[Ceiling, ...] = ()) -> Rubric:
    """Build a rubric whose criteria are named a, b, c …, with these weights."""
    criteria = (
        Criterion(name, weight, "Is it good?")
        for name, weight in zip("abcdefgh", weights, strict=False)
    )
    return Rubric("mine", tuple(criteria), ceilings)


def uncapped(named: Rubric) -> Rubric:
    """Take the ceilings off a rubric."""
    return Rubric(named.name, named.criteria)


@st.composite
def graded(draw) -> tuple[Rubric, dict[str, float]]:
    """Any rubric with grades for some of its criteria."""
    shares = draw(st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(any))
    names = "abcdef"[: len(shares)]
    ceilings = draw(
        st.lists(
            st.builds(Ceiling, st.sampled_from(names), st.integers(1, 10), st.integers(1, 10)),
            max_size=3,
            unique_by=lambda ceiling: (ceiling.criterion, ceiling.below),
        )
    )
    made = rubric(*(share / sum(shares) for share in shares), ceilings=tuple(ceilings))
    grade = st.integers(2, 20).map(lambda halves: halves / 2) | st.floats(1, 10)
    return made, draw(st.dictionaries(st.sampled_from(names), grade))


class TestOverall:
    """The overall grade is the weighted mean over what was graded, then the lowest ceiling."""

    def test_a_confident_error_is_capped(self):
        """Accuracy 3 and nines elsewhere average 6.90 and count 4.0 (ADR-016 says 7.35)."""
        grades = {"accuracy": 3, "completeness": 9, "conciseness": 9, "clarity": 9}

        weighed = overall(uncapped(FIRST_EDITION), grades)
        capped = overall(FIRST_EDITION, grades)

        assert weighed.value == 6.90
        assert weighed.capped_by is None
        assert capped.value == 4.0
        assert capped.capped_by == Ceiling("accuracy", below=5, at_most=4)

    @pytest.mark.parametrize(
        ("grades", "expected"),
        [((9, 8, 7, 8), 8.15), ((7, 9, 9, 8), 8.10), ((6, 6, 5, 7), 6.00)],
        ids=["A", "B, which ADR-016 prints as 8.0", "C"],
    )
    def test_the_worked_examples(self, grades, expected):
        """The three answers of ADR-016 have these overall grades under its first weights."""
        names = ("accuracy", "completeness", "conciseness", "clarity")

        graded = overall(FIRST_EDITION, dict(zip(names, grades, strict=True)))

        assert graded.value == expected
        assert graded.capped_by is None

    @pytest.mark.parametrize(
        ("accuracy", "expected"), [(7, None), (6.99, 7.0), (5, 7.0), (4.99, 4.0), (1, 4.0)]
    )
    def test_a_ceiling_applies_strictly_below_its_threshold(self, accuracy, expected):
        """Accuracy under 7 holds the overall grade to 7, under 5 to 4 (SCORING section 6)."""
        grades = {c.name: 10.0 for c in GENERAL.criteria} | {"accuracy": accuracy}

        graded = overall(GENERAL, grades)

        assert graded.value == (expected or overall(uncapped(GENERAL), grades).value)
        assert (graded.capped_by is None) == (expected is None)

    def test_a_ceiling_that_lowers_nothing_is_not_named(self):
        """An answer that is poor throughout is low by its grades, not by a ceiling."""
        graded = overall(GENERAL, {c.name: 3 for c in GENERAL.criteria})

        assert graded.value == 3.0
        assert graded.capped_by is None

    def test_missing_criteria_divide_by_the_weight_given(self):
        """A criterion left out does not lower the grade (ADR-016 adds without dividing)."""
        graded = overall(GENERAL, {"accuracy": 8, "clarity": 6})

        assert graded.value == pytest.approx((0.35 * 8 + 0.20 * 6) / 0.55, abs=1e-9)

    def test_a_missing_criterion_has_no_ceiling(self):
        """Without a grade for accuracy there is no accuracy ceiling."""
        graded = overall(
            GENERAL, {"relevance": 9, "completeness": 9, "conciseness": 9, "clarity": 9}
        )

        assert graded.value == 9.0

    def test_under_half_of_the_weight_gives_no_grade(self):
        """Accuracy alone carries 0.35 of the weight: no overall grade."""
        graded = overall(GENERAL, {"accuracy": 9})

        assert graded.value is None
        assert overall(GENERAL, {}).value is None

    def test_exactly_half_of_the_weight_is_enough(self):
        """Decimal weights that sum to one half do so in spite of binary floats."""
        half = rubric(0.15, 0.29, 0.06, 0.5)

        assert overall(half, {"a": 9, "b": 9, "c": 9}).value == 9.0
        assert overall(half, {"d": 9}).value == 9.0

    def test_grades_equal_on_paper_are_equal(self):
        """Two ways to 6.55 give one number, so no order hangs on rounding dust."""
        names = [criterion.name for criterion in GENERAL.criteria]

        some = overall(GENERAL, dict(zip(names, [7, 6, 6, 6, 7], strict=True)))
        others = overall(GENERAL, dict(zip(names, [7, 6, 7, 6, 6], strict=True)))

        assert some.value == others.value == 6.55

    def test_a_grade_for_no_criterion_is_refused(self):
        """A misspelt criterion is an error, not a grade that silently counts nothing."""
        with pytest.raises(UnknownName, match="did you mean 'accuracy'"):
            overall(GENERAL, {"acuracy": 9, "clarity": 9, "completeness": 9})

    @given(graded())
    def test_the_exact_mean(self, case):
        """The value is the weighted mean in exact arithmetic, held down by every ceiling hit."""
        made, grades = case
        given_weight = sum(Fraction(c.weight) for c in made.criteria if c.name in grades)
        total = sum(
            Fraction(c.weight) * Fraction(grades[c.name]) for c in made.criteria if c.name in grades
        )
        hit = [c.at_most for c in made.ceilings if grades.get(c.criterion, 10) < c.below]

        value = overall(made, grades).value

        if value is None:
            assert given_weight < Fraction(1, 2)
        else:
            assert given_weight >= Fraction(1, 2) - Fraction(1, 10**9)
            assert value == pytest.approx(float(min([total / given_weight, *hit])), abs=1e-9)
            assert 1.0 <= value <= 10.0

    @given(graded(), st.data())
    def test_monotone_in_every_grade(self, case, data):
        """Raising one grade never lowers the overall grade, ceilings included."""
        made, grades = case
        before = overall(made, grades).value
        if before is None:
            return
        name = data.draw(st.sampled_from(sorted(grades)))
        higher = data.draw(st.floats(grades[name], 10))

        after = overall(made, grades | {name: higher}).value

        assert after is not None
        assert after >= before

    @given(graded())
    def test_a_ceiling_never_raises(self, case):
        """With ceilings the value is at most what it is without them."""
        made, grades = case

        with_ceilings, without = overall(made, grades), overall(uncapped(made), grades)

        assert (with_ceilings.value is None) == (without.value is None)
        assert with_ceilings.value is None or with_ceilings.value <= without.value


class TestMissingGrades:
    """A grade that is not a number is missing."""

    def test_nan_is_a_missing_grade(self):
        """A NaN among the grades of one ballot counts as missing."""
        grades = {"accuracy": nan, "completeness": 9, "conciseness": 9, "clarity": 9}

        assert overall(GENERAL, grades).value == 9.0


class TestRubric:
    """An invalid rubric is refused with a reason."""

    def test_weights_must_sum_to_one(self):
        """The error names the rubric and the sum."""
        with pytest.raises(InvalidRubric, match=r"'mine'.*sum to 1\.1;"):
            rubric(0.35, 0.25, 0.20, 0.30)

    @pytest.mark.parametrize("total", [0.999, 1.0, 1.001])
    def test_a_thousandth_is_within_tolerance(self, total):
        """Weights that miss 1 by a thousandth are accepted, and equal grades keep their value."""
        assert overall(rubric(0.5, total - 0.5), {"a": 9, "b": 9}).value == 9.0

    @pytest.mark.parametrize("total", [0.9989, 1.0011])
    def test_more_than_a_thousandth_is_refused(self, total):
        """Beyond a thousandth the sum is refused by name."""
        with pytest.raises(InvalidRubric, match=f"sum to {total}"):
            rubric(0.5, total - 0.5)

    @pytest.mark.parametrize("weight", [-0.1, nan, inf])
    def test_an_invalid_weight_is_refused(self, weight):
        """Negative, NaN and infinite weights are refused, naming the criterion."""
        with pytest.raises(InvalidRubric, match="gives 'b' the weight"):
            rubric(1.0, weight)

    @pytest.mark.parametrize(
        ("criteria", "problem"),
        [
            ((), "no criteria"),
            ((Criterion("a", 0.5, "?"), Criterion("a", 0.5, "?")), "'a' more than once"),
            ((Criterion(" a", 1.0, "?"),), "named ' a'"),
            ((Criterion("", 1.0, "?"),), "named ''"),
            ((Criterion("overall", 1.0, "?"),), "the holistic grade"),
            ((Criterion("a", 1.0, " "),), "does not describe 'a'"),
            ((Criterion("a", 1.0, "?", (Anchor(0, 2, "x"),)),), "0–2"),
            ((Criterion("a", 1.0, "?", (Anchor(4, 3, "x"),)),), "4–3"),
            ((Criterion("a", 1.0, "?", (Anchor(3, 4, " "),)),), "3–4 blank"),
            ((Criterion("a", 1.0, "?", (Anchor(1, 5, "x"), Anchor(6, 9, "x"))),), "best first"),
            ((Criterion("a", 1.0, "?", (Anchor(5, 9, "x"), Anchor(1, 5, "x"))),), "not overlap"),
        ],
    )
    def test_invalid_criteria_are_refused(self, criteria, problem):
        """Empty, repeated, unnamed and wrongly anchored criteria are refused."""
        with pytest.raises(InvalidRubric, match=problem):
            Rubric("mine", criteria)

    @pytest.mark.parametrize(
        ("ceilings", "problem"),
        [
            ((Ceiling("z", 5, 4),), r"ceiling on 'z', which is none of its criteria \(a, b\)"),
            ((Ceiling("a", 11, 4),), "grades from 1 to 10"),
            ((Ceiling("a", 5, 0),), "grades from 1 to 10"),
            ((Ceiling("a", 5, nan),), "grades from 1 to 10"),
            ((Ceiling("a", 5, 4), Ceiling("a", 5, 6)), "two ceilings on 'a' below 5"),
        ],
    )
    def test_invalid_ceilings_are_refused(self, ceilings, problem):
        """A ceiling needs a criterion of the rubric and two grades, and is the only one on it."""
        with pytest.raises(InvalidRubric, match=problem):
            rubric(0.5, 0.5, ceilings=ceilings)

    def test_a_rubric_needs_a_name(self):
        """A rubric is stored by its name, so it has one."""
        with pytest.raises(InvalidRubric, match="has no name"):
            Rubric(" ", (Criterion("a", 1.0, "?"),))

    def test_weights_can_be_replaced(self):
        """Weights from a configuration replace those they name; the rest is unchanged."""
        mine = GENERAL.replace_weights({"accuracy": 0.45, "relevance": 0})

        assert [c.weight for c in mine.criteria] == [0.45, 0, 0.20, 0.15, 0.20]
        assert mine.ceilings == GENERAL.ceilings
        assert mine.criteria[0].anchors == GENERAL.criteria[0].anchors

    def test_replacing_the_weight_of_an_unknown_criterion_is_refused(self):
        """The error suggests the nearest name."""
        with pytest.raises(UnknownName, match="did you mean 'conciseness'"):
            GENERAL.replace_weights({"consiseness": 0.15})

    def test_replaced_weights_must_sum_to_one(self):
        """The error names the sum."""
        with pytest.raises(InvalidRubric, match=r"sum to 1\.15"):
            GENERAL.replace_weights({"accuracy": 0.5})

    def test_a_rubric_can_be_pickled(self):
        """A rubric survives pickling and still caps."""
        copy = pickle.loads(pickle.dumps(GENERAL))  # noqa: S301 — our own bytes

        assert copy == GENERAL
        assert overall(copy, {c.name: 9 for c in GENERAL.criteria} | {"accuracy": 2}).value == 4.0


def test_names_of_rubrics():
    """The default comes first, and each rubric is found under its own name."""
    assert list(RUBRICS) == [
        "general", "general-first-edition", "coding", "creative", "factual",
    ]  # fmt: skip
    assert all(find_rubric(name).name == name for name in RUBRICS)


def test_the_weights_of_the_general_rubric():
    """The default weights and those of the first edition are ADR-016's."""
    assert {c.name: c.weight for c in RUBRICS["general"].criteria} == {
        "accuracy": 0.35,
        "relevance": 0.10,
        "completeness": 0.20,
        "conciseness": 0.15,
        "clarity": 0.20,
    }
    assert {c.name: c.weight for c in RUBRICS["general-first-edition"].criteria} == {
        "accuracy": 0.35,
        "completeness": 0.25,
        "conciseness": 0.20,
        "clarity": 0.20,
    }


@pytest.mark.parametrize("named", RUBRICS.values(), ids=lambda named: named.name)
def test_every_criterion_has_an_anchor_for_every_band(named):
    """Each band of grades is described in words of its own."""
    for criterion in named.criteria:
        assert tuple((a.low, a.high) for a in criterion.anchors) == BANDS
        assert len({a.text for a in criterion.anchors}) == len(BANDS)


@pytest.mark.parametrize(
    ("name", "leading"),
    [
        ("general", "accuracy"),
        ("general-first-edition", "accuracy"),
        ("coding", "correctness"),
        ("factual", "accuracy"),
    ],
)
def test_other_criteria_cannot_outweigh_a_wrong_answer(name, leading):
    """With a grade of 2 for being right and tens elsewhere, the overall grade is 4."""
    named = find_rubric(name)

    graded = overall(named, {c.name: 10 for c in named.criteria} | {leading: 2})

    assert graded.value == 4.0


def test_creative_work_has_no_ceiling():
    """In creative work no single criterion decides."""
    assert find_rubric("creative").ceilings == ()


def test_an_unknown_rubric_is_refused():
    """The error suggests the nearest name."""
    with pytest.raises(UnknownName, match=r"'codng'.*did you mean 'coding'"):
        find_rubric("codng")
