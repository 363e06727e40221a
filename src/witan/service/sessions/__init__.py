"""What HTTP, MCP and the page share: sessions under way and kept, and no protocol."""

from witan.service.sessions.councils import DEMO, Configure, Profile, Seatings
from witan.service.sessions.manager import Chamber
from witan.service.sessions.messages import Told, heard
from witan.service.sessions.requests import LOCAL, OPTIONS, Asked, Asker, Judging
from witan.service.sessions.running import Observer, Running
from witan.service.sessions.spending import Ledger
from witan.service.sessions.stream import Stream

__all__ = [
    "DEMO",
    "LOCAL",
    "OPTIONS",
    "Asked",
    "Asker",
    "Chamber",
    "Configure",
    "Judging",
    "Ledger",
    "Observer",
    "Profile",
    "Running",
    "Seatings",
    "Stream",
    "Told",
    "heard",
]
