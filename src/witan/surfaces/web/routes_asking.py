"""Pages that start sessions and estimate what they cost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import anyio
from fastapi import Request
from pydantic import ValidationError
from starlette.responses import PlainTextResponse, Response

from witan.deliberation.ports import REFERENCE, Message, Seat
from witan.deliberation.session import Session
from witan.errors import (
    ConfigError,
    HistoryConflict,
    InvalidParameter,
    NothingToCount,
    TooLarge,
    UnknownName,
    WitanError,
)
from witan.history import Search
from witan.models.scripted import demonstration
from witan.service.catalogue import redact
from witan.service.config.configuration import DEMO
from witan.service.operations.ask import (
    JudgeRequest,
    QuestionRequest,
    RejudgeRequest,
    ResumeRequest,
    RetryRequest,
)
from witan.service.operations.plan import Planner
from witan.service.parameters import (
    Parameters,
    fault_place,
    fault_words,
    parameters_of,
    parse_texts,
    read_texts,
    validate_parameters,
)
from witan.service.sessions.manager import Service
from witan.service.stored_sessions import check_continued
from witan.service.text import clean, full_sentence, list_text
from witan.surfaces.http.endpoints import ClientOf, Hops, ServiceOf
from witan.surfaces.http.problems import status_of, word_error
from witan.surfaces.report.document import Note, Report
from witan.surfaces.report.names import SeatNames, find_seat
from witan.surfaces.report.plan import estimate_text, plan_report
from witan.surfaces.report.session import readable_question
from witan.surfaces.web.forms import (
    FilledForm,
    Form,
    council_sections,
    form_fields,
    read_form,
)
from witan.surfaces.web.rendering import Choice, ListedSession, latest_sessions, render, render_ask
from witan.surfaces.web.responses import UNKEPT, HtmlPage, page_router, redirect, site_of
from witan.surfaces.web.session_page import Conversation, question_again

router = page_router()

LATEST = 8
"""Number of sessions on the first page."""

SIMULATED = Choice(DEMO, "the demonstration: scripted answers to any question")

TEXTS = ("text_1", "text_2", "text_3")
"""Fields of the texts to judge; empty ones are ignored."""


def _labels(declaration: type[Parameters], *without: str) -> dict[str, str]:
    return {e.name: e.label for e in parameters_of(declaration) if e.name not in without}


ASK_LABELS = _labels(QuestionRequest)
JUDGE_LABELS = _labels(JudgeRequest, "texts", "files") | {
    name: name.replace("_", " ").capitalize() for name in TEXTS
}
JURY_LABELS = _labels(RejudgeRequest, "session")
"""Fields of each form, and their labels."""

BY_HAND = ("files", "conversation")
"""Fields that are not the text of a parameter."""

REFUSED = (WitanError, ValidationError)
"""Errors after which a form is shown again."""

ROLES = ("system", "user", "assistant")

AT_A_FIELD = (ConfigError, InvalidParameter, TooLarge, UnknownName, ValidationError)
"""Errors of a request on a session that show its form again; others have their own page."""

_FIELD_OF = {"session": "parent", "seat": "members", "texts": TEXTS[0]}
"""Field of the form by parameter, or by kind of name in an error."""


@router.get("/")
async def show_question_form(
    request: Request, service: ServiceOf, parent: str = "", profile: str = "", again: str = ""
) -> Response:
    """Ask for a question: new, a follow-up, or an edited one."""
    values = {"parent": parent, "profile": profile}
    if again:
        councils = site_of(request).councils
        values = question_again(await service.session(again), councils)
    return await _form(request, service, FilledForm(values))


@router.post("/plan")
async def plan(request: Request, service: ServiceOf, client: ClientOf) -> Response:
    """Show what the question would cost, above the form."""
    form = await read_form(request)
    try:
        session_plan = await Planner(service, client).plan(read_question(form))
    except REFUSED as error:
        return await _form(request, service, refuse_form(request, form.values, error, ASK_LABELS))
    report = plan_report(session_plan)
    if form.contents:
        note = Note("The estimate includes the files; choose them again before you ask.", "hint")
        report = replace(report, blocks=(note, *report.blocks))
    return await _form(request, service, FilledForm(form.values), plan=report)


@router.post("/plan/estimate")
async def estimate(request: Request, service: ServiceOf, client: ClientOf) -> Response:
    """State a question's cost in one line, while the user types."""
    form = await read_form(request)
    try:
        planned = await Planner(service, client).plan(read_question(form))
    except REFUSED as error:
        refused = refuse_form(request, {}, error, ASK_LABELS)
        return PlainTextResponse(refused.problem, refused.status, UNKEPT)
    return PlainTextResponse(clean(estimate_text(planned)), headers=UNKEPT)


