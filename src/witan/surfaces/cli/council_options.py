"""The options of every command that seats a council, and what they override."""

import shlex
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.cli.history_options import recording_options
from witan.surfaces.cli.session import Say
from witan.surfaces.cli.stacking import Decorator, section, stacked

if TYPE_CHECKING:
    from witan.deliberation.procedure import Procedure
    from witan.service.council import Council
    from witan.service.history_access import RecordingPlace

__all__ = [
    "config_option",
    "council_options",
    "fast_demo_option",
    "jury_options",
    "jury_seated_by",
    "overrides",
    "record_options",
    "say_separation",
    "seated",
    "seated_by",
    "seed_option",
    "session_options",
    "telling_options",
]


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


def _flag(name: str, words: str) -> Decorator[Any]:
    """A switch that leaves the configuration alone unless it is given."""
    return click.option(f"--{name}/--no-{name}", default=None, help=words)


def _number(name: str, kind: type[int] | type[float], words: str) -> Decorator[Any]:
    return click.option(f"--{name}", type=kind, metavar="NUMBER", help=words)


config_option = section(
    "History",
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE.toml",
        help="Read this configuration instead of the project's witan.toml.",
    ),
)

profile_option = click.option(
    "--profile",
    default="",
    metavar="NAME",
    help="Seat the council of this name in the configuration.",
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

telling_options = section(
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
    telling_options,
    section(
        "Output",
        click.option(
            "--require-winner",
            is_flag=True,
            help="Exit 5 if the session has no single clear leader.",
        ),
    ),
)
"""What is told of a session, where it is kept, and how it ends without a leader."""

seed_option = section(
    "Deliberation",
    click.option(
        "--seed", type=int, metavar="NUMBER", help="Draw sheets and labels from this, to repeat."
    ),
)

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
        "--continue",
        "earlier",
        metavar="ID|FILE.json",
        help="Go on from the final answer of this session.",
    ),
)

_seat_options = section(
    "Seats",
    click.option(
        "--member",
        "members",
        multiple=True,
        metavar="SEAT",
        help="Seat this member, such as openai:gpt-5; at least two.",
    ),
    click.option(
        "--jury",
        multiple=True,
        metavar="SEAT",
        help="Have this model review instead of the members; at least two.",
    ),
    click.option(
        "--chairman",
        "chairmen",
        multiple=True,
        metavar="SEAT",
        help="Have this model write the final answer; repeat it for substitutes.",
    ),
    profile_option,
    config_option,
)

_judging_options = section(
    "Deliberation",
    click.option(
        "--mode",
        type=click.Choice(["consensus", "best", "verdict"]),
        help="End with one common answer, with the best answer, or by approving or rejecting.",
    ),
    click.option("--rule", metavar="NAME", help="Count by this rule; `witan rules` lists them."),
    click.option("--rubric", metavar="NAME|FILE.toml", help="Have answers graded by this rubric."),
    _flag("rubric-scoring", "Have reviewers grade by the rubric, or only rank."),
    _flag("holistic", "Have reviewers also give each answer one overall grade."),
    _flag("mirrored", "Ask every reviewer a second time, with the answers in reverse order."),
    _flag("stop-when-decided", "Stop waiting once no ballot could change the leader."),
    _flag("safety", "Pass answers through the safety gate."),
    _flag("synthesis", "Write a final answer, or end with the standings."),
    _number("review-rounds", int, "With 2, reviewers see the others' grades and may revise."),
    _number("quorum", int, "Fewest ballots for which an outcome is declared."),
)

_answering_options = section(
    "Deliberation",
    _flag(
        "self-review",
        "Show reviewers their own answers, too, though their grades for them never count.",
    ),
    _number("debate-rounds", int, "Rounds in which members see the others' answers and revise."),
)

_waiting_options = section(
    "Time and money",
    _number("enough", int, "Wait only --grace-seconds more once this many have answered."),
    _number("grace-seconds", float, "Seconds to wait for stragglers, with --enough."),
)

