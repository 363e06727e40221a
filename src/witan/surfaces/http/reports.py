"""The native API: what is kept, counted again, summed up, and what somebody brings along."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import anyio
from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import Response as PlainResponse

from witan.adapters.voting_papers import Paper, voting_paper
from witan.core.blind_vote import read_ranking
from witan.core.leaderboard import Terms
from witan.core.outcome import Outcome
from witan.core.window import Window
from witan.errors import InvalidBallot, InvalidParameter
from witan.surfaces.chamber import Asker, Chamber
from witan.surfaces.http import examples
from witan.surfaces.http.access import asker_of, chamber_of
from witan.surfaces.http.documents import ANY_TIME, TOKEN, SessionNamed
from witan.surfaces.http.parameters import known_parameters
from witan.surfaces.http.schemas import RecountBody, VoteBody
from witan.surfaces.inquiries import catalogues, posted, reports
from witan.surfaces.inquiries.chambers import count_again, history_of
from witan.surfaces.inquiries.chambers import profiles as catalogue_of
from witan.surfaces.inquiries.in_turn import in_turn
from witan.surfaces.inquiries.recounting import settings_given
from witan.surfaces.inquiries.voting import check_unvoted, vote, voter
from witan.surfaces.json_output import session_object, to_json
from witan.surfaces.moments import moment
from witan.surfaces.voting_text import paper_object, revealed_object
from witan.version import __version__

__all__ = ["router"]

router = APIRouter(
    prefix="/api",
    dependencies=[Depends(TOKEN), Depends(known_parameters)],
    responses=ANY_TIME,
)

T = TypeVar("T")

ChamberOf = Annotated[Chamber, Depends(chamber_of)]
AskerOf = Annotated[Asker, Depends(asker_of)]

Level = Annotated[float, Query(gt=0, lt=1, description="Level of intervals.")]
Status = Literal["complete", "degraded", "failed", "interrupted"]

BALLOTS = {
    "application/x-ndjson": {
        "schema": {"type": "string"},
        "example": '{"session": "q1", "reviewer": "ada", "ranking": ["b", "c"]}\n'
        '{"session": "q1", "reviewer": "bob", "ranking": ["c", "a"]}\n',
    },
    "text/csv": {
        "schema": {"type": "string"},
        "example": "session,reviewer,candidate,rank\nq1,ada,b,1\nq1,ada,c,2\n",
    },
}
"""Ballots as they can be sent; every format of a ballot file is recognised."""

COUNTING = ("ties", "level", "threshold", "tie_break", "recusal", "unranked", "kind", "rho")
"""Settings of counting that can stand in the address."""

AS_IT_WAS = RecountBody()

NUMBERS = ("level", "threshold", "rho")

FILE = {
    "requestBody": {"required": True, "content": BALLOTS},
    "parameters": [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": {"type": "number" if name in NUMBERS else "string"},
            "description": "As the setting of counting.",
        }
        for name in COUNTING
    ],
}


def _window(
    since: Annotated[str | None, Query(description="From then on: 30d, 12h, 2026-01-31 …")] = None,
    until: Annotated[str | None, Query(description="Before then, written likewise.")] = None,
    category: Annotated[str | None, Query(description="Sessions of this category.")] = None,
) -> Window:
    """Which sessions are meant.

    Raises
    ------
    InvalidParameter
        If a time is none.
    """
    return Window(moment("since", since), moment("until", until), category)


WindowOf = Annotated[Window, Depends(_window)]


async def _ballots(
    request: Request,
    format: Annotated[  # noqa: A002 - as the command line calls it
        str | None, Query(description="That of a ballot file; recognised unless given.")
    ] = None,
    column: Annotated[
        list[str] | None,
        Query(description="FIELD=HEADER: which column holds a field, such as reviewer=judge."),
    ] = None,
) -> posted.Posted:
    """The ballots that are sent.

    Raises
    ------
    InvalidParameter
        If a column is not written so.
    """
    columns = {}
    for written in column or ():
        field, equals, header = written.partition("=")
        if not (field.strip() and equals):
            raise InvalidParameter("column", written, "FIELD=HEADER, such as reviewer=judge")
        columns[field.strip()] = header.strip()
    return posted.Posted(await request.body(), format, columns or None)


BallotsOf = Annotated[posted.Posted, Depends(_ballots)]


def _json(value: object) -> Response:
    return PlainResponse(to_json(value), media_type="application/json")


async def _told(work: Callable[[], object]) -> Response:
    """What comes of it, as JSON; it reads, or counts, and the event loop does not wait for it."""
    return await anyio.to_thread.run_sync(lambda: _json(work()))


async def _told_in_turn(work: Callable[[], object]) -> Response:
    """Likewise, of what may take long."""
    return await in_turn(lambda: _json(work()))


@router.get(
    "/sessions", tags=["sessions"], summary="The sessions that are kept", responses=examples.FOUND
)
async def sessions(
    chamber: ChamberOf,
    *,
    text: Annotated[str | None, Query(description="Words of the question or closing text.")] = None,
    window: WindowOf,
    status: Status | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    simulated: Annotated[bool | None, Query(description="Those of scripts; unset: all.")] = None,
    parent: Annotated[str | None, Query(description="Those that came of this one.")] = None,
) -> Response:
    """List sessions, the latest first."""
    history = history_of(chamber)

    def find() -> object:
        found = history.find(
            text,
            since=window.since,
            until=window.until,
            category=window.category,
            status=status,
            limit=limit,
            simulated=simulated,
            parent=parent,
        )
        return reports.sessions(history, found)

    return await _told(find)


@router.post(
    "/sessions/{session:quoted}/recount",
    tags=["counting"],
    summary="Count it again",
    responses=examples.RECOUNTED,
)
async def recount(
    session: SessionNamed, chamber: ChamberOf, body: RecountBody = AS_IT_WAS
) -> Response:
    """Count the ballots of a session under another rule, or without some reviewers; no call."""
    given = {**body.settings, **({} if body.kind is None else {"kind": body.kind})}
    outcome = await count_again(chamber, session, body.rule, without=body.without, given=given)
    return await _told(lambda: _counted(outcome))


def _counted(outcome: Outcome) -> dict[str, Any]:
    return {"witan": __version__, "sessions": [session_object(outcome)]}


@router.get(
    "/sessions/{session:quoted}/paper",
    tags=["voting"],
    summary="A blind voting paper",
    responses=examples.PAPER,
)
async def paper(
    session: SessionNamed,
    chamber: ChamberOf,
    asker: AskerOf,
    person: Annotated[
        str | None,
        Query(
            alias="as",
            description="Who votes; needed where nobody needs a token.",
            openapi_examples={"somebody": {"value": "ines"}},
        ),
    ] = None,
) -> Response:
    """Give the answers under labels drawn for this person; nothing tells who wrote what."""
    prepared = await _paper(chamber, session, voter(asker, person))
    return _json(paper_object(prepared))


@router.post(
    "/sessions/{session:quoted}/votes",
    tags=["voting"],
    summary="Vote, then see",
    responses=examples.REVEALED,
)
async def cast_vote(
    session: SessionNamed, body: VoteBody, chamber: ChamberOf, asker: AskerOf
) -> Response:
    """Keep a person's ranking by the labels of the paper; then reveal who wrote what.

    By a token one votes under its name, or within it: as `ines` by the token `team` is `team/ines`.
    """
    prepared = await _paper(chamber, session, voter(asker, body.person))
    history = history_of(chamber)

    def keep() -> object:
        check_unvoted(history, prepared, replacing=body.replace)
        try:
            groups = read_ranking(body.ranking, prepared.sheet)
        except InvalidBallot as error:
            expected = f"every label of the paper once, and this {error.problem}"
            raise InvalidParameter("ranking", body.ranking, expected) from None
        return revealed_object(prepared, vote(history, prepared, groups))

    return await _told(keep)


async def _paper(chamber: Chamber, session: str, person: str) -> Paper:
    whole = await chamber.named(session)
    prepare = partial(voting_paper, history_of(chamber), whole, person)
    return await anyio.to_thread.run_sync(prepare)


@router.get(
    "/leaderboard",
    tags=["reports"],
    summary="How models fare across sessions",
    responses=examples.LEADERBOARD,
)
async def leaderboard(
    chamber: ChamberOf,
    *,
    window: WindowOf,
    rule: Annotated[str, Query(description="Whose scores are averaged.")] = "borda",
    kind: Literal["model", "human"] = "model",
    order_by: Literal["score", "rating", "elo"] = "score",
    elo: bool = False,
    min_sessions: Annotated[int, Query(ge=1, le=1_000_000)] = 10,
    level: Level = 0.95,
) -> Response:
    """Order models by how they fared; simulated sessions never count."""
    terms = Terms(
        rule=rule,
        kind=kind,
        window=window,
        order_by=order_by,
        min_sessions=min_sessions,
        level=level,
    )
    history = history_of(chamber)
    report = partial(reports.leaderboard_report, history, chamber.config, terms, with_elo=elo)
    return await _told_in_turn(report)


@router.get("/audit", tags=["reports"], summary="How reviewers judge", responses=examples.AUDIT)
async def audit(
    chamber: ChamberOf,
    *,
    window: WindowOf,
    reviewer: Annotated[str | None, Query(description="Tell everything of one.")] = None,
    level: Level = 0.95,
) -> Response:
    """Say whom reviewers prefer, how far they agree, and what they are worth."""
    history = history_of(chamber)
    report = partial(
        reports.audit_report, history, chamber.config, window, reviewer=reviewer, level=level
    )
    return await _told_in_turn(report)


@router.post(
    "/tally",
    tags=["counting"],
    summary="Count ballots",
    openapi_extra=FILE,
    responses=examples.COUNTED,
)
async def tally(
    request: Request,
    *,
    ballots: BallotsOf,
    rule: Annotated[str | None, Query()] = None,
    session: Annotated[list[str] | None, Query(description="Only these sessions.")] = None,
) -> Response:
    """Count the ballots that are sent, in any format of a ballot file; nothing is kept."""
    settings = settings_given(rule, _settings(request))
    return await _told_in_turn(lambda: posted.tallied(ballots, settings, session or ()))


@router.post(
    "/compare",
    tags=["counting"],
    summary="Count under every rule",
    openapi_extra=FILE,
    responses=examples.COMPARED,
)
async def compare(
    request: Request,
    *,
    ballots: BallotsOf,
    rules: Annotated[str | None, Query(description="Rules, comma-separated.")] = None,
) -> Response:
    """Count the ballots that are sent under every rule, side by side."""
    settings = settings_given(None, _settings(request))
    names = [name.strip() for name in (rules or "").split(",") if name.strip()]
    return await _told_in_turn(lambda: posted.compared(ballots, settings, names))


@router.post(
    "/explain",
    tags=["counting"],
    summary="How it was counted",
    openapi_extra=FILE,
    responses=examples.EXPLAINED,
)
async def explain(
    request: Request,
    *,
    ballots: BallotsOf,
    rule: Annotated[str | None, Query()] = None,
    session: Annotated[
        str | None, Query(description="Needed where the ballots are of several sessions.")
    ] = None,
) -> Response:
    """Show step by step how the ballots of a session make its outcome."""
    settings = settings_given(rule, _settings(request))
    return await _told_in_turn(lambda: posted.explained(ballots, settings, session))


def _settings(request: Request) -> Mapping[str, Any]:
    """The settings of counting among the parameters of the address."""
    given: dict[str, Any] = {}
    for name in COUNTING:
        text = request.query_params.get(name)
        if text is not None:
            given[name] = _number(text) if name in NUMBERS else text
    return given


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@router.get("/rules", tags=["counting"], summary="The rules to count by", responses=examples.RULES)
async def rules() -> Response:
    """Name every rule: what it reads, what it satisfies, where it is from."""
    return _json(catalogues.rules())


@router.get(
    "/rubrics", tags=["counting"], summary="The rubrics to grade by", responses=examples.RUBRICS
)
async def rubrics() -> Response:
    """Name every rubric, its criteria and their weights."""
    return _json(catalogues.rubrics())


@router.get(
    "/profiles",
    tags=["sessions"],
    summary="The councils that can be asked",
    responses=examples.PROFILES,
)
async def profiles(chamber: ChamberOf) -> Response:
    """Say who sits in each, how it deliberates, and why one cannot be asked."""
    return _json(catalogue_of(chamber))
