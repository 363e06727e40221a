"""``witan export``, black box: exported sessions can be imported unchanged."""

import csv
import json
import sys

import pytest

from scripts import CRITERIA, write_jury
from witan import read_ballots


@pytest.fixture
def archive(witan, write, place):
    """Three sessions with ballots of models and people, a text and a length."""
    order = (["x", "y", "z"], ["y", "x", "z"], ["z", "x", "y"])
    ballots = [
        {
            "session": f"q{k}",
            "reviewer": name,
            "ranking": order[(k + r) % 3],
            "at": f"2026-0{k}-01T00:00:00Z",
        }
        for k in (1, 2, 3)
        for r, name in enumerate("xyz")
    ]
    ballots[0]["ranking"] = ["x", ["y", "z"]]
    ballots[4]["category"] = "law"
    person = {"session": "q1", "reviewer": "ines", "kind": "human", "ranking": ["z", "x", "y"]}
    answers = write(
        "answers.jsonl",
        {"session": "q1", "candidate": "x", "text": "Ex."},
        {"session": "q1", "candidate": "y", "chars": 9},
    )
    file = write("votes.jsonl", *ballots, person)
    assert witan("import", file, "--answers", answers, "--history", place).status == 0
    return place


def sessions_in(text):
    return [json.loads(line)["session"] for line in text.splitlines()]


class TestWhole:
    """Sessions as JSON Lines."""

    def test_sessions_are_written_oldest_first(self, witan, archive):
        """One line each on standard output; their number on standard error."""
        said = witan("export", "--history", archive)

        assert sessions_in(said.out) == ["q1", "q2", "q3"]
        assert (said.status, said.err) == (0, "3 sessions written to standard output\n")

    def test_a_round_trip_changes_nothing(self, witan, archive, tmp_path):
        """Imported elsewhere, they give the same leaderboards and the same export."""
        council, elsewhere = tmp_path / "council.json", tmp_path / "elsewhere.sqlite"
        assert (
            witan("demo", "--fast", "--quiet", "--save", council, "--history", archive).status == 0
        )
        file = tmp_path / "all.jsonl.gz"
        witan("export", "--history", archive, "-o", file)
        assert witan("import", file, "--history", elsewhere).status == 0

        least = ["--min-sessions", 1]
        for options in ([], ["--kind", "human"], ["--rule", "schulze"], ["--category", "law"]):
            boards = [
                witan("leaderboard", *options, *least, "--json", "--history", url).json
                for url in (archive, elsewhere)
            ]
            assert boards[0] == boards[1]
            assert boards[0]["lines"]
        again = [witan("export", "--history", url).out for url in (archive, elsewhere)]
        assert again[0] == again[1]
        assert len(again[0].splitlines()) == 4

    def test_sessions_are_selected_by_name_or_window(self, witan, archive):
        """By id, time span and category."""
        assert sessions_in(witan("export", "q3", "q1", "--history", archive).out) == [
            "q1",
            "q3",
        ]
        window = ["--since", "2026-02-01", "--until", "2026-03-01"]
        assert sessions_in(witan("export", *window, "--history", archive).out) == ["q2"]
        assert sessions_in(witan("export", "--category", "law", "--history", archive).out) == ["q2"]

    def test_a_file_is_replaced_as_a_whole(self, witan, archive, tmp_path):
        """A failed write is reported and leaves the file."""
        file = tmp_path / "out.jsonl"
        file.write_text("before", encoding="utf-8")
        told = witan("export", "q1", "--history", archive, "-o", file, "--json").json

        assert (told["kind"], told["written"]) == ("sessions", 1)
        assert sessions_in(file.read_text(encoding="utf-8")) == ["q1"]
        assert witan("export", "--history", archive, "-o", tmp_path / "no" / "x").status == 2


