"""Ballots in CSV: long tables, tables of pairs, and their bad rows."""

import pytest

from witan.core.ballot import Ballot
from witan.core.rubric import RUBRICS
from witan.errors import BallotFileError, UnknownName
from witan.files.ballots import read_ballots
from witan.files.ballots.columns import CRITERIA


def read(tmp_path, text, **options):
    """Write this text, read it back: ballots and the problems as text without the folder."""
    path = tmp_path / "votes.csv"
    path.write_text(text, encoding="utf-8", newline="")
    problems = []
    cast = list(read_ballots(path, on_problem=problems.append, **options))
    return cast, [str(problem).removeprefix(f"{tmp_path}/") for problem in problems]


class TestLong:
    """One row per session, reviewer and candidate."""

    def test_rows_of_a_ballot_may_be_scattered(self, tmp_path):
        """A file sorted by candidate gives the same ballots; equal ranks are tied."""
        cast, problems = read(
            tmp_path,
            "session,reviewer,candidate,rank,grade\n"
            "q,r,a,3,6\nq,s,a,1,\nq,r,b,1,8.5\nq,s,b,,8/10\nq,r,c,3,\n",
        )

        assert problems == []
        assert cast == [
            Ballot("r", (("b",), ("a", "c")), {"a": 6, "b": 8.5}, session="q", scale="1-10"),
            Ballot("s", (("a",),), {"b": "8/10"}, session="q", scale="1-10"),
        ]

    def test_criteria_are_columns_beside_the_overall_grade(self, tmp_path):
        """Known criteria, prefixed and listed ones are read; other columns are not grades."""
        cast, _ = read(
            tmp_path,
            "reviewer,candidate,grade,Accuracy,grade:wit,depth,output_chars\n"
            "r,a,7,9,5,4,1200\nr,b,7,,,,80\nr,c,,9,,,80\n",
            columns={"criteria": "depth"},
        )

        assert cast[0].grades == {
            "a": {"accuracy": 9, "wit": 5, "depth": 4, "overall": 7},
            "b": 7,
            "c": {"accuracy": 9},
        }

    def test_unknown_numeric_columns_are_criteria(self, tmp_path):
        """A table of unknown numbers alone is a rubric of its own; words in it are not."""
        cast, _ = read(tmp_path, "reviewer,candidate,wit,tempo,remark\nr,a,7,4,nice\n")

        assert cast[0].grades == {"a": {"wit": 7, "tempo": 4}}

    def test_every_criterion_of_a_named_rubric_is_known(self):
        """The reader's own list of criteria matches the rubrics."""
        named = {c.name for rubric in RUBRICS.values() for c in rubric.criteria}

        assert named | {"overall"} == set(CRITERIA)

    def test_optional_columns_are_read(self, tmp_path):
        """Optional columns describe the ballot, and position and author of the candidate."""
        cast, _ = read(
            tmp_path,
            "session,reviewer,candidate,rank,position,author,weight,category,at,kind,question,notes,"
            'candidates\nq,r,a,1,2,x,0.5,maths,2025-01-31T09:30:00+01:00,human,"Why, so?",n,a|b\n'
            "q,r,b,2,1,,,,,,,,\n",
        )

        one = cast[0]
        assert (one.positions, one.authors, one.weight) == ({"a": 2, "b": 1}, {"a": "x"}, 0.5)
        assert (one.category, one.kind, one.question, one.notes) == (
            "maths",
            "human",
            "Why, so?",
            "n",
        )
        assert one.at is not None
        assert one.at.isoformat() == "2025-01-31T09:30:00+01:00"
        assert one.candidates == ("a", "b")

    def test_abstention_is_a_row_without_a_candidate(self, tmp_path):
        """It may have a reason."""
        cast, problems = read(
            tmp_path, "reviewer,candidate,rank,abstained,reason\nr,,,true,ill\ns,a,1,,\n"
        )

        assert problems == []
        assert cast[0] == Ballot("r", abstained=True, reason="ill")

    def test_columns_are_recognised_by_alias_in_any_case(self, tmp_path):
        """The column names of other tools are known."""
        cast, _ = read(tmp_path, "Prompt_ID,Judge,Model,Score,Judge_Kind\nq,j,m,8,llm\n")

        assert cast == [Ballot("j", grades={"m": 8}, session="q", scale="1-10")]

    def test_columns_can_be_named_and_joined(self, tmp_path):
        """A field is read from the named column; a plus joins two with @."""
        cast, _ = read(
            tmp_path,
            "task,who,version,candidate,grade\nq,j,1,m,8\nq,j,2,m,9\n",
            columns={"session": "task", "reviewer": "who+version"},
        )

        assert [(one.session, one.reviewer, one.grades) for one in cast] == [
            ("q", "j@1", {"m": 8}),
            ("q", "j@2", {"m": 9}),
        ]

    def test_last_of_repeated_rows_counts_with_one_notice(self, tmp_path):
        """The notice has the number of repeated cells in the file."""
        cast, problems = read(
            tmp_path, "reviewer,candidate,rank,grade\nr,a,1,8\nr,a,,7\nr,b,2,\nr,b,1,\n"
        )

        assert cast == [Ballot("r", groups=(("b",),), grades={"a": 7}, scale="1-10")]
        assert len(problems) == 1
        assert problems[0].startswith("votes.csv:3: field 'candidate'")

    @pytest.mark.parametrize("mark", [";", "\t"])
    def test_semicolons_and_tabs_are_separators(self, tmp_path, mark):
        """A header without commas is split at the separator that it has."""
        text = "reviewer,candidate,rank\nr,a,1\n".replace(",", mark)

        assert read(tmp_path, text)[0] == [Ballot("r", groups=(("a",),))]

    def test_quoted_cells_may_contain_commas_quotes_and_line_breaks(self, tmp_path):
        """Later lines keep their numbers."""
        cast, problems = read(tmp_path, 'reviewer,candidate,rank\n"a, ""b""\nc",x,1\nr,x,zero\n')

        assert cast[0].reviewer == 'a, "b"\nc'
        assert problems[0].startswith("votes.csv:4: field 'rank'")

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            (",a,1,,,,", "field 'reviewer' is empty"),
            ("s,,1,,,,", "field 'candidate' is empty"),
            ("s,a,x,,,,", "field 'rank' is 'x'; expected a number from 1 up"),
            ("s,a,0,,,,", "field 'rank' is '0'; expected a number from 1 up"),
            ("s,a,nan,,,,", "field 'rank' is 'nan'"),
            ("s,a,1,abc,,,", "field 'weight' is the text 'abc'; expected a number of 0 or more"),
            ("s,a,1,-2,,,", "field 'weight' is -2, below zero"),
            ("s,a,1,inf,,,", "field 'weight' is the text 'inf'"),
            ("s,a,1,,cat,,", "field 'kind' is 'cat'; expected 'model' or 'human'"),
            ("s,a,1,,,noon,", "field 'at' is 'noon'; expected a time such as"),
            ("s,a,1,,,,1.5", "field 'position' has the number 1.5 for 'a'; expected a whole"),
            ("s,a,1,,,,1,9", "has 8 cells where the header has 7"),
            ("r,c,3,2,,,", "field 'weight' is 2.0 here and 1.0 on an earlier row of this ballot"),
        ],
    )
    def test_bad_row_is_reported_and_the_good_ones_count(self, tmp_path, row, said):
        """A problem names line and column; only that row is dropped."""
        cast, problems = read(
            tmp_path,
            f"reviewer,candidate,rank,weight,kind,at,position\nr,a,1,1,,,\n{row}\n\nr,b,2,,,,\n",
        )

        assert cast == [Ballot("r", groups=(("a",), ("b",)))]
        assert len(problems) == 1
        assert problems[0].startswith(f"votes.csv:3: {said}")

    def test_open_quote_is_reported(self, tmp_path):
        """A quote that never closes is a problem of its row, not a huge name."""
        cast, problems = read(tmp_path, 'reviewer,candidate,rank\nr,a,1\nr,"b,2\nr,c,3\n')

        assert cast == [Ballot("r", groups=(("a",),))]
        [problem] = problems
        assert all(fact in problem for fact in ("votes.csv:3: is not CSV", "quotes in pairs"))

    def test_line_with_a_cr_inside_is_reported(self, tmp_path):
        """The other lines are read; a CR in quotes is text."""
        text = 'reviewer,candidate,rank,"no\rtes"\nr,a,1,\nr,b,2,\rr,c,3,\n'
        cast, problems = read(tmp_path, text)

        assert cast == [Ballot("r", groups=(("a",),))]
        assert problems == [
            "votes.csv:3: has a line that ends in CR alone; save the file with LF or CRLF line ends"
        ]

    def test_header_without_ballot_columns_is_refused(self, tmp_path):
        """The error shows the header and the expected columns."""
        with pytest.raises(BallotFileError, match=r"not a recognised table.*name, age"):
            read(tmp_path, "name,age\nx,3\n")

    def test_missing_named_column_is_refused(self, tmp_path):
        """The error lists the file's columns."""
        with pytest.raises(BallotFileError, match=r"no column 'judge'.*reviewer"):
            read(tmp_path, "reviewer,candidate\nr,a\n", columns={"reviewer": "judge"})

    def test_format_that_does_not_fit_the_header_is_refused(self, tmp_path):
        """Reading a long table as pairs names the missing column."""
        with pytest.raises(BallotFileError, match="for the field 'first'"):
            read(tmp_path, "reviewer,candidate,rank\nr,a,1\n", format="csv-pairs")

    def test_unknown_field_is_refused(self, tmp_path):
        """`columns` for an unknown field suggests the nearest."""
        with pytest.raises(UnknownName, match="did you mean 'reviewer'"):
            read(tmp_path, "reviewer,candidate\nr,a\n", columns={"reviewr": "judge"})


