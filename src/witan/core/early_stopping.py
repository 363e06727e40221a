"""Early stopping by proof, or by the probability of a clear leader.

The proof shows that missing ballots cannot change the leader. If one possible ballot is the worst
for the leader against a rival, the rule counts it in place of each missing ballot. Otherwise the
leader is safe if it keeps a majority that the missing ballots cannot change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot
from witan.core.counting import count, failed_candidates, score, stack
from witan.core.inference import fit_parts
from witan.core.outcome import MIN_VOTES, Outcome
from witan.core.placing import Placing, place, votes
from witan.core.profile import Electorate, Floats, Vote
from witan.core.rules import RULES
from witan.core.rules.pairwise import widen_paths
from witan.core.scale import HIGHEST, LOWEST
from witan.core.sequential import look_level, p_settled
from witan.core.settings import AUTO, Settings
from witan.core.stats.distributions import t_quantile
from witan.core.stats.uncertainty import MIN_DF
from witan.core.tally import interpret_ballots, prepare, put_on_scale
from witan.errors import InvalidParameter

ROUNDING = 1e-9
"""Sums of weights that differ by less than this share of the total weight count as equal."""


@dataclass(frozen=True, slots=True)
class _MissingBallot:
    """A ballot not yet cast, with its recusal and its weight."""

    reviewer: str
    own_candidate: str | None
    weight: float


@dataclass(frozen=True, slots=True)
class _Race:
    """The votes so far, their leader, and the missing ballots."""

    electorate: Electorate
    missing_ballots: tuple[_MissingBallot, ...]
    leader: str
    settings: Settings
    rule: str
    min_votes: int = MIN_VOTES

    @property
    def rivals(self) -> list[str]:
        """Candidates that might replace the leader."""
        names, failed = self.electorate.candidates, self.electorate.failed
        return [name for name in names if name not in failed and name != self.leader]


PROVABLE = "borda"
"""The rule that ``auto`` selects if a session stops when decided."""


def provable_settings(settings: Settings) -> Settings:
    """Return the settings if they allow provable early stopping.

    ``auto`` becomes `PROVABLE`, because on graded ballots it would choose ``calibrated``, under
    which every ballot changes every effect and nothing is certain early.

    Raises
    ------
    InvalidParameter
        If the rule is unsuitable (the error lists the suitable ones), or if places are counted
        before recusal.
    """
    if settings.counting.recusal == "after":
        expected = "'before' or 'off' where counting stops when decided"
        raise InvalidParameter("recusal", "after", expected)
    if settings.rule == AUTO:
        return replace(settings, rule=PROVABLE)
    if settings.rule in OFFERED:
        return settings
    expected = f"auto, or one of {', '.join(OFFERED)}, where counting stops when decided"
    raise InvalidParameter("the rule", settings.rule, expected)


def find_decided_leader(
    ballots: Sequence[Ballot],
    outstanding_reviewers: Mapping[str, str | None],
    settings: Settings,
    roster: Sequence[str],
) -> str | None:
    """Return the leader if no missing ballots can change it.

    A missing ballot may be an abstention, or contain any weak order of, and any grades for, any
    candidates except the reviewer's own. In every case, `tally` with the same settings then has
    this leader alone, and seat order does not decide it.

    Parameters
    ----------
    ballots
        Ballots of one session, with complete rankings or grades.
    outstanding_reviewers
        By reviewer, the candidate it is recused from; None: none. Earlier ballots of such a
        reviewer may be replaced and do not count here.
    roster
        All candidates. Nothing is decided until the ballots name exactly these.

    Returns
    -------
    str or None
        None: not decided, or the rule has no bound (see `provable_settings`).
    """
    race = _race(ballots, outstanding_reviewers, settings, roster)
    if race is None:
        return None
    if not race.missing_ballots:
        return race.leader
    least = _min_votes(race)
    if least is None:
        return None
    return race.leader if BOUNDS[race.rule](replace(race, min_votes=least)) else None


def p_lead_settled(
    ballots: Sequence[Ballot], outcome: Outcome, settings: Settings, growth: float
) -> float:
    """Estimate the probability of a clear leader after more ballots.

    Every rival must be separated from the leader, so the result is the smallest probability over
    rivals (`p_settled`).

    Parameters
    ----------
    growth
        Final number of ballots divided by the present one, > 1.
    """
    [electorate], resolved_settings = prepare([b for b in ballots if not b.abstained], settings)
    counted = count(
        outcome.rule, stack([electorate]), [electorate], replace(resolved_settings, flips=False)
    )
    parts = fit_parts(counted)
    if not parts or not outcome.leaders:
        return 1.0
    [part] = parts
    one, places = part.uncertainty, part.places
    names, effects = electorate.candidates, one.fit.effects[:, 0]
    own_of = dict(zip(names, range(len(names)) if places is None else places, strict=True))
    leader = own_of[outcome.leaders[0]]
    rivals = {at for name, at in own_of.items() if name not in electorate.failed} - {leader}
    shared = float(one.shared_variance[0])
    together = 2 * shared * float(one.variance[0])
    more = (growth - 1) * len(electorate.votes) * (len(effects) - 1)
    freedom = float(one.df[0]) + more
    if freedom < MIN_DF:
        return 0.0
    level = look_level(settings.level, settings.looks, shared)
    bar = t_quantile((1 + level) / 2, freedom)
    chances = [1.0]
    for rival in rivals:
        variance = float(one.contrast_variances()[leader, rival, 0]) - together
        difference = float(effects[leader] - effects[rival])
        if one.votes[[leader, rival], 0].min() >= MIN_VOTES and isfinite(variance + difference):
            chances.append(p_settled(difference, variance, together, growth, bar))
    return min(chances)


def _race(
    ballots: Sequence[Ballot],
    outstanding_reviewers: Mapping[str, str | None],
    settings: Settings,
    roster: Sequence[str],
) -> _Race | None:
    """Count the votes so far; None: no sole leader or no proof."""
    received = [ballot for ballot in ballots if ballot.reviewer not in outstanding_reviewers]
    if settings.kind != "all":
        received = [ballot for ballot in received if ballot.kind == settings.kind]
    rule = settings.rule
    bounded = rule in BOUNDS and settings.counting.recusal != "after"
    if not bounded or not received or any(ballot.paired for ballot in received):
        return None
    [electorate] = interpret_ballots(put_on_scale(received, settings), settings)
    if set(electorate.candidates) != set(roster):
        return None
    recused = settings.counting.recusal != "off"
    missing = tuple(
        _MissingBallot(reviewer, own if recused else None, weight)
        for reviewer, own in outstanding_reviewers.items()
        if (weight := settings.weights.get(reviewer, 1.0)) > 0
    )
    placing, certain = _place([electorate], rule, settings)
    if not certain or placing.leads.sum() != 1:
        return None
    seat = int(placing.leads[:, 0].argmax())
    return _Race(electorate, missing, electorate.candidates[seat], settings, rule)


def _min_votes(race: _Race) -> int | None:
    """Return the number of votes below which candidates surely rank last.

    None: the leader itself may rank last for lack of votes.

    The number is `MIN_VOTES` if the leader and a rival already have that many. Otherwise rivals
    with fewer votes may still rank with the leader. They also may if the rule reads grades, because
    one ballot's grade turns every ballot that left the candidate out into a vote on it.
    """
    rule = RULES[race.rule]
    counts = votes(stack([race.electorate]), rule)[:, 0]
    names = race.electorate.candidates
    if counts[names.index(race.leader)] >= MIN_VOTES:
        settled = (counts >= MIN_VOTES).sum() > 1
        return MIN_VOTES if settled and rule.needs == "rankings" and not rule.reads_both else 1
    most = [
        n + sum(one.own_candidate != name for one in race.missing_ballots)
        for name, n in zip(names, counts, strict=True)
        if name != race.leader
    ]
    return 1 if sum(n >= MIN_VOTES for n in most) < 2 else None


def _place(
    electorates: Sequence[Electorate], rule: str, settings: Settings, min_votes: int = MIN_VOTES
) -> tuple[Placing, bool]:
    rule_entry = RULES[rule]
    reliability = settings.reliability
    profile = stack(
        electorates, reliability=None if reliability is None else [reliability] * len(electorates)
    )
    scores = score(rule_entry, profile, **settings.parameters_of(rule))
    failed = failed_candidates(electorates)
    placing = place(
        scores,
        profile,
        rule_entry,
        tie_break=settings.tie_break,
        failed=failed,
        min_votes=min_votes,
    )
    by_seat = scores.seat_order_decided
    return placing, by_seat is None or not by_seat.any()


def _survives_worst_ballots(race: _Race) -> bool:
    """Test the leader against the worst missing ballots for each rival.

    For one rival, the worst ballot places the rival first with the highest grade and the leader
    last with the lowest. No ballot can raise the rival's score, first places and Borda score more,
    or lower the leader's more, so a leader that survives it survives every other ballot. A last
    place cannot improve the leader's mean rank either: the best mean is at most (C + 1)/2, the mean
    of all places, and sheets have at least C − 1 candidates.
    """
    if not race.rivals:
        return True
    completions = [
        replace(
            race.electorate,
            votes=(
                *race.electorate.votes,
                *[_worst_vote(race, one, rival) for one in race.missing_ballots],
            ),
        )
        for rival in race.rivals
    ]
    ranks = _place(completions, race.rule, race.settings, race.min_votes)[0].ranks
    at = race.electorate.candidates.index
    return all(
        ranks[at(race.leader), column] < ranks[at(rival), column]
        for column, rival in enumerate(race.rivals)
    )


def _worst_vote(race: _Race, one: _MissingBallot, rival: str) -> Vote:
    """Build the worst missing ballot for the leader against a rival."""
    names = race.electorate.candidates
    sheet = [name for name in names if name != one.own_candidate]
    order = sorted(sheet, key=lambda name: (name == race.leader) - (name == rival))
    if order == [race.leader]:  # alone on its ballot, it cannot be last
        order = []
    place = {name: 2 * number for number, name in enumerate(order, 1)}
    grade = {name: LOWEST if name == race.leader else HIGHEST for name in sheet}
    return Vote(
        reviewer=one.reviewer,
        groups=tuple((name,) for name in order),
        places=tuple(place.get(name, 0) for name in names),
        grades=tuple(grade.get(name, nan) for name in names),
        weight=one.weight,
        length=len(order),
        eligible=len(sheet),
        mismatch=False,
        paired=False,
        kind="model",
    )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Present and possible pairwise wins, shape (C, C), of possible leaders.

    Candidates that failed the safety gate are below all others on every ballot, so no majority or
    path leads from them to a possible leader.

    Parameters
    ----------
    wins
        Weight of the present ballots that rank i strictly above j.
    possible_wins
        Weight that the missing ballots can add to it.
    rounding
        Largest difference that may be a rounding error.
    """

    wins: Floats
    possible_wins: Floats
    rounding: float

    @classmethod
    def of(cls, race: _Race) -> "_Pairs":
        """Count the pairs, with the leader as the first candidate."""
        names = [race.leader, *race.rivals]
        seats = [race.electorate.candidates.index(name) for name in names]
        over, more = np.zeros((2, len(names), len(names)))
        for vote in race.electorate.votes:
            places = np.array(vote.places)[seats]
            ranked = places > 0
            above = places[:, np.newaxis] < places
            over += vote.weight * (above & ranked[:, np.newaxis] & ranked)
        for one in race.missing_ballots:
            judged = np.array([name != one.own_candidate for name in names])
            more += one.weight * (judged[:, np.newaxis] & judged)
        return cls(over, more, ROUNDING * _weight(race))

    @property
    def least_margins(self) -> Floats:
        """Lower bound of the ballots for i over j minus the reverse."""
        least: Floats = self.wins - self.wins.T - self.possible_wins.T
        return least


