"""Opening: locations, migrations, damage, and files that may only be read."""

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

import pytest

from histories import told
from postgres import GUARDED
from witan.errors import HistoryError, InvalidParameter, MissingExtra
from witan.history import History, default_location, parse_location
from witan.history.engines import (
    PostgresDatabase,
    SqliteDatabase,
    check_library,
    copy_aside,
    library_version,
    safe_journal,
)
from witan.history.schema import MIGRATIONS

NOON = datetime(2026, 11, 21, 12, 30, 5, tzinfo=UTC)


class Noon:
    """A clock that stands still."""

    def now(self):
        return NOON

    def seconds(self):
        return 0.0


def raw(file, *statements):
    """Speak to a closed file behind the history's back."""
    connection = sqlite3.connect(file)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def refusal(place, **options):
    with pytest.raises(HistoryError) as refused:
        History.open(place, **options)
    return str(refused.value)


class TestMaking:
    """Where there is nothing, there is a history afterwards."""

    def test_it_is_made_and_opened_again(self, place):
        """A new place holds an empty history of this version, the second time as well."""
        for _ in range(2):
            with History.open(place, clock=Noon()) as history:
                assert history.find() == []
                assert history.version == len(MIGRATIONS)
                rows = history.database.rows("SELECT version, at_us FROM migrations")
                versions = range(1, len(MIGRATIONS) + 1)
                assert rows == [(version, 1795264205000000) for version in versions]

    def test_only_its_owner_may_read_it(self, tmp_path):
        """The file has mode 0600, and a folder that is made for it 0700."""
        file = tmp_path / "made" / "history.sqlite"
        with History.open(file) as history, history.recording() as recording:
            recording(told("s1")[0])
            recording.flush()
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in file.parent.iterdir()}

        assert set(modes.values()) == {0o600}
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

    def test_an_empty_file_is_a_place(self, file):
        """A file without a byte becomes a history."""
        file.touch()

        with History.open(file) as history:
            assert history.version == len(MIGRATIONS)

    def test_the_journal_is_the_one_the_library_is_safe_with(self, file):
        """A write-ahead log from SQLite 3.51.3 on, a rollback journal before."""
        new = tuple(map(int, library_version().split("."))) >= (3, 51, 3)

        with History.open(file) as history:
            assert history.journal == safe_journal() == ("wal" if new else "truncate")
            assert history.database.rows("PRAGMA synchronous") == [(2,)]
            assert history.database.rows("PRAGMA secure_delete") == [(1,)]

    def test_a_library_that_is_too_old_is_refused_by_its_version(self):
        """From SQLite 3.35 on: an older one does not know what an audit asks."""
        for version in ("3.35.0", "3.100.1", library_version()):
            check_library("h.sqlite", version)

        with pytest.raises(HistoryError) as error:
            check_library("h.sqlite", "3.34.1")
        for fact in ("h.sqlite: ", "3.35.0", "3.34.1", "pysqlite3"):
            assert fact in str(error.value)

    @pytest.mark.parametrize("mode", ["wal", "delete"])
    def test_a_file_in_another_journal_is_put_into_the_safe_one(self, file, mode):
        """A history that another library left in another mode is changed when it is opened."""
        with History.open(file):
            pass
        raw(file, f"PRAGMA journal_mode = {mode}")

        with History.open(file) as history:
            assert history.journal == safe_journal()

    def test_the_default_place_is_the_platform_s(self):
        """It is a file called history.sqlite in a folder called witan."""
        assert default_location().name == "history.sqlite"
        assert default_location().parent.name == "witan"