class TestBallots:
    """Ballots alone, in any format."""

    @pytest.mark.parametrize("name", ["b.csv", "b.csv.gz", "b.parquet"])
    def test_the_suffix_selects_the_format(self, witan, archive, tmp_path, name):
        """A table or Parquet file holds the imported ballots."""
        file = tmp_path / name
        said = witan("export", "--history", archive, "-o", file)

        assert said.err == f"10 ballots written to {file}\n"
        cast = list(read_ballots(file))
        assert [b.reviewer for b in cast if b.kind == "human"] == ["ines"]
        assert cast[0].groups == (("x",), ("y", "z"))

    def test_an_unknown_suffix_is_refused(self, witan, archive, tmp_path):
        """Nothing is written."""
        said = witan("export", "-o", tmp_path / "e.xlsx", "--history", archive)

        assert said.status == 2
        assert all(fact in said.err for fact in ("e.xlsx", ".csv", ".parquet", "--format"))
        assert not (tmp_path / "e.xlsx").exists()

    def test_a_format_can_be_named(self, witan, archive):
        """``--format`` writes ballots, to standard output too."""
        rows = list(csv.DictReader(witan("export", "--format", "csv", "--history", archive).lines))

        assert len(rows) == 30

    def test_battles_are_every_pair(self, witan, archive):
        """A ranking of three is three battles."""
        said = witan("export", "q3", "--kind", "battles", "--history", archive)

        assert len(said.lines) == 9
        assert said.err.startswith("9 battles ")

    def test_sessions_without_battles_are_counted(self, witan, write, archive, tmp_path):
        """With the reason on standard error and in the JSON object."""
        graded = {"session": "g", "reviewer": "gpt", "grades": {"x": 7, "y": 8}}
        silent = {"session": "s", "reviewer": "gpt", "abstained": True}
        witan("import", write("more.jsonl", graded, silent), "--history", archive)
        file = tmp_path / "battles.jsonl"
        said = witan("export", "--kind", "battles", "--history", archive)
        told = witan("export", "--kind", "battles", "--json", "-o", file, "--history", archive).json

        assert said.err.startswith(
            "2 sessions without a battle: 1 with grades without a ranking and 1 with abstentions\n"
        )
        assert told["left_out"] == {"grades without a ranking": 1, "abstentions": 1}
        assert told["written"] == len(said.lines)


class TestScripts:
    """Simulated ballots are never exported as real ones."""

    @pytest.fixture
    def demo(self, witan, place):
        """A history with one simulated session."""
        assert witan("demo", "--fast", "--quiet", "--history", place).status == 0
        return place

    def test_whole_sessions_stay_marked(self, witan, demo):
        """A simulated session is written with its mark."""
        assert witan("export", "--history", demo).json["simulated"] is True

    @pytest.mark.usefixtures("archive")
    def test_simulated_ballots_are_left_out_by_default(self, witan, demo):
        """With a note; ``--all`` writes them with a mark in the notes."""
        said = witan("export", "--kind", "ballots", "--history", demo)
        everything = witan("export", "--kind", "ballots", "--all", "--history", demo)

        assert len(said.lines) == 10
        assert "1 simulated session left out" in said.err
        notes = [json.loads(line).get("notes", "") for line in everything.lines]
        assert sum(note.startswith("simulated") for note in notes) == len(notes) - 10 > 0

    def test_an_export_of_simulated_ballots_alone_is_empty(self, witan, demo):
        """The status is 3."""
        said = witan("export", "--kind", "ballots", "--history", demo)

        assert (said.status, said.out) == (3, "")
        assert "only 1 simulated session" in said.err


class TestLake:
    """The history as Parquet files by day."""

    def test_a_lake_gives_the_same_leaderboard(self, witan, archive, tmp_path):
        """Its numbers are those of the history."""
        pytest.importorskip("duckdb")
        lake = tmp_path / "lake"
        said = witan("export", "--lake", lake, "--history", archive)
        boards = [
            witan("leaderboard", *where).out for where in (["--lake", lake], ["--history", archive])
        ]

        assert "3 sessions of 3 days" in said.err
        assert (lake / "sessions" / "day=2026-02-01").is_dir()
        assert boards[0] == boards[1] != ""

    def test_an_emptied_history_empties_its_lake(self, witan, archive, tmp_path):
        """Its days are removed, and the status is 3."""
        pytest.importorskip("pyarrow")
        lake = tmp_path / "lake"
        witan("export", "--lake", lake, "--history", archive)
        assert witan("forget", "q1", "q2", "q3", "--yes", "--history", archive).status == 0
        said = witan("export", "--lake", lake, "--history", archive)
        told = witan("export", "--lake", lake, "--history", archive, "--json")

        assert (said.status, said.out) == (3, "")
        assert f"{archive} has no sessions" in said.err
        assert (told.status, told.json["sessions"], told.json["days"]) == (3, 0, 0)
        assert not list(lake.rglob("day=*/*.parquet"))


class TestMisuse:
    """Conflicting options are refused, and nothing is written."""

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["q1", "--since", "30d"], "by their IDs, or by --since"),
            (["--lake", "x", "--since", "30d"], "a lake holds the whole history"),
            (["--lake", "x", "-o", "y"], "a lake holds the whole history"),
            (["--kind", "battles", "--format", "csv"], "--format is for ballots"),
            (["--format", "cvs"], "did you mean 'csv'?"),
            (["--json"], "name a file: -o PATH"),
            (["q9"], "no session is named 'q9'"),
        ],
    )
    def test_misuse_is_one_sentence(self, witan, archive, arguments, words):
        """Status 2, with a remedy."""
        said = witan("export", *arguments, "--history", archive)

        assert (said.status, said.out) == (2, "")
        assert words in said.err

    def test_an_empty_window_is_reported(self, witan, archive):
        """Status 3, and an existing file stays."""
        said = witan("export", "--since", "2099-01-01", "--history", archive)

        assert said.status == 3

    def test_a_missing_history_is_not_created(self, witan, place):
        assert witan("export", "--history", place).status == 2
        assert not place.exists()


