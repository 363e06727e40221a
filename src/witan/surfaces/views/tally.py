"""Ballots that somebody brings along, as the page shows how they count."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from witan.core.outcome import Outcome
from witan.service.error_boundary import as_form
from witan.service.operations.tally import Tally
from witan.service.text import UNKNOWN, clean, counted, listed
from witan.service.trust import p_best_text, trust_line
from witan.surfaces.report.document import Column
from witan.surfaces.text.outcomes import Digest
from witan.surfaces.views.naming import Naming
from witan.surfaces.views.numbers import Numbers, numbers
from witan.surfaces.views.ranking import Ranking, ranking

IN_FULL = 10
"""Sessions that are shown in full; more of them have a line each."""

SHOWN = 1000
"""Sessions that have a line, and flaws that are told; more are for a program."""


@dataclass(frozen=True, slots=True)
class Counted:
    """One session in full."""

    session: str
    trust: tuple[str, ...]
    said: str
    ranking: Ranking


@dataclass(frozen=True, slots=True)
class TallyView:
    """What came of counting.

    Parameters
    ----------
    said
        How many sessions were counted.
    leaders
        A line for each session; None: they are shown in full.
    not_counted, not_read
        What could not be, and why.
    more
        What of all this is not shown, in sentences.
    """

    said: str
    sessions: tuple[Counted, ...]
    leaders: Numbers | None
    not_counted: tuple[str, ...]
    not_read: tuple[str, ...]
    more: tuple[str, ...]


def tally_view(tally: Tally) -> TallyView:
    """Show how ballots count."""
    outcomes = tally.sessions
    full = len(outcomes) <= IN_FULL
    left_out = (
        ("session", 0 if full else len(outcomes) - SHOWN),
        ("session that is not counted", len(tally.not_counted) - SHOWN),
        ("line that could not be read", len(tally.not_read) - SHOWN),
    )
    return TallyView(
        said=f"{counted(len(outcomes), 'session')} counted" if outcomes else "Nothing is counted",
        sessions=tuple(map(_counted, outcomes)) if full else (),
        leaders=None if full else _leaders(outcomes[:SHOWN]),
        not_counted=tuple(clean(each.problem) for each in tally.not_counted[:SHOWN]),
        not_read=tuple(
            clean(f"line {each.line:,}: {as_form(each.problem)}") for each in tally.not_read[:SHOWN]
        ),
        more=(
            *(() if full else _scales(outcomes)),
            *(f"{what}: {amount:,} more" for what, amount in left_out if amount > 0),
        ),
    )


def _scales(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """How the grades of all sessions are read, where none of them is shown in full."""
    return dict.fromkeys(clean(held.sentence) for one in outcomes for held in one.scales)


def _counted(outcome: Outcome) -> Counted:
    naming = Naming.plain(())
    return Counted(
        session=clean(outcome.session),
        trust=tuple(clean(trust_line(outcome)).split(" · ")),
        said=naming.said(outcome.interpretation),
        ranking=ranking(outcome, naming),
    )


def _leaders(outcomes: Sequence[Outcome]) -> Numbers:
    lines = [Digest.of(outcome) for outcome in outcomes]
    return numbers(
        [
            (Column("session", "left"), [line.session for line in lines]),
            (Column("leader", "left"), [" = ".join(line.leaders) or UNKNOWN for line in lines]),
            (Column("tied with", "left"), [listed(line.tied_with, most=3) for line in lines]),
            (Column("P(best)"), [p_best_text(line.p_best) for line in lines]),
            (Column("ballots"), [str(line.n_ballots) for line in lines]),
            (Column("rule", "left"), [line.rule for line in lines]),
        ],
        heads="session",
    )
