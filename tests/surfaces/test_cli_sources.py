"""Counting commands read all import formats and sessions of the history."""

import json
from datetime import timedelta

import pytest

from histories import ASKED, session_events
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session
from witan.history import History

COUNTING = ("tally", "compare", "explain")
SUMMING = ("leaderboard", "audit")


@pytest.fixture
def place(tmp_path):
    """A history with two sessions of a council, of which ``later`` is the latest."""
    path = tmp_path / "history.sqlite"
    with History.open(path) as history, history.recording() as recording:
        for hour, session in enumerate(("first", "later")):
            for event in session_events(session, at=ASKED + timedelta(hours=hour)):
                recording(event)
    return path


def battles(n_sessions=12):
    """Battles of three models, as arenas publish them."""
    winners = ("model_a", "model_b", "tie", "model_a")
    pairs = (("x", "y"), ("y", "z"), ("x", "z"))
    return [
        {
            "question_id": f"q{n}",
            "model_a": a,
            "model_b": b,
            "winner": winners[(n + k + j) % 4],
            "judge": judge,
        }
        for n in range(n_sessions)
        for j, judge in enumerate(("gpt", "grok"))
        for k, (a, b) in enumerate(pairs)
    ]


class TestSessionsByName:
    """A name that is no file is a session of the history."""

    @pytest.mark.parametrize("command", COUNTING)
    @pytest.mark.parametrize("name", ["last", "later", "lat"])
    def test_a_session_is_counted_by_its_name(self, witan, place, command, name):
        """`last`, the full name and a prefix are the same session."""
        said = witan(command, name, "--history", place, "--json")
        exported = place.with_suffix(".jsonl")
        witan("export", "later", "--history", place, "-o", exported)

        assert said.status == 0
        assert said.json == witan(command, exported, "--json").json

    @pytest.mark.parametrize("command", SUMMING)
    def test_sessions_are_summed_by_name(self, witan, place, command):
        """Both by name equal the whole history."""
        named = witan(command, "first", "last", "--history", place, "--json").json
        whole = witan(command, "--history", place, "--json").json

        assert named == whole

    def test_a_file_takes_precedence(self, witan, write, place, monkeypatch, tmp_path):
        """Over a session of that name."""
        monkeypatch.chdir(tmp_path)
        write("later", {"session": "mine", "reviewer": "r", "ranking": ["a", "b"]})

        said = witan("tally", "later", "--history", place, "--json").json

        assert [session["session"] for session in said["sessions"]] == ["mine"]

    def test_votes_of_people_are_counted_and_mentioned(self, witan, write, place):
        """A note says that the session itself excludes them."""
        vote = {"session": "q", "reviewer": "ann", "kind": "human", "ranking": ["b", "a"]}
        cast = {"session": "q", "reviewer": "gpt", "ranking": ["a", "b"]}
        witan("import", write("votes.jsonl", vote, cast), "--history", place)

        said = witan("tally", "q", "--history", place)

        assert "2 of 2 reviewers, 1 of them a person" in said.out
        [line] = said.err.splitlines()
        assert line.startswith("q: 1 ballot by people ")

    @pytest.mark.parametrize("command", [*COUNTING, *SUMMING])
    def test_an_unknown_name_is_an_error(self, witan, place, tmp_path, command):
        """With the locations searched."""
        absent = tmp_path / "none.sqlite"
        for name, history, what in [
            ("nosuch", place, "no session or file is named 'nosuch'"),
            ("nosuch.csv", place, "nosuch.csv does not exist; check the path"),
            ("nosuch", absent, "nosuch does not exist, and there is no history to look for"),
        ]:
            said = witan(command, name, "--history", history)
            assert (said.status, said.out) == (2, "")
            assert what in said.err
            assert said.err.count("\n") == 1
        assert not absent.exists()


