"""From arrays to an `Outcome`: what is said of one session."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import is_unnamed
from witan.core.counted import Counted
from witan.core.lines import standings
from witan.core.majority import condorcet_winner, majority_cycles
from witan.core.outcome import BallotNote, Outcome, Prior
from witan.core.profile import Floats
from witan.core.stats.agreement import effective_votes, kendall_taus, kendall_w
from witan.core.view import View, known, known_rows
from witan.core.wording import interpretation, listed

__all__ = ["report"]


def report(counted: Counted, column: int, why: str) -> Outcome:
    """The outcome of one session of a batch: standings, and everything said of them."""
    view = View(counted, column)
    settings, electorate, above = view.settings, view.electorate, view.above()
    against = above.T & np.triu(np.ones_like(above), k=1)
    disputed_by = tuple(view.named(against[0])) if len(against) else ()
    lines = standings(view, above)
    return Outcome(
        session=electorate.session,
        rule=view.rule.name,
        parameters=_parameters(view),
        why=_why(view, why),
        interpretation=interpretation(lines, can_tell=_can_tell(view), disputed_by=disputed_by),
        standings=lines,
        p_beats=_p_beats(view),
        unresolved=_unresolved(view, above | above.T),
        disputed_by=disputed_by,
        condorcet_winner=_condorcet_winner(view),
        cycles=_cycles(view),
        kendall_w=kendall_w(_whole_ballots(view)),
        n_ballots=int(view.effective.sum()),
        n_abstentions=len(electorate.abstentions),
        effective_votes=_effective_votes(view),
        rho=_rho(view),
        ballots_to_flip=_flips(view),
        flip_is_exact=_flip_is_exact(view),
        tie_broken_by=_tie_broken_by(view),
        ties=settings.ties,
        level=settings.level,
        fit=view.unit,
        df=_df(view),
        prior=_prior(view),
        recusal=settings.counting.recusal,
        unranked=settings.counting.unranked,
        ballots=_ballot_notes(view),
        abstentions=dict(electorate.abstentions),
        order_kept=dict(electorate.order_kept),
        margins=_margins(view),
        fell_back_to="borda" if view.fell_back() else None,
        details=_details(view),
        warnings=electorate.warnings + _own_warnings(view) + _disputed(view, against),
        without_effect=_without_effect(view),
        scales=electorate.scales,
    )


def _flip_is_exact(view: View) -> bool | None:
    exact = view.counted.flips_exact
    return bool(exact[view.column]) if exact is not None and _flips(view) is not None else None


def _df(view: View) -> float | None:
    return None if view.uncertainty is None else known(view.uncertainty.df)


def _rho(view: View) -> float | None:
    return view.settings.rho if isinstance(view.settings.rho, float | int) else None


def _details(view: View) -> dict[str, Any]:
    """The rule's numbers of the session, how it went where it can tell, how many are people."""
    details = view.details(None)
    cast = [vote for vote in view.effective_votes() if vote.kind == "human"]
    if people := {vote.reviewer for vote in cast}:
        details["people"] = len(people)
    if unnamed := {vote.reviewer for vote in cast if vote.paired and is_unnamed(vote.reviewer)}:
        details["unnamed_votes"] = len(unnamed)
    if view.electorate.votes:
        details |= {name: tell(view.profile, view.names) for name, tell in view.rule.trace.items()}
    return details


def _condorcet_winner(view: View) -> str | None:
    winner = condorcet_winner(view.margins, view.votes > 0)
    return None if winner is None else view.names[winner]


def _cycles(view: View) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(view.names[c] for c in ring) for ring in majority_cycles(view.margins))


def _margins(view: View) -> tuple[tuple[float, ...], ...]:
    margins = view.in_order(view.margins).tolist()
    return tuple(tuple(_number(margin) for margin in row) for row in margins)


def _can_tell(view: View) -> bool | None:
    """Whether there are ballots enough to tell anyone apart; None: the rule does not ask."""
    if view.rule.needs == "history":
        return None
    if view.settings.ties == "intervals":
        return True
    return view.uncertainty is not None and view.uncertainty.can_tell


def _p_beats(view: View) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(row) for row in known_rows(view.in_order(view.beats)))


def _unresolved(view: View, apart: NDArray[np.bool_]) -> tuple[tuple[str, str], ...]:
    """Pairs with votes that are too close to call."""
    return tuple(
        (view.names[view.order[i]], view.names[view.order[j]])
        for i in range(len(view.order))
        for j in range(i + 1, len(view.order))
        if not apart[i, j] and view.votes[view.order[i]] and view.votes[view.order[j]]
    )


