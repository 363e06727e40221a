"""Exit statuses of all commands."""

from enum import IntEnum

from witan.errors import NothingToCount, OverBudget, WitanError


class Status(IntEnum):
    """One meaning per number, the same for every command."""

    ANSWERED = 0
    FAILED = 1
    MISUSED = 2
    NO_QUORUM = 3
    OVER_BUDGET = 4
    TIED = 5
    NOT_KEPT = 6
    UNWRITTEN = 7
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def status_of(error: WitanError) -> Status:
    """Return the exit status of an error of ours."""
    if isinstance(error, OverBudget):
        return Status.OVER_BUDGET
    return Status.NO_QUORUM if isinstance(error, NothingToCount) else Status.MISUSED
