"""A lake is the same however its rows are spread over files, and says what is wrong with one."""

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
from witan.core.entries import Entries, StandingEntry
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
def copied(lake, tmp_path) -> Path:
    """A lake that a test may change."""
    folder = tmp_path / "copied"
    shutil.copytree(lake, folder)
    return folder


def of(database, **options) -> SimpleNamespace:
    return SimpleNamespace(database=database, **options)


def store_more(database, one: Entries, model: str) -> None:
    """Another session on the first day, with a model of its own."""
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
    """Which file holds a row is nobody's business."""

    def test_split_into_many_files_under_other_names(self, copied, entries):
        """Every file cut in three and renamed so that the order of reading turns."""
        for number, path in enumerate(sorted(copied.glob("*/day=*/*.parquet"))):
            table = pq.ParquetFile(path).read()
            for part in range(3):
                rows = table.slice(part * len(table) // 3, (part + 1) * len(table) // 3
                                   - part * len(table) // 3)  # fmt: skip
                pq.write_table(rows, path.parent / f"{9999 - number:04d} it's [{part}].parquet")
            path.unlink()

        check(copied, entries)

    def test_merged_into_one_file_per_table(self, merged_lake, entries):
        """All days in one folder, the last rows first."""
        check(merged_lake, entries)

    def test_several_histories_in_one_lake(self, entries, tmp_path):
        """Two histories written into one folder are what one history of both would be."""
        for name, some in (("one", entries[::2]), ("two", entries[1::2])):
            with open_database(tmp_path / f"{name}.sqlite", SystemClock(), LockWait()) as database:
                store(database, some)
                write_lake(of(database), tmp_path / "lake")

        check(tmp_path / "lake", entries)
        Lake(tmp_path / "lake").check_duplicates()


class TestLost:
    """A lake that lacks what an export wrote is not summed as if it were whole."""

    @pytest.mark.parametrize("table", ["standings", "ballots", "sessions"])
    def test_a_file_that_was_lost_is_named(self, copied, table):
        """Which file, how many rows it had, and what to do."""
        path = some_file(copied, table)
        rows = pq.read_metadata(path).num_rows
        path.unlink()

        lost = f"copied: lacks {table}/{path.parent.name}/{path.name} with its {rows:,} row"
        with pytest.raises(HistoryError, match=lost) as refused:
            Lake(copied)
        assert "export the history again" in str(refused.value)

    def test_a_day_that_was_lost_is_named(self, copied):
        """All five files of a day are gone: the first is named, the others are counted."""
        day = some_file(copied, "sessions").parent.name
        for table in ("sessions", "standings", "matchups", "ballots", "answers"):
            shutil.rmtree(copied / table / day)

        with pytest.raises(HistoryError, match=rf"lacks sessions/{day}/.* and 4 more files"):
            Lake(copied)

    def test_nothing_left_is_no_empty_lake(self, copied):
        """Where an export wrote days and all are gone, it is not said that there were none."""
        for table in ("sessions", "standings", "matchups", "ballots", "answers"):
            shutil.rmtree(copied / table)

        with pytest.raises(HistoryError, match=r"lacks sessions/.*and \d+ more files"):
            Lake(copied)

    def test_a_part_of_a_split_file_that_was_lost_is_noticed(self, copied):
        """A file was cut in two, of which one is gone."""
        path = some_file(copied, "matchups")
        table = pq.ParquetFile(path).read()
        pq.write_table(table.slice(1), path)

        with pytest.raises(HistoryError, match=f"lacks 1 row of matchups/{path.parent.name}/"):
            Lake(copied)

    def test_one_of_two_histories_is_lost(self, entries, tmp_path):
        """The files of one are gone; those of the other do not stand for them."""
        for name, some in (("one", entries[::2]), ("two", entries[1::2])):
            with open_database(tmp_path / f"{name}.sqlite", SystemClock(), LockWait()) as database:
                store(database, some)
                write_lake(of(database), tmp_path / "lake", source=name)
        for path in (tmp_path / "lake").glob("*/*/two.parquet"):
            path.unlink()

        with pytest.raises(HistoryError, match=r"lake: lacks sessions/.*/two.parquet"):
            Lake(tmp_path / "lake")

    def test_files_arranged_anew_need_the_same_rows(self, copied, tmp_path, entries):
        """Merged in its own folder a lake is as whole as before; without one row it is not."""
        merge(copied, tmp_path / "merged")
        shutil.copytree(copied / "_exports", tmp_path / "merged" / "_exports")
        check(tmp_path / "merged", entries)
        path = tmp_path / "merged" / "standings" / "day=2026-01-01" / "all.parquet"
        pq.write_table(pq.ParquetFile(path).read().slice(1), path)

        with pytest.raises(HistoryError, match=r"merged: lacks 1 row of standings"):
            Lake(tmp_path / "merged")

    @pytest.mark.parametrize("listed", [True, False])
    def test_one_table_of_a_day_written_anew_by_another_tool(self, copied, entries, listed):
        """Its file has lost the mark of its export; its rows are all there."""
        path = some_file(copied, "ballots")
        pq.write_table(pq.read_table(path, partitioning=None).replace_schema_metadata(), path)
        path.rename(path.with_name("compacted.parquet"))
        if not listed:
            shutil.rmtree(copied / "_exports")

        check(copied, entries)

    def test_days_moved_elsewhere_on_purpose(self, copied, tmp_path, entries):
        """A part of a lake is a lake, and so is the rest once its list of files is deleted."""
        cut = "day=" + entries[40].session.at.date().isoformat()
        for table in ("sessions", "standings", "matchups", "ballots", "answers"):
            for day in sorted((copied / table).iterdir()):
                if day.name < cut:
                    (tmp_path / "old" / table).mkdir(parents=True, exist_ok=True)
                    day.rename(tmp_path / "old" / table / day.name)
        shutil.copytree(copied / "names", tmp_path / "old" / "names")
        before = [one for one in entries if f"day={one.session.at.date()}" < cut]

        check(tmp_path / "old", before)
        with pytest.raises(HistoryError, match=r"delete _exports/\w+.json"):
            Lake(copied)
        shutil.rmtree(copied / "_exports")
        check(copied, entries[len(before) :])

    def test_a_first_export_that_stopped_is_no_whole_lake(self, entries, tmp_path):
        """Some days are there and others not: that is said until an export has come to its end."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries[:6])
            (tmp_path / "lake" / "ballots").mkdir(parents=True)
            last = max(one.session.at for one in entries[:6]).date()
            in_the_way = tmp_path / "lake" / "ballots" / f"day={last}"
            in_the_way.write_text("not a folder", encoding="utf-8")
            with pytest.raises(HistoryError, match="cannot be written"):
                write_lake(of(database), tmp_path / "lake")

            with pytest.raises(HistoryError, match="an export that never ended"):
                Lake(tmp_path / "lake")
            in_the_way.unlink()
            write_lake(of(database), tmp_path / "lake")
        check(tmp_path / "lake", entries[:6])

    @pytest.mark.parametrize("text", ["", "[]", '{"complete": true}', "\0"])
    def test_a_list_of_files_that_is_none(self, copied, text):
        """It is named, with what to do."""
        [path] = (copied / "_exports").iterdir()
        path.write_text(text, encoding="utf-8")

        with pytest.raises(HistoryError, match="no list of the files") as refused:
            Lake(copied)
        assert str(path) in str(refused.value)


class TestWriting:
    """A lake follows its history."""

    def test_writing_again_changes_nothing(self, sqlite_history, tmp_path):
        """The second time leaves the same files with the same bytes."""

        def write() -> tuple[object, dict[Path, bytes]]:
            written = write_lake(of(sqlite_history), tmp_path)
            paths = (path for path in tmp_path.rglob("*") if path.is_file())
            return written, {path: path.read_bytes() for path in paths}

        written, files = write()

        assert write() == (written, files)
        assert written.sessions == 90
        assert written.days == len(list((tmp_path / "sessions").iterdir()))

    @pytest.mark.parametrize("table", ["standings", "matchups", "ballots", "answers"])
    def test_what_is_summed_together_stands_together(self, lake, table):
        """Rows that are summed by bucket stand by bucket within their day."""
        files = sorted((lake / table).glob("day=*/*.parquet"))
        buckets = [pq.read_table(file)["bucket"].to_pylist() for file in files]

        assert any(len(set(held)) > 1 for held in buckets)
        assert all(held == sorted(held) for held in buckets)

    def test_a_column_that_is_the_same_throughout_is_known(self, tmp_path):
        """Its value is told without a row being read; an unknown, or another value, ends that."""
        files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
        columns = {"same": [2, 2], "other": [1, 1], "holes": [3, None], "none": [None, None]}
        pq.write_table(pa.table({**columns, "list": [[2], [2]]}), files[0])
        pq.write_table(pa.table({**columns, "other": [1, 0], "list": [[2], [2]]}), files[1])

        asked = ["same", "other", "holes", "none"]
        assert constants(files, asked) == {"same": 2}
        assert constants(files[:1], asked) == {"same": 2, "other": 1}

    def test_what_was_forgotten_leaves_the_lake(self, entries, tmp_path):
        """Writing again after sessions were deleted takes their days away."""
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

    def test_a_session_in_two_histories_is_noticed(self, entries, tmp_path):
        """A lake into which one session came twice says which."""
        for name in ("one", "two"):
            with open_database(tmp_path / f"{name}.sqlite", SystemClock(), LockWait()) as database:
                store(database, entries[:3] if name == "one" else entries[2:5])
                write_lake(of(database), tmp_path / "lake")

        file = rf"sessions/day={entries[2].session.at.date()}/\w+.parquet"
        where = f"lake: holds 1 session more than once: 'session 2' is in {file} and {file};"
        with pytest.raises(HistoryError, match=where), open_source(tmp_path / "lake"):
            pass
        with (
            DuckLake(tmp_path / "lake") as duck,
            pytest.raises(HistoryError, match=where),
            open_source(duck),
        ):
            pass

    def test_an_empty_history_makes_an_empty_lake(self, tmp_path):
        """It is a lake, which holds no session yet, and not a folder of something else."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            write_lake(of(database), tmp_path / "lake")

        with pytest.raises(HistoryError, match="holds no session yet"):
            Lake(tmp_path / "lake")

    def test_writing_that_stops_leaves_a_lake(self, entries, tmp_path):
        """Days are whole, old or new, and each code in them has its name."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries[:6])
            write_lake(of(database), tmp_path / "lake")
            store_more(database, history(7, 1)[0], "vendor:model-new")
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

    def test_a_folder_that_cannot_be_written(self, sqlite_history, tmp_path):
        """A file stands where the folder should be: the place is named."""
        (tmp_path / "lake").write_text("not a folder", encoding="utf-8")

        with pytest.raises(HistoryError, match="lake: cannot be written"):
            write_lake(of(sqlite_history), tmp_path / "lake")


class TestWrongInput:
    """Each error names the file and what to do."""

    @pytest.mark.parametrize("report", [witan.leaderboard, witan.audit])
    def test_a_code_without_a_name(self, copied, report):
        """Somebody took a file of names away: what to do is said."""
        [path] = (copied / "names").iterdir()
        pq.write_table(pq.ParquetFile(path).read().slice(0, 1), path)

        with pytest.raises(HistoryError, match=r"has no name of.*export"):
            report(copied)

    def test_tables_of_two_exports(self, entries, tmp_path):
        """A writer was killed between two files of a day: the day is not summed."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries[:6])
            write_lake(of(database), tmp_path / "lake")
            path = min((tmp_path / "lake" / "standings").rglob("*.parquet"))
            before = path.read_bytes()
            store_more(database, history(7, 1)[0], "vendor:model-new")
            write_lake(of(database), tmp_path / "lake")
        path.write_bytes(before)

        with pytest.raises(HistoryError, match="holds tables of two exports") as refused:
            Lake(tmp_path / "lake")
        assert f"day={DAY}" in str(refused.value)
        shutil.rmtree(tmp_path / "lake" / "_exports")
        with pytest.raises(HistoryError, match="holds tables of two exports"):
            Lake(tmp_path / "lake")

    def test_a_running_export_beside_a_file_without_a_mark(self, entries, tmp_path):
        """A file that other tools wrote anew does not hide that its day is being written again."""
        with open_database(tmp_path / "h.sqlite", SystemClock(), LockWait()) as database:
            store(database, entries[:6])
            write_lake(of(database), tmp_path / "lake")
            shutil.copytree(tmp_path / "lake", tmp_path / "running")
            path = min((tmp_path / "running" / "ballots").rglob("*.parquet"))
            table = pq.read_table(path, partitioning=None)
            pq.write_table(table.replace_schema_metadata(), path)
            store_more(database, history(7, 1)[0], "vendor:model-new")
            write_lake(of(database), tmp_path / "lake")
        written = min((tmp_path / "lake" / "standings").rglob("*.parquet"))
        shutil.copy(written, tmp_path / "running" / written.relative_to(tmp_path / "lake"))

        with pytest.raises(HistoryError, match="holds tables of two exports"):
            Lake(tmp_path / "running")

    @pytest.mark.parametrize("missing", ["ballots", "names"])
    def test_a_folder_that_is_no_lake(self, copied, missing):
        """A table that is missing is named."""
        shutil.rmtree(copied / missing)

        with pytest.raises(HistoryError, match=f"no lake: it has no {missing}/"):
            DuckLake(copied)

    def test_a_file_that_lacks_a_column(self, copied):
        """File and column are named."""
        path = some_file(copied, "standings")
        pq.write_table(pq.ParquetFile(path).read().drop_columns(["wins"]), path)

        with pytest.raises(HistoryError, match="has no column 'wins'") as refused:
            Lake(copied)
        assert str(path) in str(refused.value)

    def test_a_column_of_another_type(self, copied):
        """File, column and both types are named."""
        path = some_file(copied, "matchups")
        table = pq.ParquetFile(path).read()
        at = table.column_names.index("wins")
        pq.write_table(table.set_column(at, "wins", table["wins"].cast(pa.string())), path)

        with pytest.raises(HistoryError, match="column 'wins', where double"):
            Lake(copied)

    @pytest.mark.parametrize("cut", [0, 100])
    def test_a_file_that_was_cut_off(self, copied, cut):
        """A file without its end is named when the lake is opened."""
        path = some_file(copied, "answers")
        path.write_bytes(path.read_bytes()[:cut])

        with pytest.raises(HistoryError, match="is no readable Parquet file") as refused:
            Lake(copied)
        assert str(path) in str(refused.value)

    @pytest.mark.parametrize(
        "engine_name", ["duckdb", pytest.param("spark", marks=pytest.mark.slow)]
    )
    def test_a_file_that_is_damaged_inside(self, copied, engine_name, request):
        """A file whose end is whole is named when it is summed."""
        path = some_file(copied, "standings")
        held = bytearray(path.read_bytes())
        held[4:400] = bytes(396)
        path.write_bytes(held)
        spark = request.getfixturevalue("spark") if engine_name == "spark" else None
        opened = DuckLake(copied) if spark is None else SparkLake(copied, session=spark)

        with opened as engine, pytest.raises(HistoryError, match="is no readable") as refused:
            WindowSums(engine).table(StandingSums, rule="borda")
        assert str(path) in str(refused.value)


def test_a_history_of_another_draw_is_another(lake, entries):
    """The comparison that these tests rest on can fail."""
    with DuckLake(lake) as duck, pytest.raises(AssertionError):
        assert_same(WindowSums(duck).table(PanelSums), by_hand.panel_sums(history(1, 90)))
    assert len(entries) == 90
