"""Build the rows of counted sessions for leaderboards and audits.

Ballots of models and of people are counted separately, as two electorates. Sessions of equal shape
are counted together as one batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import fsum, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.attributes import cached_property
from witan.core.ballot import Ballot, BallotTable, Kind
from witan.core.counting import (
    BatchCount,
    CountColumn,
    Fitted,
    fits_of,
    group_by_shape,
    score,
    stack,
)
from witan.core.outcome import Outcome, Unit
from witan.core.placing import first_places, votes
from witan.core.profile import (
    Electorate,
    Floats,
    Profile,
    Vote,
    matchups,
    pair_indices,
    per_session,
)
from witan.core.rules import RULES, Rule
from witan.core.rules.registry import Needs, Rivals
from witan.core.scale import read_criteria
from witan.core.session_ballots import (
    AnswerEntry,
    BallotEntry,
    Entries,
    GradedEntries,
    GradedReading,
    MatchupEntry,
    ModelNames,
    Noise,
    Reading,
    SessionBallots,
    SessionEntry,
    StandingEntry,
    close_gaps,
    read_ballots,
    read_graded_ballots,
    reuse_electorate,
)
from witan.core.settings import AUTO, Settings
from witan.core.stats.additive import AdditiveFit
from witan.core.stats.concordance import kendall_ws
from witan.core.tally import tally_electorates
from witan.errors import UnsuitableBallots

NOBODY: frozenset[int] = frozenset()

Number = float | None

SESSIONS_AT_ONCE = 1024
"""Number of sessions whose rows are buffered to yield them in order."""

KINDS: tuple[Kind, ...] = ("model", "human")


def ballot_entries(
    ballots: SessionBallots,
    reading: Reading | GradedReading,
    lengths: Mapping[str, int],
    named: ModelNames,
) -> Sequence[BallotEntry]:
    """Build one row per ballot of one kind, in the given order.

    An empty ballot has a row without candidates and abstains. A ballot that is replaced by a later
    one or has weight 0 also has a row without candidates; it does not abstain, and does not count.
    Pairs judged in both orders are recorded on the first row of their reviewer that counts. A
    candidate is on a ballot if it was on the sheet. If no places on the sheet are known, it is on
    the ballot if it is in the ballot's roster and, for one's own candidate, ranked or graded.
    """
    if isinstance(reading, GradedReading):
        return _graded_entries(ballots, reading, lengths, named)
    table, order_counts = _Table(reading, named), _order_counts(ballots, reading)
    entries = []
    for ballot, vote, late in zip(
        reading.ballots, reading.votes, reading.replacement_mask, strict=True
    ):
        model = ballot.kind == "model"
        own = reading.own_seats.get(ballot.reviewer, NOBODY)
        seats = () if vote is None else table.on(ballot, vote, own)
        names = [*map(table.names.__getitem__, seats)]
        aside = late or ballot.weight == 0
        same, compared = (0, 0) if aside else order_counts.pop(ballot.reviewer, (0, 0))
        cells = [*map(ballot.grades.get, names)]
        criteria, criterion_grades = read_criteria(cells, ballot.scale)
        entries.append(
            BallotEntry(
                reviewer=named.reviewer(ballot.reviewer) if model else ballot.reviewer,
                kind=ballot.kind,
                models=tuple(map(table.models.__getitem__, seats)),
                own=tuple(map(own.__contains__, seats)),
                shares=() if vote is None else _shares(vote.places, own, seats),
                grades=() if vote is None else _known_grades(vote, seats),
                positions=_positions(ballot, names),
                chars=tuple(map(lengths.get, names)),
                paired=ballot.paired,
                abstained=vote is None and not aside,
                repaired=model and ballot.reviewer in ballots.repaired_reviewers,
                kept=same,
                compared=compared,
                weight=float(ballot.weight),
                criteria=criteria,
                criterion_grades=criterion_grades,
            )
        )
    return entries


def _graded_entries(
    ballots: SessionBallots, reading: GradedReading, lengths: Mapping[str, int], named: ModelNames
) -> GradedEntries:
    """Build `ballot_entries` from ballots with grades only."""
    names, reviewers = reading.electorate.candidates, reading.reviewers
    kept, repaired = ballots.order_consistency, ballots.repaired_reviewers
    by_model = [kind == "model" for kind in reading.kinds]
    voters = list(zip(reviewers, by_model, strict=True))
    return GradedEntries(
        reading,
        models=tuple([named.candidate(name) for name in names]),
        chars=tuple([lengths.get(name) for name in names]),
        reviewers=[named.reviewer(name) if model else name for name, model in voters],
        repaired=[model and name in repaired for name, model in voters],
        order_counts=[kept.get(name, (0, 0)) if model else (0, 0) for name, model in voters],
    )


def _order_counts(ballots: SessionBallots, reading: Reading) -> dict[str, tuple[int, int]]:
    """Count pairs judged alike and pairs seen in both orders by reviewer."""
    counts = dict(reading.electorate.order_kept)
    for ballot in reading.ballots:
        if ballot.kind == "model" and ballot.reviewer in ballots.order_consistency:
            alike, twice = reading.electorate.order_kept.get(ballot.reviewer, (0, 0))
            more_alike, more = ballots.order_consistency[ballot.reviewer]
            counts[ballot.reviewer] = (alike + more_alike, twice + more)
    return counts


class _Table:
    """The candidates of a session, and which of them each ballot covers."""

    def __init__(self, reading: Reading, names: ModelNames) -> None:
        self.names = reading.electorate.candidates
        self.models = [names.candidate(name) for name in self.names]
        self.seats = {name: seat for seat, name in enumerate(self.names)}

    def on(self, ballot: Ballot, vote: Vote, own: frozenset[int]) -> Sequence[int]:
        """The seats of the candidates on a ballot."""
        sheet: Sequence[int] = range(len(self.names))
        if ballot.paired or ballot.candidates not in (None, self.names):
            named = (self.seats[name] for name in ballot.candidate_names() if name in self.seats)
            sheet = sorted(named)
        positions = ballot.positions
        if not (positions or own):
            return sheet
        return [
            seat
            for seat in sheet
            if vote.places[seat]
            or not isnan(vote.grades[seat])
            or (self.names[seat] in positions if positions else seat not in own)
        ]


def _shares(
    places: Sequence[int], own: frozenset[int], seats: Sequence[int]
) -> tuple[float | None, ...]:
    """Compute the share of rivals that each candidate is placed above.

    With p twice the rank among n ranked candidates, it is (2n − p) / (2n − 2).
    """
    others, n = places, len(places) - places.count(0)
    if any(places[seat] for seat in own):
        others = close_gaps(places, own)
    n_others = n if others is places else len(others) - others.count(0)
    shares: list[float | None] = []
    for seat in seats:
        place, ranked = (places[seat], n) if seat in own else (others[seat], n_others)
        shares.append((2 * ranked - place) / (2 * ranked - 2) if place and ranked > 1 else None)
    return tuple(shares)


def _known_grades(vote: Vote, seats: Sequence[int]) -> tuple[float | None, ...]:
    """The given grades, without the lowest ones filled in for omissions."""
    grades, omitted = vote.grades, vote.omitted
    return tuple(
        [None if isnan(grades[seat]) or seat in omitted else grades[seat] for seat in seats]
    )


def _positions(ballot: Ballot, names: Sequence[str]) -> tuple[int, ...]:
    """Compute each candidate's place on the sheet; 0 for a copy.

    Candidates that share a place have the same answer, which was read once: the first of them gets
    the place, and later answers move back. The first and the last place are thus assigned once, and
    there are as many places as candidates.
    """
    if not ballot.positions:
        return (0,) * len(names)
    places = [ballot.positions.get(name, 0) for name in names]
    if len(set(places)) == len(places):
        return tuple(places)
    copies = [place for at, place in enumerate(places) if place and place in places[:at]]
    if not copies or ballot.paired:
        return tuple(places)
    last, positions = max(places), []
    for at, place in enumerate(places):
        ahead = sum(copy < place or copy == place == last != 1 for copy in copies)
        positions.append(0 if not place or place in places[:at] else place + ahead)
    return tuple(positions)


class Block:
    """Electorates of one shape as arrays, and their rows.

    Parameters
    ----------
    count
        A count of these sessions under any rule, if available.
    """

    def __init__(
        self,
        electorates: Sequence[Electorate],
        profile: Profile,
        settings: Settings,
        count: BatchCount | None,
    ) -> None:
        self.electorates, self.profile, self.settings = electorates, profile, settings
        wins, self._matchups = (
            (first_places(profile), matchups(profile))
            if count is None
            else (count.wins, count.matchups)
        )
        self._wins = wins.T.tolist()
        self._over, self._level = (
            pairs.astype(np.float64).transpose(2, 0, 1)
            for pairs in (self._matchups.wins, self._matchups.ties)
        )
        self._scores: dict[str, list[list[Number] | None]] = {}
        self._votes: dict[tuple[Needs, bool], list[list[int]]] = {}
        if count is not None:
            self._votes[count.rule.needs, count.rule.reads_both] = count.votes.T.tolist()
        self._rivals: dict[Rivals, list[list[bool]]] = {}
        self._z = self._standardise_grades()

    def standings(
        self, column: int, kind: Kind, models: Sequence[str], rule: str, outcome: Outcome | None
    ) -> list[StandingEntry]:
        """Build one row per model under a rule; none if uncountable."""
        electorate = self.electorates[column]
        if outcome is not None and outcome.rule == rule:
            by_name = {line.candidate: line.score for line in outcome.standings}
            scores: list[Number] | None = [by_name.get(name) for name in electorate.candidates]
        else:
            if rule not in self._scores:
                self._scores[rule] = self._count_scores(RULES[rule])
            scores = self._scores[rule][column]
        if scores is None:
            return []
        wins = (
            self._wins[column] if any(self._has_rival("session")[column]) else [0.0] * len(models)
        )
        n = self._n_votes(RULES[rule])[column]
        averaged = self._scores_to_average(RULES[rule], column, scores)
        lines = zip(models, averaged, self._z[column], n, electorate.offered, wins, strict=True)
        if len(set(models)) == len(models):  # usual case: one seat per model
            return [StandingEntry(kind, rule, *line) for line in lines]
        by_model: dict[str, list[Any]] = {}
        for model, *line in lines:
            by_model.setdefault(model, []).append(line)
        standings = []
        for model, seats in by_model.items():
            scores_of_model, standard, vote_counts, offered, first = zip(*seats, strict=True)
            figures = (
                _mean(scores_of_model),
                _mean(standard),
                sum(vote_counts),
                sum(offered),
                sum(first),
            )
            standings.append(StandingEntry(kind, rule, model, *figures))
        return standings

    def matchup(
        self, column: int, kind: Kind, candidate_models: Sequence[str], outcome: Outcome | None
    ) -> MatchupEntry | None:
        """Return the models' matchups; None without two models or a vote."""
        electorate = self.electorates[column]
        models = sorted(set(candidate_models))
        if len(models) < 2 or not electorate.votes:
            return None
        p_beats: tuple[Number, ...] = (None,) * (len(models) * (len(models) - 1) // 2)
        if models == candidate_models and outcome is None:
            wins, losses, ties = (tuple(pairs[column]) for pairs in self._pairs)
            return MatchupEntry(kind, tuple(models), wins, losses, ties, p_beats)
        over, level = self._over[column].tolist(), self._level[column].tolist()
        pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
        order = sorted(range(len(candidate_models)), key=candidate_models.__getitem__)
        for i, j in combinations(order, 2):
            if candidate_models[i] != candidate_models[j]:
                pairs.setdefault((candidate_models[i], candidate_models[j]), []).append((i, j))
        met = [pairs[pair] for pair in combinations(models, 2)]
        return MatchupEntry(
            kind=kind,
            models=tuple(models),
            wins=tuple([sum([over[i][j] for i, j in seats]) for seats in met]),
            losses=tuple([sum([over[j][i] for i, j in seats]) for seats in met]),
            ties=tuple([sum([level[i][j] for i, j in seats]) for seats in met]),
            p_beats=p_beats if outcome is None else _beats(outcome, electorate, met),
        )

    @cached_property
    def _pairs(self) -> tuple[list[list[float]], ...]:
        """Wins, losses and ties of each pair of seats, per session."""
        first, second = pair_indices(self.profile.n_candidates)
        tables = (self._over[:, first, second], self._over[:, second, first])
        return tuple(table.tolist() for table in (*tables, self._level[:, first, second]))

    def _standardise_grades(self) -> list[list[Number]]:
        """Average standardised grades by session and candidate; 0 if all are flat."""
        if self.profile.grades is None:
            return [[None] * self.profile.n_candidates] * self.profile.n_sessions
        rule = RULES["normalized_scores"]
        scores = rule(self.profile)
        z = (
            scores.score
            if scores.fell_back is None
            else np.where(scores.fell_back, 0.0, scores.score)
        )
        return [
            self._scores_to_average(rule, column, row) for column, row in enumerate(per_session(z))
        ]

    def _scores_to_average(self, rule: Rule, column: int, scores: Sequence[Number]) -> list[Number]:
        """Replace scores without votes or rivals by None; rules may give 0."""
        lines = zip(
            scores, self._n_votes(rule)[column], self._has_rival(rule.rivals)[column], strict=True
        )
        return [score if n_votes and has_rival else None for score, n_votes, has_rival in lines]

    def _n_votes(self, rule: Rule) -> list[list[int]]:
        """Count the votes that the rule reads, per session and candidate."""
        reads = rule.needs, rule.reads_both
        if reads not in self._votes:
            self._votes[reads] = votes(self.profile, rule).T.tolist()
        return self._votes[reads]

    def _has_rival(self, rivals: Rivals) -> list[list[bool]]:
        """Return which candidates of each session have a rival of this kind."""
        if rivals not in self._rivals:
            self._rivals[rivals] = self._find_rivals(rivals)
        return self._rivals[rivals]

    def _find_rivals(self, rivals: Rivals) -> list[list[bool]]:
        if rivals == "ballot":
            compared: list[list[bool]]
            compared = np.logical_or.reduce(self._matchups.comparisons, axis=1).T.tolist()
            return compared
        if rivals == "session":
            ranked = self._n_votes(RULES["borda"])
            return [[n > 0 and len(row) - row.count(0) > 1 for n in row] for row in ranked]
        return [[True] * self.profile.n_candidates] * self.profile.n_sessions

    def _count_scores(self, rule: Rule) -> list[list[Number] | None]:
        """Score each session; None: the rule cannot count it."""
        scores: list[list[Number] | None] = [None] * self.profile.n_sessions
        if rule.needs == "history":
            return scores
        if self.profile.n_reviewers == 0:
            return [[None] * self.profile.n_candidates for _ in scores]
        chosen, profile = np.arange(self.profile.n_sessions), self.profile
        if rule.needs == "grades":
            chosen = np.flatnonzero(profile.grade_mask.any(axis=(0, 1)))
            profile = profile.take(chosen)
        for columns, score_of_part in self._countable(rule, chosen, profile):
            rows = per_session(score_of_part)
            for column, row in zip(columns, rows, strict=True):
                scores[int(column)] = row
        return scores

    def _countable(
        self, rule: Rule, columns: NDArray[np.intp], profile: Profile
    ) -> Iterator[tuple[NDArray[np.intp], Floats]]:
        """Yield the columns that the rule can count, and their scores, shape (C, S)."""
        settings = self.settings
        parameters = settings.parameters_of(rule.name)
        if not len(columns):
            return
        try:
            yield columns, score(rule, profile, **parameters).score
        except UnsuitableBallots:
            if len(columns) > 1:
                for column in columns:
                    alone = np.array([column])
                    yield from self._countable(rule, alone, self.profile.take(alone))


def _beats(
    outcome: Outcome, electorate: Electorate, pairs: Sequence[Sequence[tuple[int, int]]]
) -> tuple[Number, ...]:
    """Average P(first above second) over the candidates of each pair of models."""
    line = {standing.candidate: at for at, standing in enumerate(outcome.standings)}
    lines = [line.get(name) for name in electorate.candidates]

    def beats(i: int, j: int) -> Number:
        first, second = lines[i], lines[j]
        return None if first is None or second is None else outcome.p_beats[first][second]

    return tuple([_mean([beats(i, j) for i, j in seats]) for seats in pairs])


def _mean(values: Sequence[Number]) -> Number:
    """Average the known values; None without any."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def entries_of(
    ballots: SessionBallots,
    *,
    rules: Sequence[str] = ("borda",),
    settings: Settings | None = None,
) -> Entries:
    """Build all rows of one session like `entries_of_many`."""
    [entries] = entries_of_many([ballots], rules=rules, settings=settings)
    return entries


def entries_of_many(
    casts: Iterable[SessionBallots],
    *,
    rules: Sequence[str] = ("borda",),
    settings: Settings | None = None,
) -> Iterator[Entries]:
    """Count each session's kinds of ballots separately; yield rows in session order.

    Standings agree with `tally` under each rule. A rule that cannot count a session, or that needs
    a history, produces no rows for it. If all ballots of a kind abstain, its standings have no
    score. `BallotEntry` rows are aligned with the ballots of the session.

    Parameters
    ----------
    settings
        How ballots are counted; noise is computed under its rule, and so are probabilities, for
        sessions with an outcome or with people's votes.

    Raises
    ------
    UnknownName
        If there is no such rule.
    TooLarge
        If a session has more candidates than can be counted.
    InvalidParameter
        If a ballot's weight is negative or infinite.
    """
    for rule in rules:
        RULES[rule]
    source = iter(casts)
    chosen = settings or Settings()
    while block := list(islice(source, SESSIONS_AT_ONCE)):
        yield from _Counting(block, tuple(dict.fromkeys(rules)), chosen).entries()


@dataclass(slots=True)
class _Half:
    """One kind of ballots of one session, with their results."""

    number: int
    kind: Kind
    reading: Reading | GradedReading
    outcome: Outcome | None
    standings: list[StandingEntry]
    matchup: MatchupEntry | None = None
    kendall_w: float | None = None
    noise: Noise | None = None
    count: CountColumn | None = None

    @property
    def electorate(self) -> Electorate:
        return self.reading.electorate


class _Counting:
    """A block of sessions being counted."""

    def __init__(
        self,
        casts: Sequence[SessionBallots],
        rules: tuple[str, ...],
        settings: Settings,
    ) -> None:
        self.casts, self.rules, self.settings = casts, rules, settings
        self.named = [ModelNames(cast) for cast in casts]
        self.ballots = [_ballots_by_kind(cast) for cast in casts]
        self.halves = [half for number in range(len(casts)) for half in self._read_casts(number)]
        self._count_outcomes()

    def entries(self) -> Iterator[Entries]:
        """Count all sessions, then yield their rows in session order."""
        for numbers in group_by_shape([half.electorate for half in self.halves]):
            self._count([self.halves[number] for number in numbers])
        waiting = iter(self.halves)
        half = next(waiting, None)
        for number in range(len(self.casts)):
            mine = []
            while half is not None and half.number == number:
                mine.append(half)
                half = next(waiting, None)
            yield self._entries(number, mine)

    @cached_property
    def _graded(self) -> Mapping[Kind, Mapping[str, GradedReading]]:
        """Readings of ballots with grades only, by kind and session."""
        alone = len({cast.session for cast in self.casts}) == len(self.casts)
        sessions = list(zip(self.casts, self.ballots, strict=True))
        return {
            kind: read_graded_ballots(
                {cast.session: ballots[kind] for cast, ballots in sessions if kind in ballots},
                self.settings,
            )
            for kind in (KINDS if alone else ())
        }

    def _read_casts(self, number: int) -> list[_Half]:
        session_ballots, ballots = self.casts[number], self.ballots[number]
        halves = []
        for kind in KINDS:
            if kind in ballots:
                reading: Reading | GradedReading | None = None
                count = session_ballots.count
                if count is not None and count[0].fits is not None:
                    electorate = count[0].electorates[count[1]]
                    reading = reuse_electorate(electorate, ballots[kind], self.settings)
                if reading is None:
                    count = None
                    graded = self._graded.get(kind, {}).get(session_ballots.session)
                    reading = graded or read_ballots(
                        session_ballots.session, ballots[kind], self.settings
                    )
                outcome = session_ballots.outcome if kind == "model" else None
                halves.append(_Half(number, kind, reading, outcome, [], count=count))
        return halves

    def _count_outcomes(self) -> None:
        """Count sessions that people judged and that have no outcome, for calibration."""
        if (rule := self.settings.rule) != AUTO and RULES[rule].needs == "history":
            return
        judged = {half.number for half in self.halves if half.kind == "human"}
        uncounted = [
            half
            for half in self.halves
            if half.kind == "model"
            and half.outcome is None
            and half.number in judged
            and half.electorate.votes
        ]
        settings = replace(self.settings, flips=False)
        # Sessions counted together would learn weights from each other.
        n_names = len({cast.session for cast in self.casts})
        together = rule != "weighted_borda" and n_names == len(self.casts)
        for halves in [uncounted] if together else [[half] for half in uncounted]:
            by_session = {half.electorate.session: half for half in halves}
            electorates = [half.electorate for half in halves]
            for outcome in tally_electorates(electorates, settings, on_unsuitable=lambda _: None):
                by_session[outcome.session].outcome = outcome

    def _count(self, halves: Sequence[_Half]) -> None:
        electorates = [half.electorate for half in halves]
        count = _shared_count(halves)
        profile = self._stack(electorates) if count is None else count.profile
        block = Block(electorates, profile, self.settings, count)
        for column, half in enumerate(halves):
            names, model_of = half.electorate.candidates, self.named[half.number].candidate
            models = [model_of(name) for name in names]
            for rule in self.rules:
                half.standings += block.standings(column, half.kind, models, rule, half.outcome)
            half.matchup = block.matchup(column, half.kind, models, half.outcome)
        by_models = [n for n, half in enumerate(halves) if half.kind == "model"]
        if by_models:
            fits = None if count is None else count.fits
            self._agree([halves[column] for column in by_models], _part(profile, by_models), fits)

    def _stack(self, electorates: Sequence[Electorate]) -> Profile:
        by_name = self.settings.reliability
        reliability = None if by_name is None else [by_name] * len(electorates)
        return stack(electorates, reliability=reliability)

    def _agree(
        self, halves: Sequence[_Half], profile: Profile, fits: Sequence[Fitted] | None
    ) -> None:
        if any(self.casts[half.number].outcome is None for half in halves):  # outcomes include it
            for half, concordance in zip(halves, _concordances(halves, profile), strict=True):
                half.kendall_w = concordance
        several = [n for n, half in enumerate(halves) if len(half.electorate.reviewers) > 1]
        if not several or profile.n_candidates < 2:
            return
        halves_to_compare = [halves[column] for column in several]
        if fits is None:
            rule = RULES["calibrated" if self.settings.rule == AUTO else self.settings.rule]
            electorates = [half.electorate for half in halves_to_compare]
            fits = fits_of(electorates, _part(profile, several), rule)
        else:
            fits = [fits[column] for column in several]
        for half, noise in zip(halves_to_compare, noise_of(fits), strict=True):
            half.noise = noise

    def _entries(self, number: int, halves: Sequence[_Half]) -> Entries:
        session_ballots, model_names = self.casts[number], self.named[number]
        length_by_seat = {
            answer.seat: answer.chars
            for answer in session_ballots.answers
            if answer.chars is not None
        }
        lengths = {**length_by_seat, **session_ballots.lengths}
        rows = {
            half.kind: ballot_entries(session_ballots, half.reading, lengths, model_names)
            for half in halves
        }
        models = next((half for half in halves if half.kind == "model"), None)
        return Entries(
            session=_session_entry(session_ballots, models),
            standings=tuple(row for half in halves for row in half.standings),
            matchups=tuple(half.matchup for half in halves if half.matchup is not None),
            ballots=_in_order(rows, session_ballots.ballots),
            answers=session_ballots.answers
            or tuple(
                AnswerEntry(name, model_names.candidate(name), chars)
                for name, chars in lengths.items()
            ),
        )


def _shared_count(halves: Sequence[_Half]) -> BatchCount | None:
    """Return an available count of exactly these sessions in this order."""
    if halves[0].count is None:
        return None
    count, _ = halves[0].count
    columns = [half.count[1] for half in halves if half.count and half.count[0] is count]
    whole = len(halves) == len(count.electorates) and columns == [*range(len(halves))]
    return count if whole else None


def _in_order(
    rows: Mapping[Kind, Sequence[BallotEntry]], ballots: Sequence[Ballot]
) -> Sequence[BallotEntry]:
    if len(rows) == 1:
        [of_kind] = rows.values()
        return of_kind if isinstance(of_kind, GradedEntries) else tuple(of_kind)
    sources = {kind: iter(of_kind) for kind, of_kind in rows.items()}
    return tuple([next(sources[ballot.kind]) for ballot in ballots])


def _ballots_by_kind(ballots: SessionBallots) -> Mapping[Kind, Sequence[Ballot]]:
    if isinstance(ballots.ballots, BallotTable):
        return {"model": ballots.ballots}
    by_kind: dict[Kind, list[Ballot]] = {}
    for ballot in ballots.ballots:
        by_kind.setdefault(ballot.kind, []).append(ballot)
    return by_kind


def _part(profile: Profile, columns: Sequence[int]) -> Profile:
    return profile if len(columns) == profile.n_sessions else profile.take(np.array(columns))


def _session_entry(ballots: SessionBallots, models: _Half | None) -> SessionEntry:
    agreement = kendall_w = noise = None
    if models is not None:
        kendall_w, noise = models.kendall_w, models.noise
        if models.outcome is not None:
            lines = [line for line in models.outcome.standings if line.rank == 1 and line.votes > 0]
            leads = [line.p_best for line in lines if line.p_best is not None]
            agreement = max(leads, default=None)
    return SessionEntry(
        session=ballots.session,
        at=ballots.at,
        category=ballots.category,
        simulated=ballots.simulated,
        kendall_w=kendall_w if ballots.outcome is None else ballots.outcome.kendall_w,
        agreement=agreement,
        noise=noise,
    )


def _concordances(halves: Sequence[_Half], profile: Profile) -> list[float | None]:
    """Compute Kendall's W of the full rankings, without comparisons."""
    if not any(vote.paired for vote in halves[0].electorate.votes):
        return kendall_ws(profile)
    ws = []
    for column, half in enumerate(halves):
        whole = [row for row, vote in enumerate(half.electorate.votes) if not vote.paired]
        one = profile.take(slice(column, column + 1)).keep_ballots(np.array(whole, dtype=int))
        ws += kendall_ws(one)
    return ws


def noise_of(fits: Sequence[Fitted]) -> list[Noise | None]:
    """Compute the noise of each session from its fit.

    With e[c] the centred effects of n candidates, s² the residual variance and L⁺ the
    pseudo-inverse of the Laplacian,

        effect_variance = (Σ e[c]² − s²·trace L⁺) / (n − 1)

    is the moment estimate of the variance between candidates, which may be negative. It is unbiased
    except for the scales that `fit_grades` estimates.

    Returns
    -------
    list of Noise or None
        Aligned with `fits`; None without a residual degree of freedom.
    """
    noise_by_column: dict[int, list[Noise | None]] = {}
    noises = []
    for fit, at, unit in fits:
        if id(fit) not in noise_by_column:
            noise_by_column[id(fit)] = _batch_noise(fit, unit)
        noises.append(noise_by_column[id(fit)][at])
    return noises


def _batch_noise(fit: AdditiveFit, unit: Unit) -> list[Noise | None]:
    n_present = (fit.components >= 0).sum(axis=1).tolist()
    traces = fit.inverses.trace(axis1=1, axis2=2).tolist()
    spread = np.where(np.isnan(fit.effects), 0.0, fit.effects**2).sum(axis=0)
    columns = (fit.residual_variance, fit.df, spread, fit.pattern)
    noises: list[Noise | None] = []
    for variance, df, total, pattern in zip(*(x.tolist() for x in columns), strict=True):
        n, excess = n_present[pattern], total - variance * traces[pattern]
        noise = Noise(unit, variance, df, excess / (n - 1) if n > 1 else None)
        noises.append(noise if df >= 1 and variance > 0 else None)
    return noises
