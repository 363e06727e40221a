"""What holds for every test: where sessions are kept, which examples are drawn, one Spark."""

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What is imported and collected stays to the end: looking for what could go takes a quarter of it.
gc.disable()

# No test needs the certificates of this machine, which every client of HTTP would read anew.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)

# Threads of BLAS gain nothing on so small matrices; `witan` starts without them, too.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Every Java of Spark reads its options there, in processes that a test starts, too.
os.environ["SPARK_CONF_DIR"] = str(Path(__file__).with_name("spark"))

# What is set for these tests is not for those that a test runs by pytest itself.
os.environ.pop("PYTEST_ADDOPTS", None)

# How long an example takes is the machine's affair, on which two other processes are at work. A
# gate says the same of the same code; whoever works on it draws new examples every time. The slow
# tests draw many of each (`make test-slow`).
settings.register_profile(
    "house", max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
settings.register_profile("gate", parent=settings.get_profile("house"), derandomize=True)
settings.register_profile("deep", parent=settings.get_profile("house"), max_examples=150)

# Compiling a plan takes longer than walking through so few rows.
FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


DEAR = {
    "spark": ("tests/analytics/", "spark"),
    "aimock": ("aimock", "test_rejudging_over_http"),
    "pref_voting": ("test_oracles_pairwise", "rules/test_kemeny"),
}
"""What is dear to start or to install, and what the tests that need it have in their names."""

LONG = (
    "spark", "test_browser_", "mcp/test_over_http", "aimock", "test_adaptive_limit",
    "test_arm_batch", "test_cli_batch", "bridges/", "test_cached", "test_cli_process",
    "test_cli_output", "test_telemetry", "test_discretion", "test_secrets", "test_faults_over_http",
    "test_notebooks", "test_live_notebook", "test_history_", "test_ask_over_http", "test_cli_ask",
    "test_start_up", "test_cli_history", "test_cli_misconfigured", "test_cli_demo",
    "test_cli_ceiling", "test_cli_losing", "test_cli_vote", "test_http_connections", "test_openai_",
    "test_calls", "test_tools", "test_web_", "test_docs", "pref_voting", "test_uncertainty",
    "test_left_out", "test_council", "test_posterior", "test_shown_is_kept", "test_kill",
    "test_a_night_of_judging", "test_deploy", "test_real_ballots",
)  # fmt: skip
"""Files of five seconds and more, those that wait first: the code is checked beside them."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log) -> object:
    """Let one process run all tests of a file, and all of what is dear; begin with the long."""
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatIsShared(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            dear = (name for name, parts in DEAR.items() if any(part in nodeid for part in parts))
            return next(dear, nodeid.partition("::")[0])

        def _assign_work_unit(self, node: object) -> None:
            long = (scope for part in LONG for scope in self.workqueue if part in scope)
            self.workqueue.move_to_end(next(long, next(iter(self.workqueue))), last=False)
            super()._assign_work_unit(node)

    return ByWhatIsShared(config, log)


def pytest_collection(session) -> None:
    """Import every so many files first, so that each is compiled by one process and read by all."""
    worker = getattr(session.config, "workerinput", None)
    here = Path(__file__).parent
    if worker is None or here not in {Path(each).resolve() for each in session.config.args}:
        return
    first, step = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in sorted(here.rglob("test_*.py"))[first::step]:
        sys.path.insert(0, str(path.parent))
        # What goes wrong is reported where the file is collected.
        with suppress(Exception, pytest.skip.Exception):
            import_module(path.stem)
        sys.path.remove(str(path.parent))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was imported and collected: it all stays to the end."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000)


@pytest.fixture(scope="session", autouse=True)
def history_of_the_tests(tmp_path_factory) -> Iterator[None]:
    """The history is in a folder of the tests, for processes that they start, too."""
    before = os.environ.get("WITAN_HISTORY")
    os.environ["WITAN_HISTORY"] = str(tmp_path_factory.mktemp("history") / "history.sqlite")
    yield
    if before is None:
        del os.environ["WITAN_HISTORY"]
    else:
        os.environ["WITAN_HISTORY"] = before


@pytest.fixture
def history(tmp_path) -> Iterator[object]:
    """A new history."""
    from witan.history import History

    with History.open(tmp_path / "history.sqlite") as opened:
        yield opened


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The one Spark of all tests, made for few rows; whatever reads a lake by Spark uses it."""
    pytest.importorskip("pyspark", reason="Spark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")
    from witan.analytics.sources import start_session

    session = start_session("local[2]", FOR_FEW_ROWS)
    yield session
    session.stop()
