"""The pages over all sessions: history, leaderboard, audit."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from witan.analytics.sources import check_rule
from witan.core.settings import AUTO
from witan.errors import WitanError
from witan.history import SessionSummary
from witan.service.dispatch import dispatch, perform
from witan.service.operations.audit import AuditParameters, audit
from witan.service.operations.leaderboard import (
    LeaderboardParameters,
    leaderboard,
    scores_over_time,
)
from witan.service.operations.session_list import sessions
from witan.service.operations.sessions import history_of
from witan.service.text import clean
from witan.surfaces.http.generated import ClientOf, ServiceOf
from witan.surfaces.http.problems import said_of, status_of
from witan.surfaces.report.leaderboard import leaderboard_report
from witan.surfaces.views.audit import audit_view
from witan.surfaces.views.session import session_rules
from witan.surfaces.views.sessions import session_rows
from witan.surfaces.web.generated import form_fields, read_query, takes_query
from witan.surfaces.web.rendering import Site, render
from witan.surfaces.web.reporting import ReportPage, reported
from witan.surfaces.web.responses import Page, site_of

router = APIRouter()


Show = Annotated[str, Query()]
"""What of a report is asked for."""


@router.get("/history")
@takes_query(sessions)
async def history_page(
    request: Request, service: ServiceOf, client: ClientOf, **query: str
) -> Response:
    """List sessions, and search them."""
    site, refused = site_of(request), None
    shown, following = tuple[SessionSummary, ...](), None
    searched = {name: value for name, value in query.items() if value and name != "after"}
    try:
        given = read_query(sessions, query)
        found = await dispatch(sessions, service, client, given, lambda result: result)
        shown, following = found.sessions, found.next
    except WitanError as error:
        refused = error
    html = render(
        "history.html",
        site=site,
        fields=[each for each in form_fields(sessions, query) if each.name != "after"],
        rows=session_rows(shown, service.under_way),
        older="" if following is None else _link(site, {**searched, "after": following}),
        latest=_link(site, searched),
        paged=bool(query["after"]),
        searched=bool(searched),
        problem="" if refused is None else clean(said_of(request, refused)),
    )
    return Page(html, 200 if refused is None else status_of(refused))


def _link(site: Site, query: Mapping[str, str]) -> str:
    return f"{site.at('history')}{'?' if query else ''}{urlencode(query)}"


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
        parts = scores_over_time(service.reports, given.terms) if trend else None
        return leaderboard_report(board, parts)

    known = {name: value for name, value in request.query_params.items() if name != "show"}
    rules = tuple(name for name in session_rules() if name != AUTO)
    values = {
        "fields": form_fields(leaderboard, query, {"rule": rules}),
        "trend": trend,
        "with_trend": f"?{urlencode({**known, 'trend': '1'})}#h-trend",
    }
    report = ReportPage("leaderboard", "parts/leaderboard.html", "Leaderboard", values)
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
    report = ReportPage("audit", f"parts/{part}.html", title, values)
    return await reported(request, report, check, count, show=show)
