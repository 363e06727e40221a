"""A file with flipped bytes is reported, not written to, and readable sessions can be rescued."""

import re
import shlex

import pytest

from histories import session_events
from recorded import keep
from services import write_config
from witan.errors import HistoryError
from witan.history import History

SESSIONS = [f"s{k}" for k in range(40)]


@pytest.fixture
def full(tmp_path):
    """A history of forty sessions, all of it in the file."""
    file = tmp_path / "history.sqlite"
    keep(file, *map(session_events, SESSIONS))
    return file


def flip(file, at, length):
    """Flip so many bytes."""
    data = bytearray(file.read_bytes())
    for place in range(at, at + length):
        data[place] ^= 0xFF
    file.write_bytes(data)


def flip_text(file, words, length=8):
    """Flip bytes of a text that is stored."""
    flip(file, file.read_bytes().index(words), length)


def tell(history, name):
    with history.recording() as recording:
        for event in session_events(name):
            recording(event)


def test_a_file_with_damaged_pages_is_not_written_to(full):
    """Not a byte changes, and the message has a remedy."""
    flip(full, 40 * 4096, 2 * 4096)
    before = full.read_bytes()

    with pytest.raises(HistoryError, match="is damaged") as refused:
        History.open(full)

    assert full.read_bytes() == before
    assert "is unchanged" in str(refused.value)


def test_the_suggested_commands_rescue_readable_sessions(full, witan, tmp_path, monkeypatch):
    """All but the damaged one are exported and imported into a new history."""
    monkeypatch.chdir(tmp_path)
    flip_text(full, b'{"event":"answer_done"')
    reader = witan("sessions", "--history", full)
    doctor = witan("doctor", "--history", full)
    export, again = re.findall(r"witan (export .*?|import .*?)(?:,|$)", doctor.out, re.MULTILINE)

    exported = witan(*shlex.split(export))
    full.rename(tmp_path / "away")
    imported = witan(*shlex.split(again), "--history", full)

    assert reader.status == 0
    assert (exported.status, imported.status) == (1, 0)
    assert "1 session: s" in exported.err
    with History.open(full) as history:
        history.check()
        assert len(history.find(simulated=None)) == len(SESSIONS) - 1


@pytest.mark.parametrize("mask", [0xFF, 0x5A])
@pytest.mark.parametrize("command", [["sessions"], ["show", "last"], ["export"]])
def test_a_damaged_schema_is_reported_as_damage(tmp_path, witan, monkeypatch, mask, command):
    """Without a readable table the message suggests no export, but what helps."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "history.sqlite"
    keep(file, session_events("s1"))
    data = bytearray(file.read_bytes())
    for place in range(2 * 4096, len(data), 61):
        data[place] ^= mask
    file.write_bytes(data)

    said = witan(*command, "--history", file)
    asked = witan("ask", "Is it so?", "--config", write_config(tmp_path), "--history", file)

    for run in (said, asked):
        assert (run.status, run.out) == (2, "")
        assert "is damaged" in run.err
        assert "restore a backup" in run.err
        assert "cannot be written" not in run.err
        assert "witan export" not in run.err
    assert file.read_bytes() == data


def test_a_missing_column_is_damage(full):
    """A flipped byte in the name of a column stops writing."""
    data = full.read_bytes()
    at = data.index(b"question", data.index(b"CREATE TABLE sessions"))
    full.write_bytes(data[:at] + b"Q0estion" + data[at + 8 :])
    with History.open(full) as history:
        with pytest.raises(HistoryError, match="is damaged"):
            history.find(simulated=None)
        with pytest.raises(HistoryError, match="is damaged"):
            tell(history, "s41")


def test_no_question_is_asked_with_a_damaged_history(full, witan, tmp_path, monkeypatch):
    """Its session could not be stored."""
    monkeypatch.chdir(tmp_path)
    flip(full, 40 * 4096, 2 * 4096)
    config = write_config(tmp_path)

    said = witan("ask", "Is it so?", "--config", config, "--history", full)

    assert (said.status, said.out) == (2, "")
    assert "is damaged" in said.err


@pytest.mark.parametrize("words", [b'{"event":"answer_done"', b'"ballot_cast","seq"'])
def test_an_invalid_text_is_damage(full, words):
    """Readers and a check report it; the remedy is not a retry."""
    flip_text(full, words)
    with History.open(full) as history:
        with pytest.raises(HistoryError, match="is damaged") as refused:
            list(history.sessions())
        assert "try again" not in str(refused.value)
        with pytest.raises(HistoryError, match="is damaged"):
            history.check()


def test_invalid_json_is_damage(full):
    """With its location."""
    data = full.read_bytes()
    at = data.index(b'{"event":"answer_done"')
    full.write_bytes(data[:at] + b"x" + data[at + 1 :])
    with History.open(full) as history:
        with pytest.raises(HistoryError, match=r"damaged.* event \d+"):
            list(history.sessions())
        with pytest.raises(HistoryError, match=r"event \d+ .* is not JSON"):
            history.check()


def test_damage_stops_all_writing(full):
    """A connection that read a damaged text refuses to write."""
    flip_text(full, b'{"event":"answer_done"')
    with History.open(full) as history:
        with pytest.raises(HistoryError):
            list(history.sessions())
        with pytest.raises(HistoryError, match="is damaged"):
            history.forget("s1")
