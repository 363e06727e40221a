"""The reports of a list of sessions, and of their deletion."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from witan.core.display import chance_percent
from witan.deliberation.costs import Cost
from witan.deliberation.ports import NO_QUESTION
from witan.history import SessionSummary
from witan.service.operations.sessions import Deletion, SessionList
from witan.service.text import UNKNOWN, count_noun, list_text
from witan.service.trust import cost_text, p_best_text
from witan.surfaces.report.document import Block, Column, Note, Report, Table, table_of

AS_CHILD: Mapping[str | None, str] = {
    "rejudged": "rejudges",
    "retried": "retries",
    "continued": "goes on from",
    "compared": "comes of comparing",
    None: "came of",
}
"""The sentence that leads to a session's parent, by their relation."""

BEGINNING = 120
"""Characters of a question that a list shows."""


def sessions_report(listing: SessionList) -> Report:
    """Write the report of a list of sessions."""
    if not listing.sessions:
        return Report("Sessions", (), "No matching sessions.", ())
    blocks: list[Block] = [_table(listing)]
    if listing.next is not None:
        text = f"There are more than these {len(listing.sessions):,}; limit=NUMBER lists more."
        blocks.append(Note(text, "hint", option="limit"))
    return Report("Sessions", ("the latest first",), "", tuple(blocks))


def _table(listing: SessionList) -> Table:
    lines, short = listing.sessions, listing.short
    columns: list[tuple[Column, Sequence[str]]] = [
        (Column("session", "left", fit="middle", heads=True), [short[s.session] for s in lines]),
        (Column("asked, UTC", "left", keep=40), [f"{s.at:%Y-%m-%d %H:%M}" for s in lines]),
        (
            Column("status", "left", keep=70),
            [f"{'simulated, ' * s.simulated}{s.status}" for s in lines],
        ),
        (Column("question", "left", fit="end"), [question_beginning(s.question) for s in lines]),
        (
            Column("leader", "left", keep=60, fit="middle"),
            [s.leader_seat or s.leader or UNKNOWN for s in lines],
        ),
        (
            Column("p_best", keep=35),
            [p_best_text(s.p_best) for s in lines],
        ),
        (Column("cost", keep=50), [cost_of(s) or UNKNOWN for s in lines]),
    ]
    origins = [origin_text(s, short.get(s.parent or "")) for s in lines]
    categories = [s.category or "" for s in lines]
    columns += _drop_empty(Column("category", "left", keep=20, fit="middle"), categories)
    columns += _drop_empty(Column("origin", "left", keep=30, fit="middle"), origins)
    return table_of("Sessions", columns)


def _drop_empty(column: Column, cells: Sequence[str]) -> list[tuple[Column, Sequence[str]]]:
    """Leave out a column that says nothing of any session."""
    return [(column, cells)] if any(cells) else []


def readable_question(question: str) -> str:
    """Leave out the sentence that only reviewers need."""
    return question.removesuffix(NO_QUESTION).rstrip()


def question_beginning(question: str, most: int = BEGINNING) -> str:
    """Shorten a question to one line."""
    plain = " ".join(readable_question(question).split())
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def outcome_text(line: SessionSummary, *, with_names: bool) -> str:
    """Name a session's leader and its probability; empty: nothing was counted.

    Parameters
    ----------
    with_names
        Name the leader of a session whose page hides names; that of imported ballots is named.
    """
    if line.rule is None and line.leader is None:
        return ""
    sure = "" if line.p_best is None else f"{chance_percent(line.p_best)} likely to be best"
    leader = line.leader_seat or line.leader
    if leader is None:
        return f"Several lead, the likeliest {sure}" if sure else "No single leader"
    if with_names or not line.has_events:
        return f"{leader} leads{f', {sure}' * bool(sure)}"
    return f"The leader is {sure}" if sure else "One answer leads"


def cost_of(line: SessionSummary) -> str:
    """Word the cost of a session; empty: it is unknown."""
    return "" if line.cost_usd is None else cost_text(Cost(*(line.cost_usd,) * 3))


def relation_text(relation: str | None, parent: str) -> str:
    """Name the parent of a session and its relation to it."""
    return f"{AS_CHILD.get(relation, AS_CHILD[None])} {parent}"


def origin_text(line: SessionSummary, parent: str | None = None) -> str:
    """Name a session's file and parent; empty: neither.

    Parameters
    ----------
    parent
        Name of that session, where not its whole one.
    """
    parts = [f"imported from {Path(line.source).name}"] if line.imported else []
    if line.parent is not None:
        parts.append(relation_text(line.relation, parent or line.parent))
    return ", ".join(parts)


SHOWN = 10
"""Sessions that are named."""


def deletion_report(result: Deletion) -> Report:
    """Write the report of a deletion."""
    names = list_text(result.sessions)
    finding = f"{count_noun(len(result.sessions), 'session')} forgotten."
    return Report("Deletion", (names,) if names else (), finding, tuple(_notes(result)))


def _notes(result: Deletion) -> Iterator[Note]:
    if result.note is not None:
        yield Note(result.note, "warning")
    if result.children:
        alone = len(result.children) == 1
        names = [f"{session} ({relation})" for session, relation in result.children.items()]
        hold, them = ("holds", "it") if alone else ("hold", "them")
        yield Note(
            f"{list_text(names, most=SHOWN)} still {hold} text that was deleted: "
            f"delete {them} as well",
            "warning",
        )