class TestPlaces:
    """How a place is written."""

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
    def test_it_is_read(self, written, meant):
        """A path, a URL of either kind."""
        assert parse_location(written) == meant

    @pytest.mark.parametrize("written", ["mysql://u:secret@h/d", "sqlite://", "sqlite:///", ""])
    def test_what_is_no_place_is_refused(self, written):
        """Another scheme, or none named: a sentence, without the password."""
        said = refusal(written)

        assert "place" in said
        assert "postgresql://" in said
        assert "secret" not in said

    @pytest.mark.parametrize(
        ("written", "words"),
        [
            (":memory:", "would be gone with the process"),
            ("sqlite:///:memory:", "would be gone with the process"),
            ("file:h.sqlite?mode=ro", "write a path, sqlite:///path, or postgresql://"),
            ("sqlite:h.sqlite", "write a path, sqlite:///path, or postgresql://"),
            ("postgresql:secret", "write a path, sqlite:///path, or postgresql://"),
            ("host=db password=secret dbname=x", "write it as a URL, postgresql://"),
            ("password = secret", "write it as a URL, postgresql://"),
        ],
    )
    def test_what_is_meant_for_another_program_is_refused(
        self, tmp_path, monkeypatch, written, words
    ):
        """No file is called so; the right form is said, and no password shown."""
        monkeypatch.chdir(tmp_path)

        said = refusal(written)

        assert words in said
        assert "secret" not in said
        assert list(tmp_path.iterdir()) == []

    def test_three_slashes_that_were_meant_for_four_are_refused(self, tmp_path, monkeypatch):
        """A path from a folder that is at the root alone: both forms are said."""
        monkeypatch.chdir(tmp_path)
        meant = tmp_path / "h.sqlite"

        said = refusal(f"sqlite:///{str(meant)[1:]}")

        assert f"write sqlite:///{meant}" in said
        assert list(tmp_path.iterdir()) == []

    def test_a_name_with_an_equals_sign_is_a_name(self, tmp_path):
        """Only the keywords of a connection are taken for one."""
        assert parse_location("cost=1.sqlite", tmp_path) == tmp_path / "cost=1.sqlite"

    @pytest.mark.parametrize("written", [5, None, True, b"h.sqlite"])
    def test_what_is_neither_text_nor_path_is_refused(self, written):
        """The sentence says what was expected."""
        with pytest.raises(InvalidParameter, match="path, a URL"):
            History.open(written)

    def test_a_device_is_no_history(self):
        """What is there and no file is refused, and nothing is laid beside it."""
        said = refusal("/dev/null")

        assert "but a device" in said
        assert not Path("/dev/null.lock").exists()

    def test_the_url_of_a_file_names_it(self, file):
        """An open history says where it is."""
        with History.open(file) as history:
            assert history.url == f"sqlite:///{file}"


