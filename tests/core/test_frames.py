"""Results as data frames, in the reader's own library."""

import pytest

import witan
from processes import run_python
from witan import batches
from witan.errors import InvalidParameter
from witan.models import Line, ScriptedModel
from witan.surfaces.cli.app import main
from witan.surfaces.notebook import flatten, make_frame

BALLOTS = [
    witan.Ballot("ada", grades={"x": 9, "y": 4}),
    witan.Ballot("bob", grades={"x": 8, "y": 5}),
    witan.Ballot("cyd", grades={"x": 9, "y": 3}),
]

CRITERIA = ("accuracy", "relevance", "completeness", "conciseness", "clarity")


def test_an_outcome_has_a_row_for_each_candidate():
    """Intervals are two columns; a rule's own numbers are columns of their own."""
    frame = witan.tally(BALLOTS, rule="calibrated").frame("pandas")

    assert [*frame["candidate"]] == ["x", "y"]
    assert frame["interval_low"][0] < frame["score"][0] < frame["interval_high"][0]
    assert {"session", "rule", "p_best", "tier"} <= {*frame.columns}


def test_a_verdict_has_a_row_for_each_text():
    """Each criterion has its mean, its interval and its number of ballots."""
    grades = {"moraine": dict.fromkeys(CRITERIA, 9)}
    jury = [ScriptedModel(name, reviews=[Line(grades=grades)]) for name in ("u", "v")]
    session = witan.judge("a moraine", jury, pass_mark=6)

    frame = session.verdict.frame("pandas")
    assert (len(frame), frame["clarity_mean"][0], frame["clarity_n_ballots"][0]) == (1, 9.0, 2)
    assert "passed" in session.verdict._repr_markdown_()


def test_a_row_of_a_verdict_has_the_decision_on_its_text():
    """The verdict on all texts is not repeated in each row."""
    words = {"moraine": 9, "glacier": 7.5, "ice": 2}
    grades = {word: dict.fromkeys(CRITERIA, grade) for word, grade in words.items()}
    jury = [ScriptedModel(name, reviews=[Line(grades=grades)]) for name in "uvwxyz"]
    texts = {f"a {word}": f"a {word}" for word in words}
    marked = witan.judge(texts, jury, pass_mark=6).verdict.frame("pandas")
    unmarked = witan.judge(texts, jury).verdict.frame("pandas")

    assert [*marked["text"]] == ["a moraine", "a glacier", "a ice"]
    assert [*marked["decision"]] == ["passed", "passed", "failed"]
    assert [*marked["leads"]] == [True, False, False]
    assert [*unmarked["decision"]] == [None, None, None]


def test_a_session_has_a_row_for_each_seat():
    """It has the answer, its time and cost, and its standing."""
    seats = [
        ScriptedModel(name, answers=[f"{name} says so"], reviews=[Line(prefers=("ada",))])
        for name in ("ada", "bob", "cyd")
    ]
    frame = witan.ask("Which?", seats, mode="best").frame("pandas")

    assert [*frame["answer"]] == ["ada says so", "bob says so", "cyd says so"]
    assert frame["rank"][0] == 1


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_reader_chooses_the_library(library):
    """Every row has every column; absent values are missing."""
    pytest.importorskip(library)
    frame = make_frame([{"a": 1, "b": None}, {"a": 2, "c": "x"}], library)

    assert type(frame).__module__.startswith(library)
    assert frame.shape == (2, 3)


def test_an_imported_library_is_the_default():
    """With Arrow imported, the result is an Arrow table, though pandas is installed."""
    code = (
        "import pyarrow; from witan.surfaces.notebook import make_frame;"
        "print(type(make_frame([{'a': 1}])).__module__)"
    )
    output = run_python(code, check=True)

    assert output.stdout.strip() == "pyarrow.lib"


def test_an_unknown_library_is_refused():
    """The error lists the libraries, or how to install one."""
    with pytest.raises(InvalidParameter, match="pandas or polars or pyarrow"):
        make_frame([], "numpy")


def test_nested_values_become_columns():
    """Names are joined in one text; an interval's level and other tuples are left out."""
    interval = witan.stats.Interval(1.0, 2.0, 0.95)

    assert flatten({"a": interval, "b": ("x", "y"), "c": (1, 2), "d": {"e": 3}}) == {
        "a_low": 1.0,
        "a_high": 2.0,
        "b": "x, y",
        "d_e": 3,
    }


