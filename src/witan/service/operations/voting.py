"""A person's vote: cast blind, then everything is revealed, and models as clients see them."""

from dataclasses import replace

from witan.core.ballot import Groups
from witan.core.blind_vote import cast
from witan.deliberation.ports import SystemClock
from witan.errors import HistoryConflict, MissingParameter
from witan.history import History
from witan.history.votes import Paper, Vote, VoteResult, read_vote, reveal
from witan.service.import_redaction import redact_import
from witan.service.redaction import public_names
from witan.service.sessions import Client

__all__ = ["behind", "check_unvoted", "keep_vote", "read_outward", "vote", "voter"]

AFTERWARDS = "cast again, after it was revealed who wrote what"
"""The note of a ballot that took the place of an earlier one."""

SEEN = "cast after the page of the session was seen, which tells how the panel ranked"
"""The note of a ballot whose person had been told more than the answers."""


NAMED = "cast by the names of the candidates, not blind"
"""The note of a ballot that ranks names in place of labels."""


def voter(client: Client, person: str | None = None) -> str:
    """Under which name somebody votes.

    Whoever needs no token says it. Who asks by a token votes under the name of the token, or as
    somebody within it: by the token ``team``, Ines is ``team/Ines``. Nobody votes for another.

    Raises
    ------
    MissingParameter
        If there is no name.
    """
    name = "" if person is None else person.strip()
    if not client.by_token:
        if not name:
            raise MissingParameter("as", None, "the name of who votes")
        return name
    if name in ("", client.name) or name.startswith(f"{client.name}/"):
        return name or client.name
    return f"{client.name}/{name}"


def check_unvoted(history: History, paper: Paper, *, replacing: bool) -> None:
    """Refuse a second vote of the same person, unless it is to take the place of the first.

    Raises
    ------
    HistoryConflict
        If the person has voted on the session.
    """
    if paper.earlier is not None and not replacing:
        problem = f"{paper.sheet.reviewer} has voted on {paper.session}"
        remedy = "to take that vote back, ask for it to be replaced (replace)"
        raise HistoryConflict(history.database.where, problem, remedy)


def read_outward(history: History, paper: Paper, ranking: str, code: str | None) -> Vote:
    """Read a ranking by labels, or by the names that clients see.

    Raises
    ------
    InvalidBallot, InvalidParameter
        If it is no ranking of the paper.
    """
    held = history.export(paper.session)
    names = redact_import(held)[1] if held.session_record is None else {}
    known = {names.get(name, name): name for name in paper.sheet.candidates}
    return read_vote(paper, ranking, code, known)


def vote(history: History, paper: Paper, given: Vote, *, seen: bool = False) -> VoteResult:
    """Keep a person's ranking; then say who wrote what, and how the panel ranked it.

    Raises
    ------
    HistoryError
        If it cannot be kept.
    """
    keep_vote(history, paper, given, seen=seen)
    return behind(history, paper, given.groups)


def keep_vote(history: History, paper: Paper, given: Vote, *, seen: bool = False) -> None:
    """Keep a person's ranking.

    `seen`: the person comes from a page that told before how the panel ranked.

    Raises
    ------
    HistoryError
        If it cannot be kept.
    """
    ballot = cast(paper.sheet, given.groups, paper.session, SystemClock().now())
    notes = []
    if given.by_name:
        ballot = replace(ballot, positions=None)
        notes.append(NAMED)
    if paper.earlier is not None:
        notes.append(AFTERWARDS)
    elif seen:
        notes.append(SEEN)
    if notes:
        ballot = replace(ballot, notes="; ".join(notes))
    history.vote(paper.session, [ballot], replacing=paper.earlier is not None)


def behind(history: History, paper: Paper, groups: Groups) -> VoteResult:
    """Who wrote what is on a paper, and how the panel ranked it, as clients see it."""
    revealed = reveal(history, paper, groups, redact_import)
    models = public_names(line.model for line in revealed.lines)
    lines = tuple(
        replace(line, model=models.get(line.model, line.model)) for line in revealed.lines
    )
    return replace(revealed, lines=lines)
