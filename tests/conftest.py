"""What holds for every test: where sessions are kept, which examples are drawn, one Spark."""

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A gate says the same of the same code; whoever works on it draws new examples every time.
settings.register_profile("gate", derandomize=True)

# Compiling a plan, and Java itself, takes longer than walking through so few rows.
FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items) -> None:
    """Let one process run all tests of a file, and all of what is dear to start or to install."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    here = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(here).as_posix()
        dear = [name for name in ("spark", "aimock") if name in item.fixturenames]
        group = "spark" if place.startswith("adapters/engines/") else next(iter(dear), place)
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was imported and collected: it all stays to the end."""
    gc.collect()
    gc.freeze()


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


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The one Spark of all tests, made for few rows; whatever reads a lake by Spark uses it."""
    pytest.importorskip("pyspark", reason="Spark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")
    from witan.adapters.engines.spark_lake import local_session

    session = local_session(cores=2, settings=FOR_FEW_ROWS)
    yield session
    session.stop()
