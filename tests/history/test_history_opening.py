"""Opening: locations, migrations, damage, and read-only files."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from weakref import ref

import pytest

from clocks import SetClock
from histories import record_sessions, session_events
from postgres import GUARDED
from processes import run_program, run_python
from witan.errors import HistoryError, InvalidParameter, MissingExtra, UnknownName
from witan.history import History, default_location, parse_location
from witan.history.engines import (
    PostgresDatabase,
    SqliteDatabase,
    back_up_damaged_file,
    check_library,
    library_version,
    safe_journal,
)
from witan.history.schema import MIGRATIONS

NOON = datetime(2026, 11, 21, 12, 30, 5, tzinfo=UTC)


def raw(file, *statements):
    """Open a closed file directly with SQLite."""
    connection = sqlite3.connect(file)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def refusal(place, **options):
    with pytest.raises(HistoryError) as refused:
        History.open(place, **options)
    return str(refused.value)


class TestCreation:
    """A history is created where there is none."""

    def test_history_is_created_and_reopened(self, place):
        """A new location holds an empty history of this version, the second time as well."""
        for _ in range(2):
            with History.open(place, clock=SetClock(NOON)) as history:
                history.require_writable(creating=True)
                assert history.find() == []
                assert history.version == len(MIGRATIONS)
                rows = history.database.rows("SELECT version, at_us FROM migrations")
                versions = range(1, len(MIGRATIONS) + 1)
                assert rows == [(version, 1795264205000000) for version in versions]

    def test_missing_history_is_empty_until_its_first_write(self, tmp_path):
        """Reading creates neither the file nor its folder; a session creates both."""
        file = tmp_path / "made" / "history.sqlite"
        with History.open(file) as history:
            assert history.version == len(MIGRATIONS)
            assert (history.find(), history.statuses(["s1"])) == ([], {})
            assert (history.learn(["ada"]).n_sessions, history.describe().n_bytes) == (
                {"grades": 0, "ranks": 0},
                0,
            )
            with history.database.snapshot():
                assert history.recent_ballots() == []
            history.require_writable()
            assert not file.parent.exists()
            record_sessions(history, "s1")
            history.database.check_file()
            assert [found.session for found in history.find()] == ["s1"]
            assert history.journal == safe_journal()

        with History.open(file, reading=True) as history:
            assert [found.session for found in history.find()] == ["s1"]

    def test_deleting_nothing_creates_no_history(self, tmp_path):
        """Nor does claiming a session that no history has."""
        file = tmp_path / "made" / "history.sqlite"
        with History.open(file) as history:
            assert history.forget_before(NOON).sessions == history.forget().sessions == ()
            assert history.forget_added_before(NOON).sessions == ()
            for call in (history.forget, history.claim):
                with pytest.raises(UnknownName):
                    call("s1")

            assert not file.parent.exists()

    def test_a_single_statement_creates_a_missing_history(self, file):
        """It needs no transaction around it."""
        with History.open(file) as history:
            assert history.database.execute("DELETE FROM sessions") == 0

            assert file.exists()

    @pytest.mark.parametrize("is_new", [True, False])
    def test_it_stays_where_it_was_opened(self, tmp_path, monkeypatch, is_new):
        """Also if its path is relative, and the process moves to another folder."""
        monkeypatch.chdir(tmp_path)
        with History.open("history.sqlite") as history:
            if not is_new:
                history.require_writable(creating=True)
            (tmp_path / "other").mkdir()
            monkeypatch.chdir("other")
            record_sessions(history, "s1")
            history.database.check_file()
            assert [found.session for found in history.find()] == ["s1"]

        assert [*Path().iterdir()] == []
        assert (tmp_path / "history.sqlite").exists()

    def test_a_closed_history_is_not_created(self, file):
        """Nor by a single statement."""
        history = History.open(file)
        history.close()
        with pytest.raises(HistoryError, match="was closed"):
            history.database.execute("DELETE FROM sessions")

        assert not file.exists()

    def test_missing_history_may_be_created_by_another(self, file):
        """Two are open before the first of them writes; both show what both have written."""
        with History.open(file) as one, History.open(file) as other:
            assert one.find() == other.find() == []
            record_sessions(one, "s1")
            assert [found.session for found in other.find()] == ["s1"]
            record_sessions(other, "s2")

            assert {found.session for found in one.find()} == {"s1", "s2"}

    def test_history_that_cannot_be_created_can_be_once_it_is_possible(self, tmp_path):
        """Its folder became impossible after it was opened."""
        folder = tmp_path / "made"
        with History.open(folder / "history.sqlite") as history:
            folder.touch()
            with pytest.raises(HistoryError, match="cannot be written"):
                record_sessions(history, "s1")
            folder.unlink()
            record_sessions(history, "s2")

            assert [found.session for found in history.find()] == ["s2"]

    def test_only_the_owner_may_read_it(self, tmp_path):
        """The file has mode 0600, and a new folder for it 0700."""
        file = tmp_path / "made" / "history.sqlite"
        with History.open(file) as history, history.recording() as recording:
            recording(session_events("s1")[0])
            recording.flush()
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in file.parent.iterdir()}

        assert set(modes.values()) == {0o600}
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

    @pytest.mark.filterwarnings("ignore::ResourceWarning")  # of Python, for what nobody closed
    def test_a_history_that_nobody_holds_frees_its_connection(self, file):
        """At once, not when Python next looks for cycles, which these tests never let it."""
        history = History.open(file)
        connection = ref(history.database)
        del history

        assert connection() is None

    def test_empty_file_becomes_a_history(self, file):
        """A file without a byte becomes a history."""
        file.touch()

        with History.open(file) as history:
            assert history.version == len(MIGRATIONS)

    def test_journal_mode_is_safe_with_the_library(self, file):
        """A write-ahead log from SQLite 3.51.3 on, a rollback journal before."""
        new = tuple(map(int, library_version().split("."))) >= (3, 51, 3)

        with History.open(file) as history:
            history.require_writable(creating=True)
            assert history.journal == safe_journal() == ("wal" if new else "truncate")
            assert history.database.rows("PRAGMA synchronous") == [(2,)]
            assert history.database.rows("PRAGMA secure_delete") == [(1,)]

    def test_old_library_is_refused_by_its_version(self):
        """SQLite before 3.35 lacks functions of an audit."""
        for version in ("3.35.0", "3.100.1", library_version()):
            check_library("h.sqlite", version)

        with pytest.raises(HistoryError) as error:
            check_library("h.sqlite", "3.34.1")
        for fact in ("h.sqlite: ", "3.35.0", "3.34.1", "pysqlite3"):
            assert fact in str(error.value)

    @pytest.mark.parametrize("mode", ["wal", "delete"])
    def test_unsafe_journal_mode_is_changed(self, file, mode):
        """A history that another library left in another mode is changed when it is opened."""
        with History.open(file) as history:
            history.require_writable(creating=True)
        raw(file, f"PRAGMA journal_mode = {mode}")

        with History.open(file) as history:
            assert history.journal == safe_journal()

    def test_default_location_is_that_of_the_platform(self):
        """It is a file called history.sqlite in a folder called witan."""
        assert default_location().name == "history.sqlite"
        assert default_location().parent.name == "witan"


class TestLocations:
    """Forms of a location."""

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("h.sqlite", Path("h.sqlite")),
            (Path("h.sqlite"), Path("h.sqlite")),
            ("sqlite:///h.sqlite", Path("h.sqlite")),
            ("sqlite:////srv/a%20b.sqlite", Path("/srv/a b.sqlite")),
            ("~/h.sqlite", Path.home() / "h.sqlite"),
            ("postgres://x/y", "postgresql://x/y"),
        ],
    )
    def test_location_is_parsed(self, written, meant):
        """A path, or a URL of either kind."""
        assert parse_location(written) == meant

    @pytest.mark.parametrize("written", ["mysql://u:secret@h/d", "sqlite://", "sqlite:///", ""])
    def test_invalid_location_is_refused(self, written):
        """Another scheme, or none named: a sentence, without the password."""
        said = refusal(written)

        assert "location" in said
        assert "postgresql://" in said
        assert "secret" not in said

    @pytest.mark.parametrize(
        ("written", "words"),
        [
            (":memory:", "would not outlive the process"),
            ("sqlite:///:memory:", "would not outlive the process"),
            ("file:h.sqlite?mode=ro", "write a path, sqlite:///path, or postgresql://"),
            ("sqlite:h.sqlite", "write a path, sqlite:///path, or postgresql://"),
            ("postgresql:secret", "write a path, sqlite:///path, or postgresql://"),
            ("host=db password=secret dbname=x", "write it as a URL, postgresql://"),
            ("password = secret", "write it as a URL, postgresql://"),
        ],
    )
    def test_location_of_another_program_is_refused(self, tmp_path, monkeypatch, written, words):
        """The error gives the right form, and no password; no file is created."""
        monkeypatch.chdir(tmp_path)

        said = refusal(written)

        assert words in said
        assert "secret" not in said
        assert list(tmp_path.iterdir()) == []

    def test_three_slashes_for_four_are_refused(self, tmp_path, monkeypatch):
        """A relative path to a folder at the root is refused with both forms."""
        monkeypatch.chdir(tmp_path)
        meant = tmp_path / "h.sqlite"

        said = refusal(f"sqlite:///{str(meant)[1:]}")

        assert f"write sqlite:///{meant}" in said
        assert list(tmp_path.iterdir()) == []

    def test_name_with_an_equals_sign_is_a_file(self, tmp_path):
        """Only the keywords of a connection are parsed as one."""
        assert parse_location("cost=1.sqlite", tmp_path) == tmp_path / "cost=1.sqlite"

    @pytest.mark.parametrize("written", [5, None, True, b"h.sqlite"])
    def test_location_of_another_type_is_refused(self, written):
        """The error says what was expected."""
        with pytest.raises(InvalidParameter, match="path, a URL"):
            History.open(written)

    def test_device_is_refused(self):
        """It is no regular file, and no file is created beside it."""
        said = refusal("/dev/null")

        assert "is a device" in said
        assert not Path("/dev/null.lock").exists()

    def test_url_of_an_open_history_names_its_file(self, file):
        """An open history says where it is."""
        with History.open(file) as history:
            assert history.url == f"sqlite:///{file}"


class TestRefusing:
    """A file that is no history is left unchanged."""

    def test_later_version_is_refused_and_untouched(self, file):
        """The error names both versions; not a byte of the file changes."""
        with History.open(file) as history:
            history.require_writable(creating=True)
        raw(file, "INSERT INTO migrations VALUES (99, 0, '9.9')")
        before = file.read_bytes()

        said = refusal(file)

        assert all(fact in said for fact in ("version 99", "Witan 9.9"))
        assert "update Witan" in said
        assert file.read_bytes() == before
        assert {p.name for p in file.parent.iterdir()} <= {file.name, f"{file.name}.lock"}

    def test_later_version_in_postgresql_is_refused(self, postgresql_url):
        """The same holds on a server."""
        with History.open(postgresql_url) as history:
            history.database.execute("INSERT INTO migrations VALUES (99, 0, '9.9')")

        assert "has version 99" in refusal(postgresql_url)

    def test_tables_of_another_program_are_left_alone(self, file):
        """A database with a table of the same name is refused."""
        raw(file, "CREATE TABLE sessions (id INTEGER)")

        assert "tables of another program" in refusal(file)

    @pytest.mark.parametrize(
        "made",
        [
            "CREATE TABLE customers (id INTEGER)",
            "CREATE VIEW customers AS SELECT 1 AS id",
            "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT)",
            "CREATE TABLE migrations (id TEXT)",
        ],
    )
    def test_any_file_of_another_program_is_left_alone(self, file, made):
        """No table of ours is added, whatever its tables are called."""
        raw(file, made)
        before = file.read_bytes()

        assert "another program" in refusal(file)
        assert file.read_bytes() == before

    def test_migrations_of_another_program_on_a_server_are_left_alone(self, postgresql_url):
        """A server may have other tables, but none with the name of ours."""
        with PostgresDatabase(postgresql_url) as database:
            database.execute("CREATE TABLE migrations (version INTEGER PRIMARY KEY)")

        assert "another program" in refusal(postgresql_url)

    def test_history_shares_a_server_with_other_tables(self, postgresql_url):
        """A team's database may hold more than one application."""
        with PostgresDatabase(postgresql_url) as database:
            database.execute("CREATE TABLE customers (id INTEGER)")

        with History.open(postgresql_url) as history:
            assert history.find() == []

    def test_missing_table_is_an_error(self, file):
        """A history without one of its tables is refused."""
        with History.open(file) as history:
            history.require_writable(creating=True)
        raw(file, "DROP TABLE standings")

        assert "standings" in refusal(file)

    def test_file_that_is_no_database_is_refused(self, file):
        """A text file is unchanged, and is not copied."""
        file.write_text("These are my notes.\n" * 100, encoding="utf-8")

        assert "is not a SQLite file" in refusal(file)
        assert file.read_text(encoding="utf-8").startswith("These are my notes.")
        assert [p for p in file.parent.iterdir() if "corrupt" in p.name] == []

    def test_damaged_file_is_named_and_copied(self, file):
        """The copy has its bytes, the file stays, and a second opening makes no second copy."""
        fill(file)
        spoil(file)
        before = file.read_bytes()

        said = refusal(file, clock=SetClock(NOON))
        again = refusal(file)

        copy = file.with_name("history.sqlite.corrupt-20261121-123005")
        assert "is damaged" in said
        assert str(copy) in said
        assert str(copy) in again
        assert "move it away" in said
        assert file.read_bytes() == copy.read_bytes() == before
        assert len(list(file.parent.glob("*.corrupt-*"))) == 1

    @pytest.mark.parametrize("n_bytes", [100, 4096])
    def test_file_with_a_lost_header_is_copied(self, file, n_bytes):
        """Zeros in place of the header: it was a history, so it is copied."""
        fill(file)
        before = bytes(n_bytes) + file.read_bytes()[n_bytes:]
        file.write_bytes(before)

        said = refusal(file, clock=SetClock(NOON))

        copy = file.with_name("history.sqlite.corrupt-20261121-123005")
        assert "its beginning is lost" in said
        assert str(copy) in said
        assert file.read_bytes() == copy.read_bytes() == before

    def test_emptied_file_beside_its_log_is_refused(self, file):
        """Both are copied, and no new history is created."""
        file.touch()
        log = file.with_name(f"{file.name}-wal")
        log.write_bytes(b"x" * 100)

        said = refusal(file, clock=SetClock(NOON))

        copy = file.with_name("history.sqlite.corrupt-20261121-123005")
        assert "the file is empty" in said
        assert copy.with_name(f"{copy.name}-wal").read_bytes() == log.read_bytes() == b"x" * 100
        assert file.stat().st_size == 0

    def test_check_finds_deeper_damage(self, file):
        """The check names and copies a file with a damaged page that a reader does not need."""
        fill(file)
        whole = file.read_bytes()
        middle = len(whole) // 4096 * 3 // 4 * 4096
        file.write_bytes(whole[:middle] + b"\xaa" * 4096 + whole[middle + 4096 :])

        with (
            History.open(file, clock=SetClock(NOON), reading=True) as history,
            pytest.raises(HistoryError) as found,
        ):
            history.check()

        assert "is damaged" in str(found.value)
        assert "\n" not in str(found.value)
        assert file.with_name("history.sqlite.corrupt-20261121-123005").exists()

    def test_failed_copy_is_an_error(self, file):
        """Past the limit on a file's size there is one sentence, and no partial copy."""
        fill(file)
        spoil(file)
        code = (
            "import resource, sys; from witan.history import History\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
            "try: History.open(sys.argv[1])\n"
            "except Exception as error: print(type(error).__name__, error)\n"
        )
        done = run_python(code, file)

        assert done.stdout.startswith("HistoryError"), done.stderr
        assert "no copy could be made" in done.stdout
        assert "File too large" in done.stdout
        assert [p for p in file.parent.iterdir() if "corrupt" in p.name] == []

    def test_copy_includes_the_journal(self, file):
        """Without its journal a file cut off in a transaction has other contents."""
        fill(file)
        spoil(file)
        journal = file.with_name(f"{file.name}-journal")
        journal.write_bytes(b"x" * 100)

        copy = back_up_damaged_file(file, NOON)

        assert copy.with_name(f"{copy.name}-journal").read_bytes() == b"x" * 100
        assert back_up_damaged_file(file, NOON.replace(hour=13)) == copy

    def test_sound_history_passes_its_check(self, history):
        """The check reports nothing."""
        history.check()

    @pytest.mark.parametrize("where", ["/dev/null/history.sqlite", "/proc/history.sqlite"])
    def test_unwritable_folder_is_an_error(self, where):
        """The sentence names the file, and asks for another folder."""
        said = refusal(where)

        assert said.startswith(where)
        assert "writable folder" in said

    def test_folder_is_no_history(self, tmp_path):
        """A path that is a folder is refused."""
        assert "is a folder" in refusal(tmp_path)
        assert "name a file in it" in refusal(".")

    def test_location_is_shown_without_detours(self, tmp_path):
        """The path is simplified, except through a symbolic link."""
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "b").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "a" / "b")

        assert parse_location(tmp_path / "a" / ".." / "h.sqlite") == tmp_path / "h.sqlite"
        through = tmp_path / "link" / ".." / "h.sqlite"
        assert parse_location(through) == through

    def test_folder_writable_by_others_only_is_an_error(self):
        """The error tells a user about the missing right."""
        if os.geteuid() != 0:
            pytest.skip("only root can become somebody who may not write here")
        code = (
            "import os, sys; from witan.history import History\n"
            "os.setgid(65534); os.setuid(65534)\n"
            "try: History.open(sys.argv[1])\n"
            "except Exception as error: print(type(error).__name__, error)\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            done = run_python(code, f"{folder}/history.sqlite")

        assert done.stdout.startswith("HistoryError"), done.stderr
        assert "cannot be written: Permission denied" in done.stdout


class TestServers:
    """PostgreSQL cannot be reached."""

    def test_unreachable_server_is_an_error(self):
        """The error is a sentence, without the password."""
        said = refusal("postgresql://user:secret@127.0.0.1:1/witan")

        assert said.startswith("postgresql://user@127.0.0.1:1/witan: no connection")
        assert "check that the server runs" in said
        assert "secret" not in said

    def test_wrong_password_is_an_error_and_never_shown(self, postgresql_url):
        """The error has the server's refusal, and how to give the right password."""
        guarded = postgresql_url.replace("postgres@", f"{GUARDED}:wr%6Fng@")

        said = refusal(guarded)

        assert "the user or the password" in said
        assert "wrong" not in said
        assert "wr%6Fng" not in said

    def test_password_is_never_shown(self, postgresql_url):
        """Neither the URL of an open history nor its name in errors holds the password."""
        parts = urlsplit(postgresql_url)
        guarded = f"postgresql://{GUARDED}:right@{parts.netloc.split('@')[1]}{parts.path}"
        with History.open(postgresql_url) as history:
            history.database.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {GUARDED}")

        with History.open(guarded) as history:
            assert history.url == guarded.replace(":right", "")
            assert history.journal == "postgresql"

    def test_user_without_rights_is_an_error(self, postgresql_url):
        """The error has the server's words on creating tables."""
        guarded = postgresql_url.replace("postgres@", f"{GUARDED}:right@")

        assert "permission denied" in refusal(guarded)

    def test_incomplete_encoding_is_refused(self, postgresql_url):
        """A database in LATIN1 is refused before any table is created."""
        latin = f"{postgresql_url}_latin"
        with PostgresDatabase(postgresql_url) as database:
            name = latin.rpartition("/")[2]
            database.execute(
                f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
                " TEMPLATE template0"
            )
            try:
                said = refusal(latin)
                with PostgresDatabase(latin) as other:
                    sql = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'"
                    assert other.rows(sql) == [(0,)]
            finally:
                database.execute(f"DROP DATABASE {name} WITH (FORCE)")

        assert "LATIN1" in said
        assert "CREATE DATABASE … ENCODING 'UTF8'" in said

    def test_malformed_url_is_not_shown(self):
        """A password may be anywhere in it."""
        said = refusal("postgresql://user:sec ret@[half/x?nonsense=1")

        assert "sec" not in said
        assert "postgresql://user@host:5432/database" in said

    def test_missing_psycopg_names_the_extra(self):
        """The error says how to install it."""
        code = (
            "import sys; sys.modules['psycopg'] = None\n"
            "from witan.history import History\n"
            "History.open('postgresql://127.0.0.1:1/x')\n"
        )

        done = run_python(code)

        assert MissingExtra.__name__ in done.stderr
        assert "pip install '.[postgres]'" in done.stderr


def fill(file):
    with History.open(file) as history, history.recording() as recording:
        for k in range(20):
            for event in session_events(f"s{k}"):
                recording(event)


def spoil(file):
    """Overwrite the root pages of the tables, but neither the header nor the schema."""
    whole = bytearray(file.read_bytes())
    database = SqliteDatabase(file, "here")
    roots = [page for (page,) in database.rows("SELECT rootpage FROM sqlite_master") if page]
    database.close()
    for page in roots:
        whole[(page - 1) * 4096 : (page - 1) * 4096 + 64] = b"\xff" * 64
    file.write_bytes(whole)


READS = """
import os, sys
from witan.history import History
from witan.history.engines import (library_version)
library_version()
if sys.argv[2] != "0":
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
try:
    with History.open(sys.argv[1], reading=True) as history:
        print([found.session for found in history.find()], history.read_only)
except Exception as error:
    print(type(error).__name__, error)
"""


WRITES = READS.replace(", reading=True", "")
FORGETS = READS.replace("print([", "history.forget('s1'); print([")


@pytest.fixture
def folder():
    """A folder that everybody may read."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


def store_one(file):
    with History.open(file) as history, history.recording() as recording:
        for event in session_events("s1"):
            recording(event)


def output_of(code, file, before=()):
    """What a program says to whom the rights of the file are no formality."""
    user = 65534 if os.geteuid() == 0 and not before else 0
    done = run_program(*before, sys.executable, "-c", code, file, user)
    return done.stdout.strip() or done.stderr


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestPermissions:
    """Permissions of the file and its folder."""

    def test_history_in_a_read_only_folder_is_read(self, folder):
        """The folder is unchanged."""
        file = folder / "history.sqlite"
        store_one(file)
        file.chmod(0o644)
        (folder / "history.sqlite.lock").unlink()
        folder.chmod(0o555)

        assert output_of(READS, file) == "['s1'] True"
        assert names(folder) == ["history.sqlite"]

    def test_read_only_file_is_read(self, folder):
        """A backup is read in a writable folder; no file is created beside it."""
        store_one(folder / "history.sqlite")
        copy = folder / "backups" / "monday.sqlite"
        copy.parent.mkdir()
        copy.parent.chmod(0o777)
        shutil.copy(folder / "history.sqlite", copy)
        copy.chmod(0o444)

        assert output_of(READS, copy) == "['s1'] True"
        assert names(copy.parent) == ["monday.sqlite"]

    def test_unmergeable_log_is_refused(self, folder):
        """Without the right to merge the log, the file would show an old state."""
        file = folder / "history.sqlite"
        with History.open(file) as history, history.recording() as recording:
            if history.journal != "wal":
                pytest.skip("this SQLite keeps no log beside the file")
            for event in session_events("s1"):
                recording(event)
            recording.flush()
            copy = folder / "copy"
            copy.mkdir()
            for suffix in ("", "-wal"):
                shutil.copy(f"{file}{suffix}", copy)
        for path in copy.iterdir():
            path.chmod(0o644)
        copy.chmod(0o555)

        said = output_of(READS, copy / file.name)
        copy.chmod(0o755)

        assert said.startswith("HistoryError")
        assert "writable folder" in said

    def test_writing_a_read_only_history_is_refused(self, folder):
        """To record in it or to delete from it is refused; the error says what to do."""
        file = folder / "history.sqlite"
        store_one(file)
        file.chmod(0o644)
        folder.chmod(0o555)

        for code in (WRITES, FORGETS):
            said = output_of(code, file)
            assert said.startswith(f"HistoryError {file}: cannot be written: the file, its folder")
            assert "; make the file and its folder writable" in said

    def test_earlier_version_is_not_migrated(self, folder):
        """The error says how to migrate a read-only history."""
        file = folder / "history.sqlite"
        store_one(file)
        with History.open(file) as history:
            history.database.execute("DELETE FROM migrations")
        file.chmod(0o444)
        folder.chmod(0o555)

        assert "writable folder" in output_of(READS, file)


def test_read_only_file_system_is_read(folder):
    """Even root can only read on a disk mounted read-only."""
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    bind = ["unshare", "-m", "sh", "-c", script, "sh", str(folder)]
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    tried = subprocess.run(  # noqa: S603 - of our own making
        [*bind, "true"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("nothing can be mounted here")
    file = folder / "history.sqlite"
    store_one(file)

    assert output_of(READS, file, bind) == "['s1'] True"
    assert "cannot be written" in output_of(WRITES, file, bind)


FILLED = """
cd "$1" && mount -t tmpfs -o size=2m tmpfs full && cp -p history.sqlite* full/
cat /dev/zero > full/fill 2> /dev/null
shift && exec "$@"
"""


@pytest.mark.slow
def test_history_on_a_full_disk_is_read(folder):
    """The file alone can be read on a full disk; a log beside it needs space."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    (folder / "full").mkdir()
    file = folder / "history.sqlite"
    store_one(file)
    filled = ["unshare", "-m", "sh", "-c", FILLED, "sh", str(folder)]
    tried = subprocess.run(  # noqa: S603 - of our own making
        [*filled, "true"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("nothing can be mounted here")

    with History.open(file, reading=True) as history:
        if history.journal != "wal":
            pytest.skip("this SQLite lays nothing beside a file to read it")
    whole = output_of(READS, folder / "full" / file.name, filled)
    wanted = output_of(WRITES, folder / "full" / file.name, filled)
    with History.open(file) as history, history.recording() as recording:
        for event in session_events("s2"):
            recording(event)
        recording.flush()
        (folder / "history.sqlite-shm").rename(folder / "aside")
        logged = output_of(READS, folder / "full" / file.name, filled)
        (folder / "aside").rename(folder / "history.sqlite-shm")

    assert whole == "['s1'] True"
    for said in (wanted, logged):
        assert "free some space" in said


class TestReadingOnly:
    """Reading creates no file."""

    def test_missing_history_is_not_created(self, file):
        """A place without a history stays one."""
        with pytest.raises(HistoryError, match="there is no history yet"):
            History.open(file, reading=True)

        assert not file.parent.exists() or names(file.parent) == []

    def test_empty_file_stays_empty(self, file):
        """A reader does not turn an empty file into a history."""
        file.touch()

        with pytest.raises(HistoryError, match="no history yet"):
            History.open(file, reading=True)

        assert file.stat().st_size == 0

    def test_writable_history_is_writable_for_a_reader(self, file):
        """A reader with the permission can write, and caches sums."""
        store_one(file)

        with History.open(file, reading=True) as history:
            history.require_writable()
            assert not history.read_only


@pytest.mark.parametrize("place", ["~nosuch-user/x", "x" * 300, "a\0b", "x" * 300 + "/h.sqlite"])
def test_impossible_location_is_an_error(place):
    """An unknown user's home, a name that is too long, a byte that no path may have."""
    with pytest.raises(HistoryError):
        History.open(place)
