"""A leaderboard, computed from a history or a lake."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path

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
from witan.core.stats.leaderboard import ALWAYS, Leaderboard, Terms, Window
from witan.core.stats.sums import (
    AnswerSums,
    MatchupSums,
    Names,
    StandingSums,
    merge,
    rename_codes,
    renamed_codes,
)
from witan.deliberation.ports import SystemClock
from witan.errors import HistoryError, NothingToCount, Remedy, Way
from witan.history import History
from witan.history.learning import NO_ALIASES


def leaderboard(
    source: History | DuckLake | SparkLake | str | Path,
    terms: Terms | None = None,
    *,
    with_elo: bool = False,
    aliases: Mapping[str, str] = NO_ALIASES,
    now: datetime | None = None,
) -> Leaderboard:
    """Rank models by their sessions, with the change since the previous window.

    Sessions of a history that were never counted under the rule are counted first, and the results
    are stored.

    Parameters
    ----------
    source
        A history, or its path or URL; an engine, or the folder of a lake.
    terms
        The window, the rule and the order.
    with_elo
        Also rate by Elo, which reads every match; always done if the order is Elo.
    aliases
        Old name → new name of a model.
    now
        End of an open window, which sets the length of the previous one; by default now.

    Raises
    ------
    NothingToCount
        If no session is in the window, or none that could be counted.
    HistoryError
        If the source cannot be read, or is a lake without standings for the rule.
    UnknownName, InvalidParameter
        If the rule is unknown, or does not score single sessions; if aliases form a cycle.
    """
    terms = Terms() if terms is None else terms
    check_rule(terms.rule)
    with open_source(source) as opened_source:
        damaged: set[str] = set()
        opened_source.recount(terms.rule, aliases, damaged)
        at = SystemClock().now() if now is None else now
        board = board_of(opened_source, terms, with_elo=with_elo, aliases=aliases, now=at)
        return replace(board, n_damaged=len(damaged))


def board_of(
    source: Source,
    terms: Terms,
    *,
    with_elo: bool = False,
    aliases: Mapping[str, str] = NO_ALIASES,
    now: datetime,
) -> Leaderboard:
    """Rank the models of an open source, counting no sessions first."""
    check_rule(terms.rule)
    needs_elo = with_elo or terms.order_by == "elo"
    with source.moment():
        names = source.sums(terms.window).names()
        previous = None
        previous_window = _previous_window(terms.window, now)
        if previous_window is not None:
            try:
                previous = _board(
                    source,
                    terms.during(previous_window),
                    names,
                    with_elo=needs_elo,
                    aliases=aliases,
                )
            except NothingToCount:
                previous = None
        try:
            board = _board(
                source, terms, names, with_elo=needs_elo, aliases=aliases, previous=previous
            )
        except NothingToCount as error:
            raise _explain(source, terms, error) from None
        return _note_coverage(source, terms, board)


def boards_over_time(
    source: Source, terms: Terms, parts: int, *, aliases: Mapping[str, str] = NO_ALIASES
) -> tuple[tuple[Window, Leaderboard | None], ...]:
    """Rank models by mean scores in equal spans of time, earliest first.

    The spans divide the time from the window's first session to its last; if that is too short,
    there are none. A span without countable sessions has None.
    """
    check_rule(terms.rule)
    human = int(terms.kind == "human")
    with source.moment():
        names = source.sums(terms.window).names()
        boards: list[tuple[Window, Leaderboard | None]] = []
        for window in _parts(source, terms.window, parts):
            part = source.sums(window)
            sums = part.table(StandingSums, rule=terms.rule, human=human)
            standings = rename_standings(
                part, sums, terms.rule, human, aliases=aliases, names=names
            )
            try:
                board = core.leaderboard(
                    standings,
                    None,
                    None,
                    rename_codes(names, aliases),
                    terms=terms.for_scores(window),
                )
            except NothingToCount:
                boards.append((window, None))
            else:
                boards.append((window, board))
    return tuple(boards)


def _parts(source: Source, window: Window, parts: int) -> Iterator[Window]:
    first_and_last = time_range(source)
    if first_and_last is None:
        return
    since = max(first_and_last[0], window.since or first_and_last[0])
    last = first_and_last[1] + timedelta(microseconds=1)
    until = min(last, window.until or last)
    step = (until - since) / parts
    if step < timedelta(seconds=1):
        return
    for part in range(parts):
        end = until if part + 1 == parts else since + (part + 1) * step
        yield Window(since + part * step, end, window.category)


def _previous_window(window: Window, now: datetime) -> Window | None:
    """Return the previous window of equal length; an open end is now."""
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
    elo = None
    if with_elo:
        matches = rename_matches(sums.matches(human=human), renamed_codes(aliases, names))
        elo = rate_matches(matches)
    return core.leaderboard(
        standings,
        merge(tables[MatchupSums], aliases, names),
        merge(tables[AnswerSums], aliases, names),
        rename_codes(names, aliases),
        terms=terms,
        elo=elo,
        previous=previous,
    )


def _explain(source: Source, terms: Terms, error: NothingToCount) -> NothingToCount | HistoryError:
    """Return the error that explains a missing leaderboard."""
    empty = explain_empty(source, terms.window)
    if empty is not None:
        return empty
    human = int(terms.kind == "human")
    if source.name in ("duckdb", "spark") and terms.rule != BASE_RULE:
        n_counted = source.sums(terms.window).coverage(BASE_RULE, human=human)
        if n_counted and not source.sums(terms.window).coverage(terms.rule, human=human):
            return HistoryError(
                source.location,
                f"the lake has no standings under {terms.rule}",
                Remedy(
                    Way(
                        "count the history under it (",
                        {"rule": terms.rule},
                        "leaderboard",
                        after="), then export it again",
                    )
                ),
            )
    ways = [*_ways_to_count(source, terms)]
    return NothingToCount(f"{error}; choose {', or '.join(ways)}") if ways else error


def _ways_to_count(source: Source, terms: Terms) -> Iterator[str]:
    """List the terms that would rank models."""
    window, human = terms.window, int(terms.kind == "human")
    sums, other = source.sums(window), f"the ballots of kind {'model' if human else 'human'!r}"
    if sums.coverage(terms.rule, human=human):
        return  # counted, but without a score or rating
    if window != ALWAYS and source.sums(ALWAYS).coverage(terms.rule, human=human):
        yield "another category" if window.category else "a wider window"
    rule = f"another rule, such as {BASE_RULE!r}"
    if has_own := bool(sums.coverage(BASE_RULE, human=human)):
        yield rule
    if sums.coverage(terms.rule, human=1 - human):
        yield other
    elif not has_own and sums.coverage(BASE_RULE, human=1 - human):
        yield f"{other} and {rule}"


def _note_coverage(source: Source, terms: Terms, board: Leaderboard) -> Leaderboard:
    """Add a warning about sessions left out by the rule."""
    if terms.rule == BASE_RULE:
        return board
    human = int(terms.kind == "human")
    n_counted = source.sums(terms.window).coverage(terms.rule, human=human)
    of = source.sums(terms.window).coverage(BASE_RULE, human=human)
    if n_counted >= of:
        return board
    gap = f"{of - n_counted:,} of {of:,} sessions have no standings under {terms.rule}"
    return replace(
        board,
        warnings=(
            *board.warnings,
            f"{gap}; the rule cannot count them, or they were not counted under it",
        ),
    )


def rename_standings(
    sums: WindowSums,
    standings: StandingSums,
    rule: str,
    human: int,
    *,
    aliases: Mapping[str, str],
    names: Names,
) -> StandingSums:
    """Merge standings under old names; a session with both names counts once.

    Sums do not show whether a session has both: such sessions are summed again.
    """
    changed = renamed_codes(aliases, names)
    if not changed:
        return standings
    merged_standings = merge(standings, aliases, names)
    shared = _same_session(sums.table(MatchupSums, human=human), changed)
    if not shared:
        return merged_standings
    less = sums.duplicates(shared, rule, human=human)
    return StandingSums(
        **{
            field.name: np.concatenate(
                [getattr(merged_standings, field.name), getattr(less, field.name)]
            )
            for field in fields(StandingSums)
        }
    )


def _same_session(matchups: MatchupSums, new_codes: Mapping[int, int]) -> Mapping[int, int]:
    """Map codes of models named twice in a session to one code."""
    pairs = np.unique(np.stack([matchups.first, matchups.second]), axis=1).T.tolist()
    return {
        code: new_codes.get(code, code)
        for one, two in pairs
        if one != two and new_codes.get(one, one) == new_codes.get(two, two)
        for code in (one, two)
    }


def rename_matches(matches: Iterable[Match], new_codes: Mapping[int, int]) -> Iterator[Match]:
    """Merge matches under old names into one per session and pair.

    `matches`: matches; those of a session are adjacent.
    `new_codes`: code of an old name → code of the current name.
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
            total = pairs.get((one, two), Match(session, one, two, 0.0, 0.0, 0.0))
            pairs[one, two] = total._replace(
                wins=total.wins + wins,
                losses=total.losses + losses,
                ties=total.ties + match.ties,
            )
        yield from pairs.values()
