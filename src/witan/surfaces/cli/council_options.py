"""The options of every command that seats a council, and what they override."""

import shlex
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.service.requests import QuestionRequest, RejudgeRequest
from witan.surfaces.cli.commands import parameter_options, take_parameters
from witan.surfaces.cli.options import config_option, recording_options, section, stacked
from witan.surfaces.cli.session import Say

if TYPE_CHECKING:
    from witan.deliberation.session import Session
    from witan.service.council import Council
    from witan.service.history_access import RecordingPlace
    from witan.service.requests import Turn


class PriceType(click.ParamType[tuple[str, tuple[float, float]]]):
    """A seat with what a million of its tokens cost: ``SEAT=IN,OUT``."""

    name = "price"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[float, float]]:
        """Take it apart; the seat may itself hold an equals sign."""
        if isinstance(value, tuple):
            return value
        seat, _, rate = str(value).rpartition("=")
        try:
            read, written = (float(part) for part in rate.split(","))
        except ValueError:
            read = written = -1.0
        if not seat.strip() or not (0 <= read < inf and 0 <= written < inf):
            self.fail(f"{value!r} is no price; write SEAT=IN,OUT such as critic=3,15", param, ctx)
        return seat.strip(), (read, written)


RECORD_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


save_option = click.option(
    "--save",
    type=RECORD_FILE,
    metavar="FILE.json",
    help="Write the record of the session here; an interrupted one, too.",
)

record_options = stacked(
    click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON object."),
    click.option(
        "--events", is_flag=True, help="Print every event as a line of JSON, as it happens."
    ),
)

output_options = section(
    "Output",
    record_options,
    save_option,
    click.option(
        "--legend",
        is_flag=True,
        help="Print the legend and the trust line below the text, on standard output, too.",
    ),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        help="Show no progress, legend or trust line; only what is missing.",
    ),
)

session_options = stacked(
    recording_options,
    output_options,
    section(
        "Output",
        click.option(
            "--require-winner",
            is_flag=True,
            help="Exit 5 if the session has no single clear leader.",
        ),
    ),
)
"""Options of the output of a session, its record and its exit status."""

fast_demo_option = click.option(
    "--fast-demo", is_flag=True, help="Play the demonstration without its pauses."
)


def _one_question(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - as every callback
    words: tuple[str, ...],
) -> str | None:
    """Return the one argument; refuse several, which are a question without its quotes."""
    if len(words) > 1:
        question = shlex.quote(" ".join(words))
        raise click.UsageError(
            f"the question came as {len(words)} arguments; put it in quotes: {question}", ctx
        )
    return words[0] if words else None


_question_options = section(
    "Question",
    click.argument("question", nargs=-1, metavar="[QUESTION]", callback=_one_question),
    click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="Give the council this text file with the question; - is standard input.",
    ),
    click.option(
        "--conversation",
        type=click.Path(allow_dash=True),
        metavar="FILE.json",
        help="What was said before, oldest first: a list of objects with role and content.",
    ),
)

price_option = section(
    "Time and money",
    click.option(
        "--price",
        "prices",
        multiple=True,
        type=PriceType(),
        metavar="SEAT=IN,OUT",
        help="Price of a seat, in US dollars per million tokens read and written.",
    ),
)

council_options = stacked(
    _question_options,
    parameter_options(QuestionRequest, without=("question", "conversation", "files")),
    section("Seats", config_option),
    price_option,
)
"""Options of the question, the seats, the settings and the limits."""

jury_options = stacked(
    parameter_options(RejudgeRequest, without=("session",)),
    section("Seats", config_option),
    price_option,
)
"""Options of a jury: its seats, settings and limits."""


def take_question(
    options: Mapping[str, Any],
    question: str,
    turns: "tuple[Turn, ...]",
    files: Mapping[str, str],
    before: "Session | None",
) -> QuestionRequest:
    """Make the request of `council_options`, of a question that goes on from a session or not."""
    parent = None if before is None else before.id
    given = {"question": question, "conversation": turns, "files": files, "parent": parent}
    return take_parameters(QuestionRequest, {**options, **given})


def say_separation(council: "Council", say: Say, place: "RecordingPlace | None") -> None:
    """Say how far apart answers must be for this council to separate them.

    Nothing is said where scripts answer alone: then nothing is spent.
    """
    from dataclasses import replace

    from witan.deliberation.learning import apply_learned
    from witan.deliberation.planner import panel_separation
    from witan.service.trust import separation_sentence

    procedure = council.procedure
    if all(seat.simulated for seat in (*council.members, *council.jury)):
        return
    if place is not None and procedure.graded and procedure.counting.prior == "learn":
        learned = place.history.learn()
        counting = apply_learned(procedure.counting, learned, "grades")
        procedure = replace(procedure, counting=counting)
    found = panel_separation(council.members, procedure, council.jury)
    if found is not None:
        say(separation_sentence(found))