class TestPairs:
    """One row per comparison."""

    def test_each_outcome_is_a_ballot_with_the_order_shown(self, tmp_path):
        """First, second, tie and abstain; the positions record the order shown."""
        cast, problems = read(
            tmp_path,
            "session,reviewer,first,second,outcome\n"
            "q,r,a,b,first\nq,r,b,a,second\nq,s,a,b,TIE\nq,t,a,b,invalid\n",
        )

        shared = {"session": "q", "paired": True}
        ab, ba = {"a": 1, "b": 2}, {"b": 1, "a": 2}
        assert problems == []
        assert cast == [
            Ballot("r", groups=(("a",), ("b",)), positions=ab, **shared),
            Ballot("r", groups=(("a",), ("b",)), positions=ba, **shared),
            Ballot("s", groups=(("a", "b"),), positions=ab, **shared),
            Ballot("t", abstained=True, candidates=("a", "b"), positions=ab, **shared),
        ]

    def test_arena_columns_and_words_are_known(self, tmp_path):
        """model_a, model_b and winner are read, in every notation of the winner."""
        cast, _ = read(
            tmp_path,
            "question_id,model_a,model_b,winner,judge\n"
            "1,x,y,model_b,p\n1,x,y,A,p2\n1,x,y,tie (bothbad),p3\n1,x,y,y,p4\n",
        )

        y_wins = (("y",), ("x",))
        assert [one.groups for one in cast] == [y_wins, (("x",), ("y",)), (("x", "y"),), y_wins]

    def test_people_sharing_a_name_keep_their_votes(self, tmp_path):
        """A repeated vote by "human" is another person's; a model's is a repetition."""
        cast, _ = read(
            tmp_path,
            "session,reviewer,first,second,outcome,kind\n"
            "q,human,a,b,first,human\nq,human,a,b,second,human\nq,human,a,b,tie,human\n"
            "q,human,b,a,tie,human\nq2,human,a,b,tie,human\nq,m,a,b,tie,llm\nq,m,a,b,tie,llm\n",
        )

        names = [one.reviewer for one in cast]
        assert names == ["human", "human-2", "human-3", "human", "human", "m", "m"]

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ("q,,a,b,first", "field 'reviewer' is an empty name"),
            ("q,r,,b,first", "field 'first' is an empty name"),
            ("q,r,a,a,first", "field 'second' is 'a', the same as the first"),
            ("q,r,a,b,", "field 'outcome' is ''; expected first, second, tie or abstain"),
            ("q,r,a,b,maybe", "field 'outcome' is 'maybe'"),
            (
                "q,r,B,A,A",
                "field 'outcome' is 'A', a word for the first and the name of the second",
            ),
        ],
    )
    def test_bad_row_is_reported_and_the_good_ones_count(self, tmp_path, row, said):
        """A problem names line and column; the rows around it are read."""
        good = "q,s,a,b,first"

        cast, problems = read(
            tmp_path, f"session,reviewer,first,second,outcome\n{good}\n{row}\n{good}\n"
        )

        assert len(cast) == 2
        assert len(problems) == 1
        assert problems[0].startswith(f"votes.csv:3: {said}")
