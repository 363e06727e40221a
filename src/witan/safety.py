"""The safety check: gates that an answer has to pass."""

from witan.core.gate import Gate, SafetyCheck, Verdict
from witan.core.safety import check

__all__ = ["Gate", "SafetyCheck", "Verdict", "check"]
