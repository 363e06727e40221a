"""Sessions, stored and running: list, show, wait for, cancel, delete."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

import anyio

from witan.core.outcome import Outcome
from witan.core.settings import Settings
from witan.core.verdict import Verdict
from witan.deliberation.learning import describe_unlearned, learn_for_recount
from witan.deliberation.record import ImportRedactor
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, InvalidParameter, NothingToCount
from witan.history import History, PageCursor, Search, SessionSummary
from witan.service.catalogue import operation, public, redact, redacts
from witan.service.history_access import delete_rescued
from witan.service.json_output import OutcomeJson, to_json
from witan.service.parameters import Constraint, Doc, Parameters, adapter_of
from witan.service.redaction import SessionRedactor, redact_import, redact_summaries, redact_words
from witan.service.session_records import (
    CouncilSession,
    ImportedSession,
    imported_outcomes,
    imported_session,
    leave_unredacted,
)
from witan.service.settings import COUNTING, BallotSettings
from witan.service.stored_sessions import (
    ClientService,
    Name,
    SessionName,
    SessionRequest,
    SessionStore,
    WindowParameters,
)
from witan.version import __version__


@dataclass(frozen=True, slots=True)
class SessionsParameters(WindowParameters):
    """Sessions to list."""

    text: Annotated[
        str | None,
        Doc(
            "Only sessions whose question or final answer has these words.",
            positional="words",
            label="Words",
            brief="Words of the question or final answer",
        ),
    ] = None
    status: Annotated[
        Literal["complete", "degraded", "failed", "interrupted"] | None,
        Doc("Only sessions with this status.", "Which sessions", brief=""),
    ] = None
    simulated: Annotated[
        bool | None,
        Doc(
            "Only simulated sessions, or only the others.",
            "Which sessions",
            label="Simulated sessions",
            brief="Only simulated ones, or only others",
        ),
    ] = None
    parent: Annotated[
        str | None,
        Doc(
            "Only sessions derived from this one.",
            "Which sessions",
            "ID",
            label="Derived from",
            brief="Derived from this session",
        ),
    ] = None
    limit: Annotated[
        int,
        Constraint(ge=1, le=10_000),
        Doc("List at most this many.", "Which sessions", label="Sessions per page", brief=""),
    ] = 20
    after: Annotated[
        str | None,
        Doc(
            "Page cursor: `next` of the previous page.",
            "Which sessions",
            "PLACE",
            brief="`next` of the previous page",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuse impossible lists before opening anything."""
        WindowParameters.__post_init__(self)
        _ = self.search, self.cursor

    @property
    def search(self) -> Search:
        """Return the search for these sessions."""
        return Search(
            self.text,
            self.since,
            self.until,
            self.category,
            self.status,
            simulated=self.simulated,
            parent=self.parent,
        )

    @property
    def cursor(self) -> PageCursor | None:
        """The last session of the page before."""
        if self.after is None:
            return None
        at, _, name = self.after.partition(" ")
        try:
            moment = datetime.fromisoformat(at)
        except ValueError:
            moment = None
        if moment is None or moment.utcoffset() is None or not name:
            raise InvalidParameter("after", self.after, "the `next` of a list of sessions")
        return moment, name


@dataclass(frozen=True, slots=True)
class SessionList:
    """Sessions, the latest first."""

    history: Annotated[
        str, Doc("Where they are stored; for clients of a server, the kind of database.")
    ]
    sessions: Annotated[tuple[SessionSummary, ...], Doc("One entry each.")]
    short: Annotated[Mapping[str, str], Doc("Shortest unambiguous prefix, by session.")]
    next: Annotated[
        str | None, Doc("Cursor of the next page, for `after`; null: this is the last.")
    ]


@redacts(SessionList)
def _redact(listing: SessionList) -> SessionList:
    return replace(
        listing,
        history=listing.history.partition(":")[0],
        sessions=tuple(redact_summaries(listing.sessions)),
    )


