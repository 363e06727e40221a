"""``witan doctor``: check the configuration, the seats, the history and the server."""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.service.text import UNKNOWN, Page, count_noun, full_sentence, list_text
from witan.surfaces.cli.commands import command, print_result
from witan.surfaces.cli.options import Status, config_option, history_option, json_option
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.service.doctor import (
        Diagnosis,
        HistoryFinding,
        ProfileFinding,
        SeatFinding,
        ServeFinding,
    )


@command("doctor", "doctor", "doctor --offline", "doctor --config ./witan.toml --json")
@config_option
@history_option
@json_option
@click.option("--offline", is_flag=True, help="Do not contact endpoints or look for local servers.")
def doctor_command(
    config: Path | None, history: str | None, *, as_json: bool, offline: bool
) -> int:
    """Check whether the council can run, and what stops it.

    Below that stand every seat with its key and endpoint, servers, history, server and profiles,
    and every setting that is not a default, with its source. Keys and tokens are never shown, only
    the variables that hold them. Exit status: 0 if a council could sit, 2 if not,
    7 not written to standard output.
    """
    import anyio

    from witan.service.doctor import diagnose
    from witan.service.history_access import load_history_config

    history_config = load_history_config(config, history)
    result = anyio.run(partial(diagnose, history_config, os.environ, offline=offline))
    if as_json:
        print_result(result, as_json=True)
    else:
        echo("\n".join(_write(Page.of(sys.stdout), result)))
    return Status.ANSWERED if result.can_sit else Status.MISUSED


def _write(page: Page, diagnosis: "Diagnosis") -> Iterator[str]:
    """Yield verdict, seats, servers, history, settings and versions, in order."""
    yield page.sentence(_verdict(diagnosis), "bold")
    for problem in diagnosis.problems:
        yield page.sentence(f"  {problem}", "warning", hang=4)
    for note in diagnosis.notes:
        yield page.sentence(full_sentence(note), hang=2)
    for title, seats in (
        ("Members", diagnosis.members),
        ("Jury", diagnosis.jury),
        ("Chairmen", diagnosis.chairmen),
    ):
        if seats:
            yield ""
            yield from write_seats(page, title, seats)
    if diagnosis.servers:
        yield ""
        yield page.sentence("Servers on this machine", "bold")
    for server in diagnosis.servers:
        models = list_text(server.models) or "no model"
        yield page.sentence(f"{server.kind} at {server.url}: {models}", hang=2)
    yield ""
    yield page.sentence(f"History at {diagnosis.history.place}", "bold", hang=2)
    for line in _history(diagnosis.history):
        yield page.sentence(line, "warning" if line.startswith("It can") else "plain", hang=2)
    yield ""
    yield page.sentence(f"Server at {diagnosis.serve.url or UNKNOWN}", "bold", hang=2)
    for line in _serve(diagnosis.serve):
        yield page.sentence(line, "warning" if line.startswith("It would") else "plain", hang=2)
    for profile in diagnosis.profiles:
        yield from _profile(page, profile)
    yield ""
    yield from _settings(page, diagnosis)
    yield ""
    versions = (f"{name} {number}" for name, number in diagnosis.versions.items())
    yield page.sentence(", ".join(versions), "dim")


def _verdict(diagnosis: "Diagnosis") -> str:
    if not diagnosis.can_sit:
        return "The council is not ready:"
    names = ([seat.name for seat in seats] for seats in (diagnosis.members, diagnosis.jury))
    return f"The council is ready: {_council(*names)}."


def _council(members: Sequence[str], jury: Sequence[str]) -> str:
    judges = f", judged by {list_text(jury)}" if jury else ""
    return f"{list_text(members) or 'whoever is found'}{judges}"


def _profile(page: Page, profile: "ProfileFinding") -> Iterator[str]:
    about = f": {profile.about}" if profile.about else ""
    yield ""
    yield page.sentence(f"Profile {profile.name}{about}", "bold", hang=2)
    if profile.problem is None:
        yield page.sentence(_council(profile.members, profile.jury), hang=2)
    else:
        yield page.sentence(f"Not usable: {profile.problem}.", "warning", hang=2)


