"""Show a stored session."""

from dataclasses import dataclass, replace

from witan.service.catalogue import operation, redact, redacts
from witan.service.operations.imported_sessions import ImportedSession, imported_session
from witan.service.parameters import Parameters
from witan.service.redaction import redact_import, redact_words
from witan.service.session_records import CouncilSession
from witan.service.stored_sessions import SessionName, SessionStore


@dataclass(frozen=True, slots=True)
class ShowParameters(Parameters):
    """Session to show."""

    session: SessionName


@redacts(ImportedSession)
def redact_imported_session(imported: ImportedSession) -> ImportedSession:
    """Redact names and reasons; the outcome was counted under the names that clients see."""
    why = None if imported.not_counted is None else redact_words(imported.not_counted)
    held, _ = redact_import(imported.held)
    return replace(imported, about=redact(imported.about), held=held, not_counted=why)


@operation("show", get="/sessions/{session}", tag="sessions")
def show(store: SessionStore, parameters: ShowParameters) -> CouncilSession | ImportedSession:
    """Show a session: question, answers, ballots, outcome, final answer and every event.

    A session that came in as ballots has no events: what is known of it stands in their place,
    marked by `witan_imported` in place of `witan_session`.
    """
    name = store.whole_name(parameters.session)
    session = store.record(name)
    if session is None:
        return imported_session(store.history, name, store.show_import)
    return store.describe(session)