@operation("GET /sessions", tag="sessions")
def sessions(store: SessionStore, parameters: SessionsParameters) -> SessionList:
    """List sessions, latest first; `text` searches them.

    An imported session is sorted by its own time, otherwise by that of the import.
    Simulated sessions are marked.
    """
    history = store.history
    page, cursor = history.page(parameters.search, parameters.limit, parameters.cursor)
    parents = (line.parent for line in page if line.parent is not None)
    return SessionList(
        history.url,
        tuple(page),
        history.short_names([*(line.session for line in page), *parents]) if page else {},
        None if cursor is None else f"{cursor[0].isoformat()} {cursor[1]}",
    )


@redacts(ImportedSession)
def redact_imported_session(session: ImportedSession) -> ImportedSession:
    """Redact names and reasons.

    The outcome was already counted under public names.
    """
    why = None if session.not_counted is None else redact_words(session.not_counted)
    redacted, _ = redact_import(session.session_import)
    return replace(session, about=redact(session.about), session_import=redacted, not_counted=why)


@operation("GET /sessions/{session}", tag="sessions")
def show(store: SessionStore, parameters: SessionRequest) -> CouncilSession | ImportedSession:
    """Show a session: question, answers, ballots, outcome, final answer, events.

    An imported session has no events; it has an import record instead, marked by `witan_imported`,
    not `witan_session`.
    """
    name = store.whole_name(parameters.session)
    session = store.record(name)
    if session is None:
        return imported_session(store.history, name, store.show_import)
    return store.describe(session)


@dataclass(frozen=True, slots=True)
class ResultParameters(SessionRequest):
    """Session to wait for, and a timeout."""

    wait: Annotated[
        float,
        Constraint(ge=0, le=600),
        Doc("Seconds to wait for the session to end.", brief="Seconds to wait for its end"),
    ] = 45


@operation("GET /sessions/{session}/result", tag="sessions")
async def result(
    service: ClientService, parameters: ResultParameters
) -> CouncilSession | ImportedSession:
    """Wait for the end of a session, then show it.

    If it is still running after `wait` seconds, its progress is shown: call again.
    """
    session_name = await service.service.registry.resolve_session(parameters.session)
    running_session = service.service.registry.get(session_name)
    if running_session is not None:
        with anyio.move_on_after(parameters.wait):
            await running_session.wait_for_end()
        if not running_session.under_way:
            await running_session.wait_for_session()  # raises its failure
    return await _show(service, session_name)


@operation("POST /sessions/{session}/cancel", tag="sessions", changes=True)
async def cancel(
    service: ClientService, request: SessionRequest
) -> CouncilSession | ImportedSession:
    """Cancel every call of a running session.

    Replies so far are stored, and `resume` continues. An ended session is unchanged.
    """
    whole = await service.service.registry.resolve_session(request.session)
    running_session = service.service.registry.get(whole)
    if running_session is not None:
        running_session.cancel()
        await running_session.wait_for_session()
    return await _show(service, whole)


async def _show(service: ClientService, session: str) -> CouncilSession | ImportedSession:
    # Imported here because it imports the operations, and commands do not need it.
    from witan.service.dispatch import ServedSessions

    store = ServedSessions(service.service, service.client)
    return await anyio.to_thread.run_sync(show.handler, store, SessionRequest(session))


MAX_ROOTS_TO_QUERY = 100
"""Most sessions whose descendants are queried one by one."""


@dataclass(frozen=True, slots=True)
class ForgetParameters(Parameters):
    """The session to delete."""

    session: SessionName
    with_children: Annotated[
        bool,
        Doc(
            "Also delete sessions derived from it: rejudged, continued, retried.",
            label="Include derived sessions",
            brief="Also delete sessions derived from it",
        ),
    ] = False


