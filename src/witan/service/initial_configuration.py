"""The first configuration: members, their prices and a ceiling, as text of a file."""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import floor, log10
from pathlib import Path

from witan.deliberation.plan import TYPICAL, Lengths
from witan.deliberation.planner import make_plan
from witan.deliberation.ports import Price, Seat
from witan.deliberation.procedure import Procedure
from witan.errors import ConfigError
from witan.models.seats import FREE, SeatSpec, price_of_seat
from witan.service.council_discovery import Source
from witan.service.text import listed
from witan.service.trust import separation_sentence

QUESTION = "x" * 2_000
"""As long as the question that the first ceiling is reckoned for: a page of text."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A configuration that is not written yet.

    Parameters
    ----------
    ceiling
        US dollars that one question may cost; None: nothing costs anything.
    expected
        What a question of a page is expected to cost; None: unknown.
    notes
        What to know about it, a sentence each.
    """

    text: str
    ceiling: float | None
    expected: float | None
    notes: tuple[str, ...]


def draft(
    seats: Sequence[SeatSpec],
    environment: Mapping[str, str],
    *,
    ceiling: float | None = None,
    trusted: bool = False,
    lengths: Lengths = TYPICAL,
) -> Draft:
    """Write the configuration of these members.

    Parameters
    ----------
    ceiling
        None: one that holds all that can be written when nothing fails.
    trusted
        The file may hold prices: it is the user's own.
    lengths
        How long replies are expected to be.
    """
    prices = {spec.name: spec.price or price_of_seat(spec, environment) for spec in seats}
    plan = make_plan(
        [Seat(s.name, s.source, s.provider, s.options, prices[s.name]) for s in seats],
        (),
        Procedure(),
        QUESTION,
        lengths=lengths,
    )
    if ceiling is None and plan.usual_usd:
        ceiling = _round_up(plan.usual_usd)
    stated = {s.name: s for s in seats if _is_stated_alone(s, environment)}
    lines = ["# Written by witan init. Keys stay in the environment.", "members = ["]
    lines += [f"    {_quoted(_write_seat(s))},  # {price_shown(s, environment)}" for s in seats]
    lines += ["]"]
    if ceiling is not None:
        lines += ["", "[limits]", f"max_cost_usd = {ceiling!r}  # of one question, in US dollars"]
    notes = [] if plan.separation is None else [separation_sentence(plan.separation)]
    rates = {name: price for name in stated if (price := prices[name]) is not None}
    if rates and trusted:
        lines += ["", "[price]  # US dollars per million tokens read and written, as listed"]
        lines += [
            f"{_quoted(_write_seat(stated[name]))} = [{p.input_usd!r}, {p.output_usd!r}]"
            for name, p in rates.items()
        ]
    if ceiling is not None and plan.unpriced:
        notes.append(
            f"the price of {listed(plan.unpriced)} is unknown, so under the ceiling they are not "
            f"called: ask with --price {plan.unpriced[0]}=IN,OUT (US dollars per million tokens)"
        )
    return Draft("\n".join([*lines, ""]), ceiling, plan.expected_usd, tuple(notes))


def _is_stated_alone(spec: SeatSpec, environment: Mapping[str, str]) -> bool:
    """Check that nobody but the list that the seat was found in tells what it costs."""
    known = price_of_seat(replace(spec, price=None), environment)
    return known is None or (known == FREE and spec.price not in (None, FREE))


def prefer_known(sources: Sequence[Source]) -> list[Source]:
    """Put models first whose price is known without asking for the list again."""
    return [
        tuple(sorted(source, key=lambda spec: price_of_seat(replace(spec, price=None), {}) is None))
        for source in sources
    ]


def price_shown(spec: SeatSpec, environment: Mapping[str, str]) -> str:
    """Return the price of a seat in US dollars per million tokens."""
    price: Price | None = spec.price or price_of_seat(spec, environment)
    if price is None:
        return "price unknown"
    if price.input_usd == price.output_usd == 0:
        return "free"
    return f"${price.input_usd:g} / ${price.output_usd:g}"


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise ConfigError(str(path), "", problem) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()


def _write_seat(spec: SeatSpec) -> str:
    """Return a seat as the file says it; a server elsewhere than by default is an address."""
    return f"{spec.url}#{spec.model}" if spec.url and "#" not in spec.source else spec.source


def _quoted(text: str) -> str:
    """Quote a text for TOML: JSON's escapes, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _round_up(usd: float) -> float:
    """To two digits, never down."""
    step = 10.0 ** (floor(log10(usd)) - 1)
    digits = max(0, 1 - floor(log10(usd)))
    return round(step * (int(usd / step) + 1), digits)
