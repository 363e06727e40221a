"""``witan batch --spark`` on several hosts, some of which lose the network."""

import bisect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import pytest

from hosts import FOLDER, Host, Switch, kill_all, network
from pages import ROOT
from postgres import as_postgres, find_programs
from witan import History

pytestmark = pytest.mark.slow

KEY = "sk-known-to-the-driver-alone"

N_ROWS, N_JURORS = 300, 3

MAX_CALLS = N_ROWS * N_JURORS + 60

PER_MINUTE, WINDOW_SECONDS = 2_400, 3

WORKER_TIMEOUT = 10
"""Seconds without a heartbeat until Spark's master gives a worker up."""


@dataclass
class Cluster:
    """Two workers, a driver's host with the master, and a host with what they share."""

    switch: Switch
    shared: Host
    driver: Host
    workers: list[Host]
    calls_url: str

    @property
    def master(self) -> str:
        """The master's address."""
        return f"spark://{self.driver.address}:7077"

    def database(self, name: str) -> tuple[str, str]:
        """Make a database; return its URL for the hosts, and the test's."""
        server = f"postgresql://postgres@{self.shared.address}"
        sql = f"import psycopg; psycopg.connect('{server}/postgres', autocommit=True)"
        self.shared.run(sys.executable, "-c", f"{sql}.execute('CREATE DATABASE {name}')")
        socket = self.shared.folder / "postgresql"
        return f"{server}/{name}", f"postgresql://postgres@/{name}?host={socket}"

    @contextmanager
    def without(self, host: Host) -> Iterator[None]:
        """Keep a host off the network for the block."""
        self.switch.unplug(host)
        try:
            yield
        finally:
            self.switch.plug(host)

    def hold(self, most: float) -> None:
        """Answer this many calls in all, and keep the others waiting."""
        self.shared.fetch(f"{self.calls_url}/hold/{most}")

    def times(self) -> list[float]:
        """Times of all calls."""
        times: list[float] = json.loads(self.shared.fetch(f"{self.calls_url}/times"))
        return times


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The hosts and their servers."""
    pyspark = pytest.importorskip("pyspark", reason="Spark is not installed")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = find_programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL")
    with network("shared", "driver", "first", "second", namesakes=("first", "second")) as (
        switch,
        hosts,
    ):
        shared, driver, *workers = hosts
        start_postgresql(shared, programs)
        calls = shared.start(
            sys.executable, ROOT / "benchmarks/council_server.py", 0.05, shared.address
        )
        calls_url = f"http://{shared.address}:{calls.stdout.readline().strip()}"
        start_spark(Path(pyspark.__file__).parent, driver, workers)
        yield Cluster(switch, shared, driver, workers, calls_url)


def start_postgresql(host: Host, programs: Path) -> None:
    """Start a server that the other hosts reach."""
    folder = FOLDER / "postgresql"
    host.run("install", "-d", "-o", "postgres", folder)
    data = folder / "data"
    host.run(*as_postgres(programs / "initdb", "-D", data, "-A", "trust", "-E", "UTF8", "-N"))
    with (host.folder / "postgresql/data/pg_hba.conf").open("a") as access:
        access.write("host all all samenet trust\n")
    settings = ["-h", host.address, "-k", folder, "-c", "fsync=off", "-c", "shared_buffers=32MB"]
    host.start(*as_postgres(programs / "postgres", "-D", data, *settings), output="postgresql.log")
    wait_for((host.folder / "postgresql/.s.PGSQL.5432").exists, "PostgreSQL")
    host.run(programs / "pg_isready", "-q", "-h", host.address, "-t", 30)


def start_spark(spark: Path, driver: Host, workers: list[Host]) -> None:
    """Start the master and the workers, each with one core."""
    timeout = f"-Dspark.worker.timeout={WORKER_TIMEOUT}"  # workers report four times in it
    program, deploy = spark / "bin/spark-class", "org.apache.spark.deploy"
    variables = {
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_DIRS": f"{FOLDER}/scratch",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **dict.fromkeys(("SPARK_MASTER_OPTS", "SPARK_WORKER_OPTS"), timeout),
    }
    listening = ["--host", driver.address, "--port", 7077, "--webui-port", 8080]
    master = [program, f"{deploy}.master.Master", *listening]
    driver.start(*master, variables=variables, output="spark.log")
    for host in workers:
        settings = ["--host", host.address, "-c", 1, "-m", "1g", "-d", FOLDER / "work"]
        worker = [program, f"{deploy}.worker.Worker", *settings]
        host.start(
            *worker,
            f"spark://{driver.address}:7077",
            variables=variables,
            output="spark.log",
        )
    wait_for(
        lambda: (
            (driver.folder / "spark.log").read_text().count("Registering worker") == len(workers)
        ),
        "Spark",
    )


def wait_for(is_true: Callable[[], bool], what: str, seconds: float = 300) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.1)


@dataclass
class Run:
    """A batch on the cluster, over a database of its own."""

    cluster: Cluster
    url: str
    inside_url: str
    began: float

    def start(
        self, host: Host, *more: object, concurrency: int = 1, max_calls: int = MAX_CALLS
    ) -> subprocess.Popen[str]:
        """Start the command on a host like a user; no other host has its files or its key."""
        rows = ({"id": n, "text": f"Design {n}, of worth {n % 8 + 1}."} for n in range(N_ROWS))
        (host.folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        provider = f'key = "KEY_OF_THIS_TEST"\nurl = "{self.cluster.calls_url}/v1"\n'
        limits = f"per_minute = {PER_MINUTE}\n"
        (host.folder / "witan.toml").write_text(f"[providers.openai]\n{provider}{limits}")
        seats = [f"openai:model-{n}" for n in range(N_JURORS)]
        jury = [part for seat in seats for part in ("--jury", seat, "--price", f"{seat}=1,1")]
        most = ["--max-calls", max_calls, "--concurrency", concurrency, "--pass-mark", 6]
        command = ["batch", "rows.jsonl", *jury, *most, "--config", "witan.toml"]
        variables = {"KEY_OF_THIS_TEST": KEY}
        return host.start(
            *(sys.executable, "-m", "witan", *command, "--history", self.url, *more),
            variables=variables,
        )

    def history(self) -> History:
        """Open the history for reading."""
        return History.open(self.inside_url, reading=True)

    def sessions(self, status: str) -> set[str]:
        """Names of the sessions with a status."""
        sql = "SELECT session FROM sessions WHERE status = :status"
        with self.history() as history:
            return {name for (name,) in history.database.rows(sql, {"status": status})}

    def wait_for_rows(self, process: subprocess.Popen[str], number: int) -> None:
        """Wait until this many sessions are complete."""
        wait_for(
            lambda: process.poll() is not None or len(self.sessions("complete")) >= number,
            f"{number} rows",
        )
        assert process.poll() is None, process.communicate()

    def check(self, process: subprocess.Popen[str], most_wasted: int = MAX_CALLS) -> list[Any]:
        """Nothing is lost or doubled, and the limits were kept; return the lines of results."""
        out, err = process.communicate()
        assert process.returncode == 0, err
        results = [json.loads(line) for line in out.splitlines()]
        times = [at for at in self.cluster.times() if at >= self.began]
        with self.history() as history:
            stored = [*history.sessions()]
        begins = (bisect.bisect_left(times, at + WINDOW_SECONDS) - n for n, at in enumerate(times))
        fastest = max(begins) / WINDOW_SECONDS
        n_wasted = len(times) - N_ROWS * N_JURORS
        said = f"{n_wasted} of {N_ROWS * N_JURORS} calls wasted, {fastest:.0f} a second"
        sys.stdout.write(f"{said}, {time.time() - self.began:.0f} s\n")

        assert [each["id"] for each in results if each["status"] != "complete"] == []
        assert {each["id"] for each in results} == {str(n) for n in range(N_ROWS)}
        assert len({each["session"] for each in results}) == len(results) == N_ROWS
        assert len(stored) == N_ROWS
        assert {session.status for session in stored} == {"complete"}
        assert all(session.cost.calls >= N_JURORS for session in stored)
        # A token may be used up to a second late.
        assert fastest <= PER_MINUTE / 60 * (WINDOW_SECONDS + 1) / WINDOW_SECONDS + 1
        assert len(times) <= MAX_CALLS
        assert 0 <= n_wasted <= most_wasted
        return results


@pytest.fixture
def run(cluster: Cluster, request: pytest.FixtureRequest) -> Run:
    """A batch with a database of its own."""
    name = request.node.name.removeprefix("test_")[:60].lower()
    return Run(cluster, *cluster.database(name), time.time())


def test_a_cluster_gives_the_results_of_one_machine(cluster, run):
    """Their order may differ; the key is in no page of Spark and no file."""
    on_spark = run.start(cluster.driver, "--spark", cluster.master)
    run.wait_for_rows(on_spark, 30)
    address = cluster.driver.address
    pages = [
        cluster.driver.fetch(f"http://{address}:{place}")
        for place in ("4040/environment/", "4040/jobs/", "8080/json/")
    ]
    results = run.check(on_spark, most_wasted=0)
    local = Run(cluster, *cluster.database("local"), time.time())
    expected = local.check(local.start(cluster.driver, concurrency=2), most_wasted=0)
    hosts = (cluster.driver, *cluster.workers)
    files = [path for host in hosts for path in host.folder.rglob("*") if path.is_file()]
    workers_output = [path for path in files if path.name == "stderr" and "work" in path.parts]

    assert sorted(results, key=str) == sorted(expected, key=str)
    assert len({path.parts[:3] for path in workers_output}) == len(cluster.workers)
    assert [page for page in pages if KEY in page] == []
    assert [path for path in files if KEY in path.read_text(errors="replace")] == []


def test_a_ceiling_stops_rows_on_all_hosts(cluster, run):
    """Together they make not one call more; with a larger ceiling the command continues."""
    before = len(cluster.times())
    cluster.hold(before)
    poor = run.start(cluster.driver, "--spark", cluster.master, "--json", max_calls=300)
    wait_for(lambda: len(cluster.times()) >= before + 2 * N_JURORS, "a row on each worker")
    cluster.hold(inf)
    out, err = poor.communicate()
    report = json.loads(err.splitlines()[-1])
    n_calls = len(cluster.times()) - before

    assert poor.returncode == 4
    assert (report["statuses"], report["unaffordable"]) == ({"complete": 100}, N_ROWS - 100)
    assert (report["calls"], n_calls, len(out.splitlines())) == (300, 300, 100)
    assert len(run.sessions("complete")) == 100
    run.check(run.start(cluster.workers[1], "--spark", cluster.master), most_wasted=0)


def test_a_killed_worker_and_a_killed_driver_lose_nothing(cluster, run):
    """Another host continues with the same command; at most 1% of the calls is wasted."""
    driver = run.start(cluster.driver, "--spark", cluster.master)
    run.wait_for_rows(driver, 80)
    executors = cluster.workers[0].find("CoarseGrainedExecutorBackend")
    for number in executors:
        kill_all(number)
        os.kill(number, signal.SIGKILL)
    run.wait_for_rows(driver, 160)
    kill_all(driver.pid)
    driver.communicate()
    again = run.start(cluster.workers[1], "--spark", cluster.master)

    assert executors
    run.check(again, most_wasted=N_ROWS * N_JURORS // 100)


def test_a_worker_that_leaves_the_network_for_good_loses_nothing(cluster, run):
    """Its rows go to the other worker, in the same run."""
    process = run.start(cluster.driver, "--spark", cluster.master, concurrency=4)
    run.wait_for_rows(process, 80)
    with cluster.without(cluster.workers[0]):
        run.check(process)


def test_a_worker_that_comes_back_doubles_nothing(cluster, run):
    """Its sessions were taken over, and its later events are not stored."""
    process = run.start(cluster.driver, "--spark", cluster.master, concurrency=4)
    run.wait_for_rows(process, 80)
    with cluster.without(cluster.workers[1]):
        time.sleep(2)  # what the other worker records now is complete soon
        taken = run.sessions("interrupted")
        wait_for(lambda: taken <= run.sessions("complete"), "the other worker")
        with run.history() as history:
            before = [history.session(name).events for name in sorted(taken)]
    run.check(process)
    time.sleep(5)  # it may still have something to tell
    with run.history() as history:
        after = [history.session(name).events for name in sorted(taken)]

    assert taken
    assert after == before


def test_dropped_connections_lose_nothing(cluster, run):
    """All processes reconnect, and no session has two writers."""
    process = run.start(cluster.driver, "--spark", cluster.master)
    run.wait_for_rows(process, 80)
    drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    with run.history() as history:
        history.database.rows(drop)

    run.check(process, most_wasted=N_ROWS * N_JURORS // 100)
