"""Writing ballots: they read back unchanged, errors, and no half-written file."""

import csv
import io
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import ballot, ballots
from witan.core.ballot import Ballot
from witan.errors import BallotFileError, InvalidParameter, UnknownName
from witan.files.ballots import FORMATS, read_ballots, write_ballots
from witan.files.ballots.columns import (
    escape_controls,
    plain_cell,
    restore_controls,
    safe_cell,
)

SOME = [*ballots("r: a > b = c", "s: b > a", session="q"), ballot("t:", abstained=True)]
PAIR = Ballot("r", groups=(("a",), ("b",)), positions={"a": 1, "b": 2}, paired=True)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
names = texts.map(str.strip).filter(bool)
sessions = names.filter(lambda name: "\0" not in name)  # no history could keep such a name
words = st.sampled_from(["good", "8/10", "n/a"])
numbers = st.integers(-3, 20) | st.floats(allow_nan=False, allow_infinity=False)
grades = numbers | words
zones = st.integers(-720, 840).map(lambda minutes: timezone(timedelta(minutes=minutes)))
maps_of_grades = st.dictionaries(names, grades, min_size=1, max_size=3)
about = {
    "session": st.just("") | sessions,
    "reason": st.none() | names,
    "weight": st.floats(0, 1e300),
    "category": st.none() | names,
    "at": st.none() | st.datetimes(timezones=zones, min_value=datetime(1900, 1, 1)),
    "kind": st.sampled_from(["model", "human"]),
    "question": st.none() | names,
    "notes": st.none() | names,
}


def non_empty(strategy):
    """None, or a mapping with entries: a table has no empty one."""
    return st.none() | strategy.filter(bool)


@st.composite
def rankings(draw):
    """A weak order over distinct names."""
    order = draw(st.lists(names, unique=True, max_size=5))
    groups = []
    for name in order:
        if groups and draw(st.booleans()):
            groups[-1].append(name)
        else:
            groups.append([name])
    return tuple(map(tuple, groups))


whole_ballots = st.builds(
    Ballot,
    reviewer=names,
    groups=rankings(),
    grades=st.dictionaries(names, grades | maps_of_grades, max_size=3),
    abstained=st.booleans(),
    candidates=st.none() | st.lists(names, max_size=4).map(tuple),
    authors=non_empty(st.dictionaries(names, names, max_size=3)),
    positions=non_empty(st.dictionaries(names, st.integers(1, 99), max_size=3)),
    **about,
).map(lambda ballot: replace(ballot, scale="1-10") if ballot.grades else ballot)


@st.composite
def comparisons(draw):
    """A ballot on one pair, in the order shown."""
    first, second = draw(st.lists(names, unique=True, min_size=2, max_size=2))
    outcome = draw(st.sampled_from(["first", "second", "tie", "abstain"]))
    groups = {
        "first": ((first,), (second,)),
        "second": ((second,), (first,)),
        "tie": ((first, second),),
        "abstain": (),
    }[outcome]
    shared = {field: draw(strategy) for field, strategy in about.items()}
    return Ballot(
        # People who share the name "human" are told apart by the reader; see its own test.
        reviewer=draw(names.filter(lambda name: name != "human")),
        groups=groups,
        abstained=outcome == "abstain",
        candidates=(first, second) if outcome == "abstain" else None,
        positions={first: 1, second: 2},
        paired=True,
        **shared,
    )


