"""The safety check: gates that an answer has to pass."""

from witan.core.safety import Gate, SafetyCheck, SafetyVerdict, check

__all__ = ["Gate", "SafetyCheck", "SafetyVerdict", "check"]
