"""Requests that their clients abandon stop using processor time."""

import gzip
import json
import signal
import time
from threading import Event, Thread

import httpx2
import pytest

from served import serving_process
from services import write_config

pytestmark = pytest.mark.slow

LONG = "".join(
    json.dumps({"session": f"q{n // 3}", "reviewer": f"r{n % 3}", "ranking": ["x", "y", "z"]})
    + "\n"
    for n in range(12_000)
)
"""Ballots that take long to compare."""

PACKED = gzip.compress(LONG.encode())


def abandon_comparison(url):
    """Request a comparison and disconnect before the reply."""
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(f"{url}/api/compare", content=PACKED, timeout=httpx2.Timeout(60, read=1))


def test_abandoned_and_interrupted_counts_end(tmp_path):
    """Other requests stay fast, and the server stops at once without a traceback."""
    heard = []
    with serving_process(
        "--config", write_config(tmp_path), "--no-history", cwd=tmp_path, heard=heard
    ) as (url, process):
        gone = [Thread(target=abandon_comparison, args=(url,)) for _ in range(3)]
        for each in gone:
            each.start()
        time.sleep(0.5)
        assert httpx2.get(f"{url}/api/sessions/none", timeout=20).status_code == 404
        for each in gone:
            each.join()
        few = LONG[: LONG.index("q1")].rpartition("\n")[0]
        assert httpx2.post(f"{url}/api/tally", content=few, timeout=60).status_code == 200

        answers, is_sent = [], Event()

        def send():
            yield PACKED
            is_sent.set()

        waiting = Thread(
            target=lambda: answers.append(
                httpx2.post(f"{url}/api/compare", content=send(), timeout=60)
            )
        )
        waiting.start()
        assert is_sent.wait(60)
        time.sleep(0.5)  # it is being counted
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        waiting.join()

    assert [each.status_code for each in answers] == [503]
    assert "Traceback" not in "".join(heard)
    assert sum("path=/api/compare status=499" in line for line in heard) == 3
