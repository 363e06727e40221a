"""A verdict in a sentence and in tables, and safe printing."""

from witan.service.trust import verdict_sentence, verdict_text
from witan.surfaces.report.session import judgment_text
from witan.surfaces.terminal import echo

__all__ = ["echo", "judgment_text", "verdict_sentence", "verdict_text"]
