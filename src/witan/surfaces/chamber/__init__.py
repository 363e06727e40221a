"""What HTTP, MCP and the page share: sessions under way and kept, and no protocol."""

from witan.surfaces.chamber.asked import LOCAL, OPTIONS, Asked, Asker, Judging
from witan.surfaces.chamber.chamber import Chamber
from witan.surfaces.chamber.ledger import Ledger
from witan.surfaces.chamber.running import Observer, Running
from witan.surfaces.chamber.seatings import DEMO, Configure, Profile, Seatings
from witan.surfaces.chamber.stream import Stream
from witan.surfaces.chamber.told import Told, heard

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
