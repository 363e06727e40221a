"""The options of every command that seats a council, and what they override."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.commands.history_options import recording_options
from witan.surfaces.commands.stacking import Decorator, stacked
from witan.surfaces.holding import Say

if TYPE_CHECKING:
    from witan.deliberation.procedure import Procedure
    from witan.surfaces.council import Council
    from witan.surfaces.histories import Place

__all__ = [
    "config_option",
    "council_options",
    "fast_demo_option",
    "jury_options",
    "overrides",
    "record_options",
    "seated",
    "seated_by",
    "seed_option",
    "session_options",
    "telling_options",
]

RECORD_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


def _flag(name: str, words: str) -> Decorator[Any]:
    """A switch that leaves the configuration alone unless it is given."""
    return click.option(f"--{name}/--no-{name}", default=None, help=words)


def _number(name: str, kind: type[int] | type[float], words: str) -> Decorator[Any]:
    return click.option(f"--{name}", type=kind, metavar="NUMBER", help=words)


config_option = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.toml",
    help="Read this configuration instead of the project's witan.toml.",
)

profile_option = click.option(
    "--profile",
    default="",
    metavar="NAME",
    help="Take the council that the configuration calls so.",
)

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

telling_options = stacked(
    record_options,
    save_option,
    click.option(
        "--legend",
        is_flag=True,
        help="Print the legend and the trust line below the text, on standard output, too.",
    ),
    click.option(
        "--quiet",
        is_flag=True,
        help="Show no progress, legend or trust line; only what is missing.",
    ),
)

session_options = stacked(
    telling_options,
    recording_options,
    click.option(
        "--require-winner", is_flag=True, help="Exit 5 if the session has no single clear leader."
    ),
)
"""What is told of a session, where it is kept, and how it ends without a leader."""

seed_option = click.option(
    "--seed", type=int, metavar="NUMBER", help="Draw sheets and labels from this, to repeat them."
)

fast_demo_option = click.option(
    "--fast-demo", is_flag=True, help="Play the demonstration without its pauses."
)

_question_options = stacked(
    click.argument("question", required=False),
    click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="Hand this text file to the council with the question; - is standard input.",
    ),
    click.option(
        "--continue",
        "earlier",
        metavar="ID|FILE.json",
        help="Go on from the closing text of this session.",
    ),
)

_seat_options = stacked(
    click.option(
        "--member",
        "members",
        multiple=True,
        metavar="SEAT",
        help="Seat this member, such as openai:gpt-5; at least two.",
    ),
    click.option(
        "--chairman",
        "chairmen",
        multiple=True,
        metavar="SEAT",
        help="Have this model write the closing text; the next one where it fails.",
    ),
)

_judging_options = stacked(
    click.option(
        "--mode",
        type=click.Choice(["consensus", "best", "verdict"]),
        help="Close with one common text, with the best answer, or by approving or rejecting.",
    ),
    click.option("--rule", metavar="NAME", help="Count by this rule; `witan rules` lists them."),
    click.option("--rubric", metavar="NAME|FILE.toml", help="Have answers graded by this rubric."),
    _flag("rubric-scoring", "Have reviewers grade by the rubric, or only rank."),
    _flag("holistic", "Have reviewers give each answer one grade of their own, too."),
    _flag("mirrored", "Ask every reviewer again in reverse order."),
    _flag("stop-when-decided", "Stop waiting once no ballot could change the leader."),
    _flag("safety", "Pass answers through the safety gate."),
    _flag("synthesis", "Write a closing text, or end with the standings."),
    _number("review-rounds", int, "2: let reviewers see the others' grades, and revise."),
    _number("quorum", int, "Declare an outcome from so many ballots on."),
)

_answering_options = stacked(
    _flag("self-review", "Show reviewers their own answers, too; counting still recuses them."),
    _number("debate-rounds", int, "Let members see the others' answers so often, and revise."),
    _number("enough", int, "Wait only a grace period once so many members have answered."),
    _number("grace-seconds", float, "Wait so long for the rest once enough have answered."),
)

_limit_options = stacked(
    _number("max-cost", float, "Make no call that could cross so many US dollars."),
    _number("max-tokens", int, "The most tokens of one reply."),
    _number("call-seconds", float, "End a call, its retries included, after so long."),
    _number("stage-seconds", float, "End a round of answers or reviews after so long."),
    _number("session-seconds", float, "End the session after so long."),
    _number("attempts", int, "Attempt a call so often, the first time included."),
    _number("hedge-seconds", float, "Ask a second time where nothing came for so long."),
)

OVERRIDING = (
    "members", "chairmen", "mode", "rule", "rubric", "rubric_scoring", "holistic", "mirrored",
    "self_review", "stop_when_decided", "safety", "synthesis", "review_rounds", "debate_rounds",
    "enough", "quorum", "max_tokens", "call_seconds", "stage_seconds", "session_seconds",
    "grace_seconds", "attempts", "hedge_seconds",
)  # fmt: skip
"""Options that are called as in the configuration."""


council_options = stacked(
    _question_options,
    _seat_options,
    _judging_options,
    _answering_options,
    _limit_options,
    profile_option,
    config_option,
)
"""The question, who sits, how they deliberate, within which limits."""

jury_options = stacked(
    _seat_options, _judging_options, _limit_options, profile_option, config_option
)
"""Who sits as a jury, how it reviews and closes, within which limits."""


def overrides(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the options of `council_options`, or of `jury_options`, set in the configuration."""
    given = {name: options[name] for name in OVERRIDING if options.get(name) not in (None, ())}
    return {**given, "max_cost_usd": options["max_cost"]}


def seated(
    config: Path | None,
    given: Mapping[str, Any],
    say: Say,
    procedure: "Procedure | None" = None,
    *,
    giver: str = "the command line",
    place: "Place | None" = None,
    profile: str = "",
) -> "Council":
    """Seat the council of the configuration, or of a `profile`, with what was `given` over it.

    `say` is told what to know about how it was seated; a `procedure` stands in for all that is
    configured of how it deliberates. An error names the `giver` of what was given. The council
    learns from the history at `place`.
    """
    import os

    from witan.surfaces.config import load_config
    from witan.surfaces.council import seat_council

    read = load_config(os.environ, Path.cwd(), config, given, overriding=giver, profile=profile)
    teacher = None if place is None else place.history
    council = seat_council(read, os.environ, procedure=procedure, teacher=teacher)
    for note in council.notes:
        say(note)
    return council


def seated_by(options: Mapping[str, Any], say: Say, place: "Place | None") -> "Council":
    """Seat the council that the options of `council_options`, or of `jury_options`, mean."""
    return seated(
        options["config"], overrides(options), say, place=place, profile=options["profile"]
    )
