"""The assertion and the provider, by the real promptfoo."""

import json
import os
import sys
from pathlib import Path

import pytest

from pages import ROOT, write_files
from processes import run_program
from scripts import CRITERIA, write_jury, write_script

PROMPTFOO = Path(os.environ.get("TEST_PROMPTFOO", "")) / "node_modules" / ".bin" / "promptfoo"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PROMPTFOO.exists(), reason="TEST_PROMPTFOO names no folder with promptfoo installed"
    ),
]


@pytest.fixture
def evaluate(tmp_path):
    """Run promptfoo on a configuration, or on that of the folder; return exit status, results."""
    (tmp_path / "jury.py").write_text("from witan.bridges.promptfoo import get_assert\n")
    (tmp_path / "council.py").write_text("from witan.bridges.promptfoo import call_api\n")

    def run(config=None):
        file = tmp_path / "promptfooconfig.yaml"
        if config is not None:
            file.write_text(json.dumps(config))
        switches = ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION")
        own = {f"PROMPTFOO_{name}": "1" for name in switches}
        own |= {"PROMPTFOO_PYTHON": sys.executable, "PROMPTFOO_CONFIG_DIR": str(tmp_path / "own")}
        done = run_program(
            PROMPTFOO,
            "eval",
            "-c",
            file,
            "-o",
            "out.json",
            "--no-cache",
            "--no-table",
            cwd=tmp_path,
            env={**os.environ, **own},
        )
        out = tmp_path / "out.json"
        assert out.exists(), done.stdout + done.stderr
        return done.returncode, json.loads(out.read_text())["results"]["results"]

    return run


def test_an_assertion_has_pass_score_reason_and_named_scores(evaluate, tmp_path):
    """Passed, failed, too close, allowed, ungraded, degraded; no verdict is the grader's error."""
    jury = write_jury(tmp_path)
    silent = f"script:{write_script(tmp_path / 'silent.toml', review=[{'text': 'no'}])}"
    cases = [
        ("a moraine", {"pass_mark": 6}, True, "passed: 9.0"),
        ("a glacier", {"pass_mark": 8}, False, "failed: 3.0"),
        ("a moraine", {"pass_mark": 9}, False, "too close to call"),
        ("a moraine", {"pass_mark": 9, "allow_too_close": True}, True, "too close to call"),
        ("a glacier", {}, True, "3.0 (1.0 to 5.0) of 10"),
        (
            "a moraine",
            {"jury": [*jury, silent], "pass_mark": 6},
            True,
            "silent cast no ballot: its",
        ),
        ("a moraine", {"jury": [silent, silent]}, False, "no verdict"),
        ("a moraine", {"jury": ["script:missing.toml"]}, False, "missing.toml"),
    ]
    tests = [
        {
            "vars": {"text": text},
            "assert": [
                {"type": "python", "value": "file://jury.py", "config": {"jury": jury, **config}}
            ],
        }
        for text, config, _, _ in cases
    ]
    config = {"prompts": ["{{text}}"], "providers": ["echo"], "tests": tests}
    status, results = evaluate(config)
    graded = [each["gradingResult"] for each in sorted(results, key=lambda r: r["testIdx"])]

    assert status == 100
    assert [each["pass"] for each in graded] == [expected for _, _, expected, _ in cases]
    for each, (_, _, _, words) in zip(graded, cases, strict=True):
        assert words in each["componentResults"][0]["reason"]
    errors = [(each["componentResults"][0].get("metadata") or {}) for each in graded]
    assert [each.get("graderError") for each in errors] == [None] * 6 + [True] * 2
    assert graded[0]["score"] == pytest.approx(8 / 9)
    assert set(graded[0]["namedScores"]) == set(CRITERIA)
    assert graded[1]["namedScores"]["clarity"] == pytest.approx(2 / 9)


def test_the_documented_evaluation_runs(evaluate, tmp_path):
    """A council provides the output, and a jury passes it."""
    write_files(ROOT / "docs" / "bridges.md", tmp_path)
    status, [result] = evaluate()

    assert status == 0, result
    assert result["response"]["output"] == "Not always: it costs more memory."
    assert result["success"]
    assert result["gradingResult"]["score"] == pytest.approx(7.8 / 9)


def test_a_provider_without_a_final_answer_is_an_error(evaluate, tmp_path):
    """It says what is missing."""
    mute = f"script:{write_script(tmp_path / 'mute.toml', answer=[{'error': 'refused'}])}"
    provider = {"id": "file://council.py", "config": {"members": [mute, mute]}}
    tests = [{"vars": {"what": "it"}}]
    misspelt = {"id": "file://council.py", "config": {"members": [mute, mute], "rul": "borda"}}
    providers = [provider, {**misspelt, "label": "misspelt"}]
    _, results = evaluate({"prompts": ["{{what}}?"], "providers": providers, "tests": tests})
    [silent, other] = sorted((each["error"] for each in results), key=len, reverse=True)

    assert "no final answer" in silent
    assert other == "unknown option 'rul'; did you mean 'rule'?"
