"""Split a model's reply into reasoning, text and JSON.

Servers without a parser for a model's template send its reasoning inline. Three rules distinguish
it from a text that mentions tags:

- An opening tag counts at the very beginning of a reply, or after other reasoning; nowhere else.
- A closing tag alone counts if the template contains the opening one: on a separate line, or
  joined to the end of a sentence, with no opening tag of its name before it in the text.
- No tag counts in code, in quotes, or as a word of a sentence that continues in lower case.

Reasoning that never closes is reasoning to the end, unless its opening tag is such a word.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from witan.deliberation.schema_cost import SchemaCost, UncheckableSchema
from witan.errors import InvalidParameter

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator


_NAMES = r"(?:think(?:ing)?|thoughts?|reasoning|antthinking|seed:think)"
_HEADER = r"(?:[ ]?to=[^<\n]{0,60})?(?:[ ]?<\|constrain\|>[^<\n]{0,40})?"
_ASSISTANT = r"(?:<\|start\|>(?:assistant)?)?"

_FAMILIES: tuple[tuple[str, str], ...] = (
    (rf"<{_NAMES}(?:[ \t][^<>\n]{{0,60}})?>", rf"</{_NAMES}[ \t]?>"),
    (r"(?-i:\[THINK\])", r"(?-i:\[/THINK\])"),
    ("◁think▷", "◁/think▷"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|channel>thought\s", r"<channel\|>"),
    (
        rf"{_ASSISTANT}<\|channel\|>(?:analysis|commentary){_HEADER}<\|message\|>",
        r"<\|(?:end|call|return)\|>|(?=<\|start\|>|<\|channel\|>)",
    ),
    (r"(?-i:analysis(?=[A-Z\"'“]))", r"(?-i:assistantfinal)"),
)
"""Tags of reasoning by template, opening and closing; the last two are of channels.

