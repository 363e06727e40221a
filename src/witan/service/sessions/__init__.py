"""Sessions of a server, running and stored, for every protocol."""

from witan.service.config.configuration import DEMO
from witan.service.sessions.councils import Configure, Councils, Profile
from witan.service.sessions.limits import LOCAL, Client
from witan.service.sessions.manager import Service
from witan.service.sessions.running import Observer, RunningSession
from witan.service.sessions.spending import Ledger
from witan.service.sessions.stream import Stream, StreamMessage, heard

__all__ = [
    "DEMO",
    "LOCAL",
    "Client",
    "Configure",
    "Councils",
    "Ledger",
    "Observer",
    "Profile",
    "RunningSession",
    "Service",
    "Stream",
    "StreamMessage",
    "heard",
]
