"""``witan export``, black box: what is in the history leaves it, and comes back the same."""

import csv
import json

import pytest

from witan import read_ballots


@pytest.fixture
def place(tmp_path):
    """A history of this test's own."""
    return tmp_path / "history.sqlite"


@pytest.fixture
def held(witan, write, place):
    """Three sessions of ballots of models and people, with a text and a length among them."""
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

    def test_all_are_written_the_oldest_first(self, witan, held):
        """Standard output has a line per session; how many there were is on standard error."""
        said = witan("export", "--history", held)

        assert sessions_in(said.out) == ["q1", "q2", "q3"]
        assert (said.status, said.err) == (0, "3 sessions written to standard output\n")

    def test_they_come_back_the_same(self, witan, held, tmp_path):
        """Imported elsewhere, they give the same leaderboards, and the same bytes again."""
        council, elsewhere = tmp_path / "council.json", tmp_path / "elsewhere.sqlite"
        assert witan("demo", "--fast", "--quiet", "--save", council, "--history", held).status == 0
        file = tmp_path / "all.jsonl.gz"
        witan("export", "--history", held, "-o", file)
        assert witan("import", file, "--history", elsewhere).status == 0

        least = ["--min-sessions", 1]
        for options in ([], ["--kind", "human"], ["--rule", "schulze"], ["--category", "law"]):
            boards = [
                witan("leaderboard", *options, *least, "--json", "--history", url).json
                for url in (held, elsewhere)
            ]
            assert boards[0] == boards[1]
            assert boards[0]["lines"]
        again = [witan("export", "--history", url).out for url in (held, elsewhere)]
        assert again[0] == again[1]
        assert len(again[0].splitlines()) == 4

    def test_some_are_chosen_by_name_or_window(self, witan, held):
        """IDs, a span of time, a category."""
        assert sessions_in(witan("export", "q3", "q1", "--history", held).out) == ["q1", "q3"]
        window = ["--since", "2026-02-01", "--until", "2026-03-01"]
        assert sessions_in(witan("export", *window, "--history", held).out) == ["q2"]
        assert sessions_in(witan("export", "--category", "law", "--history", held).out) == ["q2"]

    def test_a_file_is_replaced_as_a_whole(self, witan, held, tmp_path):
        """What a file held before is gone; one that cannot be written is said, and stays."""
        file = tmp_path / "out.jsonl"
        file.write_text("before", encoding="utf-8")
        told = witan("export", "q1", "--history", held, "-o", file, "--json").json

        assert (told["kind"], told["written"]) == ("sessions", 1)
        assert sessions_in(file.read_text(encoding="utf-8")) == ["q1"]
        assert witan("export", "--history", held, "-o", tmp_path / "no" / "x").status == 2


class TestBallots:
    """Ballots alone, in any format."""

    @pytest.mark.parametrize("name", ["b.csv", "b.csv.gz", "b.parquet"])
    def test_the_name_of_the_file_says_the_format(self, witan, held, tmp_path, name):
        """A table or Parquet holds ballots, the very ones that came in."""
        file = tmp_path / name
        said = witan("export", "--history", held, "-o", file)

        assert said.err == f"10 ballots written to {file}\n"
        cast = list(read_ballots(file))
        assert [b.reviewer for b in cast if b.kind == "human"] == ["ines"]
        assert cast[0].groups == (("x",), ("y", "z"))

    def test_an_unknown_ending_is_refused(self, witan, held, tmp_path):
        """A file that no program would open by its name is not written."""
        said = witan("export", "-o", tmp_path / "e.xlsx", "--history", held)

        assert said.status == 2
        assert all(fact in said.err for fact in ("e.xlsx", ".csv", ".parquet", "--format"))
        assert not (tmp_path / "e.xlsx").exists()

    def test_a_format_can_be_named(self, witan, held):
        """``--format`` writes ballots, to standard output too."""
        rows = list(csv.DictReader(witan("export", "--format", "csv", "--history", held).lines))

        assert len(rows) == 30

    def test_battles_are_every_pair(self, witan, held):
        """A ranking of three is three battles."""
        said = witan("export", "q3", "--kind", "battles", "--history", held)

        assert len(said.lines) == 9
        assert said.err.startswith("9 battles ")

    def test_sessions_that_give_no_battle_are_counted(self, witan, write, held, tmp_path):
        """Why they give none stands on standard error, and in the object for a program."""
        graded = {"session": "g", "reviewer": "gpt", "grades": {"x": 7, "y": 8}}
        silent = {"session": "s", "reviewer": "gpt", "abstained": True}
        witan("import", write("more.jsonl", graded, silent), "--history", held)
        file = tmp_path / "battles.jsonl"
        said = witan("export", "--kind", "battles", "--history", held)
        told = witan("export", "--kind", "battles", "--json", "-o", file, "--history", held).json

        assert said.err.startswith(
            "2 sessions gave no battle: 1 with grades without a ranking and 1 with abstentions\n"
        )
        assert told["left_out"] == {"grades without a ranking": 1, "abstentions": 1}
        assert told["written"] == len(said.lines)


