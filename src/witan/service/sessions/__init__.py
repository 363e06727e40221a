"""Sessions of a server, running and stored; names are imported lazily."""

from typing import TYPE_CHECKING

from witan.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from witan.service.config.configuration import DEMO as DEMO
    from witan.service.sessions.councils import Configure as Configure
    from witan.service.sessions.councils import CouncilProfile as CouncilProfile
    from witan.service.sessions.councils import Councils as Councils
    from witan.service.sessions.manager import Seating as Seating
    from witan.service.sessions.manager import Service as Service
    from witan.service.sessions.running import Observer as Observer
    from witan.service.sessions.running import RunningSession as RunningSession
    from witan.service.sessions.spending import LOCAL as LOCAL
    from witan.service.sessions.spending import Client as Client
    from witan.service.sessions.spending import Ledger as Ledger
    from witan.service.sessions.stream import Stream as Stream
    from witan.service.sessions.stream import StreamMessage as StreamMessage
    from witan.service.sessions.stream import resume_point as resume_point

_HOMES = {
    "witan.service.config.configuration": ("DEMO",),
    "witan.service.sessions.councils": ("Configure", "Councils", "CouncilProfile"),
    "witan.service.sessions.manager": ("Seating", "Service"),
    "witan.service.sessions.running": ("Observer", "RunningSession"),
    "witan.service.sessions.spending": ("LOCAL", "Client", "Ledger"),
    "witan.service.sessions.stream": ("Stream", "StreamMessage", "resume_point"),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)

__getattr__ = _lazy_names(__name__, _HOMES)
