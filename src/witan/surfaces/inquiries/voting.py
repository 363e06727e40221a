"""A person's vote: cast blind, then everything is revealed."""

from dataclasses import replace

from witan.adapters.history import History
from witan.adapters.system_clock import SystemClock
from witan.adapters.voting_papers import Paper, Revealed, reveal
from witan.core.ballot import Groups
from witan.core.blind_vote import cast
from witan.errors import HistoryError

__all__ = ["check_unvoted", "vote"]

AFTERWARDS = "cast again, after it was revealed who wrote what"
"""The note of a ballot that took the place of an earlier one."""


def check_unvoted(history: History, paper: Paper, *, replacing: bool) -> None:
    """Refuse a second vote of the same person, unless it is to take the place of the first.

    Raises
    ------
    HistoryError
        If the person has voted on the session.
    """
    if paper.earlier is not None and not replacing:
        problem = f"{paper.sheet.reviewer} has voted on {paper.session}"
        remedy = "to take that vote back, ask for it to be replaced"
        raise HistoryError(history.database.where, problem, remedy)


def vote(history: History, paper: Paper, groups: Groups) -> Revealed:
    """Keep a person's ranking; then say who wrote what, and how the panel ranked it.

    Raises
    ------
    HistoryError
        If it cannot be kept.
    """
    ballot = cast(paper.sheet, groups, paper.session, SystemClock().now())
    if paper.earlier is not None:
        ballot = replace(ballot, notes=AFTERWARDS)
    history.vote(paper.session, [ballot], replacing=paper.earlier is not None)
    return reveal(history, paper, groups)
