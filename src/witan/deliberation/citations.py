"""The labels that a final answer cites, and those of them that name no answer."""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

__all__ = ["unresolved_citations"]

MOST_NAMED = 20

_BRACKETS = re.compile(r"(?<![!\\])\[([^\[\]\n]{1,80})\](?![(\w])")
_CALLED = re.compile(r"(?:answer|response|candidate|option|member)s?\s+", re.IGNORECASE)
_GOES_ON = re.compile(r"[*_]{0,3}[ \t]+(?!(?:and|or|but|while|whereas)\b)[^\WA-Z]")
_APART = re.compile(r"\s*(?:[,;/&+]|\band\b|\bor\b)\s*")
_LABEL = re.compile(r"[A-Z]\d{0,3}")
_LONG_LABEL = re.compile(r"[A-Z]{1,2}\d{0,3}")

_FENCED = re.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)
_SPAN = re.compile(r"(?<!`)(?P<ticks>`{1,4})(?!`)[^\n]{0,1000}?(?<!`)(?P=ticks)(?!`)")
_FORMULA = re.compile(r"\$\$.{0,1000}?\$\$|\\\[.{0,1000}?\\\]|\\\(.{0,1000}?\\\)", re.DOTALL)
_TASK = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[[xX ]\]", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*\[[^\[\]\n]+\]:[ \t]*\S+:\S*", re.MULTILINE)
_NO_PROSE = (_FENCED, _SPAN, _FORMULA, _TASK, _DEFINITION)


class _Cited(NamedTuple):
    """A pair of brackets: how it stands in the text, and what is in it."""

    is_joined: bool
    goes_on: bool
    is_called: bool
    named: bool
    strange: tuple[str, ...]


def unresolved_citations(
    text: str, labels: Collection[str], known: Iterable[str] = ()
) -> tuple[str, ...]:
    """Find the labels that a text cites and that name no answer: the first ones, each once.

    A citation is a label in brackets, or several. Where nothing calls it an answer, a letter that
    names none is a citation only in a text that cites answers, and amid a clause only if they are
    cited there, too: others write keys and symbols so. Brackets in code, links, formulas, lists of
    tasks and definitions are none; nor is what joins the word before it, as an index does, unless
    citations that name an answer do so, too.

    Parameters
    ----------
    labels
        Those that name answers.
    known
        Texts that were there before, such as the question: brackets that stand in one of them are
        its own.
    """
    for other in _NO_PROSE:
        text = other.sub(" ", text)
    text = _INDENTED.sub(_without_code, text)
    cited: list[_Cited] = []
    ended, is_joined = -1, False
    for found in _BRACKETS.finditer(text):
        if found.start() != ended:
            before = text[found.start() - 1 : found.start()]
            is_joined = before.isalnum() or before in ("_", "]")
        ended = found.end()
        goes_on = _GOES_ON.match(text, ended) is not None
        cited.append(_Cited(is_joined, goes_on, *_cited(found[1], labels)))
    sound = [each for each in cited if each.named]
    joins, amid = any(each.is_joined for each in sound), any(each.goes_on for each in sound)
    unresolved: dict[str, None] = {}
    for each in cited:
        is_alike = bool(sound) and (amid or each.named or not each.goes_on)
        if (each.is_called or is_alike) and (joins or not each.is_joined):
            unresolved.update(dict.fromkeys(each.strange))
    if not unresolved:
        return ()
    texts = list(known)
    own = (one for one in unresolved if not any(f"[{one}]" in each for each in texts))
    return tuple(islice(own, MOST_NAMED))


def _without_code(found: re.Match[str]) -> str:
    """Keep an indented line that is an item of a list."""
    line: str = found[0]
    return line if re.match(r"\s*(?:[-*+]|\d{1,9}[.)])\s", line) else " "


def _cited(inside: str, labels: Collection[str]) -> tuple[bool, bool, tuple[str, ...]]:
    """Read brackets: whether called an answer, whether naming one, and labels that name none."""
    bare = _CALLED.sub("", inside.strip(), count=1)
    parts = [_CALLED.sub("", part) for part in _APART.split(bare)]
    form = _LONG_LABEL if any(len(label) > 1 for label in labels) else _LABEL
    if not all(part in labels or form.fullmatch(part) for part in parts):
        return False, False, ()
    strange = tuple(_strange(parts, labels))
    named = len(strange) < len(parts)
    is_called = bare != inside.strip()
    if len(parts) > 1 and not named and not is_called:
        return False, False, ()  # a list of other things, such as variables
    return is_called, named, strange


def _strange(parts: Iterable[str], labels: Collection[str]) -> Iterator[str]:
    return (part for part in parts if part not in labels)
