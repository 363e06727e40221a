"""``witan calibrate``, its route and its page, black box."""

import json

import httpx2
import pytest

from desks import desk
from lessons import lessons
from markup import parsed
from served import served
from services import councils, write_config
from witan import write_ballots
from witan.history import History


@pytest.fixture(scope="module")
def cast():
    """The ballots of five models and a person on forty sessions."""
    return [b for one in lessons(40, people=40) for b in one.ballots]


@pytest.fixture(scope="module")
def path(tmp_path_factory, cast):
    """A file of these ballots."""
    return write_file(tmp_path_factory.mktemp("lessons") / "lessons.jsonl", cast)


def write_file(path, ballots):
    write_ballots(ballots, path)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A history of the same, and of simulated sessions."""
    path = tmp_path_factory.mktemp("history") / "history.sqlite"
    with History.open(path) as history:
        history.add(lessons(40, people=40), "lessons", "lessons")
        history.add(lessons(5, first=900, simulated=True), "simulated", "simulated")
    return path


class TestCommand:
    """Files and arguments in, text and JSON out."""

    def test_the_conclusion_comes_first(self, witan, path):
        """Then tables for leaders and pairs, and the scores."""
        said = witan("calibrate", path, "--reviewers", "3")

        assert said.status == 0
        assert said.lines[0].startswith(
            "are the probabilities calibrated? · 40 sessions · against rev"
        )
        assert said.lines[1].startswith("With 3 reviewers, leaders stated at ")
        assert "3 reviewers, 2 others: 400 draws from 40 sessions" in said.out
        assert [line for line in said.lines if line in ("Leaders", "Pairs", "Scores")] == [
            "Leaders", "Pairs", "Scores",
        ]  # fmt: skip

    def test_json_has_the_seed(self, witan, path):
        """It reproduces the numbers."""
        said, again = (
            witan("calibrate", path, "--seed", "7", "--draws", "4", "--json").json for _ in range(2)
        )

        assert said == again
        assert (said["seed"], said["against"], said["prior"]) == (7, "reviewers", "public")
        assert said["panels"][0]["draws"] == 160
        assert said["not_read"] == []

    def test_few_grades_that_decide_the_scale_are_named(self, witan, tmp_path):
        """On the command line with the option that declares the smaller scale."""
        rows = [f"q{n},r{v},{c},{(n + v) % 4}\n" for n in range(20) for v in range(5) for c in "ab"]
        path = tmp_path / "stray.csv"
        rows[0] = "q0,r0,a,8\n"
        path.write_text("session,reviewer,candidate,grade\n" + "".join(rows), encoding="utf-8")
        few = "all but 1 of 200 grades fit 0-3 (the highest is 8; {}0-3 clamps such grades)"

        assert few.format("--scale ") in " ".join(
            witan("calibrate", path, "--draws", "1").out.split()
        )
        [scale] = witan("calibrate", path, "--draws", "1", "--json").json["scales"]
        assert scale.endswith(few.format("scale="))

    def test_without_a_file_the_history_is_used(self, witan, path, place):
        """Without simulated sessions; it has the same ballots as the file."""
        kept = witan("calibrate", "--history", place, "--json").json

        assert kept["sessions"] == 40
        assert kept["panels"] == witan("calibrate", path, "--json").json["panels"]

    def test_an_empty_history_says_so(self, witan, tmp_path):
        """With the status for no ballots."""
        place = tmp_path / "empty.sqlite"
        with History.open(place) as history:
            history.require_writable(creating=True)

        said = witan("calibrate", "--history", place)

        assert said.status == 3
        assert "the history has no ballot of real models" in said.err

    @pytest.mark.parametrize("options", [[], ["--against", "people"]])
    def test_single_texts_have_nothing_to_compare(self, witan, tmp_path, options):
        """The error does not claim that reviewers are missing."""
        graders = ["ann,human", *(f"m{n},model" for n in range(5))]
        rows = "".join(f"q,{grader},x,5\n" for grader in graders)
        path = tmp_path / "single.csv"
        path.write_text(f"session,reviewer,kind,candidate,grade\n{rows}")
        said = witan("calibrate", path, *options)

        assert said.status == 3
        assert "no session has two candidates to compare" in said.err

    @pytest.mark.parametrize(
        ("options", "status", "said"),
        [
            (["--reviewers", "4"], 3, "the most is 5: draw 3 or fewer"),
            (["--reviewers", "1"], 2, "whole numbers from 2 up"),
            (["--reviewers", "many"], 2, "whole numbers from 2 up"),
            (["--draws", "0"], 2, "--draws"),
        ],
    )
    def test_an_invalid_draw_is_refused(self, witan, path, options, status, said):
        """With the valid range."""
        refused = witan("calibrate", path, *options)

        assert refused.status == status
        assert said in refused.err

    @pytest.mark.parametrize(
        ("against", "said"),
        [("people", "led among people in"), ("truth", "led in truth in")],
    )
    def test_people_can_be_the_reference(self, witan, path, against, said):
        """Then all five models may be drawn."""
        found = witan("calibrate", path, "--against", against)
        measured = witan("calibrate", path, "--against", against, "--json").json

        assert said in found.out
        assert [panel["reviewers"] for panel in measured["panels"]] == [3, 5]
        [tenth, *_] = measured["panels"][0]["p_beats"]["tenths"]
        assert (tenth["expectation"] < tenth["probability"]) == (against == "people")

    def test_a_check_against_people_gives_weights(self, witan, path, tmp_path):
        """Its JSON is a file of weights for other ballots."""
        check = witan("calibrate", path, "--against", "people", "--json")
        file = tmp_path / "weights.json"
        file.write_text(check.out)
        options = [
            option
            for name, weight in check.json["weights"].items()
            for option in ("--weight", f"{name}={weight!r}")
        ]

        weighted = witan("tally", path, "--weights", file, "--json")

        assert sorted(check.json["weights"]) == sorted(check.json["matched"])
        assert weighted.json == witan("tally", path, *options, "--json").json
        assert weighted.json["sessions"] != witan("tally", path, "--json").json["sessions"]

    def test_too_few_pairs_give_no_weights(self, witan, cast, tmp_path):
        """The report says so, and so does a tally that reads them."""
        sessions = {f"lesson {number}" for number in range(5)}
        few = write_file(tmp_path / "few.jsonl", [b for b in cast if b.session in sessions])
        file = tmp_path / "weights.json"
        file.write_text(witan("calibrate", few, "--against", "people", "--json").out)

        refused = witan("tally", few, "--weights", file)

        assert (
            "No weights: no reviewer judged 50 pairs"
            in witan("calibrate", few, "--against", "people").out
        )
        assert refused.status == 2
        assert "calibrate against people who decided 50 pairs or more" in refused.err

    @pytest.mark.parametrize(
        ("text", "problem"), [("{", "is not JSON: "), ("[" * 100_000, "is nested too deeply")]
    )
    def test_a_file_of_weights_that_is_broken_is_named(self, witan, tmp_path, cast, text, problem):
        """With the option that names it."""
        path = write_file(tmp_path / "some.jsonl", cast)
        file = tmp_path / "weights.json"
        file.write_text(text)

        refused = witan("tally", path, "--weights", file)

        assert (refused.status, refused.out) == (2, "")
        assert f"Invalid value for --weights: {file} {problem}" in " ".join(refused.err.split())

    def test_unreadable_lines_are_named(self, witan, tmp_path, cast):
        """The other lines are counted."""
        file = write_file(tmp_path / "some.jsonl", cast)
        file.write_text(file.read_text() + "nonsense\n")

        assert len(witan("calibrate", file, "--json").json["not_read"]) == 1

    def test_a_plot_has_a_diagram_per_number(self, witan, path, tmp_path):
        """Each dot has its share and interval."""
        plot = tmp_path / "plot.svg"
        options = ["--against", "people", "--plot", plot]
        assert witan("calibrate", path, *options).status == 0

        root = parsed(plot.read_text())
        assert {"3 reviewers", "5 reviewers"} <= {text.text for text in root.all("text")}
        dots = [g.one("title").text for g in root.all("g") if g.attrs.get("role") == "img"]
        assert len(dots) > 2
        assert all(": expected " in dot and "interval" in dot for dot in dots)

    def test_a_plot_against_the_truth_has_no_second_line_on_the_diagonal(
        self, witan, path, tmp_path
    ):
        """What is expected of the truth is what is stated; the diagonal shows it."""
        words = {}
        for against in ("people", "truth"):
            plot = tmp_path / f"{against}.svg"
            witan("calibrate", path, "--against", against, "--plot", plot)
            drawn = parsed(plot.read_text()).all("text")
            words[against] = " ".join(text.text for text in drawn)

        assert "dashes: expected" in words["people"]
        assert "dashes" not in words["truth"]
        assert "line: observed as stated" in words["truth"]

    def test_the_headline_of_a_plot_is_whole(self, witan, path, tmp_path):
        """A single narrow diagram has the conclusion that the command prints."""
        plot = tmp_path / "plot.svg"
        options = ["--against", "people", "--reviewers", "3", "--plot", plot]
        said = witan("calibrate", path, *options)

        bold = parsed(plot.read_text()).all("text", font_weight="bold")
        assert " ".join(line.text for line in bold) == said.lines[1]

    def test_a_plot_needs_more_than_one_session(self, witan, tmp_path, cast):
        """One session has no share to plot."""
        file = write_file(tmp_path / "one.jsonl", [b for b in cast if b.session == "lesson 3"])

        assert witan("calibrate", file).status == 0
        refused = witan("calibrate", file, "--plot", tmp_path / "plot.svg")
        assert refused.status == 3
        assert "too few sessions to draw" in refused.err


class TestServer:
    """The same over HTTP, and on the page."""

    def test_posted_ballots_are_counted(self, tmp_path, witan, path):
        """Without any, those of the history."""
        with History.open(tmp_path / "history.sqlite") as history:
            history.add(lessons(12), "lessons", "lessons")
            with served(councils(write_config(tmp_path), history)) as server:
                url = f"{server.url}/api/calibrate"
                sent = httpx2.post(url, json={"ballots": path.read_text(), "draws": 4}, timeout=60)
                kept = httpx2.post(url, json={"reviewers": [3]}, timeout=60)

        assert sent.json() == witan("calibrate", path, "--draws", "4", "--json").json
        assert kept.json()["sessions"] == 12

    def test_without_a_history_ballots_are_required(self, tmp_path):
        """The error says so."""
        with served(councils(write_config(tmp_path))) as server:
            answer = httpx2.post(f"{server.url}/api/calibrate", json={}, timeout=60)

        assert answer.status_code == 409
        assert "keeps no history" in json.dumps(answer.json())

    def test_the_page_shows_the_report_with_its_diagrams(self, tmp_path, path):
        """An empty form uses the history."""
        with desk(tmp_path) as server, httpx2.Client(base_url=server.url, timeout=60) as browser:
            root = parsed(browser.get("/calibrate").text)
            answer = browser.post("/calibrate", data={"ballots": path.read_text()})
            without = browser.post("/calibrate", data={"ballots": "", "reviewers": "2"})

        assert {"against", "reviewers", "ballots"} <= {
            each.attrs["name"] for tag in ("input", "select", "textarea") for each in root.all(tag)
        }
        page = parsed(answer.text)
        assert page.one("h1").text.startswith("With 3 reviewers, leaders stated at")
        assert len(page.all("svg", class_="wide")) == 2
        assert "no ballot was sent" not in without.text