@public
@dataclass(frozen=True, slots=True)
class Deletion:
    """Deleted sessions, and files with remains of their text."""

    sessions: Annotated[tuple[str, ...], Doc("Deleted sessions.")]
    children: Annotated[
        Mapping[str, str], Doc("Sessions derived from them, which still hold their text, and how.")
    ]
    set_aside: Annotated[int, Doc("Deleted records of interrupted sessions.")]
    note: Annotated[
        str | None, Doc("Where their text can still be read, and until when; null if nowhere.")
    ]


@operation("DELETE /sessions/{session}", tag="sessions", changes=True, destroys=True)
def forget(store: SessionStore, parameters: ForgetParameters) -> Deletion:
    """Delete a session with its answers, ballots and numbers, irreversibly.

    Rescue files of its interruptions are also deleted. Saved files, exports, lakes, backups and
    damaged copies of the history remain. Sessions derived from it also contain its text and remain;
    they are named, and deleted with `with_children`.
    """
    return delete_sessions(
        store, [store.whole_name(parameters.session)], with_children=parameters.with_children
    )


def delete_sessions(
    store: SessionStore, sessions: Iterable[str], *, with_children: bool
) -> Deletion:
    """Delete sessions by their whole names."""
    sessions_to_delete, children = [*sessions], dict[str, str]()
    with suppress(HistoryConflict):  # a server may keep no history
        children = descendants(store.history, sessions_to_delete)
    if with_children:
        sessions_to_delete, children = [*sessions_to_delete, *children], {}
    note = store.delete(sessions_to_delete)
    return Deletion(tuple(sessions_to_delete), children, delete_rescued(sessions_to_delete), note)


def descendants(history: History, sessions: Iterable[str]) -> dict[str, str]:
    """Find the descendants of these sessions, with their relations."""
    roots = [*sessions]
    children_by_parent: dict[str | None, list[SessionSummary]] = {}
    for summary in history.find() if len(roots) > MAX_ROOTS_TO_QUERY else ():
        children_by_parent.setdefault(summary.parent, []).append(summary)
    visited, relations, queue = {*roots}, dict[str, str](), [*roots]
    while queue:
        parent = queue.pop()
        for child in (
            children_by_parent.get(parent, ())
            if children_by_parent
            else history.find(parent=parent)
        ):
            if child.session not in visited:
                visited.add(child.session)
                relations[child.session] = child.relation or "derived from it"
                queue.append(child.session)
    return relations


LEARNED_SETTINGS = ("prior", "rho")
"""Settings that can be learned from other sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecountParameters(BallotSettings):
    """A session, and settings for counting its ballots."""

    session: SessionName
    rule: Annotated[
        Name | None, Doc("Voting rule; by default the session's own.", COUNTING, brief="")
    ] = None
    without: Annotated[
        tuple[Name, ...],
        Constraint(max_length=64),
        Doc(
            "Exclude this reviewer's ballot; its answer stays in.",
            COUNTING,
            label="Without the ballots of",
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class Recount:
    """The outcome of a session as counted now."""

    witan: Annotated[str, Doc("Version of Witan that counted.")]
    sessions: Annotated[tuple[OutcomeJson, ...], Doc("The outcome, alone.")]
    verdict: Annotated[Verdict | None, Doc("On given texts; null without texts.")] = None


@dataclass(frozen=True, slots=True)
class RecountResult:
    """A recounted session; as JSON it has the fields of `Recount`.

    Parameters
    ----------
    session
        The session; None for imported ballots, whose outcome already has public names.
    settings
        Settings of the count; None without a session.
    """

    outcome: Outcome
    session: Session | None = None
    settings: Settings | None = None

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:
        return adapter_of(Recount).core_schema

    def to_json(self) -> str:
        """Write version and outcome."""
        return to_json(Recount(__version__, (self.outcome,), self.verdict))

    @property
    def verdict(self) -> Verdict | None:
        """The verdict by the current count; None without given texts."""
        if self.session is None or self.settings is None:
            return None
        return self.session.conclude(self.outcome, self.settings)


@redacts(RecountResult)
def redact_recount(result: RecountResult) -> RecountResult:
    """Redact the outcome by the session's seats."""
    if result.session is None:
        return result
    redactor = SessionRedactor(result.session.opening)
    return replace(result, outcome=redactor.outcome(result.outcome))


