"""A leaderboard, read off a history or a lake."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType

import numpy as np

from witan.analytics.lake_engine import DuckLake
from witan.analytics.sources import (
    BASE_RULE,
    Source,
    asked_between,
    check_rule,
    coverage_of,
    nothing,
    open_source,
)
from witan.analytics.spark_engine import SparkLake
from witan.analytics.sums import Reductions
from witan.core.rules.elo import Match, rate_matches
from witan.core.stats import leaderboard as core
from witan.core.stats.leaderboard import Leaderboard, Terms
from witan.core.stats.sums import (
    AnswerSums,
    MatchupSums,
    Names,
    StandingSums,
    merge,
    renamed,
    renamed_codes,
)
from witan.core.window import Window
from witan.deliberation.ports import SystemClock
from witan.errors import HistoryError, NothingToCount
from witan.history import History

NO_ALIASES: Mapping[str, str] = MappingProxyType({})


def leaderboard(
    source: History | DuckLake | SparkLake | str | Path,
    terms: Terms | None = None,
    *,
    with_elo: bool = False,
    aliases: Mapping[str, str] = NO_ALIASES,
    now: datetime | None = None,
) -> Leaderboard:
    """Order models by how they fared across sessions, with the change against the window before.

    Sessions of a history that were never counted under the rule are counted first, and what comes
    of it is kept.

    Parameters
    ----------
    source
        A history, or its path or URL; an engine, or the folder of a lake.
    terms
        What is asked for.
    with_elo
        Rate by Elo as well, which reads every match; done where that is to be the order.
    aliases
        Old name → new name of a model.
    now
        Where a window without an end ends, for the length of the one before; None: now.

    Raises
    ------
    NothingToCount
        If no session is in the window, or none that could be counted.
    HistoryError
        If the source cannot be read, or is a lake without standings under the rule.
    UnknownName, InvalidParameter
        If the rule is not known, or has no score of a single session; if aliases run in a circle.
    """
    terms = Terms() if terms is None else terms
    check_rule(terms.rule)
    with open_source(source) as opened:
        opened.recount(terms.rule, aliases)
        at = SystemClock().now() if now is None else now
        return board_of(opened, terms, with_elo=with_elo, aliases=aliases, now=at)


def board_of(
    source: Source,
    terms: Terms,
    *,
    with_elo: bool = False,
    aliases: Mapping[str, str] = NO_ALIASES,
    now: datetime,
) -> Leaderboard:
    """The leaderboard of a source as it is, which is not counted any further."""
    check_rule(terms.rule)
    wanted = with_elo or terms.order_by == "elo"
    with source.moment():
        names = source.reductions(terms.window).names()
        previous = None
        before = _before(terms.window, now)
        if before is not None:
            try:
                asked = replace(terms, window=before)
                previous = _board(source, asked, names, with_elo=wanted, aliases=aliases)
            except NothingToCount:
                previous = None
        try:
            found = _board(
                source, terms, names, with_elo=wanted, aliases=aliases, previous=previous
            )
        except NothingToCount as error:
            raise _why_not(source, terms, error) from None
        return _covered(source, terms, found)


def boards_over_time(
    source: Source, terms: Terms, parts: int, *, aliases: Mapping[str, str] = NO_ALIASES
) -> tuple[tuple[Window, Leaderboard | None], ...]:
    """The mean scores of a source in equal parts of its time, the earliest first; no ratings.

    The parts are of the time in the window from the first session to the last one; without any
    time between these there are none. None: nothing in a part can be counted.
    """
    check_rule(terms.rule)
    human = int(terms.kind == "human")
    with source.moment():
        names = source.reductions(terms.window).names()
        found: list[tuple[Window, Leaderboard | None]] = []
        for window in _parts(source, terms.window, parts):
            asked = replace(terms, window=window, order_by="score", min_sessions=1)
            part = source.reductions(window)
            sums = part.standings(terms.rule, human=human)
            held = renamed_standings(part, sums, terms.rule, human, aliases=aliases, names=names)
            try:
                board = core.leaderboard(held, None, None, renamed(names, aliases), terms=asked)
            except NothingToCount:
                found.append((window, None))
            else:
                found.append((window, board))
    return tuple(found)


def _parts(source: Source, window: Window, parts: int) -> Iterator[Window]:
    between = asked_between(source)
    if between is None:
        return
    since = max(between[0], window.since or between[0])
    last = between[1] + timedelta(microseconds=1)
    until = min(last, window.until or last)
    step = (until - since) / parts
    if step < timedelta(seconds=1):
        return
    for part in range(parts):
        end = until if part + 1 == parts else since + (part + 1) * step
        yield Window(since + part * step, end, window.category)


def _before(window: Window, now: datetime) -> Window | None:
    """The window of equal length before; one that is open at its end lasts until now."""
    if window.since is None:
        return None
    if window.until is not None:
        return window.before()
    return Window(window.since, now, window.category).before() if window.since < now else None


def _board(
    source: Source,
    terms: Terms,
    names: Names,
    *,
    with_elo: bool,
    aliases: Mapping[str, str],
    previous: Leaderboard | None = None,
) -> Leaderboard:
    asked, human = source.reductions(terms.window), int(terms.kind == "human")
    found = asked.tables(StandingSums, MatchupSums, AnswerSums, rule=terms.rule, human=human)
    standings = renamed_standings(
        asked, found[StandingSums], terms.rule, human, aliases=aliases, names=names
    )
    return core.leaderboard(
        standings,
        merge(found[MatchupSums], aliases, names),
        merge(found[AnswerSums], aliases, names),
        renamed(names, aliases),
        terms=terms,
        elo=_elo(asked, human, aliases, names) if with_elo else None,
        previous=previous,
    )


def _elo(
    asked: Reductions, human: int, aliases: Mapping[str, str], names: Names
) -> Mapping[int, float]:
    """Rating of each model after the last session, by the names they have now."""
    changed = renamed_codes(aliases, names)
    return rate_matches(renamed_matches(asked.matches(human=human), changed)).rating


def _why_not(source: Source, terms: Terms, error: NothingToCount) -> NothingToCount | HistoryError:
    """Say why there is no leaderboard, as exactly as can be."""
    empty = nothing(source, terms.window)
    if empty is not None:
        return empty
    human = int(terms.kind == "human")
    if source.name in ("duckdb", "spark") and terms.rule != BASE_RULE:
        held = coverage_of(source, terms.window, BASE_RULE, human)
        if held and not coverage_of(source, terms.window, terms.rule, human):
            return HistoryError(
                source.where,
                f"the lake has no standings under {terms.rule}",
                f"count the history by it (witan leaderboard --rule {terms.rule}), "
                "then export it again",
            )
    return error


def _covered(source: Source, terms: Terms, found: Leaderboard) -> Leaderboard:
    """The leaderboard, with a word on sessions that the rule left out."""
    if terms.rule == BASE_RULE:
        return found
    human = int(terms.kind == "human")
    counted = coverage_of(source, terms.window, terms.rule, human)
    of = coverage_of(source, terms.window, BASE_RULE, human)
    if counted >= of:
        return found
    left = f"{of - counted:,} of {of:,} sessions have no standings under {terms.rule}"
    return replace(found, warnings=(*found.warnings, f"{left}: it cannot count them, or did not"))


def renamed_standings(
    asked: Reductions,
    standings: StandingSums,
    rule: str,
    human: int,
    *,
    aliases: Mapping[str, str],
    names: Names,
) -> StandingSums:
    """Give what old names earned to the new ones, a session of both once.

    Sums do not say that a session is of both. Where two names that are now one met, these sessions
    are asked for.
    """
    changed = renamed_codes(aliases, names)
    if not changed:
        return standings
    merged = merge(standings, aliases, names)
    met = _met(asked.matchups(human=human), changed)
    if not met:
        return merged
    less = asked.twice(met, rule, human=human)
    return StandingSums(
        **{
            field.name: np.concatenate([getattr(merged, field.name), getattr(less, field.name)])
            for field in fields(StandingSums)
        }
    )


def _met(matchups: MatchupSums, changed: Mapping[int, int]) -> Mapping[int, int]:
    """Codes of models that had a seat beside one that is now the same, and what they are now."""
    pairs = np.unique(np.stack([matchups.first, matchups.second]), axis=1).T.tolist()
    return {
        code: changed.get(code, code)
        for one, two in pairs
        if one != two and changed.get(one, one) == changed.get(two, two)
        for code in (one, two)
    }


def renamed_matches(matches: Iterable[Match], changed: Mapping[int, int]) -> Iterator[Match]:
    """Matches between models as they are called now: of a session and a pair one, of all ballots.

    Parameters
    ----------
    matches
        Those of a session next to each other.
    changed
        Code of an old name → code of the name it has now.
    """
    if not changed:
        yield from matches
        return
    for session, held in groupby(matches, key=attrgetter("session")):
        pairs: dict[tuple[int, int], Match] = {}
        for match in held:
            one, two = (
                changed.get(match.first, match.first),
                changed.get(match.second, match.second),
            )
            wins, losses = match.wins, match.losses
            if one > two:
                one, two, wins, losses = two, one, losses, wins
            before = pairs.get((one, two), Match(session, one, two, 0.0, 0.0, 0.0))
            pairs[one, two] = before._replace(
                wins=before.wins + wins,
                losses=before.losses + losses,
                ties=before.ties + match.ties,
            )
        yield from pairs.values()
