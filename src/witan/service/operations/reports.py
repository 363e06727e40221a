"""Leaderboards and audits over the sessions of a history."""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from typing import Annotated, Protocol

from witan.analytics.audits import AuditReport, audit_of
from witan.analytics.leaderboards import board_of, boards_over_time
from witan.analytics.sources import HistorySource, Source, check_rule
from witan.core.ballot import Kind
from witan.core.stats.leaderboard import ALWAYS, Leaderboard, OrderBy, Terms, Window
from witan.core.stats.sums import present_name
from witan.deliberation.ports import SystemClock
from witan.errors import HistoryConflict, NothingToCount
from witan.history import History
from witan.service.catalogue import operation, public, redacts
from witan.service.config.configuration import Config
from witan.service.parameters import Constraint, Doc
from witan.service.redaction import public_names
from witan.service.stored_sessions import WindowParameters
from witan.service.text import clean, count_noun, list_text

_log = logging.getLogger("witan.reports")


class ReportService(Protocol):
    """A source of sessions, and its client."""

    @property
    def families(self) -> Mapping[str, Collection[str]]:
        """Models of each family."""
        ...

    def source(self) -> AbstractContextManager[Source]:
        """Open the source of the sums."""
        ...

    def aliases(self, source: Source) -> Mapping[str, str]:
        """Present names of renamed models, as the client may see them."""
        ...

    def note(self, text: str) -> None:
        """Send the client a note beside the result."""
        ...


def no_history() -> HistoryConflict:
    """Return the refusal of a server without a history."""
    problem = "this server keeps no history"
    return HistoryConflict(
        "the server", problem, "ask its operator to start it without --no-history"
    )


@dataclass(frozen=True, slots=True)
class HistoryReports:
    """The history of a server, as its clients may see it.

    Parameters
    ----------
    history
        None if the server has none.
    """

    history: History | None
    config: Config

    @property
    def families(self) -> Mapping[str, Collection[str]]:
        """Models of each family."""
        return self.config.families

    @contextmanager
    def source(self) -> Iterator[Source]:
        """Open the history on its own connection, so long sums block nobody."""
        if self.history is None:
            raise no_history()
        with HistorySource.on_own_connection(self.history) as source:
            try:
                yield source
            except NothingToCount as error:
                raise NothingToCount(error.problem.removeprefix(f"{source.location}: ")) from None

    def aliases(self, source: Source) -> Mapping[str, str]:
        """Present names of renamed models, without the operator's private ones."""
        names = source.sums(ALWAYS).names().of.values()
        visible_names = public_names(
            {present_name(name, self.config.aliases): None for name in names}
        )
        return {**self.config.aliases, **visible_names}

    def note(self, text: str) -> None:
        """Log a note on a result for the operator."""
        _log.info(text)


# Models are called by the names that `ReportService.aliases` gives them.
public(Leaderboard)

DEFAULTS = Terms()


@dataclass(frozen=True, slots=True)
class LeaderboardParameters(WindowParameters):
    """Sessions, scores and order of a leaderboard, including its `Terms`."""

    rule: Annotated[
        str,
        Doc(
            "Average the scores of this rule over sessions.",
            "Standings",
            brief="Rule whose scores are averaged",
        ),
    ] = DEFAULTS.rule
    kind: Annotated[
        Kind,
        Doc(
            "Count the ballots of models, or of people.",
            "Standings",
            label="Ballots of",
            brief="Whose ballots count",
        ),
    ] = DEFAULTS.kind
    order_by: Annotated[
        OrderBy, Doc("Order by mean score, Bradley-Terry rating, or Elo.", "Standings")
    ] = DEFAULTS.order_by
    elo: Annotated[
        bool, Doc("Add Elo ratings to the others.", "Standings", label="Elo ratings", brief="")
    ] = False
    min_sessions: Annotated[
        int,
        Constraint(ge=1),
        Doc(
            "List models with fewer scored sessions separately.",
            "Standings",
            label="Fewest sessions",
            brief="Models with fewer are unranked",
        ),
    ] = DEFAULTS.min_sessions
    level: Annotated[
        float,
        Constraint(gt=0, lt=1),
        Doc(
            "Confidence level of intervals and comparisons.",
            "Standings",
            label="Confidence level",
            brief="Confidence level",
        ),
    ] = DEFAULTS.level

    def __post_init__(self) -> None:
        """Refuse impossible leaderboards before opening anything."""
        check_rule(self.rule)
        _ = self.terms

    @property
    def terms(self) -> Terms:
        """Terms of the leaderboard."""
        names = [each.name for each in fields(Terms) if hasattr(self, each.name)]
        return Terms(**{name: getattr(self, name) for name in names})


@operation("GET /leaderboard", tag="reports", pool="history")
def leaderboard(service: ReportService, parameters: LeaderboardParameters) -> Leaderboard:
    """Rank models by their scores across the sessions of the history.

    Every session counts once; simulated sessions never count. Models with few sessions are listed
    separately. With `since`, changes from the previous window of equal length are shown.
    """
    damaged: set[str] = set()
    with service.source() as source:
        if n_sessions := source.recount(parameters.rule, damaged=damaged):
            sessions = count_noun(n_sessions, "session")
            service.note(f"counting {sessions} under {parameters.rule} for the first time")
        board = board_of(
            source,
            parameters.terms,
            with_elo=parameters.elo,
            aliases=service.aliases(source),
            now=SystemClock().now(),
        )
    if damaged:
        names = f"{count_noun(len(damaged), 'session')}: {list_text(sorted(damaged))}"
        service.note(f"damaged, not counted: {clean(names)}; witan show says why")
    return replace(board, n_damaged=len(damaged))


def scores_over_time(
    service: ReportService, terms: Terms
) -> tuple[tuple[Window, Leaderboard | None], ...]:
    """Rank models in eight equal periods of the sessions' time span."""
    with service.source() as source:
        return boards_over_time(source, terms, 8, aliases=service.aliases(source))


@dataclass(frozen=True, slots=True)
class AuditParameters(WindowParameters):
    """Sessions and figures of an audit."""

    reviewer: Annotated[
        str | None,
        Doc(
            "Full report on one reviewer: a model, a person, or people.",
            "Figures",
            "NAME",
            brief="Report on one: a model, a person, or people",
        ),
    ] = None
    criterion: Annotated[
        str | None,
        Doc(
            "Report how each reviewer grades on this criterion only.",
            "Figures",
            "NAME",
            brief="Grades on this criterion only",
        ),
    ] = None
    level: Annotated[
        float,
        Constraint(gt=0, lt=1),
        Doc(
            "Confidence level of intervals and findings.",
            "Figures",
            label="Confidence level",
            brief="Confidence level",
        ),
    ] = 0.95


# Reviewers are called by the names that `ReportService.aliases` gives them.
@redacts(AuditReport)
def _without_aliases(report: AuditReport) -> AuditReport:
    return replace(report, aliases={})


@operation("GET /audit", tag="reports", pool="history")
def audit(service: ReportService, parameters: AuditParameters) -> AuditReport:
    """Audit how reviewers judge: preferences, concordance and value.

    Notable findings are marked; a measure without enough data says so. Simulated sessions never
    count. Families of models, and old names of models, come from the configuration.
    """
    with service.source() as source:
        report = audit_of(
            source,
            parameters.window,
            aliases=service.aliases(source),
            families=service.families,
            level=parameters.level,
        )
    return report.on(parameters.reviewer, parameters.criterion)
