"""A lake gives the same sums however rows are spread over files; errors name the bad file."""

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from generated_histories import START, assert_same, history, merge, store

import reference_sums as by_hand
import witan
from witan.analytics.lake import Lake, constants, write_lake
from witan.analytics.sources import DuckLake, SparkLake, open_source
from witan.analytics.sums import WindowSums
from witan.core.ballot import Ballot
from witan.core.session_ballots import Entries, StandingEntry
from witan.core.stats.sums import (
    CalibrationSums,
    MatchupSums,
    PanelSums,
    PositionSums,
    StandingSums,
)
from witan.deliberation.ports import SystemClock
from witan.errors import HistoryError
from witan.history.database import LockWait
from witan.history.rows import Rows, SessionRow, insert_sessions
from witan.history.schema import open_database

pa = pytest.importorskip("pyarrow", reason="a lake needs pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="a lake needs pyarrow")


DAY = START.date()


@pytest.fixture
def lake_copy(lake, tmp_path) -> Path:
    """A copy of the lake that a test may change."""
    folder = tmp_path / "copied"
    shutil.copytree(lake, folder)
    return folder


def of(database, **options) -> SimpleNamespace:
    return SimpleNamespace(database=database, **options)


def store_another_session(database, one: Entries, model: str) -> None:
    """Store another session on the first day, with a model of its own."""
    session = replace(one.session, session="more", at=START, simulated=False)
    standing = StandingEntry("model", "borda", model, 1.0, None, 1, 1, 1.0)
    more = replace(one, session=session, standings=(standing,))
    rows = Rows()
    rows.add("more", more, [Ballot("x", session="more", abstained=True)] * len(one.ballots), {})
    row = SessionRow("more", START, None, False, "test", "complete", "?", entry=session)
    with database.transaction():
        insert_sessions(database, [row])
        rows.write(database)


def some_file(folder: Path, table: str) -> Path:
    return sorted((folder / table).glob("day=*/*.parquet"))[3]


def check(folder: Path, entries) -> None:
    with DuckLake(folder) as duck:
        sums = WindowSums(duck)
        assert_same(sums.table(StandingSums, rule="borda"), by_hand.standing_sums(entries, "borda"))
        assert_same(sums.table(MatchupSums), by_hand.matchup_sums(entries))
        assert_same(sums.table(PositionSums), by_hand.position_sums(entries))
        assert_same(sums.table(CalibrationSums), by_hand.calibration_sums(entries))


class TestFiles:
    """Sums do not depend on which file contains a row."""

    def test_files_may_be_split_and_renamed(self, lake_copy, entries):
        """Every file is cut in three and renamed so that the order of reading is reversed."""
        for number, path in enumerate(sorted(lake_copy.glob("*/day=*/*.parquet"))):
            table = pq.ParquetFile(path).read()
            for part in range(3):
                rows = table.slice(part * len(table) // 3, (part + 1) * len(table) // 3
                                   - part * len(table) // 3)  # fmt: skip
                pq.write_table(rows, path.parent / f"{9999 - number:04d} it's [{part}].parquet")
            path.unlink()

        check(lake_copy, entries)

    def test_days_may_be_merged_into_one_file_per_table(self, merged_lake, entries):
        """All days are in one folder, the last rows first."""
        check(merged_lake, entries)

    def test_several_histories_in_one_lake(self, entries, tmp_path):
        """Two histories exported into one folder give the sums of one combined history."""
        for name, some in (("one", entries[::2]), ("two", entries[1::2])):
            with open_database(tmp_path / f"{name}.sqlite", SystemClock(), LockWait()) as database:
                store(database, some)
                write_lake(of(database), tmp_path / "lake")

        check(tmp_path / "lake", entries)
        Lake(tmp_path / "lake").check_duplicates()


class TestMissingFiles:
    """A lake with missing exported rows is not summed."""

    @pytest.mark.parametrize("table", ["standings", "ballots", "sessions"])
    def test_a_missing_file_is_named(self, lake_copy, table):
        """The error names the file, its number of rows and the remedy."""
        path = some_file(lake_copy, table)
        rows = pq.read_metadata(path).num_rows
        path.unlink()

        lost = f"copied: lacks {table}/{path.parent.name}/{path.name} with its {rows:,} row"
        with pytest.raises(HistoryError, match=lost) as refused:
            Lake(lake_copy)
        assert "export the history again" in str(refused.value)

    def test_a_missing_day_is_named(self, lake_copy):
        """All five files of a day are gone: the first is named, the others are counted."""
        day = some_file(lake_copy, "sessions").parent.name
        for table in ("sessions", "standings", "matchups", "ballots", "answers"):
            shutil.rmtree(lake_copy / table / day)

        with pytest.raises(HistoryError, match=rf"lacks sessions/{day}/.* and 4 more files"):
            Lake(lake_copy)

    def test_a_lake_without_any_file_left_is_not_empty(self, lake_copy):
        """Where an export wrote days and all are gone, the error does not say there were none."""
        for table in ("sessions", "standings", "matchups", "ballots", "answers"):
            shutil.rmtree(lake_copy / table)

        with pytest.raises(HistoryError, match=r"lacks sessions/.*and \d+ more files"):
            Lake(lake_copy)

    def test_a_missing_part_of_a_split_file_is_noticed(self, lake_copy):
        """A file was cut in two and one part deleted."""
        path = some_file(lake_copy, "matchups")
        table = pq.ParquetFile(path).read()
        pq.write_table(table.slice(1), path)

        with pytest.raises(HistoryError, match=f"lacks 1 row of matchups/{path.parent.name}/"):
            Lake(lake_copy)

    def test_a_missing_history_of_two_is_noticed(self, entries, tmp_path):
        """The files of one history are gone; those of the other do not replace them."""
        for name, some in (("one", entries[::2]), ("two", entries[1::2])):
            with open_database(tmp_path / f"{name}.sqlite", SystemClock(), LockWait()) as database:
                store(database, some)
                write_lake(of(database), tmp_path / "lake", source=name)
        for path in (tmp_path / "lake").glob("*/*/two.parquet"):
            path.unlink()

        with pytest.raises(HistoryError, match=r"lake: lacks sessions/.*/two.parquet"):
            Lake(tmp_path / "lake")

    def test_rearranged_files_need_the_same_rows(self, lake_copy, tmp_path, entries):
        """Merged in its own folder a lake is still complete; without one row it is not."""
        merge(lake_copy, tmp_path / "merged")
        shutil.copytree(lake_copy / "_exports", tmp_path / "merged" / "_exports")
        check(tmp_path / "merged", entries)
        path = tmp_path / "merged" / "standings" / "day=2026-01-01" / "all.parquet"
        pq.write_table(pq.ParquetFile(path).read().slice(1), path)

        with pytest.raises(HistoryError, match=r"merged: lacks 1 row of standings"):
            Lake(tmp_path / "merged")

    @pytest.mark.parametrize("listed", [True, False])
    def test_a_file_rewritten_by_another_tool_is_accepted(self, lake_copy, entries, listed):
        """Its file has lost the mark of its export; its rows are all there."""
        path = some_file(lake_copy, "ballots")
        pq.write_table(pq.read_table(path, partitioning=None).replace_schema_metadata(), path)
        path.rename(path.with_name("compacted.parquet"))
        if not listed:
            shutil.rmtree(lake_copy / "_exports")

        check(lake_copy, entries)

    def test_a_moved_part_of_a_lake_is_a_lake(self, lake_copy, tmp_path, entries):
        """So is the rest once its list of files is deleted."""
        cut = "day=" + entries[40].session.at.date().isoformat()
        for table in ("sessions", "standings", "matchups", "ballots", "answers"):
            for day in sorted((lake_copy / table).iterdir()):
                if day.name < cut:
                    (tmp_path / "old" / table).mkdir(parents=True, exist_ok=True)
                    day.rename(tmp_path / "old" / table / day.name)
        shutil.copytree(lake_copy / "names", tmp_path / "old" / "names")
        before = [one for one in entries if f"day={one.session.at.date()}" < cut]

        check(tmp_path / "old", before)
        with pytest.raises(HistoryError, match=r"delete _exports/\w+.json"):
            Lake(lake_copy)
        shutil.rmtree(lake_copy / "_exports")
        check(lake_copy, entries[len(before) :])

    def test_an_interrupted_first_export_is_reported(self, entries, tmp_path):
        """Some days are missing: the error says so until an export has finished."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries[:6])
            (tmp_path / "lake" / "ballots").mkdir(parents=True)
            last = max(one.session.at for one in entries[:6]).date()
            in_the_way = tmp_path / "lake" / "ballots" / f"day={last}"
            in_the_way.write_text("not a folder", encoding="utf-8")
            with pytest.raises(HistoryError, match="cannot be written"):
                write_lake(of(database), tmp_path / "lake")

            with pytest.raises(HistoryError, match="an unfinished export"):
                Lake(tmp_path / "lake")
            in_the_way.unlink()
            write_lake(of(database), tmp_path / "lake")
        check(tmp_path / "lake", entries[:6])

    @pytest.mark.parametrize("text", ["", "[]", '{"complete": true}', "\0"])
    def test_an_invalid_list_of_files_is_named(self, lake_copy, text):
        """The error names it and says what to do."""
        [path] = (lake_copy / "_exports").iterdir()
        path.write_text(text, encoding="utf-8")

        with pytest.raises(HistoryError, match="not a list of the files") as refused:
            Lake(lake_copy)
        assert str(path) in str(refused.value)


class TestWriting:
    """An export updates the lake from its history."""

    def test_writing_again_changes_nothing(self, sqlite_history, tmp_path):
        """A second export leaves the same files with the same bytes."""

        def write() -> tuple[object, dict[Path, bytes]]:
            export = write_lake(of(sqlite_history), tmp_path)
            paths = (path for path in tmp_path.rglob("*") if path.is_file())
            return export, {path: path.read_bytes() for path in paths}

        export, files = write()

        assert write() == (export, files)
        assert export.sessions == 90
        assert export.days == len(list((tmp_path / "sessions").iterdir()))

    @pytest.mark.parametrize("table", ["standings", "matchups", "ballots", "answers"])
    def test_rows_are_sorted_by_bucket_within_a_day(self, lake, table):
        """Tables that are summed by bucket are stored in the order of buckets."""
        files = sorted((lake / table).glob("day=*/*.parquet"))
        buckets = [pq.read_table(file)["bucket"].to_pylist() for file in files]

        assert any(len(set(values)) > 1 for values in buckets)
        assert all(values == sorted(values) for values in buckets)

    def test_a_constant_column_is_known_without_reading_rows(self, tmp_path):
        """An unknown or a second value makes the column not constant."""
        files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
        columns = {"same": [2, 2], "other": [1, 1], "holes": [3, None], "none": [None, None]}
        pq.write_table(pa.table({**columns, "list": [[2], [2]]}), files[0])
        pq.write_table(pa.table({**columns, "other": [1, 0], "list": [[2], [2]]}), files[1])

        names = ["same", "other", "holes", "none"]
        assert constants(files, names) == {"same": 2}
        assert constants(files[:1], names) == {"same": 2, "other": 1}

    def test_forgotten_sessions_leave_the_lake(self, entries, tmp_path):
        """Exporting again after sessions were deleted removes their days."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries)
            write_lake(of(database), tmp_path / "lake")
            late = entries[30].session.at
            for table in ("ballots", "answers", "standings", "matchups", "sessions"):
                names = ", ".join(f"'{one.session.session}'" for one in entries[30:])
                database.execute(f"DELETE FROM {table} WHERE session IN ({names})")  # noqa: S608

            write_lake(of(database), tmp_path / "lake")

        assert all(one.session.at < late for one in entries[:30])
        check(tmp_path / "lake", entries[:30])

    def test_a_session_from_two_histories_is_noticed(self, entries, tmp_path):
        """The error names the session that is in the lake twice."""
        for name in ("one", "two"):
            with open_database(tmp_path / f"{name}.sqlite", SystemClock(), LockWait()) as database:
                store(database, entries[:3] if name == "one" else entries[2:5])
                write_lake(of(database), tmp_path / "lake")

        file = rf"sessions/day={entries[2].session.at.date()}/\w+.parquet"
        where = f"lake: contains 1 session more than once: 'session 2' is in {file} and {file};"
        with pytest.raises(HistoryError, match=where), open_source(tmp_path / "lake"):
            pass
        with (
            DuckLake(tmp_path / "lake") as duck,
            pytest.raises(HistoryError, match=where),
            open_source(duck),
        ):
            pass

    def test_an_empty_history_makes_an_empty_lake(self, tmp_path):
        """It is a valid lake without sessions, not a foreign folder."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            write_lake(of(database), tmp_path / "lake")

        with pytest.raises(HistoryError, match="contains no sessions yet"):
            Lake(tmp_path / "lake")

    def test_an_interrupted_export_leaves_a_readable_lake(self, entries, tmp_path):
        """Each day is complete, old or new, and each code in it has its name."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries[:6])
            write_lake(of(database), tmp_path / "lake")
            store_another_session(database, history(7, 1)[0], "vendor:model-new")
            in_the_way = tmp_path / "lake" / "ballots" / f"day={DAY + timedelta(days=1)}"
            aside = in_the_way.rename(tmp_path / "aside")
            in_the_way.write_text("not a folder", encoding="utf-8")

            with pytest.raises(HistoryError, match="cannot be written"):
                write_lake(of(database), tmp_path / "lake")

        in_the_way.unlink()
        aside.rename(in_the_way)
        with DuckLake(tmp_path / "lake") as duck:
            models = WindowSums(duck).table(StandingSums, rule="borda").model
            assert "vendor:model-new" in {duck.names()[code] for code in models}

    def test_an_unwritable_folder_is_named(self, sqlite_history, tmp_path):
        """There is a file in place of the folder: the error names its path."""
        (tmp_path / "lake").write_text("not a folder", encoding="utf-8")

        with pytest.raises(HistoryError, match="lake: cannot be written"):
            write_lake(of(sqlite_history), tmp_path / "lake")


class TestWrongInput:
    """Each error names the file and what to do."""

    @pytest.mark.parametrize("report", [witan.leaderboard, witan.audit])
    def test_a_missing_file_of_names_is_reported(self, lake_copy, report):
        """A code has no name: the error says what to do."""
        [path] = (lake_copy / "names").iterdir()
        pq.write_table(pq.ParquetFile(path).read().slice(0, 1), path)

        with pytest.raises(HistoryError, match=r"has no name for.*export"):
            report(lake_copy)

    def test_a_day_with_tables_of_two_exports_is_refused(self, entries, tmp_path):
        """A writer was killed between two files of a day: the day is not summed."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries[:6])
            write_lake(of(database), tmp_path / "lake")
            path = min((tmp_path / "lake" / "standings").rglob("*.parquet"))
            before = path.read_bytes()
            store_another_session(database, history(7, 1)[0], "vendor:model-new")
            write_lake(of(database), tmp_path / "lake")
        path.write_bytes(before)

        with pytest.raises(HistoryError, match="mixes tables of two exports") as refused:
            Lake(tmp_path / "lake")
        assert f"day={DAY}" in str(refused.value)
        shutil.rmtree(tmp_path / "lake" / "_exports")
        with pytest.raises(HistoryError, match="mixes tables of two exports"):
            Lake(tmp_path / "lake")

    def test_an_unmarked_file_does_not_hide_a_running_export(self, entries, tmp_path):
        """A file rewritten by another tool is beside a day that is being exported again."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries[:6])
            write_lake(of(database), tmp_path / "lake")
            shutil.copytree(tmp_path / "lake", tmp_path / "running")
            path = min((tmp_path / "running" / "ballots").rglob("*.parquet"))
            table = pq.read_table(path, partitioning=None)
            pq.write_table(table.replace_schema_metadata(), path)
            store_another_session(database, history(7, 1)[0], "vendor:model-new")
            write_lake(of(database), tmp_path / "lake")
        source = min((tmp_path / "lake" / "standings").rglob("*.parquet"))
        shutil.copy(source, tmp_path / "running" / source.relative_to(tmp_path / "lake"))

        with pytest.raises(HistoryError, match="mixes tables of two exports"):
            Lake(tmp_path / "running")

    def test_unmarked_files_do_not_hide_tables_of_two_exports(self, entries, tmp_path):
        """Another tool rewrote the files of another day."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries[:80])
            write_lake(of(database), tmp_path / "lake")
            first = min((tmp_path / "lake" / "standings").rglob("*.parquet"))
            before = first.read_bytes()
            store_another_session(database, history(7, 1)[0], "vendor:model-new")
            write_lake(of(database), tmp_path / "lake")
        first.write_bytes(before)
        for table in ("sessions", "standings", "matchups", "ballots", "answers"):
            other = max((tmp_path / "lake" / table).rglob("*.parquet"))
            rows = pq.read_table(other, partitioning=None)
            pq.write_table(rows.replace_schema_metadata(), other)

        with pytest.raises(HistoryError, match="mixes tables of two exports"):
            Lake(tmp_path / "lake")

    @pytest.mark.parametrize("missing", ["ballots", "names"])
    def test_a_folder_without_a_table_is_refused(self, lake_copy, missing):
        """The error names the missing table."""
        shutil.rmtree(lake_copy / missing)

        with pytest.raises(HistoryError, match=f"is not a lake: {missing}/"):
            DuckLake(lake_copy)

    def test_a_missing_column_is_named(self, lake_copy):
        """The error names file and column."""
        path = some_file(lake_copy, "standings")
        pq.write_table(pq.ParquetFile(path).read().drop_columns(["wins"]), path)

        with pytest.raises(HistoryError, match="has no column 'wins'") as refused:
            Lake(lake_copy)
        assert str(path) in str(refused.value)

    def test_a_column_of_the_wrong_type_is_named(self, lake_copy):
        """The error names file, column and both types."""
        path = some_file(lake_copy, "matchups")
        table = pq.ParquetFile(path).read()
        at = table.column_names.index("wins")
        pq.write_table(table.set_column(at, "wins", table["wins"].cast(pa.string())), path)

        with pytest.raises(HistoryError, match="column 'wins', where double"):
            Lake(lake_copy)

    @pytest.mark.parametrize("cut", [0, 100])
    def test_a_truncated_file_is_named_on_opening(self, lake_copy, cut):
        """The file lacks its footer."""
        path = some_file(lake_copy, "answers")
        path.write_bytes(path.read_bytes()[:cut])

        with pytest.raises(HistoryError, match="is not a readable Parquet file") as refused:
            Lake(lake_copy)
        assert str(path) in str(refused.value)

    @pytest.mark.parametrize(
        "engine_name", ["duckdb", pytest.param("spark", marks=pytest.mark.slow)]
    )
    def test_a_corrupt_file_is_named_on_summing(self, lake_copy, engine_name, request):
        """The footer is intact, the data are damaged."""
        path = some_file(lake_copy, "standings")
        content = bytearray(path.read_bytes())
        content[4:400] = bytes(396)
        path.write_bytes(content)
        spark = request.getfixturevalue("spark") if engine_name == "spark" else None
        lake = DuckLake(lake_copy) if spark is None else SparkLake(lake_copy, session=spark)

        with lake as engine, pytest.raises(HistoryError, match="is not a readable") as refused:
            WindowSums(engine).table(StandingSums, rule="borda")
        assert str(path) in str(refused.value)


def test_another_random_history_has_other_sums(lake, entries):
    """The comparison in these tests can fail."""
    with DuckLake(lake) as duck, pytest.raises(AssertionError):
        assert_same(WindowSums(duck).table(PanelSums), by_hand.panel_sums(history(1, 90)))
    assert len(entries) == 90
