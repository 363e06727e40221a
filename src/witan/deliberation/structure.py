"""Final answers as JSON: schemas, and replies that satisfy them."""

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from witan.deliberation.replies import ambiguous_keys, find_json_values
from witan.errors import InvalidParameter

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MOST_PROBLEMS = 5
"""Most violations of a schema that a repair names."""


def check_schema(schema: str) -> None:
    """Refuse a text that is not a JSON Schema.

    Raises
    ------
    InvalidParameter
        If it is not a JSON object or not a valid schema; references must stay within it.
    """
    try:
        _validator(schema)
    except (ValueError, RecursionError) as error:
        words = getattr(error, "message", None) or str(error)
        expected = f"a JSON Schema ({' '.join(words.split())[:300]})"
        raise InvalidParameter("json_schema", schema[:80], expected) from None


@lru_cache(maxsize=16)
def _validator(schema: str) -> "Validator":
    # A client may have sent it, so nothing is fetched and no pattern backtracks for long.
    from jsonschema_rs import FancyRegexOptions, validator_for

    value = json.loads(schema)
    if not isinstance(value, dict):
        raise ValueError("is no object")
    return validator_for(
        value, offline=True, pattern_options=FancyRegexOptions(backtrack_limit=10_000)
    )


def read_structure(reply: str, schema: str) -> tuple[str, str]:
    """Return the JSON text in a reply and its problem, if any.

    Prose or a code fence around a single JSON object or list is ignored.
    """
    text, value = _find_json(reply)
    if text is None:
        return reply, "is not one JSON value"
    if any(ambiguous_keys(value)):
        return text, "has a key twice, with different values"
    errors = [*_validator(schema).iter_errors(value)][:MOST_PROBLEMS]
    problems = (f"at {_place(error.instance_path)}: {error.message}" for error in errors)
    return text, f"does not satisfy the schema: {'; '.join(problems)}" if errors else ""


def _find_json(reply: str) -> tuple[str | None, Any]:
    text = reply.strip()
    try:
        return text, json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        values = [*find_json_values(text)]
    if len(values) != 1:
        return None, None
    json_text = json.dumps(values[0], ensure_ascii=False)
    return json_text.encode(errors="replace").decode(), values[0]


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # JSON has no NaN and no infinity


def _place(path: list[str | int]) -> str:
    return "/" + "/".join(map(str, path))
