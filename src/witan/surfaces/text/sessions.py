"""Sessions as a list: one line each."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from witan.deliberation.session import Cost
from witan.service.text import UNKNOWN, Page
from witan.service.trust import cost_text
from witan.surfaces.report.document import Column
from witan.surfaces.report.session import relation_text
from witan.surfaces.report.text import table

if TYPE_CHECKING:
    from witan.history import SessionSummary
    from witan.service.operations.session_list import SessionList

BESIDE = 75
"""Columns that a terminal needs for the rest of the table."""

AS_NEEDED = ("category", "origin")
"""Columns that are left out where no session has anything in them."""

BEGINNING = 120
"""How much of a question a pipe is shown; a terminal shows what fits."""


def origin_text(line: "SessionSummary", parent: str | None = None) -> str:
    """Return the file that a session came from, and the session that it came of; empty: neither.

    `parent` is how that session is called, where not by its whole name.
    """
    told = [f"imported from {Path(line.source).name}"] if line.imported else []
    if line.parent is not None:
        told.append(relation_text(line.relation, parent or line.parent))
    return ", ".join(told)


def sessions_text(page: Page, found: "SessionList") -> Iterator[str]:
    """Yield the lines of a list of sessions."""
    if not found.sessions:
        return
    short = found.short
    columns = [
        Column("session", "left", fit="middle"),
        Column("asked, UTC", "left", keep=40),
        Column("status", "left", keep=70),
        Column("category", "left", keep=20, fit="middle"),
        Column("question", "left", fit="middle"),
        Column("leader", "left", keep=60, fit="middle"),
        Column("cost", keep=50),
        Column("origin", "left", keep=30, fit="middle"),
    ]
    rows = [
        [
            short[line.session],
            f"{line.at:%Y-%m-%d %H:%M}",
            f"simulated, {line.status}" if line.simulated else line.status,
            line.category or "",
            _beginning(page, line.question),
            line.leader_seat or line.leader or UNKNOWN,
            _cost(line.cost_usd),
            origin_text(line, None if line.parent is None else short[line.parent]),
        ]
        for line in found.sessions
    ]
    kept = [k for k, c in enumerate(columns) if c.title not in AS_NEEDED or _any(rows, k)]
    yield from table(page, [columns[k] for k in kept], [[row[k] for k in kept] for row in rows])


def sessions_remarks(found: "SessionList") -> Iterator[str]:
    """Say that nothing was found, or that there is more."""
    if not found.sessions:
        yield "no matching sessions"
    if found.next is not None:
        yield f"there are more than these {len(found.sessions):,}; a higher `limit` lists more"


def _any(rows: Sequence[Sequence[str]], column: int) -> bool:
    return any(row[column] for row in rows)


def _beginning(page: Page, question: str) -> str:
    """Return the question on one line; its beginning, where it is long."""
    plain = " ".join(question.split())
    most = BEGINNING if page.width is None else max(page.width - BESIDE, 24)
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def _cost(usd: float | None) -> str:
    return UNKNOWN if usd is None else cost_text(Cost(usd, usd, usd))
