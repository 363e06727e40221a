"""Deleted sessions, by age or on a page, leave no copy behind."""

from contextlib import closing
from sqlite3 import connect

import anyio
import httpx2
import pytest

from histories import session_events, stages
from processes import wait_until
from recorded import keep
from served import serving_process
from services import write_config
from witan import Council, History
from witan.deliberation.session import Session
from witan.files.session_files import write_session


@pytest.fixture
def place(tmp_path):
    """A history with one session."""
    keep(tmp_path / "history.sqlite", *stages("old"))
    return tmp_path / "history.sqlite"


@pytest.fixture
def rescued_record(tmp_path, monkeypatch):
    """The record of that session, written on an interrupt."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "state" / "witan" / "interrupted"
    folder.mkdir(parents=True)
    write_session(Session.of(session_events("old")), folder / "old.json")
    return folder / "old.json"


def serving(tmp_path, place, more=""):
    """A server of three scripted members."""
    file = write_config(tmp_path, more)
    return serving_process("--config", file, "--history", place, cwd=tmp_path)


def backdate(place, session):
    """Move a session's arrival back by decades."""
    with closing(connect(place, timeout=20)) as database:
        database.execute("UPDATE sessions SET added_us = 0 WHERE session = ?", [session])
        database.commit()


async def ask_council(file, place):
    """Ask the configured council."""
    async with Council.from_config(file, history=place) as council:
        await council.ask("Is it so?")


def sessions(place):
    """Name the sessions of a history."""
    with History.open(place, reading=True) as history:
        return {found.session for found in history.find()}


@pytest.mark.slow
def test_a_server_deletes_old_sessions(tmp_path, place, rescued_record):
    """At start, rescued records included, and after each session."""
    backdate(place, "old")
    with (
        serving(tmp_path, place, "[history]\nkeep_days = 1\n") as (url, _),
        httpx2.Client(base_url=url, timeout=60) as client,
    ):
        wait_until(lambda: "old" not in sessions(place) and not rescued_record.exists())

        first, second = (
            client.post("/api/sessions?wait=30", json={"question": "Is it so?"}).json()["session"]
            for _ in range(2)
        )
        backdate(place, first)
        client.post("/api/sessions?wait=30", json={"question": "And now?"})
        wait_until(lambda: first not in sessions(place))

        assert second in sessions(place)


def test_a_configured_council_deletes_old_sessions(tmp_path, place, rescued_record):
    """From Python, too; without `keep_days` everything stays."""
    backdate(place, "old")
    file = write_config(tmp_path)
    anyio.run(ask_council, file, place)
    assert "old" in sessions(place)

    file = write_config(tmp_path, "[history]\nkeep_days = 1\n")
    anyio.run(ask_council, file, place)
    assert "old" not in sessions(place)
    assert not rescued_record.exists()


def test_an_import_deletes_old_sessions(witan, tmp_path, place, monkeypatch):
    """Imported sessions count from their arrival, not from the date of the question."""
    backdate(place, "old")
    monkeypatch.setenv("WITAN_HISTORY_KEEP_DAYS", "1")
    record = tmp_path / "new.json"
    write_session(Session.of(session_events("new")), record)

    assert witan("import", record, "--history", place).status == 0
    assert sessions(place) == {"new"}


@pytest.mark.slow
def test_deleting_a_session_on_its_page_deletes_its_rescue_file(tmp_path, place, rescued_record):
    """As with the request and the command."""
    with serving(tmp_path, place) as (url, _), httpx2.Client(base_url=url, timeout=60) as client:
        reply = client.post(
            "/sessions/old/forget", data={"session": "old"}, headers={"Origin": url}
        )

    assert reply.status_code == 303
    assert sessions(place) == set()
    assert not rescued_record.exists()
