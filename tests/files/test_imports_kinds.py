"""Files of sessions: their kinds, their errors, and their digests."""

import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from witan.errors import BallotFileError, UnknownName
from witan.files.ballots import FORMATS
from witan.files.imports import digest_of, import_files, read_imports

BALLOT = {"session": "s1", "reviewer": "ann", "ranking": ["bo", "cy"]}
BATTLE = {"question_id": "q1", "model_a": "x", "model_b": "y", "winner": "tie"}
CONVERSATION = {
    "id": "c1",
    "messages": [{"role": "assistant", "stage1": [{"model": "m", "response": "text"}]}],
}
LOG = {"question_id": "g1", "label_to_model": {"A": "x", "B": "y"}, "rankings": {"x": ["B", "A"]}}


def names(path, **options):
    """The names of the sessions of a file."""
    return [one.session for one in read_imports(path, **options)]


class TestKinds:
    """The kind of a file depends on its content, not on its name."""

    @pytest.mark.parametrize(
        ("record", "session"),
        [(BALLOT, "s1"), (BATTLE, "q1"), (CONVERSATION, "c1"), (LOG, "g1")],
    )
    @pytest.mark.parametrize("form", ["line", "array", "spread", "spread from the first sign"])
    def test_json_is_recognised_in_any_layout(self, tmp_path, record, session, form):
        """One object a line, an array, and an object spread over lines are read alike."""
        text = {
            "line": json.dumps(record),
            "array": json.dumps([record], indent=1),
            "spread": json.dumps(record, indent=2),
            "spread from the first sign": json.dumps(record, indent=2).replace("{\n  ", "{"),
        }[form]
        path = tmp_path / "file"
        path.write_text(text, encoding="utf-8")

        assert names(path) == [session]

    @pytest.mark.parametrize(
        "text",
        [
            '{"session": "s1",\n "reviewer": "r", "ranking": ["x", "y"]}\n'
            '{"session": "s2",\n "reviewer": "r", "ranking": ["x", "y"]}\n',
            '{"session": "s1", "reviewer": "r", "ranking":\n["x", "y"]}\n\n'
            '{"session": "s2", "reviewer": "r", "ranking":\n["x", "y"]}',
            '\ufeff{"session": "s1", "ranking": ["x",\n\n"y"], "reviewer": "r"}'
            '{"session": "s2", "ranking": ["x", "y"], "reviewer": "r"}',
        ],
    )
    def test_objects_may_start_in_the_first_line(self, tmp_path, text):
        """Several multi-line objects, however much of them the first line contains."""
        path = tmp_path / "file"
        path.write_text(text, encoding="utf-8")

        assert names(path) == ["s1", "s2"]

    @pytest.mark.parametrize("first", ['{"session": "s0", "ranking":', '{"session" "s0"}', "{x"])
    def test_damaged_first_line_does_not_affect_others(self, tmp_path, first):
        """It is reported by its line, and the objects after it are imported."""
        path, problems = tmp_path / "file", []
        path.write_text(f"{first}\n{json.dumps(BALLOT)}\n", encoding="utf-8")

        assert names(path, on_problem=problems.append) == ["s1"]
        assert [problem.line for problem in problems] == [1]

    def test_several_damaged_first_lines_do_not_affect_others(self, tmp_path):
        """Each is reported by its line, and the ballot below them is imported."""
        path, problems = tmp_path / "file", []
        path.write_text('{"session"\n{"session"\n' + json.dumps(BALLOT) + "\n", encoding="utf-8")

        assert names(path, on_problem=problems.append) == ["s1"]
        assert [problem.line for problem in problems] == [1, 2]

    def test_other_first_object_does_not_affect_others(self, tmp_path):
        """An object about the file is reported as one unreadable line."""
        path, problems = tmp_path / "file", []
        path.write_text(f'{{"version": 2}}\n{json.dumps(BALLOT)}\n', encoding="utf-8")

        assert names(path, on_problem=problems.append) == ["s1"]
        assert [problem.line for problem in problems] == [1]

    @pytest.mark.parametrize(
        ("text", "session"),
        [
            ("session,reviewer,candidate,rank\ns1,ann,bo,1\n", "s1"),
            ("session,reviewer,first,second,outcome\ns2,ann,bo,cy,tie\n", "s2"),
            ("question_id,model_a,model_b,winner\nq3,x,y,model_b\n", "q3"),
            ("question_id,model_a,model_b,winner,judge\nq4,x,y,model_b,arena_user_1\n", "q4"),
            (
                "# TITLE: lunch\n# ALTERNATIVE NAME 1: soup\n# ALTERNATIVE NAME 2: fish\n1: 2,1\n",
                "lunch",
            ),
        ],
    )
    def test_tables_are_recognised_by_their_columns(self, tmp_path, text, session):
        """Each kind of table gives its session."""
        path = tmp_path / "file"
        path.write_text(text, encoding="utf-8")

        assert names(path) == [session]

    def test_unknown_kind_suggests_the_nearest(self, tmp_path):
        """A misspelt kind is refused before the file is opened."""
        with pytest.raises(UnknownName, match=r"'battle'.*did you mean 'battles'"):
            read_imports(tmp_path / "absent", format="battle")

    def test_given_kind_is_used(self, tmp_path):
        """A table of battles read as csv-pairs gives ballots of models."""
        path = tmp_path / "file.csv"
        path.write_text("session,judge,model_a,model_b,winner\ns1,ann,x,y,model_a\n")

        [as_battles] = read_imports(path, format="battles")
        [as_pairs] = read_imports(path, format="csv-pairs")

        assert as_battles.ballots[0].groups == as_pairs.ballots[0].groups == (("x",), ("y",))

    def test_every_kind_has_a_description(self):
        """The formats of ballots, and three with more data."""
        assert {
            "jsonl",
            "csv",
            "csv-pairs",
            "preflib",
            "parquet",
            "sessions",
            "conversations",
        } <= set(FORMATS)
        assert all(sentence.endswith(".") for sentence in FORMATS.values())

    def test_battles_in_parquet_differ_from_ballots_in_parquet(self, tmp_path):
        """Both are imported, each as its kind, compressed or not."""
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        turns = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
        rows = [BATTLE | {"conversation_a": turns, "conversation_b": turns, "tstamp": 1e9}]
        parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "battles")
        parquet.write_table(arrow.Table.from_pylist([BALLOT]), tmp_path / "ballots")
        packed = gzip.compress((tmp_path / "battles").read_bytes())
        (tmp_path / "packed").write_bytes(packed)

        [battle] = read_imports(tmp_path / "battles")
        [ballot] = read_imports(tmp_path / "ballots")
        [unpacked] = read_imports(tmp_path / "packed")

        assert battle.question == "Why?"
        assert battle.answers == {"x": "So.", "y": "So."}
        assert battle.at == datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
        assert ballot.ballots[0].groups == (("bo",), ("cy",))
        assert unpacked == battle


