"""Rank models by their scores across the sessions of a history."""

from dataclasses import dataclass
from typing import Annotated, Literal

from witan.analytics.leaderboards import board_of, boards_over_time
from witan.analytics.sources import check_rule
from witan.core.stats.leaderboard import Leaderboard, Terms
from witan.core.window import Window
from witan.deliberation.ports import SystemClock
from witan.service.catalogue import operation, public
from witan.service.parameters import Constraint, Doc
from witan.service.reports import ReportService
from witan.service.stored_sessions import WindowParameters
from witan.service.text import counted

# Models are called by the names that `ReportService.aliases` gives them.
public(Leaderboard)


@dataclass(frozen=True, slots=True)
class LeaderboardParameters(WindowParameters):
    """Sessions, scores and order of a leaderboard."""

    rule: Annotated[str, Doc("Average the scores of this rule over sessions.", "Standings")] = (
        "borda"
    )
    kind: Annotated[
        Literal["model", "human"],
        Doc("Count the ballots of models, or of people.", "Standings", label="Ballots of"),
    ] = "model"
    order_by: Annotated[
        Literal["score", "rating", "elo"],
        Doc("Order by mean score, Bradley-Terry rating, or Elo.", "Standings"),
    ] = "score"
    elo: Annotated[
        bool, Doc("Add Elo ratings to the others.", "Standings", label="Elo ratings")
    ] = False
    min_sessions: Annotated[
        int,
        Constraint(ge=1),
        Doc("List models with fewer scored sessions apart.", "Standings", label="Fewest sessions"),
    ] = 10
    level: Annotated[
        float,
        Constraint(gt=0, lt=1),
        Doc(
            "Confidence level of intervals and comparisons.", "Standings", label="Confidence level"
        ),
    ] = 0.95

    def __post_init__(self) -> None:
        """Refuse what no leaderboard can be of, before anything is opened."""
        check_rule(self.rule)
        _ = self.terms

    @property
    def terms(self) -> Terms:
        """Terms of the leaderboard."""
        return Terms(
            rule=self.rule,
            kind=self.kind,
            window=self.window,
            order_by=self.order_by,
            min_sessions=self.min_sessions,
            level=self.level,
        )


@operation("leaderboard", get="/leaderboard", tag="reports", pool="kept")
def leaderboard(service: ReportService, parameters: LeaderboardParameters) -> Leaderboard:
    """Rank models by their scores across the sessions of the history.

    Every session counts once; simulated sessions never count. Models with few sessions are listed
    apart. With `since`, changes are shown against the window of equal length before.
    """
    with service.source() as source:
        if n_sessions := source.recount(parameters.rule):
            sessions = counted(n_sessions, "session")
            service.note(f"{sessions} counted under {parameters.rule} for the first time")
        return board_of(
            source,
            parameters.terms,
            with_elo=parameters.elo,
            aliases=service.aliases(source),
            now=SystemClock().now(),
        )


def scores_over_time(
    service: ReportService, terms: Terms, parts: int = 8
) -> tuple[tuple[Window, Leaderboard | None], ...]:
    """Rank models in each of so many equal parts of the time that the sessions span."""
    with service.source() as source:
        return boards_over_time(source, terms, parts, aliases=service.aliases(source))
