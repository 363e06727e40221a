"""Files out of the history and into it: ``witan export`` and ``import``."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import (
    BallotFileError,
    HistoryError,
    MissingExtra,
    NothingToCount,
    UnknownName,
    WitanError,
)
from witan.service.ballots import SECTION, BallotFormat
from witan.service.parameters import MOMENT
from witan.service.stored_sessions import WindowParameters
from witan.service.text import clean, count_noun, list_text
from witan.surfaces.cli.commands import (
    command,
    named_options,
    parameter_options,
    take_parameters,
    word_problem,
    write_remedy,
)
from witan.surfaces.cli.options import (
    PROBLEMS_SHOWN,
    ParsedType,
    Status,
    config_option,
    history_option,
    json_option,
    section,
    status_of,
)
from witan.surfaces.terminal import console, echo, is_terminal, say, style_line

if TYPE_CHECKING:
    from witan.core.scale import Scale
    from witan.files.ballots import LineProblem
    from witan.history import History, SessionImport, SessionSummary
    from witan.service.operations.imports import FileImport, FileOptions


LARGE = 2_000_000
"""Fewest bytes of a file whose reading shows progress."""

beside_type = click.Path(exists=True, dir_okay=False)

MOST_NAMED = 20
"""Most damaged sessions to name."""

LOCK_SECONDS = 3600.0
"""Longest wait of an import for other writers; waiting is safe."""

KINDS = ("sessions", "ballots", "battles", "promptfoo")

NOUNS = {
    "sessions": "session",
    "ballots": "ballot",
    "battles": "battle",
    "promptfoo": "result",
    "inspect": "sample",
}
"""Kind of an export → noun of its items."""

ENDINGS = ("", ".jsonl", ".ndjson", ".json", ".csv", ".parquet")
"""Endings of the files that can be written, compressed or not."""


@command(
    "import",
    "import votes.csv --category coding",
    "import battles.jsonl.gz conversations/",
    "import ballots.jsonl --answers answers.jsonl --questions questions.jsonl",
    "witan export --history old.sqlite | witan import -",
)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True)
)
@section(
    SECTION,
    parameter_options(BallotFormat),
    click.option(
        "--answers",
        multiple=True,
        type=beside_type,
        metavar="FILE.jsonl",
        help="File with answer texts (session, candidate, text); repeatable.",
    ),
    click.option(
        "--questions",
        multiple=True,
        type=beside_type,
        metavar="FILE.jsonl",
        help="File with question texts (session, text, category); repeatable.",
    ),
    click.option("--strict", is_flag=True, help="Reject a file with unreadable lines; exit 1."),
)
@section(
    "Sessions",
    click.option("--category", metavar="NAME", help="Category for sessions without one."),
    click.option(
        "--at",
        type=ParsedType(MOMENT),
        metavar="TIME",
        help="Time for sessions without one; by default the time of the import.",
    ),
    click.option("--prefix", default="", metavar="TEXT", help="Prefix for session names."),
)
@config_option
@history_option
@section("Output", json_option)
def import_command(files: tuple[str, ...], config: Path | None, **options: Any) -> None:
    """Import the sessions of FILE... into the history; - is standard input.

    Ballots in every format, battles, saved conversations and whole sessions are recognised by their
    content, compressed or not; a folder means the .json and .eval files in it. Each file is
    imported completely or not at all; importing it again changes nothing.
    """
    if files.count("-") > 1:
        raise click.UsageError("standard input, -, can be read only once")
    from witan.service.history_access import forget_expired, load_history_config
    from witan.service.operations.imports import FileOptions
    from witan.surfaces.cli.stored_sessions import open_history

    meaning = FileOptions(
        format=options["format"],
        columns=tuple((options["columns"] or {}).items()),
        scale=options["scale"],
        answers=options["answers"],
        questions=options["questions"],
        category=options["category"],
        at=options["at"],
        session_prefix=options["prefix"],
    )
    history_config = load_history_config(config, options["history"])
    with open_history(history_config, lock_seconds=LOCK_SECONDS) as history:
        importer = _Importer(history, meaning, strict=options["strict"], quiet=options["as_json"])
        try:
            for file in files:
                importer.take(file)
        except KeyboardInterrupt:
            echo(importer.broken_off(), err=True)
            raise click.exceptions.Exit(Status.INTERRUPTED) from None
        forget_expired(history)
        location = history.url
    if options["as_json"]:
        from witan.service.json_output import to_json

        echo(to_json({"history": location, "files": [tally.plain() for tally in importer.done]}))
    importer.close()


@dataclass(slots=True)
class _Tally:
    """Counts of a file, or of the files of a folder."""

    name: str
    files: int = 0
    sessions: int = 0
    already: int = 0
    ballots: int = 0
    by_people: int = 0
    before: int = 0
    refused: int = 0
    refusals: list[BallotFileError] = field(default_factory=list)
    problems: list["LineProblem"] = field(default_factory=list)
    scales: dict["Scale", None] = field(default_factory=dict)

    def add(self, result: "FileImport") -> None:
        self.files += 1
        self.before += result.before
        self.problems += result.problems
        self.scales |= dict.fromkeys(result.scales)
        if result.added is None:
            self.refused += 1
            return
        self.sessions += result.added.sessions
        self.already += result.added.already
        self.ballots += result.added.ballots
        self.by_people += result.added.by_people

    def sentence(self) -> str:
        """Describe what is new, and what is not."""
        if not self.sessions + self.already + self.ballots:
            return f"{self.name}: nothing imported"
        if not self.sessions + self.ballots:
            known = count_noun(self.already, "session")
            is_known = self.before == self.files
            how = f"imported before, with {known}" if is_known else f"{known} already stored"
            return f"{self.name}: nothing new; {how}"
        parts = [count_noun(self.sessions, "session"), _ballots(self.ballots, self.by_people)]
        if self.already:
            parts.append(f"{count_noun(self.already, 'session')} already stored")
        return f"{self.name}: {' · '.join(parts)}"

    def plain(self) -> dict[str, Any]:
        """Return the same for a program."""
        problems: list[BallotFileError | LineProblem] = [*self.refusals, *self.problems]
        return {
            "file": self.name,
            "sessions": self.sessions,
            "already": self.already,
            "ballots_by_models": self.ballots - self.by_people,
            "ballots_by_people": self.by_people,
            "refused": self.refused,
            "scales": [scale.sentence_with("--scale ") for scale in self.scales],
            "problems": [
                {
                    "file": each.path,
                    "line": each.line,
                    "field": getattr(each, "field", None),
                    "problem": "; ".join(filter(None, (each.problem, write_remedy(each.remedy)))),
                }
                for each in problems
            ],
        }


def _ballots(n: int, by_people: int) -> str:
    if by_people == n and n:
        return f"{count_noun(n, 'ballot')} by people"
    return count_noun(n, "ballot") + (f", {by_people:,} by people" if by_people else "")


class _Importer:
    def __init__(
        self, history: "History", options: "FileOptions", *, strict: bool, quiet: bool
    ) -> None:
        self.history, self.options, self.strict, self.quiet = history, options, strict, quiet
        self.done: list[_Tally] = []
        self.status = Status.ANSWERED
        self._n_shown = 0
        self._at = ""
        self._n_files = 0

    def take(self, name: str) -> None:
        """Import a file or folder; continue after an unreadable one."""
        from witan.files.imports import import_files
        from witan.service.operations.imports import join_logs

        tally = _Tally("standard input" if name == "-" else name)
        self._at = tally.name
        paths = self._call_and_report(tally, lambda: import_files(name)) or ()
        for logs in join_logs(paths):
            self._take(tally, logs)
        self.done.append(tally)
        if tally.files and not self.quiet:
            echo(clean(tally.sentence()))
        for scale in () if self.quiet else tally.scales:
            say(f"{tally.name}: {scale.sentence_with('--scale ')}")
        self._say_unread(tally)

    def broken_off(self) -> str:
        """Describe which files were imported before the interruption."""
        words = ["interrupted"]
        if self._n_files:
            words.append(f"{count_noun(self._n_files, 'file')} imported")
        if self._at:
            words.append(f"{clean(self._at)} is imported completely or not at all")
        return "; ".join([*words, "run the same command again for the rest"])

    def _take(self, tally: _Tally, paths: tuple[str, ...]) -> None:
        from witan.service.operations.imports import import_file

        self._at = tally.name if len(paths) > 1 or paths[0] == "-" else paths[0]
        with _spinner(paths[0]):
            report = self._call_and_report(
                tally,
                lambda: import_file(
                    self.history,
                    paths,
                    self.options,
                    strict=self.strict,
                    on_problem=self._note,
                    on_note=say,
                ),
            )
        if report is not None:
            tally.add(report)
        self._at = ""
        self._n_files += len(paths)

    def _call_and_report(self, tally: _Tally, call: Any) -> Any:
        """Call, and report file errors; history errors end the import."""
        try:
            return call()
        except (HistoryError, MissingExtra, UnknownName):
            raise
        except WitanError as error:
            echo(f"witan: {clean(word_problem(error))}", err=True)
            tally.refused += 1
            if isinstance(error, BallotFileError):
                tally.refusals.append(error)
            self.status = status_of(error)
            return None

    def _note(self, problem: "LineProblem") -> None:
        self._n_shown += 1
        if self._n_shown <= PROBLEMS_SHOWN:
            say(word_problem(problem))

    def _say_unread(self, tally: _Tally) -> None:
        """Report the number of unreadable lines and its consequence."""
        came = tally.sessions + tally.already + tally.ballots
        others = "; the others are imported" if came else ", and there are no others"
        nothing_text = "nothing is imported under --strict"
        outcome = f"; {nothing_text}" if self.strict else others
        beside = {*self.options.answers, *self.options.questions}
        # Problems of a folder are counted together, those of `--answers` and `--questions` per
        # file.
        left_out = [problem for problem in tally.problems if not problem.is_read]
        files = Counter(p.path if p.path in beside else tally.name for p in left_out)
        for name, n in files.items():
            unread_text = f"{count_noun(n, 'line')} of {clean(name)} could not be read"
            echo(f"{unread_text}{outcome}", err=True)
        n_odd = len(tally.problems) - len(left_out)
        if n_odd and self._n_shown > PROBLEMS_SHOWN and not self.strict:
            of = f"{count_noun(n_odd, 'line')} of {clean(tally.name)}"
            echo(f"{of} had values that were dropped or changed", err=True)
        if tally.problems and self.strict:
            if not files:
                echo(f"{clean(tally.name)}: {nothing_text}", err=True)
            self.status = self.status or Status.FAILED

    def close(self) -> None:
        """Report the sum of all files; set the exit status."""
        if len(self.done) > 1 and not self.quiet:
            counted = ("files", "before", "sessions", "already", "ballots", "by_people")
            sums = {name: sum(getattr(tally, name) for tally in self.done) for name in counted}
            echo(_Tally("in all", **sums).sentence())
        if self.status:
            raise click.exceptions.Exit(self.status)
        if not any(tally.sessions + tally.already for tally in self.done):
            names = [tally.name for tally in self.done]
            raise NothingToCount(f"there is no session in {list_text(names)}")


def _spinner(path: str) -> Any:
    """A progress indicator on a terminal while a large file is read."""
    if not is_terminal(err=True) or not _is_large(path):
        return nullcontext()
    return console().status(style_line(f"importing {Path(path).name}"))


def _is_large(path: str) -> bool:
    try:
        return path == "-" or Path(path).stat().st_size >= LARGE
    except OSError:
        return False


@command(
    "export",
    "export > sessions.jsonl",
    "export --since 30d -o ballots.csv",
    "export 20261121-1932 -o ballots.parquet",
    "export --lake lake/",
)
@click.argument("sessions", metavar="[ID]...", nargs=-1)
@section("Sessions", parameter_options(WindowParameters))
@section(
    "What to write",
    click.option(
        "--kind",
        type=click.Choice(KINDS),
        help="What to export; sessions by default, ballots if --format or the file name says so.",
    ),
    click.option("--format", "format_", metavar="NAME", help="Write ballots in this format."),
    click.option(
        "--all", "everything", is_flag=True, help="Include simulated sessions in all kinds."
    ),
)
@section(
    "Output",
    click.option(
        "-o",
        "--output",
        type=click.Path(allow_dash=True, dir_okay=False),
        metavar="PATH",
        help="Write to this file; standard output by default.",
    ),
    click.option(
        "--lake",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="Write the whole history to a lake: Parquet files by day.",
    ),
    click.option(
        "--inspect",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="Write judged sessions as Inspect logs, one per text name.",
    ),
)
@config_option
@history_option
@json_option
def export_command(sessions: tuple[str, ...], config: Path | None, **options: Any) -> int:
    """Write sessions as JSON Lines, or their ballots in any format.

    An ID is the name of a session, or a unique prefix of it; without one, all sessions of the
    window are written, the oldest first. The file is written completely or not at all. witan import
    reads it.
    """
    has_filter = any(options[name] is not None for name in ("since", "until", "category"))
    _check(options, has_names=bool(sessions), has_window=has_filter)
    from witan.service.history_access import load_history_config
    from witan.surfaces.cli.stored_sessions import open_history

    with open_history(load_history_config(config, options["history"]), reading=True) as history:
        if options["lake"] is not None:
            _write_lake(history, options)
            return Status.ANSWERED
        counts_of_nothing = Counter[str]()
        kind, write = _writer(options, counts_of_nothing)
        summaries = _find_sessions(history, sessions, options)
        takes_all = kind == "sessions" or options["everything"] or bool(sessions)
        chosen_sessions = [one for one in summaries if takes_all or not one.simulated]
        n_left_out = len(summaries) - len(chosen_sessions)
        if not chosen_sessions:
            raise NothingToCount(_describe_nothing(n_left_out, kind))
        damaged: list[str] = []
        whole = _read_whole(history, chosen_sessions, damaged)
        written = write(whole, _destination(options))
        where = history.url
    of_others = sum(one.relation in ("retried", "rejudged") for one in chosen_sessions)
    _report_counts(
        _ExportCounts(kind, written, n_left_out, counts_of_nothing, of_others, len(damaged)),
        options,
        where,
    )
    if damaged:
        names = clean(list_text(damaged, most=MOST_NAMED))
        echo(
            f"damaged, not exported: {count_noun(len(damaged), 'session')}: {names}",
            err=True,
        )
        return Status.FAILED
    return Status.ANSWERED


def _check(options: dict[str, Any], *, has_names: bool, has_window: bool) -> None:
    if has_names and has_window:
        raise click.UsageError("choose sessions by their IDs, or by --since, --until, --category")
    if options["lake"] is not None:
        others = ("kind", "format_", "output", "inspect")
        if (
            has_names
            or has_window
            or options["everything"]
            or any(options[name] for name in others)
        ):
            raise click.UsageError(
                "a lake holds the whole history; filter when reading it, such as with witan "
                "leaderboard --lake FOLDER --since 30d"
            )
        return
    if options["inspect"] is not None:
        if any(options[name] for name in ("kind", "format_", "output")):
            raise click.UsageError("--inspect only writes logs into its folder")
        return
    if options["format_"] is not None and options["kind"] not in (None, "ballots"):
        raise click.UsageError("--format is for ballots; the other kinds have one form each")
    output = options["output"] or "-"
    if options["format_"] is None and _without_packing(output).suffix not in ENDINGS:
        raise click.UsageError(
            f"{output} has an unknown suffix; use {', '.join(filter(None, ENDINGS))}, or choose "
            "with --format"
        )
    if options["as_json"] and _is_piped(options):
        raise click.UsageError(
            "the export goes to standard output; with --json, name a file: -o PATH"
        )


def _is_piped(options: dict[str, Any]) -> bool:
    return options["inspect"] is None and options["output"] in (None, "-")


def _destination(options: dict[str, Any]) -> str:
    """Return the file, or the folder of logs, to write to."""
    if options["inspect"] is not None:
        return str(options["inspect"])
    return "-" if _is_piped(options) else options["output"]


def _writer(
    options: dict[str, Any], empty_sessions: "Counter[str]"
) -> tuple[str, "Callable[[Iterator[SessionImport], str], int]"]:
    from witan.files import exports

    kind, format_ = options["kind"], options["format_"]
    if options["inspect"] is not None:
        kind = "inspect"
    elif kind is None:
        of_ballots = _without_packing(options["output"] or "-").suffix in (".csv", ".parquet")
        kind = "ballots" if format_ is not None or of_ballots else "sessions"
    if kind == "sessions":
        return kind, exports.write_sessions

    def on_skip(_: "SessionImport", reason: str) -> None:
        empty_sessions[reason] += 1

    if kind == "ballots":
        return kind, partial(exports.write_session_ballots, format=format_, on_skip=on_skip)
    if kind == "battles":
        return kind, partial(exports.write_battles, on_skip=on_skip)
    from witan.service.trust import verdict_sentence

    write = exports.write_inspect_logs if kind == "inspect" else exports.write_promptfoo_results
    return kind, partial(write, describe=verdict_sentence, on_skip=on_skip)


def _without_packing(output: str) -> Path:
    path = Path(output)
    return path.with_suffix("") if path.suffix in (".gz", ".zst") else path


def _find_sessions(
    history: "History", sessions: Sequence[str], options: dict[str, Any]
) -> "list[SessionSummary]":
    from witan.surfaces.cli.stored_sessions import whole_name

    if sessions:
        names = dict.fromkeys(whole_name(history, name) for name in sessions)
        result = [history.summary(name) for name in names]
    else:
        with named_options(WindowParameters):
            window = take_parameters(WindowParameters, {**options})
        result = history.find(since=window.since, until=window.until, category=window.category)
    return sorted(result, key=lambda one: (one.at, one.session))


def _read_whole(
    history: "History", summaries: "Sequence[SessionSummary]", damaged_names: list[str]
) -> "Iterator[SessionImport]":
    """Yield the sessions, whole; name unreadable ones in `damaged_names`."""
    for one in summaries:
        try:
            whole = history.export(one.session)
        except UnknownName:
            continue  # it was deleted meanwhile
        except HistoryError as error:
            if not error.is_damage:
                raise
            damaged_names.append(one.session)
            continue
        yield whole


def _describe_nothing(n_left_out: int, kind: str) -> str:
    if n_left_out:
        n = count_noun(n_left_out, "simulated session")
        return f"only {n} matched; use --all to export their {NOUNS[kind]}s"
    return "no matching session to export; witan sessions lists the history"


def _write_lake(history: "History", options: dict[str, Any]) -> None:
    from witan.analytics.lake import write_lake

    lake = options["lake"]
    lake_result = write_lake(history, lake)
    if options["as_json"]:
        from witan.service.json_output import to_json

        result = {"history": history.url, "lake": str(lake), "sessions": lake_result.sessions}
        echo(to_json({**result, "days": lake_result.days}))
    if not lake_result.sessions:
        where = history.database.location
        nothing = f"the history {where} has no sessions, and {lake} has none from it"
        raise NothingToCount(nothing)
    if options["as_json"]:
        return
    days = count_noun(lake_result.days, "day")
    echo(
        f"{count_noun(lake_result.sessions, 'session')} of {days} written to {clean(str(lake))}",
        err=True,
    )


@dataclass(frozen=True, slots=True)
class _ExportCounts:
    kind: str
    written: int
    of_scripts: int
    nothing: Mapping[str, int]
    of_others: int
    damaged: int

    def plain(self) -> dict[str, Any]:
        """Return the same for a program."""
        scripts = {"scripts": self.of_scripts} if self.of_scripts else {}
        damaged = {"damaged": self.damaged} if self.damaged else {}
        left_out = scripts | dict(self.nothing) | damaged
        return {"kind": self.kind, "written": self.written, "left_out": left_out}


def _report_counts(counts: _ExportCounts, options: dict[str, Any], destination: str) -> None:
    if counts.of_scripts:
        n = count_noun(counts.of_scripts, "simulated session")
        echo(f"{n} left out; --all includes them", err=True)
    if counts.nothing:
        n = count_noun(sum(counts.nothing.values()), "session")
        reasons = list_text(
            [f"{n_sessions:,} with {instead}" for instead, n_sessions in counts.nothing.items()]
        )
        echo(f"{n} without a {NOUNS[counts.kind]}: {reasons}", err=True)
    if counts.of_others and counts.kind != "sessions":
        n = count_noun(counts.of_others, "session")
        of = f"{n} retried or rejudged {'another' if counts.of_others == 1 else 'others'}"
        echo(
            f"{of}; {NOUNS[counts.kind]}s do not record this, so each counts separately after an "
            "import",
            err=True,
        )
    if options["as_json"]:
        from witan.service.json_output import to_json

        echo(to_json({"history": destination, "file": _destination(options), **counts.plain()}))
        return
    name = "standard output" if _is_piped(options) else clean(_destination(options))
    echo(f"{count_noun(counts.written, NOUNS[counts.kind])} written to {name}", err=True)
