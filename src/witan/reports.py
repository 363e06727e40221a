"""The words of a verdict: in a sentence, and with its tables."""

from witan.service.trust import verdict_sentence
from witan.surfaces.report.session import judgment_text

__all__ = ["judgment_text", "verdict_sentence"]
