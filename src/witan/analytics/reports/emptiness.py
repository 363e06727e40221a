"""Why there is nothing to sum: no session, none but simulated ones, none in the window."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from witan.analytics.reports.sources import Source
from witan.core.window import Window
from witan.errors import NothingToCount

__all__ = ["asked_between", "coverage_of", "nothing", "sessions_in"]

_ALL = """
SELECT simulated, COUNT(*) AS n, MIN(at_us) AS earliest, MAX(at_us) AS latest
FROM v_sessions
GROUP BY simulated
"""

_WITHIN = "at_us >= :since_us AND at_us < :until_us AND (:every = 1 OR category = :category)"

_INSIDE = """
SELECT simulated, COUNT(*) AS n
FROM v_sessions
WHERE {within}
GROUP BY simulated
""".replace("{within}", _WITHIN)

_CATEGORIES = """
SELECT category, COUNT(*) AS n
FROM v_sessions
WHERE simulated = 0 AND category IS NOT NULL
GROUP BY category
"""

SHOWN = 8
"""Categories that are named at most."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Sessions there are, and when they were asked."""

    real: int
    simulated: int
    first: datetime | None
    last: datetime | None


def sessions_in(source: Source, window: Window) -> int:
    """How many sessions of a window are not simulated."""
    found = source.engine.columns(_INSIDE, _params(window))
    pairs = zip(found["simulated"].tolist(), found["n"].tolist(), strict=True)
    return sum(int(n) for simulated, n in pairs if not simulated)


def asked_between(source: Source) -> tuple[datetime, datetime] | None:
    """When the first and the last session that is not simulated were asked; None: there is none."""
    found = _found(source)
    return None if found.first is None or found.last is None else (found.first, found.last)


def coverage_of(source: Source, window: Window, rule: str, human: int) -> int:
    """How many sessions of a window have standings under a rule."""
    return source.reductions(window).coverage(rule, human=human)


def nothing(source: Source, window: Window) -> NothingToCount | None:
    """Why a window is empty, and what to do; None: it is not."""
    if sessions_in(source, window):
        return None
    found = _found(source)
    if not found.real and not found.simulated:
        return NothingToCount(
            f"{source.where}: there is no session that could be counted yet; "
            "ask a question, or import ballots"
        )
    if not found.real:
        only = "the only session is" if found.simulated == 1 else (
            f"all {found.simulated:,} sessions are"
        )  # fmt: skip
        return NothingToCount(
            f"{source.where}: {only} simulated, and simulated ones are never summed; "
            "ask a question of real models, or import ballots"
        )
    there = f"there are {found.real:,}, from {_day(found.first)} to {_day(found.last)}"
    if found.real == 1:
        there = f"there is 1, of {_day(found.first)}"
    return NothingToCount(
        f"{source.where}: no session is {window}; {there}{_categories(source, window)}"
    )


def _found(source: Source) -> _Found:
    columns = source.engine.columns(_ALL)
    rows = list(zip(*(columns[name].tolist() for name in ("simulated", "n")), strict=True))
    real = sum(int(n) for simulated, n in rows if not simulated)
    times = [
        (int(first), int(last))
        for simulated, first, last in zip(
            columns["simulated"].tolist(),
            columns["earliest"].tolist(),
            columns["latest"].tolist(),
            strict=True,
        )
        if not simulated
    ]
    return _Found(
        real=real,
        simulated=sum(int(n) for simulated, n in rows if simulated),
        first=_time(min(first for first, _ in times)) if times else None,
        last=_time(max(last for _, last in times)) if times else None,
    )


def _categories(source: Source, window: Window) -> str:
    """The categories there are, where one was asked for."""
    if window.category is None:
        return ""
    columns = source.engine.columns(_CATEGORIES)
    counts = zip(columns["n"].tolist(), columns["category"].tolist(), strict=True)
    names = [name for _, name in sorted(counts, key=lambda pair: (-pair[0], pair[1]))]
    if not names:
        return ", without a category"
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f", of the categories {', '.join(map(repr, names[:SHOWN]))}{more}"


def _params(window: Window) -> dict[str, int | str]:
    return {
        "since_us": window.since_us,
        "until_us": window.until_us,
        "every": int(window.category is None),
        "category": "" if window.category is None else window.category,
    }


def _time(at_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"
