"""``witan init`` writes a configuration; ``witan doctor`` checks it and more."""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from witan.core.display import dollars
from witan.errors import NoCouncil, WitanError
from witan.service.text import UNKNOWN, Page, clean, count_noun, full_sentence, list_text
from witan.surfaces.cli.commands import command, print_result
from witan.surfaces.cli.options import Number, Status, config_option, history_option, json_option
from witan.surfaces.terminal import console, echo, is_terminal, measure_page, say, style_line

if TYPE_CHECKING:
    from witan.deliberation.plan import Lengths
    from witan.models.seats import SeatSpec
    from witan.service.council_discovery import Draft
    from witan.service.doctor import (
        Diagnosis,
        HistoryFinding,
        ProfileFinding,
        SeatFinding,
        ServeFinding,
    )

T = TypeVar("T")

BETWEEN_UPDATES = 100
"""Sessions read between two updates of the progress."""

OFFERED = 8
"""Models of one provider to choose from."""


@command("doctor", "doctor", "doctor --offline", "doctor --config ./witan.toml --json")
@config_option
@history_option
@json_option
@click.option("--offline", is_flag=True, help="Do not contact endpoints or look for local servers.")
def doctor_command(
    config: Path | None, history: str | None, *, as_json: bool, offline: bool
) -> int:
    """Check whether the council can run, and what would stop it.

    Then list every seat with its key and endpoint, servers, history, server and profiles, and every
    setting that is not a default, with its source. Keys and tokens are never shown, only the
    variables that hold them. Exit status: 0 the council can run, 2 it cannot, 7 not written to
    standard output.
    """
    import anyio

    from witan.service.doctor import diagnose, diagnose_history
    from witan.service.history_access import load_history_config

    history_config = load_history_config(config, history)
    with _progress() as on_session:
        # Outside the event loop, so that Ctrl-C ends it at once.
        finding = diagnose_history(history_config, offline=offline, on_session=on_session)
        check = partial(diagnose, offline=offline)
        result = anyio.run(check, history_config, os.environ, finding)
    if as_json:
        print_result(result, as_json=True)
    else:
        echo("\n".join(_write(measure_page(), result)))
    return Status.ANSWERED if result.can_sit else Status.MISUSED


@contextmanager
def _progress() -> Iterator[Callable[[int], None] | None]:
    """Show that the check is under way, on a terminal only."""
    if not is_terminal(err=True):
        yield None
        return
    with console().status("checking") as status:

        def show(n_sessions: int) -> None:
            if n_sessions % BETWEEN_UPDATES == 0:
                read = count_noun(n_sessions, "session")
                status.update(style_line(f"checking the history: {read} read"))

        yield show


def _write(page: Page, diagnosis: "Diagnosis") -> Iterator[str]:
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
        style = "warning" if line.startswith("The server would") else "plain"
        yield page.sentence(line, style, hang=2)
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
    seats = (diagnosis.members, diagnosis.jury)
    names = ([seat.name for seat in each if seat.state != "unable"] for each in seats)
    unable = [seat.name for each in seats for seat in each if seat.state == "unable"]
    without = f" without {list_text(unable)}" if unable else ""
    return f"The council is ready{without}: {_council(*names)}."


def _council(members: Sequence[str], jury: Sequence[str]) -> str:
    judges = f", judged by {list_text(jury)}" if jury else ""
    return f"{list_text(members) or 'the models found'}{judges}"


def _profile(page: Page, profile: "ProfileFinding") -> Iterator[str]:
    about = f": {profile.about}" if profile.about else ""
    yield ""
    yield page.sentence(f"Profile {profile.name}{about}", "bold", hang=2)
    if profile.problem is None:
        yield page.sentence(_council(profile.members, profile.jury), hang=2)
    else:
        yield page.sentence(f"Not usable: {profile.problem}.", "warning", hang=2)


def _settings(page: Page, diagnosis: "Diagnosis") -> Iterator[str]:
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
        # A table cell would cut the sentence.
        yield page.sentence(f"{seat.name}: {seat.finding}", hang=2)
        if seat.url is not None and seat.url_from != "default":
            is_listed = seat.price and seat.variable and seat.provider in PROVIDERS
            priced = "; the provider's prices apply there too" if is_listed else ""
            yield page.sentence(f"  called at {seat.url} (from {seat.url_from}){priced}", hang=4)