_limit_options = section(
    "Time and money",
    click.option(
        "--price",
        "prices",
        multiple=True,
        type=PriceType(),
        metavar="SEAT=IN,OUT",
        help="Price of a seat, in US dollars per million tokens read and written.",
    ),
    _number("max-cost", float, "US dollars to spend; no call is made that could exceed them."),
    _number("max-tokens", int, "Most tokens in one reply."),
    _number("call-seconds", float, "Seconds for one call, retries included."),
    _number("stage-seconds", float, "Seconds for one round of answers or reviews."),
    _number("session-seconds", float, "Seconds for the whole session."),
    _number("attempts", int, "Attempts at each call, the first one included."),
    _number("hedge-seconds", float, "Seconds of silence after which a call is made a second time."),
)

OVERRIDING = (
    "members", "jury", "chairmen", "mode", "rule", "rubric", "rubric_scoring", "holistic",
    "mirrored", "self_review", "stop_when_decided", "safety", "synthesis", "review_rounds",
    "debate_rounds", "enough", "quorum", "max_tokens", "call_seconds", "stage_seconds",
    "session_seconds", "grace_seconds", "attempts", "hedge_seconds",
)  # fmt: skip
"""Options that are called as in the configuration."""


council_options = stacked(
    _question_options,
    _seat_options,
    _judging_options,
    _answering_options,
    _waiting_options,
    _limit_options,
)
"""The question, who sits, how they deliberate, within which limits."""

jury_options = stacked(_seat_options, _judging_options, _limit_options)
"""Who sits as a jury, how it reviews and closes, within which limits."""


def overrides(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the options of `council_options`, or of `jury_options`, set in the configuration."""
    given = {name: options[name] for name in OVERRIDING if options.get(name) not in (None, ())}
    prices = dict(options["prices"])
    return {**given, "max_cost_usd": options["max_cost"], "price": prices or None}


def seated(
    config: Path | None,
    given: Mapping[str, Any],
    say: Say,
    procedure: "Procedure | None" = None,
    *,
    giver: str = "the command line",
    place: "RecordingPlace | None" = None,
    profile: str = "",
) -> "Council":
    """Seat the council of the configuration, or of a `profile`, with what was `given` over it.

    `say` is told what to know about how it was seated; a `procedure` stands in for all that is
    configured of how it deliberates. An error names the `giver` of what was given. The council
    learns from the history at `place`.
    """
    import os

    from witan.service.config.configuration import load_config
    from witan.service.council import seat_council

    read = load_config(os.environ, Path.cwd(), config, given, overriding=giver, profile=profile)
    teacher = None if place is None else place.history
    council = seat_council(read, os.environ, procedure=procedure, teacher=teacher)
    for note in council.notes:
        say(note)
    return council


def say_separation(council: "Council", say: Say, place: "RecordingPlace | None") -> None:
    """Say how far apart answers must be for this council to separate them.

    Nothing is said where scripts answer alone: then nothing is spent.
    """
    from dataclasses import replace

    from witan.deliberation.learning import with_learned
    from witan.deliberation.planner import seated_separation
    from witan.service.trust import separation_sentence

    procedure = council.procedure
    if all(seat.simulated for seat in (*council.members, *council.jury)):
        return
    if place is not None and procedure.graded and procedure.counting.prior == "learn":
        learned = place.history.learn()
        counting = with_learned(procedure.counting, learned, "grades")
        procedure = replace(procedure, counting=counting)
    found = seated_separation(council.members, procedure, council.jury)
    if found is not None:
        say(separation_sentence(found))


def seated_by(options: Mapping[str, Any], say: Say, place: "RecordingPlace | None") -> "Council":
    """Seat the council that the options of `council_options` mean."""
    return _seated_by(options, overrides(options), say, place)


def jury_seated_by(
    options: Mapping[str, Any], say: Say, place: "RecordingPlace | None"
) -> "Council":
    """Seat the jury that the options of `jury_options` mean, under either of their names.

    Without one the configured jury sits, or else the members.
    """
    if options["members"] and options["jury"]:
        raise click.UsageError("--member and --jury name the same here; use one of them")
    given = overrides(options)
    if jurors := options["jury"] or options["members"]:
        given |= {"members": jurors, "jury": ()}
    return _seated_by(options, given, say, place)


def _seated_by(
    options: Mapping[str, Any], given: Mapping[str, Any], say: Say, place: "RecordingPlace | None"
) -> "Council":
    return seated(options["config"], given, say, place=place, profile=options["profile"])
