"""Growing texts as Markdown: finished blocks, and the last one."""

from dataclasses import dataclass

from markupsafe import Markup

from witan.surfaces.web.markdown import last_block, render_html

FINE_CHARS = 512
"""Up to this length the last block is shown to its last character."""

STEPS = 16
"""Steps in which a longer last block doubles: each of them renders it anew."""


@dataclass(frozen=True, slots=True)
class GrowingText:
    """A growing text so far, a function of its characters alone.

    Whoever has the page of some moment, however many patches led to it, can apply the next one.

    Parameters
    ----------
    text
        The part that is shown.
    tail_start
        Where its last block begins; what stands before it does not change.
    """

    text: str = ""
    tail_start: int = 0

    def grow(self, text: str) -> "GrowingText":
        """Return the text with more, or other, characters."""
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        known = self.tail_start if lines.startswith(self.text) else 0
        start = known + last_block(lines[known:])
        length = len(lines) - start
        if length > FINE_CHARS:
            step = max(1, (1 << length.bit_length() - 1) // STEPS)
            length -= length % step
        return GrowingText(lines[: start + length], start)

    def continues(self, earlier: "GrowingText") -> bool:
        """Return true for an earlier text, or the same finished blocks."""
        finished = earlier.text[: earlier.tail_start]
        return self.tail_start >= earlier.tail_start and self.text.startswith(finished)

    def blocks(self, start: int = 0) -> Markup:
        """Render the finished blocks from a place on."""
        return render_html(self.text[start : self.tail_start])

    @property
    def tail(self) -> Markup:
        """The last block, rendered."""
        return render_html(self.text[self.tail_start :])


NOTHING_WRITTEN = GrowingText()