def _settings(page: Page, diagnosis: "Diagnosis") -> Iterator[str]:
    """Write the settings that a file, a variable or an option gave."""
    from witan.surfaces.report.document import Column
    from witan.surfaces.report.text import table

    files = list_text(diagnosis.files) or "none"
    yield page.sentence(f"Configuration files read: {files}", "bold")
    columns = [
        Column("setting", "left"),
        *(Column(c, "left", fit="middle") for c in ("value", "from")),
    ]
    if rows := [[each.key, _write_value(each.value), each.where] for each in diagnosis.settings]:
        yield from table(page, columns, rows)


def write_seats(page: Page, title: str, seats: "Sequence[SeatFinding]") -> Iterator[str]:
    """Write seats as a table, then the findings about each."""
    from witan.models.providers import PROVIDERS
    from witan.surfaces.report.document import Column
    from witan.surfaces.report.text import table

    yield page.sentence(title, "bold")
    columns = [
        Column("name", "left", fit="middle"),
        Column("seat", "left", keep=60, fit="middle"),
        Column("key", "left", keep=80),
        Column("$ in/out per million", "left", keep=40),
        Column("state", "left"),
    ]
    yield from table(page, columns, [*map(_seat_row, seats)])
    for seat in seats:
        # In a column of its own, the one sentence that helps would be cut to fit.
        yield page.sentence(f"{seat.name}: {seat.finding}", hang=2)
        if seat.url is not None and seat.url_from != "default":
            is_listed = seat.price and seat.variable and seat.provider in PROVIDERS
            priced = "; the provider's prices apply there too" if is_listed else ""
            yield page.sentence(f"  called at {seat.url} (from {seat.url_from}){priced}", hang=4)


def _history(finding: "HistoryFinding") -> Iterator[str]:
    """Yield what was found out about the history, a sentence each."""
    if not finding.enabled:
        yield "Sessions are not recorded: history.enabled is false."
    if finding.problem is not None:
        opened = finding.found is not None
        yield "It can only be read." if opened else "It cannot be opened."
        if not finding.enabled:
            yield finding.problem
    elif finding.note is not None:
        yield full_sentence(finding.note)
    if (history := finding.found) is not None:
        journal = "" if history.kind == "PostgreSQL" else f", journal {history.journal}"
        migration_text = f"{history.migrated_at:%Y-%m-%d} by Witan {history.migrated_by}"
        size = f"{history.n_bytes / 1e6:,.1f} MB"
        yield f"{history.kind}{journal}, version {history.version} since {migration_text}, {size}"
        parts = [count_noun(history.n_sessions, "session")]
        parts += [f"{history.n_simulated:,} simulated"] if history.n_simulated else []
        parts += [f"{history.n_interrupted:,} interrupted"] if history.n_interrupted else []
        yield ", ".join(parts)


def _serve(finding: "ServeFinding") -> Iterator[str]:
    """Yield who may ask the server, and why it would not start."""
    for token in finding.tokens:
        place = f"in {token.variable}" if token.variable else "known by its digest"
        yield f"token {token.name}: {token.problem or place}"
    if not finding.tokens and not finding.problems:
        yield "Whoever works on this machine may ask; there is no token."
    for problem in finding.problems:
        yield f"The server would not start: {problem}."


def _seat_row(seat: "SeatFinding") -> list[str]:
    key, price = "none needed", "unknown"
    if seat.has_key is not None:
        key = f"{seat.variable} {'present' if seat.has_key else 'missing'}"
    if seat.price is not None:
        price = f"{seat.price.input_usd:g} / {seat.price.output_usd:g}"
    return [seat.name, seat.seat, key, price, seat.state]


def _write_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or UNKNOWN
    return f"{value:g}" if isinstance(value, float) else str(value)
