"""Show pages of reports, and counts of ballots that are not stored."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import anyio
from fastapi import APIRouter, Request
from starlette.responses import Response

from witan.analytics.sources import check_rule
from witan.core.settings import AUTO
from witan.errors import InvalidParameter, NothingToCount, WitanError
from witan.history import SessionSummary
from witan.service.ballots import SentBallots, find_ballots
from witan.service.catalogue import CATALOGUE, Operation, find_operation
from witan.service.dispatch import ServedSessions, dispatch, perform
from witan.service.operations.reports import (
    LeaderboardParameters,
    audit,
    leaderboard,
    scores_over_time,
)
from witan.service.operations.sessions import sessions
from witan.service.operations.voting import votes
from witan.service.parameters import read_texts
from witan.service.sessions.manager import Service
from witan.service.sessions.spending import Client
from witan.service.text import clean
from witan.service.worker_pool import count_once
from witan.surfaces.http.endpoints import ClientOf, ServiceOf, run_while_connected
from witan.surfaces.http.problems import status_of, word_error
from witan.surfaces.report import report_of
from witan.surfaces.report.audit import audit_title
from witan.surfaces.report.document import Link
from witan.surfaces.report.leaderboard import leaderboard_report
from witan.surfaces.web.forms import Field, form_fields, query_texts, read_form, read_query
from witan.surfaces.web.rendering import Site, list_sessions, render
from witan.surfaces.web.responses import HtmlPage, page_router, site_of
from witan.surfaces.web.session_page import session_rules

router = page_router()

report_router = APIRouter(include_in_schema=False)
"""Pages that read the parameters of an operation themselves."""

PART, WHOLE = "part", "whole"
"""Values of `show`: the report alone, or the page without waiting."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report on its page.

    `body`: template of the result.
    `values`: further values of the page; `title` is shown until the result is available.
    """

    page: str
    body: str
    values: Mapping[str, Any]
    template: str

    def render(self, template: str, site: Site, **values: Any) -> str:
        """Render a template; missing values are empty."""
        empty = {"view": None, "empty": "", "problem": "", "waiting": None}
        return render(template, site=site, **{**empty, "body": self.body, **self.values, **values})


@report_router.get("/history")
async def history_page(
    request: Request,
    service: ServiceOf,
    client: ClientOf,
    *,
    reveal: bool = False,
) -> Response:
    """List sessions day by day, and search them; `reveal` names leaders."""
    query = query_texts(request, sessions, "reveal")
    site, failure = site_of(request), None
    fields = form_fields(sessions.parameters, query, exclude=["after"])
    summaries, following = tuple[SessionSummary, ...](), None
    filters = {name: value for name, value in query.items() if value and name != "after"}
    after = {"after": query["after"]} if query["after"] else {}
    names = {"reveal": "1"} if reveal else {}
    try:
        parameters = read_query(sessions, query)
        answer = await dispatch(sessions, service, client, parameters, lambda result: result)
        summaries, following = answer.sessions, answer.next
    except WitanError as error:
        failure = error
    html = render(
        "history.html",
        site=site,
        fields=fields,
        rows=list_sessions(summaries, service.registry.under_way),
        reveal=reveal,
        hides=not reveal and any(each.has_events and each.leader for each in summaries),
        with_names=_link(site, {**filters, **after, "reveal": "1"}),
        older="" if following is None else _link(site, {**filters, **names, "after": following}),
        latest=_link(site, {**filters, **names}),
        without_names=_link(site, {**filters, **after}),
        paged=bool(after),
        searched=bool(filters),
        has_filters=any(name != "text" for name in filters),
        problem="" if failure is None else _word(request, failure, fields),
    )
    return HtmlPage(html, 200 if failure is None else status_of(failure))


def _word(request: Request, error: WitanError, fields: Iterable[Field]) -> str:
    """Describe an error for a page, by the labels of its form."""
    words = word_error(request, error)
    label = next((f.label for f in fields if words.startswith(f"{f.name} ")), "")
    return clean(f"{label} {words.partition(' ')[2]}" if label else words)


def _link(site: Site, query: Mapping[str, str]) -> str:
    return f"{site.at('history')}{'?' if query else ''}{urlencode(query)}"


@report_router.get("/leaderboard")
async def leaderboard_page(
    request: Request,
    service: ServiceOf,
    client: ClientOf,
    *,
    trend: bool = False,
    show: str = "",
) -> Response:
    """Show the leaderboard; scores over time take longer."""
    query = query_texts(request, leaderboard, "trend", "show")

    def check() -> LeaderboardParameters:
        parameters: LeaderboardParameters = _read_parameters(leaderboard, service, client, query)
        check_rule(parameters.rule)
        return parameters

    def count() -> object:
        parameters = check()
        board = perform(leaderboard, service, client, parameters)
        parts = scores_over_time(service.reports, parameters.terms) if trend else None
        return leaderboard_report(board, parts)

    page_query = {name: value for name, value in request.query_params.items() if name != "show"}
    rules = tuple(name for name in session_rules() if name != AUTO)
    values = {
        "title": "Leaderboard",
        "fields": form_fields(leaderboard.parameters, query, choices={"rule": rules}),
        "has_filters": any(query.values()),
        "trend": trend,
        "with_trend": f"?{urlencode({**page_query, 'trend': '1'})}#h-trend",
    }
    report = ReportPage("leaderboard", "parts/leaderboard.html", values, "leaderboard.html")
    return await answer_report(request, report, check, count, show=show)


@report_router.get("/audit")
async def audit_page(
    request: Request, service: ServiceOf, client: ClientOf, *, show: str = ""
) -> Response:
    """Show the audit, with links from one reviewer or criterion to all."""
    query = query_texts(request, audit, "show")
    reviewer, criterion = query["reviewer"], query["criterion"]
    values = {
        "title": audit_title(reviewer, criterion),
        "back": _back(reviewer, criterion),
        "kept": {name: query[name] for name in KEPT if query[name]},
        "fields": form_fields(audit.parameters, query),
        "has_filters": any(value for name, value in query.items() if name != "reviewer"),
    }
    report = ReportPage("audit", "parts/counted.html", values, "audit.html")
    check, count = _check_and_count(audit, service, client, query)
    return await answer_report(request, report, check, count, show=show)


@report_router.get("/votes")
async def votes_page(
    request: Request, service: ServiceOf, client: ClientOf, *, show: str = ""
) -> Response:
    """Show how a person's votes match the panels' verdicts."""
    query = query_texts(request, votes, "show")
    person = query["as"].strip()
    values = {
        "title": f"Votes by {person}" if person else "Your votes and the panels",
        "back": (),
        "kept": {},
        "fields": form_fields(votes.parameters, {**query, "as": person}),
        "has_filters": any(query[name] for name in KEPT),
        "is_unnamed": not person and not client.by_token,
    }
    report = ReportPage("votes", "parts/counted.html", values, "votes.html")
    if values["is_unnamed"]:
        return HtmlPage(report.render("votes.html", site_of(request)))
    check, count = _check_and_count(votes, service, client, query)
    return await answer_report(request, report, check, count, show=show)


def _check_and_count(
    operation: Operation[Any, Any], service: Service, client: Client, query: Mapping[str, str]
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return the functions that check a report's parameters and make it."""
    check = partial(_read_parameters, operation, service, client, query)
    return check, lambda: report_of(perform(operation, service, client, check()))


