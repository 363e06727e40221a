"""An environment for tools whose requirements conflict with those of the tests."""

import os
from pathlib import Path

import pytest

from processes import run_program

FOLDER = Path(os.environ.get("TEST_BRIDGES", ""))

needs_environment = pytest.mark.skipif(
    not (FOLDER / "bin" / "deepeval").exists(),
    reason="TEST_BRIDGES names no environment with Witan, LiteLLM and DeepEval",
)

OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"}


def run_in_environment(command, *arguments, folder):
    """Run a command of the environment; return the finished process."""
    return run_program(
        FOLDER / "bin" / command,
        *arguments,
        cwd=folder,
        env={**os.environ, **OFFLINE, "PYTEST_ADDOPTS": ""},
    )
