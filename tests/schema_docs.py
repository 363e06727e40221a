"""JSON schemas described by docstrings: each field by the sentence that its class gives it."""

import re
from typing import Any

__all__ = ["describe"]

_HEADING = re.compile(r"\n\n?([A-Z][a-z]+)\n-{3,}\n")


def describe(schema: Any) -> Any:
    """Move what numpydoc says of a class's parameters to the properties of its schema."""
    if isinstance(schema, list):
        return [describe(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: describe(value) for name, value in schema.items()}
    text = found.get("description")
    if isinstance(text, str) and isinstance(found.get("properties"), dict):
        about, *sections = _HEADING.split(text)
        said = dict(zip(sections[::2], sections[1::2], strict=True))
        found["description"] = " ".join(about.split())
        for names, words in _parameters(said.get("Parameters", "")).items():
            for name in names.split(", "):
                if isinstance(field := found["properties"].get(name), dict):
                    field.setdefault("description", words)
    return found


def _parameters(text: str) -> dict[str, str]:
    """Name, or names with commas between, to the sentence below it."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line[:1].strip():
            lines = found.setdefault(line.partition(":")[0].strip(), [])
        else:
            lines.append(line.strip())
    return {names: " ".join(words).strip() for names, words in found.items()}
