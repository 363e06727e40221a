"""A session as one HTML file, for commands, programs and clients that do not reach the page."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from witan.core.ballot import Ballot
from witan.deliberation.session import Session
from witan.errors import MissingExtra

if TYPE_CHECKING:
    from witan.service.session_records import ImportedSession

__all__ = ["imported_to_html", "session_to_html"]


def session_to_html(
    session: Session,
    *,
    children: Mapping[str, str] | None = None,
    votes: Sequence[Ballot] = (),
) -> str:
    """Write a page with its own styles, no script, nothing fetched.

    Parameters
    ----------
    children
        Name of each session that came of it, and what it is to this one.
    votes
        Ballots of people.

    Raises
    ------
    MissingExtra
        If what writes pages is not installed.
    """
    try:
        from witan.surfaces.web.rendering import export_html
    except ModuleNotFoundError as error:
        raise MissingExtra("a page of a session", "serve") from error
    return export_html(session, children=children, votes=votes)


def imported_to_html(imported: "ImportedSession") -> str:
    """Write the page of an imported session, likewise.

    Raises
    ------
    MissingExtra
        If what writes pages is not installed.
    """
    try:
        from witan.surfaces.web.rendering import export_imported_html
    except ModuleNotFoundError as error:
        raise MissingExtra("a page of a session", "serve") from error
    return export_imported_html(imported)
