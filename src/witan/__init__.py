"""An LLM council whose verdicts carry their uncertainty.

Everything named here is public; each name is imported when it is first used, so that
``import witan`` costs nothing that is not asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from witan.core.display import render_by as _render_by
from witan.version import __version__ as __version__

if TYPE_CHECKING:
    from witan.analytics.reports import AuditReport as AuditReport
    from witan.analytics.reports import audit as audit
    from witan.analytics.reports import leaderboard as leaderboard
    from witan.core.ballot import Ballot as Ballot
    from witan.core.comparison import Comparison as Comparison
    from witan.core.comparison import compare_rules as compare_rules
    from witan.core.comparisons import Comparisons as Comparisons
    from witan.core.comparisons import encode as encode
    from witan.core.explanation import Explanation as Explanation
    from witan.core.explanation import explain as explain
    from witan.core.gate import Gate as Gate
    from witan.core.gate import SafetyCheck as SafetyCheck
    from witan.core.gate import Verdict as Verdict
    from witan.core.interpretation import Counting as Counting
    from witan.core.leaderboard import Leaderboard as Leaderboard
    from witan.core.leaderboard import LeaderboardLine as LeaderboardLine
    from witan.core.leaderboard import Terms as Terms
    from witan.core.outcome import BallotNote as BallotNote
    from witan.core.outcome import Interval as Interval
    from witan.core.outcome import Outcome as Outcome
    from witan.core.outcome import Prior as Prior
    from witan.core.outcome import Standing as Standing
    from witan.core.profile import Profile as Profile
    from witan.core.ratings import Ratings as Ratings
    from witan.core.ratings import rate as rate
    from witan.core.rubric import Rubric as Rubric
    from witan.core.rubrics import RUBRICS as RUBRICS
    from witan.core.rules import RULES as RULES
    from witan.core.rules import Axiom as Axiom
    from witan.core.rules import Rule as Rule
    from witan.core.rules import Scores as Scores
    from witan.core.rules import rule as rule
    from witan.core.safety import check as check
    from witan.core.settings import Settings as Settings
    from witan.core.tally import tally as tally
    from witan.core.tally import tally_sessions as tally_sessions
    from witan.core.window import Window as Window
    from witan.deliberation.events import EVENTS as EVENTS
    from witan.deliberation.events import Event as Event
    from witan.deliberation.plan import Plan as Plan
    from witan.deliberation.ports import Call as Call
    from witan.deliberation.ports import Member as Member
    from witan.deliberation.ports import Message as Message
    from witan.deliberation.ports import Model as Model
    from witan.deliberation.ports import Options as Options
    from witan.deliberation.ports import Price as Price
    from witan.deliberation.ports import Reply as Reply
    from witan.deliberation.ports import Usage as Usage
    from witan.deliberation.procedure import Limits as Limits
    from witan.deliberation.procedure import Procedure as Procedure
    from witan.deliberation.procedure import Throttling as Throttling
    from witan.deliberation.record import event_from_json as event_from_json
    from witan.deliberation.record import event_to_json as event_to_json
    from witan.deliberation.record import session_from_json as session_from_json
    from witan.deliberation.record import session_to_json as session_to_json
    from witan.deliberation.recorder import Listener as Listener
    from witan.deliberation.session import Answer as Answer
    from witan.deliberation.session import Session as Session
    from witan.deliberation.session import Synthesis as Synthesis
    from witan.errors import HistoryError as HistoryError
    from witan.errors import ModelError as ModelError
    from witan.errors import NoCouncil as NoCouncil
    from witan.errors import WitanError as WitanError
    from witan.files.ballots import FORMATS as FORMATS
    from witan.files.ballots import Problem as Problem
    from witan.files.ballots import read_ballots as read_ballots
    from witan.files.ballots import write_ballots as write_ballots
    from witan.files.rubric_toml import load_rubric as load_rubric
    from witan.files.rubric_toml import rubric_to_toml as rubric_to_toml
    from witan.history import History as History
    from witan.models.scripted import Line as Line
    from witan.models.scripted import Scripted as Scripted
    from witan.service.council import Council as Council
    from witan.service.council import Seatable as Seatable
    from witan.service.council import ask as ask
    from witan.surfaces.session_pages import session_to_html as session_to_html

_HOMES = {
    "witan.files.ballots": (
        "FORMATS",
        "Problem",
        "read_ballots",
        "write_ballots",
    ),
    "witan.history": ("History",),
    "witan.analytics.reports": (
        "AuditReport",
        "audit",
        "leaderboard",
    ),
    "witan.files.rubric_toml": (
        "load_rubric",
        "rubric_to_toml",
    ),
    "witan.models.scripted": (
        "Line",
        "Scripted",
    ),
    "witan.core.ballot": ("Ballot",),
    "witan.core.comparison": (
        "Comparison",
        "compare_rules",
    ),
    "witan.core.comparisons": (
        "Comparisons",
        "encode",
    ),
    "witan.core.explanation": (
        "Explanation",
        "explain",
    ),
    "witan.core.gate": (
        "Gate",
        "SafetyCheck",
        "Verdict",
    ),
    "witan.core.interpretation": ("Counting",),
    "witan.core.leaderboard": (
        "Leaderboard",
        "LeaderboardLine",
        "Terms",
    ),
    "witan.core.outcome": (
        "BallotNote",
        "Interval",
        "Outcome",
        "Prior",
        "Standing",
    ),
    "witan.core.profile": ("Profile",),
    "witan.core.ratings": (
        "Ratings",
        "rate",
    ),
    "witan.core.rubric": ("Rubric",),
    "witan.core.rubrics": ("RUBRICS",),
    "witan.core.rules": (
        "Axiom",
        "RULES",
        "Rule",
        "Scores",
        "rule",
    ),
    "witan.core.safety": ("check",),
    "witan.core.settings": ("Settings",),
    "witan.core.tally": (
        "tally",
        "tally_sessions",
    ),
    "witan.core.window": ("Window",),
    "witan.deliberation.events": (
        "EVENTS",
        "Event",
    ),
    "witan.deliberation.plan": ("Plan",),
    "witan.deliberation.ports": (
        "Call",
        "Member",
        "Message",
        "Model",
        "Options",
        "Price",
        "Reply",
        "Usage",
    ),
    "witan.deliberation.procedure": (
        "Limits",
        "Procedure",
        "Throttling",
    ),
    "witan.deliberation.recorder": ("Listener",),
    "witan.deliberation.record": (
        "event_from_json",
        "event_to_json",
        "session_from_json",
        "session_to_json",
    ),
    "witan.deliberation.session": (
        "Answer",
        "Session",
        "Synthesis",
    ),
    "witan.errors": (
        "HistoryError",
        "ModelError",
        "NoCouncil",
        "WitanError",
    ),
    "witan.service.council": (
        "Council",
        "ask",
    ),
    "witan.surfaces.session_pages": ("session_to_html",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'witan' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def _report_html(result: object) -> str | None:
    html: str | None = import_module("witan.surfaces.notebook").report_html(result)
    return html


_render_by(_report_html)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
