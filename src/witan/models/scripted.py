"""A scripted model for demonstrations and tests, ours and users'.

Nothing it says is a model's. It draws no lots and reads no clock, so the same call brings the
same reply; `witan.models.script` says how a script is written.
"""

import re
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import anyio

from witan.deliberation.ports import Call, Hear, Reply, Stage, Usage
from witan.errors import ModelError
from witan.models.openai_replies import is_transient
from witan.models.script import Line, Script, read_script
from witan.models.scripted_review import cite, review_text

Says = str | Line | Callable[[Call], str]
"""A text, a line, or a function that writes the text for a call."""

WORDS_A_PIECE = 3
"""What is heard at once."""

_WORD = re.compile(r"\s*\S+\s*")


class Scripted:
    """A scripted model, usable by concurrent sessions.

    Each of the sequences holds what may be said at that stage; the first entry that fits a call
    is played. An entry with `times` fits only so many attempts at one call, and an attempt is made
    with the very `Call` of the first, not with one that equals it. How often each call was made is
    all that it remembers, and only as long as the call exists: what one session heard changes
    nothing for another.
    """

    def __init__(
        self,
        name: str,
        *,
        answers: Sequence[Says] = (),
        reviews: Sequence[Says] = (),
        repairs: Sequence[Says] = (),
        synthesis: Sequence[Says] = (),
    ) -> None:
        self.name = name
        self._says: dict[Stage, tuple[Says, ...]] = {
            "answer": tuple(answers),
            "review": tuple(reviews) or (Line(),),
            "repair": tuple(repairs) or tuple(reviews) or (Line(),),
            "synthesis": tuple(synthesis),
        }
        self._attempts = _Attempts()

    @classmethod
    def load(cls, path: str | Path, name: str | None = None) -> "Scripted":
        """Play the script of a TOML file."""
        return cls.of(read_script(path), f"script:{path}" if name is None else name)

    @classmethod
    def of(cls, script: Script, name: str) -> "Scripted":
        """Play a script."""
        return cls(
            name,
            answers=script.answer,
            reviews=script.review,
            repairs=script.repair,
            synthesis=script.synthesis,
        )

    def __repr__(self) -> str:
        return f"Scripted({self.name!r})"

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        """Stream the script's line for this call, or fail as scripted."""
        entry = self._pick(call)
        line = entry if isinstance(entry, Line) else Line(_text(entry, call))
        await anyio.sleep(line.seconds)
        words = _WORD.findall(self._written(line, call))
        pause = 0.0 if line.tokens_per_second is None else 1 / line.tokens_per_second
        for piece in _pieces(words[: call.max_tokens]):
            hear("".join(piece))
            await anyio.sleep(pause * len(piece))
        if line.hang:
            await anyio.sleep_forever()
        if line.empty:
            raise ModelError(self.name, "said nothing", transient=True)
        if line.error is not None:
            transient = line.status is not None and is_transient(line.status)
            raise ModelError(self.name, line.error, line.status, line.retry_after, transient)
        read = sum(len(message.text.split()) for message in call.messages)
        return Reply(
            "".join(words[: call.max_tokens]),
            Usage(read, min(len(words), call.max_tokens)),
            cut=len(words) > call.max_tokens,
        )

    def _pick(self, call: Call) -> Says:
        """Choose the first fitting entry with attempts left."""
        fitting = [entry for entry in self._says[call.stage] if _fits(entry, call)]
        if not fitting:
            raise ModelError(self.name, f"its script has nothing to say to this {call.stage}")
        return _after(self._attempts.count(call), fitting)

    def _written(self, line: Line, call: Call) -> str:
        if line.text is not None:
            return cite(line, call)
        return review_text(line, call) if not line.fails else ""


class _Attempts:
    """Attempts per call, identified by stage and seat instead of text."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[weakref.ref[Call], int]] = {}

    def count(self, call: Call) -> int:
        """Take note of an attempt; the number of those before it."""
        key = id(call)
        attempts = self._made.get(key)
        before = 0 if attempts is None else attempts[1]
        forget = self._made.pop
        self._made[key] = (weakref.ref(call, lambda _: forget(key, None)), before + 1)
        return before


def _after(attempts: int, entries: Sequence[Says]) -> Says:
    """Skip exhausted entries; the last one never is."""
    for entry in entries[:-1]:
        if not isinstance(entry, Line) or entry.times is None or attempts < entry.times:
            return entry
        attempts -= entry.times
    return entries[-1]


def _fits(entry: Says, call: Call) -> bool:
    return (
        not isinstance(entry, Line)
        or entry.contains is None
        or any(entry.contains in message.text for message in call.messages)
    )


def _text(text: str | Callable[[Call], str], call: Call) -> str:
    return text if isinstance(text, str) else text(call)


def _pieces(words: Sequence[str]) -> Iterable[Sequence[str]]:
    return (words[at : at + WORDS_A_PIECE] for at in range(0, len(words), WORDS_A_PIECE))
