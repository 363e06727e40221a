"""The scorer and the solver, in Inspect's own ``eval``."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Timer

import pytest

import witan
from pages import ROOT, write_files
from processes import run_program, run_witan
from scripts import CRITERIA, write_jury, write_script
from witan.files import read_ballots

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("inspect_ai") is None, reason="the extra inspect is not installed"
    ),
]

TASK = """
from inspect_ai import Task, eval, score
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import includes
from witan.bridges.inspect_ai import witan_council, witan_jury

def run(task, *texts):
    # With its usage said, the model counts no tokens, which would fetch a table.
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in texts]
    for output in outputs:
        output.usage = ModelUsage()
    model = get_model("mockllm/model", custom_outputs=outputs)
    [log] = eval(task, model=model, log_dir="logs", display="none")
    return log

def write(log, name):
    with open(name, "w") as file:
        file.write(log.model_dump_json())
"""


SERVE = """
import json, os, sys, traceback
said = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    folder, code = json.loads(line)
    os.chdir(folder)
    try:
        exec(code, {})
        problem = ""
    except BaseException:
        problem = traceback.format_exc()
    print(json.dumps(problem), file=said, flush=True)
"""
"""Runs pieces of code, each in a folder, and tells of each what went wrong."""


@pytest.fixture(scope="module")
def evaluating():
    """A process that evaluates for all tests: Inspect imports five thousand modules."""
    with subprocess.Popen(  # noqa: S603 - our own interpreter on our own lines
        [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


@pytest.fixture
def evaluate(tmp_path, evaluating):
    """Run lines of Python with Inspect; return the log that they write."""

    def run(*lines):
        too_long = Timer(120, evaluating.kill)
        too_long.start()
        print(json.dumps([str(tmp_path), "\n".join((TASK, *lines))]), file=evaluating.stdin)
        evaluating.stdin.flush()
        said = evaluating.stdout.readline()
        too_long.cancel()
        assert said, "the process has ended"
        assert json.loads(said) == ""
        return json.loads((tmp_path / "log.json").read_text())

    return run


class TestScorer:
    """Each sample's output stands before a jury."""

    def test_a_score_has_grades_sentence_and_interval(self, evaluate, tmp_path):
        """It has a value per criterion and overall; without output there is none."""
        log = evaluate(
            "samples = [Sample(input='What is it?', target='moraine') for _ in range(3)]",
            f"task = Task(samples, scorer=witan_jury({write_jury(tmp_path)}, pass_mark=6))",
            "write(run(task, 'a moraine', 'a glacier', ''), 'log.json')",
        )

        assert log["status"] == "success", log["error"]
        scores = {
            each["output"]["choices"][0]["message"]["content"]: each["scores"]["witan_jury"]
            for each in log["samples"]
        }
        good, bad = scores["a moraine"], scores["a glacier"]
        assert set(good["value"]) == {"overall", *CRITERIA}
        assert set(good["value"].values()) == {9}
        assert good["explanation"].startswith("passed: 9.0 (")
        low, high = good["metadata"]["interval"]
        assert 6 < low < 9 < high <= 10
        assert good["metadata"]["probability"] > 0.95
        assert good["metadata"]["reviewers"] == ["xan", "yma", "zoe"]
        assert good["metadata"]["session"] != bad["metadata"]["session"]
        assert scores[""]["explanation"] == "there is no output to judge"
        means = {
            each["name"]: each["metrics"]["mean"]["value"] for each in log["results"]["scores"]
        }
        assert means["overall"] == means["accuracy"] == 6

    def test_an_explanation_names_a_missing_ballot(self, evaluate, tmp_path):
        """A verdict of fewer reviewers does not look complete."""
        silent = write_script(tmp_path / "silent.toml", review=[{"text": "no"}])
        jury = [*write_jury(tmp_path), f"script:{silent}"]
        log = evaluate(
            f"task = Task([Sample(input='What?')], scorer=witan_jury({jury}, pass_mark=6))",
            "write(run(task, 'a moraine'), 'log.json')",
        )

        explanation = log["samples"][0]["scores"]["witan_jury"]["explanation"]
        assert explanation.startswith("passed: 9.0 (")
        assert "; degraded: silent cast no ballot: its review" in explanation

    def test_the_target_is_the_right_answer(self, evaluate, tmp_path):
        """The jury sees it unless told not to; without a ballot there is no score."""
        review = [
            {"contains": "quokka", "grades": {"it": dict.fromkeys(CRITERIA, 9)}},
            {"text": "no"},
        ]
        jury = [f"script:{write_script(tmp_path / 'juror.toml', review=review)}"] * 2
        scores = [
            evaluate(
                f"scorer = witan_jury({jury}, use_target={use_target})",
                "task = Task([Sample(input='What?', target='the quokka')], scorer=scorer)",
                "write(run(task, 'it'), 'log.json')",
            )["samples"][0]["scores"]["witan_jury"]
            for use_target in (True, False)
        ]

        assert scores[0]["value"]["overall"] == 9
        assert scores[1]["explanation"].startswith("no verdict: simulated session")

    def test_each_of_several_targets_is_right(self, evaluate, tmp_path):
        """The jury sees a list of them, and the reviewers may be a configured jury alone."""
        listed = {"contains": "- Paris\n- paris", "grades": {"it": dict.fromkeys(CRITERIA, 9)}}
        jury = f"script:{write_script(tmp_path / 'juror.toml', review=[listed, {'text': 'no'}])}"
        (tmp_path / "witan.toml").write_text(f"jury = {json.dumps([jury] * 2)}")
        log = evaluate(
            "task = Task([Sample(input='What?', target=['Paris', 'paris'])], scorer=witan_jury())",
            "write(run(task, 'it'), 'log.json')",
        )

        assert log["samples"][0]["scores"]["witan_jury"]["value"]["overall"] == 9

    def test_a_log_of_inspect_is_read_as_ballots(self, evaluate, tmp_path):
        """It is the default archive, in its folder."""
        evaluate(
            "task = Task([Sample(input='What?', target='moraine')], scorer=includes())",
            "write(run(task, 'a moraine'), 'log.json')",
        )
        [path] = (tmp_path / "logs").glob("*.eval")

        [ballot] = read_ballots(path)
        assert ballot.reviewer == "includes"
        assert ballot.grades == {"mockllm/model": 1.0}
        tally = run_witan("tally", path)
        assert tally.returncode == 0, tally.stderr
        assert "mockllm/model" in tally.stdout

    def test_a_finished_log_is_scored_and_read_as_ballots(self, evaluate, tmp_path):
        """The log of the second scoring is a file of ballots."""
        evaluate(
            "task = Task([Sample(input='What?', target='moraine')], scorer=includes())",
            "log = run(task, 'a moraine')",
            f"jury = witan_jury({write_jury(tmp_path)})",
            "write(score(log, jury, action='overwrite', display='none'), 'log.json')",
        )
        ballots = list(read_ballots(tmp_path / "log.json"))

        assert [ballot.reviewer for ballot in ballots] == ["xan", "yma", "zoe"]
        assert {ballot.grades["mockllm/model"]["clarity"] for ballot in ballots} == {9}

    def test_the_jurors_of_a_log_count_as_in_their_session(self, evaluate, tmp_path):
        """Each juror is a reviewer of the model, with its own grades."""
        jury = []
        for name, grade in (("ada", 9), ("bob", 4), ("cyd", 6)):
            review = [{"grades": {"moraine": dict.fromkeys(CRITERIA, grade)}}]
            jury.append(f"script:{write_script(tmp_path / f'{name}.toml', review=review)}")
        scorer = f"witan_jury({jury}, history={str(tmp_path / 'history.db')!r})"
        log = evaluate(
            f"task = Task([Sample(input='What?', target='moraine')], scorer={scorer})",
            "write(run(task, 'a moraine'), 'log.json')",
        )
        [path] = (tmp_path / "logs").glob("*.eval")
        session = log["samples"][0]["scores"]["witan_jury"]["metadata"]["session"]

        with witan.History.open(tmp_path / "history.db") as history:
            stored = history.session(session).ballots
        [text] = stored[0].grades
        assert {
            ballot.reviewer: ballot.grades["mockllm/model"] for ballot in read_ballots(path)
        } == {ballot.reviewer: ballot.grades[text] for ballot in stored}