class TestEvaluationTools:
    """Judged texts as logs of Inspect, and as results of promptfoo."""

    @pytest.fixture
    def judged(self, witan, tmp_path, place):
        """A history in which three jurors judged two texts of two sessions."""
        jury = write_jury(tmp_path)
        for number, texts in enumerate(
            (["moraine", "glacier"], ["a moraine", "a glacier"]), start=1
        ):
            rows = [{"id": number, "question": f"What {number}?", "new": texts[0], "old": texts[1]}]
            file = tmp_path / f"rows{number}.jsonl"
            file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
            seats = [part for seat in jury for part in ("--jury", seat)]
            names = ["--text", "new", "--text", "old", "--expected", "new"]
            said = witan("batch", file, *names, *seats, "--history", place, "--pass-mark", 6)
            assert said.status == 0, said.err
        return place

    def test_a_log_of_inspect_per_text_gives_its_jurors_back(self, witan, judged, tmp_path):
        """A sample is a session; its metadata hold every juror's grades."""
        logs = tmp_path / "logs"
        said = witan("export", "--inspect", logs, "--all", "--history", judged)
        ballots = {
            path.name.rpartition("_")[2]: list(read_ballots(path)) for path in logs.iterdir()
        }

        assert (said.status, said.err) == (0, f"4 samples written to {logs}\n")
        assert ballots.keys() == {"new.json", "old.json"}
        assert {b.reviewer for b in ballots["new.json"]} == {"xan", "yma", "zoe"}
        assert {b.grades["new"]["clarity"] for b in ballots["new.json"]} == {9}
        assert {b.grades["old"]["clarity"] for b in ballots["old.json"]} == {3}
        assert len({b.session for b in ballots["new.json"]}) == 2

    def test_results_of_promptfoo_give_the_jurors_back(self, witan, judged, tmp_path):
        """A session is a test, a text a provider, and the same export the same bytes."""
        files = [tmp_path / "one.json", tmp_path / "two.json"]
        for file in files:
            said = witan("export", "--kind", "promptfoo", "--all", "-o", file, "--history", judged)
            assert said.status == 0, said.err
        results = json.loads(files[0].read_text())["results"]["results"]
        ballots = list(read_ballots(files[0]))

        assert files[0].read_bytes() == files[1].read_bytes()
        assert [each["success"] for each in results] == [True, False, True, False]
        assert results[0]["gradingResult"]["reason"].startswith("passed: new leads clearly")
        assert {b.reviewer for b in ballots} == {"xan", "yma", "zoe"}
        assert {grade["clarity"] for b in ballots for grade in b.grades.values()} == {9, 3}

    def test_scripted_sessions_come_back_as_simulated(self, witan, judged, tmp_path):
        """Imported from either file, they count for no leaderboard unless scripts are asked for."""
        witan("export", "--inspect", tmp_path / "logs", "--all", "--history", judged)
        results = tmp_path / "results.json"
        witan("export", "--kind", "promptfoo", "--all", "-o", results, "--history", judged)

        for number, file in enumerate((*sorted((tmp_path / "logs").iterdir()), results)):
            place = ["--history", tmp_path / f"{number}.sqlite"]
            assert witan("import", file, *place).status == 0
            sessions = witan("export", "--all", *place).out.splitlines()
            assert [json.loads(line)["simulated"] for line in sessions] == [True, True]
            assert witan("leaderboard", "--min-sessions", 1, *place).status == 3
            assert "simulated" in witan("tally", file).out

    def test_a_folder_of_logs_comes_back_whole(self, witan, judged, tmp_path):
        """Each session has both texts, and every juror one ballot; again, nothing is new."""
        logs, place = tmp_path / "logs", ["--history", tmp_path / "again.sqlite"]
        witan("export", "--inspect", logs, "--all", "--history", judged)
        (logs / "notes.json").write_text("{", encoding="utf-8")
        said = witan("import", logs, *place)
        sessions = [json.loads(line) for line in witan("export", "--all", *place).out.splitlines()]

        assert said.status == 2
        assert "notes.json:1: is not JSON" in said.err
        assert said.out == f"{logs}: 2 sessions · 6 ballots\n"
        assert [set(session["answers"]) for session in sessions] == [{"new", "old"}] * 2
        assert {len(ballot["grades"]) for each in sessions for ballot in each["ballots"]} == {2}
        assert "nothing new; imported before, with 2 sessions" in witan("import", logs, *place).out

    def test_texts_that_were_only_ranked_have_the_share_of_rivals_beaten(self, witan, tmp_path):
        """As no juror graded them, that is the value in Inspect and the score in promptfoo."""
        texts = []
        for name in ("moraine", "glacier", "a glacier"):
            texts.append(tmp_path / f"{name}.txt")
            texts[-1].write_text(name)
        seats = [part for seat in write_jury(tmp_path) for part in ("--jury", seat)]
        place = ["--history", tmp_path / "ranked.sqlite"]
        said = witan("judge", *texts, *seats, "--no-rubric-scoring", *place)
        assert said.status == 5, said.err
        witan("export", "--inspect", tmp_path / "logs", "--all", *place)
        witan("export", "--kind", "promptfoo", "--all", "-o", tmp_path / "r.json", *place)
        logs = [json.loads(path.read_text()) for path in (tmp_path / "logs").iterdir()]
        results = json.loads((tmp_path / "r.json").read_text())["results"]["results"]

        values = {
            log["eval"]["model"]: log["samples"][0]["scores"]["witan_jury"]["value"] for log in logs
        }
        assert values[str(texts[0])] == {"rivals_beaten": 1.0}
        assert {each["provider"]["id"]: each["score"] for each in results} == {
            name: value["rivals_beaten"] for name, value in values.items()
        }

    def test_a_text_that_beats_no_rival_scores_0(self, witan, tmp_path):
        """A zero is a value of the mean, in whichever session it stands."""
        texts = [tmp_path / "first.txt", tmp_path / "second.txt"]
        seats = [part for seat in write_jury(tmp_path) for part in ("--jury", seat)]
        place = ["--history", tmp_path / "ranked.sqlite"]
        means = []
        for words in (("moraine", "glacier"), ("glacier", "moraine")):
            for text, word in zip(texts, words, strict=True):
                text.write_text(word)
            said = witan("judge", *texts, *seats, "--no-rubric-scoring", *place)
            assert said.status in (0, 5), said.err
            logs = tmp_path / f"after-{words[0]}"
            said = witan("export", "--inspect", logs, "--all", *place)
            assert said.status == 0, said.err
            read = [json.loads(path.read_text()) for path in logs.iterdir()]
            results = {log["eval"]["model"]: log["results"]["scores"][0] for log in read}
            means.append([results[str(text)]["metrics"]["mean"]["value"] for text in texts])

        assert means == [[1.0, 0.0], [0.5, 0.5]]

    def test_an_unknown_cost_is_left_out(self, witan, tmp_path):
        """A provider of promptfoo then has no cost either; a known one has its sum."""
        review = json.dumps({"grades": {"A": dict.fromkeys(CRITERIA, 7)}, "ranking": [["A"]]})
        (tmp_path / "juror.py").write_text(f"print({review!r})")
        program = f"cmd:{sys.executable} {tmp_path / 'juror.py'}"
        unknown = ["--jury", f"a={program}", "--jury", f"b={program}"]
        known = [part for seat in write_jury(tmp_path) for part in ("--jury", seat)]
        place = ["--history", tmp_path / "costs.sqlite"]
        for name, seats in (("partly", unknown), ("partly", known), ("wholly", known)):
            text = tmp_path / name
            text.write_text("a moraine")
            assert witan("judge", text, *seats, *place).status == 0
        witan("export", "--kind", "promptfoo", "--all", "-o", tmp_path / "r.json", *place)
        told = json.loads((tmp_path / "r.json").read_text())["results"]

        assert [each.get("cost") for each in told["results"]] == [None, 0.0, 0.0]
        assert [each["metrics"].get("cost") for each in told["prompts"]] == [None, 0.0]

    def test_sessions_without_a_verdict_are_counted(self, witan, archive, tmp_path):
        """They have nothing to show there, and the export says so."""
        said = witan("export", "--inspect", tmp_path / "logs", "--history", archive)

        assert said.status == 3
        assert "no session has a verdict on a text" in said.err
        assert not (tmp_path / "logs").exists()

    @pytest.mark.parametrize("option", [["--kind", "ballots"], ["-o", "x.json"], ["--lake", "x"]])
    def test_logs_of_inspect_are_written_alone(self, witan, judged, option):
        """Another destination beside the folder is refused."""
        said = witan("export", "--inspect", "logs", *option, "--history", judged)

        assert said.status == 2
        assert "--inspect" in said.err or "lake" in said.err