@operation("POST /sessions/{session}/recount", tag="counting", pool="session")
def recount(store: SessionStore, parameters: RecountParameters) -> RecountResult:
    """Count a session's ballots again, under another rule or without some reviewers.

    The session is unchanged, and no model is called. Omitted parameters stay as the session was
    counted. With `kind`, people's ballots count, or all ballots; `prior` learn, `rho` learn and
    the rule weighted_borda learn from the other sessions of the history.
    """
    name = store.whole_name(parameters.session)
    session, options = store.record(name), parameters.count_options()
    if session is None:
        settings = parameters.settings(parameters.rule)
        outcome = recount_import(
            store.history,
            name,
            settings,
            without=parameters.without,
            explicit=options,
            redactor=store.show_import,
        )
        return RecountResult(_warn_of_settings(outcome, parameters, settings.ties))
    parameters.settings(parameters.rule or session.settings.rule)
    options |= options.pop("parameters", {})
    result = recount_session(
        session, store.shared_history, parameters.rule, without=parameters.without, values=options
    )
    outcome = _warn_of_settings(result.outcome, parameters, session.settings.ties)
    return replace(result, outcome=outcome)


def _warn_of_settings(outcome: Outcome, parameters: RecountParameters, ties: str) -> Outcome:
    warnings = parameters.without_effect([outcome.rule], ties)
    return replace(outcome, warnings=(*outcome.warnings, *warnings))


def recount_session(
    session: Session,
    history: History | None,
    rule: str | None = None,
    *,
    without: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> RecountResult:
    """Count a session's ballots again; people's also, with a `kind`.

    `history`: history of other sessions to learn from, or None.
    `rule`: by default the session's own.
    `without`: reviewers whose ballots are excluded; their answers stay in.
    `values`: settings of counting by name; others stay as the session was counted.
    """
    changed = dict(values or {})
    if history is None:
        for name in LEARNED_SETTINGS:
            if changed.get(name) == "learn":
                expected = "another value: there is no history of other sessions to learn it from"
                raise InvalidParameter(name, "learn", expected)
    else:
        if "kind" in changed:
            session = replace(session, ballots=tuple(history.ballots(session.id)))
        changed = learn_for_recount(session, rule, changed, history)
    outcome = session.recount(rule, without=tuple(without), **changed)
    details = {**outcome.details, "simulated": session.is_simulated}
    outcome = replace(outcome, details=details)
    outcome = _add_notes(outcome, changed.get("prior"), changed.get("rho"))
    return RecountResult(outcome, session, session.recount_settings(rule, changed))


def recount_import(
    history: History,
    session: str,
    settings: Settings,
    *,
    without: Sequence[str] = (),
    explicit: Collection[str] = (),
    redactor: ImportRedactor = leave_unredacted,
) -> Outcome:
    """Count the ballots of an imported session.

    `explicit`: settings that were requested explicitly.
    `redactor`: names for the client; `without` and the outcome use them.
    """
    session_import, names = redactor(history.export(session))
    outcomes = imported_outcomes(
        history, session_import, settings, without=without, explicit=explicit, names=names
    )
    if not outcomes:
        raise NothingToCount(f"no ballot of the session {session} is left to count")
    # Learning the shared error is the default; note that it failed only if it was requested.
    return _add_notes(outcomes[0], settings.prior, settings.rho if "rho" in explicit else None)


def _add_notes(outcome: Outcome, prior: object, rho: object) -> Outcome:
    outcome_prior, outcome_rho = outcome.prior, outcome.rho
    warnings = describe_unlearned(
        prior if outcome_prior is None or outcome_prior.source == "public" else None,
        rho if outcome_rho is None or outcome.rho_is_assumed else None,
    )
    return replace(outcome, warnings=(*outcome.warnings, *warnings))
