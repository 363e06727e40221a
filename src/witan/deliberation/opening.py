"""What a session is opened with: what is asked, checked, and who sits, as the record keeps it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2s

import numpy as np

from witan.deliberation.ports import Member, Message, Seat
from witan.errors import InvalidParameter

__all__ = [
    "check_category",
    "check_material",
    "check_question",
    "drawn_seed",
    "seat_of",
    "session_name",
]


def check_question(question: object) -> None:
    """Refuse a question that is no text, or empty."""
    if not (isinstance(question, str) and question.strip()):
        raise InvalidParameter("the question", question, "some text")


def check_category(category: object) -> None:
    """Refuse a category that is no text, or empty."""
    if category is not None and not (isinstance(category, str) and category.strip()):
        raise InvalidParameter("category", category, "some text, or None")


def check_material(conversation: object, files: object) -> None:
    """Refuse a conversation that is no list of messages, and files that are no table of texts."""
    turns = isinstance(conversation, Sequence) and not isinstance(conversation, str)
    if not (turns and all(isinstance(turn, Message) for turn in conversation)):  # type: ignore[attr-defined]
        raise InvalidParameter("conversation", conversation, "a list of Message")
    texts = [*files, *files.values()] if isinstance(files, Mapping) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidParameter("files", files, "a table from name to text")


def drawn_seed(seed: int | None) -> int:
    """The seed given, or one of the system's entropy, small enough to survive JSON."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 11)
    if type(seed) is not int or not 0 <= seed < 2**53:
        raise InvalidParameter("seed", seed, "a whole number from 0 to 2**53 - 1")
    return seed


def session_name(now: datetime, seed: int, nth: int, question: str) -> str:
    """The name of the nth session of a council, that no other session has."""
    told_apart = f"{seed} {now.microsecond} {nth} {question}".encode(errors="replace")
    return f"{now:%Y%m%d-%H%M%S}-{blake2s(told_apart, digest_size=5).hexdigest()}"


def seat_of(member: Member) -> Seat:
    """A member as the record keeps it."""
    return Seat(
        member.name,
        member.source,
        member.provider,
        member.options,
        member.price,
        member.simulated,
        member.url,
        member.key_variable,
    )