At the very end, the form that remains when a server drops that template's special tokens.
"""

_CHANNELS, _BARE = len(_FAMILIES) - 2, len(_FAMILIES) - 1
_FINAL = rf"(?:<\|end\|>)?{_ASSISTANT}<\|channel\|>final{_HEADER}<\|message\|>"
"""The opening tag of the answer itself in the template of channels."""

_OPENERS = [re.compile(opener, re.IGNORECASE) for opener, _ in _FAMILIES]
_CLOSERS = [re.compile(closer, re.IGNORECASE) for _, closer in _FAMILIES]
_OPEN = re.compile("|".join(opener for opener, _ in _FAMILIES[:_BARE]), re.IGNORECASE)
_CLOSE = re.compile("|".join(closer for _, closer in _FAMILIES[:_CHANNELS]), re.IGNORECASE)
_OPENS_ANSWER = re.compile(_FINAL, re.IGNORECASE)
_NEXT = re.compile(
    rf"(?P<final>{_FINAL})|(?P<open>{_OPEN.pattern})|(?P<close>{_CLOSE.pattern})|\n", re.IGNORECASE
)
_FIRST_SIGNS = "<[◁"
"""First characters of all tags but that of the template without special tokens."""

_MARK = re.compile(rf"[{re.escape(_FIRST_SIGNS)}\n]")
"""The first character of a tag, or a line end."""

_TAIL = re.compile(r"\s*<\|(?:return|end)\|>\s*\Z")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")

_WORDS = ("think", "thinking", "thought", "thoughts", "reasoning", "antthinking", "seed:think")
_CHANNEL_PREFIXES = (
    "",
    "<|start|>",
    "<|start|>assistant",
    "<|end|><|start|>assistant",
    "<|end|><|start|>",
    "<|end|>",
)
_TAG_SPELLINGS = (
    *(f"<{slash}{word}>" for slash in ("", "/") for word in _WORDS),
    "[think]", "[/think]", "◁think▷", "◁/think▷", "<|begin_of_thought|>", "<|end_of_thought|>",
    "<|start_thinking|>", "<|end_thinking|>", "<|channel>thought", "<channel|>",
    *(f"{before}<|channel|>{name}<|message|>" for before in _CHANNEL_PREFIXES
      for name in ("analysis", "commentary", "final")),
)  # fmt: skip
_BEGINNINGS = frozenset(tag[:length] for tag in _TAG_SPELLINGS for length in range(len(tag) + 1))
_OPEN_TAG_PATTERN = re.compile(
    rf"</{_NAMES}[ \t]\Z|<{_NAMES}[ \t][^<>\n]{{0,60}}\Z|(?:<\|end\|>)?{_ASSISTANT}<\|channel\|>"
    r"(?:analysis|commentary|final)[^\n]{0,120}\Z",
    re.IGNORECASE,
)

_AT_ONCE = 4_096
_LONGEST_TAG = 200
_LONGEST_LINE = 20_000
"""Longest line at whose beginning a tag is recognised as such."""

_BLANK = " \t\r\n\f\v\ufeff\u200b\u2060"
_SENTENCE_ENDS = ".!?…。！？"
_QUOTES = "`'\"“”‘’"
_AFTER_A_WORD = ",.;:!?)]}" + _QUOTES
_CLOSING_QUOTES = {"“": "”", "‘": "’"}
_NAME = re.compile(_NAMES, re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:\d{1,3}[.)]|[-*+])\s*\Z")
_SENTENCE_CONTINUES = re.compile(r"(?:[,;:)]?[ \t]+|-)([^\W\d_])")
"""Text after a tag that is a word of a sentence, if its first letter is lower case."""


@dataclass(frozen=True, slots=True)
class SplitReply:
    """A reply's text and its reasoning.

    `closed_alone`: true if only a closing tag separates them.
    """

    text: str
    reasoning: str = ""
    closed_alone: bool = False


def split_reasoning(reply: str) -> SplitReply:
    """Split a whole reply into text and reasoning."""
    if not _may_hold_tags(
        reply
    ):  # as in nearly all replies; a filter takes a hundred times as long
        return SplitReply(reply)
    if reply.lstrip()[:1] in ("{", "[") and _is_json(reply):
        return SplitReply(reply)
    reasoning_filter = ReasoningFilter()
    for start in range(0, len(reply), _AT_ONCE):
        reasoning_filter.feed(reply[start : start + _AT_ONCE])
    reasoning_filter.close()
    closed_alone = reasoning_filter.withdrawals > 0
    return SplitReply(reasoning_filter.text, reasoning_filter.reasoning, closed_alone)


def _may_hold_tags(reply: str) -> bool:
    if "<" in reply or "◁" in reply or "THINK]" in reply:
        return True
    return reply.lstrip(_BLANK).startswith("analysis")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class _Line:
    """The current line, to distinguish code and sentences from tags."""

    def __init__(self) -> None:
        self.fence = ""
        self.start_again()

    def start_again(self) -> None:
        """Begin a line."""
        self._head = ""
        self._ticks = 0
        self.tail = ""
        self.last_sign = ""

    def take(self, text: str) -> None:
        """Add text without line breaks."""
        self._head = (self._head + text[:_LONGEST_TAG])[:_LONGEST_TAG]
        self._ticks += text.count("`")
        self.tail = text[-1:] or self.tail
        self.last_sign = text.rstrip()[-1:] or self.last_sign

    def end(self) -> None:
        """End the line, possibly opening or closing a code block."""
        match = _FENCE.match(self._head)
        if match is not None:
            marks = match[1]
            if not self.fence:
                self.fence = marks
            elif marks.startswith(self.fence) and not self._head[match.end() :].strip():
                self.fence = ""
        self.start_again()

    @property
    def is_blank(self) -> bool:
        """True if it is blank and not indented like code."""
        return not self._head.strip(_BLANK) and len(self._head.expandtabs(4)) < 4

    @property
    def is_item(self) -> bool:
        """True if it contains only the mark of a list item."""
        return _ITEM.match(self._head) is not None

    @property
    def in_code(self) -> bool:
        """True if code follows."""
        indented = not self._head.strip() and len(self._head.expandtabs(4)) >= 4
        return bool(self.fence) or self._ticks % 2 == 1 or indented


class ReasoningFilter:
    """Filter that splits reasoning from a text while it streams in.

    Only when a closing tag without an opening one arrives is all text before it known as reasoning.
    Text already passed on then no longer counts, and `withdrawals` grows by one.
    """

    def __init__(self) -> None:
        self.withdrawals = 0
        self._buffer = ""
        self._texts: list[str] = []
        self._blocks: list[str] = []
        self._block: list[str] = []
        self._held_text = ""
        self._opener = ""
        self._family: int | None = None
        self._is_at_start = True
        self._channels = False
        self._line = _Line()
        self._mentions: defaultdict[str, int] = defaultdict(int)

    @property
    def text(self) -> str:
        """The certain part of the text so far."""
        text = "".join(self._texts)
        return _TAIL.sub("", text) if self._channels else text

    @property
    def has_opened(self) -> bool:
        """True once reasoning was opened, so a closing tag is never alone."""
        return self._family is not None and self._family != _BARE

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "\n\n".join(filter(None, (block.strip() for block in self._blocks)))

    def feed(self, piece: str) -> str:
        """Take a piece; return newly certain text."""
        self._buffer += piece
        return self._run(is_end=False)

    def close(self) -> str:
        """End the text; return its rest."""
        rest = self._run(is_end=True)
        if self._family is not None:
            block = "".join((*self._block, self._buffer))
            if self._family == _BARE:  # a text that merely begins with the word
                self._texts.append(self._opener + block)
                rest = self._texts[-1]
            elif self._family != _CHANNELS and _continues_sentence(block):
                return rest + self._speak_of(block)
            else:
                self._end_block(self._buffer)
        self._buffer = ""
        return rest

    def _speak_of(self, block: str) -> str:
        """Emit text beginning with the name of a tag."""
        self._family, self._is_at_start, self._block, self._buffer = None, False, [], ""
        text = self._opener + block
        pieces = [self.feed(text[at : at + _AT_ONCE]) for at in range(0, len(text), _AT_ONCE)]
        return "".join((*pieces, self._run(is_end=True)))

    def _run(self, *, is_end: bool) -> str:
        n_texts, withdrawals = len(self._texts), self.withdrawals
        while self._buffer:
            if self._family is not None:
                moved = self._think(self._family, is_end=is_end)
            else:
                moved = (self._begin if self._is_at_start else self._speak)(is_end=is_end)
            if not moved:
                break
        return "".join(self._texts if self.withdrawals > withdrawals else self._texts[n_texts:])

    def _think(self, family: int, *, is_end: bool) -> bool:
        """Look for the closing tag, outside of quotes."""
        for match in _CLOSERS[family].finditer(self._buffer):
            is_quoted = self._is_quoted(match, is_end=is_end)
            if is_quoted is None:
                return False
            if is_quoted:
                continue
            is_word = self._is_word(match, is_end=is_end) if family < _CHANNELS else False
            if is_word is None:
                return False
            if is_word:
                self._buffer = "".join((self._opener, *self._block, self._buffer))
                self._family, self._is_at_start, self._block = None, False, []
                return True
            self._end_block(self._buffer[: match.start()])
            self._buffer = self._buffer[match.end() :]
            self._family, self._is_at_start = None, True
            return True
        if len(self._buffer) > _LONGEST_TAG:
            past, self._buffer = self._buffer[:-_LONGEST_TAG], self._buffer[-_LONGEST_TAG:]
            self._block.append(past)
            self._held_text = (self._held_text + past)[-2:]
        return False

    def _is_quoted(self, match: re.Match[str], *, is_end: bool) -> bool | None:
        """Return whether a tag is in quotes, or None while unknown."""
        text_before = (self._held_text + self._buffer[: match.start()])[-2:]
        text_after = self._buffer[match.end() :][:2]
        quote = text_before[-1:]
        if not quote or quote not in _QUOTES or _ends_word(text_before[:-1]):
            return False
        if text_after and text_after[0] != _CLOSING_QUOTES.get(quote, quote):
            return False
        if len(text_after) < 2 and not is_end:
            return None
        return bool(text_after) and not text_after[1:].isalnum()

    def _is_word(self, match: re.Match[str], *, is_end: bool) -> bool | None:
        """Return whether both tags are words of a sentence, None while unknown."""
        block = "".join((*self._block, self._buffer[: match.start()]))
        if "\n" in block or not (_continues_sentence(block) or re.search(r"\w", block) is None):
            return False
        line, line_end, _ = self._buffer[match.end() :].partition("\n")
        if not (line.strip() or line_end or is_end):
            return None
        if block.strip() and not block[-1].isspace() and block[-1].isalnum():
            return False
        return _continues_sentence(line) or (bool(block.strip()) and line[:1] in tuple(",.;:!?)"))

    def _end_block(self, rest: str) -> None:
        self._blocks.append("".join((*self._block, rest)))
        self._block, self._held_text = [], ""

    def _begin(self, *, is_end: bool) -> bool:
        """Read the beginning of the text, or of the text after reasoning."""
        bare = self._buffer.lstrip(_BLANK)
        if bare[:1] in _FIRST_SIGNS + "a":  # as in hardly any text
            has_moved = self._begin_with_tag(bare, is_end=is_end)
            if has_moved is not None:
                return has_moved
        self._is_at_start = False
        if self._blocks and not "".join(self._texts).strip():
            self._buffer = bare
        return True

    def _begin_with_tag(self, bare: str, *, is_end: bool) -> bool | None:
        """Skip or open a tag; return None without one, False if one may follow."""
        if (match := _OPENS_ANSWER.match(bare)) is not None:
            return self._skip_tag(match)
        if (match := _CLOSE.match(bare)) is not None:
            line, line_end, _ = bare[match.end() :].partition("\n")
            if not (line.strip() or line_end or is_end):
                return False
            if not (_continues_sentence(line) or line[:1] in tuple(_AFTER_A_WORD)):
                return self._skip_tag(match)
        elif (match := self._match_opener(bare)) is not None:
            self._open(bare)
            blanks = "" if self._blocks else self._buffer[: len(self._buffer) - len(bare)]
            self._opener = blanks + match[0]
            self._buffer = bare[match.end() :]
            return True
        elif not is_end and (not bare or _lacks_end(bare) or "analysis".startswith(bare)):
            return False
        return None

    def _match_opener(self, text: str) -> re.Match[str] | None:
        match = _OPEN.match(text)
        if match is None and not (self._texts or self._blocks):
            match = _OPENERS[_BARE].match(text)
        return match

    def _skip_tag(self, match: re.Match[str]) -> bool:
        """Drop the tag at the beginning of the text."""
        self._channels |= "channel|" in match[0]
        self._blocks.append("")  # marks the blanks around it as the template's
        self._buffer = match.string[match.end() :]
        return True

    def _open(self, text: str) -> None:
        self._family = next(n for n, opener in enumerate(_OPENERS) if opener.match(text))
        self._channels |= self._family == _CHANNELS

    def _speak(self, *, is_end: bool) -> bool:
        """Pass text on up to the next tag or line end."""
        mark = _MARK.search(self._buffer)
        match = None if mark is None else _NEXT.search(self._buffer, mark.start())
        if match is None:
            is_certain = is_end or mark is None
            return self._say(len(self._buffer) if is_certain else self._certain())
        if match[0] == "\n":
            self._say(match.end())
            self._line.end()
            return True
        if match.start():
            self._say(match.start())
            return True
        verdict = self._is_tag(match, is_end=is_end)
        if verdict is None:
            return False
        if not verdict:
            self._mention(match)
            self._say(match.end())
            return True
        self._buffer = self._buffer[match.end() :]
        if match["open"] is not None:
            self._open(match[0])
        else:
            self._withdraw()
            self._channels |= match["final"] is not None
        return True

    def _mention(self, match: re.Match[str]) -> None:
        """Count mentioned, still open tags."""
        if self._line.in_code:
            return
        if match["open"] is not None:
            self._mentions[_kin(match[0])] += 1
        elif match["close"] is not None and self._mentions[_kin(match[0])]:
            self._mentions[_kin(match[0])] -= 1

    def _certain(self) -> int:
        """Return the length of pending text before any possible tag."""
        length = len(self._buffer)
        for match in _MARK.finditer(self._buffer, max(0, length - _LONGEST_TAG)):
            if _lacks_end(self._buffer[match.start() :]):
                return match.start()
        return length

    def _say(self, length: int) -> bool:
        """Pass on this many characters of the pending text."""
        if not length:
            return False
        text, self._buffer = self._buffer[:length], self._buffer[length:]
        self._texts.append(text)
        self._line.take(text.removesuffix("\n"))
        return True

    def _withdraw(self) -> None:
        """Withdraw all emitted text as reasoning."""
        self._end_block("".join(self._texts))
        self._texts, self._is_at_start, self._mentions = [], True, defaultdict(int)
        self._line = _Line()
        self.withdrawals += 1

    def _is_tag(self, match: re.Match[str], *, is_end: bool) -> bool | None:
        """Return true for a template's tag, false for mentions, None if unknown."""
        if self._line.in_code:
            return False
        if match["final"] is not None:
            return True
        if match["open"] is not None:
            return self._line.is_blank and _OPENERS[_CHANNELS].fullmatch(match[0]) is not None
        if self._mentions[_kin(match[0])]:
            return False
        line, line_end, _ = self._buffer[match.end() :].partition("\n")
        if not (line.strip() or line_end or is_end) and len(line) < _LONGEST_LINE:
            return None
        return self._is_closer(line if line.strip() else "\n")

    def _is_closer(self, continuation: str) -> bool:
        """Return true if a tag begins its line or ends a sentence."""
        line = self._line
        if continuation[0] in _AFTER_A_WORD or _continues_sentence(continuation) or line.is_item:
            return False
        if line.is_blank:
            return True
        if not line.tail.isspace():
            return line.tail not in _QUOTES + "([{"
        return line.last_sign in _SENTENCE_ENDS


