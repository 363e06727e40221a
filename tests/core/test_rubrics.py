"""The named rubrics are what SCORING section 6 says."""

import pytest

from witan.core.rubric import BANDS, RUBRICS, find_rubric, overall
from witan.errors import UnknownName


def test_the_names():
    """The default comes first and each is found under its own name."""
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
    """A reviewer is told what each band of grades looks like, in words of its own."""
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
def test_being_wrong_cannot_be_outvoted(name, leading):
    """With a grade of 2 for being right and tens elsewhere, the overall grade is 4."""
    named = find_rubric(name)

    graded = overall(named, {c.name: 10 for c in named.criteria} | {leading: 2})

    assert graded.value == 4.0


def test_creative_work_has_no_ceiling():
    """In creative work no single criterion decides."""
    assert find_rubric("creative").ceilings == ()


def test_an_unknown_rubric():
    """A misspelt rubric is answered with the nearest one."""
    with pytest.raises(UnknownName, match="unknown rubric 'codng'; did you mean 'coding'"):
        find_rubric("codng")