class TestScripts:
    """Ballots of scripts are not passed for real ones."""

    @pytest.fixture
    def demo(self, witan, place):
        """A history with one simulated session."""
        assert witan("demo", "--fast", "--quiet", "--history", place).status == 0
        return place

    def test_whole_sessions_stay_marked(self, witan, demo):
        """A simulated session is written with its mark."""
        assert witan("export", "--history", demo).json["simulated"] is True

    @pytest.mark.usefixtures("held")
    def test_ballots_are_left_out_unless_asked_for(self, witan, demo):
        """Without ``--all`` only real ones are written, and it is said; with it, notes say so."""
        said = witan("export", "--kind", "ballots", "--history", demo)
        everything = witan("export", "--kind", "ballots", "--all", "--history", demo)

        assert len(said.lines) == 10
        assert "1 simulated session left out" in said.err
        notes = [json.loads(line).get("notes", "") for line in everything.lines]
        assert sum(note.startswith("simulated") for note in notes) == len(notes) - 10 > 0

    def test_nothing_but_scripts_is_said(self, witan, demo):
        """There is nothing to write: status 3."""
        said = witan("export", "--kind", "ballots", "--history", demo)

        assert (said.status, said.out) == (3, "")
        assert "nothing but 1 simulated session" in said.err


class TestLake:
    """The history as Parquet files by day."""

    def test_a_lake_gives_the_same_leaderboard(self, witan, held, tmp_path):
        """Its numbers are those of the history."""
        pytest.importorskip("duckdb")
        lake = tmp_path / "lake"
        said = witan("export", "--lake", lake, "--history", held)
        boards = [
            witan("leaderboard", *where).out for where in (["--lake", lake], ["--history", held])
        ]

        assert "3 sessions of 3 days" in said.err
        assert (lake / "sessions" / "day=2026-02-01").is_dir()
        assert boards[0] == boards[1] != ""

    def test_a_history_that_was_emptied_empties_its_lake(self, witan, held, tmp_path):
        """Its days leave the lake, it is said that nothing is there, and the status is 3."""
        pytest.importorskip("pyarrow")
        lake = tmp_path / "lake"
        witan("export", "--lake", lake, "--history", held)
        assert witan("forget", "q1", "q2", "q3", "--yes", "--history", held).status == 0
        said = witan("export", "--lake", lake, "--history", held)
        told = witan("export", "--lake", lake, "--history", held, "--json")

        assert (said.status, said.out) == (3, "")
        assert f"{held} holds no session" in said.err
        assert (told.status, told.json["sessions"], told.json["days"]) == (3, 0, 0)
        assert not list(lake.rglob("day=*/*.parquet"))


class TestMisuse:
    """What does not go together is refused, and nothing is written."""

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["q1", "--since", "30d"], "by their IDs, or by --since"),
            (["--lake", "x", "--since", "30d"], "a lake holds the whole history"),
            (["--lake", "x", "-o", "y"], "a lake holds the whole history"),
            (["--kind", "battles", "--format", "csv"], "--format is for ballots"),
            (["--format", "cvs"], "did you mean 'csv'?"),
            (["--json"], "name a file: -o PATH"),
            (["q9"], "there is no session 'q9'"),
        ],
    )
    def test_it_is_one_sentence(self, witan, held, arguments, words):
        """Status 2, and what to do instead."""
        said = witan("export", *arguments, "--history", held)

        assert (said.status, said.out) == (2, "")
        assert words in said.err

    def test_a_window_without_a_session_is_said(self, witan, held):
        """Status 3, and an existing file is left alone."""
        said = witan("export", "--since", "2099-01-01", "--history", held)

        assert said.status == 3

    def test_a_history_that_is_not_there_is_not_made(self, witan, place):
        """Exporting makes no history."""
        assert witan("export", "--history", place).status == 2
        assert not place.exists()
