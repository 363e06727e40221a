"""``witan judge``, black box: texts before a jury, exit statuses, records, and what is refused."""

import json
from io import BytesIO, TextIOWrapper

import pytest

from scripts import write_jury, write_script


@pytest.fixture
def jury(tmp_path):
    """The options that seat three jurors, who like moraines."""
    options = [part for seat in write_jury(tmp_path) for part in ("--jury", seat)]
    return [*options, "--history", tmp_path / "history.sqlite"]


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A good text and a bad one, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.md").write_text("It is the moraine.")
    (tmp_path / "bad.md").write_text("It is the glacier.")


@pytest.mark.usefixtures("texts")
class TestStatus:
    """The exit status is the decision."""

    @pytest.mark.parametrize(
        ("arguments", "status", "words"),
        [
            (["good.md", "--pass-mark", 6], 0, "passed: 9.0"),
            (["good.md", "--pass-mark", 9], 5, "too close to call: 9.0"),
            (["bad.md", "--pass-mark", 8], 1, "failed: 3.0"),
            (["bad.md"], 0, "3.0 (1.0 to 5.0) of 10"),
            (["good.md", "bad.md"], 0, "passed: good.md leads clearly"),
            (["bad.md", "good.md", "--expected", "bad.md"], 1, "bad.md was expected"),
            (["bad.md", "good.md", "--expected", "tie"], 1, "a tie was expected"),
        ],
    )
    def test_the_decision_is_printed_and_returned(self, witan, jury, arguments, status, words):
        """In the first sentence on standard output, and as status."""
        said = witan("judge", *arguments, *jury, "-q")

        assert (said.status, said.err) == (status, "simulated\n")
        assert words in said.out

    @pytest.mark.parametrize(
        ("files", "has"), [(["good.md"], False), (["good.md", "bad.md"], True)]
    )
    def test_agreement_is_on_which_text_is_best(self, witan, jury, files, has):
        """A single text has no rival; its verdict says how certain the grade is."""
        said = witan("judge", *files, *jury, "--pass-mark", 6)

        assert ("agreement" in said.err) is has
        assert "reliability unknown" in said.err

    def test_the_record_has_the_verdict(self, witan, jury):
        """The session is in the history and can be shown, recounted and listed."""
        said = witan("judge", "good.md", *jury, "--pass-mark", 6, "--json")
        verdict = said.json["verdict"]
        history = jury[-2:]
        shown = witan("show", "last", *history)
        counted = witan("recount", "last", "--without", "xan", "--level", 0.9, "--json", *history)
        listed = witan("sessions", *history)

        assert (verdict["decision"], verdict["text"]) == ("passed", "good.md")
        assert verdict["texts"][0]["criteria"]["clarity"]["mean"] == 9
        assert "Passed. 9.0" in shown.out
        assert "It is the moraine." in shown.out
        assert "passed" in listed.lines[-1]
        assert counted.json["verdict"]["reviewers"] == ["yma", "zoe"]
        assert counted.json["verdict"]["level"] == 0.9

    @pytest.mark.parametrize(
        ("kind", "decision", "reviewers"),
        [
            ("human", "too close to call", ["jo"]),
            ("all", "passed", ["xan", "yma", "zoe", "jo"]),
        ],
    )
    def test_a_vote_counts_in_the_verdict_of_a_recount(
        self, witan, jury, kind, decision, reviewers
    ):
        """A person's ranking counts alone or beside the jury, whose grades stay."""
        history = jury[-2:]
        assert witan("judge", "good.md", "bad.md", *jury, "--question", "Which?").status == 0
        vote = ["--as", "jo", "--ranking", "good.md > bad.md"]
        assert witan("vote", "last", *vote, *history).status == 0
        said = witan("recount", "last", "--kind", kind, *history)
        verdict = witan("recount", "last", "--kind", kind, "--json", *history).json["verdict"]

        assert f"Verdict\n{decision}" in said.out
        assert (verdict["decision"], verdict["reviewers"]) == (decision, reviewers)

    def test_a_recount_that_leaves_no_ballot_says_why(self, witan, jury):
        """Status 3, what became of the ballots, and what to choose."""
        assert witan("judge", "good.md", *jury).status == 0
        weights = [part for name in ("xan", "yma", "zoe") for part in ("--weight", f"{name}=0")]
        said = witan("recount", "last", *weights, *jury[-2:])

        assert said.status == 3
        assert "counts towards a verdict (xan weighs nothing; yma" in said.err
        assert "keep at least one reviewer with a weight above 0" in said.err

    def test_seats_of_one_script_are_named(self, witan, jury):
        """With the verdict and in its record: their ballots are not independent."""
        same = [part for seat in "xyz" for part in ("--jury", f"{seat}={jury[1]}")]
        said = witan("judge", "good.md", *same, "--json", "--no-history")

        [note] = said.json["notes"]
        assert note.startswith("all seats are held by one script")
        assert note in witan("judge", "good.md", *same, "--no-history").err

    def test_a_single_ballot_has_no_interval(self, witan, tmp_path, jury):
        """Where the quorum allows it, the report says so instead of what intervals cover."""
        dumb = write_script(tmp_path / "dumb.toml", review=[{"text": "no"}])
        seats = ["--jury", jury[1], "--jury", f"script:{dumb}", "--quorum", 1]
        said = witan("judge", "good.md", *seats, "--no-history")

        assert "There are too few ballots for an interval." in said.out
        assert "Intervals cover" not in said.out

    def test_too_few_ballots_are_no_quorum(self, witan, tmp_path):
        """Status 3, with the reason, which the stored session repeats."""
        options = []
        for name in ("xan", "yma"):
            path = write_script(tmp_path / f"{name}.toml", review=[{"text": "no"}])
            options += ["--jury", f"script:{path}"]
        said = witan("judge", "good.md", *options, "--pass-mark", 6, "--save", "none.json")

        assert said.status == 3
        assert "cast no ballot" in said.err
        shown = witan("show", "none.json").out
        assert "0 of 2 reviewers voted; fewer ballots count than the quorum requires." in shown

    def test_ballots_without_a_grade_that_counts_are_no_quorum(self, witan, tmp_path):
        """Status 3, with the criteria that are missing, and no word of too few votes."""
        reply = {"text": json.dumps({"grades": {"A": {"relevance": 8, "clarity": 9}}})}
        options = []
        for name in ("xan", "yma"):
            thin = write_script(tmp_path / f"{name}.toml", review=[reply])
            options += ["--jury", f"script:{thin}"]
        said = witan("judge", "good.md", *options, "--save", "thin.json")

        assert said.status == 3
        assert "without accuracy, completeness, conciseness" in said.err
        shown = witan("show", "thin.json").out
        assert "2 of 2 reviewers voted; fewer ballots count than the quorum requires." in shown

    def test_a_text_is_read_from_standard_input(self, witan, jury, monkeypatch):
        """It is named so, and may be expected to win as the dash."""
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"a moraine")))
        said = witan("judge", "-", "bad.md", *jury, "--expected", "-", "--json")

        assert said.json["answers"]["standard input"] == "a moraine"
        assert said.status == 0

    @pytest.mark.parametrize(
        "arguments",
        [["-"], ["good.md", "--reference", "-"], ["good.md", "-f", "-"]],
        ids=["text", "reference", "file"],
    )
    def test_empty_standard_input_is_refused(self, witan, jury, monkeypatch, arguments):
        """It names standard input; a program before the pipe may have failed."""
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"\n")))
        said = witan("judge", *arguments, *jury)

        assert said.status == 2
        assert "standard input is empty" in said.err

    def test_a_plan_makes_no_call(self, witan, jury):
        """It has one review per juror and no final answer."""
        said = witan("judge", "good.md", "bad.md", *jury, "--plan", "--json")

        several = witan("judge", "good.md", "bad.md", *jury, "--plan")
        single = witan("judge", "good.md", *jury, "--plan")

        assert said.json["calls"] == 3
        assert "separate" in several.out
        assert "separate" not in single.out
        assert {line["stage"] for line in said.json["lines"]} == {"review", "repair"}


