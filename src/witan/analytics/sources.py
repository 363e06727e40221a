"""Sources of leaderboards and audits: a history, files, or a lake."""

import logging
import os
import re
import shutil
import sys
import tempfile
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from glob import escape
from pathlib import Path
from threading import RLock, Thread
from types import MappingProxyType, ModuleType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from witan.analytics.lake import TABLES, Lake, constants
from witan.analytics.sums import CachedEngine, WindowSums
from witan.analytics.views import (
    DUCKDB_VIEWS,
    NO_PARAMETERS,
    SPARK_VIEWS,
    Columns,
    Engine,
    Params,
    Query,
    SumQuery,
)
from witan.core.rules import RULES
from witan.core.session_ballots import ModelNames, SessionBallots
from witan.core.settings import AUTO
from witan.core.stats.leaderboard import ALWAYS, EPOCH, Window
from witan.core.stats.sums import Names
from witan.deliberation.ports import SystemClock
from witan.errors import HistoryError, InvalidParameter, MissingExtra, NothingToCount
from witan.history import History
from witan.history.learning import NO_ALIASES, learn
from witan.history.schema import bucket_of

_CODES = {"model", "reviewer", "other", "criterion"}
"""Columns of codes. Codes of pairs are the same as those of standings."""

_OVERALL = -1
"""Code of the holistic grade in place of a criterion."""


class LakeEngine(ABC):
    """A lake open in an engine until the block ends.

    `folder`: the lake, or its path.
    `engine`: the name of the engine in messages.
    """

    def __init__(self, folder: str | Path | Lake, engine: str) -> None:
        self.lake = folder if isinstance(folder, Lake) else Lake(folder)
        self._engine = engine

    def names(self) -> Names:
        """Return the name of every code."""
        return self.lake.names()

    @abstractmethod
    def columns(self, sql: str, params: Params = NO_PARAMETERS) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries; memory-hungry ones span by span."""
        runs = [
            (number, query.restrict(span))
            for number, query in enumerate(queries)
            for span in (self.spans(window) if query.by_span else (window,))
        ]
        named_codes = {_OVERALL, *self.names().of}
        results = self.run_queries(query for _, query in runs)
        for (number, _), columns in zip(runs, results, strict=True):
            self._check_codes(columns, named_codes)
            yield number, columns

    @abstractmethod
    def spans(self, window: Window) -> Sequence[Window]:
        """Cut a window into spans fitting memory."""

    def run_queries(self, queries: Iterable[Query]) -> Iterator[dict[str, NDArray[Any]]]:
        """Run queries in sequence: each uses all cores."""
        return (self.columns(*query) for query in queries)

    @abstractmethod
    def close(self) -> None:
        """Close the engine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_codes(self, columns: Columns, codes: Set[int]) -> None:
        """Refuse codes without a name, whose file was removed."""
        for name in _CODES & columns.keys():
            unnamed = set(np.unique(columns[name]).tolist()) - codes
            if unnamed:
                problem = f"has no name for the {name} with the code {min(unnamed)}"
                remedy = "export all of its histories again"
                raise HistoryError(str(self.lake.folder), problem, remedy)

    def _translate(self, error: Exception) -> HistoryError:
        """Translate an error: name the damaged file, or quote the engine."""
        damaged = self.lake.find_damage()
        if damaged is not None:
            return damaged
        problem = f"cannot be summed: {self._engine} reports: {str(error).splitlines()[0]}"
        return HistoryError(str(self.lake.folder), problem, "check the cause, then try again")


MEMORY = "320MB"
"""Memory limit of DuckDB, beyond which it uses the disk; sums over pairs need half."""

_PARAMETER = re.compile(r":([a-z_]+)")