class TestRefusing:
    """What cannot be a history is left as it is."""

    def test_a_later_version_is_refused_and_untouched(self, file):
        """A history of a later Witan is named with both versions; not a byte of it changes."""
        with History.open(file):
            pass
        raw(file, "INSERT INTO migrations VALUES (99, 0, '9.9')")
        before = file.read_bytes()

        said = refusal(file)

        assert all(fact in said for fact in ("version 99", "Witan 9.9"))
        assert "update Witan" in said
        assert file.read_bytes() == before
        assert {p.name for p in file.parent.iterdir()} <= {file.name, f"{file.name}.lock"}

    def test_a_later_version_in_postgresql_is_refused(self, postgresql_url):
        """The same on a server."""
        with History.open(postgresql_url) as history:
            history.database.execute("INSERT INTO migrations VALUES (99, 0, '9.9')")

        assert "is of version 99" in refusal(postgresql_url)

    def test_tables_of_another_program_are_left_alone(self, file):
        """A database with a table that a history would make is not taken for one."""
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
        """Whatever its tables are called, no table of ours comes beside them."""
        raw(file, made)
        before = file.read_bytes()

        assert "another program" in refusal(file)
        assert file.read_bytes() == before

    def test_migrations_of_another_program_on_a_server_are_left_alone(self, postgresql_url):
        """A server may hold other tables; not one that has the name of ours."""
        with PostgresDatabase(postgresql_url) as database:
            database.execute("CREATE TABLE migrations (version INTEGER PRIMARY KEY)")

        assert "another program" in refusal(postgresql_url)

    def test_other_tables_on_a_server_stand_beside_a_history(self, postgresql_url):
        """A team's database may hold more than one thing."""
        with PostgresDatabase(postgresql_url) as database:
            database.execute("CREATE TABLE customers (id INTEGER)")

        with History.open(postgresql_url) as history:
            assert history.find() == []

    def test_a_history_that_lacks_a_table_is_said(self, file):
        """What was taken out of a history is no history any more."""
        with History.open(file):
            pass
        raw(file, "DROP TABLE standings")

        assert "standings" in refusal(file)

    def test_a_file_that_is_no_database_is_refused(self, file):
        """Text is not SQLite; it stays as it is, and no copy is made."""
        file.write_text("These are my notes.\n" * 100, encoding="utf-8")

        assert "is no SQLite file" in refusal(file)
        assert file.read_text(encoding="utf-8").startswith("These are my notes.")
        assert [p for p in file.parent.iterdir() if "corrupt" in p.name] == []

    def test_a_damaged_file_is_named_and_copied_aside(self, file):
        """Its copy has its bytes, the file stays, and a second opening makes no second copy."""
        fill(file)
        spoil(file)
        before = file.read_bytes()

        said = refusal(file, clock=Noon())
        again = refusal(file)

        copy = file.with_name("history.sqlite.corrupt-20261121-123005")
        assert "is damaged" in said
        assert str(copy) in said
        assert str(copy) in again
        assert "move it away" in said
        assert file.read_bytes() == copy.read_bytes() == before
        assert len(list(file.parent.glob("*.corrupt-*"))) == 1

    @pytest.mark.parametrize("n_bytes", [100, 4096])
    def test_a_file_whose_beginning_is_lost_is_copied_aside(self, file, n_bytes):
        """Zeros where its header was: it was a history once, and is not given up without a copy."""
        fill(file)
        before = bytes(n_bytes) + file.read_bytes()[n_bytes:]
        file.write_bytes(before)

        said = refusal(file, clock=Noon())

        copy = file.with_name("history.sqlite.corrupt-20261121-123005")
        assert "its beginning is lost" in said
        assert str(copy) in said
        assert file.read_bytes() == copy.read_bytes() == before

    def test_a_file_that_was_emptied_beside_its_log_is_no_new_history(self, file):
        """Without a byte, but with a log: both are copied aside, and nothing is begun."""
        file.touch()
        log = file.with_name(f"{file.name}-wal")
        log.write_bytes(b"x" * 100)

        said = refusal(file, clock=Noon())

        copy = file.with_name("history.sqlite.corrupt-20261121-123005")
        assert "lost every byte" in said
        assert copy.with_name(f"{copy.name}-wal").read_bytes() == log.read_bytes() == b"x" * 100
        assert file.stat().st_size == 0

    def test_damage_deeper_inside_is_found_by_a_check(self, file):
        """A page in the middle that a reader does not need: the check names and copies the file."""
        fill(file)
        whole = file.read_bytes()
        middle = len(whole) // 4096 * 3 // 4 * 4096
        file.write_bytes(whole[:middle] + b"\xaa" * 4096 + whole[middle + 4096 :])

        with (
            History.open(file, clock=Noon(), reading=True) as history,
            pytest.raises(HistoryError) as found,
        ):
            history.check()

        assert "is damaged" in str(found.value)
        assert "\n" not in str(found.value)
        assert file.with_name("history.sqlite.corrupt-20261121-123005").exists()

    def test_a_copy_that_cannot_be_made_is_said(self, file):
        """Past the limit on a file's size: one sentence, and no half of a copy."""
        fill(file)
        spoil(file)
        code = (
            "import resource, sys; from witan.history import History\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
            "try: History.open(sys.argv[1])\n"
            "except Exception as error: print(type(error).__name__, error)\n"
        )
        done = subprocess.run(  # noqa: S603 - our own interpreter on our own lines
            [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False
        )

        assert done.stdout.startswith("HistoryError"), done.stderr
        assert "no copy could be made" in done.stdout
        assert "File too large" in done.stdout
        assert [p for p in file.parent.iterdir() if "corrupt" in p.name] == []

    def test_a_copy_has_the_journal_that_the_file_needs(self, file):
        """Without its journal a file that was cut off in a transaction is another."""
        fill(file)
        spoil(file)
        journal = file.with_name(f"{file.name}-journal")
        journal.write_bytes(b"x" * 100)

        copy = copy_aside(file, NOON)

        assert copy.with_name(f"{copy.name}-journal").read_bytes() == b"x" * 100
        assert copy_aside(file, NOON.replace(hour=13)) == copy

    def test_a_sound_history_passes_its_check(self, history):
        """Nothing is said of a history that is sound."""
        history.check()

    @pytest.mark.parametrize("where", ["/dev/null/history.sqlite", "/proc/history.sqlite"])
    def test_a_folder_that_cannot_be_written_is_said(self, where):
        """The sentence names the file, and asks for another folder."""
        said = refusal(where)

        assert said.startswith(where)
        assert "that you may write" in said

    def test_a_folder_is_no_history(self, tmp_path):
        """A folder is refused as one."""
        assert "is a folder" in refusal(tmp_path)
        assert "name a file in it" in refusal(".")

    def test_a_detour_is_not_shown(self, tmp_path):
        """A place is named as it is, unless the way leads through a link to somewhere else."""
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "b").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "a" / "b")

        assert parse_location(tmp_path / "a" / ".." / "h.sqlite") == tmp_path / "h.sqlite"
        through = tmp_path / "link" / ".." / "h.sqlite"
        assert parse_location(through) == through

    def test_a_folder_that_only_others_may_write_is_said(self):
        """Somebody without the right to write is told so."""
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
            done = subprocess.run(  # noqa: S603 - our own interpreter on our own lines
                [sys.executable, "-c", code, f"{folder}/history.sqlite"],
                capture_output=True,
                text=True,
                check=False,
            )

        assert done.stdout.startswith("HistoryError"), done.stderr
        assert "cannot be written: Permission denied" in done.stdout


