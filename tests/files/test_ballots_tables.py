"""Tables as people have them: dialects, shapes, and errors on unknown ones."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.errors import BallotFileError
from witan.files.ballots import read_ballots
from witan.files.imports import read_imports

LONG = [
    ["Question ID", "Judge", "Model", "Score"],
    ["q1", "gpt", "x", "7.5"],
    ["q1", "gpt", "y", "6"],
    ["q1", "grok", "x", "8"],
]
CAST = [("q1", "gpt", {"x": 7.5, "y": 6}), ("q1", "grok", {"x": 8})]


def stream(content, name="votes.csv"):
    held = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    held.name = name
    return held


def read(content, **options):
    """Session, reviewer and grades of each ballot, and the notes."""
    notes = []
    found = read_ballots(stream(content), on_note=notes.append, **options)
    return [(b.session, b.reviewer, dict(b.grades)) for b in found], notes


def table(mark, *, quoted=False, end="\r\n", rows=LONG):
    cells = ([f'"{cell}"' for cell in row] if quoted else row for row in rows)
    return "".join(mark.join(row) + end for row in cells)


class TestDialects:
    """A table gives the same ballots in the dialect of any program."""

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be with a mark"])
    @pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("quoted", [False, True])
    def test_separators_marks_and_quotes(self, mark, quoted, encoding):
        """Comma, semicolon, tab and bar; UTF-8 and UTF-16; quoted headers; Windows line ends."""
        text = table(mark, quoted=quoted)
        if encoding == "utf-16-be with a mark":
            content = b"\xfe\xff" + text.encode("utf-16-be")
        else:
            content = text.encode(encoding)

        assert read(content) == (CAST, [])

    @pytest.mark.parametrize("mark", [";", "\t", "|"])
    def test_decimal_commas(self, mark):
        """Unless commas separate cells, a comma between digits is a decimal mark."""
        rows = [
            ["session", "judge", "model", "score", "accuracy"],
            ["1,5", "gpt", "2,0", "7,5", "6,25"],
        ]
        [(session, _, grades)], _ = read(table(mark, rows=rows))

        assert session == "1,5"
        assert grades == {"2,0": {"accuracy": 6.25, "overall": 7.5}}

    def test_spreadsheet_leftovers_are_ignored(self):
        """Trailing empty columns, rows of separators alone and the line ``sep=`` mean nothing."""
        rows = [*LONG, [""] * 4]
        text = "sep=;\r\n" + "".join(";".join([*row, "", ""]) + "\r\n" for row in rows)

        assert read(text) == (CAST, [])
        assert read(table(",", rows=[LONG[0], *([*row, "", ""] for row in LONG[1:])])) == (CAST, [])

    def test_blanks_after_commas_are_ignored(self):
        """A quoted cell may follow a blank."""
        text = 'session, judge, model, score\nq1, gpt, "x, the first", 7\n'
        assert read(text)[0] == [("q1", "gpt", {"x, the first": 7})]

    @pytest.mark.parametrize("header", ["Question ID", "question-id", "questionId", " QUESTION_ID"])
    def test_headers_in_any_spelling(self, header):
        """Case, blanks, hyphens and camel case do not matter."""
        assert read(table(",", rows=[[header, *LONG[0][1:]], *LONG[1:]]))[0] == CAST

    @given(
        st.lists(st.sampled_from("abc;|\t, x"), min_size=1, max_size=8).map("".join),
        st.sampled_from([",", ";", "\t", "|"]),
    )
    def test_quoted_header_does_not_set_the_separator(self, name, mark):
        """The separator is the one between quoted headers, not inside."""
        text = table(mark, rows=[[*LONG[0], f'"{name}"'], *([*row, ""] for row in LONG[1:])])
        assert read(text)[0] == CAST

    def test_rows_as_json_objects(self):
        """A long table may be in JSON Lines."""
        lines = (dict(zip(LONG[0], row, strict=True)) for row in LONG[1:])
        assert read("".join(json.dumps(line) + "\n" for line in lines))[0] == CAST


class TestAColumnPerJudge:
    """Rows are items and candidates; each column of grades is a judge."""

    TEXT = "item,model,Mean,gpt-4,claude,remark\nq1,x,7.5,7,8,good\nq1,y,5,5,,\nq2,x,9,9,9,so\n"
    CAST = (
        ("q1", "gpt-4", {"x": 7, "y": 5}),
        ("q1", "claude", {"x": 8, "y": ""}),
        ("q2", "gpt-4", {"x": 9}),
        ("q2", "claude", {"x": 9}),
    )

    def test_table_is_read_with_a_note(self):
        """Means and texts are not judges, and an empty cell is an unknown grade; a note says so."""
        cast, notes = read(self.TEXT)

        assert cast == list(self.CAST)
        [note] = notes
        assert all(fact in note for fact in ("read as csv-judges", "gpt-4, claude", "Mean, remark"))

    def test_lengths_are_read(self):
        """A column of lengths belongs to the answers; it is not a judge."""
        [one] = read_imports(stream("item,model,chars,a,b\nq1,x,120,7,8\n"))

        assert [ballot.reviewer for ballot in one.ballots] == ["a", "b"]
        assert one.lengths == {"x": 120}

    def test_single_judge_needs_a_named_format(self):
        """A single column may be anything, unless the format is named."""
        text = "item,model,helpful\nq1,x,7\nq1,y,5\n"
        with pytest.raises(BallotFileError, match="no column for reviewer and grade"):
            read(text)

        assert read(text, format="csv-judges")[0] == [("q1", "helpful", {"x": 7, "y": 5})]


class TestAColumnPerModel:
    """Rows are items, or items and judges; each column of grades is a model."""

    def test_rows_by_item_and_judge(self):
        """Every row is a ballot."""
        text = "item,judge,x,y\nq1,gpt,7,5\nq1,grok,8,\nq2,gpt,3,4\n"
        cast, notes = read(text)

        assert cast == [
            ("q1", "gpt", {"x": 7, "y": 5}),
            ("q1", "grok", {"x": 8, "y": ""}),
            ("q2", "gpt", {"x": 3, "y": 4}),
        ]
        [note] = notes
        assert all(fact in note for fact in ("read as csv-models", "x, y"))

    def test_rows_by_item_alone(self):
        """The judge is named after the file, with a note."""
        cast, notes = read("id,x,y\n7,0.5,0.25\n8,1,0\n")

        assert [(s, r) for s, r, _ in cast] == [("7", "votes"), ("8", "votes")]
        assert all(fact in notes[0] for fact in ("no reviewer column", "votes"))

    def test_rows_by_question(self):
        """Without an id each question is a session, with its text."""
        found = list(read_ballots(stream('prompt,x,y\n"Why,\nthen?",7,5\nHow?,5,6\n')))

        assert [(b.session, b.question) for b in found] == [
            ("votes/1", "Why,\nthen?"),
            ("votes/2", "How?"),
        ]

    def test_arbitrary_numbers_are_not_grades(self):
        """A table of numbers without an item is refused."""
        with pytest.raises(BallotFileError, match="not a recognised table"):
            read("x,y\n1,2\n3,4\n")


class TestPairs:
    """Two models and a winner, under the column names that files use."""

    @pytest.mark.parametrize(
        ("header", "winner"),
        [
            ("model_a,model_b,winner", "model_a"),
            ("Model A,Model B,Winner", "Model A"),
            ("model_1,model_2,preferred", "x"),
            ("left,right,choice", "left"),
            ("first,second,outcome", "first"),
        ],
    )
    @pytest.mark.parametrize("judge", [None, "judge", "Annotator", "rater", "user_id"])
    def test_headers_and_outcomes(self, header, winner, judge):
        """With a judge or without, the winner by its side or by its name."""
        end = ("", "") if judge is None else (f",{judge}", ",ann")
        [ballot] = read_ballots(stream(f"{header}{end[0]}\nx,y,{winner}{end[1]}\n"))

        assert ballot.groups == (("x",), ("y",))
        assert ballot.reviewer == ("human" if judge is None else "ann")

    @pytest.mark.parametrize("outcome", ["tie", "Tie (both bad)", "tie (bothbad)", "both_bad"])
    def test_ties(self, outcome):
        """Both good or both bad: neither won."""
        [ballot] = read_ballots(stream(f"model_a,model_b,winner\nx,y,{outcome}\n"))
        assert ballot.groups == (("x", "y"),)


class TestUnknownTables:
    """The error names the nearest shape, its missing columns, and the unread ones."""

    @pytest.mark.parametrize(
        ("text", "nearest", "way_on"),
        [
            (
                "q,who,left,right,better\n1,gpt,x,y,x\n1,grok,x,y,y\n",
                "the nearest format is csv-pairs, a row per comparison, with first in 'left' and "
                "second in 'right', but no column for reviewer and outcome; not read: q, who, "
                "better",
                "add a column for reviewer (reviewer, judge, voter) and outcome (outcome, winner, "
                "preference), or name the existing ones with columns reviewer=HEADER, "
                "outcome=HEADER, session=HEADER (session if the table contains several questions)",
            ),
            (
                "prompt_id,model,by,score\n1,x,ann,3\n1,y,ann,5\n",
                "with candidate in 'model' and grade in 'score', but no column for reviewer; "
                "not read: by",
                "or name the existing ones with columns reviewer=HEADER",
            ),
            (
                "name,age\nann,7\n",
                "its columns are name, age, none of which Witan knows; add a column for reviewer",
                "columns reviewer=HEADER, candidate=HEADER, grade=HEADER, session=HEADER (session",
            ),
        ],
    )
    def test_error_names_recognised_and_missing_columns(self, text, nearest, way_on):
        """With the remedy."""
        with pytest.raises(BallotFileError) as caught:
            read(text)

        assert nearest in str(caught.value)
        assert way_on in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            (
                "q,critic,left,right,better\n1,gpt,x,y,x\n1,grok,x,y,y\n2,gpt,x,y,x\n",
                {"reviewer": "critic", "outcome": "better", "session": "q"},
            ),
            (
                "q,left,right,better\n1,x,y,x\n1,x,y,x\n2,x,y,y\n",
                {"outcome": "better", "session": "q"},
            ),
            ("id,critic,left,right,score\n1,gpt,x,y,x\n2,gpt,x,y,y\n",
             {"reviewer": "critic", "outcome": "score"}),
            ("id,by,model,score\n1,ann,x,3\n1,ann,y,5\n2,ann,x,4\n2,ann,y,1\n",
             {"reviewer": "by", "session": "id"}),
            ("round,by,model,rank\n1,ann,x,1\n1,ann,y,2\n2,ann,x,1\n2,ann,y,2\n",
             {"reviewer": "by", "session": "round"}),
            ("item,by,model,score\n1,ann,x,3\n1,ann,y,5\n2,ann,x,4\n2,ann,y,1\n",
             {"reviewer": "by"}),
            ("prompt,by,model,score\n1,ann,x,3\n1,ann,y,5\n2,ann,x,4\n2,ann,y,1\n",
             {"reviewer": "by"}),
            ("round,critic,subject,stars\n1,gpt,x,3\n1,gpt,y,5\n2,gpt,x,4\n2,gpt,y,1\n",
             {"reviewer": "critic", "candidate": "subject", "grade": "stars", "session": "round"}),
        ],
    )  # fmt: skip
    def test_suggested_options_read_the_file_question_by_question(self, text, meant):
        """Naming the suggested columns gives a session per question."""
        with pytest.raises(BallotFileError) as caught:
            list(read_imports(stream(text)))

        wanted = caught.value.remedy.ways[-1].arguments["columns"]
        assert meant.keys() <= wanted.keys() <= {*meant, "reviewer"}
        sessions = list(read_imports(stream(text), columns=meant))
        assert len(sessions) == 2
        assert all(one.ballots for one in sessions)

    def test_file_without_a_judge_is_read(self):
        """Without a column for the judge, the judge is named after the file."""
        cast, notes = read("prompt_id,model,score\n1,x,3\n1,y,5\n")

        assert cast == [("1", "votes", {"x": 3, "y": 5})]
        [note] = notes
        assert all(fact in note for fact in ("votes.csv", "votes is used as the reviewer"))

    def test_questions_distinguish_sessions(self):
        """A table with questions but without ids has a session per question."""
        cast, _ = read("question,judge,model,score\nWhy?,g,x,7\nHow?,g,x,5\nWhy?,g,y,6\n")
        assert cast == [("votes/1", "g", {"x": 7, "y": 6}), ("votes/2", "g", {"x": 5})]
