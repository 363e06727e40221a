"""Seating those again who sat in a stored session, as far as its record is trusted."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.cli.council_options import seated
from witan.surfaces.cli.session import Say

if TYPE_CHECKING:
    from witan.deliberation.ports import Seat
    from witan.deliberation.session import Session
    from witan.service.council import Council

__all__ = ["refuse_untrusted", "reseated", "trust_option"]

trust_option = click.option(
    "--trust",
    is_flag=True,
    help="Run the programs, and use the keys and addresses, that the record names.",
)


def reseated(
    session: "Session", config: Path | None, say: Say, max_cost_usd: float | None = None
) -> "Council":
    """The council of a session, by its record, with the keys of today, under another ceiling."""
    from witan.deliberation.procedure import with_ceiling

    opened = session.opened
    answering = opened.members or opened.reviewers
    given: dict[str, Any] = {"members": [_table(held) for held in answering]}
    given["jury"] = [_table(held) for held in opened.jury] if opened.members else []
    given["chairmen"] = [_table(held) for held in opened.chairmen]
    procedure = with_ceiling(opened.procedure, max_cost_usd)
    return seated(config, given, say, procedure, giver="the record")


def refuse_untrusted(seats: "Iterable[Seat]") -> None:
    """A record may come from anywhere; what it would run, or send a key to, is not its to say."""
    from witan.models.seats import describe_risk

    for seat in seats:
        if (deed := describe_risk(seat)) is not None:
            raise click.UsageError(f"the record would {deed}; allow it with --trust")


def _table(seat: "Seat") -> dict[str, Any]:
    """A seat of the record, as the configuration writes it."""
    if not seat.source:
        problem = f"{seat.name} is a model of your own: take the session up from Python."
        raise click.UsageError(problem)
    options = {name: value for name, value in asdict(seat.options).items() if value is not None}
    table = {"seat": seat.source, "name": seat.name, **options}
    table |= {"url": seat.url} if seat.url is not None else {}
    table |= {"key": seat.key_variable} if seat.key_variable is not None else {}
    if seat.price is not None:
        table["price"] = [seat.price.input_usd, seat.price.output_usd]
    return table
