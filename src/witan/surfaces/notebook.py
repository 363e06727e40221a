"""Results in a notebook: reports as Markdown, the page of a session in a frame, others as text."""

from collections.abc import Iterable
from html import escape

from witan.core.comparison import Comparison
from witan.deliberation.plan import Plan
from witan.deliberation.session import Session
from witan.errors import MissingExtra
from witan.service.text import Page, readable
from witan.surfaces.report import has_report, report_of
from witan.surfaces.report.markdown import report_markdown

PAGE = Page(ruled=True)

SESSIONS_SHOWN = 5
"""Sessions of a comparison that have a table each."""


def result_markdown(result: object) -> str | None:
    """Render the report of a result as Markdown; None for what has none."""
    return report_markdown(report_of(result)) if has_report(type(result)) else None


def result_html(result: object) -> str | None:
    """Render a result without a report as HTML; None for what is shown otherwise."""
    if isinstance(result, Session):
        return _framed(result)
    lines = _lines(result)
    return None if lines is None else _preformatted(lines)


def _framed(session: Session) -> str | None:
    """Put the page of a session into a frame: its styles stay inside, and nothing in it runs.

    None where the library that writes pages is missing; its report is then shown as Markdown.
    """
    from witan.surfaces.session_pages import session_to_html

    try:
        page = session_to_html(session)
    except MissingExtra:
        return None
    attributes = 'sandbox="allow-popups" style="width: 100%; height: 40em; border: 0"'
    return f'<iframe {attributes} srcdoc="{escape(page)}"></iframe>'


def _lines(result: object) -> Iterable[str] | None:
    match result:
        case Comparison():
            from witan.surfaces.text.comparison import comparison_text

            return comparison_text(PAGE, result, result.sessions[:SESSIONS_SHOWN])
        case Plan():
            from witan.service.operations.plan import summarize_plan
            from witan.surfaces.text.plan import plan_text

            return plan_text(PAGE, summarize_plan(result, None))
        case _:
            return None


def _preformatted(lines: Iterable[str]) -> str:
    return f"<pre>{escape(readable(chr(10).join(lines)))}</pre>"
