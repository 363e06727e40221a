"""Escape foreign text for terminals, logs and JSON."""

import re
import unicodedata

KEPT = "\n\t\u200c\u200d"
"""Line ends, tabs and joiners of letters and emoji, which are safe to print."""

# Letters and marks that draw nothing, so names that differ only by them look the same.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)

STEERING = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""A regex set: controls except line ends and tabs, bidirectional and zero-width characters,
tags."""

_STEERING = re.compile(f"[{STEERING}\ud800-\udfff]")


def clean(text: str) -> str:
    r"""Escape control and invisible characters in a name, cell or line.

    Line ends are escaped too (``\n``), so that a name cannot add a line to the output.
    """
    if text.isprintable() and (text.isascii() or not _INVISIBLE.search(text)):
        return text
    return "".join(
        char if char.isprintable() and not _INVISIBLE.match(char) else _escape_match(char)
        for char in text
    )


def readable(text: str) -> str:
    """Escape control characters in a text, except line ends and tabs.

    Each character is escaped independently, so a text may be processed in pieces.
    """
    if text.isascii():  # 20 times as fast as `isprintable`
        shows = not text.encode().translate(None, _SHOWN)
    else:
        shows = all(line.isprintable() for line in text.split("\n"))
    return text if shows else "".join(map(_escape, text))


_SHOWN = bytes([*b"\n\t", *range(0x20, 0x7F)])
"""ASCII characters that `readable` does not change."""


def _escape(char: str) -> str:
    if char.isprintable() or char in KEPT or unicodedata.category(char) == "Zs":
        return char
    # A bare carriage return would overwrite the text before it.
    return "" if char == "\r" else _escape_match(char)


def _escape_match(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def escape_json(text: str) -> str:
    r"""Escape control characters in encoded JSON: ``\u009b``, ``\u202e``.

    JSON encoders do not escape them. A JSON parser reads the same values back.
    """
    return text if text.isascii() and "\x7f" not in text else _STEERING.sub(_u, text)


def _u(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_SHAPELESS = ("C", "Z", "M")
"""Categories: controls, formats and unassigned; separators; marks, which need a base character."""

_PRIVATE = "Co"
"""Private use: a font may draw these."""

_BLANK_CHARACTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0\U0001d159\U00013441\U00013442")
"""Letters and symbols that draw nothing, such as Hangul fillers and the Braille blank."""


def is_blank(text: str) -> bool:
    """True if a text has no visible character."""
    if "!" <= text[:1] <= "~":  # the usual case
        return False
    return not text.strip() or all(map(_is_shapeless, text))


def _is_shapeless(character: str) -> bool:
    kind = unicodedata.category(character)
    return character in _BLANK_CHARACTERS or (kind.startswith(_SHAPELESS) and kind != _PRIVATE)
