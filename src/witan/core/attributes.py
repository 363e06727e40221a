"""Cached attributes."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
