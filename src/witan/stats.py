"""Statistics over ballots and sessions, beyond an outcome and a leaderboard."""

from witan.core.interpretation import Counting
from witan.core.outcome import BallotNote, Prior
from witan.core.profile import Profile
from witan.core.stats.comparisons import Comparisons, encode
from witan.core.stats.leaderboard import LeaderboardLine, Terms
from witan.core.window import Window

__all__ = [
    "BallotNote",
    "Comparisons",
    "Counting",
    "LeaderboardLine",
    "Prior",
    "Profile",
    "Terms",
    "Window",
    "encode",
]
