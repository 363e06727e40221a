"""Going on from an earlier session."""

from witan.deliberation.session import Session
from witan.errors import SessionFileError

__all__ = ["check_continued"]


def check_continued(name: str, session: Session) -> None:
    """Refuse to go on from a session that came to no final answer.

    Raises
    ------
    SessionFileError
        If it came to none; it says what to do.
    """
    if session.status == "interrupted" and session.synthesis is None:
        remedy = f"take it up first, with witan resume {name}"
        raise SessionFileError(name, f"was interrupted before its final answer; {remedy}")
    if session.text is None:
        raise SessionFileError(name, "has no final answer to go on from")
