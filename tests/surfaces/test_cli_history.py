"""Sessions in the history, black box: recorded, listed, found by name, taken up, forgotten."""
# ruff: noqa: S603 - every process started here is our own command

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path
from sqlite3 import connect

import pytest

from histories import stages
from scripts import write_council
from sessions import Story
from witan.adapters.history import History, Imported
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session

WITAN = [sys.executable, "-m", "witan"]

HANGS = [{"hang": True}]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A history of the test's own, and no other trace of the machine."""
    for name in [name for name in os.environ if name.startswith("WITAN_") or "API_KEY" in name]:
        monkeypatch.delenv(name)
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "kept" / "history.sqlite"
    monkeypatch.setenv("WITAN_HISTORY", str(path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def seats(tmp_path) -> list[str]:
    """Three scripted members who agree, and a chairman."""
    return write_council(tmp_path)


def listed(witan, *arguments: object) -> list[dict]:
    """The sessions that the history lists."""
    return witan("sessions", "--all", "--json", *arguments).json["sessions"]


def interrupted(*arguments: object) -> tuple[int, str]:
    """Ask, send an interrupt once two have answered; return the status and what was said."""
    with subprocess.Popen(
        [*WITAN, *map(str, arguments), "--events"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        answered = (line for line in process.stdout if '"answer_done"' in line)
        assert len(list(islice(answered, 2))) == 2
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    return process.returncode, err


def keep(place, *pieces) -> None:
    """Record events as a council would have told them."""
    with History.open(place) as history, history.recording() as recording:
        for stage in pieces:
            for event in stage:
                recording(event)


class TestRecording:
    """What is asked is kept, unless that is not wanted."""

    def test_a_session_comes_back_as_it_was(self, witan, seats):
        """What ``show`` prints from the history is the record that ``ask`` printed."""
        asked = witan("ask", "Is it so?", "--json", "--category", "coding", *seats)
        [line] = listed(witan)

        assert line["session"] == asked.json["session"]
        assert (line["question"], line["category"]) == ("Is it so?", "coding")
        assert line["simulated"] is True
        assert witan("show", line["session"], "--json").out == asked.out

    def test_the_demonstration_is_kept_and_marked(self, witan):
        """It is listed as simulated, and only where such sessions are asked for."""
        witan("demo", "--fast")

        assert [line["simulated"] for line in listed(witan)] == [True]
        assert witan("sessions", "--json").json["sessions"] == []
        said = witan("sessions")
        assert said.out == ""
        assert "--all lists them" in said.err

    def test_without_a_history_nothing_is_written(self, witan, seats, place):
        """``--no-history`` leaves no file behind."""
        assert witan("ask", "Is it so?", "--no-history", *seats).status == 0
        assert not place.parent.exists()

    def test_it_can_be_switched_off_for_good(self, witan, seats, place, monkeypatch):
        """A setting does what the option does, until a history is named by hand."""
        monkeypatch.setenv("WITAN_HISTORY_ENABLED", "false")
        witan("ask", "Is it so?", *seats)
        assert not place.exists()

        witan("ask", "Is it so?", "--history", place, *seats)
        assert place.exists()

    def test_another_place_is_named(self, witan, seats, tmp_path, place):
        """``--history`` is stronger than the variable."""
        witan("ask", "Is it so?", "--history", tmp_path / "other.sqlite", *seats)

        assert not place.exists()
        assert len(listed(witan, "--history", tmp_path / "other.sqlite")) == 1

    def test_a_place_in_a_file_starts_from_the_file(self, witan, seats, tmp_path, monkeypatch):
        """A project's relative path is beside its file, wherever the command is run."""
        monkeypatch.delenv("WITAN_HISTORY")
        (tmp_path / "witan.toml").write_text('[history]\nurl = "ours.sqlite"\n', encoding="utf-8")
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")

        assert witan("ask", "Is it so?", *seats).status == 0
        assert (tmp_path / "ours.sqlite").exists()

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("{tmp}/text.txt", "is no SQLite file"),
            ("{tmp}", "is a folder"),
            ("mysql://host/x", "is no place for a history"),
            ("postgresql://me:hush@127.0.0.1:1/x", "no connection"),
        ],
    )
    def test_a_history_that_cannot_be_opened_stops_it(self, witan, seats, tmp_path, url, words):
        """Nobody is asked; the sentence says how to do without, and hides the password."""
        (tmp_path / "text.txt").write_text("This is a text, and no history.", encoding="utf-8")
        said = witan("ask", "Is it so?", "--history", url.format(tmp=tmp_path), *seats)

        assert said.status == 2
        assert said.out == ""
        assert words in said.err
        assert said.err.endswith("--no-history\n")
        assert "hush" not in said.err

    def test_what_the_history_did_not_keep_is_kept_in_a_file(self, tmp_path, place):
        """The answer is printed, the loss is said, and the record is where it says."""
        witan_ask = [*WITAN, "ask", "Is it so?", *write_council(tmp_path, ada=SLOW)]
        with History.open(place):
            pass
        with subprocess.Popen(
            [*witan_ask, "--events"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert "session_opened" in process.stdout.readline()
            with closing(connect(place, timeout=20)) as spoilt:
                spoilt.execute("ALTER TABLE events RENAME TO gone")
            _, err = process.communicate(timeout=60)

        assert process.returncode == 0
        told = err.splitlines()[-1]
        assert told.startswith("the history did not keep the session: ")
        path = told.rpartition("; its record is ")[2]
        assert path.startswith(str(tmp_path / "state"))
        assert json.loads(Path(path).read_text(encoding="utf-8"))["status"] == "complete"

    def test_sessions_beyond_their_age_are_forgotten(self, witan, seats, place, monkeypatch):
        """With ``keep_days`` an old session goes once another was recorded; the new one stays."""
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


SLOW = {"answer": [{"text": "Ada says so.", "seconds": 3.0}]}
"""A member that leaves time for something to go wrong."""


class TestNames:
    """A session is found by as little of its name as tells it from others."""

    @pytest.fixture(autouse=True)
    def _three(self, place):
        keep(place, *(s for name in ("20261121-1a", "20261121-1b", "q7") for s in stages(name)))

    def test_a_beginning_is_enough(self, witan):
        """One letter will do where no other session begins so."""
        assert "20261121-1b" in witan("show", "20261121-1b").lines[0]
        assert "q7" in witan("show", "q").lines[0]

    def test_an_ambiguous_beginning_names_the_candidates(self, witan):
        """What begins several names is refused, and those are named."""
        said = witan("show", "2026")

        assert said.status == 2
        assert "begins the names of 2 sessions: 20261121-1a, 20261121-1b" in said.err

    @pytest.mark.parametrize("command", ["show", "recount", "resume"])
    def test_an_unknown_one_names_the_nearest(self, witan, place, command):
        """The sentence says where was looked, and what may have been meant."""
        said = witan(command, "20261121-1c")

        assert said.status == 2
        assert said.err.startswith(f"witan: {place}: there is no session '20261121-1c' here")
        assert "did you mean 20261121-1" in said.err

    @pytest.mark.parametrize("name", ["gone.json", "folder/gone"])
    def test_what_looks_like_a_file_is_one(self, witan, name):
        """A path or ``.json`` is never looked up in the history."""
        assert witan("show", name).err.startswith(f"witan: {name}: cannot be read")

    def test_a_file_that_exists_comes_first(self, witan, tmp_path):
        """A file may be called like a session."""
        story = Story("a", "b", "c", session="filed").answers(a="Yes.", b="No.", c="Or so.")
        (tmp_path / "q7").write_text(session_to_json(Session.of(story)), encoding="utf-8")

        assert witan("show", "q7").lines[0].startswith("filed")

    def test_the_last_is_the_latest_that_was_asked(self, witan, seats):
        """``last`` needs no name at all."""
        asked = witan("ask", "And now?", "--json", *seats)

        assert witan("show", "last", "--json").out == asked.out

    def test_a_session_is_continued_by_name(self, witan, seats):
        """``--continue`` goes on from a closing text in the history."""
        witan("ask", "Is it so?", *seats)
        said = witan("ask", "And then?", "--continue", "last", "--json", *seats)

        [opened, *_] = said.json["events"]
        assert [turn["text"] for turn in opened["conversation"]] == ["Is it so?", "All told: so."]
        assert witan("plan", "And then?", "--continue", "last", *seats).status == 0

    def test_a_session_is_counted_again_by_name(self, witan):
        """``recount`` takes a rule of one's own."""
        [found] = witan("recount", "q7", "--rule", "schulze", "--json").json["sessions"]

        assert (found["session"], found["rule"]) == ("q7", "schulze")

    def test_no_history_is_made_by_looking_for_one(self, witan, tmp_path):
        """A place that is misspelt is said, and stays empty."""
        said = witan("sessions", "--history", tmp_path / "none.sqlite")

        assert said.status == 2
        assert "there is no history yet" in said.err
        assert not (tmp_path / "none.sqlite").exists()


class TestImported:
    """What came in as ballots is shown and counted as far as it is known."""

    @pytest.fixture(autouse=True)
    def _imported(self, place):
        from elections import ballot

        cast = ("x: y > z", "y: x > z", "z: x > y")
        ballots = tuple(ballot(line, session="old") for line in cast)
        answers = {"x": "The first.", "y": "The second.", "z": "The third."}
        with History.open(place) as history:
            one = Imported("old", question="Which?", ballots=ballots, answers=answers)
            history.add([one], "file.jsonl", "digest")

    def test_it_is_shown_with_its_standings(self, witan):
        """Where it is from, the question, the answers, the outcome."""
        said = witan("show", "old")

        assert said.status == 0
        for part in ("old · imported from file.jsonl", "Which?", "The second.", "x leads"):
            assert part in said.out

    def test_it_is_counted_by_another_rule(self, witan):
        """``recount`` counts its ballots, without a reviewer too."""
        [found] = witan("recount", "old", "--rule", "borda", "--json").json["sessions"]
        [less] = witan("recount", "old", "--without", "y", "--json").json["sessions"]

        assert (found["rule"], found["leaders"]) == ("borda", ["x"])
        assert less["n_ballots"] == 2

    @pytest.mark.parametrize(
        "arguments",
        [["resume", "old"], ["show", "old", "--events"], ["recount", "old", "--without", "q"]],
    )
    def test_what_it_does_not_have_is_said(self, witan, arguments):
        """It has no events to go on from, and nobody voted who did not."""
        said = witan(*arguments)

        assert said.status == 2
        assert len(said.err.splitlines()) == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signals to a process")
class TestResume:
    """An interrupted session is taken up from the history."""

    def test_ctrl_c_says_how_to_go_on_and_that_works(self, witan, tmp_path):
        """Two of three answers are kept; resuming asks the third alone, and ends the session."""
        status, err = interrupted(
            "ask", "Is it so?", *write_council(tmp_path, cyd={"answer": HANGS})
        )

        assert status == 130
        [line] = listed(witan)
        assert line["status"] == "interrupted"
        again = f"witan resume {line['session']}"
        assert err == f"interrupted; 2 of 3 answers kept; resume with: {again}\n"

        write_council(tmp_path, ada={"answer": HANGS})
        said = witan(*again.split()[1:])

        assert (said.status, said.out) == (0, "All told: so.\n")
        assert [line["status"] for line in listed(witan)] == ["complete"]

    def test_the_command_it_names_finds_the_place(self, tmp_path):
        """Where the history was named by hand, the command to go on names it, too."""
        elsewhere = tmp_path / "else where.sqlite"
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        _, err = interrupted("ask", "Is it so?", "--history", elsewhere, *seats)

        assert err.endswith(f" --history '{elsewhere}'\n")

    def test_a_file_is_written_as_well_where_one_is_named(self, witan, tmp_path):
        """``--save`` keeps its word beside the history."""
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        interrupted("ask", "Is it so?", "--save", "half.json", *seats)

        assert witan("show", "half.json", "--json").out == witan("show", "last", "--json").out

    def test_in_vain_it_can_be_taken_up_again(self, witan, tmp_path):
        """Where nothing was added the session is not closed, and nothing is written."""
        interrupted("ask", "Is it so?", *write_council(tmp_path, cyd={"answer": HANGS}))
        before = witan("show", "last", "--json").out
        down = [{"error": "is down", "status": 401}]
        every = {"answer": down, "review": down, "synthesis": down}
        write_council(tmp_path, ada=every, bob=every, cyd=every, chair=every)

        said = witan("resume", "last")

        [line] = listed(witan)
        words = f"nothing more came of it: {line['session']} is left as it was, to be resumed\n"
        assert said.err.endswith(words)
        assert (line["status"], witan("show", "last", "--json").out) == ("interrupted", before)
        write_council(tmp_path)
        assert witan("resume", "last").out == "All told: so.\n"

    def test_what_was_kept_in_a_file_comes_into_the_history(self, witan, tmp_path, place):
        """A file that is taken up is completed in both places."""
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        interrupted("ask", "Is it so?", "--no-history", "--save", "half.json", *seats)
        assert not place.exists()

        write_council(tmp_path)
        assert witan("resume", "half.json").status == 0

        assert [line["status"] for line in listed(witan)] == ["complete"]
        assert witan("show", "half.json", "--json").out == witan("show", "last", "--json").out

    def test_one_s_own_programs_need_no_trust(self, witan, place, tmp_path):
        """What the history recorded is resumed; a record from elsewhere needs ``--trust``."""
        story = Story("ada", "bob", "cyd", seats=tuple(_program(n) for n in ("ada", "bob", "cyd")))
        session = Session.of(story.answers(ada="Yes.", bob="No."))
        keep(place, session.events)

        own = witan("resume", "last")
        assert "--trust" not in own.err
        assert witan("show", "last").lines[0].startswith("s1 · ")

        (tmp_path / "theirs.json").write_text(session_to_json(session), encoding="utf-8")
        theirs = witan("resume", "theirs.json", "--no-history")
        assert theirs.status == 2
        assert "allow it with --trust" in theirs.err


def _program(name: str):
    from witan.deliberation.ports import Seat

    return Seat(name, "cmd:true", "cmd")


class TestSessions:
    """The list can be searched."""

    @pytest.fixture(autouse=True)
    def _several(self, place):
        from datetime import timedelta

        from histories import ASKED

        questions = ("Which hash map?", "Which array?", "Whose [31mred[0m\nline?")
        for k, question in enumerate(questions):
            at = ASKED + timedelta(days=k)
            told = [*stages(f"s{k}", at=at, question=question, category="coding" if k else None)]
            keep(place, *(told[:-1] if k == 2 else told))

    @pytest.mark.parametrize(
        ("arguments", "found"),
        [
            ([], ["s2", "s1", "s0"]),
            (["which"], ["s1", "s0"]),
            (["HASH", "map"], ["s0"]),
            (["--since", "2026-11-22"], ["s2", "s1"]),
            (["--until", "2026-11-22T00:00:00Z"], ["s0"]),
            (["--category", "coding", "--limit", "1"], ["s2"]),
            (["--status", "interrupted"], ["s2"]),
            (["--simulated"], []),
        ],
    )
    def test_it_is_chosen_from(self, witan, arguments, found):
        """Text, time, category and status narrow it down, the latest first."""
        said = witan("sessions", "--json", *arguments)

        assert [line["session"] for line in said.json["sessions"]] == found

    def test_a_line_is_a_line_whatever_was_asked(self, witan):
        """A question of several lines, or with escape sequences, stays on its own, and is shown."""
        said = witan("sessions")

        assert len(said.lines) == 4
        assert "\x1b" not in said.out
        assert said.err == ""

    def test_more_than_are_listed_are_mentioned(self, witan):
        """The limit does not pass unseen."""
        assert "there are more" in witan("sessions", "--limit", "2").err

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--since", "yesterday"],
            ["--since", "3x"],
            ["--since", "99999999999d"],
            ["--since", "2026-11-23", "--until", "2026-11-22"],
            ["--limit", "0"],
            ["--limit", "99999999999999999999"],
            ["--status", "done"],
            ["--simulated", "--all"],
        ],
    )
    def test_misuse_is_one_sentence(self, witan, arguments):
        """A time, number or status that is none is refused."""
        said = witan("sessions", *arguments)

        assert said.status == 2
        assert said.out == ""
        assert len(said.err.splitlines()) == 1


class TestScripts:
    """Sessions in which scripts sat are kept, and listed where they are asked for."""

    def test_a_list_without_them_says_that_they_are_there(self, witan, place):
        """With nothing else kept, the history does not pass for empty."""
        keep(place, *stages("s1", simulated=True))
        said = witan("sessions")

        assert (said.status, said.out) == (0, "")
        assert "no session of models yet" in said.err
        assert "--all lists them" in said.err
        assert "s1" in witan("sessions", "--all").out


class TestForget:
    """What is forgotten is gone."""

    @pytest.fixture(autouse=True)
    def _two(self, place):
        keep(place, *stages("s1", question="Who is Mallory?"), *stages("s2"))

    def test_nothing_of_it_is_left(self, witan, place):
        """Neither the list nor the file has a word of it."""
        said = witan("forget", "s1", "--yes")

        assert (said.status, said.out) == (0, "1 session forgotten\n")
        assert [line["session"] for line in listed(witan)] == ["s2"]
        assert all(b"Mallory" not in path.read_bytes() for path in place.parent.iterdir())

    def test_without_a_terminal_it_wants_to_be_told(self, witan):
        """Piped, nothing is deleted without ``--yes``."""
        said = witan("forget", "--all")

        assert said.status == 2
        assert "2 sessions would be deleted for good" in said.err
        assert len(listed(witan)) == 2

    @pytest.mark.parametrize(
        ("arguments", "left"),
        [(["--before", "2026-11-21"], 2), (["--before", "2026-11-22"], 0), (["--all"], 0)],
    )
    def test_many_go_at_once(self, witan, arguments, left):
        """By age, or all of them."""
        said = witan("forget", "--yes", "--json", *arguments)

        assert said.json["forgotten"] == 2 - left
        assert len(listed(witan)) == left

    @pytest.mark.parametrize("arguments", [[], ["s1", "--all"], ["nobody", "--yes"]])
    def test_misuse_deletes_nothing(self, witan, arguments):
        """Nothing named, too much named, or a name that is not there."""
        assert witan("forget", *arguments).status == 2
        assert len(listed(witan)) == 2


class TestDoctor:
    """It says where sessions are kept."""

    def test_it_names_the_history(self, witan, place):
        """Where it is, what it is, and how much is in it."""
        keep(place, *stages("s1"), next(stages("s2")))
        said = witan("doctor", "--offline", "--json").json["history"]

        assert said["place"] == str(place)
        assert said["found"]["version"] >= 1
        assert (said["found"]["n_sessions"], said["found"]["n_interrupted"]) == (2, 1)
        assert f"History at {place}" in witan("doctor", "--offline").out

    def test_it_makes_none(self, witan, place):
        """Looking leaves nothing behind."""
        assert "not there yet" in witan("doctor", "--offline").out
        assert not place.exists()

    def test_one_that_cannot_be_opened_is_a_problem(self, witan, place, monkeypatch):
        """Asking would be refused, so the council could not sit; nor is a password shown."""
        place.parent.mkdir()
        place.write_text("This is a text, and no history at all.", encoding="utf-8")
        said = witan("doctor", "--offline")
        assert said.status == 2
        assert "is no SQLite file" in said.out

        monkeypatch.setenv("WITAN_HISTORY", "postgresql://me:hush@127.0.0.1:1/x")
        assert "hush" not in witan("doctor").out