class TestServers:
    """PostgreSQL that cannot be reached."""

    def test_a_server_that_is_away_is_said(self):
        """Nobody listens there: a sentence, without the password."""
        said = refusal("postgresql://user:secret@127.0.0.1:1/witan")

        assert said.startswith("postgresql://user@127.0.0.1:1/witan: no connection")
        assert "see that the server runs" in said
        assert "secret" not in said

    def test_a_wrong_password_is_said_and_never_shown(self, postgresql_url):
        """The server's refusal is said, and how to give the right one."""
        guarded = postgresql_url.replace("postgres@", f"{GUARDED}:wr%6Fng@")

        said = refusal(guarded)

        assert "the user or the password" in said
        assert "wrong" not in said
        assert "wr%6Fng" not in said

    def test_a_password_is_not_part_of_what_is_shown(self, postgresql_url):
        """Neither the URL of an open history nor what errors call it holds the password."""
        parts = urlsplit(postgresql_url)
        guarded = f"postgresql://{GUARDED}:right@{parts.netloc.split('@')[1]}{parts.path}"
        with History.open(postgresql_url) as history:
            history.database.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {GUARDED}")

        with History.open(guarded) as history:
            assert history.url == guarded.replace(":right", "")
            assert history.journal == "postgresql"

    def test_a_user_without_rights_is_said(self, postgresql_url):
        """Who may not make tables is told what the server says."""
        guarded = postgresql_url.replace("postgres@", f"{GUARDED}:right@")

        assert "permission denied" in refusal(guarded)

    def test_an_encoding_that_does_not_hold_every_text_is_refused(self, postgresql_url):
        """A database in LATIN1 is refused before anything is made in it."""
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

    def test_a_url_that_cannot_be_read_is_said_without_it(self):
        """A malformed URL is not printed: a password may stand anywhere in it."""
        said = refusal("postgresql://user:sec ret@[half/x?nonsense=1")

        assert "sec" not in said
        assert "postgresql://user@host:5432/database" in said

    def test_without_psycopg_the_extra_is_named(self):
        """Where psycopg is not installed, the sentence says how to install it."""
        code = (
            "import sys; sys.modules['psycopg'] = None\n"
            "from witan.history import History\n"
            "History.open('postgresql://127.0.0.1:1/x')\n"
        )

        done = subprocess.run(  # noqa: S603 - our own interpreter on our own lines
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )

        assert MissingExtra.__name__ in done.stderr
        assert "pip install 'witan[postgres]'" in done.stderr


def fill(file):
    with History.open(file) as history, history.recording() as recording:
        for k in range(20):
            for event in told(f"s{k}"):
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


