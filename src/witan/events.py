"""Events of a session, and what listens to them."""

from witan.deliberation.events import EVENTS, Event
from witan.deliberation.record import event_from_json, event_to_json
from witan.deliberation.recorder import Listener

__all__ = ["EVENTS", "Event", "Listener", "event_from_json", "event_to_json"]
