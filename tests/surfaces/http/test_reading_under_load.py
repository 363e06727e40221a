"""Pages are readable while sessions start and end."""

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import pytest

from served import served
from services import councils, write_config
from witan.history import History
from witan.service.config.serve import ServeSettings

pytestmark = pytest.mark.slow

QUESTION = {"question": "Is it so?", "options": {"synthesis": False}}

PATHS = ("/", "/history", "/api/sessions", "/healthz", "/metrics")


@contextmanager
def frequent_thread_switches():
    """Threads switch as often as under heavy load."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("keeping", [True, False], ids=["history", "no history"])
def test_every_page_is_readable_during_sessions(tmp_path, keeping):
    """Lists are snapshots of one moment."""
    history = History.open(tmp_path / "history.sqlite") if keeping else None
    paths = PATHS if keeping else ("/", "/healthz", "/metrics")
    file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 1.5}])
    try:
        with (
            served(councils(file, history), ServeSettings(max_sessions=200)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
            frequent_thread_switches(),
            ThreadPoolExecutor(4) as asking,
            ThreadPoolExecutor(8) as reading,
        ):
            begun = [asking.submit(client.post, "/api/sessions", json=QUESTION) for _ in range(180)]
            read = []
            while not all(each.done() for each in begun):
                several = [
                    reading.submit(client.get, path, headers={"Accept": "text/html"})
                    for _ in range(8)
                    for path in paths
                ]
                read += [each.result() for each in several]
    finally:
        if history is not None:
            history.close()

    assert Counter(each.result().status_code for each in begun) == {202: 180}
    assert len(read) >= 100
    assert {(each.url.path, each.status_code) for each in read} == {(path, 200) for path in paths}
