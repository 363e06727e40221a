"""Sufficient statistics of a history from any engine, and their merging.

Each is a table of columns of equal length. Keys are `bucket`, the group of sessions that a row sums
over, and codes of models or reviewers, which `Names` maps to names. Rows are in no particular
order, and a key may have several rows, which readers add up. No table includes simulated sessions.

Matchups count ballots by weight, and standings are scores of rules on weighted ballots. All other
sums count every ballot once, whatever its weight. A candidate is identified by its session and the
model that wrote it: two seats of one model in a session are one candidate, and votes on the two are
repeated votes on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.errors import InvalidParameter

Codes = NDArray[np.int64]
Counts = NDArray[np.int64]
Totals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Names:
    """Code to name of every model, reviewer and criterion of a history."""

    of: Mapping[int, str] = field(default_factory=dict)

    def __getitem__(self, code: int) -> str:
        return self.of[int(code)]


@dataclass(frozen=True, slots=True, eq=False)
class StandingSums:
    """Standings per bucket and model, summed over its sessions.

    `sessions` counts those with a score, `total` and `squares` sum the scores and their squares;
    `z_sessions` and `z_total` likewise the mean standardised grades. `appearances` counts sessions
    with or without a score; `votes`, `offered` and `wins` are sums.
    """

    bucket: Codes
    model: Codes
    appearances: Counts
    sessions: Counts
    total: Totals
    squares: Totals
    z_sessions: Counts
    z_total: Totals
    votes: Counts
    offered: Counts
    wins: Totals


@dataclass(frozen=True, slots=True, eq=False)
class MatchupSums:
    """Weights per bucket and pair of models: `first` above, below, level."""

    bucket: Codes
    first: Codes
    second: Codes
    wins: Totals
    losses: Totals
    ties: Totals


@dataclass(frozen=True, slots=True, eq=False)
class AnswerSums:
    """Answers per bucket and model: requests, failures, and known usage."""

    bucket: Codes
    model: Codes
    answers: Counts
    failed: Counts
    costed: Counts
    cost_usd: Totals
    timed: Counts
    seconds: Totals


@dataclass(frozen=True, slots=True, eq=False)
class BallotSums:
    """Ballots per bucket, reviewer and kind: total, abstentions, repairs, flat ones.

    Of `compared` pairs seen in both orders, `kept` were judged alike. `human` is 1 for people.
    `gradings` counts ballots with two grades or more, `spread` sums their standard deviations: of
    the population, over all grades of the ballot, those of own candidates included.
    """

    bucket: Codes
    reviewer: Codes
    human: Codes
    ballots: Counts
    abstained: Counts
    repaired: Counts
    flat: Counts
    kept: Counts
    compared: Counts
    gradings: Counts
    spread: Totals


@dataclass(frozen=True, slots=True, eq=False)
class VoteSums:
    """Per bucket, reviewer and model: shares of rivals beaten, own candidates apart.

    `own` is 1 where the reviewer wrote the candidate, else 0; `votes` counts shares and `total`
    sums them.
    """

    bucket: Codes
    reviewer: Codes
    human: Codes
    model: Codes
    own: Codes
    votes: Counts
    total: Totals


@dataclass(frozen=True, slots=True, eq=False)
class ReviewerSums:
    """Votes x and others' mean y on shared candidates, by bucket, reviewer.

    Others are the reviewers of the same session and kind, own candidates left out on both sides.
    `n_grades`, `x`, `y`, `xx`, `yy`, `xy` are sums over grades, those with ``share_`` over shares.
    """

    bucket: Codes
    reviewer: Codes
    human: Codes
    n_grades: Counts
    x: Totals
    y: Totals
    xx: Totals
    yy: Totals
    xy: Totals
    n_shares: Counts
    share_x: Totals
    share_y: Totals
    share_xx: Totals
    share_yy: Totals
    share_xy: Totals


@dataclass(frozen=True, slots=True, eq=False)
class PositionSums:
    """Shares by place and sheet size, and the others' expectation.

    `votes` counts shares of candidates, own ones left out, and `total` sums them; `excess_votes`
    and `excess` count and sum share − mean share by the other reviewers of that session and kind
    on ballots that do not tie all candidates.
    """

    bucket: Codes
    reviewer: Codes
    human: Codes
    position: Codes
    shown: Codes
    votes: Counts
    total: Totals
    excess_votes: Counts
    excess: Totals


@dataclass(frozen=True, slots=True, eq=False)
class LengthSums:
    """Per bucket and reviewer: votes beside the logarithm of the answers' lengths.

    All is centred within the ballot, own candidates left out: `n` votes on `ballots` ballots with
    two lengths or more; `ll`, `lx`, `xx` sum squares and products of log length and share;
    `n_grades`, `grade_ll`, `grade_lx`, `grade_xx` likewise with grades. `decided` counts pairs of
    candidates of different length that a ballot does not tie, `longer` those in which the longer is
    placed above.
    """

    bucket: Codes
    reviewer: Codes
    human: Codes
    ballots: Counts
    n: Counts
    ll: Totals
    lx: Totals
    xx: Totals
    n_grades: Counts
    grade_ll: Totals
    grade_lx: Totals
    grade_xx: Totals
    decided: Counts
    longer: Counts


@dataclass(frozen=True, slots=True, eq=False)
class UnitSums:
    """Candidates with two or more judges, per bucket and kind, recusals excluded.

    Ballots that compare two candidates are left out, because there a share depends on the rival.

    For `measure` 0 (shares) or 1 (grades): `units` such candidates with `n` values in all, `total`
    and `squares` their sums, and `within` the sum over candidates of (n·Σx² − (Σx)²)/(n − 1), from
    which Krippendorff's α for interval data follows.
    """

    bucket: Codes
    human: Codes
    measure: Codes
    units: Counts
    n: Counts
    total: Totals
    squares: Totals
    within: Totals


@dataclass(frozen=True, slots=True, eq=False)
class CriterionSums:
    """Models' grades per bucket and criterion; overall grade under code −1.

    `units` candidates that two reviewers or more graded on it, with `n` grades in all; `variance`
    sums the sample variances between reviewers over candidates. `lengths`, `ll`, `lx`, `xx`: grades
    beside log lengths, centred within the ballot.
    """

    bucket: Codes
    criterion: Codes
    units: Counts
    n: Counts
    variance: Totals
    lengths: Counts
    ll: Totals
    lx: Totals
    xx: Totals


@dataclass(frozen=True, slots=True, eq=False)
class GradingSums:
    """Grades per bucket, reviewer and criterion.

    Own candidates are left out except for `n_own`. `grades` counts grades and `total` sums them;
    `n`, `x`, `y`, `xx`, `yy`, `xy` as in `ReviewerSums`, beside the others' mean on the criterion.
    `n_own` grades of own candidates that others graded sum to `own_total`, and less the others'
    mean to `own_excess`; `n_first`, `n_last`, `first_excess` and `last_excess` likewise of grades
    at the first and at the last place of sheets of two or more.

    `gradings` counts ballots with two grades or more, `flat` those that are all the same, `spread`
    sums their standard deviations, of the population. `lengths`, `ll`, `lx`, `lxx`: grades beside
    log lengths, and `rests`, `rr`, `rx`, `rxx`: grades beside the mean of those on all the other
    criteria for the same answer on the same ballot, both centred within the ballot.
    """

    bucket: Codes
    reviewer: Codes
    human: Codes
    criterion: Codes
    grades: Counts
    total: Totals
    n: Counts
    x: Totals
    y: Totals
    xx: Totals
    yy: Totals
    xy: Totals
    n_own: Counts
    own_total: Totals
    own_excess: Totals
    n_first: Counts
    first_excess: Totals
    n_last: Counts
    last_excess: Totals
    gradings: Counts
    flat: Counts
    spread: Totals
    lengths: Counts
    ll: Totals
    lx: Totals
    lxx: Totals
    rests: Counts
    rr: Totals
    rx: Totals
    rxx: Totals


@dataclass(frozen=True, slots=True, eq=False)
class HumanSums:
    """Hits of two reviewers on human-decided pairs, per bucket.

    A pair of candidates of a session is decided where more people prefer one than the other. The
    `opinion` of a reviewer on it is +1 (as people), −1 (against them) or 0; own candidates are left
    out. `n` pairs that both judged; `x`, `y`, `xx`, `yy`, `xy` sums of the opinions of `reviewer`
    and `other`, which may be the same one. Both are models; of two that differ, the smaller code is
    the reviewer.
    """

    bucket: Codes
    reviewer: Codes
    other: Codes
    n: Counts
    x: Totals
    y: Totals
    xx: Totals
    yy: Totals
    xy: Totals


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationSums:
    """Human-decided pairs and hits per bucket and confidence band.

    The confidence of a panel of models in a pair is the larger of p_beats and 1 − p_beats; band k
    holds k/20 ≤ confidence < (k + 1)/20, 1 itself in band 19. `confidence` sums it. A pair at
    exactly ½ is left out. People decide a pair as in `HumanSums`.
    """

    bucket: Codes
    band: Codes
    pairs: Counts
    matched: Counts
    confidence: Totals


@dataclass(frozen=True, slots=True, eq=False)
class PanelSums:
    """Sessions per bucket, with sums of Kendall's W and p_best."""

    bucket: Codes
    sessions: Counts
    concordant: Counts
    kendall_w: Totals
    sure: Counts
    agreement: Totals


