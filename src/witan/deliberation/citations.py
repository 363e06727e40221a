"""Citations of a final answer, and labels without an answer."""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

MOST_NAMED = 20

_BRACKETS = re.compile(r"(?<![!\\])\[([^\[\]\n]{1,80})\](?![(\w])")
_CALLED = re.compile(r"(?:answer|response|candidate|option|member)s?\s+", re.IGNORECASE)
_CALLED_LABEL = re.compile(
    r"\b(?:answer|response|candidate|member)s?[ \t]+[A-Z]{1,2}\d{0,3}\b", re.IGNORECASE
)
_BRACKETED_LABEL = re.compile(r"\[([A-Z]{1,2}\d{0,3})\]")
_LONE_LABEL = re.compile(r"(?<![\w\[.'’-])([A-Z]{1,2}\d{0,3})(?![\w\]'’]|\.\w)")
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


_BESIDE = re.compile(r"[ \t]*(?:[,;/&+]|and|or)?[ \t]*", re.IGNORECASE)
_BEGINS = re.compile(r"[ \t>*_#]*(?:[-+]|\d{1,9}[.)])?[ \t*_]*")
_QUOTED = re.compile(r"\b(?:according to|in the words of)[ \t]+[*_]{0,3}\Z", re.IGNORECASE)
_SPEAKS = re.compile(
    r"[*_]{0,3}[ \t]+(?:says|said|states|argues|claims|notes|points out|holds that|suggests|writes|"
    r"agrees|disagrees|errs|warns|recommends|proposes|observes|concludes|thinks|believes|reports|"
    r"contends|objects|explains|adds that)\b"
)
_NAMES = re.compile(
    r"\b(?:options?|choices?|variants?|matri(?:x|ces)|vectors?|tensors?|vitamins?|keys?|buttons?|"
    r"(?:foot)?notes?|figures?|tables?|appendix|appendices|variables?|parameters?|symbols?|letters?|"
    r"columns?|rows?|cells?|drives?|pins?|registers?|nodes?|groups?|class(?:es)?|types?|"
    r"categor(?:y|ies)|sets?|scenarios?|hypothes[ie]s|equations?|theorems?|lemmas?)"
    r"[*_\"'”’]{0,3}[ \t]+[*_\"'“‘]{0,3}\Z",
    re.IGNORECASE,
)
_LOOK_BACK = 40


class CitationProblems(NamedTuple):
    """Bracketed labels without an answer: certain or doubtful citations."""

    unresolved: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


class _Citation(NamedTuple):
    """A pair of brackets: its place in the text and its labels.

    Parameters
    ----------
    run
        Number of the row of adjacent brackets it belongs to.
    joined
        It follows a word or brackets without a space, as an index does.
    goes_on
        The sentence goes on behind it.
    begins
        It begins a line.
    speaks
        It is quoted as saying something.
    is_name
        The word before it is one that a letter names further.
    called
        It is called an answer.
    sound
        It names an answer, at least one of its labels.
    unknown
        Labels in it that name none.
    """

    run: int
    joined: bool
    goes_on: bool
    begins: bool
    speaks: bool
    is_name: bool
    called: bool
    sound: bool
    unknown: tuple[str, ...]


