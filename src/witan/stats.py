"""Statistics over ballots and sessions, beyond an outcome and a leaderboard."""

from witan.core.estimation import Estimates, estimate
from witan.core.holdout import CalibrationCheck, check_calibration, learn_weights_from_people
from witan.core.interpretation import Counting
from witan.core.outcome import BallotNote, Interval, Prior
from witan.core.profile import Profile
from witan.core.stats.comparisons import Comparisons, encode
from witan.core.stats.leaderboard import LeaderboardLine, Terms, Window

__all__ = [
    "BallotNote",
    "CalibrationCheck",
    "Comparisons",
    "Counting",
    "Estimates",
    "Interval",
    "LeaderboardLine",
    "Prior",
    "Profile",
    "Terms",
    "Window",
    "check_calibration",
    "encode",
    "estimate",
    "learn_weights_from_people",
]
