"""``witan batch --spark``, black box: many processes, one history, also after kills."""

import bisect
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import httpx
import pytest

from council_servers import council_server
from hosts import descendants, read_if_alive
from postgres import postgresql_url
from witan import Council, History
from witan.analytics.sources import running_session, start_session
from witan.batches import BatchOptions, BatchRow, SparkBatch
from witan.errors import NoCouncil
from witan.models import ScriptedModel
from witan.service.batch_votes import NOTE

__all__ = ["postgresql_url"]

PER_MINUTE = 6_000

WINDOW_SECONDS = 3


def write_rows(path, n):
    """Rows with a text to judge each, as JSON Lines."""
    rows = ({"id": k, "text": f"Design {k}, of worth {k % 8 + 1}."} for k in range(n))
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_a_file_as_history_is_refused_before_spark_starts(witan, tmp_path):
    """The error names what to use in its place."""
    rows = write_rows(tmp_path / "rows.jsonl", 1)
    jury = ["--jury", "a=cmd:cat", "--jury", "b=cmd:cat"]
    said = witan("batch", rows, *jury, "--history", tmp_path / "h.sqlite", "--spark", "local[2]")

    assert said.status == 2
    assert "is a file, and Spark's workers share a history through a server" in said.err
    assert "--history postgresql://" in said.err


@pytest.mark.parametrize("master", ["spark://192.0.2.1:7077", "k8s://https://192.0.2.1:6443"])
def test_a_history_that_workers_cannot_reach_is_refused(witan, tmp_path, postgresql_url, master):
    """Spark does not start: on other hosts the address would be theirs."""
    rows = write_rows(tmp_path / "rows.jsonl", 1)
    jury = ["--jury", "a=cmd:cat", "--jury", "b=cmd:cat"]
    said = witan("batch", rows, *jury, "--history", postgresql_url, "--spark", master)

    assert said.status == 2
    assert f"is at 127.0.0.1, which to the workers of {master} is their own host" in said.err
    assert "name the server as they reach it: --history postgresql://user@HOST" in said.err


@pytest.mark.parametrize(
    "master", ["local[2]", "spark://127.0.0.1:7077", "spark://no..name:7077", "yarn", None]
)
def test_a_history_of_this_host_is_accepted_with_a_master_of_this_host(postgresql_url, master):
    """Its workers may reach it; of a name that is none, Spark says so."""
    council = Council(["a=cmd:cat", "b=cmd:cat"])
    with History.open(postgresql_url) as history:
        SparkBatch(council, history, [BatchRow(1, None, "Why?")], BatchOptions(), master=master)


def test_an_invalid_master_is_refused(witan, tmp_path):
    """The file of rows after --spark is not taken for one."""
    said = witan("batch", "--spark", write_rows(tmp_path / "rows.jsonl", 1))

    assert said.status == 2
    assert "is not a Spark master" in said.err
    assert "write --spark last" in said.err


def test_a_file_as_history_of_arms_is_refused(witan, tmp_path):
    """No call is made."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "Why?"}\n')
    arms = ["--arms", "council,best", "--judge", "cmd:true", "--judge", "cmd:false"]
    seats = ["--member", "a=cmd:cat", "--member", "b=cmd:cat"]
    history = ["--history", tmp_path / "h.sqlite"]
    said = witan("batch", rows, *arms, *seats, *history, "--spark", "local[2]")

    assert said.status == 2
    assert "Spark's workers share a history through a server" in said.err


@pytest.fixture
def server():
    """A server of the OpenAI protocol whose calls take 50 ms, and which records their times."""
    with council_server(0.05) as url:
        yield url


@pytest.fixture
def spark():
    """Skip where Spark cannot run."""
    pytest.importorskip("pyspark", reason="Spark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")
    if sys.platform != "linux":
        pytest.skip("this test finds processes in /proc, which only Linux has")


@pytest.fixture
def arguments(tmp_path, server, postgresql_url, monkeypatch):
    """A batch of 1,000 rows under a ceiling and its provider's rate, without a master."""
    monkeypatch.setenv("KEY_OF_THIS_TEST", "a key that goes to workers")
    provider = f'key = "KEY_OF_THIS_TEST"\nurl = "{server}/v1"\nper_minute = {PER_MINUTE}\n'
    config = tmp_path / "witan.toml"
    config.write_text(f"[providers.openai]\n{provider}")
    rows = write_rows(tmp_path / "rows.jsonl", 1_000)
    seats = [f"openai:model-{n}" for n in range(3)]
    jury = [part for seat in seats for part in ("--jury", seat, "--price", f"{seat}=1,1")]
    limits = ["--concurrency", 1, "--max-cost", 50, "--config", config]
    return ["batch", rows, *jury, *limits, "--pass-mark", 6, "--history", postgresql_url]


