"""What of an audit is beyond noise, and is not as one would wish: said of one reviewer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from witan.core.audit_reviewers import ReviewerAudit
from witan.core.stats.measures import Measure

__all__ = ["CHECKS", "OFTEN", "Check", "Concern", "concern_of", "concerns"]

Wish = Literal["none", "even", "no more", "chance", "above", "rare"]

OFTEN = 0.1
"""A rate whose interval lies above this is too high: one ballot in ten."""

HALF = 0.5


@dataclass(frozen=True, slots=True)
class Concern:
    """A measure that is not as one would wish, beyond noise.

    Parameters
    ----------
    measure
        Its name.
    sentence
        What it says of the reviewer: "grades lower than the others".
    """

    measure: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Check:
    """When a measure is a concern.

    Parameters
    ----------
    measure
        Its name; of a measure of length, that within ``length``.
    wish
        ``none``: an interval without 0 is a concern. ``even``: one without ½. ``no more``: one
        above 0. ``chance``: one below ½. ``above``: one that is not above the bound. ``rare``: one
        above `OFTEN`.
    low, high
        What is said where the value is below, and above, what one would wish.
    """

    measure: str
    wish: Wish
    low: str = ""
    high: str = ""
    bound: float = 0.0

    def of(self, line: ReviewerAudit) -> Measure:
        """The measure of a reviewer."""
        found: Measure = attrgetter(self.measure)(line)
        return found


CHECKS = (
    Check("self_preference", "none", "places its own answers lower than the others do",
          "places its own answers higher than the others do"),
    Check("family_preference", "none", "places its family lower than outsiders do",
          "places its family higher than outsiders do"),
    Check("position_effect", "none", "prefers what stands last on the sheet",
          "prefers what stands first on the sheet"),
    Check("first_shown", "even", "picks the second shown of two more often than the first",
          "picks the first shown of two more often than the second"),
    # A noisier reviewer goes less by length, as by anything: only more than people is a concern.
    Check("length.shares_beyond_people", "no more",
          high="ranks long answers higher than people do"),
    Check("length.longer_wins_beyond_people", "no more",
          high="picks the longer answer more often than people do"),
    Check("severity", "none", "grades lower than the others", "grades higher than the others"),
    Check("discrimination", "above", "is not shown to tell answers apart by its grades"),
    Check("agreement", "above", "is not shown to agree with the others"),
    Check("agreement_with_people", "above", "is not shown to side with people more than a coin",
          bound=HALF),
    Check("order_consistency", "chance", "keeps its choice in fewer than half of the pairs "
          "that it sees in both orders"),
    Check("abstention_rate", "rare", high="abstains on more than one ballot in ten"),
    Check("repair_rate", "rare", high="needs a second attempt on more than one ballot in ten"),
    Check("flat_rate", "rare", high="tells nobody apart on more than one ballot in ten"),
)  # fmt: skip
"""Every check, in the order of an audit."""

FLAGS = {
    "dead": "never brought a vote",
    "constant": "tells nobody apart on nine ballots in ten",
}


def concerns(line: ReviewerAudit) -> tuple[Concern, ...]:
    """What stands out of one reviewer, each measure judged by its own interval.

    A measure without an interval is no concern: nothing is known of its noise. Among a hundred
    measures with nothing behind them about five stand out by chance, or fewer.
    """
    return tuple(_all(line))


def _all(line: ReviewerAudit) -> Iterator[Concern]:
    for flag in line.flags:
        yield Concern(flag, FLAGS[flag])
    for check in CHECKS:
        sentence = concern_of(check, check.of(line))
        if sentence is not None:
            yield Concern(check.measure, sentence)


def concern_of(check: Check, measure: Measure) -> str | None:
    """What is to be said of a measure; None: it is as one would wish, or that is not known."""
    if measure.value is None or measure.interval is None:
        return None
    return _JUDGED[check.wish](check, measure.interval.low, measure.interval.high)


def _apart(bound: float) -> Callable[[Check, float, float], str | None]:
    def judged(check: Check, low: float, high: float) -> str | None:
        if low > bound:
            return check.high
        return check.low if high < bound else None

    return judged


_JUDGED: dict[Wish, Callable[[Check, float, float], str | None]] = {
    "none": _apart(0.0),
    "even": _apart(HALF),
    "no more": lambda check, low, _: check.high if low > 0 else None,
    "chance": lambda check, _, high: check.low if high < HALF else None,
    "above": lambda check, low, _: check.low if low <= check.bound else None,
    "rare": lambda check, low, _: check.high if low > OFTEN else None,
}
