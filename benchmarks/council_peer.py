"""The same load on amiable-dev's council, where its package `llm-council-core` is installed.

Run with an interpreter that has it, against the server of `council.py`: five members, eleven calls
of 100 ms. It prints what `council.py` prints of Witan, so that the two can be set side by side.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUESTION = "Which of these designs would you take, and why? " * 4
REPEATS = 5

CONFIG = """
council:
  gateways:
    default: openrouter
    providers:
      openrouter:
        enabled: true
        base_url: {url}
"""


def configure(folder: Path, url: str) -> None:
    """Point it at the server, by its own settings, before it is imported."""
    config = folder / "llm_council.yaml"
    config.write_text(CONFIG.format(url=url), encoding="utf-8")
    models = ",".join(f"p/model-{seat}" for seat in range(5))
    os.environ |= {
        "LLM_COUNCIL_CONFIG": str(config),
        "LLM_COUNCIL_MODELS": models,
        "LLM_COUNCIL_CHAIRMAN": "p/model-0",
        "OPENROUTER_API_KEY": "none",
    }


async def measure() -> None:
    """One council after another, then fifty at once."""
    from llm_council.council import run_full_council

    await run_full_council(QUESTION)
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(REPEATS):
        await run_full_council(QUESTION)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"  one council, wall  {wall / REPEATS / 0.3:.2f} × path")
    print(f"  one council, CPU   {cpu / REPEATS * 1e3:.0f} ms")
    start = time.perf_counter()
    await asyncio.gather(*(run_full_council(QUESTION) for _ in range(50)))
    print(f"  50 at once         {50 / (time.perf_counter() - start):.1f}/s")
    print(
        f"  memory             {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )


def main() -> None:
    """Print one table, or why there is none."""
    script = Path(__file__).with_name("council_server.py")
    process = subprocess.Popen(  # noqa: S603 - our own interpreter on our own file
        [sys.executable, str(script), "0.1"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        with tempfile.TemporaryDirectory() as folder:
            url = f"http://127.0.0.1:{process.stdout.readline().strip()}/v1/chat/completions"
            configure(Path(folder), url)
            asyncio.run(measure())
    except ModuleNotFoundError as error:
        print(f"skipped: {error}; run it where llm-council-core is installed")
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    main()
