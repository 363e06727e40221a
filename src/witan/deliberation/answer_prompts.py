"""What a member is asked: the question, the others' answers in a debate, a verdict in its text."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from witan.core.blinding import Sheet
from witan.deliberation.fences import neutral
from witan.deliberation.material import answers_shown, data_rule, files_shown, opening
from witan.deliberation.ports import Message

__all__ = ["VERDICT_LINE", "answer_messages", "debate_messages", "read_verdict"]

VERDICT_LINE = (
    "End with a line of its own that is exactly `VERDICT: APPROVE` or exactly `VERDICT: REJECT`."
)

_DEBATE = """\
Weigh them against your own answer. Revise it where another shows that you were wrong or left out \
what matters. Keep it where you still hold that you are right: that others differ is no reason, \
and neither is their number.

Reply with your full answer to the question and nothing else. Its reader has seen neither your \
first answer nor the others, so mention neither them nor their labels."""

_MARKUP = r"[*_`\s]{0,9}"
_VERDICT = re.compile(
    rf"[>#*_`\s]{{0,9}}VERDICT{_MARKUP}:{_MARKUP}(APPROVE|REJECT){_MARKUP}\.?{_MARKUP}",
    re.IGNORECASE | re.ASCII,
)


def answer_messages(
    question: str,
    *,
    conversation: Sequence[Message],
    files: Mapping[str, str],
    system: str | None,
    verdict: bool,
    nonce: str,
) -> tuple[Message, ...]:
    """Put the question to a member, after the conversation it belongs to.

    What the conversation begins with as `system` joins what is said to this member: many models
    take one such message, and that first.
    """
    parts = [data_rule(nonce), *files_shown(files, nonce)] if files else []
    parts.append(neutral(question))
    if verdict:
        parts.append(VERDICT_LINE)
    said = [Message(message.role, neutral(message.text)) for message in conversation]
    first = [message.text for message in takewhile(lambda said: said.role == "system", said)]
    asked = Message("user", "\n\n".join(parts))
    return (*opening(system, *first), *said[len(first) :], asked)


def debate_messages(
    question: str,
    *,
    conversation: Sequence[Message],
    files: Mapping[str, str],
    system: str | None,
    own: str,
    sheet: Sheet,
    answers: Mapping[str, str],
    verdict: bool,
) -> tuple[Message, ...]:
    """Show a member the others' answers under blind labels; it keeps its own or revises it."""
    asked = answer_messages(
        question,
        conversation=conversation,
        files=files,
        system=system,
        verdict=verdict,
        nonce=sheet.nonce,
    )
    parts = [
        "Other members answered the same question. Here is what they said, under blind labels.",
        data_rule(sheet.nonce),
        answers_shown(sheet, answers),
        _DEBATE,
    ]
    if verdict:
        parts.append(VERDICT_LINE)
    return (*asked, Message("assistant", neutral(own)), Message("user", "\n\n".join(parts)))


def read_verdict(text: str) -> bool | None:
    """What the last line that is a verdict says; None: no line is one, and prose never is."""
    for line in reversed(text.splitlines()):
        found = _VERDICT.fullmatch(line)
        if found is not None:
            return found[1].upper() == "APPROVE"
    return None
