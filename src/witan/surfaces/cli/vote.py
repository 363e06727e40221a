"""A person's vote on a stored session: ``witan vote``."""

import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from witan.core.ballot import Groups
from witan.core.blind_vote import read_ranking
from witan.errors import InvalidBallot, InvalidParameter, MissingParameter
from witan.history.ballots import HumanVote, Paper
from witan.service.operations.voting import VoteParameters, VotingPaper, cast_vote, paper_for, vote
from witan.service.parameters import make_parameters
from witan.service.text import clean
from witan.surfaces.cli.commands import command, parameter_options, print_result, render_report
from witan.surfaces.cli.options import config_option, history_option, json_option
from witan.surfaces.cli.stored_sessions import open_sessions
from witan.surfaces.terminal import ask, confirm, echo, is_terminal, measure_page, page_through, say

NOTES = """On a terminal it shows the answers and asks for a ranking. Elsewhere, print the paper
with --show first. Without --as, you vote under your login name.
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
    help="Ranking of all labels, best first: > for better, = for equal; names also work.",
)
@click.option("--show", is_flag=True, help="Print the answers under their labels, and exit.")
@config_option
@history_option
@json_option
def vote_command(
    config: Path | None, history: str | None, *, show: bool, as_json: bool, **parameters: Any
) -> None:
    """Print a paper, or cast a vote by option or dialogue."""
    if show and parameters["ranking"] is not None:
        raise click.UsageError("choose --show or --ranking, not both")
    if parameters["paper"] is not None and parameters["ranking"] is None:
        raise click.UsageError("--paper needs --ranking")
    is_interactive = not show and parameters["ranking"] is None
    if is_interactive and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("no terminal to ask on; use --show, then --ranking TEXT")
    options = {"history": history, "config": config}
    with open_sessions(options) as store:
        prepared = paper_for(store, parameters["session"], parameters["as"])
        command_line = _command_line(prepared, options)
        if show:
            _show(VotingPaper.of(prepared), command_line, as_json=as_json)
            return
        _check_earlier(prepared, replace=parameters["replace"])
        if is_interactive:
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
        raise click.UsageError(f"{person} has already voted; add --replace to change the vote")
    echo(f"this replaces the earlier vote by {person}", err=True)


def _command_line(paper: Paper, options: Mapping[str, object]) -> str:
    option_texts = [f"--{option}={value}" for option, value in options.items() if value]
    words = ["witan", "vote", paper.session, "--as", paper.sheet.reviewer, *option_texts]
    return shlex.join(words)


@contextmanager
def _explain_labels(paper: Paper, command_line: str) -> Iterator[None]:
    """Name the command to run for labels from another paper."""
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
        page = measure_page()
        # An example of a ranking would suggest an order.
        how = f'to vote: {command_line} --paper {paper.paper} --ranking "…"'
        echo("\n".join([*render_report(page, paper), "", page.sentence(how, "dim", hang=2)]))


def _ask(paper: Paper) -> Groups:
    page = measure_page()
    text = "\n".join(render_report(page, VotingPaper.of(paper))) + "\n"
    if is_terminal() and text.count("\n") >= shutil.get_terminal_size().lines:
        page_through(text, has_colour=page.has_colour)
    else:
        echo(text)
    while True:
        # An example would suggest an order.
        reply = ask("Your ranking, best first (> better, = equal)")
        try:
            groups = read_ranking(reply, paper.sheet)
        except InvalidBallot as error:
            say(str(error))
            continue
        ranking = " > ".join(" = ".join(map(paper.sheet.label, group)) for group in groups)
        if confirm(f"Vote {ranking}?", default=True):
            return groups
