"""``witan export``: sessions of the history as files, or as a lake."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import HistoryError, NothingToCount, UnknownName
from witan.service.stored_sessions import WindowParameters
from witan.service.text import clean, count_noun, list_text
from witan.surfaces.cli.commands import command, named_options, parameter_options, take_parameters
from witan.surfaces.cli.options import (
    Status,
    config_option,
    history_option,
    json_option,
    section,
)
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.history import History, SessionImport, SessionSummary


MOST_NAMED = 20
"""Damaged sessions that are named one by one."""

KINDS = ("sessions", "ballots", "battles", "promptfoo")

NOUNS = {
    "sessions": "session",
    "ballots": "ballot",
    "battles": "battle",
    "promptfoo": "result",
    "inspect": "sample",
}
"""Kind of an export → what it has many of."""


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
        help="Write the whole history into a lake: Parquet files by day.",
    ),
    click.option(
        "--inspect",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="Write judged sessions into logs of Inspect, one per name of a text.",
    ),
)
@config_option
@history_option
@json_option
def export_command(sessions: tuple[str, ...], config: Path | None, **options: Any) -> int:
    """Write sessions as JSON Lines, or their ballots in any format.

    An ID is the name of a session, or a beginning of it that no other has; without any, all that
    the window holds are written, the oldest first. The file changes as a whole or not at all. What
    was written whole comes back with witan import.
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
        chosen_sessions, left_out = _pick(
            summaries, kind, everything=options["everything"] or bool(sessions)
        )
        if not chosen_sessions:
            raise NothingToCount(_describe_nothing(left_out, kind))
        damaged: list[str] = []
        whole = _read_whole(history, chosen_sessions, damaged)
        written = write(whole, _destination(options))
        where = history.url
    of_others = sum(one.relation in ("retried", "rejudged") for one in chosen_sessions)
    _report_counts(
        _ExportCounts(kind, written, len(left_out), counts_of_nothing, of_others, len(damaged)),
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
    """Refuse what does not go together."""
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
                "a lake holds the whole history; choose when it is read, such as by "
                "witan leaderboard --lake FOLDER --since 30d"
            )
        return
    if options["inspect"] is not None:
        if any(options[name] for name in ("kind", "format_", "output")):
            raise click.UsageError("--inspect writes logs into its folder, and nothing else")
        return
    if options["format_"] is not None and options["kind"] not in (None, "ballots"):
        raise click.UsageError("--format is for ballots; the other kinds have one form each")
    output = options["output"] or "-"
    if options["format_"] is None and _without_packing(output).suffix not in ENDINGS:
        raise click.UsageError(
            f"{output}: no kind of file ends so; name it {', '.join(filter(None, ENDINGS))}, or "
            "choose with --format"
        )
    if options["as_json"] and _is_piped(options):
        raise click.UsageError("standard output holds the export; with --json name a file: -o PATH")


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
    """Choose the kind of export and its counting writer."""
    from witan.files.exports import write_battles, write_session_ballots, write_sessions

    kind, format_ = options["kind"], options["format_"]
    if options["inspect"] is not None:
        kind = "inspect"
    elif kind is None:
        of_ballots = _without_packing(options["output"] or "-").suffix in (".csv", ".parquet")
        kind = "ballots" if format_ is not None or of_ballots else "sessions"
    if kind == "sessions":
        return kind, write_sessions

    def on_skip(_: "SessionImport", reason: str) -> None:
        empty_sessions[reason] += 1

    if kind == "ballots":
        return kind, partial(write_session_ballots, format=format_, on_skip=on_skip)
    if kind == "battles":
        return kind, partial(write_battles, on_skip=on_skip)
    from witan.files.evaluation_logs import write_inspect_logs, write_promptfoo_results
    from witan.service.trust import verdict_sentence

    write = write_inspect_logs if kind == "inspect" else write_promptfoo_results
    return kind, partial(write, describe=verdict_sentence, on_skip=on_skip)


ENDINGS = ("", ".jsonl", ".ndjson", ".json", ".csv", ".parquet")
"""Endings of the files that can be written, packed or not."""


def _without_packing(output: str) -> Path:
    """The name of a file without the ending of its packing."""
    path = Path(output)
    return path.with_suffix("") if path.suffix in (".gz", ".zst") else path


def _find_sessions(
    history: "History", sessions: Sequence[str], options: dict[str, Any]
) -> "list[SessionSummary]":
    """Return the sessions that are meant, the oldest first."""
    from witan.surfaces.cli.stored_sessions import whole_name

    if sessions:
        names = dict.fromkeys(whole_name(history, name) for name in sessions)
        result = [history.summary(name) for name in names]
    else:
        with named_options(WindowParameters):
            window = take_parameters(WindowParameters, {**options})
        result = history.find(since=window.since, until=window.until, category=window.category)
    return sorted(result, key=lambda one: (one.at, one.session))


def _pick(
    summaries: "Sequence[SessionSummary]", kind: str, *, everything: bool
) -> "tuple[list[SessionSummary], list[SessionSummary]]":
    """Split sessions into those to write, and simulated ones."""
    if kind == "sessions" or everything:
        return list(summaries), []
    return [one for one in summaries if not one.simulated], [
        one for one in summaries if one.simulated
    ]


def _read_whole(
    history: "History", summaries: "Sequence[SessionSummary]", damaged_names: list[str]
) -> "Iterator[SessionImport]":
    """Yield the sessions, whole; name unreadable ones in `damaged_names`."""
    for one in summaries:
        try:
            whole = history.export(one.session)
        except UnknownName:
            continue  # it was forgotten meanwhile
        except HistoryError as error:
            if not error.problem.startswith("is damaged"):
                raise
            damaged_names.append(one.session)
            continue
        yield whole


def _describe_nothing(left_out: "Sequence[SessionSummary]", kind: str) -> str:
    if left_out:
        n = count_noun(len(left_out), "simulated session")
        return f"there is nothing but {n}; use --all to export their {NOUNS[kind]}s"
    return "no matching session to write; witan sessions lists what there is"


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
    """Counts of what was written and what was left out."""

    kind: str
    written: int
    of_scripts: int
    nothing: Mapping[str, int]
    of_others: int
    damaged: int = 0

    def plain(self) -> dict[str, Any]:
        """Return the same for a program."""
        scripts = {"scripts": self.of_scripts} if self.of_scripts else {}
        damaged = {"damaged": self.damaged} if self.damaged else {}
        left_out = scripts | dict(self.nothing) | damaged
        return {"kind": self.kind, "written": self.written, "left_out": left_out}


def _report_counts(counts: _ExportCounts, options: dict[str, Any], destination: str) -> None:
    if counts.of_scripts:
        n = count_noun(counts.of_scripts, "simulated session")
        echo(f"{n} left out; --all writes them, too", err=True)
    if counts.nothing:
        n = count_noun(sum(counts.nothing.values()), "session")
        reasons = list_text(
            [f"{n_sessions:,} with {instead}" for instead, n_sessions in counts.nothing.items()]
        )
        echo(f"{n} gave no {NOUNS[counts.kind]}: {reasons}", err=True)
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
