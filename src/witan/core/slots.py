"""Frozen dataclasses: made by the million, and shown on one line."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from itertools import accumulate
from typing import Any, TypeVar

from witan.core.display import brief, list_some

Class = TypeVar("Class")

MAX_LINE = 120
"""Characters of the line that lists what differs from the defaults."""


def set_by_slots(cls: type[Class]) -> type[Class]:
    """Give a frozen, slotted dataclass an `__init__` twice as fast.

    The generated one sets each field by `object.__setattr__`, which looks the slot up by name; this
    one calls the slots themselves.
    """
    names: dict[str, Any] = {"missing": MISSING}
    parameters, lines = [], []
    for field in fields(cls):  # type: ignore[arg-type]
        name = field.name
        names[f"set_{name}"] = cls.__dict__[name].__set__
        value = name
        if field.default_factory is not MISSING:
            names[f"make_{name}"] = field.default_factory
            parameters.append(f"{name}=missing")
            value = f"make_{name}() if {name} is missing else {name}"
        elif field.default is not MISSING:
            names[f"default_{name}"] = field.default
            parameters.append(f"{name}=default_{name}")
        else:
            parameters.append(name)
        lines.append(f"    set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    exec("\n".join([f"def __init__(self, {', '.join(parameters)}):", *lines]), names)  # noqa: S102 - of names of fields
    init = names["__init__"]
    generated_init: Any = cls.__init__
    init.__qualname__, init.__module__ = generated_init.__qualname__, cls.__module__
    init.__annotations__ = generated_init.__annotations__
    cls.__init__ = init  # type: ignore[method-assign]
    return cls


def changes_line(settings: Any) -> str:
    """Name a dataclass and its changed fields on one line.

    Fields of nested settings are listed flat, like the keywords of a council.
    """
    kind = type(settings)
    changes = [f"{name}={_brief_value(value)}" for name, value in _changes(settings, kind())]
    room = MAX_LINE - len(f"<{kind.__name__}: , 99 more>")
    n_fitting = sum(n <= room for n in accumulate(len(change) + 2 for change in changes))
    return f"<{kind.__name__}: {', '.join(list_some(changes, n_fitting)) or 'all defaults'}>"


def _changes(settings: Any, default: Any) -> Iterator[tuple[str, object]]:
    for each in fields(settings):
        value, usual = getattr(settings, each.name), getattr(default, each.name)
        if type(value) is type(usual) and is_dataclass(usual) and _has_defaults(usual):
            yield from _changes(value, usual)
        elif value != usual:
            yield each.name, value


def _has_defaults(value: Any) -> bool:
    return all((each.default, each.default_factory) != (MISSING, MISSING) for each in fields(value))


def _brief_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{brief(', '.join(f'{key}: {item}' for key, item in value.items()))[1:-1]}}}"
    if is_dataclass(value) and hasattr(value, "name"):
        return brief(value.name)
    return brief(value) if isinstance(value, str) else brief(str(value))[1:-1]