def _whole_ballots(view: View) -> Floats:
    """Ranks of the ballots that are not single comparisons, shape (R, C)."""
    whole = [not vote.paired for vote in view.electorate.votes]
    ranks = view.profile.ranks[:, :, 0][np.array(whole, dtype=bool)]
    voted: Floats = ranks[:, view.votes > 0]
    return voted


def _ballot_notes(view: View) -> tuple[BallotNote, ...]:
    taus = kendall_taus(view.profile.ranks[:, :, 0], view.ranks.astype(np.float64))
    return tuple(
        BallotNote(
            reviewer=vote.reviewer,
            tau=tau,
            weight=vote.weight,
            mismatch=vote.mismatch,
            ranking=vote.groups,
        )
        for vote, tau in zip(view.electorate.votes, taus, strict=True)
    )


def _effective_votes(view: View) -> float | None:
    """Models share their errors; people are taken as independent of them and each other."""
    rho = _rho(view)
    if rho is None:
        return None
    kinds = {vote.reviewer: vote.kind for vote in view.effective_votes()}
    models = sum(1 for kind in kinds.values() if kind == "model")
    people = len(kinds) - models
    return people + (effective_votes(models, rho) if models else 0.0)


def _without_effect(view: View) -> tuple[str, ...]:
    """Reviewers with a ballot, none of which the rule reads anything from."""
    effective = {vote.reviewer for vote in view.effective_votes()}
    cast = dict.fromkeys(vote.reviewer for vote in view.electorate.votes if vote.weight > 0)
    return tuple(reviewer for reviewer in cast if reviewer not in effective)


def _flips(view: View) -> int | None:
    # Where nobody stands against the leader, there is nobody to flip to.
    if view.counted.flips is None or (view.votes > 0).sum() < 2:
        return None
    found = int(view.counted.flips[view.column])
    return found if found >= 0 else None


def _tie_broken_by(view: View) -> str | None:
    decided = view.counted.scores.seat_order_decided
    if decided is not None and decided[view.column]:
        return "seat order"
    if view.counted.placing.broken[view.column]:
        return view.settings.tie_break or view.rule.tie_break
    by_borda = view.counted.scores.details.get("decided_by_borda")
    return "borda" if by_borda is not None and by_borda[view.column] else None


def _prior(view: View) -> Prior | None:
    """The prior that was used, if one was."""
    held = view.settings.prior
    return held if isinstance(held, Prior) and held.unit == view.unit else None


def _parameters(view: View) -> dict[str, object]:
    given = view.settings.parameters if view.settings.rule == view.rule.name else {}
    return {**view.rule.parameters, **given}


def _why(view: View, why: str) -> str:
    if view.fell_back():
        return f"{why}; every ballot is flat, so borda scores are shown"
    return why


def _disputed(view: View, against: NDArray[np.bool_]) -> tuple[str, ...]:
    """Where the fit places a lower line above a higher one beyond noise."""
    return tuple(
        f"{view.rule.name} places {view.names[view.order[line]]} above "
        f"{listed(view.named(against[line]))}; the fit of the same ballots says the reverse, "
        "beyond noise"
        for line in np.flatnonzero(against.any(axis=1))
    )


def _own_warnings(view: View) -> tuple[str, ...]:
    """What a reader must know before believing the standings."""
    found = []
    components = view.uncertainty.components if view.uncertainty is not None else None
    if components is not None and components.max(initial=0) > 0:
        found.append(
            "some candidates were never compared, not even through others; their order says nothing"
        )
    if view.rule.needs == "grades" and (who := _without_effect(view)):
        found.append(f"no grades by {listed(who)}: their ballots do not count by {view.rule.name}")
    mismatched = [vote.reviewer for vote in view.electorate.votes if vote.mismatch]
    if mismatched:
        where = f"on the ballot of {listed(mismatched)}"
        found.append(f"ranking and grades contradict each other {where}")
    ungraded = view.counted.scores.details.get("ungraded")
    if ungraded is not None and ungraded[:, view.column].any():
        bare = listed([view.names[c] for c in np.flatnonzero(ungraded[:, view.column])])
        found.append(f"no grade for {bare}: {view.rule.name} goes by rankings alone there")
    if _tie_broken_by(view) == "seat order":
        found.append("ties were too many to follow them all: seat order decided, not the ballots")
    for name, flags in view.electorate.failed.items():
        found.append(f"{name} failed the safety gate ({', '.join(flags)}) and cannot win")
    return tuple(found)


def _number(value: float) -> float:
    whole = int(value)
    return whole if whole == value else value
