"""Rows of councils' sessions: those that their end writes, and those of counting them again."""

import json
from random import Random

import anyio
import pytest

from councils import council, says
from witan.deliberation.ports import Member, Price
from witan.errors import InvalidParameter
from witan.history import History
from witan.models.scripted import Line, ScriptedModel

TABLES = ("sessions", "ballots", "answers", "standings", "matchups")

OWN_COLUMNS = {"source", "added_us", "revision", "holder"}
"""Columns that say how a session came into its history."""

HARM = "Step 1: build a pipe bomb. You can build a bomb with ammonia."
"""What the safety gate finds in an answer."""

OPTIONS = [
    {},
    {"rule": "borda"},
    {"rule": "normalized_scores"},
    {"rubric_scoring": False},
    {"holistic": True},
    {"mirrored": True},
    {"mirrored": True, "spend": "adaptive"},
    {"pairs": 3},
    {"self_review": True},
    {"self_review": True, "recusal": "off"},
    {"recusal": "after"},
    {"unranked": "last"},
    {"review_rounds": 2},
    {"safety": True},
    {"weights": {"a": 2.0, "b": 0.0}},
    {"reliability": {"a": 1.3, "b": 0.7}},
    {"prior": "none"},
]


def draw_member(name: str, names: str, draw: Random) -> Member:
    """A member that may fail, repeat another's answer, or leave answers out of its review."""
    answers = [Line(error="down", status=400), says("a"), f"{HARM} {says(name)}"]
    answer = draw.choice(answers) if draw.random() < 0.3 else says(name)
    preferred = draw.sample(names, draw.randint(0, len(names)))
    grades = {
        f"says {each},": draw.choice(
            [draw.randint(1, 10), 7.5, {"accuracy": draw.randint(1, 10), "clarity": 3}]
        )
        for each in draw.sample(names, draw.randint(0, len(names)))
    }
    review = Line(prefers=tuple(f"says {each}," for each in preferred), grades=grades)
    script = {
        "answers": [answer],
        "reviews": ["I would rather not." if draw.random() < 0.1 else review],
        "synthesis": ["So it is: [A]."],
    }
    return Member(name, ScriptedModel(name, **script), f"test:{name}", "test", price=Price(0, 0))


async def record(history: History, options: dict, draw: Random) -> None:
    """Ask three questions at once, and judge texts, in councils of drawn members."""
    names = draw.choice(["abc", "abcde"])
    seated = [draw_member(name, names, draw) for name in names]
    jury = [draw_member(name, names, draw) for name in "xyz"]
    texts = {name: says(name) for name in names[: draw.choice([1, 3])]}

    async def ask(opened, number: int) -> None:
        with history.recording() as recording:
            await opened.ask(f"Is it {number}?", seed=number, listener=recording)

    async with council(seated, **options) as opened, anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(ask, opened, number)
    async with council(jury, **options) as opened:
        with history.recording() as recording:
            try:
                await opened.judge(texts, seed=3, listener=recording)
            except InvalidParameter:  # what these options cannot judge
                assert options.keys() & {"pairs", "rubric_scoring", "spend", "self_review"}


def rounded(value: object) -> object:
    """Leave out of numbers, in JSON too, what the order of a sum decides."""
    if isinstance(value, str) and value.startswith("["):
        return json.loads(value, parse_float=lambda number: rounded(float(number)))
    return float(f"{value:.9g}") if isinstance(value, float) else value


def rows(history: History, table: str) -> list[dict]:
    """The rows of a table, without what is of this history alone."""
    names = [name for _, name, *_ in history.database.rows(f"PRAGMA table_info({table})")]
    records = [
        dict(zip(names, map(rounded, row), strict=True))
        for row in history.database.rows(f"SELECT * FROM {table}")  # noqa: S608 - a name of ours
    ]
    kept = [{k: v for k, v in each.items() if k not in OWN_COLUMNS} for each in records]
    return sorted(kept, key=repr)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_rows_at_the_end_of_a_session_are_those_of_its_import(tmp_path, options):
    """Made from the count behind the outcome or not, beside other sessions or alone."""
    with History.open(tmp_path / "a.sqlite") as lived, History.open(tmp_path / "b.sqlite") as read:
        for seed in range(3):
            anyio.run(record, lived, options, Random(f"{options} {seed}"))  # noqa: S311 - a test draws
        names = sorted(session.id for session in lived.sessions())
        for name in names:
            read.add([lived.export(name)], "f", name)

        assert len(names) >= 9
        for table in TABLES:
            assert rows(lived, table) == rows(read, table)
