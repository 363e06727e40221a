"""Rubrics as TOML files: reading, errors, and writing."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from witan.core.rubric import RUBRICS, Anchor, Ceiling, Criterion, Rubric
from witan.errors import InvalidRubric
from witan.files.rubric_toml import load_rubric, rubric_to_toml

MINE = """
name = "support"

[[criteria]]
name = "accuracy"
weight = 0.6
description = "Is it true?"
anchors = { "1-2" = "Made up.", "9–10" = "All of it holds." }

[[criteria]]
name = "tone"
weight = 0.4
description = "Is it kind?"

[[ceilings]]
criterion = "accuracy"
below = 5
at_most = 4
"""


@pytest.fixture
def load(tmp_path):
    """Load a rubric from this text, written to a file called mine.toml."""

    def load_text(text: str | bytes) -> Rubric:
        path = tmp_path / "mine.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_rubric(path)

    return load_text


def test_file_becomes_a_rubric(load):
    """Criteria, anchors in any order and ceilings are read; anchors may be left out."""
    assert load(MINE) == Rubric(
        "support",
        (
            Criterion(
                "accuracy",
                0.6,
                "Is it true?",
                (Anchor(9, 10, "All of it holds."), Anchor(1, 2, "Made up.")),
            ),
            Criterion("tone", 0.4, "Is it kind?"),
        ),
        (Ceiling("accuracy", 5, 4),),
    )


@pytest.mark.parametrize("named", RUBRICS.values(), ids=lambda named: named.name)
def test_named_rubric_round_trips(load, named):
    """Any built-in rubric, written and read, is the same."""
    assert load(rubric_to_toml(named)) == named


WORDS = st.text(min_size=1, max_size=20).filter(str.strip)


@st.composite
def rubrics(draw) -> Rubric:
    """Any rubric, with any text in it."""
    names = draw(
        st.lists(
            WORDS.map(str.strip).filter(lambda name: name != "overall"),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    shares = draw(st.lists(st.integers(1, 99), min_size=len(names), max_size=len(names)))
    bands = st.lists(st.integers(1, 10), unique=True, max_size=10)
    criteria = tuple(
        Criterion(
            name,
            share / sum(shares),
            draw(WORDS),
            tuple(Anchor(at, at, draw(WORDS)) for at in sorted(draw(bands), reverse=True)),
        )
        for name, share in zip(names, shares, strict=True)
    )
    ceilings = draw(
        st.lists(
            st.builds(Ceiling, st.sampled_from(names), st.floats(1, 10), st.floats(1, 10)),
            max_size=2,
            unique_by=lambda ceiling: (ceiling.criterion, ceiling.below),
        )
    )
    return Rubric(draw(WORDS), criteria, tuple(ceilings))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rubrics())
def test_any_rubric_round_trips(load, made):
    """For any names and texts, writing and reading give an equal rubric."""
    assert load(rubric_to_toml(made)) == made


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "support"', "", "lacks name; expected text"),
        ('name = "support"', 'name = " "', "has name = ' '; expected text"),
        ("weight = 0.6", "", r"lacks criteria\[1\]\.weight; expected a number"),
        ("weight = 0.4", 'weight = "0.4"', r"has criteria\[2\]\.weight = '0\.4'; expected a num"),
        ("weight = 0.4", "weight = true", r"has criteria\[2\]\.weight = True; expected a num"),
        ("weight = 0.4", "weight = nan", r"criteria\[2\]\.weight = nan; expected a finite"),
        ("weight = 0.4", "weight = 1" + "0" * 400, "expected a finite number"),
        ("weight = 0.4", "wieght = 0.4", r"has criteria\[2\]\.wieght = 0\.4; expected only name"),
        ("weight = 0.4", "weight = 0.5", r"sum to 1\.1;"),
        ('"1-2" =', '"poor" =', r"anchors\.poor = .*expected bands of grades such as"),
        ('"Made up."', "3", r"criteria\[1\]\.anchors\.1-2 = 3; expected text"),
        ('"1-2" =', '"8-9" =', "do not overlap"),
        ("at_most = 4", "", r"lacks ceilings\[1\]\.at_most; expected a number"),
        ('criterion = "accuracy"', 'criterion = "style"', "ceiling on 'style'"),
        ("[[ceilings]]", "[ceilings]", r"expected tables, each headed \[\[ceilings\]\]"),
        ("[[criteria]]", "[[criterias]]", "has criterias = .*expected only name, criteria"),
        ("weight = 0.6", "weight = 0.6.0", "is not TOML: .*line 6"),
        ("weight = 0.6", f"weight = {'[' * 10_000}", "is not TOML: .*recursion"),
    ],
)
def test_invalid_rubric_is_refused(load, old, new, problem):
    """The error names the file, the key and the expected value."""
    with pytest.raises(InvalidRubric, match=rf"(?s)mine\.toml' .*{problem}"):
        load(MINE.replace(old, new))


def test_file_may_begin_with_a_byte_order_mark(load):
    """Editors on Windows write one."""
    assert load(f"\ufeff{MINE}") == load(MINE)


def test_file_without_criteria_is_refused(load):
    """Criteria are required."""
    with pytest.raises(InvalidRubric, match="lacks criteria; expected tables"):
        load('name = "empty"')


def test_file_that_is_not_text_is_refused(load):
    """Bytes that are not UTF-8 are refused with their place."""
    with pytest.raises(InvalidRubric, match=r"not UTF-8.*at byte 8"):
        load(b'name = "\xff"')


def test_missing_file_is_named(tmp_path):
    """The error names the path."""
    with pytest.raises(InvalidRubric, match=r"absent\.toml' cannot be read"):
        load_rubric(tmp_path / "absent.toml")
