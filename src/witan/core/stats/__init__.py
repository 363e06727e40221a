"""Statistics over ballots and sessions: fits, uncertainty, ratings, leaderboard, audit."""