class TestErrors:
    """Errors name their place, and affect only the bad input."""

    def test_empty_file_has_no_sessions(self, tmp_path):
        """Neither an empty file nor blank lines are a session."""
        for text in ("", "\n  \n"):
            (tmp_path / "file").write_text(text)
            assert names(tmp_path / "file") == []

    def test_good_lines_count(self, tmp_path):
        """An unreadable line is reported by file, line and field, and left out."""
        path = tmp_path / "file"
        bad = BATTLE | {"winner": "nobody"}
        path.write_text("\n".join(map(json.dumps, [BATTLE, bad, BATTLE | {"question_id": 7}])))
        problems = []

        assert names(path, on_problem=problems.append) == ["q1", "7"]

        [problem] = problems
        expected = "field 'winner' is 'nobody'; expected model_a, model_b, tie or tie (bothbad)"
        assert str(problem) == f"{path}:2: {expected}"

    def test_without_a_callback_the_first_problem_is_raised(self, tmp_path):
        """The error names the file and the line."""
        path = tmp_path / "file"
        path.write_text(json.dumps(BATTLE) + "\n" + json.dumps(BATTLE | {"model_b": "x"}))

        with pytest.raises(BallotFileError, match=r"file:2.*'model_b' is 'x'"):
            names(path)

    def test_truncated_compressed_file_is_reported(self, tmp_path):
        """The gzip data ends before the ballots do."""
        whole = gzip.compress(b"\n".join(json.dumps(BALLOT).encode() for _ in range(1000)))
        (tmp_path / "cut.gz").write_bytes(whole[:-20])

        with pytest.raises(BallotFileError, match="is truncated"):
            names(tmp_path / "cut.gz")

    def test_truncated_array_is_reported_by_its_line(self, tmp_path):
        """Half a file does not pass for a whole one."""
        whole = json.dumps([BATTLE, BATTLE], indent=1)
        (tmp_path / "cut.json").write_text(whole[:-10])

        with pytest.raises(BallotFileError, match=r"cut\.json:\d+.*not JSON"):
            names(tmp_path / "cut.json", on_problem=lambda _: None)

    def test_line_of_a_flaw_far_inside_an_array_is_reported(self, tmp_path):
        """Lines are counted over everything read before."""
        many = [BATTLE | {"notes": "x" * 500} for _ in range(2000)]
        text = (
            json.dumps(many, indent=1).replace("tie", 'tie" "', 1999).replace('tie" "', "tie", 1998)
        )
        (tmp_path / "f.json").write_text(text)
        line = text[: text.index('tie" "')].count("\n") + 1

        with pytest.raises(BallotFileError) as raised:
            names(tmp_path / "f.json")

        assert raised.value.line in (line, line + 1)

    @pytest.mark.parametrize("text", ["[1, 2]", '["text"]', '[{"a": 1}, 2]'])
    def test_array_of_something_else_is_refused(self, tmp_path, text):
        """An element that is not an object is reported."""
        (tmp_path / "file").write_text(text)

        with pytest.raises(BallotFileError):
            names(tmp_path / "file")

    def test_long_array_is_read_object_by_object(self, tmp_path):
        """An array larger than the read buffer gives every object, in order."""
        many = [BATTLE | {"question_id": f"q{k}", "notes": "x" * 500} for k in range(2000)]
        (tmp_path / "one line").write_text(json.dumps(many))
        (tmp_path / "spread").write_text(json.dumps(many, indent=4))

        wanted = [f"q{k}" for k in range(2000)]
        assert names(tmp_path / "one line") == names(tmp_path / "spread") == wanted


