"""The safety check: gates that an answer has to pass."""

from witan.core.gate import Gate, SafetyCheck, SafetyVerdict
from witan.core.safety import check

__all__ = ["Gate", "SafetyCheck", "SafetyVerdict", "check"]
