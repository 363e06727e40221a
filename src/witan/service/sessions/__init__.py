"""What HTTP, MCP and the page share: sessions under way and kept, and no protocol."""

from witan.service.sessions.councils import DEMO, Configure, Councils, Profile
from witan.service.sessions.manager import Service
from witan.service.sessions.messages import StreamMessage, heard
from witan.service.sessions.requests import LOCAL, OPTIONS, Client, CouncilRequest, QuestionRequest
from witan.service.sessions.running import Observer, RunningSession
from witan.service.sessions.spending import Ledger
from witan.service.sessions.stream import Stream

__all__ = [
    "DEMO",
    "LOCAL",
    "OPTIONS",
    "Client",
    "Configure",
    "CouncilRequest",
    "Councils",
    "Ledger",
    "Observer",
    "Profile",
    "QuestionRequest",
    "RunningSession",
    "Service",
    "Stream",
    "StreamMessage",
    "heard",
]
