"""Many sessions as text: one line each, and who leads how often."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from witan.core.outcome import Outcome
from witan.core.scale import Scale
from witan.service.ballots import Unread
from witan.service.operations.tally import Tally
from witan.service.text import UNKNOWN, Page, clean, counted, listed
from witan.service.trust import p_best_text
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table
from witan.surfaces.text.outcome import flips, outcome_text

SHOWN = 10
"""Sessions shown in full, and problems that are listed."""

CANDIDATES_SHOWN = 20
"""Candidates listed with the number of sessions they lead."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What one line of the summary keeps of an outcome."""

    session: str
    rule: str
    n_ballots: int
    leaders: tuple[str, ...]
    clear: bool
    tied_with: tuple[str, ...]
    p_best: float | None
    flips: str
    noted: bool
    scales: tuple[Scale, ...] = ()

    @classmethod
    def of(cls, outcome: Outcome) -> "Digest":
        """The digest of an outcome."""
        leaders = outcome.leaders
        return cls(
            session=outcome.session,
            rule=outcome.rule,
            n_ballots=outcome.n_ballots,
            leaders=leaders,
            clear=outcome.clear_leader is not None,
            tied_with=tuple(name for name in outcome.tied_for_best if name not in leaders),
            p_best=outcome[leaders[0]].p_best if leaders else None,
            flips=flips(outcome),
            noted=len(outcome.warnings) > len(outcome.scales),
            scales=outcome.scales,
        )


def summary_text(page: Page, digests: Sequence[Digest]) -> Iterator[str]:
    """The lines of the summary."""
    columns = [
        Column("session", "left", elastic=True),
        Column("leader", "left", elastic=True),
        Column("tied with", "left", elastic=True, keep=60),
        Column("p_best", keep=50),
        Column("flips", keep=40),
        Column("ballots", keep=30),
        Column("rule", "left", keep=20),
    ]
    rows = [
        [
            digest.session,
            " = ".join(digest.leaders) or UNKNOWN,
            listed(digest.tied_with, most=3),
            p_best_text(digest.p_best),
            digest.flips,
            str(digest.n_ballots),
            digest.rule,
        ]
        for digest in digests
    ]
    yield from table(page, columns, rows)
    yield ""
    yield page.sentence(_total(digests), "bold")
    yield ""
    yield from _leads(page, digests)
    yield ""
    option = page.option("scale")
    scales = (scale.sentence_with(option) for digest in digests for scale in digest.scales)
    for sentence in dict.fromkeys(scales):
        yield page.sentence(f"note: {sentence}", "warning", hang=2)
    if noted := sum(digest.noted for digest in digests):
        carry = "carries a note" if noted == 1 else "carry notes"
        yield page.sentence(f"{counted(noted, 'session')} {carry}.", "warning")
    yield page.sentence("One session in full: --session NAME. All of them: --json.", "dim")


def _total(digests: Sequence[Digest]) -> str:
    clear = sum(digest.clear for digest in digests)
    shared = sum(len(digest.leaders) > 1 for digest in digests)
    nobody = sum(not digest.leaders for digest in digests)
    parts = [
        f"{clear:,} with a clear leader",
        f"{len(digests) - clear - shared - nobody:,} with a leader that is not clear",
        f"{shared:,} in a dead heat",
    ]
    if nobody:
        parts.append(f"{nobody:,} without a vote")
    return f"{counted(len(digests), 'session')}: {listed(parts)}."


def _leads(page: Page, digests: Sequence[Digest]) -> Iterator[str]:
    """How often each candidate leads: clearly, alone at all, or sharing the first place."""
    counts: dict[str, list[int]] = {}
    for digest in digests:
        for leader in digest.leaders:
            held = counts.setdefault(leader, [0, 0, 0])
            held[0] += digest.clear
            held[1] += len(digest.leaders) == 1
            held[2] += len(digest.leaders) > 1
    order = sorted(counts, key=lambda name: (-counts[name][1], -counts[name][2], name))
    columns = [
        Column("candidate", "left", elastic=True),
        Column("leads"),
        Column("of these clearly"),
        Column("shares the lead"),
    ]
    rows = [
        [name, *(f"{counts[name][which]:,}" for which in (1, 0, 2))]
        for name in order[:CANDIDATES_SHOWN]
    ]
    yield from table(page, columns, rows)
    if len(order) > CANDIDATES_SHOWN:
        yield page.sentence(f"… and {len(order) - CANDIDATES_SHOWN:,} more candidates", "dim")


def tally_text(page: Page, tally: Tally) -> Iterator[str]:
    """The lines of a tally: sessions in full, or one line each where there are many."""
    outcomes = tally.sessions
    if len(outcomes) > SHOWN:
        yield from summary_text(page, [Digest.of(outcome) for outcome in outcomes])
    else:
        for number, outcome in enumerate(outcomes):
            yield from [""] * (number > 0)
            yield from outcome_text(page, outcome)
    if not outcomes:
        yield "no session could be counted"
    for each in tally.not_counted[:SHOWN]:
        yield f"not counted: {clean(each.problem)}"
    yield from unread_text(tally.not_read)


def unread_text(not_read: Sequence[Unread]) -> Iterator[str]:
    """The first lines that could not be read, and how many more there are."""
    for each in not_read[:SHOWN]:
        yield f"not read: line {each.line}: {clean(each.problem)}"
    if more := len(not_read[SHOWN:]):
        yield f"… and {counted(more, 'more line')} could not be read"
