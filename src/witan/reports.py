"""The words of a verdict, in a sentence and with its tables, and a safe way to print them."""

from witan.service.trust import verdict_sentence
from witan.surfaces.report.session import judgment_text
from witan.surfaces.terminal import echo

__all__ = ["echo", "judgment_text", "verdict_sentence"]
