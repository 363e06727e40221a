"""Attributes that are computed once."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: TID251 - as it is from there
else:

    class cached_property:  # noqa: N801 - as in the standard library
        """`functools.cached_property` without the lock that Python 3.11 has for all instances.

        Under it an event loop waits for another thread that computes the same attribute of
        another object. Without it two threads may compute one value twice.
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