@router.post("/sessions")
async def ask(request: Request, service: ServiceOf, client: ClientOf, hops: Hops) -> Response:
    """Put the question to the council, and redirect to the session."""
    form = await read_form(request)
    try:
        running_session = await service.start(read_question(form), client, hops)
    except REFUSED as error:
        return await _form(request, service, refuse_form(request, form.values, error, ASK_LABELS))
    return redirect(site_of(request), "sessions", running_session.id)


async def _form(
    request: Request, service: Service, form: FilledForm, plan: Report | None = None
) -> Response:
    councils = _councils(service)
    if form.value("profile") == DEMO and (form.value("parent") or form.problem):
        councils.append(SIMULATED)
    html = render_ask(
        councils,
        demo_question=demonstration(fast=True).question,
        form=form,
        plan=plan,
        latest=await anyio.to_thread.run_sync(_latest, service),
        talk=await _continued(service, form.value("parent")),
        site=site_of(request),
    )
    return HtmlPage(html, form.status)


async def _continued(service: Service, parent: str) -> Conversation | None:
    """Return the conversation that a question would continue, or None."""
    if not parent:
        return None
    try:
        before = await service.session(parent)
        check_continued(parent, before)
    except WitanError:  # the form reports the error when it is sent
        return None
    names = SeatNames.of(before, hides_names=True)
    turns = (Message(turn.role, names.quote(turn.text)) for turn in before.conversation)
    return Conversation(before.id, tuple(turns), parent=before.id)


def _councils(service: Service) -> list[Choice]:
    """List the configured councils, by their seats or purpose."""
    result = []
    for name, profile in ((name, redact(each)) for name, each in service.profiles.items()):
        seats = list_text([_name_seat(seat) for seat in profile.seats])
        if profile.jury and seats:
            seats += f", judged by {list_text([_name_seat(seat) for seat in profile.jury])}"
        about = profile.about or seats
        words = ": ".join(filter(None, [name, about])) or "the configured council"
        if name != DEMO:
            named = map(_name_seats, (profile.seats, profile.jury, profile.chairmen))
            result.append(Choice(name, words, profile.problem or "", *named))
    return result


def _name_seats(seats: Iterable[Seat]) -> tuple[tuple[str, str], ...]:
    """Name each seat, and its model if different."""
    names = ((seat.name, clean(_name_seat(seat))) for seat in seats)
    return tuple(
        (name, clean(name) if model == clean(name) else f"{clean(name)} ({model})")
        for name, model in names
    )


def _name_seat(seat: Seat) -> str:
    """Return the model of a seat, or the name of a script."""
    return seat.name if seat.simulated else seat.source or seat.name


def _latest(service: Service) -> list[ListedSession]:
    if service.history is None:
        return latest_sessions([], service.registry.sessions, most=LATEST)
    summaries, _ = service.history.page(Search(has_events=True), LATEST)
    return latest_sessions(summaries, service.registry.under_way, most=LATEST)


@router.post("/sessions/{session:path}/resume")
async def resume(request: Request, session: str, service: ServiceOf, client: ClientOf) -> Response:
    """Resume a session, or show it if it has already been resumed."""
    form = await read_form(request)
    session_id = await service.registry.resolve_session(session)
    try:
        parameters = read_texts(ResumeRequest, form.texts, {"session": session_id})
        await service.start(parameters, client)
    except (HistoryConflict, NothingToCount):
        running_session = service.registry.get(session_id)
        is_running = running_session is not None and running_session.under_way
        if not is_running and (await service.session(session_id)).status == "interrupted":
            raise
    return redirect(site_of(request), "sessions", session_id)


@router.post("/sessions/{session:path}/retry")
async def retry(request: Request, session: str, service: ServiceOf, client: ClientOf) -> Response:
    """Ask failed seats again."""
    form = await read_form(request)
    record = await service.session(session)
    running_session = await service.start(read_retry(form, record), client)
    return redirect(site_of(request), "sessions", running_session.id)


@router.post("/sessions/{session:path}/rejudge")
async def rejudge(
    request: Request, session: str, service: ServiceOf, client: ClientOf, hops: Hops
) -> Response:
    """Have another jury judge the answers."""
    form = await read_form(request)
    session_id = await service.registry.resolve_session(session)
    try:
        parameters = read_rejudging(form, session_id)
        running_session = await service.start(parameters, client, hops)
    except AT_A_FIELD as error:
        refused = refuse_form(request, form.values, error, JURY_LABELS)
        return _jury_page(request, session_id, refused)
    return redirect(site_of(request), "sessions", running_session.id)


