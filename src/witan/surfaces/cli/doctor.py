"""``witan doctor``: check the configuration, the seats, the history and the server."""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.service.text import UNKNOWN, Page, counted, listed
from witan.surfaces.cli.commands import command
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.options import config_option, history_option, json_option
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.deliberation.ports import Price
    from witan.service.doctor import (
        Diagnosis,
        HistoryFinding,
        ProfileFinding,
        SeatFinding,
        ServeFinding,
    )


@command(
    "doctor",
    "doctor",
    "doctor --offline",
    "doctor --config ./witan.toml --json",
)
@config_option
@history_option
@json_option
@click.option("--offline", is_flag=True, help="Ask no endpoint and look for no server.")
@click.option(
    "--settings", "with_defaults", is_flag=True, help="List every setting, defaults included."
)
def doctor_command(
    config: Path | None, history: str | None, *, as_json: bool, offline: bool, with_defaults: bool
) -> int:
    """Say whether a council could sit, and what stops it.

    Below that stand every seat with its key and endpoint, servers, history, server and profiles,
    and every setting that is not a default, with its source. Keys and tokens are never shown, only
    the variables that hold them. Exit status: 0 if a council could sit, 2 if not,
    7 not written to standard output.
    """
    import anyio

    from witan.service.doctor import diagnose
    from witan.service.history_access import configured

    read = configured(config, history)
    result = anyio.run(partial(diagnose, read, os.environ, offline=offline))
    if as_json:
        from witan.service.json_output import to_json

        echo(to_json(_object(result)))
    else:
        page = Page.of(sys.stdout)
        echo("\n".join(_text(page, result, with_defaults=with_defaults)))
    return Status.ANSWERED if result.can_sit else Status.MISUSED


def _text(page: Page, diagnosis: "Diagnosis", *, with_defaults: bool) -> Iterator[str]:
    """Yield the verdict first, then seats, servers, history and settings, and the versions."""
    yield from _verdict(page, diagnosis)
    for title, seats in (
        ("Members", diagnosis.members),
        ("Jury", diagnosis.jury),
        ("Chairmen", diagnosis.chairmen),
    ):
        if seats:
            yield ""
            yield from _seats(page, title, seats)
    if diagnosis.servers:
        yield ""
        yield page.sentence("Servers on this machine", "bold")
    for server in diagnosis.servers:
        models = listed(server.models) or "no model"
        yield page.sentence(f"{server.kind} at {server.url}: {models}", hang=2)
    yield ""
    yield from _history(page, diagnosis.history)
    yield ""
    yield from _serve(page, diagnosis.serve)
    for profile in diagnosis.profiles:
        yield from _profile(page, profile)
    yield ""
    yield from _settings(page, diagnosis, with_defaults=with_defaults)
    yield ""
    yield page.sentence(
        ", ".join(f"{name} {held}" for name, held in diagnosis.versions.items()), "dim"
    )


def _verdict(page: Page, diagnosis: "Diagnosis") -> Iterator[str]:
    """Write the answer, the problems that stop a council, and notes."""
    if diagnosis.can_sit:
        names = listed([seat.name for seat in diagnosis.members])
        jury = (
            f", judged by {listed([seat.name for seat in diagnosis.jury])}"
            if diagnosis.jury
            else ""
        )
        yield page.sentence(f"A council could sit: {names}{jury}.", "bold")
    else:
        yield page.sentence("No council could sit:", "bold")
    for problem in diagnosis.problems:
        yield page.sentence(f"  {problem}", "warning", hang=4)
    for note in diagnosis.notes:
        yield page.sentence(f"{note[0].upper()}{note[1:]}.", hang=2)


def _settings(page: Page, diagnosis: "Diagnosis", *, with_defaults: bool) -> Iterator[str]:
    """Yield the settings that a file, a variable or an option gave; with defaults all of them."""
    from witan.surfaces.report.document import Column
    from witan.surfaces.report.text import table

    files = listed(diagnosis.files) or "none"
    yield page.sentence(f"Configuration files read: {files}", "bold")
    columns = [
        Column("setting", "left"),
        Column("value", "left", fit="middle"),
        Column("from", "left", fit="middle"),
    ]
    settings = [line for line in diagnosis.settings if line.where != "default"]
    lines = diagnosis.settings if with_defaults else settings
    rows = [[line.key, _write_value(line.value), line.where] for line in lines]
    bold = [number for number, line in enumerate(lines) if with_defaults and line in settings]
    if rows:
        yield from table(page, columns, rows, bold=bold)
    if not with_defaults:
        n_defaults = counted(len(diagnosis.settings) - len(settings), "setting")
        yield page.sentence(f"{n_defaults} at their defaults: list them with --settings.", "dim")