@pytest.fixture
def folder():
    """A folder that everybody may look into."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


def store_one(file):
    with History.open(file) as history, history.recording() as recording:
        for event in told("s1"):
            recording(event)


def said_by(code, file, before=()):
    """What a program says to whom the rights of the file are no formality."""
    user = 65534 if os.geteuid() == 0 and not before else 0
    done = subprocess.run(  # noqa: S603 - our own interpreter on our own lines
        [*before, sys.executable, "-c", code, str(file), str(user)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestRights:
    """What the file and its folder allow."""

    def test_a_folder_that_refuses_writing(self, folder):
        """A file in it is read as it is, and the folder stays as it is."""
        file = folder / "history.sqlite"
        store_one(file)
        file.chmod(0o644)
        (folder / "history.sqlite.lock").unlink()
        folder.chmod(0o555)

        assert said_by(READS, file) == "['s1'] True"
        assert names(folder) == ["history.sqlite"]

    def test_a_file_that_nobody_may_write(self, folder):
        """A backup is read in a folder that may be written; nothing is laid beside it."""
        store_one(folder / "history.sqlite")
        copy = folder / "backups" / "monday.sqlite"
        copy.parent.mkdir()
        copy.parent.chmod(0o777)
        shutil.copy(folder / "history.sqlite", copy)
        copy.chmod(0o444)

        assert said_by(READS, copy) == "['s1'] True"
        assert names(copy.parent) == ["monday.sqlite"]

    def test_what_stands_in_its_log_alone_is_not_passed_over(self, folder):
        """Without the right to work the log in, the file is refused: it would say something old."""
        file = folder / "history.sqlite"
        with History.open(file) as history, history.recording() as recording:
            if history.journal != "wal":
                pytest.skip("this SQLite keeps no log beside the file")
            for event in told("s1"):
                recording(event)
            recording.flush()
            copy = folder / "copy"
            copy.mkdir()
            for suffix in ("", "-wal"):
                shutil.copy(f"{file}{suffix}", copy)
        for path in copy.iterdir():
            path.chmod(0o644)
        copy.chmod(0o555)

        said = said_by(READS, copy / file.name)
        copy.chmod(0o755)

        assert said.startswith("HistoryError")
        assert "folder that you may write" in said

    def test_who_wants_to_write_is_told(self, folder):
        """To record in it is refused with a sentence."""
        file = folder / "history.sqlite"
        store_one(file)
        file.chmod(0o644)
        folder.chmod(0o555)

        said = said_by(WRITES, file)

        assert said.startswith("HistoryError")
        assert "cannot be written" in said

    def test_an_earlier_version_is_not_migrated(self, folder):
        """It is said what to do with a history that would have to be migrated first."""
        file = folder / "history.sqlite"
        store_one(file)
        with History.open(file) as history:
            history.database.execute("DELETE FROM migrations")
        file.chmod(0o444)
        folder.chmod(0o555)

        assert "place that you may write" in said_by(READS, file)


def test_a_file_system_that_refuses_writing(folder):
    """On a disk that is mounted to be read only, even root reads it, and only reads."""
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

    assert said_by(READS, file, bind) == "['s1'] True"
    assert "cannot be written" in said_by(WRITES, file, bind)


FILLED = """
cd "$1" && mount -t tmpfs -o size=2m tmpfs full && cp -p history.sqlite* full/
cat /dev/zero > full/fill 2> /dev/null
shift && exec "$@"
"""


@pytest.mark.slow
def test_a_full_disk(folder):
    """What a file says by itself is read where nothing more fits; a log beside it needs room."""
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
    whole = said_by(READS, folder / "full" / file.name, filled)
    wanted = said_by(WRITES, folder / "full" / file.name, filled)
    with History.open(file) as history, history.recording() as recording:
        for event in told("s2"):
            recording(event)
        recording.flush()
        (folder / "history.sqlite-shm").rename(folder / "aside")
        logged = said_by(READS, folder / "full" / file.name, filled)
        (folder / "aside").rename(folder / "history.sqlite-shm")

    assert whole == "['s1'] True"
    for said in (wanted, logged):
        assert "free some space" in said


class TestReadingOnly:
    """Who only reads makes nothing."""

    def test_what_is_not_there_is_not_made(self, file):
        """A place without a history stays one."""
        with pytest.raises(HistoryError, match="there is no history yet"):
            History.open(file, reading=True)

        assert not file.parent.exists() or names(file.parent) == []

    def test_an_empty_file_stays_empty(self, file):
        """A file without a byte holds no history yet, and is not made one by a reader."""
        file.touch()

        with pytest.raises(HistoryError, match="no history yet"):
            History.open(file, reading=True)

        assert file.stat().st_size == 0

    def test_what_can_be_written_is_opened_as_ever(self, file):
        """The history of a reader that may write can be written, and caches sums."""
        store_one(file)

        with History.open(file, reading=True) as history:
            history.require_writable()
            assert not history.read_only


@pytest.mark.parametrize("place", ["~nosuch-user/x", "x" * 300, "a\0b", "x" * 300 + "/h.sqlite"])
def test_a_place_that_cannot_be_is_said(place):
    """An unknown user's home, a name that is too long, a byte that no path has."""
    with pytest.raises(HistoryError):
        History.open(place)