class DuckLake(LakeEngine):
    """A folder of Parquet files, summed by DuckDB.

    `folder`: the lake, or its path.

    Raises `HistoryError` if the folder is not a lake or a file cannot be read; `MissingExtra` if
    duckdb or pyarrow is not installed.
    """

    def __init__(self, folder: str | Path | Lake) -> None:
        self._duckdb = _duckdb()
        super().__init__(folder, "DuckDB")
        self._lock = RLock()
        self._spill_folder = tempfile.TemporaryDirectory(prefix="witan-lake-")
        self._connection = self._duckdb.connect(
            config={
                "memory_limit": MEMORY,
                "temp_directory": self._spill_folder.name,
                "preserve_insertion_order": False,
                # Extensions are never downloaded: Parquet is built in.
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        self._finalizer = weakref.finalize(self, _close, self._connection, self._spill_folder)
        with self._lock:
            self._connection.execute("SET parquet_metadata_cache = true")
            for table, paths in self.lake.files.items():
                # DuckDB reads a path as a pattern.
                quoted_paths = (escape(str(path)).replace("'", "''") for path in paths)
                files = ", ".join(f"'{path}'" for path in quoted_paths)
                source = f"read_parquet([{files}], hive_partitioning = false)"
                self._connection.execute(f"CREATE VIEW lake_{table} AS FROM {source}")
            for name, view in DUCKDB_VIEWS.items():
                self._connection.execute(f"CREATE VIEW {name} AS {view}")

    def columns(self, sql: str, params: Params = NO_PARAMETERS) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""
        with self._lock:
            try:
                cursor = self._connection.execute(_PARAMETER.sub(r"$\1", sql), dict(params))
                columns: dict[str, NDArray[Any]] = cursor.fetchnumpy()
            except self._duckdb.Error as error:
                raise self._translate(error) from error
        return columns

    def spans(self, window: Window) -> Sequence[Window]:
        """Cut a window into spans fitting memory."""
        return self.lake.spans(window)

    def close(self) -> None:
        """Close DuckDB and delete its temporary files."""
        self._finalizer()

    def _translate(self, error: Exception) -> HistoryError:
        if isinstance(error, self._duckdb.OutOfMemoryException):
            problem = f"needs more memory: {str(error).splitlines()[0]}"
            remedy = "raise the memory limit, or choose a shorter window"
            return HistoryError(str(self.lake.folder), problem, remedy)
        return super()._translate(error)


def _duckdb() -> ModuleType:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("reading a lake with DuckDB", "lake") from None
    return duckdb


def _close(connection: Any, spill: tempfile.TemporaryDirectory[str]) -> None:
    connection.close()
    spill.cleanup()


_log = logging.getLogger("witan.spark")

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # Only sums are shuffled, a few thousand rows, so adaptive planning would take longer.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
}
"""Settings of Spark on one machine: no network access, few partitions."""

_STARTUP_LINES = re.compile(
    r"WARNING: Using incubator modules|Using Spark's default log4j profile"
    r"|Setting (default|Spark) log level|To adjust logging level"
    r"|\d\d/\d\d/\d\d \d\d:\d\d:\d\d (WARN|INFO) "
)
"""Pattern of lines that Java and Spark always write while starting.

The log level only applies once Spark is running.
"""

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the errors raised by Spark and its gateway."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def explain_spark_error(error: Exception) -> str:
    """Return the most informative line of Spark's error.

    It is Java's exception, if there is one.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    thrown = (line.removeprefix(":").strip() for line in lines if line.startswith(": "))
    return next(thrown, lines[0])


def running_session() -> Any:
    """Return the Spark session of this process, if any."""
    pyspark = _pyspark()
    try:
        return pyspark.sql.SparkSession.active()
    except pyspark.errors.PySparkException:
        return None


def start_session(master: str | None, settings: Mapping[str, str] = NO_SETTINGS) -> Any:
    """Start Spark, or reuse it, and log its errors alone.

    `master`: where to run, as Spark writes it; None leaves it to Spark's own configuration.
    `settings`: Spark's own; on this machine alone they override ours.

    Raises `HistoryError` if Java is missing, or Spark does not start; `MissingExtra` if pyspark is
    not installed.
    """
    pyspark = _pyspark()
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        remedy = "install a Java runtime of version 17 or later, or set JAVA_HOME to one"
        raise HistoryError("Spark", "needs Java, which was not found", remedy)
    conf = pyspark.SparkConf()
    if master is not None:
        conf.setMaster(master)
    if master is not None and master.startswith("local"):
        settings = {**LOCAL_SETTINGS, **settings}
    # Otherwise workers run whatever python3 is in their PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf.setAppName("witan").setAll([*settings.items()])
    try:
        with warnings.catch_warnings():
            # It warns about versions of pandas, which is not used here.
            warnings.simplefilter("ignore", FutureWarning)
            _start(pyspark, conf)
            return pyspark.sql.SparkSession.builder.config(conf=conf).getOrCreate()
    except spark_errors() as error:
        problem = f"does not start: {explain_spark_error(error)}"
        place = "" if master is None or "//" not in master else f", and that {master} is reachable"
        remedy = f"check that Java 17 or later runs (java -version){place}"
        raise HistoryError("Spark", problem, remedy) from error


def _pyspark() -> Any:
    try:
        import pyspark.errors
        import pyspark.sql
    except ImportError:
        raise MissingExtra("Spark", "spark") from None
    return pyspark


def _start(pyspark: Any, conf: Any) -> None:
    """Start Java and pass on its errors, unless already running."""
    # There is no public check for a running one, and a second one would be useless.
    if pyspark.SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001
        return
    from pyspark.java_gateway import launch_gateway

    reading, writing = os.pipe()
    # A daemon thread: Java and its output end with this process.
    Thread(target=_pass_on, args=(reading,), name="spark-talk", daemon=True).start()
    try:
        gateway = launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
    pyspark.SparkContext(conf=conf, gateway=gateway)


def _pass_on(reading: int) -> None:
    with open(reading, encoding="utf-8", errors="replace") as lines:
        for line in filter_output(lines):
            _log.warning("%s", line.rstrip())


def filter_output(lines: Iterable[str]) -> Iterator[str]:
    """Drop the usual lines of Java and Spark at start."""
    return (line for line in lines if not _STARTUP_LINES.match(line))


_GLOB_CHARACTERS = re.compile(r"([*?\[\]{}])")
"""Pattern characters of Spark in a path."""


MAX_PARALLEL_QUERIES = 4
"""Maximum number of parallel queries: while one is planned, others use the cores."""

FILTER_COLUMNS = {"simulated", "rejudged", "human"}
"""Columns used as filters; in most lakes each has one value."""


class SparkLake(LakeEngine):
    """A folder of Parquet files, summed by Spark.

    `folder`: the lake, or its path, which must be the same on every executor.
    `session`: the caller's SparkSession, which stays open. By default the one running in this
    process, which also stays open; if there is none, a new one on this machine, stopped when the
    lake is closed.

    Raises `HistoryError` if the folder is not a lake, a file cannot be read, or Java is missing;
    `MissingExtra` if pyspark or pyarrow is not installed.
    """

    def __init__(self, folder: str | Path | Lake, *, session: Any = None) -> None:
        super().__init__(folder, "Spark")
        parent_session: Any = running_session() if session is None else session
        self._own_session: Any = None
        if parent_session is None:
            parent_session = self._own_session = start_session("local[*]")
        # Keeps the views of two lakes in one Spark session separate.
        self._session = parent_session.newSession()
        self._clients = ThreadPoolExecutor(MAX_PARALLEL_QUERIES, thread_name_prefix="witan-spark")
        try:
            for table, paths in self.lake.files.items():
                files = [
                    _GLOB_CHARACTERS.sub(r"\\\1", path.absolute().as_posix()) for path in paths
                ]
                # With a schema, Spark does not have to read it from the files.
                kinds = TABLES[table].items()
                schema = ", ".join(f"{name} {_spark_type(kind)}" for name, kind in kinds)
                rows = self._session.read.schema(schema).parquet(*files)
                constant_columns = constants(paths, FILTER_COLUMNS & TABLES[table].keys())
                _replace_constants(rows, table, constant_columns).createOrReplaceTempView(
                    f"lake_{table}"
                )
            for name, view in SPARK_VIEWS.items():
                self._session.sql(view).createOrReplaceTempView(name)
        except spark_errors() as error:
            self.close()
            raise self._translate(error) from error

    def columns(self, sql: str, params: Params = NO_PARAMETERS) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""
        try:
            table = self._session.sql(sql, args=dict(params)).toArrow()
        except spark_errors() as error:
            raise self._translate(error) from error
        return {
            name: column.to_numpy()
            for name, column in zip(table.column_names, table.columns, strict=True)
        }

    def run_queries(self, queries: Iterable[Query]) -> Iterator[dict[str, NDArray[Any]]]:
        """Run queries in parallel: Spark shares its cores among them."""
        runs = [self._clients.submit(self._bind(query)) for query in queries]
        try:
            for one in runs:
                yield one.result()
        finally:
            for one in runs:
                one.cancel()

    def _bind(self, query: Query) -> Callable[[], dict[str, NDArray[Any]]]:
        """Bind a threaded query to the caller's pool and job group."""
        from pyspark import inheritable_thread_target

        bound: Callable[[], dict[str, NDArray[Any]]] = inheritable_thread_target(self._session)(
            partial(self.columns, *query)
        )
        return bound

    def spans(self, window: Window) -> Sequence[Window]:
        """Return the window itself: Spark splits its work by itself."""
        return (window,)

    def close(self) -> None:
        """Stop Spark if it was started here."""
        if self._own_session is not None:
            self._own_session.stop()
        self._clients.shutdown(wait=False, cancel_futures=True)


def _replace_constants(frame: Any, table: str, constants: Mapping[str, int]) -> Any:
    """Replace single-valued columns by their value, to save reading them."""
    if not constants:
        return frame
    from pyspark.sql.functions import lit

    return frame.withColumns(
        {name: lit(value).cast(_TYPES[TABLES[table][name]]) for name, value in constants.items()}
    )


_TYPES = {
    "int64": "BIGINT",
    "int32": "INT",
    "int16": "SMALLINT",
    "int8": "TINYINT",
    "float64": "DOUBLE",
    "string": "STRING",
}


def _spark_type(kind: str) -> str:
    return f"ARRAY<{_spark_type(kind[1:-1])}>" if kind.startswith("[") else _TYPES[kind]


WEIGHTED_RULE = "weighted_borda"


def weights_by_halves(
    history: History, sessions: Sequence[SessionBallots], aliases: Mapping[str, str] = NO_ALIASES
) -> Mapping[str, Mapping[str, float]]:
    """Weigh reviewers by lessons from the other half of the buckets.

    No session contributes to its own weights, and the history is read twice, not once per session.

    `aliases`: old name → new name of a model, in addition to those of the history.
    """
    names = {**history.aliases, **aliases}
    by_session: dict[str, Mapping[str, float]] = {}
    for half in (0, 1):
        reviewers = {
            session_ballots.session: _reviewers(session_ballots)
            for session_ballots in sessions
            if bucket_of(session_ballots.session) % 2 == half
        }
        models = sorted({model for seats in reviewers.values() for model in seats.values()})
        if not models:
            continue
        lessons = learn(history.database, models, half=1 - half, aliases=names)
        weights = lessons.reliability
        for session, seats in reviewers.items():
            by_session[session] = {
                name: weights[model] for name, model in sorted(seats.items()) if model in weights
            }
    return by_session


def _reviewers(ballots: SessionBallots) -> dict[str, str]:
    """Return the model of each reviewer; people have equal weights."""
    model_names = ModelNames(ballots)
    names = {ballot.reviewer for ballot in ballots.ballots if ballot.kind == "model"}
    return {name: model_names.reviewer(name) for name in names}


EngineName = Literal["duckdb", "spark"]

BASE_RULE = "borda"
"""The rule by which every session is counted when stored."""


WAIT_SECONDS = 10.0
"""Lock timeout of a separate connection in seconds."""


class Source:
    """A source of sessions to sum.

    `location`: its location or name, without a password.
    `name`: the engine: ``sqlite``, ``postgresql``, ``duckdb`` or ``spark``.
    `engine`: SQL over its views.
    """

    location: str
    name: str
    engine: Engine

    def sums(self, window: Window) -> WindowSums:
        """Sum a window."""
        return WindowSums(self.engine, window)

    def recount(
        self,
        rule: str,  # noqa: ARG002 - a lake is only read
        aliases: Mapping[str, str] = NO_ALIASES,  # noqa: ARG002
        damaged: set[str] | None = None,  # noqa: ARG002
    ) -> int:
        """Count sessions new to a rule, if possible; return their number.

        Damaged ones are left out and added to `damaged`; without it, the first is an error.
        """
        return 0

    def moment(self) -> AbstractContextManager[None]:
        """Read one consistent state until the block ends."""
        return nullcontext()


class HistorySource(Source):
    """A history, or files imported into a temporary one."""

    def __init__(self, history: History, location: str | None = None) -> None:
        self._history = history
        self._cached_engine = CachedEngine(history.database)
        self.location = history.database.location if location is None else location
        self.name = history.database.dialect
        self.engine = self._cached_engine

    @classmethod
    @contextmanager
    def on_own_connection(cls, history: History) -> Iterator[Self]:
        """Open the history on another connection, so long sums delay nobody."""
        with history.database.reopen(WAIT_SECONDS) as database:
            copy = History(database, SystemClock())
            copy.aliases = history.aliases
            yield cls(copy)

    def recount(
        self,
        rule: str,
        aliases: Mapping[str, str] = NO_ALIASES,
        damaged: set[str] | None = None,
    ) -> int:
        """Count sessions never counted under a rule, and store the results."""
        if rule == BASE_RULE or not self.sums(ALWAYS).count_uncounted(rule):
            return 0
        weigh = partial(weights_by_halves, self._history, aliases=aliases)
        return self._history.recount(rule, weigh if rule == WEIGHTED_RULE else None, damaged)

    def moment(self) -> AbstractContextManager[None]:
        """Read a snapshot; cache its sums at the end."""
        return self._cached_engine.moment()


class LakeSource(Source):
    """A lake and its engine; a lake with repeated sessions is refused."""

    def __init__(self, engine: DuckLake | SparkLake) -> None:
        engine.lake.check_duplicates()
        self.location = str(engine.lake.folder)
        self.name = "duckdb" if isinstance(engine, DuckLake) else "spark"
        self.engine = engine


@contextmanager
def open_lake(folder: str | Path, engine: EngineName = "duckdb") -> Iterator[LakeSource]:
    """Open a lake in an engine until the block ends.

    Raises `HistoryError` if the folder is not a lake, contains a session twice, or the engine does
    not start; `MissingExtra` if the engine is not installed.
    """
    with DuckLake(folder) if engine == "duckdb" else SparkLake(folder) as lake:
        yield LakeSource(lake)


@contextmanager
def open_source(location: History | DuckLake | SparkLake | str | Path) -> Iterator[Source]:
    """Open a source from a history, an engine, or a location.

    A history or an engine that is passed in stays open.
    """
    if isinstance(location, History):
        yield HistorySource(location)
    elif isinstance(location, DuckLake | SparkLake):
        yield LakeSource(location)
    elif "://" not in str(location) and Path(location).is_dir():
        with open_lake(location) as lake:
            yield lake
    else:
        with History.open(location, reading=True) as history:
            yield HistorySource(history)


def check_rule(rule: str) -> None:
    """Refuse a rule without scores of single sessions.

    Raises `UnknownName` if there is no such rule; `InvalidParameter` if it rates all sessions
    together, or is `auto`.
    """
    if rule == AUTO:
        expected = "one rule by name: auto can choose a different rule, and scale, per session"
        raise InvalidParameter("rule", rule, expected)
    if RULES[rule].needs == "history":
        expected = "a rule that scores each session; a rating over all sessions is an `order_by`"
        raise InvalidParameter("rule", rule, expected)


_TOTALS_SQL = """
SELECT simulated, COUNT(*) AS n, MIN(at_us) AS first_us, MAX(at_us) AS last_us
FROM v_sessions
GROUP BY simulated
"""

_ANY_SQL = SumQuery("SELECT at_us FROM v_sessions WHERE {window} LIMIT 1")

_CATEGORIES_SQL = """
SELECT category, COUNT(*) AS n
FROM v_sessions
WHERE simulated = 0 AND category IS NOT NULL
GROUP BY category
"""

MAX_CATEGORIES = 8
"""Maximum number of categories named in a message."""


def time_range(source: Source) -> tuple[datetime, datetime] | None:
    """Return the times of the first and last unsimulated sessions, if any."""
    columns = source.engine.columns(_TOTALS_SQL)
    for row, simulated in enumerate(columns["simulated"].tolist()):
        if not simulated:
            return _time(columns["first_us"][row]), _time(columns["last_us"][row])
    return None


def explain_empty(source: Source, window: Window) -> NothingToCount | None:
    """Explain an empty window, with a remedy; None if not empty."""
    if source.engine.columns(*_ANY_SQL.restrict(window))["at_us"].size:
        return None
    columns = source.engine.columns(_TOTALS_SQL)
    n = dict(zip(columns["simulated"].tolist(), columns["n"].tolist(), strict=True))
    n_real, simulated = int(n.get(0, 0)), int(n.get(1, 0))
    times = time_range(source)
    if times is not None:
        first, last = (f"{time:%Y-%m-%d}" for time in times)
        days = f"of {first}" if first == last else f"from {first} to {last}"
        range_text = f"there is 1, {days}" if n_real == 1 else f"there are {n_real:,}, {days}"
        problem = f"no session is {window}; {range_text}{_categories(source, window)}"
    elif simulated:
        simulated_text = (
            "the only session is" if simulated == 1 else f"all {simulated:,} sessions are"
        )
        problem = (
            f"{simulated_text} simulated, and simulated sessions never count; "
            "ask a question of real models, or import ballots"
        )
    else:
        problem = "there is no session to count yet; ask a question, or import ballots"
    return NothingToCount(f"{source.location}: {problem}")


def _categories(source: Source, window: Window) -> str:
    """List the existing categories, if the window has one."""
    if window.category is None:
        return ""
    columns = source.engine.columns(_CATEGORIES_SQL)
    counts = zip(columns["n"].tolist(), columns["category"].tolist(), strict=True)
    names = [name for _, name in sorted(counts, key=lambda pair: (-pair[0], pair[1]))]
    if not names:
        return ", without a category"
    more = f" and {len(names) - MAX_CATEGORIES:,} more" if len(names) > MAX_CATEGORIES else ""
    return f", of the categories {', '.join(map(repr, names[:MAX_CATEGORIES]))}{more}"


def _time(at_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=int(at_us))
