"""A stored session, counted again under another rule, or without some of its reviewers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from witan.core.outcome import Outcome
from witan.core.settings import AUTO, Settings
from witan.deliberation.imported_session import Shown
from witan.deliberation.learning import describe_unlearned, learn_for_recount
from witan.deliberation.session import Session
from witan.errors import InvalidParameter, NothingToCount
from witan.history import History
from witan.service.operations.imported_sessions import as_it_came, imported_outcomes

__all__ = ["recounted", "recounted_import", "settings_given"]

LEARNED = ("prior", "rho")
"""Settings that can be learned from other sessions."""


def recounted(
    session: Session,
    history: History | None,
    rule: str | None = None,
    *,
    without: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
) -> Outcome:
    """Count the ballots of a session again; people's, too, where a `kind` is given.

    Parameters
    ----------
    history
        Where other sessions are, to learn from; None: there are none.
    rule
        None: the session's own.
    without
        Reviewers whose ballots are left out; their answers still stand.
    given
        Settings of counting by name; whatever is not given stays as the session was counted.

    Raises
    ------
    UnknownName
        If there is no such rule or reviewer.
    InvalidParameter
        If a setting has a value it does not accept, or is to be learned where nothing can be.
    """
    changed = dict(given or {})
    if history is None:
        for name in LEARNED:
            if changed.get(name) == "learn":
                expected = "what it is: without a history there is nothing to learn it from"
                raise InvalidParameter(name, "learn", expected)
    else:
        if "kind" in changed:
            session = replace(session, ballots=tuple(history.ballots(session.id)))
        changed = learn_for_recount(session, rule, changed, history)
    outcome = session.recount(rule, without=tuple(without), **changed)
    details = {**outcome.details, "simulated": session.simulated}
    return _noted(replace(outcome, details=details), changed.get("prior"), changed.get("rho"))


def recounted_import(
    history: History,
    session: str,
    settings: Settings,
    *,
    without: Sequence[str] = (),
    named: Collection[str] = (),
    shown: Shown = as_it_came,
) -> Outcome:
    """Count the ballots of a session that came in as ballots.

    Parameters
    ----------
    named
        Settings that were asked for, in place of what holds by itself.
    shown
        As whom it is counted to see: `without` and the outcome have the names that are shown.

    Raises
    ------
    NothingToCount
        If no ballot is left.
    UnknownName
        If a reviewer that is to be left out cast none.
    """
    held, names = shown(history.export(session))
    outcomes = imported_outcomes(history, held, settings, without=without, named=named, names=names)
    if not outcomes:
        raise NothingToCount(f"no ballot of the session {session} is left to count")
    # Shared error is learned unless something else is said, and missed only where it was asked for.
    return _noted(outcomes[0], settings.prior, settings.rho if "rho" in named else None)


def settings_given(rule: str | None, given: Mapping[str, Any]) -> Settings:
    """The settings of a count for which only some are given by name.

    Raises
    ------
    UnknownName, InvalidParameter
        If there is no such rule, or a setting is not accepted.
    """
    return Settings.of(rule or AUTO, **given)


def _noted(outcome: Outcome, prior: object, rho: object) -> Outcome:
    """The outcome, with a word on what was to be learned and could not be."""
    missed = describe_unlearned(
        prior if outcome.prior is None else None, rho if outcome.rho is None else None
    )
    return replace(outcome, warnings=(*outcome.warnings, *missed))