def kill_one(driver, words):
    """Kill the youngest descendant of a driver whose command has these words."""
    running = [
        number
        for number in descendants(driver.pid)
        if words in read_if_alive(Path(f"/proc/{number}/cmdline"))
    ]
    os.kill(max(running), signal.SIGKILL)


def start(arguments, *more):
    """Start the command; its results come on standard output."""
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "witan", *map(str, (*arguments, *more))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_rows(process, n):
    """Read this many results."""
    for _ in range(n):
        if not process.stdout.readline():
            pytest.fail(process.stderr.read())


def check(said, out, server, history):
    """Nothing is lost, doubled or wasted, and the rate was kept."""
    results = [json.loads(line) for line in out.read_text().splitlines()]
    times = httpx.get(f"{server}/times", timeout=60).json()
    with History.open(history, reading=True) as opened:
        stored = [*opened.sessions()]

    begins = (bisect.bisect_left(times, at + WINDOW_SECONDS) - n for n, at in enumerate(times))
    fastest = max(begins) / WINDOW_SECONDS
    sys.stdout.write(f"{len(times) - 3_000} of 3,000 calls wasted, {fastest:.0f} a second\n")

    assert said.status == 0, said.err
    assert {each["id"] for each in results} == {str(n) for n in range(1_000)}
    assert len({each["session"] for each in results}) == len(results) == 1_000
    assert len(stored) == 1_000
    assert {session.status for session in stored} == {"complete"}
    assert 3_000 <= len(times) <= 3_030
    # A token may be used up to a second late.
    assert fastest <= PER_MINUTE / 60 * (WINDOW_SECONDS + 1) / WINDOW_SECONDS + 1


@pytest.mark.slow
def test_a_killed_worker_and_a_killed_driver_lose_nothing(
    witan, tmp_path, arguments, server, postgresql_url, spark
):
    """Spark repeats the worker's task, and the same command continues the driver's job."""
    out = tmp_path / "out.jsonl"
    with start(arguments, "--spark", "local[2,4]") as driver:
        wait_for_rows(driver, 200)
        kill_one(driver, "pyspark")
        wait_for_rows(driver, 200)
        driver.kill()
    said = witan(*arguments, "-o", out, "--json", "--spark", "local[2,4]")

    assert said.json["earlier"] >= 400
    check(said, out, server, postgresql_url)


@pytest.mark.slow
def test_a_killed_executor_loses_nothing(witan, tmp_path, arguments, server, postgresql_url, spark):
    """Another executor takes its rows, in the same run."""
    out = tmp_path / "out.jsonl"
    with start(arguments, "--spark", "local-cluster[2,1,1024]") as driver:
        wait_for_rows(driver, 200)
        kill_one(driver, "CoarseGrainedExecutorBackend")
        wait_for_rows(driver, 800)
        assert driver.wait() == 0
    said = witan(*arguments, "-o", out, "--json")

    assert said.json["earlier"] == 1_000
    check(said, out, server, postgresql_url)


@pytest.mark.slow
def test_a_ceiling_applies_to_all_workers(witan, tmp_path, server, postgresql_url, spark):
    """Rows beyond it are not begun; an invalid row has its reason, and stops no other."""
    rows = write_rows(tmp_path / "rows.jsonl", 11)
    rows.write_text(rows.read_text() + '{"id": "blank", "text": " "}\n')
    jury = [part for n in range(3) for part in ("--jury", f"m{n}={server}/v1#model-{n}")]
    arguments = ["batch", rows, *jury, "--history", postgresql_url, "--spark", "local[2]"]
    out = tmp_path / "out.jsonl"
    with start(arguments, "--max-calls", 15, "-o", out, "--json") as poor:
        report = json.loads(poor.communicate()[0])
    n_calls = count_calls(server)
    with start(arguments, "--max-calls", 40, "-o", out, "--json") as rich:
        rich.communicate()
    results = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}

    assert (poor.returncode, rich.returncode) == (4, 3)
    assert (report["statuses"], report["unaffordable"]) == ({"complete": 5, "error": 1}, 6)
    assert n_calls == 15
    assert count_calls(server) == 33
    assert "the text is empty" in results.pop("blank")["error"]
    assert [row["status"] for row in results.values()] == ["complete"] * 11


