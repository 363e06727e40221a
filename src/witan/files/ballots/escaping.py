"""Text of tables and lists: written so that it is only text, and read back as it was."""

import re
import sys

from witan.core.escaping import STEERING

__all__ = ["escape_controls", "plain_cell", "restore_controls", "safe_cell"]

# Full-width signs too: some spreadsheets take them for the plain ones.
_FORMULA = re.compile("[=+\\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

_CODE = r"x\{([0-9a-f]{1,6})\}"
_UNSAFE = re.compile(rf"(?<!\\)(\\*+)(?:([{STEERING}])|(?={_CODE}))")
_ESCAPE = re.compile(rf"(?<!\\)(\\++){_CODE}")


def safe_cell(text: str) -> str:
    r"""Write a text so that no spreadsheet runs it and no terminal obeys it.

    A text that begins like a formula gets an apostrophe before it, by which spreadsheets mark
    text; a control character becomes ``\x{1b}``. `plain_cell` gives the text back.
    """
    text = escape_controls(text)
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def plain_cell(text: str) -> str:
    """Read a text that `safe_cell` wrote."""
    if text.startswith("'") and _is_formula(text.lstrip("'")):
        text = text[1:]
    return restore_controls(text)


def escape_controls(text: str) -> str:
    r"""Write control characters as ``\x{1b}``, but line ends and tabs as they are.

    Backslashes are doubled where they would be read as part of such an escape.
    """
    return text if text.isprintable() and "\\" not in text else _UNSAFE.sub(_written, text)


def restore_controls(text: str) -> str:
    """Read a text that `escape_controls` wrote."""
    return _ESCAPE.sub(_read, text) if "\\" in text else text


def _written(found: re.Match[str]) -> str:
    slashes, char, _ = found.groups()
    return slashes * 2 + (f"\\x{{{ord(char):x}}}" if char else "")


def _read(found: re.Match[str]) -> str:
    slashes, code = found.groups()
    half = slashes[: len(slashes) // 2]
    if len(slashes) % 2 == 0:
        return f"{half}x{{{code}}}"
    return half + chr(int(code, 16)) if int(code, 16) <= sys.maxunicode else found[0]


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