@router.post("/sessions/{session:path}/retry/plan")
async def plan_retry(
    request: Request, session: str, service: ServiceOf, client: ClientOf
) -> Response:
    """Describe the most that asking failed seats again would cost."""
    form = await read_form(request)
    record = await service.session(session)
    planned = await Planner(service, client).plan(read_retry(form, record))
    hidden = [("seat", each) for each in form.texts.get("seat", ())]
    html = render(
        "plan.html",
        site=site_of(request),
        session=record.id,
        planned=plan_report(planned),
        hidden=[*hidden, *((name, form.get(name)) for name in ("max_cost_usd", "max_calls"))],
    )
    return HtmlPage(html)


@router.post("/sessions/{session:path}/rejudge/plan")
async def plan_rejudge(
    request: Request, session: str, service: ServiceOf, client: ClientOf
) -> Response:
    """Describe the most that another jury would cost."""
    form = await read_form(request)
    session_id = await service.registry.resolve_session(session)
    try:
        parameters = read_rejudging(form, session_id)
        planned = await Planner(service, client).plan(parameters)
    except AT_A_FIELD as error:
        refused = refuse_form(request, form.values, error, JURY_LABELS)
        return _jury_page(request, session_id, refused)
    return _jury_page(request, session_id, FilledForm(form.values), plan_report(planned))


def _jury_page(
    request: Request, session: str, form: FilledForm, plan: Report | None = None
) -> Response:
    site = site_of(request)
    html = render(
        "rejudge.html",
        site=site,
        session=session,
        juries=[name for name in site.juries if name != DEMO or form.value("profile") == DEMO],
        sections=council_sections(RejudgeRequest, exclude=("session", "profile")),
        filled=form,
        planned=plan,
    )
    return HtmlPage(html, form.status)


def read_retry(form: Form, session: Session) -> RetryRequest:
    """Read which seats to ask again, and their cost limit."""
    seats = tuple(find_seat(session, each) for each in form.texts.get("seat", ()))
    if not seats:
        raise NothingToCount("no seat is selected: select at least one failed seat")
    return read_texts(RetryRequest, form.texts, {"session": session.id, "seats": seats})


def read_rejudging(form: Form, session: str) -> RejudgeRequest:
    """Read who judges a session, and how."""
    parameters = parse_texts(RejudgeRequest, form.texts)
    return validate_parameters(RejudgeRequest, {**parameters, "session": session})


def read_question(form: Form) -> QuestionRequest:
    """Read the question and everything that accompanies it."""
    texts = {name: text for name, text in form.texts.items() if name not in BY_HAND}
    parameters = parse_texts(QuestionRequest, texts) | {"question": form.get("question")}
    parameters |= {"files": form.read_files(), "conversation": _turns(form.get("conversation"))}
    question = validate_parameters(QuestionRequest, parameters)
    demo = demonstration(fast=True)
    if question.profile != DEMO or question.question != demo.question or question.seed is not None:
        return question
    return replace(question, seed=demo.seed)


def _turns(text: str) -> list[dict[str, str]]:
    """Read turns, each of which begins with a role and a colon."""
    turns: list[dict[str, str]] = []
    for line in text.splitlines():
        role, colon, rest = line.partition(":")
        if colon and role.strip().casefold() in ROLES:
            turns.append({"role": role.strip().casefold(), "content": rest.strip()})
        elif turns:
            turns[-1]["content"] += f"\n{line}"
        else:
            roles = " or ".join(f"{each}:" for each in ROLES)
            raise InvalidParameter("conversation", line[:80], f"a line that begins with {roles}")
    return [{**turn, "content": turn["content"].strip()} for turn in turns]


def refuse_form(
    request: Request,
    values: Mapping[str, str],
    error: WitanError | ValidationError,
    labels: Mapping[str, str],
) -> FilledForm:
    """Return the filled-in form with what is wrong with it.

    Problems outside the labelled fields are shown above the form.
    """
    if isinstance(error, ValidationError):
        wrong = [
            (each["loc"], fault_words(each["type"], each["msg"], each.get("ctx")))
            for each in error.errors()
        ]
        placed = [
            (_find_field(place, labels), f"{fault_place(place)}: {words}", words)
            for place, words in wrong
        ]
        status = 422
    else:
        words = word_error(request, error)
        fault = words
        if isinstance(error, InvalidParameter):
            fault = words.removeprefix(f"{error.name} ")
        elif isinstance(error, ConfigError):
            fault = words.removeprefix(f"{error.source}: {error.key} ")
        placed, status = [(_field_of(error, values, labels), words, fault)], status_of(error)
    faults: dict[str, str] = {}
    for name, _, fault in placed:
        if name:
            faults.setdefault(name, clean(full_sentence(fault.removeprefix(f"{name} "))))
    named = (f"{labels[name]}: {fault}" if name else words for name, words, fault in placed)
    problem = clean("; ".join(named) if status == 422 else placed[0][1])
    elsewhere = clean("; ".join(words for name, words, _ in placed if not name))
    return FilledForm(values, problem, elsewhere, faults, {n: labels[n] for n in faults}, status)