def check_citations(
    text: str, labels: Collection[str], known: Iterable[str] = ()
) -> CitationProblems:
    """Find bracketed labels without an answer, each once.

    Such a label is cited if it is called an answer, stands side by side with citations, is quoted
    as saying something, or stands where citations stand; it is doubtful if the letter, or the word
    before it, names something else. Brackets in code, links, formulas, lists of tasks and
    definitions are no citations; nor is what joins the word before it, as an index does, unless
    citations that name an answer do so, too.

    Parameters
    ----------
    labels
        Those that name answers.
    known
        Texts that were there before, such as the question: brackets that stand in one of them are
        its own, and a letter that stands alone in one is a name of something.
    """
    for other in _NO_PROSE:
        text = other.sub(" ", text)
    text = _INDENTED.sub(_drop_code, text)
    cited = list(_find_citations(text, labels))
    if not any(each.unknown for each in cited):
        return CitationProblems()
    texts = list(known)
    own = {label for one in texts for label in _BRACKETED_LABEL.findall(one)}
    elsewhere = {label for one in texts for label in _labels_alone(one)}
    sound = {each.run for each in cited if each.sound}
    foreign = {each.run for each in cited if not own.isdisjoint(each.unknown)} - sound
    cited = [each for each in cited if each.run not in foreign and own.isdisjoint(each.unknown)]
    pattern = _Pattern(
        joins=any(each.joined for each in cited if each.sound),
        amid=any(each.goes_on and not each.speaks for each in cited if each.sound),
        begins=any(each.begins for each in cited if each.sound),
    )
    unresolved: dict[str, None] = {}
    doubtful: dict[str, None] = {}
    for each in cited:
        certain = pattern.is_cited(each, beside=each.run in sound)
        for label in each.unknown if certain is not None else ():
            alone = not each.called and label in elsewhere
            (doubtful if alone or not certain else unresolved)[label] = None
    named = _labels_alone(text) | (set() if pattern.begins else _labels_at_start(cited))
    surely = {x for each in cited if each.called or each.run in sound for x in each.unknown}
    named -= surely
    doubtful |= dict.fromkeys(x for x in unresolved if x in named)
    first = (label for label in unresolved if label not in doubtful)
    return CitationProblems(tuple(islice(first, MOST_NAMED)), tuple(islice(doubtful, MOST_NAMED)))


class _Pattern(NamedTuple):
    """The places in a text where citations stand."""

    joins: bool
    amid: bool
    begins: bool

    def is_cited(self, each: _Citation, *, beside: bool) -> bool | None:
        """Judge brackets: a citation (True), doubtful (False), or neither (None)."""
        if each.joined and not (self.joins or each.called):
            return None
        if each.called or beside or (each.speaks and not each.is_name):
            return True
        if each.goes_on and not self.amid:
            return None
        return not each.is_name


def _find_citations(text: str, labels: Collection[str]) -> Iterator[_Citation]:
    """Read all brackets containing only labels."""
    run, end, joined = 0, -1, False
    for match in _BRACKETS.finditer(text):
        between = text[end : match.start()] if end >= 0 else "\n"
        if len(between) > _LOOK_BACK or _BESIDE.fullmatch(between) is None:
            run += 1
        if match.start() != end:
            last = text[match.start() - 1 : match.start()]
            joined = last.isalnum() or last in ("_", "]")
        end = match.end()
        before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
        line = before.rpartition("\n")[2]
        begins = len(line) < _LOOK_BACK and _BEGINS.fullmatch(line) is not None
        called, sound, unknown = _read_brackets(match[1], labels)
        yield _Citation(
            run=run,
            joined=joined,
            goes_on=_GOES_ON.match(text, end) is not None,
            begins=begins,
            speaks=bool(_SPEAKS.match(text, end) or _QUOTED.search(before)),
            is_name=_NAMES.search(before) is not None,
            called=called,
            sound=sound,
            unknown=unknown,
        )


def _labels_at_start(cited: Iterable[_Citation]) -> set[str]:
    return {label for each in cited if each.begins for label in each.unknown}


def _labels_alone(text: str) -> set[str]:
    return set(_LONE_LABEL.findall(_CALLED_LABEL.sub(" ", text))) - {"I"}


def _drop_code(match: re.Match[str]) -> str:
    line: str = match[0]
    return line if re.match(r"\s*(?:[-*+]|\d{1,9}[.)])\s", line) else " "


def _read_brackets(inside: str, labels: Collection[str]) -> tuple[bool, bool, tuple[str, ...]]:
    """Read brackets: explicit citations, valid labels and unknown ones."""
    bare = _CALLED.sub("", inside.strip(), count=1)
    parts = [_CALLED.sub("", part) for part in _APART.split(bare)]
    form = _LONG_LABEL if any(len(label) > 1 for label in labels) else _LABEL
    if not all(part in labels or form.fullmatch(part) for part in parts):
        return False, False, ()
    unknown = tuple(_list_unknown(parts, labels))
    named = len(unknown) < len(parts)
    is_called = bare != inside.strip()
    if len(parts) > 1 and not named and not is_called:
        return False, False, ()  # a list of other things, such as variables
    return is_called, named, unknown


def _list_unknown(parts: Iterable[str], labels: Collection[str]) -> Iterator[str]:
    return (part for part in parts if part not in labels)
