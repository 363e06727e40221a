"""Ballots in Parquet: one row per ballot, and the forms of CSV."""

import io
from datetime import UTC, datetime

import pytest

from witan.core.ballot import Ballot
from witan.errors import BallotFileError
from witan.files.ballots import read_ballots

pa = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'lake'")
pq = pytest.importorskip("pyarrow.parquet")


def read(tmp_path, table, **options):
    """Write this table, read it back: ballots and the problems as text without the folder."""
    path = tmp_path / "votes.parquet"
    pq.write_table(table, path)
    problems = []
    cast = list(read_ballots(path, on_problem=problems.append, **options))
    return cast, [str(problem).removeprefix(f"{tmp_path}/") for problem in problems]


def test_long_form_is_read_like_a_long_csv(tmp_path):
    """Typed columns, nulls and NaN are ranks, grades and empty cells."""
    table = pa.table(
        {
            "prompt_id": [7, 7, 7],
            "judge": ["r", "s", "r"],
            "candidate": ["a", "a", "b"],
            "rank": [2.0, 1.0, 1.0],
            "score": [8.5, float("nan"), None],
            "at": [datetime(2025, 1, 31, 9, 30, tzinfo=UTC)] * 3,
        }
    )

    cast, problems = read(tmp_path, table)

    at = datetime(2025, 1, 31, 9, 30, tzinfo=UTC)
    assert problems == []
    assert cast == [
        Ballot("r", (("b",), ("a",)), {"a": 8.5}, session="7", at=at, scale="1-10"),
        Ballot("s", groups=(("a",),), session="7", at=at),
    ]


def test_pairs_are_recognised_by_their_columns(tmp_path):
    """Columns first, second and outcome make comparisons."""
    table = pa.table({"reviewer": ["r"], "first": ["a"], "second": ["b"], "outcome": ["tie"]})

    cast, _ = read(tmp_path, table)

    assert cast == [Ballot("r", groups=(("a", "b"),), positions={"a": 1, "b": 2}, paired=True)]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([{"a": 8.0, "b": None}], None),
        ([[("a", 8.0), ("b", None)]], pa.map_(pa.string(), pa.float64())),
        ([[{"candidate": "a", "grade": 8.0}]], None),
        ([[{"candidate": "a", "criterion": None, "grade": None, "text": "8"}]], None),
    ],
    ids=["struct", "map", "list of structs", "as text"],
)
def test_grades_may_be_a_struct_a_map_or_a_list(tmp_path, column, kind):
    """Every form that Arrow gives a map of grades is read as one."""
    table = pa.table({"reviewer": ["r"], "grades": pa.array(column, kind)})

    cast, problems = read(tmp_path, table)

    assert problems == []
    assert {c: float(grade) for c, grade in cast[0].grades.items()} == {"a": 8.0}


def test_criteria_may_be_a_map_of_maps(tmp_path):
    """Nested maps are grades by criterion; a flat ranking is a list of names."""
    nested = pa.map_(pa.string(), pa.map_(pa.string(), pa.int64()))
    table = pa.table(
        {
            "reviewer": ["r"],
            "ranking": [["a", "b"]],
            "grades": pa.array([[("a", [("accuracy", 9)])]], nested),
        }
    )

    cast, _ = read(tmp_path, table)

    assert cast == [Ballot("r", (("a",), ("b",)), {"a": {"accuracy": 9}}, scale="1-10")]


def test_bad_row_is_reported_by_number_and_the_good_ones_count(tmp_path):
    """The problem's line is the row; the rows around it are read."""
    table = pa.table({"reviewer": ["r", "s", "t"], "weight": [1.0, -1.0, float("nan")]})

    cast, problems = read(tmp_path, table)

    assert [(one.reviewer, one.weight) for one in cast] == [("r", 1.0), ("t", 1.0)]
    [problem] = problems
    assert all(fact in problem for fact in ("votes.parquet:2", "'weight' is -1.0"))


def test_columns_can_be_named(tmp_path):
    """One row per ballot with other column names is read by `columns`."""
    table = pa.table({"who": ["r"], "run": [2], "order": [[["a"], ["b", "c"]]]})

    cast, _ = read(tmp_path, table, columns={"reviewer": "who+run", "ranking": "order"})

    assert cast == [Ballot("r@2", groups=(("a",), ("b", "c")))]


def test_unseekable_stream_is_read(tmp_path):
    """Parquet from a pipe is copied to disk first."""

    class Pipe(io.RawIOBase):
        def __init__(self, held):
            self.held = io.BytesIO(held)

        def readable(self):
            return True

        def readinto(self, buffer):
            return self.held.readinto(buffer)

    pq.write_table(pa.table({"reviewer": ["r"]}), tmp_path / "v.parquet")
    pipe = Pipe((tmp_path / "v.parquet").read_bytes())

    assert list(read_ballots(pipe)) == [Ballot("r")]


@pytest.mark.parametrize("held", [b"PAR1 and no more", b"reviewer,candidate\n"])
def test_invalid_parquet_is_refused(tmp_path, held):
    """A damaged file, or another file with that suffix, is named."""
    path = tmp_path / "votes.parquet"
    path.write_bytes(held)

    with pytest.raises(BallotFileError, match=r"votes\.parquet is not a readable"):
        list(read_ballots(path, format="parquet"))
