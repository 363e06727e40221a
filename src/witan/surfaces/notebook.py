"""Results in a notebook: the page of a session in a frame of its own, else the report as text."""

from collections.abc import Iterable
from html import escape

from witan.analytics.audits import AuditReport
from witan.core.comparison import Comparison
from witan.core.explanation import Explanation
from witan.core.outcome import Outcome
from witan.core.stats.leaderboard import Leaderboard
from witan.deliberation.plan import Plan
from witan.deliberation.session import Session
from witan.errors import MissingExtra
from witan.service.text import Page, readable

__all__ = ["report_html"]

PAGE = Page(ruled=True)

SESSIONS_SHOWN = 5
"""Sessions of a comparison that have a table each."""


def report_html(result: object) -> str | None:
    """Render a result as HTML for a notebook; None for what has no report."""
    if isinstance(result, Session):
        return _framed(result)
    lines = _lines(result)
    return None if lines is None else _preformatted(lines)


def _framed(session: Session) -> str:
    """Put the page of a session into a frame: its styles stay inside, and nothing in it runs."""
    from witan.surfaces.session_pages import session_to_html
    from witan.surfaces.text.session import session_text

    try:
        page = session_to_html(session)
    except MissingExtra:
        return _preformatted(session_text(PAGE, session))
    attributes = 'sandbox="allow-popups" style="width: 100%; height: 40em; border: 0"'
    return f'<iframe {attributes} srcdoc="{escape(page)}"></iframe>'


def _lines(result: object) -> Iterable[str] | None:  # noqa: PLR0911 - one a kind
    match result:
        case Outcome():
            from witan.surfaces.text.outcome import outcome_text

            return outcome_text(PAGE, result)
        case Comparison():
            from witan.surfaces.text.comparison import comparison_text

            return comparison_text(PAGE, result, result.sessions[:SESSIONS_SHOWN])
        case Explanation():
            from witan.surfaces.text.explanation import explanation_text

            return explanation_text(PAGE, result)
        case Leaderboard():
            from witan.surfaces.text.leaderboard import leaderboard_text

            return leaderboard_text(PAGE, result)
        case AuditReport():
            from witan.surfaces.text.audit import audit_text

            return audit_text(PAGE, result)
        case Plan():
            from witan.service.operations.plan import summarize_plan
            from witan.surfaces.text.plan import plan_text

            return plan_text(PAGE, summarize_plan(result, None))
        case _:
            return None


def _preformatted(lines: Iterable[str]) -> str:
    return f"<pre>{escape(readable(chr(10).join(lines)))}</pre>"
