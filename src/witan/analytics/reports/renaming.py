"""Standings and matches under the names that models have now: each session counts once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import groupby
from operator import attrgetter

import numpy as np

from witan.analytics.engines import Reductions
from witan.core.rules.elo import Match
from witan.core.stats.sums import MatchupSums, Names, StandingSums, merge, renamed_codes

__all__ = ["renamed_matches", "renamed_standings"]


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
