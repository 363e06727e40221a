"""The scale of grades in files: detected, declared, written, and stored in a history."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan import RUBRICS, Ballot, read_ballots, tally, write_ballots
from witan.core.scale import Scale
from witan.errors import BallotFileError, UnclearScale, UnsuitableBallots
from witan.files.ballots.problems import ProblemReport, scale_ballots
from witan.files.imports import read_imports
from witan.files.rubric_toml import load_rubric, rubric_to_toml
from witan.history import History
from witan.service.operations.imports import FileOptions, import_file

UNIT = "reviewer,candidate,grade\nr1,a,0.85\nr1,b,0.6\nr1,c,1\nr2,a,0.9\nr2,b,0.5\nr2,c,0.7\n"
LOW = "reviewer,candidate,grade\nr1,a,4\nr1,b,2\nr2,a,5\nr2,b,3\n"


@st.composite
def casts(draw):
    """Ballots on any scale, without its name."""
    grade = draw(
        st.sampled_from([
            st.integers(1, 5), st.integers(0, 3), st.integers(1, 10), st.integers(0, 100),
            st.floats(0, 1), st.integers(0, 1), st.integers(-3, 12),
            st.sampled_from(["3/5", "11/20", "80 %", 7, "n/a", True]),
        ])
    )  # fmt: skip
    rows = st.dictionaries(st.sampled_from("abc"), grade, min_size=1)
    sheets = draw(st.lists(rows, min_size=1, max_size=4))
    return [Ballot(f"r{n}", grades=sheet, session="q") for n, sheet in enumerate(sheets)]


def count_file(ballots):
    """The result of counting: an outcome's lines, or the error without the name of a file."""
    try:
        outcome = tally(ballots, "range")
    except (UnclearScale, BallotFileError) as error:
        return str(error).split("the scale of the grades")[-1]
    except UnsuitableBallots:
        return "no grades"
    return outcome.standings, outcome.scales


