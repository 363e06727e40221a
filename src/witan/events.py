"""Events of a session, and their listeners."""

from witan.deliberation.events import EVENTS, Event, Listener
from witan.deliberation.record import event_from_json, event_to_json

__all__ = ["EVENTS", "Event", "Listener", "event_from_json", "event_to_json"]