def test_columns_are_the_same_where_numbers_are_unknown():
    """An interval that one ballot cannot give is two empty columns, not two columns fewer."""
    one, many = (witan.tally(BALLOTS[:n], rule="borda").frame("polars") for n in (1, 3))

    assert one["interval_low"].to_list() == [None, None]
    assert one.columns == many.columns


def test_a_session_without_an_outcome_has_the_columns_of_standings():
    """Below the quorum nobody stands, and every seat has empty columns."""
    seats = [
        ScriptedModel(name, answers=[f"{name} says so"], reviews=[Line(error="is ill")])
        for name in ("ada", "bob", "cyd")
    ]
    session = witan.ask("Which?", seats, mode="best", attempts=1)
    frame = session.frame("polars")

    assert session.outcome is None
    assert frame["interval_low"].to_list() == frame["rule"].to_list() == [None] * 3
    assert {"rank", "score", "std_error", "p_best", "tier"} <= {*frame.columns}


def test_estimates_have_a_row_for_each_system_and_difference():
    """The corrected number, the jury's and that of people alone, each with interval and count."""
    ballots = []
    for n in range(24):
        good, bad = 7 + n % 3, 4 + n % 2
        for reviewer in ("u", "v"):
            grades = {"x": good, "y": bad}
            ballots.append(witan.Ballot(reviewer, grades=grades, session=f"s{n}"))
        if n % 2:
            grades = {"x": good - 1, "y": bad}
            ballots.append(witan.Ballot("ann", grades=grades, session=f"s{n}", kind="human"))
    estimates = witan.stats.estimate(ballots)
    frame = estimates.frame("polars")

    assert frame["system"].to_list() == [None, "x", "y", "x"]
    assert frame["minus"].to_list() == [None, None, None, "y"]
    assert frame["people_n"].to_list() == [24, 12, 12, 12]
    assert 0 < frame["corrected_low"][0] < frame["corrected"][0] < frame["corrected_high"][0]
    assert frame["jury"][1] > frame["corrected"][1] > frame["people"][1] - 0.5
    assert "srcdoc=" in estimates._repr_html_()


def test_an_audit_has_a_row_for_each_reviewer(tmp_path):
    """Of an audit on one criterion, for each who graded by it; measures have four columns."""
    ballots = [
        witan.Ballot(
            name,
            grades={"x": {"clarity": 8, "accuracy": 7}, "y": {"clarity": 5 + k, "accuracy": 4}},
            session=f"s{n}",
        )
        for n in range(6)
        for k, name in enumerate(("u", "v"))
    ]
    file = tmp_path / "ballots.jsonl"
    witan.write_ballots(ballots, file)
    assert main(["import", str(file), "--history", str(tmp_path / "history.db")]) == 0
    audit = witan.audit(tmp_path / "history.db")
    every, clarity = audit.frame("polars"), audit.on(criterion="clarity").frame("polars")

    assert every["reviewer"].to_list() == clarity["reviewer"].to_list() == ["u", "v"]
    assert {"severity", "severity_low", "severity_high", "severity_n"} <= {*every.columns}
    assert "length_longer_wins" in every.columns
    assert clarity["criterion"].to_list() == ["clarity", "clarity"]
    assert clarity["mean_n"].to_list() == [12, 12]


@pytest.mark.anyio
async def test_results_of_a_batch_have_a_row_for_each(tmp_path):
    """The grade is that of the text that the verdict is about; without a verdict it is null."""
    grades = {"moraine": dict.fromkeys(CRITERIA, 9)}
    lines = [Line(contains="basalt", text="no"), Line(grades=grades)]
    jury = [ScriptedModel(name, reviews=lines) for name in ("u", "v")]
    texts = ("a moraine", "a moraine, again", "basalt")
    rows = [batches.BatchRow(n, texts={"text": text}) for n, text in enumerate(texts, start=1)]
    results = batches.RowResults()
    with witan.History.open(tmp_path / "history.db") as history:
        async with witan.Council(jury, attempts=1) as council:
            options = batches.BatchOptions(pass_mark=6, concurrency=1)
            await batches.Batch(council, history, rows, options).run(results.append)
    frame = results.frame("polars").sort("row")

    assert frame["decision"].to_list() == ["passed", "passed", None]
    assert frame["grade_mean"].to_list() == [9, 9, None]
    assert frame["grade_interval_low"][0] < 9
    assert not {name for name in frame.columns if name.startswith("verdict")}
