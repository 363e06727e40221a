"""Stored sessions: ``witan show``, ``vote`` and ``forget``."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.core.ballot import Groups
from witan.deliberation.record import event_to_json
from witan.errors import InvalidBallot, InvalidParameter, MissingParameter
from witan.files.session_files import write_whole
from witan.history.ballots import HumanVote, Paper
from witan.service.operations.sessions import ShowParameters, delete_sessions, descendants, forget
from witan.service.operations.sessions import show as operation
from witan.service.operations.voting import (
    VoteParameters,
    VotingPaper,
    cast_vote,
    paper_for,
    vote,
)
from witan.service.parameters import MOMENT, make_parameters
from witan.service.session_records import CouncilSession, ImportedSession
from witan.service.text import Page, clean, count_noun
from witan.surfaces.cli.commands import (
    command,
    parameter_options,
    print_result,
    render_report,
)
from witan.surfaces.cli.options import (
    ParsedType,
    Status,
    config_option,
    history_option,
    json_option,
    record_options,
)
from witan.surfaces.cli.stored_sessions import LocalSessions, open_named_sessions, open_sessions
from witan.surfaces.terminal import ask, confirm, echo, page_through

if TYPE_CHECKING:
    from witan.history import History


@command(
    "show",
    "show last",
    "show 20261121-1932",
    "show session.json --events",
    "show last --html session.html",
    notes="""An ID is the name of a session in the history, or a beginning of it that no other has;
`last` is the latest. A FILE exists, ends in .json or has a path; - is standard input. With
--events, everything that happened in it, in order. With --html, nothing is printed: the session
goes into a FILE that any browser opens, with its own styles, no script, and nothing to fetch.""",
)
@click.argument("session", metavar="ID|FILE")
@config_option
@history_option
@record_options
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the session as a page that stands alone.",
)
def show_command(
    session: str,
    config: Path | None,
    history: str | None,
    *,
    as_json: bool,
    events: bool,
    html: Path | None,
) -> None:
    """Print a session, or write its page."""
    if as_json + events + (html is not None) > 1:
        raise click.UsageError("choose one of --json, --events and --html")
    options = {"config": config, "history": history}
    with open_named_sessions(options) as store:
        result = operation.handler(store, ShowParameters(session))
        if html is not None:
            from witan.surfaces.session_pages import session_to_html

            write_whole(session_to_html(result).encode(), html)
        elif events:
            _print_events(result)
        else:
            print_result(result, as_json=as_json)
            if as_json:
                return
            if isinstance(result, CouncilSession) and result.session.status == "interrupted":
                is_kept = store.shared_history is not None
                name, given = (result.session.id, options) if is_kept else (session, {})
                if session != "-":
                    _say_how_to_go_on(name, {**given, "config": config})


def _print_events(result: CouncilSession | ImportedSession) -> None:
    if isinstance(result, ImportedSession):
        raise click.UsageError("a session that came in as ballots has no events; show it without")
    for event in result.session.events:
        echo(event_to_json(event, is_simulated=result.session.is_simulated))


def _say_how_to_go_on(name: str, options: Mapping[str, object]) -> None:
    given = [f"--{option} {shlex.quote(str(value))}" for option, value in options.items() if value]
    again = " ".join(["witan resume", shlex.quote(name), *given])
    echo(Page.of(sys.stdout).sentence(f"to take it up: {again}", "dim"))


NOTES = """On a terminal it shows the answers and asks for a ranking. Without one, print the paper
with --show first; a vote is cast under the name of your login unless --as gives another.
"""


@command(
    "vote",
    "vote last",
    "vote 20261121-1932 --as ines",
    "vote q17 --as ines --show",
    'vote q17 --as ines --paper 3f5c0a --ranking "B > A = C"',
    notes=NOTES,
)
@parameter_options(vote.parameters, exclude=["ranking"])
@click.option(
    "--ranking",
    metavar="TEXT",
    help="Every label, best first: > between better and worse, = between equals; or names.",
)
@click.option("--show", is_flag=True, help="Print the answers under their labels, and end.")
@config_option
@history_option
@json_option
def vote_command(
    config: Path | None, history: str | None, *, show: bool, as_json: bool, **parameters: Any
) -> None:
    """Print a paper, or cast a vote: by `--ranking`, or asked for on a terminal."""
    if show and parameters["ranking"] is not None:
        raise click.UsageError("choose --show or --ranking, not both")
    if parameters["paper"] is not None and parameters["ranking"] is None:
        raise click.UsageError("--paper belongs to --ranking")
    asking = not show and parameters["ranking"] is None
    if asking and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("without a terminal to ask on, give --show, then --ranking TEXT")
    with open_sessions(config, history) as store:
        prepared = paper_for(store, parameters["session"], parameters["as"])
        command_line = _command_line(prepared, {"history": history, "config": config})
        if show:
            _show(VotingPaper.of(prepared), command_line, as_json=as_json)
            return
        _check_earlier(prepared, replace=parameters["replace"])
        if asking:
            result = cast_vote(store, prepared, HumanVote(_ask(prepared)))
        else:
            with _explain_labels(prepared, command_line):
                result = vote.handler(store, make_parameters(VoteParameters, parameters))
    print_result(result, as_json=as_json)


def _check_earlier(paper: Paper, *, replace: bool) -> None:
    person = clean(paper.sheet.reviewer)
    if paper.earlier is None:
        return
    if not replace:
        raise click.UsageError(f"{person} has voted on it; to take that vote back, add --replace")
    echo(f"this vote takes the place of the earlier one by {person}", err=True)


def _command_line(paper: Paper, options: Mapping[str, object]) -> str:
    """Return the command by which this person votes on this session, but for its last options."""
    import shlex

    given = [f"--{option}={value}" for option, value in options.items() if value]
    words = ["witan", "vote", paper.session, "--as", paper.sheet.reviewer, *given]
    return shlex.join(words)


@contextmanager
def _explain_labels(paper: Paper, command_line: str) -> Iterator[None]:
    """If the labels of a ranking are from no paper, or another, name the command to run."""
    try:
        yield
    except InvalidParameter as error:
        if error.name != "paper":
            raise
        person, problem = paper.sheet.reviewer, "does not say which paper it ranks"
        if not isinstance(error, MissingParameter):
            problem = f"ranks another paper, {error.value}"
        remedy = f"labels differ between voters, so run: {command_line} --show"
        raise InvalidBallot(person, f"{problem}; {remedy}") from None


def _show(paper: VotingPaper, command_line: str, *, as_json: bool) -> None:
    if as_json:
        print_result(paper, as_json=True)
    else:
        page = Page.of(sys.stdout)
        # An example of a ranking would suggest an order.
        how = f'to vote: {command_line} --paper {paper.paper} --ranking "…"'
        echo("\n".join([*render_report(page, paper), "", page.sentence(how, "dim", hang=2)]))


def _ask(paper: Paper) -> Groups:
    """Show the answers, and ask until a ranking of them is confirmed."""
    from witan.core.blind_vote import read_ranking

    page = Page.of(sys.stdout)
    text = "\n".join(render_report(page, VotingPaper.of(paper))) + "\n"
    if sys.stdout.isatty() and text.count("\n") >= _screen_lines():
        page_through(text, has_colour=page.has_colour)
    else:
        echo(text)
    while True:
        # An example would suggest an order.
        given = ask("Your ranking, the best first (> better, = equal)")
        try:
            groups = read_ranking(given, paper.sheet)
        except InvalidBallot as error:
            echo(clean(str(error)), err=True)
            continue
        if confirm(f"Vote {_ranking(paper, groups)}?", default=True):
            return groups


def _ranking(paper: Paper, groups: Groups) -> str:
    return " > ".join(" = ".join(map(paper.sheet.label, group)) for group in groups)


def _screen_lines() -> int:
    import shutil

    return shutil.get_terminal_size().lines


SHOWN = 10
"""More sessions than this are only counted before the user is asked."""


@command(
    "forget",
    "forget 20261121-1932",
    "forget --before 90d --yes",
    notes="""An ID is the name of a session, or a beginning of it that no other has; `last` is the
