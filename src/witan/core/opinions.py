"""One opinion each: the last ballot of a reviewer, both orders of a pair merged into one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from witan.core.ballot import Ballot

__all__ = ["are_battles", "one_opinion_each", "shown_pair"]


def one_opinion_each(
    session: str, ballots: Sequence[Ballot], warnings: list[str]
) -> tuple[list[Ballot], dict[str, tuple[int, int]]]:
    """Keep the last ballot of each reviewer, and merge both orders of each pair into one.

    Comparisons that are battles (`are_battles`) all count, each by itself.
    """
    whole: dict[str, Ballot] = {}
    battles: list[Ballot] = []
    apart = are_battles(session, ballots)
    if apart:
        warnings.append(
            "the comparisons name no session, and some judge a pair again in the same order; each "
            "counts as a battle of its own (a column session or prompt groups them)"
        )
    pairs: dict[tuple[str, frozenset[str]], dict[tuple[str, ...], Ballot]] = {}
    for ballot in ballots:
        if ballot.paired and apart:
            battles.append(ballot)
        elif ballot.paired:
            shown = shown_pair(ballot)
            seen = pairs.setdefault((ballot.reviewer, frozenset(shown)), {})
            if shown in seen:
                warnings.append(
                    f"{ballot.reviewer} judged {shown[0]} against {shown[1]} more than once in the "
                    "same order; the last counts"
                )
            seen[shown] = ballot
        else:
            if ballot.reviewer in whole:
                warnings.append(f"{ballot.reviewer} cast more than one ballot; the last counts")
                del whole[ballot.reviewer]
            whole[ballot.reviewer] = ballot
    merged = [*whole.values(), *battles]
    kept: Counter[str] = Counter()
    twice: Counter[str] = Counter()
    for (reviewer, _), seen in pairs.items():
        opinion, agreed = _merge_orders(list(seen.values()))
        merged.append(opinion)
        if agreed is not None:
            twice[reviewer] += 1
            kept[reviewer] += agreed
    return merged, {reviewer: (kept[reviewer], twice[reviewer]) for reviewer in twice}


def are_battles(session: str, ballots: Sequence[Ballot]) -> bool:
    """Whether comparisons are of different answers: no session, and some pair judged again.

    A reviewer says once in a session which of two answers in one order it prefers. Comparisons
    that name no session and repeat one are of answers to different questions.
    """
    if session:
        return False
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for ballot in ballots:
        if ballot.paired:
            opinion = (ballot.reviewer, shown_pair(ballot))
            if opinion in seen:
                return True
            seen.add(opinion)
    return False


def shown_pair(ballot: Ballot) -> tuple[str, ...]:
    """The two candidates of a comparison in the order in which they were shown."""
    names = ballot.mentioned()
    positions = ballot.positions or {}
    return tuple(sorted(names, key=lambda name: (positions.get(name, 0), name)))


def _merge_orders(seen: list[Ballot]) -> tuple[Ballot, bool | None]:
    """One opinion from both orders of a pair: alike counts once, a flip is a tie."""
    voted = [ballot for ballot in seen if not ballot.abstained]
    if len(voted) < 2:
        return (voted or seen)[0], None
    first, second = voted
    if [set(group) for group in first.groups] == [set(group) for group in second.groups]:
        return first, True
    level = (tuple(sorted(shown_pair(first))),)
    return replace(first, groups=level), False
