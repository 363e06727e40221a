"""Count ballots as they come in, until the leader cannot change."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import anyio

from witan.core.ballot import Ballot
from witan.core.early_stopping import find_decided_leader
from witan.core.gate import Gate
from witan.core.outcome import Outcome
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation import events as e
from witan.deliberation.context import SessionContext
from witan.deliberation.duplicates import DuplicateGroups
from witan.errors import UnsuitableBallots

SETTLE_SECONDS = 0.03
"""Ballots that arrive this close together are counted together."""


class RunningCount:
    """Counts the ballots of a session as they come in."""

    def __init__(
        self,
        context: SessionContext,
        roster: Sequence[str],
        failed: Mapping[str, tuple[str, ...]],
        duplicates: DuplicateGroups | None = None,
    ) -> None:
        self.context = context
        self.roster = tuple(roster)
        self.ballots: dict[str, Ballot] = {}
        self.reasons: dict[str, str] = {}
        outcomes = [x.outcome for x in context.earlier if isinstance(x, e.OutcomeChanged)]
        self.outcome: Outcome | None = outcomes[-1] if outcomes else None
        self.problem: str | None = None
        self.leader: str | None = None
        self._outstanding: dict[str, str | None] = {}
        self._unbounded: set[str] = set()
        self._complete = anyio.Event()
        self._settling = False
        self._last = True
        self._failed = failed
        self.duplicates = DuplicateGroups() if duplicates is None else duplicates

    @property
    def settings(self) -> Settings:
        """Settings of the count, the safety gate included."""
        settings = self.context.procedure.counting
        if not self._failed:
            return settings
        gate = Gate(self._failed, self.context.procedure.safety_cap)
        return replace(settings, gates={self.context.opened.session: gate})

    def await_ballots(self, reviewers: Sequence[str], *, last: bool) -> None:
        """Expect a ballot or abstention from each; only the last round decides.

        No bound is known for the ballot of a reviewer recused from several candidates.
        """
        own = self.context.authorship.own
        own_candidates = {
            name: [c for c in self.duplicates.with_duplicates(own[name]) if c in self.roster]
            for name in reviewers
        }
        self._outstanding = {
            name: candidates[0] if candidates else None
            for name, candidates in own_candidates.items()
        }
        self._unbounded = {
            name for name, candidates in own_candidates.items() if len(candidates) > 1
        }
        self._complete = anyio.Event()
        self._last = last
        self.leader = None

    @property
    def outstanding(self) -> tuple[str, ...]:
        """Reviewers without ballot or abstention so far."""
        return tuple(self._outstanding)

    async def take(self, reviewer: str, ballot: Ballot | None) -> bool:
        """Take a ballot or an abstention; return True once decided."""
        self._outstanding.pop(reviewer, None)
        if ballot is not None:
            self.ballots[reviewer] = ballot
        if not self._outstanding:
            self._complete.set()
        if self._settling:
            return False
        if ballot is not None:
            await self._settle()
        if not self._outstanding:
            return False
        if ballot is not None:
            self._count(replace(self.settings, flips=False))
        return self._is_decided()

    async def _settle(self) -> None:
        """Wait a moment for near-simultaneous ballots."""
        self._settling = True
        try:
            with anyio.move_on_after(SETTLE_SECONDS):
                await self._complete.wait()
        finally:
            self._settling = False

    def finish(self) -> Outcome | None:
        """Count all ballots; None below the quorum."""
        self._count(self.settings)
        return self.outcome

    def _in_seat_order(self) -> list[Ballot]:
        """One ballot per seat; abstentions count in the coverage only."""
        return [
            self.ballots.get(member.name)
            or self.context.authorship.sign(
                Ballot(
                    member.name,
                    session=self.context.opened.session,
                    abstained=True,
                    reason=self.reasons.get(member.name, "did not finish"),
                    candidates=self.roster,
                )
            )
            for member in self.context.reviewers
        ]

    def _is_decided(self) -> bool:
        stops = self.context.procedure.stop_when_decided and not self.context.retries
        if not (self._last and stops) or not self._unbounded.isdisjoint(self._outstanding):
            return False
        if len(self.ballots) < self.context.procedure.quorum:
            return False
        cast = [ballot for ballot in self._in_seat_order() if not ballot.abstained]
        self.leader = find_decided_leader(
            cast,
            self._outstanding,
            self.settings,
            self.roster,
        )
        return self.leader is not None

    def _count(self, settings: Settings) -> None:
        quorum = self.context.procedure.quorum
        if len(self.ballots) < quorum:
            self.problem = f"{len(self.ballots)} of the {quorum} ballots that a quorum needs"
            return
        try:
            [outcome] = tally_sessions(self._in_seat_order(), settings)
        except UnsuitableBallots as error:
            self.problem = str(error)
            return
        if not outcome.leaders:
            self.problem = "no ballot counts for anyone"
            return
        if outcome.n_ballots < quorum:
            without = ", ".join(outcome.without_effect)
            self.problem = (
                f"{outcome.n_ballots} of the {quorum} ballots that a quorum needs have grades, "
                f"which {outcome.rule} counts; none by {without}"
            )
            return
        self.problem = None
        if outcome != self.outcome:
            self.outcome = outcome
            counted = tuple(m.name for m in self.context.reviewers if m.name in self.ballots)
            self.context.recorder.emit(e.OutcomeChanged, outcome=outcome, counted=counted)