@pytest.mark.slow
def test_rows_that_fail_count_under_the_ceiling(witan, tmp_path, postgresql_url, spark):
    """A later job of the same run knows their cost, and the report states it."""
    rows = write_rows(tmp_path / "rows.jsonl", 12)
    jury = [part for name in "abc" for part in ("--jury", f"{name}=cmd:echo no")]
    arguments = ["batch", rows, *jury, "--history", postgresql_url, "--max-calls", 20, "--json"]
    said = witan(*arguments, "-o", tmp_path / "out.jsonl", "--spark", "local[2]")
    with History.open(postgresql_url, reading=True) as history:
        n_calls = sum(session.cost.calls for session in history.sessions())

    assert set(said.json["statuses"]) == {"failed"}
    assert said.json["unaffordable"] > 0
    assert said.json["calls"] == n_calls
    assert 0 < n_calls <= 20


@pytest.mark.slow
def test_arms_are_jobs_under_one_ceiling(witan, tmp_path, server, postgresql_url, spark):
    """A driver that is killed in each arm loses no row, and doubles none.

    Calls under way at a kill are paid and made again. The ceiling holds all the same: a run that
    meets it says so, and one with a larger ceiling goes on.
    """
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"question": "Why {n}?"}}\n' for n in range(24)))
    seats = {"--member": (3, 4, 5), "--chairman": (0,), "--judge": (6, 7, 8)}
    named = [(option, f"m{n}={server}/v1#model-{n}") for option in seats for n in seats[option]]
    named += [("--price", f"m{n}=1,1") for n in (*range(3, 9), 0)]
    arms = ["--arms", "council,best,self", "--history", postgresql_url, "--concurrency", 2]
    arguments = ["batch", rows, *(part for pair in named for part in pair), *arms]
    bill = witan(*arguments, "--dry-run", "--json").json

    def limit(n_calls):
        limits = ["--max-calls", n_calls, "--max-cost", 2 * bill["worst_usd"]]
        return [*arguments, *limits, "--spark", "local[2]"]

    def run(n_calls):
        said = witan(*limit(n_calls), "--json")
        return said, json.loads(said.err.splitlines()[-1]), count_calls(server)

    # 24 rows of 7 calls, of which 12 choose the best member; 3 calls of it and 3 of the jury each.
    n_calls = {"council": 24 * 7, "self": 12 * 3, "jury": 12 * 3}
    n_lost = 2 * 2 * 3  # of two tasks with two sessions each, all three calls are under way
    n_made = 0
    for arm in n_calls:
        httpx.get(f"{server}/hold/{n_made}")
        with start(limit(bill["calls"] + 2 * n_lost)) as driver:
            wait_for_calls(driver, server, n_made + n_lost)
            kill_with_workers(driver)
        n_made += n_lost + n_calls[arm]
    httpx.get(f"{server}/hold/{10 * n_made}")
    poor, poor_report, n_poor = run(n_made - 6)
    rich, rich_report, n_rich = run(n_made)
    with History.open(postgresql_url, reading=True) as history:
        sessions = [*history.sessions()]
        assert history.database.rows("SELECT * FROM ceilings") == []

    assert (poor.status, rich.status) == (4, 0), rich.err
    assert (poor_report["unaffordable"], poor_report["statuses"]) == (2, {"complete": 22})
    assert (poor_report["calls"], n_poor) == (n_made - 6, n_made - 6)
    assert (rich_report["unaffordable"], rich_report["statuses"]) == (0, {"complete": 24})
    assert (rich_report["calls"], n_rich) == (n_made, n_made)
    assert sorted(row["row"] for row in map(json.loads, rich.out.splitlines())) == [*range(1, 25)]
    assert len(sessions) == 24 + 12 + 12
    assert {session.status for session in sessions} == {"complete"}
    assert sum(session.cost.calls for session in sessions) == n_made
    assert rich_report["comparison"]["questions"] == 12


