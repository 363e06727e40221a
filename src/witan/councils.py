"""Councils by name, their settings and procedures, and views of running sessions.

Names are imported on first use, so a program that only lists councils does not load one.
"""

from typing import TYPE_CHECKING

from witan.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from witan.deliberation.record import procedure_to_json as procedure_to_json
    from witan.service.council import AskOptions as AskOptions
    from witan.service.council import JudgeOptions as JudgeOptions
    from witan.service.council import seat_jury as seat_jury
    from witan.service.sessions.councils import council_names as council_names
    from witan.service.sessions.councils import seat_by_name as seat_by_name
    from witan.service.settings import CouncilSettings as CouncilSettings
    from witan.surfaces.live_board import Board as Board
    from witan.surfaces.live_board import FinalText as FinalText
    from witan.surfaces.openai.requests import read_chat as read_chat
    from witan.surfaces.report.session import ReplyFooter as ReplyFooter

_HOMES = {
    "witan.deliberation.record": ("procedure_to_json",),
    "witan.service.council": ("AskOptions", "JudgeOptions", "seat_jury"),
    "witan.service.sessions.councils": ("council_names", "seat_by_name"),
    "witan.service.settings": ("CouncilSettings",),
    "witan.surfaces.live_board": ("Board", "FinalText"),
    "witan.surfaces.openai.requests": ("read_chat",),
    "witan.surfaces.report.session": ("ReplyFooter",),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)

__getattr__ = _lazy_names(__name__, _HOMES)