def _kin(tag: str) -> str:
    match = _NAME.search(tag)
    return "thought" if match is None else match[0].lower()


def _continues_sentence(text: str) -> bool:
    """Return true if a sentence continues in lower case."""
    match = _SENTENCE_CONTINUES.match(text)
    return match is not None and match[1].islower()


def _ends_word(text: str) -> bool:
    return text in tuple(_SENTENCE_ENDS + ",;)]}") or (text.isalnum() and text < "\u2e80")


def _lacks_end(text: str) -> bool:
    return text[:1] in _FIRST_SIGNS and (
        text.lower() in _BEGINNINGS or _OPEN_TAG_PATTERN.match(text) is not None
    )


_OPENING = re.compile(r"[\[{]")

_LONGEST_NUMBER = 20
"""Digits of the longest number that is read as a number and not as text."""

_PATIENCE = 32
"""Failed readings of the text that are allowed: stray brackets must not make it quadratic."""

_LOOKING = 64
"""Speed of finding the line of an error, as a multiple of reading the text."""

_DEEP = 10_000
"""Cost of an attempt that ended by its depth, whose position is unknown."""


def _number(text: str) -> float | str:
    value = float(text)
    return value if isfinite(value) else text


def _whole_number(text: str) -> int | str:
    return int(text) if len(text) <= _LONGEST_NUMBER else text