Sums = TypeVar(
    "Sums",
    AnswerSums,
    BallotSums,
    GradingSums,
    HumanSums,
    LengthSums,
    MatchupSums,
    PositionSums,
    ReviewerSums,
    StandingSums,
    VoteSums,
)

MODELS = frozenset({"model", "first", "second", "reviewer", "other"})
"""Columns that hold codes of models, or of reviewers, which are models too."""


def places(names: Names, *columns: Codes) -> tuple[tuple[str, ...], list[Codes]]:
    """Replace columns of codes by the names they stand for.

    Returns
    -------
    tuple of str
        The names that occur, in alphabetical order, each once.
    list of integer arrays
        For each column, the index of every cell's name. Codes with the same name are one model.
    """
    codes = np.unique(np.concatenate([np.unique(column) for column in columns]))
    code_names = [names[code] for code in codes.tolist()]
    order = sorted(set(code_names))
    place_of_name = {name: place for place, name in enumerate(order)}
    place = np.array([place_of_name[name] for name in code_names], dtype=np.int64)
    return tuple(order), [place[np.searchsorted(codes, column)] for column in columns]


def present_name(name: str, aliases: Mapping[str, str]) -> str:
    """Follow renames, old name → new name, to the current name.

    Raises
    ------
    InvalidParameter
        If the names form a cycle; the message shows it.
    """
    path = [name]
    while path[-1] in aliases and aliases[path[-1]] != path[-1]:
        path.append(aliases[path[-1]])
        if path[-1] in path[:-1]:
            way = " → ".join(path[path.index(path[-1]) :])
            raise InvalidParameter("aliases", way, "old names that lead to one new name each")
    return path[-1]


