"""Processes that tests start and wait for: Python, the command, other programs."""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


def run_program(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, by default for five minutes at most; return its status and output."""
    options = {"check": False, "timeout": 300, **options}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, **options)  # noqa: S603, PLW1510


def run_python(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter of its own."""
    return run_program(sys.executable, "-c", code, *arguments, **options)


def run_witan(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return run_program(sys.executable, "-m", "witan", *arguments, **options)


def wait_until(check: Callable[[], object], what: str = "", seconds: float = 60) -> None:
    """Wait until a check is true; otherwise fail, and say what did not happen."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
