"""What majority margins say: who beats everyone, and who beats whom in a ring."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["condorcet_winner", "majority_cycles"]


def condorcet_winner(margins: NDArray[Any], standing: NDArray[np.bool_]) -> int | None:
    """The candidate that beats every rival head to head by a strict majority, if there is one.

    Parameters
    ----------
    margins : array, shape (C, C)
        Ballots for i over j minus the reverse.
    standing : bool array, shape (C,)
        Who stands: the candidates with votes. One that stands alone has beaten nobody.
    """
    if standing.sum() < 2:
        return None
    beats = margins > 0
    for candidate in np.flatnonzero(standing):
        rivals = standing.copy()
        rivals[candidate] = False
        if beats[candidate, rivals].all():
            return int(candidate)
    return None


def majority_cycles(margins: NDArray[Any]) -> tuple[tuple[int, ...], ...]:
    """Groups of three or more candidates that beat each other in a ring, in seat order.

    These are the strongly connected components of the strict majority relation.
    """
    reach = margins > 0
    for middle in range(len(reach)):
        reach = reach | (reach[:, middle : middle + 1] & reach[middle])
    mutual = reach & reach.T
    if not mutual.any():
        return ()
    found: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for candidate in range(len(reach)):
        ring: Sequence[int] = np.flatnonzero(mutual[candidate]).tolist()
        if candidate not in seen and len(ring) > 2:
            found.append(tuple(ring))
            seen.update(ring)
    return tuple(found)