def count_calls(server):
    """The number of calls received."""
    return httpx.get(f"{server}/count", timeout=60).json()


def wait_for_calls(driver, server, n_calls):
    """Wait until this many calls were received."""
    while count_calls(server) < n_calls:
        if driver.poll() is not None:
            pytest.fail(driver.stderr.read())
        time.sleep(0.02)


def kill_with_workers(driver):
    """Kill a driver, and wait until its workers have noticed."""
    below = descendants(driver.pid)
    driver.kill()
    while any(read_if_alive(Path(f"/proc/{number}/cmdline")) for number in below):
        time.sleep(0.02)


@pytest.mark.slow
def test_ctrl_c_stops_a_job_while_spark_starts(arguments, postgresql_url, spark):
    """The process ends, and no row is begun."""
    with start(arguments, "--spark", "local[2]") as driver:
        while not any(
            "java" in read_if_alive(Path(f"/proc/{number}/cmdline"))
            for number in descendants(driver.pid)
        ):
            assert driver.poll() is None
            time.sleep(0.02)
        driver.send_signal(signal.SIGINT)
        driver.communicate(timeout=60)

    assert driver.returncode != 0
    with History.open(postgresql_url, reading=True) as history:
        assert not history.find()


def test_a_python_model_is_refused(postgresql_url):
    """Workers cannot seat it; the error names what they can."""
    council = Council([ScriptedModel("ada"), ScriptedModel("bo")])
    with (
        History.open(postgresql_url) as history,
        pytest.raises(NoCouncil, match=r"ada is a model of your own.* such as openai:gpt-5"),
    ):
        SparkBatch(council, history, [BatchRow(1, None, "Why?")], BatchOptions())


@pytest.mark.slow
def test_the_session_of_a_notebook_is_used_and_stays_open(server, postgresql_url, spark):
    """Its rows run in it, and it can be used afterwards."""
    session = running_session() or start_session("local[2]")
    council = Council([f"m{n}={server}/v1#model-{n}" for n in range(3)])
    tasks = [
        BatchRow(n, None, None, {"text": f"Design {n}, of worth 8."}, votes={"ann": 7.0})
        for n in range(4)
    ]
    results = []

    async def run(batch):
        async with council:
            return await batch.run(results.append)

    with History.open(postgresql_url) as history:
        options = BatchOptions(pass_mark=6)
        report = anyio.run(run, SparkBatch(council, history, tasks, options, session=session))
        ends = [each.events[-1].at for each in history.sessions()]
        votes = [each for r in results for each in history.ballots(r.session) if each.notes == NOTE]

    assert report.statuses == {"complete": 4}
    assert sorted(each.row for each in results) == [0, 1, 2, 3]
    assert session.range(3).count() == 3
    # The driver stores people's votes when all rows are done; workers store none.
    assert report.people.rows == len(votes) == 4
    assert min(each.at for each in votes) >= max(ends)


@pytest.mark.slow
def test_cancelling_a_batch_leaves_other_jobs_of_a_notebook_running(
    server, postgresql_url, spark, tmp_path
):
    """Only its own job is stopped, before all its rows are done."""
    session = running_session() or start_session("local[2]")
    council = Council([f"m{n}={server}/v1#model-{n}" for n in range(3)])
    tasks = [BatchRow(n, None, None, {"text": f"Design {n}, of worth 8."}) for n in range(200)]
    results = []

    stop = tmp_path / "stop"

    def wait_for_stop(rows):
        while not stop.exists():
            time.sleep(0.1)
        return rows

    async def run(batch):
        async with council:
            with anyio.CancelScope() as scope:

                def take(result):
                    results.append(result)
                    scope.cancel()

                await batch.run(take)

    with ThreadPoolExecutor(1) as other, History.open(postgresql_url) as history:
        job = other.submit(
            session.sparkContext.parallelize([1], 1).mapPartitions(wait_for_stop).collect
        )
        options = BatchOptions(concurrency=1, pass_mark=6)
        anyio.run(run, SparkBatch(council, history, tasks, options, session=session))
        assert not job.done()
        stop.touch()
        assert job.result() == [1]

    assert 0 < len(results) < 200
