"""``witan import``, black box: each file is imported once, whole or not at all."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from gzip import compress
from pathlib import Path
from threading import Thread

import httpx2
import pytest

from scripts import write_council
from served import served
from services import councils, write_config
from witan.history import History

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"

FILES = {
    "prd_vicuna80/pairwise.csv": (40, 4_000, 880),
    "governance_listwise/trials.jsonl": (15, 60, 0),
    "ori_listwise_run/689b624a.jsonl": (1, 4, 0),
    "wildbench/pointwise.csv": (1_024, 2_048, 0),
}
"""Sessions, ballots by models and ballots by people in each file of the shared data."""


def ballot(session="q1", reviewer="r1", **fields):
    return {"session": session, "reviewer": reviewer, "ranking": ["x", "y"], **fields}


def listed(witan, place):
    said = witan("sessions", "--limit", 5000, "--history", place, "--json")
    return sorted(said.json["sessions"], key=lambda one: one["session"])


class TestImport:
    def test_a_likely_best_that_no_test_tells_apart_says_so(self, witan, write, place):
        """A probability above the level of the test does not read as a clear lead."""
        ballots = [
            {"session": "q1", "reviewer": f"r{number}", "grades": {"x": 9, "y": grade, "z": 3}}
            for number, grade in enumerate((7, 8, 8, 9, 8))
        ]
        witan("import", write("votes.jsonl", *ballots), "--history", place)

        shown = witan("show", "last", "--history", place).out

        assert (
            "Too close to call. x leads, 97% likely to be best, but not ahead beyond noise" in shown
        )

    def test_last_works_with_imports_alone(self, witan, write, place):
        """``last`` is the first of the list, for every command that takes a session."""
        ballots = [{"session": "q1", "reviewer": r, "ranking": ["x", "y"]} for r in ("a", "b")]
        witan("import", write("votes.jsonl", *ballots), "--history", place)
        listed = witan("sessions", "--json", "--history", place).json["sessions"]

        assert [line["session"] for line in listed] == ["q1"]
        assert witan("show", "last", "--json", "--history", place).json["session"] == "q1"
        counted = witan("recount", "last", "--json", "--history", place).json["sessions"]
        assert [outcome["session"] for outcome in counted] == ["q1"]
        assert witan("export", "last", "--history", place).json["session"] == "q1"
        for command in ("retry", "rejudge"):
            said = witan(command, "last", "--history", place)
            assert said.status == 2
            assert "was imported as ballots" in said.err

    def test_imports_are_listed_by_their_time(self, witan, write, place, tmp_path):
        """Their own, else that of the import; over HTTP and for ``last``, too."""
        old = [ballot("old", reviewer=r, at="2020-01-01T00:00:00Z") for r in ("a", "b")]
        witan("ask", "Is it so?", *write_council(tmp_path), "--history", place)
        witan("import", write("old.jsonl", *old), "--history", place)
        witan("import", write("new.jsonl", ballot("new")), "--history", place)
        lines = witan("sessions", "--json", "--history", place).json["sessions"]
        sits = write_config(tmp_path)
        with History.open(place) as history, served(councils(sits, history)) as server:
            shown = httpx2.get(f"{server.url}/api/sessions", timeout=60).json()["sessions"]

        names = [line["session"] for line in lines]
        rows = witan("sessions", "--limit", 2, "--history", place).lines[3:5]
        assert ["imported from new.jsonl" in row for row in rows] == [True, False]
        assert [line["imported"] for line in lines] == [True, False, True]
        assert (names[0], names[2]) == ("new", "old")
        assert [line["session"] for line in shown] == names
        assert witan("show", "last", "--json", "--history", place).json["session"] == "new"

    def test_the_summary_counts_the_import(self, witan, write, place):
        """Sessions and ballots, people's apart."""
        file = write("votes.jsonl", ballot(), ballot("q2"), ballot(reviewer="ines", kind="human"))
        said = witan("import", file, "--history", place)

        assert (said.status, said.err) == (0, "")
        assert said.out == f"{file}: 2 sessions · 3 ballots, 1 by people\n"
        assert [one["session"] for one in listed(witan, place)] == ["q1", "q2"]

    def test_a_session_named_last_is_refused(self, witan, write, place):
        """It would hide the latest one: the whole file is refused."""
        file = write("votes.jsonl", ballot(), ballot("last"))
        said = witan("import", file, "--history", place)

        assert said.status == 2
        assert all(fact in said.err for fact in ("'last'", "means the latest"))
        assert "--prefix" in said.err
        assert listed(witan, place) == []
        assert witan("import", file, "--prefix", "mine-", "--history", place).status == 0

    def test_a_repeated_import_changes_nothing(self, witan, write, place):
        """A message says so, and the export is identical."""
        file = write("votes.jsonl", ballot())
        witan("import", file, "--history", place)
        before = witan("export", "--history", place).out
        said = witan("import", file, "--history", place)

        assert (said.status, said.out) == (
            0,
            f"{file}: nothing new; imported before, with 1 session\n",
        )
        assert witan("export", "--history", place).out == before

    def test_a_longer_file_adds_only_new_sessions(self, witan, write, place):
        """Those with the same ballots stay."""
        witan("import", write("a.jsonl", ballot()), "--history", place)
        file = write("b.jsonl", ballot(), ballot("q2"))
        said = witan("import", file, "--history", place)

        assert all(fact in said.out for fact in (f"{file}: 1 session", "1 session already stored"))

    def test_a_longer_file_on_the_same_scale_keeps_its_sessions(self, witan, write, place):
        """However sure that scale is: one grade of a hundred decides it in the longer file."""
        grades = [{"x": 9, "y": 2}, *({"x": 5, "y": n % 5 + 1} for n in range(99))]
        lines = [{"session": f"q{n}", "reviewer": "r", "grades": g} for n, g in enumerate(grades)]
        witan("import", write("a.jsonl", *lines[:9]), "--history", place)
        said = witan("import", write("b.jsonl", *lines), "--history", place)

        assert "all but 1 of 200 grades fit 1-5" in said.err
        assert "91 sessions · 91 ballots · 9 sessions already stored" in said.out

    def test_ballots_that_an_earlier_version_stored_are_known_again(self, witan, write, place):
        """It stored the scale 1-10 with them where it had recognised it."""
        lines = [{"session": f"q{n}", "reviewer": "r", "grades": {"x": 9, "y": n}} for n in (1, 2)]
        witan("import", write("a.jsonl", lines[0]), "--history", place)
        with closing(sqlite3.connect(place)) as database, database:
            [(body,)] = database.execute("SELECT body FROM ballots")
            earlier = f'{body.removesuffix("}")},"scale":"1-10"}}'
            database.execute("UPDATE ballots SET body = ?", (earlier,))
        said = witan("import", write("b.jsonl", *lines), "--history", place)

        assert "1 session · 1 ballot · 1 session already stored" in said.out

    def test_several_files_are_summed_up(self, witan, write, place):
        """A line per file and a total."""
        files = [write(f"{name}.jsonl", ballot(name)) for name in ("q1", "q2")]
        said = witan("import", *files, "--history", place)

        assert said.lines[-1] == "in all: 2 sessions · 2 ballots"

    def test_a_folder_of_conversations_is_imported(self, witan, tmp_path, place):
        """Every saved conversation; the folder has one line."""
        folder = tmp_path / "conversations"
        folder.mkdir()
        stages = {
            "stage1": [{"model": "x", "response": "X."}, {"model": "y", "response": "Y."}],
            "stage2": [{"model": "x", "ranking": "FINAL RANKING:\n1. Response B\n2. Response A"}],
            "stage3": {"model": "x", "response": "So it is settled."},
        }
        for name in ("c1", "c2"):
            asked = {"role": "user", "content": f"What of {name}?"}
            record = {"id": name, "messages": [asked, {"role": "assistant", **stages}]}
            (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
        said = witan("import", folder, "--history", place)

        assert said.out == f"{folder}: 2 sessions · 2 ballots\n"
        found = witan("sessions", "settled", "--history", place, "--json").json["sessions"]
        assert {one["session"] for one in found} == {"c1", "c2"}

    def test_options_fill_in_missing_fields(self, witan, write, place):
        """Category, time, prefix, questions and answers; fields of the file win."""
        file = write("votes.jsonl", ballot(), ballot("q2", category="law"))
        answers = write("answers.jsonl", {"session": "q1", "candidate": "x", "text": "Ex."})
        questions = write("questions.jsonl", {"session": "q1", "text": "Why?"})
        beside = ["--answers", answers, "--questions", questions]
        more = ["--category", "maths", "--at", "2026-01-31", "--prefix", "mine-"]
        witan("import", file, *beside, *more, "--history", place)
        found = {one["session"]: one for one in listed(witan, place)}

        assert set(found) == {"mine-q1", "mine-q2"}
        assert [found[f"mine-{name}"]["category"] for name in ("q1", "q2")] == ["maths", "law"]
        assert found["mine-q1"]["question"] == "Why?"
        assert found["mine-q1"]["at"].startswith("2026-01-31T00:00:00")
        assert "Ex." in witan("show", "mine-q1", "--history", place).out

    def test_columns_and_kind_can_be_named(self, witan, write, place):
        """For a table with other headers."""
        file = write("t.csv", "task,judge,candidate,rank", "q1,r1,x,1", "q1,r1,y,2")
        named = ["--column", "session=task", "--column", "reviewer=judge", "--format", "csv"]

        assert witan("import", file, *named, "--history", place).status == 0
        assert [one["session"] for one in listed(witan, place)] == ["q1"]

    def test_a_person_s_vote_is_imported_with_its_session(self, witan, tmp_path, place):
        """Also into an existing session without that vote."""
        record, voted = tmp_path / "demo.json", tmp_path / "voted.jsonl"
        elsewhere = tmp_path / "elsewhere.sqlite"
        witan("demo", "--save", record, "--history", place, "--fast", "--quiet")
        witan("import", record, "--history", elsewhere)
        ranking = "aster > birch > cedar > dogwood > elder"
        assert (
            witan(
                *("vote", "last", "--as", "ines", "--ranking", ranking), "--history", elsewhere
            ).status
            == 0
        )
        witan("export", "--history", elsewhere, "-o", voted)
        said = witan("import", voted, "--history", place)

        assert all(fact in said.out for fact in (f"{voted}: 0 sessions", "1 ballot by people"))
        assert witan("export", "--history", place).out == voted.read_text(encoding="utf-8")


class TestUnreadable:
    """Unreadable input is reported and skipped."""

    def test_bad_lines_are_reported_and_others_imported(self, witan, write, place):
        """With file, line and field on standard error; the status is 0."""
        file = write("votes.jsonl", ballot(), {"session": "q2"}, "{", ballot("q3"))
        said = witan("import", file, "--history", place)

        assert said.status == 0
        assert f"{file}:2: field 'reviewer' is missing" in said.err
        assert f"{file}:3: is not JSON" in said.err
        assert said.err.endswith(f"2 lines of {file} could not be read; the others are imported\n")
        assert [one["session"] for one in listed(witan, place)] == ["q1", "q3"]

    @pytest.mark.parametrize("strict", [False, True])
    def test_a_line_that_counts_is_not_called_unreadable(self, witan, tmp_path, place, strict):
        """A candidate that is twice on a ballot is reported once, with its treatment."""
        file = tmp_path / "votes.csv"
        rows = ["q1,r1,a,1", "q1,r1,b,2", "q1,r1,a,3"]
        file.write_text("\n".join(["session,reviewer,candidate,rank", *rows]), encoding="utf-8")
        said = witan("import", file, "--history", place, *["--strict"] * strict)

        assert "is repeated on one ballot" in said.err
        assert "the last row" in said.err
        assert "could not be read" not in said.err
        assert said.status == (1 if strict else 0)
        assert ("under --strict" in said.err) is strict

    @pytest.mark.parametrize("strict", [False, True])
    def test_ignored_parts_of_a_line_are_reported(self, witan, write, place, strict):
        """Invalid grades and empty ballots, by file, line and field."""
        grades = {"a": "NaN", "b": 12, "c": 8}
        graded = {"session": "q1", "reviewer": "gpt", "grades": grades, "scale": "1-10"}
        empty = {"session": "q1", "reviewer": "grok"}
        file = write("votes.jsonl", graded, empty, ballot("q2"))
        said = witan("import", file, "--history", place, *["--strict"] * strict)

        assert all(
            fact in said.err
            for fact in (f"{file}:1: field 'grades'", f"{file}:2: field 'ranking' is missing")
        )
        assert said.status == (1 if strict else 0)
        assert place.exists() is not strict
        assert strict or len(listed(witan, place)) == 2

    @pytest.mark.parametrize("keep_days", [None, "1"])
    def test_a_file_that_cannot_be_read_creates_no_history(
        self, witan, write, tmp_path, monkeypatch, keep_days
    ):
        """Nor a folder for it, whatever is wrong with the file."""
        if keep_days is not None:
            monkeypatch.setenv("WITAN_HISTORY_KEEP_DAYS", keep_days)
        place = tmp_path / "made" / "history.sqlite"
        (tmp_path / "empty").mkdir()
        asked = write("asked.jsonl", *(lines := [ballot(f"q{n}") for n in range(200)]))
        cut = tmp_path / "cut.jsonl.gz"
        cut.write_bytes(compress(asked.read_bytes())[:-20])
        files = [
            tmp_path / "missing.jsonl",
            tmp_path / "empty",
            write("notes.jsonl", "These are my notes."),
            write("nothing.jsonl"),
            cut,
        ]
        for file in files:
            assert witan("import", file, "--history", place).status in (1, 2, 3)
        more = [ballot(f"q{n}") for n in range(1_100)]
        for n_read in (lines, more):
            strict = write("strict.jsonl", *n_read, "{")
            said = witan("import", strict, "--strict", "--history", place)
            assert (said.status, said.err.count("is not JSON")) == (1, 1)
        assert not place.parent.exists()

        assert witan("import", asked, "--history", place).status == 0
        assert len(listed(witan, place)) == 200

    @pytest.mark.parametrize("is_pipe", [False, True])
    def test_strict_import_of_many_sessions_creates_a_history(
        self, witan, write, tmp_path, place, is_pipe
    ):
        """Each session comes in once, from a pipe too."""
        file = write("votes.jsonl", *[ballot(f"q{n}") for n in range(1_100)])
        pipe = tmp_path / "pipe"
        if is_pipe:
            os.mkfifo(pipe)
            writer = Thread(target=pipe.write_bytes, args=[file.read_bytes()])
            writer.start()
        said = witan("import", pipe if is_pipe else file, "--strict", "--history", place)

        assert "1,100 sessions · 1,100 ballots" in said.out
        assert len(listed(witan, place)) == 1_100

    def test_a_file_without_a_readable_line_claims_no_import(self, witan, write, place):
        file = write("votes.jsonl", {"session": "q1", "reviewer": "gpt", "weight": -1})
        said = witan("import", file, "--history", place)

        assert said.err.startswith(
            f"{file}:1: field 'weight' is -1, below zero; expected a number of 0 or more\n"
            f"1 line of {file} could not be read, and there are no others\n"
        )

    def test_strict_refuses_the_whole_file(self, witan, write, place):
        """The other file is imported."""
        bad = write("bad.jsonl", ballot(), "{")
        said = witan(
            "import", bad, write("good.jsonl", ballot("q2")), "--strict", "--history", place
        )

        assert said.status == 1
        assert "under --strict" in said.err
        assert [one["session"] for one in listed(witan, place)] == ["q2"]
        assert witan("import", bad, "--history", place).status == 0

    def test_an_unreadable_file_does_not_stop_the_others(self, witan, write, place):
        """It is named, and the status is 2."""
        said = witan("import", "nosuch.csv", write("a.jsonl", ballot()), "--history", place)

        assert said.status == 2
        assert "witan: nosuch.csv does not exist" in said.err
        assert [one["session"] for one in listed(witan, place)] == ["q1"]

    def test_json_has_the_problems(self, witan, write, place):
        """One object: imports and errors per file."""
        file = write("votes.jsonl", ballot(), {"session": "q2"})
        [told] = witan("import", file, "--history", place, "--json").json["files"]

        assert (told["sessions"], told["ballots_by_models"], told["ballots_by_people"]) == (1, 1, 0)
        assert [(p["line"], p["field"]) for p in told["problems"]] == [(2, "reviewer")]

    def test_conflicting_ballots_are_refused(self, witan, write, place):
        """The session is named with a remedy, and nothing of the file is stored."""
        witan("import", write("a.jsonl", ballot()), "--history", place)
        other = write("b.jsonl", ballot("q0"), ballot(reviewer="r9"))
        said = witan("import", other, "--history", place)

        assert said.status == 2
        assert all(fact in said.err for fact in ("q1 is in the history", "with other ballots"))
        assert "nothing of the file" in said.err
        assert "--prefix" in said.err
        assert [one["session"] for one in listed(witan, place)] == ["q1"]
        assert witan("import", other, "--prefix", "b/", "--history", place).status == 0

    @pytest.mark.parametrize("content", ["", "\n"])
    def test_a_file_without_a_session_is_reported(self, witan, write, place, content):
        """With status 3."""
        said = witan("import", write("empty.jsonl", content), "--history", place)

        assert said.status == 3
        assert "there is no session in" in said.err

    def test_json_has_the_reason_of_a_refusal(self, witan, write, place):
        """The error message is among the file's problems, without a line number if it has none."""
        file = write("votes.csv", "who,what", "r1,x")
        said = witan("import", "nosuch.csv", file, "--history", place, "--json")

        assert said.status == 2
        for told, words in zip(
            said.json["files"], ("does not exist", "its columns are who, what"), strict=True
        ):
            [problem] = told["problems"]
            assert (told["refused"], problem["file"]) == (1, told["file"])
            assert (problem["line"], problem["field"]) == (None, None)
            assert words in problem["problem"]

    def test_errors_name_the_file_beside_the_ballots(self, witan, write, place):
        """Bad lines are counted for the file that contains them."""
        file = write("votes.jsonl", ballot(), {"session": "q2"})
        answers = write("answers.jsonl", {"session": "q1"}, "{")
        said = witan("import", file, "--answers", answers, "--history", place)

        assert said.status == 0
        assert f"2 lines of {answers}" in said.err
        assert f"1 line of {file}" in said.err

    @pytest.mark.parametrize(
        ("record", "words"),
        [
            (
                {"prompt_id": 1, "model": "x", "text": "Ex."},
                "contains answers and no ballots; import the ballots with --answers",
            ),
            (
                {"session": "q1", "candidate": "x", "chars": 9},
                "contains answers and no ballots; import the ballots with --answers",
            ),
            (
                {"prompt_id": 1, "category": "law", "text": "Why?"},
                "contains questions and no ballots; import the ballots with --questions",
            ),
            (
                {"session": "q1", "question": "Why?"},
                "contains questions and no ballots; import the ballots with --questions",
            ),
        ],
    )
    def test_questions_or_answers_alone_are_refused(self, witan, write, place, record, words):
        """The error names the option for them."""
        file = write("beside.jsonl", record)
        said = witan("import", file, "--history", place)

        assert (said.status, said.out) == (2, "")
        assert f"witan: {file} {words} {file}\n" in said.err

    def test_an_empty_folder_is_reported(self, witan, tmp_path, place):
        """As empty, not as a folder."""
        (tmp_path / "none").mkdir()
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "a.csv").write_text("a", encoding="utf-8")
        said = witan("import", tmp_path / "none", tmp_path / "other", "--history", place)

        assert said.status == 2
        assert f"{tmp_path / 'none'} is an empty folder" in said.err
        assert all(fact in said.err for fact in (f"{tmp_path / 'other'} is a folder", ".json"))

    def test_a_history_is_refused(self, witan, write, place, tmp_path):
        """The error says how to copy its sessions."""
        witan("import", write("a.jsonl", ballot()), "--history", place)
        said = witan("import", place, "--history", tmp_path / "other.sqlite")

        assert said.status == 2
        assert f"{place} is a SQLite database" in said.err
        assert f"witan export --history {place}" in said.err

    def test_an_unknown_kind_is_refused(self, witan, write, place):
        """With the nearest one."""
        said = witan("import", write("a.jsonl", ballot()), "--format", "batles", "--history", place)

        assert said.status == 2
        assert "did you mean 'battles'?" in said.err

    def test_standard_input_can_be_named_once(self, witan, place):
        """Twice is misuse."""
        assert witan("import", "-", "-", "--history", place).status == 2