def _read_parameters(
    operation: Operation[Any, Any], service: Service, client: Client, query: Mapping[str, str]
) -> Any:
    _ = ServedSessions(service, client).history
    return read_query(operation, query)


KEPT = ("since", "until", "category", "level")
"""Parameters of an audit that its links preserve."""


def _back(reviewer: str, criterion: str) -> list[tuple[str, Link]]:
    """Add links from an audit of a part to wider audits."""
    links = []
    if reviewer and criterion:
        links.append((f"All reviewers on {criterion}", Link("audit", {"criterion": criterion})))
        links.append((f"Everything of {reviewer}", Link("audit", {"reviewer": reviewer})))
    if criterion:
        links.append(("The whole audit", Link("audit", {})))
    elif reviewer:
        links.append(("All reviewers", Link("audit", {})))
    return links


async def answer_report(
    request: Request,
    report: ReportPage,
    check: Callable[[], object],
    count: Callable[[], object],
    *,
    show: str,
) -> Response:
    """Answer with the page of a report, or a part.

    `check` raises known errors before anything is counted; `count` returns the view, and may take
    long; `show` is `PART`, `WHOLE`, or otherwise a page that waits.
    """
    site = site_of(request)
    template = "report_part.html" if show == PART else report.template
    try:
        check()
        if show not in (PART, WHOLE):
            waiting = _addresses(request, report, site)
            return HtmlPage(report.render(template, site, waiting=waiting))
        key = (request.app.state.service, report.page, tuple(_query(request)))
        view = await run_while_connected(request, lambda: count_once(key, count))
        html = await anyio.to_thread.run_sync(lambda: report.render(template, site, view=view))
    except NothingToCount as error:
        return HtmlPage(report.render(template, site, empty=clean(word_error(request, error))))
    except WitanError as error:
        html = report.render(template, site, problem=_word(request, error, report.values["fields"]))
        return HtmlPage(html, status_of(error))
    return HtmlPage(html)