def _weight(race: _Race) -> float:
    return sum(vote.weight for vote in race.electorate.votes) + sum(
        one.weight for one in race.missing_ballots
    )


def _beats_everyone(race: _Race) -> bool:
    """Test for strict majorities over all rivals under any missing ballots."""
    pairs = _Pairs.of(race)
    return bool((pairs.least_margins[0, 1:] > pairs.rounding).all())


def _keeps_strongest_paths(race: _Race) -> bool:
    """Test if the leader's weakest paths beat all rivals' strongest paths back."""
    pairs = _Pairs.of(race)
    least, most = pairs.least_margins, -pairs.least_margins.T
    by_margins = race.settings.parameters.get("strength") == "margins"
    weakest = least if by_margins else pairs.wins
    strongest = most if by_margins else pairs.wins + pairs.possible_wins
    # From the leader, an uncertain link counts as 0; to the leader, at its possible maximum.
    there, back = np.where(least > pairs.rounding, weakest, 0.0), np.where(most > 0, strongest, 0.0)
    widen_paths(there)
    widen_paths(back)
    return bool((there[0, 1:] > back[1:, 0] + pairs.rounding).all())


def _keeps_first_places(race: _Race) -> bool:
    """Test if the leader is first on over half of all ballots.

    The count includes missing ballots, which may place it anywhere.

    As others are eliminated, its first places can only increase, so it never has the fewest.
    """
    seat = race.electorate.candidates.index(race.leader)
    support = sum(vote.weight * _first_place(vote, seat) for vote in race.electorate.votes)
    weight = _weight(race)
    return support > weight / 2 + ROUNDING * weight


def _first_place(vote: Vote, seat: int) -> float:
    """A seat's share of first place: 1/k for k tied candidates."""
    ranked: NDArray[np.int_] = np.array([at for at in vote.places if at])
    if not vote.places[seat] or vote.places[seat] != ranked.min():
        return 0.0
    return 1.0 / float((ranked == ranked.min()).sum())


BOUNDS: Mapping[str, Callable[[_Race], bool]] = {
    "borda": _survives_worst_ballots,
    "weighted_borda": _survives_worst_ballots,
    "mean_rank": _survives_worst_ballots,
    "hybrid": _survives_worst_ballots,
    "range": _survives_worst_ballots,
    "tournament": _survives_worst_ballots,
    "schulze": _keeps_strongest_paths,
    "ranked_pairs": _beats_everyone,
    "kemeny": _beats_everyone,
    "irv": _keeps_first_places,
}

OFFERED: tuple[str, ...] = tuple(BOUNDS)
"""The rules under which a session can be proved decided early."""
