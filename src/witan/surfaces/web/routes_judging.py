"""Pages that have texts judged, and say what that would cost."""

from collections.abc import Mapping
from dataclasses import replace

from fastapi import Request
from pydantic import ValidationError
from starlette.responses import Response

from witan.errors import WitanError
from witan.service.operations import plan as planning
from witan.service.parameters import parameters_of, parse_texts, validate_parameters
from witan.service.requests import JudgeRequest
from witan.service.sessions import DEMO
from witan.surfaces.http.endpoints import ClientOf, Hops, ServiceOf
from witan.surfaces.report.document import Report
from witan.surfaces.report.plan import plan_report
from witan.surfaces.web.forms import (
    FilledForm,
    Form,
    council_sections,
    form_fields,
    read_form,
)
from witan.surfaces.web.rendering import render
from witan.surfaces.web.responses import HtmlPage, page_router, redirect, site_of
from witan.surfaces.web.routes_asking import refuse_form

router = page_router()

TEXTS = ("text_1", "text_2", "text_3")
"""Fields of the texts; empty ones are none."""

BY_HAND = ("question", "reference", "pass_mark", "expected", "category")
"""Parameters of what is judged, in the order of the form."""


@router.get("/judge")
async def show_judge_form(request: Request, profile: str = "") -> Response:
    """Ask for texts to judge."""
    return _page(request, FilledForm({"profile": profile}))


@router.post("/judge")
async def judge(request: Request, service: ServiceOf, client: ClientOf, hops: Hops) -> Response:
    """Have the texts judged, and go to watch it."""
    values: Mapping[str, str] = {}
    try:
        form = await read_form(request)
        values = form.values
        running_session = await service.judge(read_judgment(form), client, hops)
    except (WitanError, ValidationError) as error:
        return _page(request, refuse_form(request, values, error))
    return redirect(site_of(request), "sessions", running_session.id)


@router.post("/judge/plan")
async def plan_judge(request: Request, service: ServiceOf, client: ClientOf) -> Response:
    """Show what the judgment would cost, above the form."""
    values: Mapping[str, str] = {}
    try:
        form = await read_form(request)
        values = form.values
        planned = await planning.plan_judge.handler(
            planning.Planner(service, client), read_judgment(form)
        )
    except (WitanError, ValidationError) as error:
        return _page(request, refuse_form(request, values, error))
    return _page(request, FilledForm(values), plan_report(planned))


def read_judgment(form: Form) -> JudgeRequest:
    """Read the texts, and what they are held to.

    Raises
    ------
    WitanError, ValidationError
        If a field is not accepted.
    """
    options = {name: text for name, text in form.texts.items() if name not in TEXTS}
    texts = {name.replace("_", " "): form.get(name) for name in TEXTS if form.get(name)}
    parameters = parse_texts(JudgeRequest, options)
    return validate_parameters(JudgeRequest, {**parameters, "texts": texts})


def _page(request: Request, form: FilledForm, plan: Report | None = None) -> Response:
    site = site_of(request)
    names = [each.name for each in parameters_of(JudgeRequest)]
    fields = {
        each.name: each
        for each in form_fields(JudgeRequest, {}, exclude=[n for n in names if n not in BY_HAND])
    }
    fields["reference"] = replace(fields["reference"], kind="lines")
    html = render(
        "judge.html",
        site=site,
        texts=TEXTS,
        by_hand=[fields[name] for name in BY_HAND],
        juries=[name for name in site.juries if name != DEMO or form.value("profile") == DEMO],
        sections=council_sections(JudgeRequest, exclude=(*BY_HAND, "texts", "files", "profile")),
        filled=form,
        planned=plan,
    )
    return HtmlPage(html, form.status)