def _find_field(place: Sequence[int | str], labels: Mapping[str, str]) -> str:
    """Find the field of a parameter's item, such as the second text."""
    if place[:1] == ("texts",) and len(place) > 1:
        name = str(place[1]).replace(" ", "_")
        if name in labels:
            return name
    names = (_FIELD_OF.get(str(each), str(each)) for each in place)
    return next((name for name in names if name in labels), "")


def _field_of(error: WitanError, values: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Find the field of an error, or return an empty string."""
    if isinstance(error, ConfigError):
        return _find_field(error.key.replace("[", ".").split("."), labels)
    if isinstance(error, UnknownName):
        name = _FIELD_OF.get(error.kind, error.kind)
        is_chairman = error.kind == "seat" and error.name == values.get("chairman", "").strip()
        name = "chairman" if is_chairman else name
        if name == "members" and error.name in values.get("jury", "").splitlines():
            name = "jury"
    else:
        name = error.name if isinstance(error, InvalidParameter) else ""
    return _find_field((name,), labels)


ABOUT_TEXTS = ("question", "reference", "pass_mark", "expected", "category")
"""Parameters of the judged texts, in the order of the form."""


@router.get("/judge")
async def show_judge_form(
    request: Request, service: ServiceOf, profile: str = "", again: str = ""
) -> Response:
    """Ask for texts to judge: new, or those of a session."""
    values = judged_again(await service.session(again)) if again else {"profile": profile}
    return _judge_page(request, FilledForm(values))


def judged_again(session: Session) -> dict[str, str]:
    """Return the fields of a form to judge a session's texts again."""
    opened, judging = session.opening, session.opening.judging
    question = readable_question(session.question)
    values = {
        "question": question if question == session.question else "",
        "reference": opened.files.get(REFERENCE, ""),
        "category": opened.category or "",
        **{name: each.text for name, each in zip(TEXTS, session.answers.values(), strict=False)},
    }
    if judging is not None and judging.pass_mark is not None:
        values["pass_mark"] = f"{judging.pass_mark:g}"
    return values


@router.post("/judge")
async def judge(request: Request, service: ServiceOf, client: ClientOf, hops: Hops) -> Response:
    """Have the texts judged, and redirect to the session."""
    form = await read_form(request)
    try:
        running_session = await service.start(read_judgment(form), client, hops)
    except REFUSED as error:
        return _judge_page(request, refuse_form(request, form.values, error, JUDGE_LABELS))
    return redirect(site_of(request), "sessions", running_session.id)


@router.post("/judge/plan")
async def plan_judge(request: Request, service: ServiceOf, client: ClientOf) -> Response:
    """Show what the judgment would cost, above the form."""
    form = await read_form(request)
    try:
        planned = await Planner(service, client).plan(read_judgment(form))
    except REFUSED as error:
        return _judge_page(request, refuse_form(request, form.values, error, JUDGE_LABELS))
    return _judge_page(request, FilledForm(form.values), plan_report(planned))


def read_judgment(form: Form) -> JudgeRequest:
    """Read the texts, and the standard to judge them by."""
    options = {name: text for name, text in form.texts.items() if name not in TEXTS}
    texts = {name.replace("_", " "): form.get(name) for name in TEXTS if form.get(name)}
    parameters = parse_texts(JudgeRequest, options)
    return validate_parameters(JudgeRequest, {**parameters, "texts": texts})


def _judge_page(request: Request, form: FilledForm, plan: Report | None = None) -> Response:
    site = site_of(request)
    fields = {each.name: each for each in form_fields(JudgeRequest, {})}
    fields["reference"] = replace(fields["reference"], kind="lines")
    html = render(
        "judge.html",
        site=site,
        texts=TEXTS,
        by_hand=[fields[name] for name in ABOUT_TEXTS],
        juries=[name for name in site.juries if name != DEMO or form.value("profile") == DEMO],
        sections=council_sections(
            JudgeRequest, exclude=(*ABOUT_TEXTS, "texts", "files", "profile")
        ),
        filled=form,
        planned=plan,
    )
    return HtmlPage(html, form.status)