class TestProcesses:
    """Pipes and interruptions, with a process of its own."""

    @staticmethod
    def run(*arguments, **more):
        command = [sys.executable, "-m", "witan", *map(str, arguments)]
        return subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
        )

    def test_ctrl_c_rolls_back_the_file(self, witan, write, place):
        """Interrupted while counting, the import ends with 130 and stores nothing."""
        witan("import", write("first.jsonl", ballot("first")), "--history", place)
        many = [ballot(f"q{k}", f"r{r}") for k in range(6_000) for r in range(3)]
        file = write("many.jsonl", *many)
        process = self.run("import", file, "--history", place)
        # While it writes, nobody else can.
        held = place.with_name(place.name + "-journal"), place.with_name(place.name + "-wal")
        while process.poll() is None and not any(p.exists() and p.stat().st_size for p in held):
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

        assert (process.returncode, out) == (130, b""), err
        assert [one["session"] for one in listed(witan, place)] == ["first"]
        again = "run the same command again for the rest"
        said = f"interrupted; {file} is imported completely or not at all; {again}\n"
        assert err.decode() == said

    @pytest.mark.slow
    def test_ctrl_c_reports_the_files_imported_before(self, witan, write, place):
        """While the second file is awaited, the first is stored."""
        process = self.run("import", write("a.jsonl", ballot()), "-", "--history", place)
        assert b"a.jsonl: 1 session" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)

        assert process.returncode == 130
        assert err.startswith(b"interrupted; 1 file imported; ")
        assert [one["session"] for one in listed(witan, place)] == ["q1"]

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
    def test_a_pipe_is_read_once_and_whole(self, witan, tmp_path, place):
        """A file from process substitution can be read only once."""
        pipe = tmp_path / "pipe.jsonl"
        os.mkfifo(pipe)
        process = self.run("import", pipe, "--history", place)
        # Opening a pipe waits for whoever reads it, who may have ended.
        line = json.dumps(ballot())
        writer = subprocess.Popen(["sh", "-c", 'echo "$1" > "$0"', pipe, line])  # noqa: S603, S607
        out, err = process.communicate(timeout=60)
        writer.kill()
        writer.wait()

        assert (process.returncode, err) == (0, b"")
        assert b": 1 session" in out
        assert [one["session"] for one in listed(witan, place)] == ["q1"]


class TestSharedData:
    """Votes by real models and people from the shared data."""

    @pytest.mark.parametrize(
        "name", [*list(FILES)[:-1], pytest.param([*FILES][-1], marks=pytest.mark.slow)]
    )
    def test_each_file_is_imported_once(self, witan, place, name):
        """A repeated import adds nothing, and all ballots are counted."""
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"the shared data is not here: {path}")
        [told] = witan("import", path, "--history", place, "--json").json["files"]
        [again] = witan("import", path, "--history", place, "--json").json["files"]

        found = told["sessions"], told["ballots_by_models"], told["ballots_by_people"]
        assert found == FILES[name]
        assert (again["sessions"], again["already"]) == (0, FILES[name][0])
        assert witan("leaderboard", "--history", place).status == 0
