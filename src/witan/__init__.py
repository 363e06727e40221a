"""An LLM council whose verdicts carry their uncertainty.

Everything named here is public, and so are the subjects ``witan.batches``, ``witan.councils``,
``witan.rules``, ``witan.models``, ``witan.events``, ``witan.files``, ``witan.history``,
``witan.reports``, ``witan.safety``, ``witan.stats`` and ``witan.errors``. Each is imported when it
is first used: ``import witan`` alone imports none of them.
"""

from importlib import import_module
from sys import modules as _modules
from typing import TYPE_CHECKING, Any

from witan.core.display import render_by as _render_by
from witan.lazy_names import lazy_names as _lazy_names
from witan.version import __version__ as __version__

if TYPE_CHECKING:
    from witan import batches as batches
    from witan import councils as councils
    from witan import errors as errors
    from witan import events as events
    from witan import files as files
    from witan import history as history
    from witan import models as models
    from witan import reports as reports
    from witan import rules as rules
    from witan import safety as safety
    from witan import stats as stats
    from witan.analytics.audits import AuditReport as AuditReport
    from witan.analytics.audits import audit as audit
    from witan.analytics.leaderboards import leaderboard as leaderboard
    from witan.core.ballot import Ballot as Ballot
    from witan.core.comparison import Comparison as Comparison
    from witan.core.comparison import compare_rules as compare_rules
    from witan.core.explanation import Explanation as Explanation
    from witan.core.explanation import explain as explain
    from witan.core.outcome import Outcome as Outcome
    from witan.core.outcome import Standing as Standing
    from witan.core.rubric import RUBRICS as RUBRICS
    from witan.core.rubric import Rubric as Rubric
    from witan.core.rules import RULES as RULES
    from witan.core.settings import Settings as Settings
    from witan.core.stats.leaderboard import Leaderboard as Leaderboard
    from witan.core.stats.ratings import Ratings as Ratings
    from witan.core.stats.ratings import rate as rate
    from witan.core.tally import tally as tally
    from witan.core.tally import tally_sessions as tally_sessions
    from witan.core.verdict import Verdict as Verdict
    from witan.deliberation.events import Event as Event
    from witan.deliberation.plan import Plan as Plan
    from witan.deliberation.ports import Member as Member
    from witan.deliberation.ports import Model as Model
    from witan.deliberation.ports import Price as Price
    from witan.deliberation.procedure import Limits as Limits
    from witan.deliberation.procedure import Procedure as Procedure
    from witan.deliberation.record import session_from_json as session_from_json
    from witan.deliberation.record import session_to_json as session_to_json
    from witan.deliberation.session import Answer as Answer
    from witan.deliberation.session import Session as Session
    from witan.deliberation.session import Synthesis as Synthesis
    from witan.errors import WitanError as WitanError
    from witan.files.ballots import read_ballots as read_ballots
    from witan.files.ballots import write_ballots as write_ballots
    from witan.history import History as History
    from witan.service.council import Council as Council
    from witan.service.council import ask as ask
    from witan.service.council import judge as judge
    from witan.surfaces.report import session_to_html as session_to_html

_HOMES = {
    "witan.analytics.audits": ("audit", "AuditReport"),
    "witan.analytics.leaderboards": ("leaderboard",),
    "witan.core.ballot": ("Ballot",),
    "witan.core.comparison": ("compare_rules", "Comparison"),
    "witan.core.explanation": ("explain", "Explanation"),
    "witan.core.stats.leaderboard": ("Leaderboard",),
    "witan.core.outcome": ("Outcome", "Standing"),
    "witan.core.stats.ratings": ("rate", "Ratings"),
    "witan.core.rubric": ("Rubric", "RUBRICS"),
    "witan.core.rules": ("RULES",),
    "witan.core.settings": ("Settings",),
    "witan.core.tally": ("tally", "tally_sessions"),
    "witan.core.verdict": ("Verdict",),
    "witan.deliberation.events": ("Event",),
    "witan.deliberation.plan": ("Plan",),
    "witan.deliberation.ports": ("Member", "Model", "Price"),
    "witan.deliberation.procedure": ("Procedure", "Limits"),
    "witan.deliberation.record": ("session_from_json", "session_to_json"),
    "witan.deliberation.session": ("Session", "Answer", "Synthesis"),
    "witan.errors": ("WitanError",),
    "witan.files.ballots": ("read_ballots", "write_ballots"),
    "witan.history": ("History",),
    "witan.service.council": ("ask", "judge", "Council"),
    "witan.surfaces.report": ("session_to_html",),
}

_SUBJECTS = (
    "batches",
    "councils",
    "errors",
    "events",
    "files",
    "history",
    "models",
    "reports",
    "rules",
    "safety",
    "stats",
)

__all__ = sorted(name for names in _HOMES.values() for name in names)

__getattr__ = _lazy_names(__name__, _HOMES, _SUBJECTS)


def __dir__() -> list[str]:
    return [*__all__, *_SUBJECTS, "__version__"]


def _result_html(result: object) -> str | None:
    html: str | None = import_module("witan.surfaces.notebook").result_html(result)
    return html


def _result_markdown(result: object) -> str:
    markdown: str = import_module("witan.surfaces.notebook").result_markdown(result)
    return markdown


def _result_frame(result: Any, library: Any) -> object:
    return import_module("witan.surfaces.notebook").make_frame(result.rows(), library)


def _live_view(work: str) -> Any:
    if "IPython" not in _modules:
        return None
    return import_module("witan.surfaces.notebook").open_view(work)


_render_by(html=_result_html, markdown=_result_markdown, frame=_result_frame, live=_live_view)
