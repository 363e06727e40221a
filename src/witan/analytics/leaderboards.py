"""A leaderboard, read off a history or a lake."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType

import numpy as np

from witan.analytics.sources import (
    BASE_RULE,
    DuckLake,
    Source,
    SparkLake,
    check_rule,
    explain_empty,
    open_source,
    time_range,
)
from witan.analytics.sums import WindowSums
from witan.core.rules.elo import Match, rate_matches
from witan.core.stats import leaderboard_builder as core
from witan.core.stats.leaderboard import Leaderboard, Terms
from witan.core.stats.sums import (
    AnswerSums,
    MatchupSums,
    Names,
    StandingSums,
    merge,
    rename_codes,
    renamed_codes,
)
from witan.core.window import Window
from witan.deliberation.ports import SystemClock
from witan.errors import HistoryError, NothingToCount, Remedy, Way
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
    """Rank models by their sessions, with the change against the window before.

    Sessions of a history that were never counted under the rule are counted first, and what comes
    of it is kept.

    Parameters
    ----------
    source
        A history, or its path or URL; an engine, or the folder of a lake.
    terms
        The window, the rule, the order.
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
    """Rank the models of a source as it is; count nothing first."""
    check_rule(terms.rule)
    wanted = with_elo or terms.order_by == "elo"
    with source.moment():
        names = source.sums(terms.window).names()
        previous = None
        before = _previous_window(terms.window, now)
        if before is not None:
            try:
                earlier = replace(terms, window=before)
                previous = _board(source, earlier, names, with_elo=wanted, aliases=aliases)
            except NothingToCount:
                previous = None
        try:
            board = _board(
                source, terms, names, with_elo=wanted, aliases=aliases, previous=previous
            )
        except NothingToCount as error:
            raise _explain(source, terms, error) from None
        return _note_coverage(source, terms, board)


def boards_over_time(
    source: Source, terms: Terms, parts: int, *, aliases: Mapping[str, str] = NO_ALIASES
) -> tuple[tuple[Window, Leaderboard | None], ...]:
    """Rank models by mean scores in equal spans of time, earliest first.

    The parts are of the time in the window from the first session to the last one; without any
    time between these there are none. None: nothing in a part can be counted.
    """
    check_rule(terms.rule)
    human = int(terms.kind == "human")
    with source.moment():
        names = source.sums(terms.window).names()
        boards: list[tuple[Window, Leaderboard | None]] = []
        for window in _parts(source, terms.window, parts):
            one = replace(terms, window=window, order_by="score", min_sessions=1)
            part = source.sums(window)
            sums = part.table(StandingSums, rule=terms.rule, human=human)
            standings = rename_standings(
                part, sums, terms.rule, human, aliases=aliases, names=names
            )
            try:
                board = core.leaderboard(
                    standings, None, None, rename_codes(names, aliases), terms=one
                )
            except NothingToCount:
                boards.append((window, None))
            else:
                boards.append((window, board))
    return tuple(boards)


def _parts(source: Source, window: Window, parts: int) -> Iterator[Window]:
    between = time_range(source)
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


def _previous_window(window: Window, now: datetime) -> Window | None:
    """Return the window before, of equal length; an open end is now."""
    if window.since is None:
        return None
    if window.until is not None:
        return window.previous()
    return Window(window.since, now, window.category).previous() if window.since < now else None


def _board(
    source: Source,
    terms: Terms,
    names: Names,
    *,
    with_elo: bool,
    aliases: Mapping[str, str],
    previous: Leaderboard | None = None,
) -> Leaderboard:
    sums, human = source.sums(terms.window), int(terms.kind == "human")
    tables = sums.tables(StandingSums, MatchupSums, AnswerSums, rule=terms.rule, human=human)
    standings = rename_standings(
        sums, tables[StandingSums], terms.rule, human, aliases=aliases, names=names
    )
    return core.leaderboard(
        standings,
        merge(tables[MatchupSums], aliases, names),
        merge(tables[AnswerSums], aliases, names),
        rename_codes(names, aliases),
        terms=terms,
        elo=_elo(sums, human, aliases, names) if with_elo else None,
        previous=previous,
    )


def _elo(
    sums: WindowSums, human: int, aliases: Mapping[str, str], names: Names
) -> Mapping[int, float]:
    """Rate each model after the last session, under its present name."""
    changed = renamed_codes(aliases, names)
    return rate_matches(rename_matches(sums.matches(human=human), changed)).rating


def _explain(source: Source, terms: Terms, error: NothingToCount) -> NothingToCount | HistoryError:
    """Return the reason of a missing leaderboard."""
    empty = explain_empty(source, terms.window)
    if empty is not None:
        return empty
    human = int(terms.kind == "human")
    if source.name in ("duckdb", "spark") and terms.rule != BASE_RULE:
        counted = source.sums(terms.window).coverage(BASE_RULE, human=human)
        if counted and not source.sums(terms.window).coverage(terms.rule, human=human):
            return HistoryError(
                source.location,
                f"the lake has no standings under {terms.rule}",
                Remedy(
                    Way(
                        "count the history by it (",
                        {"rule": terms.rule},
                        "leaderboard",
                        after="), then export it again",
                    )
                ),
            )
    return error


def _note_coverage(source: Source, terms: Terms, board: Leaderboard) -> Leaderboard:
    """Add a warning about sessions left out by the rule."""
    if terms.rule == BASE_RULE:
        return board
    human = int(terms.kind == "human")
    counted = source.sums(terms.window).coverage(terms.rule, human=human)
    of = source.sums(terms.window).coverage(BASE_RULE, human=human)
    if counted >= of:
        return board
    gap = f"{of - counted:,} of {of:,} sessions have no standings under {terms.rule}"
    return replace(board, warnings=(*board.warnings, f"{gap}: it cannot count them, or did not"))


def rename_standings(
    sums: WindowSums,
    standings: StandingSums,
    rule: str,
    human: int,
    *,
    aliases: Mapping[str, str],
    names: Names,
) -> StandingSums:
    """Merge standings under old names; a session of both counts once.

    Sums do not tell that a session has both: such sessions are summed again.
    """
    changed = renamed_codes(aliases, names)
    if not changed:
        return standings
    merged = merge(standings, aliases, names)
    shared = _same_session(sums.table(MatchupSums, human=human), changed)
    if not shared:
        return merged
    less = sums.duplicates(shared, rule, human=human)
    return StandingSums(
        **{
            field.name: np.concatenate([getattr(merged, field.name), getattr(less, field.name)])
            for field in fields(StandingSums)
        }
    )


def _same_session(matchups: MatchupSums, new_codes: Mapping[int, int]) -> Mapping[int, int]:
    """Map models' codes of two names to their present code."""
    pairs = np.unique(np.stack([matchups.first, matchups.second]), axis=1).T.tolist()
    return {
        code: new_codes.get(code, code)
        for one, two in pairs
        if one != two and new_codes.get(one, one) == new_codes.get(two, two)
        for code in (one, two)
    }


def rename_matches(matches: Iterable[Match], new_codes: Mapping[int, int]) -> Iterator[Match]:
    """Merge matches under old names into one per session and pair.

    Parameters
    ----------
    matches
        Those of a session next to each other.
    new_codes
        Code of an old name → code of the name it has now.
    """
    if not new_codes:
        yield from matches
        return
    for session, group in groupby(matches, key=attrgetter("session")):
        pairs: dict[tuple[int, int], Match] = {}
        for match in group:
            one, two = (
                new_codes.get(match.first, match.first),
                new_codes.get(match.second, match.second),
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