def test_the_documented_task_runs(tmp_path):
    """It uses Inspect's command and the scripts of the page."""
    write_files(ROOT / "docs" / "bridges.md", tmp_path)
    command = Path(sys.executable).with_name("inspect")
    done = run_program(
        command, "eval", "task.py", "--model", "mockllm/model", "--log-format", "json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [file] = (tmp_path / "logs").glob("*.json")
    [sample] = json.loads(file.read_text())["samples"]

    assert sample["scores"]["witan_jury"]["value"]["overall"] == pytest.approx(8.8)
    assert sample["scores"]["witan_jury"]["metadata"]["decision"] == "passed"


class TestSolver:
    """A council answers in place of the model."""

    def test_the_output_is_the_final_answer(self, evaluate, tmp_path):
        """It includes the earlier turns; the session is in the metadata."""
        members = []
        for name in ("ada", "bob", "cyd"):
            answer = {"contains": "Be brief", "text": f"{name} says so."}
            stages = {"answer": [answer], "review": [{"prefers": ["ada says"]}]}
            members.append(f"script:{write_script(tmp_path / f'{name}.toml', **stages)}")
        chair = write_script(tmp_path / "chair.toml", synthesis=[{"text": "All told: so."}])
        log = evaluate(
            "turns = [ChatMessageSystem(content='Be brief.'), ChatMessageUser(content='What?')]",
            f"solver = witan_council({members}, 'script:{chair}')",
            "task = Task([Sample(input=turns, target='told')], solver=solver, scorer=includes())",
            "write(run(task), 'log.json')",
        )

        assert log["status"] == "success", log["error"]
        [sample] = log["samples"]
        assert sample["messages"][-1]["content"] == "All told: so."
        assert sample["metadata"]["witan"]["status"] == "complete"
        assert sample["scores"]["includes"]["value"] == "C"

    def test_without_a_final_answer_the_sample_fails(self, evaluate, tmp_path):
        """The error says what is missing."""
        mute = write_script(tmp_path / "mute.toml", answer=[{"error": "refused"}])
        log = evaluate(
            f"solver = witan_council(['script:{mute}'] * 2)",
            "task = Task([Sample(input='What?')], solver=solver, scorer=includes())",
            "write(run(task), 'log.json')",
        )

        assert log["status"] == "error"
        assert "no final answer" in log["error"]["message"]
