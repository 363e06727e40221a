"""Results in a notebook: reports as Markdown, the page of a session in a frame."""

from html import escape

from witan.deliberation.session import Session
from witan.errors import MissingExtra
from witan.surfaces.report import has_report, report_of
from witan.surfaces.report.markdown import report_markdown


def result_markdown(result: object) -> str | None:
    """Render the report of a result as Markdown; None for what has none."""
    return report_markdown(report_of(result)) if has_report(type(result)) else None


def result_html(result: object) -> str | None:
    """Render a session as its page in a frame; None for what Markdown shows.

    Its styles stay inside, and nothing in it runs. None as well where the library that writes
    pages is missing.
    """
    if not isinstance(result, Session):
        return None
    from witan.surfaces.session_pages import session_to_html

    try:
        page = session_to_html(result)
    except MissingExtra:
        return None
    attributes = 'sandbox="allow-popups" style="width: 100%; height: 40em; border: 0"'
    return f'<iframe {attributes} srcdoc="{escape(page)}"></iframe>'
