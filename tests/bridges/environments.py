"""An environment for tools whose requirements conflict with those of the tests."""

import os
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("TEST_BRIDGES", ""))

needs_environment = pytest.mark.skipif(
    not (FOLDER / "bin" / "deepeval").exists(),
    reason="TEST_BRIDGES names no environment with Witan, LiteLLM and DeepEval",
)

OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"}


def run_in_environment(command, *arguments, folder):
    """Run a command of the environment; return the finished process."""
    return subprocess.run(  # noqa: S603 - the real tool on our own input
        [FOLDER / "bin" / command, *arguments],
        cwd=folder,
        env={**os.environ, **OFFLINE, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
