"""Fences: foreign text as data inside a prompt, between two lines that it cannot imitate.

<<<ANSWER A 5c0f…>>>
whatever it says
<<<END ANSWER A 5c0f…>>>

The nonce is drawn per sheet, so no author can know it. Nor would it help: whatever in a text looks
like a marker, with any nonce or none, gets a backslash behind its opening brackets, which
`read_fences` takes out again.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

__all__ = ["Kind", "fence", "neutral", "read_fences"]

Kind = Literal["answer", "own", "question", "conversation", "file"]
"""What stands in a fence; ``own``: the reader's own answer."""

_KINDS = ("ANSWER", "OWN", "QUESTION", "CONVERSATION", "FILE")
_BEGINNINGS = (*_KINDS, *(f"END{kind}" for kind in _KINDS))

_FENCE = re.compile(
    rf"^<<<(?P<marker>(?P<kind>{'|'.join(_KINDS)})(?: (?P<label>[^\n]*))? \w+)>>>\n"
    r"(?P<text>.*?)\n<<<END (?P=marker)>>>$",
    re.MULTILINE | re.DOTALL,
)

_WIDTHS = {
    **dict.fromkeys("<＜﹤‹〈⟨〈❮❰❬ᐸ˂⧼≺", 1),
    **dict.fromkeys("≪⟪«《⪡", 2),
    "⋘": 3,
}
"""What looks like opening brackets, and like how many."""

_OPEN = re.escape("".join(_WIDTHS))
_UNSEEN = (
    r"\s\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
"""Blanks, marks on other characters, and what takes no room at all."""

_BRACKETS = re.compile(f"[{_OPEN}](?:[{_UNSEEN}]*[{_OPEN}])*")
_SKIPPED = re.compile(rf"[{_UNSEEN}\\/]*")
_NOT_IN_LABELS = re.compile(rf"[{_OPEN}>\x00-\x1f\x7f-\x9f]")

_LABEL_LENGTH = 120

_LATIN = str.maketrans(
    "АВЕІОРСТУХНМКΑΒΕΙΟΡΤΥΝΗΚΜΧԚԜЅ01",
    "ABEIOPCTYXHMKABEIOPTYNHKMXQWSOI",
)
"""Cyrillic and Greek capitals, and digits, that read as Latin ones and that NFKC leaves alone."""


def fence(label: str, text: str, nonce: str, kind: Kind = "answer") -> str:
    """Put a text between the markers of its label; with an empty label, of its kind alone."""
    named = " ".join(part for part in (kind.upper(), _shown(label), nonce) if part)
    return f"<<<{named}>>>\n{neutral(text)}\n<<<END {named}>>>"


def read_fences(prompt_text: str, kind: Kind = "answer") -> dict[str, str]:
    """Label to text of all fences of a kind, in their order: what `fence` was given."""
    return {
        found["label"] or "": _restored(found["text"])
        for found in _FENCE.finditer(prompt_text)
        if found["kind"] == kind.upper()
    }


def neutral(text: str) -> str:
    """The text with nothing in it that looks like a marker of ours."""
    pieces, done = [], 0
    for end in _marker_openings(text):
        pieces += [text[done:end], "\\"]
        done = end
    return "".join((*pieces, text[done:]))


def _restored(text: str) -> str:
    """What `neutral` was given: every opening has one backslash too many."""
    pieces, done = [], 0
    for end in _marker_openings(text):
        pieces.append(text[done:end])
        done = end + text.startswith("\\", end)
    return "".join((*pieces, text[done:]))


def _marker_openings(text: str) -> Iterator[int]:
    """Where the brackets end of all that a reader could take for a marker."""
    for brackets in _BRACKETS.finditer(text):
        width = sum(_WIDTHS.get(character, 0) for character in brackets[0])
        if width >= 3 and _begins_like_marker(text, brackets.end()):
            yield brackets.end()


def _begins_like_marker(text: str, at: int) -> bool:
    """Whether a marker's first word follows, whatever is unseen in it and however it is drawn."""
    seen = ""
    while seen not in _BEGINNINGS:
        at = _end_of_skipped(text, at)
        seen += unicodedata.normalize("NFKC", text[at : at + 1]).upper().translate(_LATIN)
        if at == len(text) or not any(word.startswith(seen) for word in _BEGINNINGS):
            return False
        at += 1
    return True


def _end_of_skipped(text: str, at: int) -> int:
    skipped = _SKIPPED.match(text, at)
    return at if skipped is None else skipped.end()


def _shown(label: str) -> str:
    """A label as one line without brackets: the name of a file may be anything."""
    return " ".join(_NOT_IN_LABELS.sub(" ", label).split())[:_LABEL_LENGTH].strip()
