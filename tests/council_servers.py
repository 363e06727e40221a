"""The model server of the benchmarks, in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVER = Path(__file__).parents[1] / "benchmarks" / "council_server.py"


@contextmanager
def council_server(seconds: float) -> Iterator[str]:
    """The address of a server of the OpenAI protocol, whose model-N's texts are worth 9 - N.

    Parameters
    ----------
    seconds
        Duration of each call.
    """
    with subprocess.Popen(  # noqa: S603 - our own interpreter on our own file
        [sys.executable, str(SERVER), str(seconds)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.terminate()
