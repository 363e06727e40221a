"""A person's votes: blind sheet, ranking, and comparison with panels."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import combinations, groupby

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot, Groups
from witan.core.blinding import Sheet, label_map
from witan.core.outcome import Outcome
from witan.core.stats.measures import Count, Measure, rate
from witan.errors import InvalidBallot

NO_BYTE = 256
"""Separator of two names in a seed."""

CODE_DIGITS = 6

CHOICE_SIGNS = "><=?"
"""Left is better, right is better, both are equal, pair skipped."""

MANY_DAYS = 31
"""Number of days with votes from which periods are months."""


def check_voter_apart(person: str, names: Collection[str], role: str) -> None:
    """Reject a voter with the name of a candidate or a seat."""
    if person in names:
        raise InvalidBallot(person, f"has the name of a {role}; vote under another name")


def voting_sheet(session: str, person: str, candidates: Sequence[str]) -> Sheet:
    """Draw a person's sheet for a session, in random order.

    The sheet depends only on the two names and the set of candidates, so the same version of Witan
    draws it again. Another version may draw a different one; a ranking by labels therefore needs
    the `paper_code` of the sheet that was shown.
    """
    encoded_names = [name.encode(errors="surrogatepass") for name in (session, person)]
    seed = [*encoded_names[0], NO_BYTE, *encoded_names[1]]
    return label_map(person, sorted(candidates), seed)


def paper_code(session: str, sheet: Sheet) -> str:
    """Derive a paper's six-digit code from session, person and labels.

    Labels differ between people, so a ranking by labels means nothing without its paper. The code
    is not a secret.
    """
    sheet_parts = (session, sheet.reviewer, *sheet.labels, *sheet.candidates)
    return sha256(repr(sheet_parts).encode(errors="surrogatepass")).hexdigest()[:CODE_DIGITS]


def ranks_names(text: str, sheet: Sheet, names: Mapping[str, str]) -> bool:
    """True if a ranking uses candidates' names, not labels.

    One known name is enough, unless the ranking also contains a label.
    """
    ranked = [each.strip() for group in text.split(">") for each in group.split("=")]
    labels = {each.upper() for each in ranked} & {*sheet.labels}
    return not labels and any(each in names for each in (*ranked, *_find_signed(names, text)))


def _find_signed(names: Collection[str], text: str) -> list[str]:
    """Return the names within a text that contain a sign of a ranking."""
    return [name for name in names if name in text and not {*">="}.isdisjoint(name)]


def _refuse_signs(names: Collection[str], text: str, person: str) -> None:
    for name in _find_signed(names, text):
        problem = f"ranks {name!r}, a name with > or =; rank the labels of the paper instead"
        raise InvalidBallot(person, problem)


def read_ranking(text: str, sheet: Sheet, names: Mapping[str, str] | None = None) -> Groups:
    """Read a ranking as groups, best first: ``B > A = C``.

    Labels may be in upper or lower case. Every candidate must be placed, because an omission would
    change how many rivals the others beat.

    Parameters
    ----------
    names
        Candidate by name, for a ranking by names; None: the ranking is by labels.

    Raises
    ------
    InvalidBallot
        If a candidate is unknown, missing or repeated, nothing is between two signs, or a name
        contains a sign.
    """
    _refuse_signs(names or (), text, sheet.reviewer)
    groups, ranked_names = [], list[str]()
    expected = "no candidate of the session has this name"
    if names is None:
        expected = f"the labels are {', '.join(sheet.labels)}"
    candidate_by_label = (
        dict(zip(sheet.labels, sheet.candidates, strict=True)) if names is None else names
    )
    if not text.strip():
        raise InvalidBallot(sheet.reviewer, f"ranks nothing; {expected}")
    for group in text.split(">"):
        each = [one.strip() for one in group.split("=")]
        if names is None:
            each = [one.upper() if one.upper() in candidate_by_label else one for one in each]
        if not all(each):
            raise InvalidBallot(sheet.reviewer, f"has nothing before or after a sign: {text!r}")
        ranked_names += each
        groups.append(each)
    for one in ranked_names:
        if one not in candidate_by_label:
            raise InvalidBallot(sheet.reviewer, f"ranks {one!r}; {expected}")
        if ranked_names.count(one) > 1:
            raise InvalidBallot(sheet.reviewer, f"ranks {one} more than once")
    missing = [one for one in candidate_by_label if one not in ranked_names]
    if missing:
        raise InvalidBallot(sheet.reviewer, f"does not place {', '.join(missing)}; = places equal")
    return tuple(tuple(candidate_by_label[one] for one in group) for group in groups)


@dataclass(frozen=True, slots=True)
class PairwiseRanking:
    """A possibly incomplete ranking of labels from choices between pairs.

    Parameters
    ----------
    text
        The ranking, such as ``B > A = C``; undecided pairs are placed by wins minus losses.
    places
        Place by label, 1 is best; tied labels share the best of their places.
    n_decided, n_pairs
        Number of pairs that the choices decide, directly or by implication, and of all pairs.
    n_chosen
        Number of choices that were not skips.
    next_pair
        The next labels to choose between, left and right; None: no pair is open.
    """

    text: str
    places: Mapping[str, int]
    n_decided: int
    n_pairs: int
    n_chosen: int
    next_pair: tuple[str, str] | None


def rank_by_pairs(sheet: Sheet, choices: Sequence[str]) -> PairwiseRanking:
    """Rank labels of a sheet by choices: ``A>B``, ``A<B``, ``A=B``, ``A?B``.

    The next pair is the one with the closest expected places, so that either choice decides much.
    Each label is on the left about as often as on the right.

    Raises
    ------
    InvalidBallot
        If a choice cannot be read, or earlier choices already decide its pair.
    """
    n = len(sheet.labels)
    index = {label: at for at, label in enumerate(sheet.labels)}
    better = np.zeros((n, n), dtype=bool)
    same = np.eye(n, dtype=bool)
    open_pairs = ~same
    lean = [0] * n
    for text in choices:
        left, sign, right = _read_choice(text, sheet)
        first, second = index[left], index[right]
        if better[first, second] or better[second, first] or same[first, second]:
            raise InvalidBallot(sheet.reviewer, f"chooses {text!r}, which is decided already")
        _decide(better, same, (first, second), sign)
        lean[first] += 1
        lean[second] -= 1
        if sign == "?":
            open_pairs[first, second] = open_pairs[second, first] = False
    undecided = ~(better | better.T | same)
    above, below = better.sum(axis=0), better.sum(axis=1)
    wins = below - above
    places = {label: int((wins > wins[at]).sum()) + 1 for label, at in index.items()}
    return PairwiseRanking(
        " > ".join(
            " = ".join(label for label in sheet.labels if places[label] == place)
            for place in sorted({*places.values()})
        ),
        places,
        n * (n - 1) // 2 - int(undecided.sum()) // 2,
        n * (n - 1) // 2,
        sum("?" not in each for each in choices),
        _next_pair(sheet, (above + 1) / (above + below + 2), undecided & open_pairs, lean),
    )


def _read_choice(text: str, sheet: Sheet) -> tuple[str, str, str]:
    for sign in CHOICE_SIGNS:
        left, found, right = text.partition(sign)
        if found and left != right and {left, right} <= {*sheet.labels}:
            return left, sign, right
    expected = f"two of the labels {', '.join(sheet.labels)} with >, <, = or ? between"
    raise InvalidBallot(sheet.reviewer, f"chooses {text!r}; a choice is {expected}")


def _decide(
    better: NDArray[np.bool_], same: NDArray[np.bool_], pair: tuple[int, int], sign: str
) -> None:
    """Add a choice and its implications to both relations."""
    first, second = pair if sign != "<" else pair[::-1]
    if sign == "=":
        group = same[first] | same[second]
        same |= np.outer(group, group)
        above, below = better[:, group].any(axis=1), better[group].any(axis=0)
        better |= np.outer(above, group | below) | np.outer(group, below)
    elif sign != "?":
        better |= np.outer(better[:, first] | same[first], better[second] | same[second])


def _next_pair(
    sheet: Sheet, heights: NDArray[np.float64], open_pairs: NDArray[np.bool_], lean: Sequence[int]
) -> tuple[str, str] | None:
    """Choose the first open pair with the closest expected places."""
    if not open_pairs.any():
        return None
    distances = np.abs(heights[:, np.newaxis] - heights).round(9)
    first, second = divmod(int(np.where(open_pairs, distances, 2).argmin()), len(sheet.labels))
    if lean[first] > lean[second]:
        first, second = second, first
    return sheet.labels[first], sheet.labels[second]


def build_ballot(sheet: Sheet, groups: Groups, session: str, at: datetime) -> Ballot:
    """Build a person's ballot from the ranking of a sheet."""
    return Ballot(
        sheet.reviewer,
        groups,
        session=session,
        candidates=tuple(sorted(sheet.candidates)),
        positions=dict(sorted(sheet.positions.items())),
        at=at,
        kind="human",
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """Two candidates that a person and a panel place in opposite orders.

    Parameters
    ----------
    above, below
        The person's order.
    is_clear
        Whether the panel does not find the pair too close to call.
    """

    above: str
    below: str
    is_clear: bool


@dataclass(frozen=True, slots=True)
class PanelMatch:
    """Agreement of a person's ranking with a panel's.

    Parameters
    ----------
    pairs_alike
        Number of pairs that both place in the same order.
    pairs_decided
        Number of pairs that neither places equal.
    pairs
        Number of pairs of candidates that both rank.
    same_best
        Whether they share a best candidate; None: the panel has no ranking.
    clear_alike, clear_decided
        As `pairs_alike` and `pairs_decided`, over pairs that are clear to the panel.
    differences
        Pairs in opposite orders, clear ones first.
    """

    pairs_alike: int
    pairs_decided: int
    pairs: int
    same_best: bool | None
    clear_alike: int = 0
    clear_decided: int = 0
    differences: tuple[Difference, ...] = ()


def match_ranking(
    groups: Groups,
    ranks: Mapping[str, float],
    clear_pairs: Collection[frozenset[str]] = frozenset(),
) -> PanelMatch:
    """Compare a ranking with ranks pair by pair; rank 1 is best.

    `clear_pairs` are the pairs that are not too close to call for the panel.
    """
    place = {c: at for at, group in enumerate(groups) for c in group if c in ranks}
    pairs = len(place) * (len(place) - 1) // 2
    alike: list[bool] = []
    differences: list[Difference] = []
    for first, second in combinations(sorted(place, key=lambda c: (place[c], ranks[c], c)), 2):
        if place[first] != place[second] and ranks[first] != ranks[second]:
            is_clear = frozenset((first, second)) in clear_pairs
            if ranks[first] < ranks[second]:
                alike.append(is_clear)
            else:
                differences.append(Difference(first, second, is_clear))
    best = min(place.values(), default=0)
    top = min((ranks[c] for c in place), default=0)
    same = any(place[c] == best and ranks[c] == top for c in place) if place else None
    return PanelMatch(
        len(alike),
        len(alike) + len(differences),
        pairs,
        same,
        sum(alike),
        sum(alike) + sum(each.is_clear for each in differences),
        tuple(sorted(differences, key=lambda each: not each.is_clear)),
    )


def find_clear_pairs(outcome: Outcome) -> frozenset[frozenset[str]]:
    """Find an outcome's ordered pairs, except those too close to call."""
    close = {*map(frozenset, outcome.unresolved)}
    return frozenset(
        pair
        for (i, one), (j, other) in combinations(enumerate(outcome.standings), 2)
        if (pair := frozenset((one.candidate, other.candidate))) not in close
        and one.rank != other.rank
        and outcome.p_beats[i][j] is not None
    )


@dataclass(frozen=True, slots=True)
class ComparedVote:
    """A person's vote on one session, and its agreement with the panel.

    Parameters
    ----------
    session, at
        Name of the session, and when it was asked.
    match
        Agreement of the person's ranking with the panel's.
    question
        Text of the question; empty: not stored.
    """

    session: str
    at: datetime
    match: PanelMatch
    question: str = ""


@dataclass(frozen=True, slots=True)
class VotePeriod:
    """The votes on the sessions of a day, or of a month.

    Parameters
    ----------
    since
        Its day (2026-11-21) or its month (2026-11).
    votes
        Number of votes.
    match, clear, close
        As in `PersonalRecord`.
    """

    since: str
    votes: int
    match: Measure
    clear: Measure
    close: Measure


@dataclass(frozen=True, slots=True)
class VoteRecord:
    """Agreement of a person's votes with panels.

    Parameters
    ----------
    votes
        Number of votes.
    match
        Of the pairs that neither places equal, the share in the same order.
    clear, close
        The same over pairs clear to the panel, and over pairs too close to call.
    same_best
        Share of votes with a best answer that is also a best one of the panel.
    periods
        By day or month, earliest first.
    """

    votes: int
    match: Measure
    clear: Measure
    close: Measure
    same_best: Measure
    periods: tuple[VotePeriod, ...]


def vote_record(votes: Sequence[ComparedVote], *, level: float = 0.95) -> VoteRecord:
    """Summarise a person's votes, with pairs clustered by session.

    From five sessions on, shares have intervals (`rate`).
    """
    ordered = sorted(votes, key=lambda each: (each.at, each.session))
    days = {f"{each.at:%Y-%m-%d}" for each in ordered}
    form = "%Y-%m" if len(days) >= MANY_DAYS else "%Y-%m-%d"
    periods = []
    for since, group in groupby(ordered, key=lambda each: each.at.strftime(form)):
        members = [*group]
        periods.append(VotePeriod(since, len(members), *_shares(members, level)))
    judged = [each for each in ordered if each.match.same_best is not None]
    return VoteRecord(
        len(ordered),
        *_shares(ordered, level),
        _rate([(int(bool(each.match.same_best)), 1) for each in judged], "votes", level),
        tuple(periods),
    )


def _shares(votes: Sequence[ComparedVote], level: float) -> tuple[Measure, Measure, Measure]:
    """Measure agreement on all pairs, on those clear to the panel, and on the others."""
    matches = [each.match for each in votes]
    pairs = [(match.pairs_alike, match.pairs_decided) for match in matches]
    clear = [(match.clear_alike, match.clear_decided) for match in matches]
    close = [(a - b, n - m) for (a, n), (b, m) in zip(pairs, clear, strict=True)]
    return _rate(pairs, "pairs", level), _rate(clear, "pairs", level), _rate(close, "pairs", level)


def _rate(hits_and_cases: Sequence[tuple[int, int]], of: str, level: float) -> Measure:
    sums = np.array(hits_and_cases, dtype=np.float64).reshape(-1, 2)
    return rate(sums, Count(float(sums[:, 1].sum()), of, 1), level=level)