def renamed_codes(aliases: Mapping[str, str], names: Names) -> Mapping[int, int]:
    """Map codes of old names to different codes of present names.

    A new name that is not in the history takes the code of the alphabetically first of its old
    names.

    Raises
    ------
    InvalidParameter
        If aliases form a cycle.
    """
    for name in aliases:
        present_name(name, aliases)
    code_of = {name: code for code, name in sorted(names.of.items(), reverse=True)}
    for name in sorted(code_of):
        code_of.setdefault(present_name(name, aliases), code_of[name])
    changed = {
        code: code_of[present_name(name, aliases)]
        for code, name in names.of.items()
        if code != code_of[present_name(name, aliases)]
    }
    return MappingProxyType(changed)


def rename_codes(names: Names, aliases: Mapping[str, str]) -> Names:
    """Return the current name of every code."""
    return Names({code: present_name(name, aliases) for code, name in names.of.items()})


def merge(sums: Sums, aliases: Mapping[str, str], names: Names) -> Sums:
    """Move the sums of old names to the new ones.

    A key may then have several rows, as in any sums. Rows of two models that are now one are
    dropped. Sessions in which both names had a seat count twice, because sums do not identify them.
    Own votes stay the same.

    Parameters
    ----------
    aliases
        Old name → new name; chains are followed. Names that are not in the history are not an
        error, because a configuration may serve many histories.
    names
        Names in the history. To read the result, use ``renamed(names, aliases)``.

    Raises
    ------
    InvalidParameter
        If aliases form a cycle.
    """
    changed = renamed_codes(aliases, names)
    if not changed:
        return sums
    old = np.array(sorted(changed), dtype=np.int64)
    new = np.array([changed[code] for code in sorted(changed)], dtype=np.int64)
    columns = {field.name: getattr(sums, field.name) for field in fields(sums)}
    merged = dict(columns)
    for column in MODELS & columns.keys():
        codes = columns[column]
        place = np.minimum(np.searchsorted(old, codes), len(old) - 1)
        merged[column] = np.where(old[place] == codes, new[place], codes)
    keep = np.ones(len(sums.bucket), dtype=np.bool_)
    for one, two in (("first", "second"), ("reviewer", "other")):
        if two in columns:
            keep &= (columns[one] == columns[two]) | (merged[one] != merged[two])
    return replace(sums, **{name: column[keep] for name, column in merged.items()})
