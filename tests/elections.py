"""Ballot notation and generated profiles: the one home of test data for elections."""

from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import strategies as st

from witan.core.ballot import Ballot
from witan.core.profile import Profile
from witan.core.rules import Rule

TENNESSEE = (
    "42 × m: Memphis > Nashville > Chattanooga > Knoxville",
    "26 × n: Nashville > Chattanooga > Knoxville > Memphis",
    "15 × c: Chattanooga > Knoxville > Nashville > Memphis",
    "17 × k: Knoxville > Chattanooga > Nashville > Memphis",
)
"""The textbook example of a Condorcet winner, Nashville, that most voters do not put first."""


def ballot(line: str, **fields) -> Ballot:
    """Read ``"reviewer: a > b = c"`` as a ballot; ``"reviewer:"`` abstains."""
    reviewer, _, order = line.partition(":")
    groups = tuple(
        tuple(name.strip() for name in group.split("="))
        for group in order.split(">")
        if group.strip()
    )
    return Ballot(reviewer.strip(), groups=groups, **fields)


def ballots(*lines: str, **fields) -> list[Ballot]:
    """Read several ballots; a leading ``"12 × "`` casts a line that many times."""
    cast = []
    for line in lines:
        times, cross, rest = line.partition(" × ")
        if cross:
            reviewer, _, order = rest.partition(":")
            name = reviewer.strip()
            cast += [ballot(f"{name}{k}: {order}", **fields) for k in range(1, int(times) + 1)]
        else:
            cast.append(ballot(line, **fields))
    return cast


def election(*lines: str, candidates: Sequence[str] | None = None) -> Profile:
    """A profile of one session, candidates in alphabetical order unless given; nobody recused."""
    cast = ballots(*lines)
    names = list(candidates or sorted({c for one in cast for c in one.candidate_names()}))
    ranks = np.full((len(cast), len(names)), np.nan)
    for row, one in enumerate(cast):
        place = 1
        for group in one.groups:
            for candidate in group:
                ranks[row, names.index(candidate)] = place + (len(group) - 1) / 2
            place += len(group)
    return Profile.from_ranks(ranks)


def random_profile(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    *,
    ties: bool = False,
    partial: bool = False,
    recused: bool = False,
) -> Profile:
    """Independent random ballots of shape (R, C, S)."""
    r, c, _ = shape
    keys = rng.integers(0, 3, shape).astype(float) if ties else rng.random(shape)
    if partial:
        keys[rng.random(shape) < 0.3] = np.nan
    if recused:
        for row in range(min(r, c)):
            keys[row, row] = np.nan
    return Profile.from_ranks(mean_ranks(keys))


def mean_ranks(keys: np.ndarray) -> np.ndarray:
    """Ranks along the candidate axis, ties sharing their mean; NaN stays NaN."""
    smaller = (keys[:, np.newaxis] < keys[:, :, np.newaxis]).sum(axis=2)
    equal = (keys[:, np.newaxis] == keys[:, :, np.newaxis]).sum(axis=2)
    return np.where(np.isnan(keys), np.nan, smaller + (equal + 1) / 2)


@st.composite
def profiles(
    draw,
    *,
    reviewers: tuple[int, int] = (1, 6),
    candidates: tuple[int, int] = (2, 5),
    sessions: tuple[int, int] = (1, 1),
    ties: bool = True,
    partial: bool = True,
) -> Profile:
    """Any profile within these sizes, with ties and unranked candidates unless excluded."""
    r = draw(st.integers(*reviewers))
    c = draw(st.integers(*candidates))
    s = draw(st.integers(*sessions))
    rows = []
    for _ in range(r * s):
        if ties:
            row = [float(k) for k in draw(st.lists(st.integers(0, c - 1), min_size=c, max_size=c))]
        else:
            row = [float(k) for k in draw(st.permutations(range(c)))]
        if partial:
            kept = draw(st.lists(st.booleans(), min_size=c, max_size=c))
            row = [key if keep else float("nan") for key, keep in zip(row, kept, strict=True)]
        rows.append(row)
    keys = np.array(rows).reshape(s, r, c).transpose(1, 2, 0)
    return Profile.from_ranks(mean_ranks(keys))


def check_sessions_alone(
    rule: Rule, batch: Profile, sessions: Iterable[int] | None = None, tolerance: float = 0.0
) -> None:
    """Check that sessions of a batch have the scores, errors and details that they have alone."""
    together = rule(batch)
    for k in range(batch.n_sessions) if sessions is None else sessions:
        alone = rule(batch.take(slice(k, k + 1)))
        for ours, theirs in (
            (together.score, alone.score),
            (together.std_error, alone.std_error),
            (together.fell_back, alone.fell_back),
            (together.seat_order_decided, alone.seat_order_decided),
            *((together.details[name], value) for name, value in alone.details.items()),
        ):
            if theirs is not None:
                of_batch = np.asarray(ours[..., k], dtype=float)
                np.testing.assert_allclose(of_batch, theirs[..., 0], rtol=0, atol=tolerance)