def _addresses(request: Request, report: ReportPage, site: Site) -> dict[str, str]:
    """Return the addresses of the rest, with a script and without."""
    part, whole = (urlencode([*_query(request), ("show", show)]) for show in (PART, WHOLE))
    path = site.at(report.page)
    return {"part_url": f"{path}?{part}", "whole_url": f"{path}?{whole}"}


def _query(request: Request) -> list[tuple[str, str]]:
    return [pair for pair in request.query_params.multi_items() if pair[0] != "show"]


NOTHING: Mapping[str, str] = MappingProxyType({})


FIRST_FIELDS = ("rule", "rules", "session", "against", "reviewers", "pass_mark")
"""Parameters shown next to the ballots, because a count may need them."""


def add_counting_page(operation: Operation[Any, Any], *, has_default: bool) -> None:
    """Add the page of an operation on ballots; with `has_default` they are optional."""

    def write(request: Request, values: Mapping[str, str] = NOTHING, **result: Any) -> str:
        fields = form_fields(operation.parameters, values, exclude=["ballots"])
        chosen = [each for each in fields if each.name in FIRST_FIELDS]
        others = [each for each in fields if each.name not in FIRST_FIELDS]
        changed = any(values.get(each.name, "").strip() for each in others)
        return render(
            "counting.html",
            site=site_of(request),
            page=operation.name,
            title=operation.summary.removesuffix("."),
            labels=COUNTING_PAGES,
            text=values.get("ballots", ""),
            chosen=chosen,
            fields=others,
            changed=changed,
            **{"view": None, "problem": "", **result},
        )

    async def show_form(request: Request) -> Response:
        return HtmlPage(write(request))

    async def count(request: Request, service: ServiceOf, client: ClientOf) -> Response:
        form = await read_form(request)
        values = form.fields
        try:
            ballots = _ballots(values.get("ballots", ""), form.contents.values())
            ballot_arguments = (
                {"ballots": ballots} if ballots.content.strip() or not has_default else {}
            )
            parameters = read_texts(operation.parameters, form.texts, ballot_arguments)

            def work() -> Awaitable[str]:
                return dispatch(
                    operation,
                    service,
                    client,
                    parameters,
                    lambda result: write(request, values, view=report_of(result)),
                )

            return HtmlPage(await run_while_connected(request, work))
        except WitanError as error:
            problem = _word(request, error, form_fields(operation.parameters, {}))
            return HtmlPage(write(request, values, problem=problem), status_of(error))

    path = f"/{operation.name}"
    router.add_api_route(path, show_form, methods=["GET"])
    router.add_api_route(path, count, methods=["POST"])


def _ballots(text: str, files: Iterable[bytes]) -> SentBallots:
    contents = [*files, *([text.encode()] if text.strip() else [])]
    if len(contents) > 1:
        raise InvalidParameter("ballots", "more than one text", "one: written here, or in a file")
    return SentBallots(contents[0] if contents else text.encode())


def _add_pages() -> Iterator[tuple[str, str]]:
    """Add the page of each operation on ballots; yield its name and label."""
    for row in CATALOGUE.values():
        operation = find_operation(row.name)
        ballots = find_ballots(operation.parameters)
        if ballots is not None:
            add_counting_page(operation, has_default=not ballots.required)
            yield row.name, row.label or row.name.capitalize()


COUNTING_PAGES: Mapping[str, str] = MappingProxyType(dict(_add_pages()))
"""Operations on ballots, and the label of each."""
