"""Events of a session, and what listens to them."""

from witan.deliberation.events import EVENTS, Event
from witan.deliberation.record import Listener, event_from_json, event_to_json

__all__ = ["EVENTS", "Event", "Listener", "event_from_json", "event_to_json"]
