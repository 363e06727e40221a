"""Imports from files and exports to files.

Its names are imported on first use.
"""

from typing import TYPE_CHECKING

from witan.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from witan.files.ballots import FORMATS as FORMATS
    from witan.files.ballots import LineProblem as LineProblem
    from witan.files.ballots import read_ballots as read_ballots
    from witan.files.ballots import write_ballots as write_ballots
    from witan.files.exports import mean_grades as mean_grades
    from witan.files.exports import share_of_scale as share_of_scale
    from witan.files.exports import verdict_facts as verdict_facts
    from witan.files.rubric_toml import load_rubric as load_rubric
    from witan.files.rubric_toml import rubric_to_toml as rubric_to_toml

_HOMES = {
    "witan.files.ballots": ("FORMATS", "LineProblem", "read_ballots", "write_ballots"),
    "witan.files.exports": ("mean_grades", "share_of_scale", "verdict_facts"),
    "witan.files.rubric_toml": ("load_rubric", "rubric_to_toml"),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)

__getattr__ = _lazy_names(__name__, _HOMES)