latest. On a terminal it asks first; elsewhere nothing is deleted without --yes.""",
)
@click.argument("sessions", metavar="[ID]...", nargs=-1)
@click.option(
    "--before",
    type=ParsedType(MOMENT),
    metavar="TIME",
    help="Every session asked before then: 90d, 12h and 2w are ago, 2026-01-31 is a day.",
)
@click.option("--all", "everything", is_flag=True, help="Every session there is.")
@parameter_options(forget.parameters, exclude=["session"])
@click.option("--yes", is_flag=True, help="Do not ask first.")
@config_option
@history_option
@json_option
def forget_command(
    sessions: tuple[str, ...],
    before: datetime | None,
    config: Path | None,
    history: str | None,
    *,
    everything: bool,
    with_children: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete sessions, many in one go."""
    if (bool(sessions) + (before is not None) + everything) != 1:
        raise click.UsageError("say what to forget: an ID, --before TIME or --all, one of them")
    with open_sessions(config, history) as store:
        place = store.history
        if sessions:
            chosen = [*dict.fromkeys(store.whole_name(name) for name in sessions)]
        else:
            chosen = [summary.session for summary in place.find(until=before)]
        if with_children:
            chosen += descendants(place, chosen)
        if chosen and not yes:
            _confirm(chosen, place)
        by_age = before is not None and not with_children
        deleting = store if before is None else _SessionsBefore(place, before)
        done = delete_sessions(deleting if by_age else store, chosen, with_children=False)
    print_result(done, as_json=as_json)


class _SessionsBefore(LocalSessions):
    """The sessions before a time: they are deleted a few at a time."""

    def __init__(self, history: "History", at: datetime) -> None:
        super().__init__(history)
        self.at = at

    def delete(self, sessions: Sequence[str]) -> str | None:  # noqa: ARG002 - all before the time
        """Delete every session before the time."""
        return self.history.forget_before(self.at).note


def _confirm(sessions: Sequence[str], place: "History") -> None:
    """Have the user confirm; without a terminal, refuse."""
    n = count_noun(len(sessions), "session")
    if not sys.stdin.isatty():
        which = f" ({clean(sessions[0])})" if len(sessions) == 1 else ""
        raise click.UsageError(f"{n}{which} would be deleted for good; add --yes to delete")
    for name in sessions[:SHOWN]:
        question = clean(" ".join(place.summary(name).question.split()))
        beginning = question if len(question) <= SHOWN * 6 else f"{question[: SHOWN * 6]}…"
        echo(f"  {clean(name)}  {beginning}", err=True)
    if len(sessions) > SHOWN:
        echo(f"  … and {len(sessions) - SHOWN:,} more", err=True)
    if not confirm(f"Delete {n} from {place.database.location} for good?"):
        echo("nothing was deleted", err=True)
        raise click.exceptions.Exit(Status.FAILED)