def round_trip(cast, name, **options):
    """Write these ballots and read them again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        assert write_ballots(cast, path, **options) == len(cast)
        return list(read_ballots(path, **options))


FORMULAS = ["=cmd|' /C calc'!A0", "+1+cmd|x", "-2+3", "@SUM(A1)", "＝1+1", "'=quoted", "''@twice"]
"""Names that a spreadsheet would run, or that look as one that was made safe."""

CONTROLS = ["\x1b]52;c;aGk=\x07", "a\x9b31m", "a\u202eb", "a\u200b", "\\x{1b}", "\\\x1b", "a\rb"]
"""Names that steer a terminal, or that look as one that was made safe."""

FORMULA = re.compile("[=+@\t\r＝＋－＠]|-(?![0-9.]+$)")

CONTROL = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u200b\u202a-\u202e]")


def graded(reviewer, *names):
    """A ballot with each of its texts from this strategy."""
    first = names[0]
    return Ballot(
        reviewer,
        groups=tuple((name,) for name in names),
        grades={name: {first: 3.0} for name in names},
        session=first,
        reason=first,
        category=first,
        question=first,
        notes=first,
        scale="1-10",
    )


class TestSafety:
    """Foreign text stays text in any program that opens the file."""

    @pytest.mark.parametrize("name", [*FORMULAS, *CONTROLS])
    def test_table_cells_contain_neither_formulas_nor_control_sequences(self, tmp_path, name):
        """A formula is marked as text, a control character is escaped; both are read back."""
        cast = [graded(name, name, "b"), graded("s", name, "b")]

        write_ballots(cast, tmp_path / "votes.csv")

        text = (tmp_path / "votes.csv").read_text(encoding="utf-8")
        cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
        assert [cell for cell in cells if FORMULA.match(cell)] == []
        assert CONTROL.findall(text) == []
        assert list(read_ballots(tmp_path / "votes.csv")) == cast

    @pytest.mark.parametrize("name", CONTROLS)
    def test_json_lines_escape_control_characters(self, tmp_path, name):
        """They are read back unchanged."""
        cast = [Ballot("voter-1", groups=((name,), ("b",)), session=name, kind="human")]

        write_ballots(cast, tmp_path / "votes.jsonl")

        assert CONTROL.findall((tmp_path / "votes.jsonl").read_text(encoding="utf-8")) == []
        assert list(read_ballots(tmp_path / "votes.jsonl")) == cast

    @given(text=st.text(st.sampled_from("\\'=-x{}1b\x1b\r\t\n\u202e 9")))
    def test_every_text_is_read_back_unchanged(self, text):
        """No two texts are written alike."""
        assert plain_cell(safe_cell(text)) == text
        assert restore_controls(escape_controls(text)) == text


class TestRoundTrip:
    """Written ballots are read back exactly."""

    @given(cast=st.lists(whole_ballots | comparisons(), max_size=4))
    def test_json_lines(self, cast):
        """They can store every ballot."""
        assert round_trip(cast, "votes.jsonl") == cast

    @given(cast=st.lists(whole_ballots, max_size=4, unique_by=lambda b: (b.session, b.reviewer)))
    def test_long_csv(self, cast):
        """A long table can store every ballot except comparisons, one per reviewer and session."""
        assert round_trip(cast, "votes.csv") == cast

    @given(cast=st.lists(whole_ballots | comparisons(), max_size=4))
    def test_parquet(self, cast):
        """It can store every ballot."""
        pytest.importorskip("pyarrow", reason="Parquet needs the extra 'lake'")

        assert round_trip(cast, "votes.parquet") == cast

    @pytest.mark.parametrize("name", ["votes.jsonl", "votes.csv", "votes.parquet"])
    @pytest.mark.parametrize("packing", [".gz", ".zst"])
    def test_compressed(self, name, packing):
        """The suffix selects compression, and the file is read back."""
        pytest.importorskip("zstandard", reason="Zstandard needs the extra 'zstd'")
        pytest.importorskip("pyarrow", reason="Parquet needs the extra 'lake'")

        assert round_trip(SOME, name + packing) == SOME


def test_grade_that_json_cannot_represent_stays_invalid(tmp_path):
    """NaN is written as text, so that the file is JSON and the grade still does not count."""
    write_ballots([Ballot("r", grades={"a": float("nan")})], tmp_path / "v.jsonl")

    line = json.loads((tmp_path / "v.jsonl").read_text(), parse_constant=pytest.fail)
    assert line["grades"] == {"a": "NaN"}


def test_csv_has_only_the_columns_it_needs(tmp_path):
    """A plain ranking is four columns, not twenty."""
    write_ballots([ballot("r: a > b", session="q")], tmp_path / "v.csv")

    assert (tmp_path / "v.csv").read_text().split() == [
        "session,reviewer,candidate,rank",
        "q,r,a,1",
        "q,r,b,2",
    ]


REFUSED = [
    ("v.csv", [ballot("r: a > a")], "ranks a candidate more than once; write jsonl"),
    ("v.csv", [ballot("r: a"), ballot("r: b")], "is its second in session ''; write jsonl"),
    ("v.csv", [ballot("r: a"), PAIR], "compares a pair; write jsonl or parquet"),
    ("v.jsonl", [ballot("r: a", at=datetime(2025, 1, 1))], "its time has no zone"),
    ("v.jsonl", [ballot("\ud800: a")], "which is not text"),
    ("v.txt", [ballot("r: a")], "has no known suffix; use .jsonl"),
]


@pytest.mark.parametrize(("name", "cast", "said"), REFUSED, ids=[one[2][:40] for one in REFUSED])
def test_unsupported_ballot_is_refused(tmp_path, name, cast, said):
    """The error names the file, the ballot and a remedy; no file is left behind."""
    with pytest.raises(BallotFileError, match=said):
        write_ballots(cast, tmp_path / name)

    assert list(tmp_path.iterdir()) == []


class TestAtomic:
    """A file changes as a whole or not at all."""

    @pytest.mark.parametrize("name", ["v.jsonl", "v.csv", "v.parquet", "v.jsonl.gz"])
    def test_interrupted_writing_leaves_the_old_file(self, tmp_path, name):
        """An iterable that raises half-way changes nothing and leaves no other file."""
        path = tmp_path / name
        path.write_bytes(b"as it was")

        def broken():
            yield ballot("r: a > b")
            raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more"):
            write_ballots(broken(), path)

        assert path.read_bytes() == b"as it was"
        assert list(tmp_path.iterdir()) == [path]

    def test_file_can_be_rewritten_from_itself(self, tmp_path):
        """Reading a file while it is replaced reads the old one to its end."""
        path = tmp_path / "v.jsonl"
        write_ballots(SOME, path)

        assert write_ballots((one for one in read_ballots(path)), path) == len(SOME)
        assert list(read_ballots(path)) == SOME

    def test_replaced_file_keeps_its_permissions_and_its_links(self, tmp_path):
        """The file behind a symbolic link is replaced, with its old mode."""
        real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
        real.write_bytes(b"")
        real.chmod(0o640)
        link.symlink_to(real)

        write_ballots(SOME, link)

        assert link.is_symlink()
        assert list(read_ballots(real)) == SOME
        assert real.stat().st_mode & 0o777 == 0o640

    def test_missing_folder_is_an_error(self, tmp_path):
        """The error names the path."""
        with pytest.raises(BallotFileError, match=r"none/v\.jsonl does not exist"):
            write_ballots(SOME, tmp_path / "none" / "v.jsonl")

    def test_folder_in_place_of_the_file_is_an_error(self, tmp_path):
        """The error says that the path is a folder."""
        (tmp_path / "v.jsonl").mkdir()

        with pytest.raises(BallotFileError, match="is a folder"):
            write_ballots(SOME, tmp_path / "v.jsonl")


def test_dash_writes_to_standard_output():
    """Ballots go through a pipe as JSON Lines unless another format is named."""
    code = (
        "from witan.files.ballots import write_ballots\nfrom witan.core.ballot import Ballot\n"
        "write_ballots([Ballot('r', (('a',),))], '-')"
    )

    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-c", code], capture_output=True, check=True
    )

    assert list(read_ballots(io.BytesIO(done.stdout))) == [ballot("r: a")]


def test_read_only_formats_are_refused(tmp_path):
    """Some formats are read only; an unknown format suggests the nearest."""
    with pytest.raises(InvalidParameter, match="cannot be 'council-log'"):
        write_ballots(SOME, tmp_path / "v", format="council-log")
    with pytest.raises(UnknownName, match="did you mean 'parquet'"):
        write_ballots(SOME, tmp_path / "v", format="parqet")


def test_every_format_has_one_sentence():
    """The descriptions are sentences, for help texts."""
    assert all(text.endswith(".") and "\n" not in text for text in FORMATS.values())


def test_times_are_written_with_their_zone(tmp_path):
    """A time is RFC 3339 in the file."""
    at = datetime(2025, 1, 31, 9, 30, tzinfo=UTC)
    write_ballots([ballot("r: a", at=at)], tmp_path / "v.jsonl")

    assert '"at": "2025-01-31T09:30:00+00:00"' in (tmp_path / "v.jsonl").read_text()