class _Ambiguous(dict[str, Any]):
    """An object with different values under one key."""

    def __init__(self, pairs: list[tuple[str, Any]], keys: tuple[str, ...]) -> None:
        super().__init__(pairs)
        self.ambiguous = keys


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    ambiguous: dict[str, None] = {}
    for key, value in pairs:
        name = key.strip().casefold()
        if values.setdefault(name, value) != value:
            ambiguous[name] = None
    return _Ambiguous(pairs, tuple(ambiguous)) if ambiguous else dict(pairs)


# Not strict: models put raw line breaks into strings. NaN and the infinities stay text.
_DECODER = json.JSONDecoder(
    strict=False,
    parse_constant=str,
    parse_float=_number,
    parse_int=_whole_number,
    object_pairs_hook=_object,
)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # JSON has no NaN and no infinity


_EXACT_DECODER = json.JSONDecoder(
    strict=False, parse_constant=_refuse_constant, object_pairs_hook=_object
)


def parse_json(text: str) -> object:
    """Parse a text that is exactly one JSON value; return None otherwise."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def ambiguous_keys(value: object) -> Iterator[str]:
    """Name keys, in lower case, with different values in one object."""
    pending = [value]
    for each in pending:  # grows as it goes
        if isinstance(each, dict):
            if isinstance(each, _Ambiguous):
                yield from each.ambiguous
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)


def split_ties(text: str) -> list[object]:
    """Split labels joined as equal: ``B = C``."""
    return list(re.split(r"[=~&]", text))


def split_groups(text: str) -> list[list[object]]:
    """Split a ranking, best first: ``A > B = C``."""
    if ">" in text:
        return [split_ties(part.replace(",", "=")) for part in text.split(">")]
    return [split_ties(part) for part in re.split(r"[,;\n]", text)]


def find_json_values(
    text: str, decoder: json.JSONDecoder = _DECODER
) -> Iterator[dict[str, Any] | list[Any]]:
    """Yield the outermost JSON objects and lists of a text, in order.

    A bracket that opens no value is skipped: a truncated value is never completed, but complete
    values inside it are found. Commas before a closing bracket are ignored.
    """
    lock_wait, looking = _PATIENCE * len(text), len(text) // _LOOKING
    start = _OPENING.search(text)
    while start is not None and lock_wait >= 0:
        try:
            value, end = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            lock_wait -= error.pos - start.start() + 1 + looking
            comma = _trailing_comma(text, error.pos)
            if comma is None:
                end = start.end()
            else:
                text, end = text[:comma] + " " + text[comma + 1 :], start.start()
        except RecursionError:
            lock_wait -= _DEEP
            end = start.end()
        else:
            yield value
        start = _OPENING.search(text, end)


def _trailing_comma(text: str, position: int) -> int | None:
    """Return the position of a comma before a closing bracket, if any."""
    # Interpreters disagree on whether the error is at the comma or at the bracket.
    comma = position if text[position : position + 1] == "," else _position_before(text, position)
    closing = re.compile(r"\s*[\]}]").match(text, comma + 1)
    return comma if comma >= 0 and text[comma] == "," and closing is not None else None


def _position_before(text: str, position: int) -> int:
    """Return the position of the last non-blank character before, or -1."""
    while position > 0 and text[position - 1].isspace():
        position -= 1
    return position - 1


MOST_PROBLEMS = 5
"""Most violations of a schema that a repair names."""

MOST_TEXT = 50_000_000
"""Most characters that the violations of a schema may quote: each quotes its part of a reply."""


def check_schema(schema: str) -> None:
    """Refuse a text that is not a JSON Schema.

    Raises `InvalidParameter` if it is not a JSON object or not a valid schema; references must stay
    within it.
    """
    try:
        _validator(schema)
    except (ValueError, RecursionError) as error:
        words = getattr(error, "message", None) or str(error)
        expected = f"a JSON Schema ({' '.join(words.split())[:300]})"
        raise InvalidParameter("json_schema", schema[:80], expected) from None


def check_schema_cost(schema: str) -> None:
    """Refuse a valid schema whose checks could occupy a server.

    Stored sessions may have one, so it is refused when a council is asked, not when it is read.
    """
    try:
        _schema_cost(schema).count({})
    except UncheckableSchema as error:
        raise InvalidParameter("json_schema", schema[:80], str(error)) from None


@lru_cache(maxsize=16)
def _schema_cost(schema: str) -> SchemaCost:
    return SchemaCost(json.loads(schema))


@lru_cache(maxsize=16)
def _validator(schema: str) -> "Validator":
    # A client may have sent the schema, so nothing is fetched and no pattern backtracks for long.
    from jsonschema_rs import FancyRegexOptions, validator_for

    value = json.loads(schema)
    if not isinstance(value, dict):
        raise ValueError("is no object")
    patterns = FancyRegexOptions(backtrack_limit=10_000)
    return validator_for(value, offline=True, pattern_options=patterns)


def read_structure(reply: str, schema: str) -> tuple[str, str]:
    """Return the JSON text in a reply and its problem, if any.

    Prose or a code fence around a single JSON object or list is ignored.
    """
    text, value = _find_json(reply)
    if text is None:
        return reply, "is not one JSON value"
    if any(ambiguous_keys(value)):
        return text, "has a key twice, with different values"
    try:
        errors = _list_violations(schema, value, len(text))
    except UncheckableSchema as error:
        return text, f"cannot be checked; it needs {error}"
    problems = (
        f"at {'.'.join(map(str, error.instance_path)) or 'the top'}: {error.message}"
        for error in errors
    )
    return text, f"does not satisfy the schema: {'; '.join(problems)}" if errors else ""


def _list_violations(schema: str, value: object, length: int) -> "list[ValidationError]":
    """List the first violations; where all together would fill the memory, only the first."""
    validator = _validator(schema)
    if _schema_cost(schema).count(value) * length <= MOST_TEXT:
        return [*validator.iter_errors(value)][:MOST_PROBLEMS]
    from jsonschema_rs import ValidationError

    try:
        validator.validate(value)
    except ValidationError as error:
        return [error]
    return []


def _find_json(reply: str) -> tuple[str | None, Any]:
    text = reply.strip()
    try:
        return text, json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        pass
    try:
        [value] = find_json_values(text, _EXACT_DECODER)
        json_text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return None, None
    return json_text.encode(errors="replace").decode(), value