def _seats(page: Page, title: str, seats: Sequence["SeatFinding"]) -> Iterator[str]:
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
    rows = [[seat.name, seat.seat, _key(seat), _price(seat.price), seat.state] for seat in seats]
    yield from table(page, columns, rows)
    for seat in seats:
        # In a column of its own, the one sentence that helps would be cut to fit.
        yield page.sentence(f"{seat.name}: {seat.finding}", hang=2)
        if seat.url is not None and seat.url_from != "default":
            priced = "; the provider's prices apply there too" if _listed(seat) else ""
            yield page.sentence(f"  called at {seat.url} (from {seat.url_from}){priced}", hang=4)


def _listed(seat: "SeatFinding") -> bool:
    """Check that a seat called elsewhere has a price of its provider's."""
    from witan.models.providers import PROVIDERS

    return seat.price is not None and seat.variable is not None and seat.provider in PROVIDERS


def _history(page: Page, finding: "HistoryFinding") -> Iterator[str]:
    """Yield the place, the kind and the contents of the history."""
    yield page.sentence(f"History at {finding.place}", "bold", hang=2)
    if not finding.enabled:
        yield page.sentence("Sessions are not recorded: history.enabled is false.", hang=2)
    if finding.problem is not None:
        opened = finding.found is not None
        cannot = "It can only be read." if opened else "It cannot be opened."
        yield page.sentence(cannot, "warning")
        if not finding.enabled:
            yield page.sentence(finding.problem, hang=2)
    elif finding.note is not None:
        yield page.sentence(f"{finding.note[0].upper()}{finding.note[1:]}.", hang=2)
    if (held := finding.found) is not None:
        journal = "" if held.kind == "PostgreSQL" else f", journal {held.journal}"
        migrated = f"{held.migrated_at:%Y-%m-%d} by Witan {held.migrated_by}"
        yield page.sentence(
            f"{held.kind}{journal}, version {held.version} since {migrated}, {_size(held.n_bytes)}",
            hang=2,
        )
        parts = [counted(held.n_sessions, "session")]
        parts += [f"{held.n_simulated:,} simulated"] if held.n_simulated else []
        parts += [f"{held.n_interrupted:,} interrupted"] if held.n_interrupted else []
        yield page.sentence(", ".join(parts), hang=2)


def _serve(page: Page, finding: "ServeFinding") -> Iterator[str]:
    """Yield the address and the tokens of the server."""
    yield page.sentence(f"Server at {finding.url or UNKNOWN}", "bold", hang=2)
    for token in finding.tokens:
        held = token.problem or (
            f"in {token.variable}" if token.variable else "known by its digest"
        )
        yield page.sentence(f"token {token.name}: {held}", hang=2)
    if not finding.tokens and not finding.problems:
        yield page.sentence("Whoever works on this machine may ask; there is no token.", hang=2)
    for problem in finding.problems:
        yield page.sentence(f"It would not start: {problem}.", "warning", hang=2)


def _profile(page: Page, finding: "ProfileFinding") -> Iterator[str]:
    """Yield the members of a profile, or the reason why it cannot be taken."""
    yield ""
    about = f": {finding.about}" if finding.about else ""
    yield page.sentence(f"Profile {finding.name}{about}", "bold", hang=2)
    if finding.problem is None:
        jury = f", judged by {listed(finding.jury)}" if finding.jury else ""
        yield page.sentence(f"{listed(finding.members) or 'whoever is found'}{jury}", hang=2)
    else:
        yield page.sentence(f"It cannot be taken: {finding.problem}.", "warning", hang=2)


def _size(n_bytes: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes} B"


def _key(seat: "SeatFinding") -> str:
    if seat.has_key is None:
        return "none needed"
    return f"{seat.variable} {'present' if seat.has_key else 'missing'}"


def _price(price: "Price | None") -> str:
    if price is None:
        return "unknown"
    return f"{price.input_usd:g} / {price.output_usd:g}"


def _write_value(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(value) or UNKNOWN
    return f"{value:g}" if isinstance(value, float) else str(value)


def _object(diagnosis: "Diagnosis") -> dict[str, Any]:
    return {
        "can_sit": diagnosis.can_sit,
        "problems": diagnosis.problems,
        "notes": diagnosis.notes,
        "files": diagnosis.files,
        "settings": diagnosis.settings,
        "members": diagnosis.members,
        "jury": diagnosis.jury,
        "chairmen": diagnosis.chairmen,
        "servers": diagnosis.servers,
        "history": diagnosis.history,
        "serve": diagnosis.serve,
        "profiles": diagnosis.profiles,
        "versions": diagnosis.versions,
    }
