"""Going on from an earlier session."""

from witan.deliberation.ports import Message
from witan.deliberation.session import Session
from witan.errors import SessionFileError

__all__ = ["conversation_of"]


def conversation_of(name: str, session: Session) -> tuple[Message, ...]:
    """What was said in a session, to go on from.

    Raises
    ------
    SessionFileError
        If it came to no closing text.
    """
    if session.status == "interrupted" and session.synthesis is None:
        remedy = f"take it up first, with witan resume {name}"
        raise SessionFileError(name, f"was interrupted before its closing text; {remedy}")
    if session.text is None:
        raise SessionFileError(name, "has no closing text to go on from")
    return session.conversation