@pytest.fixture
def file(tmp_path):
    """Write a file for one test."""

    def of(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return of


def grades(ballots):
    """The mean grade of each candidate, from 1 to 10."""
    outcome = tally(ballots, "range")
    return {line.candidate: round(line.score, 3) for line in outcome.standings}


HEADER = "session,reviewer,candidate,accuracy,relevance,completeness,clarity\n"


def guarded(cell):
    """A table of three reviewers with this cell as the accuracy of one candidate."""
    rows = (f"s,r{n},good,8,8,8,8\ns,r{n},bad,{cell},9,9,9\n" for n in range(3))
    return HEADER + "".join(rows)


def guarded_lines(**accuracy):
    """The same as JSON Lines."""
    good = dict.fromkeys(("accuracy", "relevance", "completeness", "clarity"), 8)
    bad = accuracy | dict.fromkeys(("relevance", "completeness", "clarity"), 9)
    lines = ({"reviewer": f"r{n}", "grades": {"good": good, "bad": bad}} for n in range(3))
    return "".join(json.dumps(line) + "\n" for line in lines)


class TestReading:
    """One file is one source, whatever its sessions."""

    def test_fractions_are_not_on_the_scale_from_1_to_10(self, file):
        """Neither 0.85, 0.60 nor 1 is dropped or read as the lowest grade."""
        assert grades(read_ballots(file("unit.csv", UNIT))) == {"a": 8.875, "b": 5.95, "c": 8.65}

    def test_all_sessions_of_a_file_share_a_scale(self, file):
        """A session of low grades has the scale of the others, also when counted alone."""
        lines = [
            {"session": "q1", "reviewer": "r", "grades": {"a": 5, "b": 3}},
            {"session": "q2", "reviewer": "r", "grades": {"a": 9, "b": 2}},
        ]
        path = file("two.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

        low, high = read_ballots(path)
        assert [str(ballot.scale) for ballot in (low, high)] == ["1-10", "1-10"]
        assert grades([low]) == {"a": 5, "b": 3}
        assert tally([low], "range").scales == ()  # a scale that is certainly 1-10 is not stated

    @pytest.mark.parametrize("name", ["cast.jsonl", "cast.csv", "cast.parquet"])
    @given(cast=casts())
    def test_ballots_from_python_count_like_their_file(self, tmp_path_factory, name, cast):
        """Both give the same scale, or the same error."""
        path = tmp_path_factory.mktemp("cast") / name
        write_ballots(cast, path)

        assert count_file(cast) == count_file(read_ballots(path))

    @pytest.mark.parametrize(
        "text",
        ["item,model,j1,j2\nq,a,\"8,5\",\"9,5\"\nq,b,7,\"6,5\"\n",
         "item,reviewer,a,b\nq,j1,\"8,5\",7\nq,j2,\"9,5\",\"6,5\"\n",
         "session,judge,model,score\nq,j1,a,\"8,5\"\nq,j1,b,7\nq,j2,a,\"9,5\"\nq,j2,b,\"6,5\"\n"],
        ids=["judges", "models", "long"],
    )  # fmt: skip
    def test_quoted_decimal_comma_is_a_decimal_mark(self, file, text):
        """In a table separated by commas, in every layout."""
        assert grades(read_ballots(file("comma.csv", text))) == {"a": 9, "b": 6.75}

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("cast.csv", guarded("")), ("cast.csv", guarded(" ")), ("cast.csv", guarded("n/a")),
            ("cast.jsonl", guarded_lines()), ("cast.jsonl", guarded_lines(accuracy=None)),
            ("cast.jsonl", guarded_lines(accuracy="")),
            ("cast.jsonl", guarded_lines(accuracy="n/a")),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("form", ["text", "parquet"])
    def test_missing_criterion_has_its_ceiling_in_any_spelling(self, file, name, text, form):
        """In any file, an answer without accuracy is capped like one with the lowest accuracy."""
        path = file(name, text)
        if form == "parquet":
            write_ballots(read_ballots(path), path.with_suffix(".parquet"))
            path = path.with_suffix(".parquet")

        assert grades(read_ballots(path)) == {"good": 8, "bad": 4}

    @pytest.mark.parametrize("name", ["difficulty", "Prompt Tokens", "latencyMs", "elapsed"])
    def test_numeric_columns_beside_the_grades_are_not_models(self, file, name):
        """Their names show it, and a note lists them."""
        text = f"item,gpt,grok,{name}\nq1,8,6,35\nq2,9,7,350\nq3,7,8,70\n"
        notes = []
        cast = list(read_ballots(file("models.csv", text), on_note=notes.append))

        assert {name for ballot in cast for name in ballot.grades} == {"gpt", "grok"}
        assert f"skipped columns: {name}" in notes[0]

    @pytest.mark.parametrize("scale", [None, "0-100"])
    def test_judge_with_a_larger_scale_is_not_dropped(self, file, scale):
        """A table with a column per judge holds the same grades as one with a row per grade."""
        wide = "question,candidate,anna,ben,carl\nq,a,9,8,95\nq,b,5,6,40\nq,c,3,4,20\n"
        wide += "q,d,7,9,80\n"
        long = "session,reviewer,candidate,grade\n"
        for line in wide.splitlines()[1:]:
            _, candidate, *held = line.split(",")
            pairs = zip(("anna", "ben", "carl"), held, strict=True)
            long += "".join(f"q,{judge},{candidate},{grade}\n" for judge, grade in pairs)
        notes = []
        texts = {"wide.csv": wide, "long.csv": long}
        found = {
            name: [
                (ballot.reviewer, ballot.grades, str(ballot.scale))
                for ballot in read_ballots(file(name, text), scale=scale, on_note=notes.append)
            ]
            for name, text in texts.items()
        }

        assert found["wide.csv"] == found["long.csv"]
        assert [reviewer for reviewer, *_ in found["wide.csv"]] == ["anna", "ben", "carl"]
        assert not any("skipped columns" in note for note in notes)
        if scale is None:
            assert [held for *_, held in found["wide.csv"]] == ["1-10", "1-10", "0-100"]

    def test_model_beyond_the_scale_of_the_others_is_not_dropped(self, file):
        """A table whose numbers fit no scale is refused, and none of them is ignored."""
        text = "item,gpt,grok,zeit\nq1,8,6,35\nq2,9,7,350\nq3,7,8,70\n"

        with pytest.raises(BallotFileError, match="they run from 6 to 350"):
            list(read_ballots(file("models.csv", text)))

    def test_late_field_is_reported(self, file):
        """A field that occurs only below the sampled rows is not read."""
        rows = [{"item": f"q{n}", "gpt": 8, "grok": 6} for n in range(300)]
        rows[250]["claude"] = 9
        notes = []
        path = file("late.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

        assert len(list(read_ballots(path, on_note=notes.append))) == 300
        assert notes[-1].endswith(
            "late.jsonl: the field 'claude' is not read: it first occurs on line 251, "
            "after 200 rows without it, nor are later ones"
        )

    def test_two_files_are_two_sources(self, file):
        """Each is read on its own scale."""
        paths = file("unit.csv", UNIT), file("low.csv", LOW)

        assert {str(b.scale) for path in paths for b in read_ballots(path)} == {"0-1", "1-5"}

    @pytest.mark.parametrize(
        ("scale", "score"), [(None, 7.75), ("1-10", 4), ("0-5", 8.2), ("5-1", 3.25)]
    )  # fmt: skip
    def test_caller_s_scale_wins(self, file, scale, score):
        """It applies to every grade."""
        assert grades(read_ballots(file("low.csv", LOW), scale=scale))["a"] == pytest.approx(
            score, abs=1.2
        )

    def test_column_declares_the_scale_of_each_row(self, file):
        """One judge's ballots may be on another scale than another's."""
        text = "reviewer,candidate,grade,scale\nr1,a,0.5,0-1\nr1,b,1,0-1\nr2,a,3,1-5\nr2,b,1,1-5\n"

        assert grades(read_ballots(file("two.csv", text))) == {"a": 5.5, "b": 5.5}

    def test_rubric_declares_the_scale_if_the_file_does_not(self, file, tmp_path):
        """It wins over detection, but not over the file."""
        general = RUBRICS["general"]
        path = tmp_path / "mine.toml"
        text = rubric_to_toml(general).replace("\n", '\nscale = "0-5"\n', 1)
        path.write_text(text, encoding="utf-8")
        rubric = load_rubric(path)
        said = LOW.replace("grade\n", "grade,scale\n").replace("\nr", ",1-5\nr")

        assert rubric_to_toml(rubric) == text
        [one, _] = read_ballots(file("low.csv", LOW), rubric=rubric)
        assert str(one.scale) == "0-5"
        [one, _] = read_ballots(file("said.csv", said[:-1] + ",1-5\n"), rubric=rubric)
        assert str(one.scale) == "1-5"

    def test_ambiguous_scale_is_refused_with_two_readings(self, file):
        """The error has the file, the range, and an option for each reading."""
        path = file("odd.csv", "reviewer,candidate,grade\nr,a,7\nr,b,85\nr,c,9\n")

        with pytest.raises(BallotFileError) as refused:
            list(read_ballots(path))
        for fact in (f"{path} ", "from 7 to 85", "scale=1-10", "1 of 3 grades", "scale=0-100"):
            assert fact in str(refused.value)
        assert len(list(read_ballots(path, scale="0-100"))) == 1

    def test_grade_outside_the_scale_is_reported_by_line(self, file):
        """It counts as the nearer end."""
        text = (
            '{"reviewer":"r1","grades":{"a":0.5,"b":1.5}}\n{"reviewer":"r2","grades":{"a":"x"}}\n'
        )
        told = []
        path = file("out.jsonl", text)
        read = list(read_ballots(path, scale="0-1", on_problem=told.append, reports_doubts=True))

        assert [(p.line, p.is_read, p.problem) for p in told] == [
            (
                1,
                True,
                "has the number 1.5 for 'b', outside the scale 0-1; counted as the nearer end",
            ),
            (2, True, "has the text 'x' for 'a', which is not a grade; dropped when counted"),
        ]
        assert grades(read[:1]) == {"b": 10, "a": 5.5}

    def test_few_grades_that_decide_the_scale_are_named(self, file):
        """So are the smaller scale of all others, and the option that declares it."""
        rows = [
            f"q{n},r{v},{c},{(n + int(v)) % 4}\n" for n in range(40) for v in "12" for c in "abc"
        ]
        rows[100], rows[150] = "q16,r2,b,8\n", "q25,r1,a,4\n"
        path = file("stray.csv", "session,reviewer,candidate,grade\n" + "".join(rows))
        [scale] = {ballot.scale for ballot in read_ballots(path)}

        assert str(scale) == "0-10"
        assert scale.sentence.endswith(
            "all but 2 of 240 grades fit 0-3 (the highest is 8; scale=0-3 clamps such grades)"
        )
        [declared] = {ballot.scale for ballot in read_ballots(path, scale="0-3")}
        assert "all but" not in declared.sentence

    def test_an_option_for_some_reviewers_is_not_advised(self, file):
        """It would also apply to the others: their grades from 40 to 100 would all be 3."""
        rows = [
            f"q{n},{reviewer},{c},{best * place // 3}\n"
            for n in range(60)
            for place, c in enumerate("abcd")
            for reviewer, best in (("ada", 3), ("bob", 60), ("cyd", 60))
        ]
        rows += [
            "q0,ada,e,4\n",
            *(f"q{n},{who},e,95\n" for n in range(9) for who in ("bob", "cyd")),
        ]
        path = file("mixed.csv", "session,reviewer,candidate,grade\n" + "".join(rows))
        sentences = {ballot.reviewer: ballot.scale.sentence for ballot in read_ballots(path)}

        assert "grades of bob and cyd are read as 0-100" in sentences["bob"]
        assert "all but 1 of 241 grades fit 0-3 (the highest is 4)" in sentences["ada"]
        assert not any("scale=" in sentence for sentence in sentences.values())

    def test_the_option_is_named_once(self, file):
        """At the end, where a command writes it in its own way."""
        rows = [
            f"q{n},r{v},{c},{(n + int(v)) % 4}\n" for n in range(40) for v in "12" for c in "abc"
        ]
        rows[100] = "q16,r2,b,4\n"
        path = file("stray.csv", "session,reviewer,candidate,grade\n" + "".join(rows))
        [scale] = {ballot.scale for ballot in read_ballots(path)}

        assert scale.sentence.count("scale=") == 1
        assert scale.sentence.endswith(
            "; they also fit 0-10; all but 1 of 240 grades fit 0-3 (the highest is 4; scale=0-3 "
            "clamps such grades)"
        )

    def test_large_file_is_spooled_to_disk(self):
        """The order and the scale stay the same."""
        cast = [Ballot(f"r{k}", grades={"a": k / 10}) for k in range(11)]
        read = list(scale_ballots(cast, ProblemReport("many.jsonl", None), max_buffered=3))

        assert [ballot.reviewer for ballot in read] == [f"r{k}" for k in range(11)]
        assert {str(ballot.scale) for ballot in read} == {"0-1"}


class TestWriting:
    """Written files name their scale, and are read unchanged."""

    @pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
    @pytest.mark.parametrize("scale", ["1-10", "0-1", "pass-fail", "1-10,style=1-5"])
    def test_every_format_keeps_the_scale(self, tmp_path, name, scale):
        """Low grades from 1 to 10 are not read back as grades from 1 to 5."""
        held = Scale.parse(scale)
        cast = [Ballot("r", grades={"a": {"style": 4.0}, "b": {"style": 1.0}}, scale=held)]
        write_ballots(cast, tmp_path / name)

        assert list(read_ballots(tmp_path / name)) == cast

    def test_grades_are_written_unchanged(self, file, tmp_path):
        """They are written with the detected scale, so that no reader has to detect it."""
        write_ballots(read_ballots(file("unit.csv", UNIT)), tmp_path / "out.jsonl")
        record = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])

        assert record["grades"] == {"a": 0.85, "b": 0.6, "c": 1}
        assert record["scale"] == "0-1"


class TestHistory:
    """An import stores grades unchanged, and counts them from 1 to 10."""

    def test_session_counts_and_exports_on_its_scale(self, file, tmp_path):
        """Its outcome, its rows and its export agree with the file."""
        path = file(
            "unit.csv", UNIT.replace("reviewer", "session,reviewer").replace("\nr", "\nq,r")
        )
        with History.open(tmp_path / "history.sqlite") as history:
            taken = import_file(history, path, FileOptions())
            [ballot, _] = history.export("q").ballots

        [line] = [scale.sentence for scale in taken.scales]
        assert all(fact in line for fact in ("0-1 (recognised)", "converted to 1-10"))
        assert dict(ballot.grades) == {"a": 0.85, "b": 0.6, "c": 1}
        assert str(ballot.scale) == "0-1"
        assert grades([ballot]) == {"c": 10, "a": 8.65, "b": 6.4}

    def test_low_grades_of_an_export_are_from_1_to_10(self, file):
        """A line of a whole session names every other scale."""
        line = {
            "witan_imported": 1, "session": "q", "at": datetime(2026, 1, 1, tzinfo=UTC).isoformat(),
            "ballots": [{"reviewer": "r", "grades": {"a": 4, "b": 2}}],
        }  # fmt: skip
        path = file("export.jsonl", json.dumps(line) + "\n")

        [session] = read_imports(path)
        assert [str(ballot.scale) for ballot in session.ballots] == ["1-10"]
        assert [str(ballot.scale) for ballot in read_ballots(path)] == ["1-10"]
