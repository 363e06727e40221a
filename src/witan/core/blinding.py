"""Sheets under blind labels, in balanced orders."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from witan.core.random_stream import FENCES, LABEL_MAPS, MIRRORS, SHEETS, RandomStream
from witan.errors import UnknownName

Rows = list[list[int]]
"""For each reviewer, the numbers of the candidates in the order shown."""

NONCE_BYTES = 16


def balanced_orders(hides: Sequence[Collection[int]], n_candidates: int, rng: RandomStream) -> Rows:
    """Draw reviewers' orders from a balanced design, its rows and symbols shuffled.

    With as many reviewers as candidates, if all see every candidate or each misses a different one,
    the orders are the rows of a Latin square. Every candidate is then at every position equally
    often, and directly before every other as equally as the square allows (`_first_row`). Otherwise
    the positions are dealt one by one (`_deal_rows`).

    Parameters
    ----------
    hides
        For each reviewer, the numbers of the candidates that it does not see.
    """
    if n_candidates == 1:
        return [[] if own else [0] for own in hides]
    symbols = rng.permutation(n_candidates)
    seats = rng.permutation(len(hides))
    is_reversed = rng.coin()
    symbol = {candidate: at for at, candidate in enumerate(symbols)}
    own = [{symbol[candidate] for candidate in each} for each in hides]
    single_seats = [seat for each in own for seat in each if len(each) == 1]
    square = len(hides) == n_candidates
    if square and sorted(single_seats) == list(range(n_candidates)):
        latin_square = _square(n_candidates)
        design = [latin_square[seat][1:] for seat in single_seats]
    elif square and not any(own):
        latin_square = _square(n_candidates)
        design = [latin_square[seat] for seat in seats]
    else:
        is_reversed = False  # dealt rows differ in length
        dealt = dict(
            zip(seats, _deal_rows([own[seat] for seat in seats], n_candidates), strict=True)
        )
        design = [dealt[seat] for seat in range(len(hides))]
    return [[symbols[at] for at in (row[::-1] if is_reversed else row)] for row in design]


def _square(n: int) -> Rows:
    """Build a Latin square with first column 0, 1, … n−1."""
    first = _first_row(n)
    return [[(row + at) % n for at in first] for row in range(n)]


def _first_row(n: int) -> list[int]:
    """Order the residues of n, from 0, so that steps differ.

    Row r of the square adds r to this row, so a step that occurs once puts each candidate directly
    before another exactly once. For even n, all steps differ: 0, n−1, 1, n−2, … (Williams). For odd
    n, no such sequence exists, but all steps after the first can differ: the same zigzag over all
    residues but one, shifted so that the missing residue is 0. An ordered pair is then adjacent at
    most once if the first column is hidden, and at most twice if it is not.

    References
    ----------
    Williams, "Experimental designs balanced for the estimation of residual effects of
    treatments", Australian Journal of Scientific Research A 2 (1949) 149–168. Friedlander, Gordon
    and Miller, "On a group sequencing problem of Ringel", 1978, on R-sequencings of cyclic groups.
    """
    if n % 2 == 0:
        return _zigzag(range(n))
    left_out = n - (n + 3) // 4
    steps = [residue for residue in range(n) if residue != left_out]
    return [0, *((residue - left_out) % n for residue in _zigzag(steps))]


def _zigzag(residues: Sequence[int]) -> list[int]:
    """Alternate between both ends: lowest, highest, second lowest, and so on."""
    row = list(residues)
    row[::2], row[1::2] = residues[: len(row[::2])], residues[: -len(row[1::2]) - 1 : -1]
    return row


def _deal_rows(hides: Sequence[Collection[int]], n_candidates: int) -> Rows:
    """Deal rows of any lengths, from the last position to the first.

    Only rows that hide no candidate have the last position, so its quotas are fixed first. At each
    further position p, the rows dealt are those with p candidates left; shorter rows join once p is
    their length. A candidate left in d of these rows takes ⌊d/p⌋ or ⌈d/p⌉ of them. Such quotas can
    be met: giving each row 1/p of each of its candidates meets them, and by the integrality of
    flows whole candidates do too (de Werra's equitable edge colouring).
    """
    candidates = [[at for at in range(n_candidates) if at not in own] for own in hides]
    rows: Rows = [[] for _ in hides]
    directly_before = [[0] * n_candidates for _ in range(n_candidates)]
    for place in range(n_candidates, 0, -1):
        dealt = [row for row, own in enumerate(candidates) if len(own) == place]
        among = range(len(candidates)) if place == n_candidates else dealt
        degree = [sum(at in candidates[row] for row in among) for at in range(n_candidates)]
        if place == n_candidates:
            least = most = _last_quotas(degree, len(dealt))
        else:
            least = [count // place for count in degree]
            most = [-(-count // place) for count in degree]
        choices = [
            sorted(candidates[row], key=_rarity(directly_before, rows[row])) for row in dealt
        ]
        for row, at in zip(dealt, _QuotaMatching(choices).match_rows(least, most), strict=True):
            candidates[row].remove(at)
            if rows[row]:
                directly_before[at][rows[row][0]] += 1
            rows[row].insert(0, at)
    return rows


def _last_quotas(degree: Sequence[int], n_rows: int) -> list[int]:
    """Set each candidate's quota at the last position by its even share."""
    quotas = [0] * len(degree)
    for _ in range(n_rows):
        short = [count - len(degree) * quota for count, quota in zip(degree, quotas, strict=True)]
        quotas[short.index(max(short))] += 1
    return quotas


def _rarity(directly_before: Rows, row: Sequence[int]) -> Callable[[int], int]:
    return lambda at: directly_before[at][row[0]] if row else 0


class _QuotaMatching:
    """Assignment of a candidate to each row at one position, within quotas.

    It uses augmenting paths: first each candidate gets the rows of its minimum quota, then each
    remaining row gets a candidate. A later step may reassign rows but never loses one.
    """

    def __init__(self, choices: Rows) -> None:
        self.choices = choices
        self.assignment: dict[int, int] = {}

    def match_rows(self, least: Sequence[int], most: Sequence[int]) -> list[int]:
        """Return the candidate of each row."""
        for at, needed in enumerate(least):
            for _ in range(needed):
                self._find_row(at, set())
        for row in range(len(self.choices)):
            if row not in self.assignment:
                self._find_candidate(row, most, set())
        return [self.assignment[row] for row in range(len(self.choices))]

    def _find_row(self, at: int, visited_rows: set[int]) -> bool:
        for row, choices in enumerate(self.choices):
            if at not in choices or row in visited_rows or self.assignment.get(row) == at:
                continue
            visited_rows.add(row)
            if row not in self.assignment or self._find_row(self.assignment[row], visited_rows):
                self.assignment[row] = at
                return True
        return False

    def _find_candidate(self, row: int, most: Sequence[int], visited_rows: set[int]) -> bool:
        for at in self.choices[row]:
            if at in visited_rows:
                continue
            visited_rows.add(at)
            holders = [holder for holder, candidate in self.assignment.items() if candidate == at]
            if len(holders) < most[at] or any(
                self._find_candidate(holder, most, visited_rows) for holder in holders
            ):
                self.assignment[row] = at
                return True
        return False


@dataclass(frozen=True, slots=True)
class Sheet:
    """The candidates as one reviewer sees them.

    Parameters
    ----------
    reviewer
        Name of the reviewer.
    candidates
        Candidates in the order shown.
    labels
        Blind name of each candidate, in the same order: A, B, C …
    nonce
        Random code in the fences of this sheet, drawn from the secret seed.
    """

    reviewer: str
    candidates: tuple[str, ...]
    labels: tuple[str, ...]
    nonce: str

    @property
    def positions(self) -> Mapping[str, int]:
        """Place on the sheet by candidate, 1-based."""
        return {candidate: place for place, candidate in enumerate(self.candidates, start=1)}

    def label(self, candidate: str) -> str:
        """Return a candidate's blind name.

        Raises
        ------
        UnknownName
            If the candidate is not on this sheet.
        """
        if candidate not in self.candidates:
            raise UnknownName("candidate", candidate, self.candidates)
        return self.labels[self.candidates.index(candidate)]


def draw_sheets(
    reviewers: Sequence[str],
    candidates: Sequence[str],
    seed: Sequence[int],
    *,
    hidden_candidates: Mapping[str, str | Collection[str]],
) -> dict[str, Sheet]:
    """Draw one sheet per reviewer, in balanced order.

    Every candidate is at every position equally often. This is exact if there are as many reviewers
    as candidates and all see every candidate, or each misses a different one; otherwise counts
    differ by at most one wherever such sheets exist. In the exact cases, no candidate is directly
    before the same rival twice, except with an odd number of candidates that all see.

    Parameters
    ----------
    seed
        Non-negative integers; the same seed draws the same sheets on every machine.
    hidden_candidates
        By reviewer, the candidate or candidates that it must not see. A reviewer that is not named
        sees all; names that are not candidates are ignored.
    """
    rng = RandomStream(SHEETS, seed)
    number = {candidate: at for at, candidate in enumerate(candidates)}
    hides = [
        [number[c] for c in _collect_names(hidden_candidates.get(name, ())) if c in number]
        for name in reviewers
    ]
    rows = balanced_orders(hides, len(candidates), rng)
    return {
        name: _sheet(name, [candidates[at] for at in row], rng)
        for name, row in zip(reviewers, rows, strict=True)
    }


def draw_pair_sheets(
    reviewers: Sequence[str],
    candidates: Sequence[str],
    seed: Sequence[int],
    most: int,
    *,
    hidden_candidates: Mapping[str, str | Collection[str]],
) -> dict[str, tuple[Sheet, ...]]:
    """Draw each reviewer's pairs, each on two sheets in opposite orders.

    The pairs follow the rounds of a round-robin tournament (the circle method), so any run of pairs
    contains each candidate about equally often, and two rounds connect all candidates. Reviewers
    take turns at pairs without an answer of their own, up to `most` each, so that the panel
    compares all pairs about equally often.

    Returns
    -------
    dict of str to tuple of Sheet
        In the order of the reviewers; each sheet is followed by its reverse.
    """
    rng = RandomStream(SHEETS, seed)
    symbols = [candidates[at] for at in rng.permutation(len(candidates))]
    rounds = [*_tournament(symbols)]
    sheets, taken = {}, 0
    for name in reviewers:
        hidden = {*_collect_names(hidden_candidates.get(name, ()))}
        pairs = [pair for pair in rounds if hidden.isdisjoint(pair)]
        first = taken % max(len(pairs), 1)
        own = [*pairs[first:], *pairs[:first]][:most]
        taken += len(own)
        sheets[name] = tuple(
            _sheet(name, order, rng)
            for pair in own
            for order in ((pair, pair[::-1]) if rng.coin() else (pair[::-1], pair))
        )
    return sheets


def _tournament(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield all pairs, round by round; with odd numbers, one sits out."""
    ring: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    for _ in range(len(ring) - 1):
        for first, second in zip(ring[: len(ring) // 2], ring[::-1], strict=False):
            if first is not None and second is not None:
                yield first, second
        ring.insert(1, ring.pop())


def mirror(sheet: Sheet, seed: Sequence[int]) -> Sheet:
    """Reverse the candidates' order and relabel them by their new places."""
    return _sheet(sheet.reviewer, sheet.candidates[::-1], RandomStream(MIRRORS, seed))


def label_map(reader: str, candidates: Sequence[str], seed: Sequence[int]) -> Sheet:
    """Draw one sheet in random order for a reader without a ballot."""
    rng = RandomStream(LABEL_MAPS, seed)
    return _sheet(reader, [candidates[at] for at in rng.permutation(len(candidates))], rng)


def draw_nonce(seed: Sequence[int]) -> str:
    """Draw a nonce for fences outside sheets.

    It depends only on the seed, but differs from the nonces of sheets drawn with the same seed.
    """
    return RandomStream(FENCES, seed).take(NONCE_BYTES).hex()


def _collect_names(names: str | Collection[str]) -> Collection[str]:
    return [names] if isinstance(names, str) else names


def _sheet(reviewer: str, candidates: Sequence[str], rng: RandomStream) -> Sheet:
    nonce = rng.take(NONCE_BYTES).hex()
    return Sheet(reviewer, tuple(candidates), _labels(len(candidates)), nonce)


@lru_cache(maxsize=64)
def _labels(number: int) -> tuple[str, ...]:
    return tuple(map(_label, range(1, number + 1)))


def _label(place: int) -> str:
    """Label a place from A to Z, then AA, AB and so on."""
    label = ""
    while place:
        place, letter = divmod(place - 1, 26)
        label = chr(ord("A") + letter) + label
    return label
