"""``witan convert``: ballots from one format to another."""

from typing import Any

import click

from witan.service.text import clean, counted
from witan.surfaces.cli.ballot_files import Body, files_argument, format_options
from witan.surfaces.cli.commands import command
from witan.surfaces.cli.options import config_option, history_option
from witan.surfaces.terminal import echo


@command(
    "convert",
    "convert votes.csv ballots.jsonl --column reviewer=judge",
    "convert ballots.jsonl.gz ballots.parquet",
    "convert ballots.jsonl - --to csv",
)
@files_argument
@click.argument("out", type=click.Path(allow_dash=True))
@click.option(
    "--to",
    metavar="NAME",
    help="Write this format instead of the one that the name of OUT says.",
)
@format_options
@config_option
@history_option
def convert_command(out: str, to: str | None, **options: Any) -> None:
    """Write the ballots of FILE..., or of sessions, to OUT.

    - is standard output, as JSON Lines unless --to says.

    OUT changes as a whole or not at all: what its format cannot hold is refused, and said.
    Formats: jsonl, csv, csv-pairs, preflib, parquet; .gz and .zst are packed.
    """
    from witan.files.ballots import write_ballots

    body = Body.of(options, done="written")
    written = write_ballots(body, out, format=to)
    where = "standard output" if out == "-" else clean(out)
    for scale in body.scales:
        words = scale.sentence_with("--scale ", converted="written with that scale")
        echo(clean(words), err=True)
    echo(f"{counted(written, 'ballot')} written to {where}", err=True)
