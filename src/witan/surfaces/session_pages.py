"""A session or a report as one HTML file, without a server."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from witan.core.ballot import Ballot
from witan.deliberation.session import Session
from witan.errors import MissingExtra

if TYPE_CHECKING:
    from witan.service.session_records import CouncilSession, ImportedSession
    from witan.surfaces.report import Report


def session_to_html(
    session: "Session | CouncilSession | ImportedSession",
    *,
    children: Mapping[str, str] | None = None,
    votes: Sequence[Ballot] = (),
) -> str:
    """Write a page with its own styles, no script, nothing fetched.

    Parameters
    ----------
    children
        Name of each session that came of a `Session`, and what it is to this one.
    votes
        Ballots of people on a `Session`.

    Raises
    ------
    MissingExtra
        If what writes pages is not installed.
    """
    try:
        from witan.surfaces.web.rendering import export_html
    except ModuleNotFoundError as error:
        raise MissingExtra("a page of a session", "serve") from error
    if isinstance(session, Session):
        from witan.service.session_records import CouncilSession

        session = CouncilSession(session, tuple(votes), children or {})
    return export_html(session)


def report_to_html(report: "Report") -> str:
    """Write a report as such a page.

    Raises
    ------
    MissingExtra
        If what writes pages is not installed.
    """
    try:
        from witan.surfaces.web.rendering import export_report_html
    except ModuleNotFoundError as error:
        raise MissingExtra("a page of a report", "serve") from error
    return export_report_html(report)
