"""Options that go together, written once for all commands that have them."""

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Decorator", "stacked"]

F = TypeVar("F", bound=Callable[..., Any])

Decorator = Callable[[F], F]


def stacked(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Apply decorators so that their options stand in the help in this order."""

    def apply(command: F) -> F:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return apply
