"""Reports that may take long to count: a page comes at once, and asks for the rest of itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import anyio
from fastapi import Request
from starlette.responses import Response

from witan.errors import NothingToCount, WitanError
from witan.service.text import clean
from witan.service.worker_pool import once
from witan.surfaces.http.generated import while_connected
from witan.surfaces.http.problems import said_of, status_of
from witan.surfaces.web.rendering import Site, render
from witan.surfaces.web.responses import Page, site_of

__all__ = ["ReportPage", "reported"]

PART, WHOLE = "part", "whole"
"""What of a report the address asks for: what was counted alone, or a page that waits for it."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report on its page.

    Parameters
    ----------
    page
        Name of its page, and of the template of it.
    body
        Template of what was counted.
    title
        What stands above it until then.
    values
        What the page shows beside it.
    """

    page: str
    body: str
    title: str
    values: Mapping[str, Any]

    def render(self, template: str, site: Site, **values: Any) -> str:
        """A template with everything but what is given here empty."""
        empty = {"view": None, "empty": "", "problem": "", "waiting": None}
        own = {"body": self.body, "title": self.title}
        return render(template, site=site, **{**empty, **own, **self.values, **values})


@dataclass(frozen=True, slots=True)
class Waiting:
    """Where a page that waits has the rest from: by a script, or without one."""

    part: str
    whole: str


async def reported(
    request: Request,
    report: ReportPage,
    check: Callable[[], object],
    count: Callable[[], object],
    *,
    show: str,
) -> Response:
    """Answer with the page of a report, or with what it asks for.

    Parameters
    ----------
    check
        Raises what is known to be wrong before anything is counted.
    count
        Gives the view; it may take long.
    show
        What of it is asked for: `PART`, `WHOLE`, or a page that waits.
    """
    site = site_of(request)
    template = "report_part.html" if show == PART else f"{report.page}.html"
    try:
        check()
        if show not in (PART, WHOLE):
            return Page(report.render(template, site, waiting=_waiting(request, report, site)))
        wanted = (request.app.state.service, report.page, tuple(_query(request)))
        view = await while_connected(request, lambda: once(wanted, count))
        html = await anyio.to_thread.run_sync(lambda: report.render(template, site, view=view))
    except NothingToCount as error:
        return Page(report.render(template, site, empty=clean(said_of(request, error))))
    except WitanError as error:
        html = report.render(template, site, problem=clean(said_of(request, error)))
        return Page(html, status_of(error))
    return Page(html)


def _waiting(request: Request, report: ReportPage, site: Site) -> Waiting:
    part, whole = (urlencode([*_query(request), ("show", show)]) for show in (PART, WHOLE))
    return Waiting(f"{site.at(report.page)}?{part}", f"{site.at(report.page)}?{whole}")


def _query(request: Request) -> list[tuple[str, str]]:
    """What the report is asked for, as the address has it."""
    return [pair for pair in request.query_params.multi_items() if pair[0] != "show"]
