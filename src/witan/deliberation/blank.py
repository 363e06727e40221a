"""Texts that show nothing: of white space, and of characters that have no shape of their own."""

from unicodedata import category

__all__ = ["is_blank"]

_SHAPELESS = ("C", "Z", "M")
"""Controls, formats and unassigned; separators; marks, which need a character to stand on."""

_PRIVATE = "Co"
"""A font of one's own may give these a shape."""

_EMPTY = frozenset("\u115f\u1160\u2800\u3164\uffa0\U0001d159\U00013441\U00013442")
"""Letters and signs that are drawn as nothing: Hangul fillers, the Braille blank and their like."""


def is_blank(text: str) -> bool:
    """Tell whether nothing in a text can be seen."""
    return not text.strip() or all(map(_is_shapeless, text))


def _is_shapeless(character: str) -> bool:
    kind = category(character)
    return character in _EMPTY or (kind.startswith(_SHAPELESS) and kind != _PRIVATE)
