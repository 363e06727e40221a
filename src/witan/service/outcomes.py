"""Outcomes in results: their JSON has the fields that `witan.service.outcome_records` declares."""

from typing import Annotated, Any

from witan.core.outcome import Outcome


class _AsRecord:
    """Has the schema of an outcome say what its JSON has."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        # A count without JSON does without the declaration of its fields.
        from witan.service.outcome_records import OutcomeRecord

        return handler.generate_schema(OutcomeRecord)


OutcomeJson = Annotated[Outcome, _AsRecord()]
"""An outcome in a result: as JSON it has the fields of `OutcomeRecord`."""
