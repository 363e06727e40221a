"""``witan ask`` and its record, black box: stored in the history or elsewhere."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from sqlite3 import connect

import pytest

from histories import stages
from recorded import keep, listed
from witan.history import History

pytestmark = pytest.mark.usefixtures("place")


class TestRecording:
    """Sessions are stored unless switched off."""

    def test_a_stored_session_is_unchanged(self, witan, seats):
        """``show`` prints the record that ``ask`` printed."""
        asked = witan("ask", "Is it so?", "--json", "--category", "coding", *seats)
        [line] = listed(witan)

        assert line["session"] == asked.json["session"]
        assert (line["question"], line["category"]) == ("Is it so?", "coding")
        assert line["simulated"] is True
        assert witan("show", line["session"], "--json").out == asked.out

    def test_the_demonstration_is_stored_and_marked(self, witan):
        """It is listed as simulated, unless excluded."""
        witan("demo", "--fast")

        assert [line["simulated"] for line in listed(witan)] == [True]
        assert witan("sessions", "--no-simulated", "--json").json["sessions"] == []

    def test_without_a_history_nothing_is_written(self, witan, seats, place):
        """``--no-history`` leaves no file behind."""
        assert witan("ask", "Is it so?", "--no-history", *seats).status == 0
        assert not place.parent.exists()

    @pytest.mark.parametrize(
        "mistake",
        [
            ["--rule", "bordda"],
            ["--weight", "nobody=2"],
            ["--member", "script:nowhere.toml"],
            ["--continue", "nothing"],
            ["--max-cost", 0.000001, "--price", "ada=1,1"],
            ["--param", "foo=1"],
        ],
        ids=lambda mistake: mistake[0],
    )
    def test_a_question_that_cannot_be_asked_creates_no_history(self, witan, seats, place, mistake):
        """Nor a folder for it; neither do other commands for a missing session."""
        assert witan("ask", "Is it so?", *seats, *mistake).status in (2, 4)
        for command in ("resume", "retry", "rejudge"):
            assert witan(command, "nothing").status == 2
        assert not place.parent.exists()

    def test_a_missing_history_is_created_by_any_session(self, witan, seats, tmp_path):
        """Also by one that judges the answers of a file, or a text."""
        file, places = tmp_path / "told.json", [tmp_path / f"{n}" / "new.sqlite" for n in range(3)]
        witan("ask", "Is it so?", *seats, "--save", file, "--history", places[0])
        witan("rejudge", file, *seats[:-2], "--history", places[1])
        jury = ["--jury" if each == "--member" else each for each in seats[:-2]]
        witan("judge", file, *jury, "--history", places[2])
        counts = [
            len(witan("sessions", "--history", each, "--json").json["sessions"]) for each in places
        ]

        assert counts == [1, 1, 1]

    def test_a_history_is_created_without_a_folder_for_temporary_files(
        self, witan, seats, place, tmp_path, monkeypatch
    ):
        """Such as in a container whose only writable folder is that of the history."""
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))

        assert witan("ask", "Is it so?", *seats).status == 0
        assert place.exists()

    def test_recording_can_be_switched_off_by_setting(self, witan, seats, place, monkeypatch):
        """Until a history is named explicitly."""
        monkeypatch.setenv("WITAN_HISTORY_ENABLED", "false")
        witan("ask", "Is it so?", *seats)
        assert not place.exists()

        witan("ask", "Is it so?", "--history", place, *seats)
        assert place.exists()

    def test_the_option_overrides_the_variable(self, witan, seats, tmp_path, place):
        """``--history`` names another location."""
        witan("ask", "Is it so?", "--history", tmp_path / "other.sqlite", *seats)

        assert not place.exists()
        assert len(listed(witan, "--history", tmp_path / "other.sqlite")) == 1

    def test_a_relative_path_starts_at_its_file(self, witan, seats, tmp_path, monkeypatch):
        """From whatever folder the command runs."""
        monkeypatch.delenv("WITAN_HISTORY")
        (tmp_path / "witan.toml").write_text('[history]\nurl = "ours.sqlite"\n', encoding="utf-8")
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")

        assert witan("ask", "Is it so?", *seats).status == 0
        assert (tmp_path / "ours.sqlite").exists()

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("{tmp}/text.txt", "is not a SQLite file"),
            ("{tmp}", "is a folder"),
            ("mysql://host/x", "is not a location for a history"),
            ("postgresql://me:hush@127.0.0.1:1/x", "no connection"),
        ],
    )
    def test_an_unreadable_history_stops_the_question(self, witan, seats, tmp_path, url, words):
        """No call is made; the message has a remedy and hides the password."""
        (tmp_path / "text.txt").write_text("This is a text, and no history.", encoding="utf-8")
        said = witan("ask", "Is it so?", "--history", url.format(tmp=tmp_path), *seats)

        assert said.status == 2
        assert said.out == ""
        assert words in said.err
        assert said.err.endswith("--no-history\n")
        assert "hush" not in said.err

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
    def test_ctrl_c_before_a_new_history_opens_promises_no_record(self, seats, tmp_path):
        """Another process created and locked it while the members were seated."""
        place, pipe, script = (tmp_path / name for name in ("new.sqlite", "pipe", "ada.toml"))
        os.mkfifo(pipe)
        options = [each.replace(str(script), str(pipe)) for each in seats]
        command = [sys.executable, "-m", "witan", "ask", "Is it so?", *options, "--history", place]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own command
            with pipe.open("w", encoding="utf-8") as reader:  # opened once the script is read
                with History.open(place) as history:
                    history.require_writable(creating=True)
                database = connect(place, isolation_level=None)
                database.execute("BEGIN EXCLUSIVE")
                reader.write(script.read_text(encoding="utf-8"))
            said = process.stderr.readline()
            process.send_signal(signal.SIGINT)
            said += process.stderr.readline()
            database.execute("ROLLBACK")

        assert "another process has locked" in said
        assert "interrupted before the session was opened" in said
        assert database.execute("SELECT COUNT(*) FROM sessions").fetchone() == (0,)
        database.close()

    def test_old_sessions_are_deleted(self, witan, seats, place, monkeypatch):
        """With ``keep_days``, after another session was stored; the new one stays."""
        keep(place, *stages("old"))
        monkeypatch.setenv("WITAN_HISTORY_KEEP_DAYS", "36500")
        witan("ask", "Is it so?", *seats)
        assert len(listed(witan)) == 2

        with closing(connect(place)) as database:
            database.execute("UPDATE sessions SET added_us = 0 WHERE session = 'old'")
            database.commit()
        monkeypatch.setenv("WITAN_HISTORY_KEEP_DAYS", "30")
        witan("ask", "And now?", *seats)

        assert sorted(line["question"] for line in listed(witan)) == ["And now?", "Is it so?"]