class TestFiles:
    """A file before it is read."""

    def test_digest_depends_on_the_content_only(self, tmp_path):
        """It covers the content and the options that change its meaning, not the name."""
        for name in ("one", "two"):
            (tmp_path / name).write_text(json.dumps(BALLOT))
        one, two = digest_of([tmp_path / "one"]), digest_of([tmp_path / "two"])

        assert one == two
        assert digest_of([tmp_path / "one"], kind=None, prefix="") == one
        assert digest_of([tmp_path / "one"], kind="csv") != one
        assert digest_of([tmp_path / "one", tmp_path / "two"]) != one

    def test_standard_input_can_be_read_twice(self, tmp_path):
        """It is buffered, so that its digest can be taken first; problems name stdin."""
        (tmp_path / "in").write_text(json.dumps(BALLOT) + "\nnot JSON\n")
        program = (
            "from witan.files.imports import digest_of, read_imports, rereadable_file\n"
            "with rereadable_file('-') as file:\n"
            "    print(digest_of([file]))\n"
            "    for one in read_imports(file, on_problem=print):\n"
            "        print(one.session)\n"
        )

        with (tmp_path / "in").open("rb") as piped:
            ran = subprocess.run(  # noqa: S603 - our own program
                [sys.executable, "-c", program], stdin=piped, capture_output=True, check=True
            )

        digest, problem, session = ran.stdout.decode().splitlines()
        assert digest == digest_of([tmp_path / "in"])
        assert problem.startswith("stdin:2: is not JSON")
        assert session == "s1"

    def test_folder_is_read_as_its_conversations_in_order(self, tmp_path):
        """Its .json and .eval files are read; a folder without any is refused."""
        for name in ("b.eval", "a.json", "notes.txt"):
            (tmp_path / name).write_text("{}")
        (tmp_path / "empty").mkdir()

        found = import_files(tmp_path)

        assert found == (str(tmp_path / "a.json"), str(tmp_path / "b.eval"))
        assert import_files(tmp_path / "a.json") == (str(tmp_path / "a.json"),)
        with pytest.raises(BallotFileError, match="is an empty folder"):
            import_files(tmp_path / "empty")