class TestFiles:
    """Every command reads what `witan import` reads."""

    @pytest.mark.parametrize("command", COUNTING)
    def test_a_saved_session_is_counted(self, witan, tmp_path, command):
        """The file of ``--save``, with a note if it is simulated."""
        path = tmp_path / "session.json"
        path.write_text(
            session_to_json(Session.of(session_events("asked", simulated=True)), indent=1)
        )

        said = witan(command, path)

        assert said.status == 0
        if command == "tally":
            assert "simulated" in said.out

    @pytest.mark.parametrize("command", SUMMING)
    def test_a_file_equals_its_import(self, witan, write, tmp_path, command):
        """A file alone gives the numbers of a history that imported it."""
        file = write("battles.jsonl", *map(json.dumps, battles()))
        history = tmp_path / "own.sqlite"
        witan("import", file, "--history", history)

        alone = witan(command, file, "--json").json
        taken = witan(command, "--history", history, "--json").json

        assert alone == taken

    @pytest.mark.parametrize("command", SUMMING)
    def test_several_files_are_merged(self, witan, write, command):
        """Ballots on one session are counted together."""
        rows = battles()
        halves = [
            write(f"{judge}.jsonl", *(json.dumps(r) for r in rows if r["judge"] == judge))
            for judge in ("gpt", "grok")
        ]
        whole = witan(command, write("all.jsonl", *map(json.dumps, rows)), "--json").json
        apart = witan(command, *halves, "--json").json

        assert apart == whole

    @pytest.mark.parametrize("command", SUMMING)
    def test_standard_input_is_read(self, witan, write, command, monkeypatch):
        """As a dash, with named columns."""
        path = write("b.csv", "q,who,model_a,model_b,winner", *(f"q{n},r,x,y,x" for n in range(3)))
        with path.open() as file:
            monkeypatch.setattr("sys.stdin", file)
            said = witan(command, "-", "--column", "session=q", "--column", "reviewer=who")

        assert said.status == 0
        assert "3" in said.out

    @pytest.mark.parametrize("command", SUMMING)
    def test_misuse_is_reported(self, witan, write, tmp_path, command):
        """Files and a lake exclude each other; options of files need a file."""
        file = write("b.jsonl", *map(json.dumps, battles(1)))

        assert "choose files or --lake" in witan(command, file, "--lake", tmp_path).err
        assert "--format is for files" in witan(command, "--format", "csv").err
        assert "--column is for files" in witan(command, "--column", "a=b").err

    @pytest.mark.parametrize("command", SUMMING)
    def test_unreadable_lines_are_reported(self, witan, write, command):
        """--strict then sums nothing."""
        file = write("b.jsonl", *map(json.dumps, battles(3)), "broken")

        said = witan(command, file)
        strict = witan(command, file, "--strict")

        assert (said.status, strict.status, strict.out) == (0, 1, "")
        assert f"{file}:19: is not JSON" in said.err
        assert "nothing is counted under --strict" in strict.err

    @pytest.mark.parametrize("command", ["tally", *SUMMING])
    def test_logs_of_several_models_are_merged(self, witan, tmp_path, command):
        """Each log of Inspect holds one model; together they are sessions."""
        logs = []
        for model, values in {"gpt": "CCI", "grok": "ICI", "claude": "III"}.items():
            samples = [
                {"id": n, "epoch": 1, "scores": {who: {"value": value} for who in ("a", "b")}}
                for n, value in enumerate(values)
            ]
            about = {"task": "sums", "model": model}
            logs.append(tmp_path / f"{model}.json")
            logs[-1].write_text(json.dumps({"eval": about, "samples": samples}))

        said = witan(command, *logs, "--json")

        assert said.status == 0
        if command == "tally":
            sessions = said.json["sessions"]
            assert [len(session["standings"]) for session in sessions] == [3, 3, 3]
            assert [note["reviewer"] for note in sessions[0]["ballots"]] == ["a", "b"]


def test_a_session_without_votes_on_a_model_is_ignored_for_it(witan, tmp_path):
    """Its mean is that of its other sessions."""
    table = tmp_path / "judges.csv"
    table.write_text(
        "question,model,ann,bob\nq1,grok,9,9\nq1,haiku,4,5\nq2,grok,,\nq2,haiku,7,7\nq2,sonnet,8,6\n",
        encoding="utf-8",
    )

    board = witan("leaderboard", table, "--rule", "borda", "--min-sessions", "1", "--json").json

    [grok] = [line for line in board["lines"] if line["model"] == "grok"]
    assert (grok["score"], grok["sessions"]) == (1.0, 1)