def _history(finding: "HistoryFinding") -> Iterator[str]:
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
    for token in finding.tokens:
        place = f"in {token.variable}" if token.variable else "known by its digest"
        yield f"token {token.name}: {token.problem or place}"
    if not finding.tokens and not finding.problems:
        yield "Anyone on this machine may use the server; no token is set."
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


@command(
    "init",
    "init",
    "init --yes --max-cost 0.50",
    "init --member openai:gpt-5 --member anthropic:claude-opus-4 --member ollama:qwen3 --user",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.toml",
    help="Write this file instead of witan.toml in the current directory.",
)
@click.option("--user", is_flag=True, help="Write your own configuration, which may hold prices.")
@click.option(
    "--member", "members", multiple=True, metavar="SEAT", help="Member to seat; skips the question."
)
@click.option(
    "--max-cost",
    type=Number(min=0),
    metavar="NUMBER",
    help="Cost ceiling per question, in US dollars.",
)
@click.option("--yes", is_flag=True, help="Use all defaults without asking.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init_command(output: Path | None, user: bool, **options: Any) -> int:
    """Ask which keys, which members and which ceiling, then write witan.toml.

    Keys are found in the environment and never stored. Models and prices are those that each
    provider lists today. Nothing is written before the last answer. Exit status: 0 written, 2 not.
    """
    from witan.files.session_files import write_whole
    from witan.service.config.configuration import FILE_NAME, user_file
    from witan.service.council_discovery import draft

    if user and output is not None:
        raise click.UsageError("--user and --output name two files; give one of them")
    path = user_file(os.environ) if user else output or Path(FILE_NAME)
    asking = _Dialogue(silent=options["yes"])
    _check_overwriting(path, asking, force=options["force"])
    seats = _with_prices(_parse_members(options["members"]) or _choose_providers(asking))
    ceiling = options["max_cost"]
    draft_with = partial(draft, seats, os.environ, is_trusted=user, lengths=_lengths())
    draft_config = draft_with(ceiling=ceiling)
    if ceiling is None and draft_config.ceiling is not None:
        draft_config = draft_with(ceiling=_ask_ceiling(draft_config, asking))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(draft_config.text.encode(), path)
    for note in draft_config.notes:
        say(note)
    echo(f"wrote {clean(str(path))}; witan doctor checks it, witan ask uses it", err=True)
    return Status.ANSWERED


def _lengths() -> "Lengths":
    from witan.deliberation.plan import TYPICAL
    from witan.service.history_access import load_history_config
    from witan.surfaces.cli.stored_sessions import open_history_if_any

    # Neither the configuration nor the history has to be readable.
    with (
        suppress(WitanError, ValueError),
        open_history_if_any(load_history_config(None)) as history,
    ):
        return TYPICAL if history is None else history.lengths()
    return TYPICAL


class _Dialogue:
    """Asks on standard error, and reads a line from standard input."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent

    def ask(self, question: str, default: str, read: Callable[[str], T]) -> T:
        """Read the answer, or the default for an empty line; on a terminal until it is valid."""
        while True:
            answer = self._answer(question, default)
            try:
                return read(answer)
            except (click.UsageError, WitanError) as error:
                if self._silent or not sys.stdin.isatty():
                    raise
                say(error.message if isinstance(error, click.UsageError) else str(error))

    def _answer(self, question: str, default: str) -> str:
        if self._silent:
            return default
        echo(f"{clean(question)} [{clean(default)}] ", err=True, nl=False)
        line = sys.stdin.readline()
        if not line:
            echo("", err=True)
            problem = "the input ended before the last question; use --yes for the defaults"
            raise click.UsageError(problem)
        return line.strip() or default

    def say(self, text: str) -> None:
        if not self._silent:
            say(text)


def _check_overwriting(path: Path, dialogue: _Dialogue, *, force: bool) -> None:
    if force or not (path.exists() or path.is_symlink()):
        return
    if dialogue.ask(f"{path} exists; overwrite it? (y/n)", "n", str.lower) not in ("y", "yes"):
        raise click.UsageError(f"{path} exists and was not changed; --force overwrites it")


def _parse_members(members: tuple[str, ...]) -> "tuple[SeatSpec, ...]":
    from witan.models.seats import name_seats, parse_seat

    if len(members) == 1:
        raise click.UsageError("a council needs at least two members; give --member once for each")
    specs = [parse_seat(m, origin="the command line", key="--member") for m in members]
    return name_seats(specs)


def _with_prices(seats: "tuple[SeatSpec, ...]") -> "tuple[SeatSpec, ...]":
    """Return the seats with prices that only their providers' lists have."""
    import anyio

    from witan.service.council_discovery import price_by_lists

    return anyio.run(partial(price_by_lists, seats, os.environ))


def _choose_providers(dialogue: _Dialogue) -> "tuple[SeatSpec, ...]":
    import anyio

    from witan.models.providers import PROVIDERS, find_key
    from witan.models.seats import name_seats
    from witan.service.council_discovery import (
        MIN_SEATS,
        NOTHING_HERE,
        deal,
        find_sources,
        sort_by_known_price,
    )

    keys = {
        name: variable
        for name, p in PROVIDERS.items()
        if p.listing(None) is not None
        and (variable := (find_key(p.variables, os.environ) or ("",))[0])
    }
    provider_names = list(keys)
    if keys:
        dialogue.say(f"Keys found: {list_text([*dict.fromkeys(keys.values())], most=len(keys))}")
        question = "Which providers? (separated by commas)"
        provider_names = dialogue.ask(question, ",".join(keys), partial(_read_providers, keys))
    providers = {n: p for n, p in PROVIDERS.items() if n in provider_names or n not in keys}
    sources, problems = anyio.run(partial(find_sources, os.environ, providers=providers))
    if not sources:
        reason, remedy = NOTHING_HERE, "set a key such as OPENAI_API_KEY"
        if keys:
            reason = "no provider was chosen and no model server runs here"
            remedy = "choose another provider"
        raise NoCouncil(
            f"no model to choose from: {'; '.join(problems) or reason}",
            f"{remedy}, or name the members with --member",
        )
    for problem in problems:
        dialogue.say(problem)
    sources = sort_by_known_price(sources)
    offers = [spec for source in sources for spec in source[:OFFERED]]
    seats = deal(sources)
    seats = seats * MIN_SEATS if len(seats) == 1 else seats
    offers += [seat for seat in seats if seat not in offers]
    return name_seats(_pick(offers, seats, dialogue))


def _read_providers(keys: Collection[str], names: str) -> list[str]:
    provider_names = [name.strip() for name in names.split(",") if name.strip()]
    for name in provider_names:
        if name not in keys:
            key_names = list_text([*keys], most=len(keys))
            raise click.UsageError(f"there is no key for {name!r}; there is one for {key_names}")
    return provider_names


def _pick(
    offers: "list[SeatSpec]", default: "list[SeatSpec]", dialogue: _Dialogue
) -> "list[SeatSpec]":
    from witan.service.council_discovery import format_price

    dialogue.say("Models, with US dollars per million tokens read / written:")
    for number, spec in enumerate(offers, start=1):
        dialogue.say(f"{number:4}  {spec.source}  {format_price(spec, os.environ)}")
    numbers = ",".join(str(offers.index(seat) + 1) for seat in default)
    question = "Which members? (numbers or seats, separated by commas)"
    return dialogue.ask(question, numbers, partial(_read_members, offers))


def _read_members(offers: "list[SeatSpec]", reply: str) -> "list[SeatSpec]":
    from witan.models.seats import parse_seat

    chosen = []
    for word in (word.strip() for word in reply.split(",") if word.strip()):
        if word.isdecimal():
            if not 1 <= int(word) <= len(offers):
                raise click.UsageError(f"there is no model {word}; expected 1 to {len(offers)}")
            chosen.append(offers[int(word) - 1])
        else:
            chosen.append(parse_seat(word, origin="the answer", key="a member"))
    if len(chosen) < 2:
        raise click.UsageError("a council needs at least two members")
    return chosen


def _ask_ceiling(draft: "Draft", dialogue: _Dialogue) -> float:
    from witan.service.council_discovery import QUESTION

    if draft.expected:
        length = f"{len(QUESTION):,} characters"
        dialogue.say(f"A question of {length} is expected to cost {dollars(draft.expected)}.")
    question = "Maximum cost per question, in US dollars?"
    return dialogue.ask(question, f"{draft.ceiling:g}", _read_ceiling)


def _read_ceiling(words: str) -> float:
    try:
        ceiling = float(words.lstrip("$"))
    except ValueError:
        ceiling = -1.0
    if not 0 <= ceiling < float("inf"):
        raise click.UsageError(f"{words!r} is not an amount of US dollars, such as 0.50")
    return ceiling
