"""The pages over all sessions: history, leaderboard, audit."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

import anyio
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from witan.analytics.sources import check_rule
from witan.core.settings import AUTO
from witan.core.window import Window
from witan.errors import InvalidParameter, WitanError
from witan.history import History, PageCursor, Search, SessionSummary
from witan.service.dates import moment
from witan.service.dispatch import perform
from witan.service.operations.audit import AuditParameters, audit
from witan.service.operations.leaderboard import (
    LeaderboardParameters,
    leaderboard,
    scores_over_time,
)
from witan.service.operations.sessions import history_of
from witan.service.text import clean
from witan.surfaces.http.access import ClientOf, ServiceOf
from witan.surfaces.http.problems import said_of, status_of
from witan.surfaces.views.audit import audit_view
from witan.surfaces.views.leaderboard import board_view
from witan.surfaces.views.session import session_rules
from witan.surfaces.views.sessions import session_rows
from witan.surfaces.web.generated import form_fields, read_query, takes_query
from witan.surfaces.web.rendering import Site, render
from witan.surfaces.web.reporting import Report, reported
from witan.surfaces.web.responses import Page, site_of

router = APIRouter()


STATUSES = ("complete", "degraded", "failed", "interrupted")

PAGE = 30
"""Sessions on a page of the history."""

SIMULATED = {"": None, "yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Filters:
    """What the filters of a page say, as they were written."""

    text: str = ""
    since: str = ""
    until: str = ""
    category: str = ""
    status: str = ""
    simulated: str = ""

    @property
    def window(self) -> Window:
        """Which sessions are meant.

        Raises
        ------
        InvalidParameter
            If a time is none.
        """
        since, until = moment("since", self.since or None), moment("until", self.until or None)
        return Window(since, until, self.category or None)


def _asked(
    since: str = "",
    until: str = "",
    category: str = "",
    *,
    text: str = "",
    status: str = "",
    simulated: str = "",
) -> Filters:
    return Filters(text, since, until, category.strip(), status, simulated)


AskedOf = Annotated[Filters, Depends(_asked)]


Show = Annotated[str, Query()]
"""What of a report is asked for."""


@router.get("/history")
async def history_page(
    request: Request,
    service: ServiceOf,
    asked: AskedOf,
    *,
    at: str = "",
    after: str = "",
) -> Response:
    """List sessions, and search them."""
    site, refused = site_of(request), None
    shown, following = list[SessionSummary](), None
    where = "" if service.history is None else service.history.database.dialect
    try:
        held = history_of(service)
        below = moment("at", at or None)
        place = None if below is None else (below, after)
        shown, following = await anyio.to_thread.run_sync(_found, held, asked, place)
    except WitanError as error:
        refused = error
    html = render(
        "history.html",
        site=site,
        given=asked,
        where=clean(where),
        statuses=STATUSES,
        rows=session_rows(shown, service.under_way),
        older="" if following is None else _link(site, asked, following),
        latest=_link(site, asked),
        paged=bool(at),
        searched=asked != Filters(),
        problem="" if refused is None else clean(said_of(request, refused)),
    )
    return Page(html, 200 if refused is None else status_of(refused))


def _found(
    history: History, asked: Filters, place: PageCursor | None
) -> tuple[list[SessionSummary], PageCursor | None]:
    """The sessions of a page, and where the next one begins."""
    window = asked.window
    if asked.simulated not in SIMULATED:
        raise InvalidParameter("simulated", asked.simulated, "yes, no or nothing")
    if asked.status not in ("", *STATUSES):
        raise InvalidParameter("status", asked.status, " or ".join(STATUSES))
    search = Search(
        asked.text or None,
        window.since,
        window.until,
        window.category,
        asked.status or None,
        simulated=SIMULATED[asked.simulated],
    )
    return history.page(search, PAGE, place)


def _link(site: Site, asked: Filters, place: PageCursor | None = None) -> str:
    fields = {name: getattr(asked, name) for name in Filters.__slots__ if getattr(asked, name)}
    if place is not None:
        at, fields["after"] = place
        fields["at"] = at.isoformat()
    return f"{site.at('history')}{'?' if fields else ''}{urlencode(fields)}"


@router.get("/leaderboard")
@takes_query(leaderboard)
async def leaderboard_page(
    request: Request,
    service: ServiceOf,
    client: ClientOf,
    *,
    trend: bool = False,
    show: Show = "",
    **query: str,
) -> Response:
    """Show the leaderboard; scores over time take a while longer."""

    def check() -> LeaderboardParameters:
        history_of(service)
        given: LeaderboardParameters = read_query(leaderboard, query)
        check_rule(given.rule)
        return given

    def count() -> object:
        given = check()
        board = perform(leaderboard, service, client, given)
        parts = scores_over_time(service.reports, given.terms) if trend else ()
        return board_view(board, parts)

    known = {name: value for name, value in request.query_params.items() if name != "show"}
    rules = tuple(name for name in session_rules() if name != AUTO)
    values = {
        "fields": form_fields(leaderboard, query, {"rule": rules}),
        "trend": trend,
        "with_trend": f"?{urlencode({**known, 'trend': '1'})}#h-trend",
    }
    report = Report("leaderboard", "parts/leaderboard.html", "Leaderboard", values)
    return await reported(request, report, check, count, show=show)


@router.get("/audit")
@takes_query(audit)
async def audit_page(
    request: Request, service: ServiceOf, client: ClientOf, *, show: Show = "", **query: str
) -> Response:
    """Show how reviewers judge, or how one does; all of it, or on one criterion."""

    def check() -> AuditParameters:
        history_of(service)
        given: AuditParameters = read_query(audit, query)
        return given

    def count() -> object:
        return audit_view(perform(audit, service, client, check()))

    reviewer, criterion = query["reviewer"], query["criterion"]
    judges = f"{clean(reviewer)} judges" if reviewer else "the reviewers judge"
    graded = f"{clean(reviewer)} grades" if reviewer else "the reviewers grade"
    title = f"How {graded} {clean(criterion)}" if criterion else f"How {judges}"
    part = "criterion" if criterion else "reviewer" if reviewer else "audit"
    values = {
        "given": query,
        "reviewer": reviewer,
        "criterion": criterion,
        "fields": form_fields(audit, query),
    }
    report = Report("audit", f"parts/{part}.html", title, values)
    return await reported(request, report, check, count, show=show)