@pytest.mark.usefixtures("texts")
class TestRefusals:
    """Errors state problem, place and remedy."""

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], "Missing argument 'FILE...'"),
            (["none.md"], "none.md cannot be read"),
            (["good.md", "good.md"], "good.md is given twice"),
            (["-", "good.md", "--reference", "-"], "standard input, -, can be read only once"),
            (["good.md", "--pass-mark", 11], "11"),
            (["good.md", "--expected", "other.md"], "other.md"),
            (["good.md", "--expected", "good.md"], "a single one needs a pass mark instead"),
            (["good.md", "--pass-mark", 6, "--level", 0.4], "above 0.5"),
            (["good.md", "--no-rubric-scoring"], "without grades no text can pass"),
            (["good.md", "--pairs", 1], "expected none for a single text"),
        ],
    )
    def test_misuse_is_named(self, witan, jury, arguments, words):
        """With status 2 and without a call."""
        said = witan("judge", *arguments, *jury)
        planned = witan("judge", *arguments, *jury, "--plan")

        assert said.status == planned.status == 2
        assert words in said.err
        assert planned.err == said.err

    def test_an_empty_text_is_refused(self, witan, jury, tmp_path):
        """By its name."""
        (tmp_path / "empty.md").write_text(" \n")
        said = witan("judge", "empty.md", *jury)

        assert said.status == 2
        assert "empty.md" in said.err


def test_a_vote_on_a_single_text_is_refused_with_what_to_do(witan, tmp_path):
    """There is nothing to rank, and no seat failed."""
    text, place = tmp_path / "text.md", tmp_path / "history.sqlite"
    text.write_text("a moraine")
    seats = [part for seat in write_jury(tmp_path) for part in ("--jury", seat)]
    assert witan("judge", text, *seats, "--history", place).status == 0

    said = witan("vote", "last", "--show", "--history", place)
    assert said.status == 2
    assert "judge two or more texts together" in said.err
