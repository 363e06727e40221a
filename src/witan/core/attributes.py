"""Cached attributes, and a faster `__init__` for slotted dataclasses."""

import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: TID251 - the original
else:

    class cached_property:  # noqa: N801 - named as in the standard library
        """`functools.cached_property` without Python 3.11's lock for all instances.

        With the lock, an event loop waits while another thread computes the same attribute of
        another object. Without it, two threads may compute the same value twice.
        """

        def __init__(self, func: Callable[[Any], Any]) -> None:
            self.func, self.__doc__ = func, func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.func(instance)
            return value


Class = TypeVar("Class")


class _Missing:
    """Marker for a default from a factory; signatures show `<factory>`."""

    def __repr__(self) -> str:
        return "<factory>"


def set_by_slots(cls: type[Class]) -> type[Class]:
    """Make the `__init__` of a frozen, slotted dataclass twice as fast.

    The generated method sets each field with `object.__setattr__`, which looks the slot up by name;
    this one calls the slots directly.
    """
    # Name mangling keeps fields from having names like these.
    names: dict[str, Any] = {"__missing": _Missing()}
    parameters, lines = ["__self"], []
    for field in sorted(fields(cls), key=lambda field: field.kw_only is True):  # type: ignore[arg-type]
        name = value = field.name
        names[f"__{name}_set"] = getattr(cls, name).__set__
        if field.kw_only is True and "*" not in parameters:
            parameters.append("*")
        if field.default_factory is not MISSING:
            names[f"__{name}_make"] = field.default_factory
            parameters.append(f"{name}=__missing")
            value = f"__{name}_make() if {name} is __missing else {name}"
        elif field.default is not MISSING:
            names[f"__{name}_default"] = field.default
            parameters.append(f"{name}=__{name}_default")
        else:
            parameters.append(name)
        lines.append(f"    __{name}_set(__self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    __self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *lines]), names)  # noqa: S102 - only field names
    init = names["__init__"]
    generated_init: Any = cls.__init__
    init.__qualname__, init.__module__ = generated_init.__qualname__, cls.__module__
    init.__annotations__ = generated_init.__annotations__
    cls.__init__ = init  # type: ignore[method-assign]
    return cls
