"""``witan vote``: a person's ballot on a stored session, blind."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import InvalidBallot, InvalidParameter, MissingParameter
from witan.service.text import Page, clean
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.options import json_option
from witan.surfaces.terminal import ask, confirm, echo, page_through

if TYPE_CHECKING:
    from collections.abc import Mapping

    from witan.core.ballot import Groups
    from witan.history.votes import Paper, Vote, VoteResult

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan vote last
  witan vote 20261121-1932 --as ines
  witan vote q17 --as ines --show
  witan vote q17 --as ines --paper 3f5c0a --ranking "B > A = C"
"""


@click.command("vote", short_help="Vote on a stored session, blind.", epilog=EXAMPLES)
@click.argument("session", metavar="ID")
@click.option(
    "--as", "person", metavar="NAME", help="Vote under this name; that of your login by default."
)
@click.option("--show", is_flag=True, help="Print the answers under their labels, and end.")
@click.option(
    "--ranking",
    metavar="TEXT",
    help='Vote for this ranking: "B > A = C" by the labels of --paper, or by names.',
)
@click.option(
    "--paper",
    "code",
    metavar="CODE",
    help="The paper that the labels are from; --show prints its code.",
)
@click.option("--replace", is_flag=True, help="Take back the vote you cast earlier, for this one.")
@config_option
@history_option
@json_option
def command(session: str, config: Path | None, **options: Any) -> None:
    """Rank the answers of a session without knowing whose they are; then see.

    The answers stand under labels, in an order of your own. A ranking names each label, the best
    first: > between better and worse, = between equals. Labels differ between voters, so without a
    terminal a ranking by labels takes --paper, too. Once the vote is stored, you see who wrote
    what, and how the panel ranked them.
    """
    if options["show"] and options["ranking"] is not None:
        raise click.UsageError("choose --show or --ranking, not both")
    if options["code"] is not None and options["ranking"] is None:
        raise click.UsageError("--paper belongs to --ranking")
    asked = not options["show"] and options["ranking"] is None
    if asked and (options["as_json"] or not sys.stdin.isatty()):
        raise click.UsageError("without a terminal to ask on, give --show, then --ranking TEXT")
    from witan.history.votes import Vote, prepare_paper, reveal
    from witan.service.history_access import configured
    from witan.service.operations.voting import keep_vote
    from witan.surfaces.cli.stored_sessions import open_history, whole_name

    person = _person(options["person"])
    with open_history(configured(config, options["history"]), reading=True) as history:
        paper = prepare_paper(history, whole_name(history, session), person)
        command_line = _command_line(paper, {"history": options["history"], "config": config})
        if options["show"]:
            _show(paper, command_line, as_json=options["as_json"])
            return
        _check_earlier(paper, replacing=options["replace"])
        if asked:
            vote = Vote(_ask(paper))
        else:
            vote = _read(paper, options["ranking"], options["code"], command_line)
        keep_vote(history, paper, vote)
        revealed = reveal(history, paper, vote.groups)
    _reveal(paper, revealed, as_json=options["as_json"])


def _person(given: str | None) -> str:
    """Who votes."""
    import getpass

    name = given
    if name is None:
        try:
            name = getpass.getuser()
        except (OSError, KeyError, ImportError):
            name = ""
    name = name.strip()
    if not name:
        raise click.UsageError("say who votes: --as NAME")
    return name


def _check_earlier(paper: "Paper", *, replacing: bool) -> None:
    person = clean(paper.sheet.reviewer)
    if paper.earlier is None:
        return
    if not replacing:
        raise click.UsageError(f"{person} has voted on it; to take that vote back, add --replace")
    echo(f"this vote takes the place of the earlier one by {person}", err=True)


def _command_line(paper: "Paper", options: "Mapping[str, object]") -> str:
    """The command by which this person votes on this session, but for its last options."""
    import shlex

    given = [f"--{option}={value}" for option, value in options.items() if value]
    words = ["witan", "vote", paper.session, "--as", paper.sheet.reviewer, *given]
    return shlex.join(words)


def _read(paper: "Paper", text: str, code: str | None, command_line: str) -> "Vote":
    """Read a ranking; if its labels are from no paper, or another, name the command to run."""
    from witan.history.votes import read_vote

    try:
        return read_vote(paper, text, code)
    except InvalidParameter as error:
        person, problem = paper.sheet.reviewer, "does not say which paper it ranks"
        if not isinstance(error, MissingParameter):
            problem = f"ranks another paper, {error.value}"
        remedy = f"labels differ between voters, so run: {command_line} --show"
        raise InvalidBallot(person, f"{problem}; {remedy}") from None


def _show(paper: "Paper", command_line: str, *, as_json: bool) -> None:
    from witan.surfaces.text.vote import paper_object, paper_text

    if as_json:
        from witan.service.json_output import to_json

        echo(to_json(paper_object(paper)))
    else:
        page = Page.of(sys.stdout)
        # An example of a ranking would suggest an order.
        how = f'to vote: {command_line} --paper {paper.code} --ranking "…"'
        echo("\n".join([*paper_text(page, paper), "", page.sentence(how, "dim", hang=2)]))


def _ask(paper: "Paper") -> "Groups":
    """Show the answers, and ask until a ranking of them is confirmed."""
    from witan.core.blind_vote import read_ranking
    from witan.surfaces.text.vote import paper_text, ranking_text

    page = Page.of(sys.stdout)
    text = "\n".join(paper_text(page, paper)) + "\n"
    if sys.stdout.isatty() and text.count("\n") >= _screen_lines():
        page_through(text, coloured=page.coloured)
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
        if confirm(f"Vote {ranking_text(paper, groups)}?", default=True):
            return groups


def _screen_lines() -> int:
    import shutil

    return shutil.get_terminal_size().lines


def _reveal(paper: "Paper", revealed: "VoteResult", *, as_json: bool) -> None:
    from witan.surfaces.text.vote import revealed_object, revealed_text

    if as_json:
        from witan.service.json_output import to_json

        echo(to_json(revealed_object(paper, revealed)))
    else:
        echo("\n".join(revealed_text(Page.of(sys.stdout), paper, revealed)))
