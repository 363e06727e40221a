"""Count a stored session again, under other rules or without some reviewers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from witan.core.outcome import Outcome
from witan.core.settings import Settings
from witan.core.verdict import Verdict
from witan.deliberation.learning import describe_unlearned, learn_for_recount
from witan.deliberation.record import ImportRedactor
from witan.deliberation.session import Session
from witan.errors import InvalidParameter, NothingToCount
from witan.history import History
from witan.service.catalogue import operation, redacts
from witan.service.json_output import OutcomeJson, to_json
from witan.service.parameters import Constraint, Doc, adapter_of
from witan.service.redaction import SessionRedactor
from witan.service.session_records import imported_outcomes, leave_unredacted
from witan.service.settings import COUNTING, BallotSettings
from witan.service.stored_sessions import Name, SessionName, SessionStore
from witan.version import __version__

LEARNED_SETTINGS = ("prior", "rho")
"""Settings that can be learned from other sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecountParameters(BallotSettings):
    """A session, and settings for counting its ballots."""

    session: SessionName
    rule: Annotated[Name | None, Doc("Voting rule; by default the session's own.", COUNTING)] = None
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
    """The outcome of a session as counted now.

    Parameters
    ----------
    witan
        The version that counted.
    sessions
        The outcome, alone.
    verdict
        On given texts; null without texts.
    """

    witan: str
    sessions: tuple[OutcomeJson, ...]
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class RecountResult:
    """A recounted session; as JSON it has the fields of `Recount`.

    Parameters
    ----------
    session
        The session; None for imported ballots, whose outcome already has public names.
    settings
        Of the count; None without a session.
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


@operation("recount", post="/sessions/{session}/recount", tag="counting", pool="session")
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
        return RecountResult(outcome)
    parameters.settings(parameters.rule or session.settings.rule)
    options |= options.pop("parameters", {})
    return recount_session(
        session, store.shared_history, parameters.rule, without=parameters.without, values=options
    )


def recount_session(
    session: Session,
    history: History | None,
    rule: str | None = None,
    *,
    without: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> RecountResult:
    """Count a session's ballots again; people's also, with a `kind`.

    Parameters
    ----------
    history
        History of other sessions to learn from, or None.
    rule
        None: the session's own.
    without
        Reviewers whose ballots are excluded; their answers stay in.
    values
        Settings of counting by name; others stay as the session was counted.
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

    Parameters
    ----------
    explicit
        Settings that were asked for, in place of what holds by itself.
    redactor
        As whom it is counted to see: `without` and the outcome have the names that are shown.
    """
    session_import, names = redactor(history.export(session))
    outcomes = imported_outcomes(
        history, session_import, settings, without=without, explicit=explicit, names=names
    )
    if not outcomes:
        raise NothingToCount(f"no ballot of the session {session} is left to count")
    # Shared error is learned unless something else is said, and missed only where it was asked for.
    return _add_notes(outcomes[0], settings.prior, settings.rho if "rho" in explicit else None)


def _add_notes(outcome: Outcome, prior: object, rho: object) -> Outcome:
    """Add notes on settings that could not be learned."""
    outcome_prior, outcome_rho = outcome.prior, outcome.rho
    warnings = describe_unlearned(
        prior if outcome_prior is None or outcome_prior.source == "public" else None,
        rho if outcome_rho is None or outcome.rho_is_assumed else None,
    )
    return replace(outcome, warnings=(*outcome.warnings, *warnings))
