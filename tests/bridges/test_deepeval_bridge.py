"""The metric, by DeepEval's own runners in processes of their own."""

import json

import pytest

from bridges.environments import needs_environment, run_in_environment
from pages import ROOT, write_files
from scripts import CRITERIA, write_jury, write_script

pytestmark = [pytest.mark.slow, needs_environment]  # DeepEval takes five seconds to import

PROGRAM = """
import json
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, DisplayConfig, ErrorConfig
from deepeval.test_case import LLMTestCase
from witan.bridges.deepeval import JuryMetric

def run(run_async, *metrics):
    case = LLMTestCase(input="What is it?", actual_output="a moraine", expected_output="quokka")
    done = evaluate(
        [case],
        [*metrics],
        async_config=AsyncConfig(run_async=run_async),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        error_config=ErrorConfig(ignore_errors=True),
    )
    return [each.model_dump(mode="json") for each in done.test_results[0].metrics_data]
"""


@pytest.fixture
def evaluate(tmp_path):
    """Evaluate one output by metrics, written as Python; return DeepEval's results."""

    def run(*metrics, run_async=True):
        line = f"found = run({run_async}, {', '.join(metrics)})"
        write = "json.dump(found, open('found.json', 'w'))"
        done = run_in_environment(
            "python", "-c", "\n".join((PROGRAM, line, write)), folder=tmp_path
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads((tmp_path / "found.json").read_text())

    return run


def test_a_metric_has_score_reason_and_success(evaluate, tmp_path):
    """Texts pass, fail, are too close to call, allowed, degraded, referenced, unjudged."""
    jury = write_jury(tmp_path)
    review = [
        {"contains": "quokka", "grades": {"moraine": dict.fromkeys(CRITERIA, 9)}},
        {"text": "no"},
    ]
    expects = [f"script:{write_script(tmp_path / 'expects.toml', review=review)}"] * 3
    silent = f"script:{write_script(tmp_path / 'silent.toml', review=[{'text': 'no'}])}"
    good, *others = evaluate(
        f"JuryMetric({jury}, pass_mark=6)",
        f"JuryMetric({jury}, pass_mark=9)",
        f"JuryMetric({jury}, pass_mark=9, allow_too_close=True)",
        f"JuryMetric({jury}, pass_mark=9.9, options={{'mirrored': True}})",
        f"JuryMetric({[*jury, silent]}, pass_mark=6)",
        f"JuryMetric({expects}, pass_mark=6)",
        f"JuryMetric({expects}, pass_mark=6, use_expected=False)",
    )

    assert good["score"] == pytest.approx(8 / 9)
    assert good["threshold"] == pytest.approx(5 / 9)
    assert good["reason"].startswith("passed: 9.0 (")
    assert good["evaluation_model"] == "xan, yma, zoe"
    assert good["success"]
    assert [each["success"] for each in others] == [False, True, False, True, True, False]
    assert others[0]["reason"].startswith("too close to call")
    assert "; degraded: silent cast no ballot: its review" in others[3]["reason"]
    assert others[-1]["error"].startswith("no verdict: simulated session")


def test_the_documented_test_passes_with_deepeval(tmp_path):
    """The command runs it with pytest, on the scripts of the page."""
    write_files(ROOT / "docs" / "bridges.md", tmp_path)
    done = run_in_environment("deepeval", "test", "run", "test_metric.py", folder=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("command", ["ask", "judge", "batch"])
def test_witan_starts_in_the_environment_of_deepeval(tmp_path, command):
    """DeepEval requires Click below 8.4."""
    done = run_in_environment("witan", command, "--help", folder=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
