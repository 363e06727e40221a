"""Adapters of the Model port (HTTP, pydantic-ai, programs, scripts) and their seats.

Its names are imported on first use.
"""

from typing import TYPE_CHECKING

from witan.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from witan.deliberation.ports import Call as Call
    from witan.deliberation.ports import Message as Message
    from witan.deliberation.ports import Model as Model
    from witan.deliberation.ports import Options as Options
    from witan.deliberation.ports import Price as Price
    from witan.deliberation.ports import Reply as Reply
    from witan.deliberation.ports import Usage as Usage
    from witan.deliberation.procedure import ThrottlePolicy as ThrottlePolicy
    from witan.errors import ModelError as ModelError
    from witan.models.scripted import Line as Line
    from witan.models.scripted import ScriptedModel as ScriptedModel

_HOMES = {
    "witan.deliberation.ports": ("Call", "Message", "Model", "Options", "Price", "Reply", "Usage"),
    "witan.deliberation.procedure": ("ThrottlePolicy",),
    "witan.errors": ("ModelError",),
    "witan.models.scripted": ("Line", "ScriptedModel"),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)

__getattr__ = _lazy_names(__name__, _HOMES)
