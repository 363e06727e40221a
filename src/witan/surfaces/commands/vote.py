"""``witan vote``: a person's ballot on a stored session, blind."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import InvalidBallot
from witan.surfaces.commands.council_options import config_option
from witan.surfaces.commands.history_options import history_option
from witan.surfaces.commands.options import json_option
from witan.surfaces.terminal import ask, confirm, echo, page_through
from witan.surfaces.text import Page, clean

if TYPE_CHECKING:
    from witan.adapters.voting_papers import Paper, Revealed
    from witan.core.ballot import Groups

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan vote last
  witan vote 20261121-1932 --as ines
  witan vote q17 --as ines --show
  witan vote q17 --as ines --ranking "B > A = C"
"""


@click.command("vote", short_help="Vote on a stored session, blind.", epilog=EXAMPLES)
@click.argument("session", metavar="ID")
@click.option(
    "--as", "person", metavar="NAME", help="Vote under this name; that of your login by default."
)
@click.option("--show", is_flag=True, help="Print the answers under their labels, and end.")
@click.option("--ranking", metavar="TEXT", help='Vote so, without a question: "B > A = C".')
@click.option("--replace", is_flag=True, help="Take back the vote you cast earlier, for this one.")
@config_option
@history_option
@json_option
def command(session: str, config: Path | None, **options: Any) -> None:
    """Rank the answers of a session without knowing whose they are; then see.

    The answers stand under labels, in an order of your own. A ranking names each label, the best
    first: > parts better from worse, = places equal. Once it is stored, it is told who wrote
    what, and how the panel ranked them.
    """
    if options["show"] and options["ranking"] is not None:
        raise click.UsageError("choose --show or --ranking, not both")
    asked = not options["show"] and options["ranking"] is None
    if asked and (options["as_json"] or not sys.stdin.isatty()):
        raise click.UsageError("without a terminal to ask on, give --show, then --ranking TEXT")
    from witan.adapters.voting_papers import reveal, voting_paper
    from witan.surfaces.histories import configured, open_history, whole_name
    from witan.surfaces.inquiries.voting import keep_vote

    person = _person(options["person"])
    with open_history(configured(config, options["history"]), reading=True) as history:
        paper = voting_paper(history, whole_name(history, session), person)
        if options["show"]:
            _show(paper, as_json=options["as_json"])
            return
        _check_earlier(paper, replacing=options["replace"])
        groups = _ask(paper) if asked else _read(paper, options["ranking"])
        keep_vote(history, paper, groups)
        revealed = reveal(history, paper, groups)
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


def _read(paper: "Paper", text: str) -> "Groups":
    from witan.core.blind_vote import read_ranking

    return read_ranking(text, paper.sheet)


def _show(paper: "Paper", *, as_json: bool) -> None:
    from witan.surfaces.voting_text import paper_object, paper_text

    if as_json:
        from witan.surfaces.json_output import to_json

        echo(to_json(paper_object(paper)))
    else:
        echo("\n".join(paper_text(Page.of(sys.stdout), paper)))


def _ask(paper: "Paper") -> "Groups":
    """Show the answers, and ask until a ranking of them is confirmed."""
    from witan.surfaces.voting_text import paper_text, ranking_text

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
            groups = _read(paper, given)
        except InvalidBallot as error:
            echo(clean(str(error)), err=True)
            continue
        if confirm(f"Vote {ranking_text(paper, groups)}?", default=True):
            return groups


def _screen_lines() -> int:
    import shutil

    return shutil.get_terminal_size().lines


def _reveal(paper: "Paper", revealed: "Revealed", *, as_json: bool) -> None:
    from witan.surfaces.voting_text import revealed_object, revealed_text

    if as_json:
        from witan.surfaces.json_output import to_json

        echo(to_json(revealed_object(paper, revealed)))
    else:
        echo("\n".join(revealed_text(Page.of(sys.stdout), paper, revealed)))
