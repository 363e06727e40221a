"""The trust line: reliability, cost and gaps of a result."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from witan.core.display import chance_percent, dollars, level_percent, percent, percent_range
from witan.core.outcome import Outcome
from witan.core.rules import RULES
from witan.deliberation.costs import Spending
from witan.service.text import UNKNOWN, count_noun, list_text, number

if TYPE_CHECKING:
    from witan.core.stats.separation import Separation
    from witan.core.verdict import Approval, MeanGrade, Verdict
    from witan.deliberation.events import Decided
    from witan.deliberation.ports import Member, Options
    from witan.deliberation.session import Session
    from witan.models.seats import SeatSpec


ALMOST_NOTHING_USD = 0.0001
"""Less than this is printed like nothing."""

KINDS = {"script": "script", "cmd": "program"}
"""Provider to the noun for its seats; elsewhere a model holds them."""


def separation_sentence(separation: "Separation") -> str:
    """Describe which differences a council of this size can detect."""
    share = f"{percent(separation.power)} of the time"
    more = separation.next_reviewers
    reviewers = count_noun(separation.reviewers, "member" if separation.authors else "reviewer")
    if separation.grades is not None:
        can = f"{reviewers} separate answers {separation.grades:.1f} grades apart ({share})"
        return (
            f"{can}." if more is None else f"{can}; {more} separate {separation.next_grades:.1f}."
        )
    can = f"{reviewers} cannot separate any answers"
    if separation.authors:
        reviews = count_noun(separation.reviewers - 1, "review")
        can += f": none judges its own, so each answer gets {reviews}"
    if more is None:
        return f"{can}."
    gap_text = f"{more} separate answers {separation.next_grades:.1f} grades apart ({share})"
    return f"{can}; {gap_text}{', or let a jury judge' if separation.authors else ''}."


def trust_line(outcome: Outcome, *, decision: bool = False) -> str:
    """Write the trust line: voters, leader, certainty, effective votes and history.

    With a history it names the sessions that the prior and the shared error come from.

    `decision`: whether a preceding verdict already names the leader.
    """
    lead = () if decision else (_tie_text(outcome), _flips_sentence(outcome))
    parts = [_vote_counts(outcome), *lead, _worth(outcome)]
    return " · ".join(part for part in (*parts, _lending_history(outcome)) if part)


def _worth(outcome: Outcome) -> str:
    """Return the number of effective votes, and its assumptions."""
    public = outcome.prior is not None and outcome.prior.source == "public"
    if outcome.effective_votes is None:
        return "effective votes unknown"
    votes = f"{number(outcome.effective_votes, 1)} effective votes"
    assumptions = ["judges' usual noise"] if public else []
    if outcome.rho is not None and outcome.rho_is_assumed:
        assumptions.append(f"a shared error of {number(outcome.rho)}")
    elif outcome.rho is not None:
        votes = f"{votes} at a shared error of {number(outcome.rho)}"
    return f"{votes}, assuming {list_text(assumptions)}" if assumptions else votes


def _lending_history(outcome: Outcome) -> str:
    """Describe the history that the count learned from; empty without one."""
    prior = outcome.prior
    if prior is None or prior.source == "public":
        return ""
    imported_text = f", {prior.n_imported:,} of them imported" if prior.n_imported else ""
    sessions = count_noun(prior.n_sessions, "session")
    return f"noise learned from {sessions} that compared {prior.unit}{imported_text}"


def count_voters(outcome: Outcome) -> int:
    """Count the reviewers whose ballots count; one that compares pairs has several."""
    return len({ballot.reviewer for ballot in outcome.ballots}) - len(outcome.without_effect)


def _vote_counts(outcome: Outcome) -> str:
    """Count voting reviewers, and the people among them."""
    people: int = outcome.details.get("people", 0)
    reviewers_with_ballots = {ballot.reviewer for ballot in outcome.ballots}
    n_silent = sum(1 for reviewer in outcome.abstentions if reviewer not in reviewers_with_ballots)
    n_votes = count_voters(outcome)
    parts = []
    if has_models := n_votes > people or n_silent or not people:
        n_reviewers = len(reviewers_with_ballots) + n_silent
        parts.append(f"{n_votes:,} of {count_noun(n_reviewers, 'reviewer')}")
    n_unnamed: int = outcome.details.get("unnamed_votes", 0)
    of_them = "of them " if has_models else ""
    if n_named := people - n_unnamed:
        noun = f"{of_them and 'a '}person" if n_named == 1 else "people"
        parts.append(f"{n_named:,} {of_them}{noun}")
    if n_unnamed:
        noun = "unnamed vote" if n_named or has_models else "vote"
        parts.append(count_noun(n_unnamed, f"{of_them}{noun}"))
    return ", ".join(parts)


def _tie_text(outcome: Outcome) -> str:
    tied_names = outcome.tied_for_best
    if not outcome.can_be_won:
        return "nobody can win" if tied_names else "nobody has a vote"
    if ignores_chance(outcome):
        return f"{outcome.rule} has no test for chance"
    if outcome.disputed_by:
        return f"the fit places {list_text(outcome.disputed_by)} above {list_text(outcome.leaders)}"
    if len(tied_names) > 1:
        return f"{list_text(tied_names)} are too close to call"
    if outcome.clear_leader is None:
        return ""
    return f"{outcome.clear_leader} leads clearly at {level_percent(outcome.level)} confidence"


def ignores_chance(outcome: Outcome) -> bool:
    """True if the rule ignores chance."""
    return outcome.rule in RULES and RULES[outcome.rule].needs == "history"


def _flips_sentence(outcome: Outcome) -> str:
    if len(outcome.standings) == 1 or not outcome.can_be_won:
        return ""
    if outcome.ballots_to_flip is None:
        return "how many ballots could end the lead was not searched" if outcome.leaders else ""
    if outcome.ballots_to_flip == 0:
        return "the first place is shared"
    fewer_text = "" if outcome.flip_is_exact else " or fewer"
    return f"{count_noun(outcome.ballots_to_flip, 'ballot')}{fewer_text} could end the lead"


def session_trust(session: "Session") -> str:
    """Write a session's trust line: voters, leader, certainty, cost and gaps."""
    parts = ["simulated"] if session.is_simulated else []
    if (verdict := session.verdict) is not None:
        parts.append(verdict_sentence(verdict))
    if session.synthesis is not None and session.synthesis.mode == "verdict":
        parts.append(verdict_text(session.synthesis.approved))
        parts += approval_text(session.approval)
    if session.outcome is not None:
        line = trust_line(session.outcome, decision=session.verdict is not None)
        parts += [line, *spending_text(session), *reliability_text(session)]
    elif session.answers_agree:
        parts.append(f"all {len(session.answers)} answers are the same, so none was reviewed")
    elif session.status not in ("interrupted", "running"):
        ballots = session.reviewer_ballots.values()
        voted = sum(not ballot.abstained for ballot in ballots)
        parts.append(f"{voted} of {count_noun(len(ballots), 'reviewer')}")
        parts.append("no outcome")
    parts += _circumstances(session)
    if missing := missing_text(session):
        parts.append(missing)
    return " · ".join(parts)


def trust_details(session: "Session") -> tuple[str, ...]:
    """Return the trust line without verdict, support and missing parts."""
    parts = () if session.outcome is None else outcome_details(session.outcome)
    return (*parts, *spending_text(session), *_circumstances(session))


def outcome_details(outcome: Outcome) -> tuple[str, ...]:
    """Return who voted, and the history that the count learned from."""
    return tuple(part for part in (_vote_counts(outcome), _lending_history(outcome)) if part)


def _circumstances(session: "Session") -> Iterator[str]:
    """Yield equal answers, earlier rankings, failures of the gate, cost and time."""
    if session.outcome is not None:
        yield from (f"{list_text(group)} gave the same answer" for group in session.same_answers)
    yield from rankings_text(session)
    if session.failed:
        yield f"{list_text([*session.failed])} failed the safety gate"
    # The time of the interruption is unknown; that of the last event is known.
    until_text = " until its last event" if session.status == "interrupted" else ""
    yield from (
        cost_range_text(Spending.of(session)),
        f"{duration_text(session.seconds)}{until_text}",
    )
    if session.is_fruitless:
        seats_text = list_text([*session.opening.retried])
        yield f"{seats_text} failed again; the result is unchanged"


def leaders_text(leaders: Sequence[str]) -> str:
    """Report the leaders by name."""
    if not leaders:
        return "nobody leads"
    return f"{list_text(leaders)} {'share the lead' if len(leaders) > 1 else 'leads'}"


def ending_text(event: "Decided", n_reviewers: int) -> str:
    """Describe why no more reviewers were asked."""
    n_uncalled = len(event.cancelled)
    asked_text = f"{n_reviewers - n_uncalled} of {count_noun(n_reviewers, 'reviewer')}"
    remaining_text = "the other order of the sheets"
    if event.reason == "settled":
        return f"{asked_text} were enough" if n_uncalled else f"{remaining_text} was not needed"
    if n_uncalled:
        remaining_text = f"the other {n_uncalled}" if n_uncalled > 1 else "the last one"
    chance = p_best_text(event.p_settled)
    return f"stopped after {asked_text}: {remaining_text} would settle it with probability {chance}"


def spending_text(session: "Session") -> Iterator[str]:
    """Describe how many reviewers were needed, if spending adapts."""
    if session.opening.procedure.spend != "adaptive" or session.outcome is None:
        return
    n_reviewers = len(session.opening.reviewers)
    if session.ending is None:
        yield f"all {n_reviewers} reviewers were asked"
    else:
        yield ending_text(session.ending, n_reviewers)


def mean_grade_text(grade: "MeanGrade") -> str:
    """Format a mean grade as ``8.3 (7.1 to 9.4)``, or without interval."""
    mean = number(grade.mean, 1)
    if grade.interval is None:
        return mean
    return f"{mean} ({number(grade.interval.low, 1)} to {number(grade.interval.high, 1)})"


def verdict_sentence(verdict: "Verdict") -> str:
    """Describe the decision on texts, the margin and its certainty."""
    parts = []
    if len(verdict.texts) == 1:
        [text] = verdict.texts
        if text.overall is not None:
            parts.append(f"{mean_grade_text(text.overall)} of 10")
        elif text.missing:
            missing = f"missing: {list_text(text.missing)}"
            parts.append(
                f"ungraded, as every ballot grades less than half of the rubric ({missing})"
            )
            parts.append("judge it again, or choose another rubric")
        else:
            parts.append("ungraded")
        if text.failed:
            parts.append(f"failed the safety gate: {list_text(text.failed)}")
    else:
        about, first = verdict.text, verdict.texts[0].text
        parts.append(f"{verdict.leader or 'no text'} leads clearly")
        if verdict.expected not in (None, verdict.leader):
            parts.append(f"{about if about == verdict.expected else 'a tie'} was expected")
        if verdict.probability is not None:
            parts.append(
                f"{about or first} is best with probability {p_best_text(verdict.probability)}"
            )
    texts = {each.text: each for each in verdict.texts}
    subject = texts[verdict.text or verdict.texts[0].text]
    if verdict.pass_mark is not None and subject.p_pass is not None:
        subject_text = "" if len(texts) == 1 else f"{subject.text} has "
        mark, chance = f"{verdict.pass_mark:g}", p_best_text(subject.p_pass)
        parts.append(f"{subject_text}{mark} or above with probability {chance}")
        if verdict.decision == "too close to call" and verdict.look_level > verdict.level:
            parts.append(f"a decision takes {verdict.look_level:.3f} after several looks")
    if verdict.ballots_to_flip:
        parts.append(f"{count_noun(verdict.ballots_to_flip, 'ballot')} could change it")
    decision = "" if verdict.decision is None else f"{verdict.decision}: "
    return f"{decision}{'; '.join(parts)}"


def rankings_text(session: "Session") -> Iterator[str]:
    """Describe the earlier ranking beside this jury's."""
    orders = {
        moment: " > ".join(list_text(group) for group in ranking)
        for moment, ranking in session.rankings.items()
    }
    if not orders:
        return
    if orders["before"] == orders["now"]:
        yield f"ranked as before: {orders['now']}"
    else:
        yield f"ranked before: {orders['before']}; now: {orders['now']}"


def missing_text(session: "Session") -> str:
    """Return the status and gaps of an incomplete session, else empty."""
    if session.status in ("complete", "running"):
        return "" if session.status == "complete" else "running in another process"
    missing = "; ".join(session.missing)
    return f"{session.status}: {missing}" if missing else session.status


def reliability_text(session: "Session") -> Iterator[str]:
    """Yield agreement and reliability, as two separate texts."""
    outcome = session.outcome
    if outcome is None or not outcome.leaders:
        return
    if len(outcome.standings) > 1:  # on a single text the verdict has the probability
        p_best = outcome.standings[0].p_best
        yield "agreement unknown" if p_best is None else f"agreement {p_best_text(p_best)}"
    reliability = session.reliability
    if reliability.value is None:
        yield "reliability unknown"
        return
    within = ""
    if reliability.interval is not None:
        within = f" ({percent_range(reliability.interval)})"
    pairs = count_noun(reliability.n, "decided pair")
    share = chance_percent(reliability.value)
    yield f"matched people on {share} of {pairs} at similar agreement{within}"


def verdict_text(is_approved: bool | None) -> str:
    """Return the verdict in one word or a few."""
    if is_approved is None:
        return "neither approved nor rejected"
    return "approved" if is_approved else "rejected"


def approval_text(approval: "Approval | None") -> Iterator[str]:
    """Count members' votes, with the probability of the same majority."""
    if approval is None:
        return
    voted = approval.approve + approval.reject
    if not voted:
        yield f"none of {count_noun(approval.silent, 'member')} gave a verdict"
        return
    verb = "approves" if approval.approve == 1 else "approve"
    yield f"{approval.approve} of {count_noun(voted, 'member')} {verb}"
    if approval.silent:
        yield f"{approval.silent} gave no verdict"
    if approval.p_majority is not None:
        verdict = "approval" if approval.is_approved else "rejection"
        probability = number(approval.p_majority)
        yield f"other such members agree on {verdict} with probability {probability}"


def cost_sum_text(usd: float | None) -> str:
    """``$0.041``; ``cost unknown``."""
    return "cost unknown" if usd is None else dollars(usd)


def cost_range_text(spending: Spending) -> str:
    """``$0.041``; ``at least $0.041, at most $0.162``; ``cost unknown, at most $0.121``."""
    cost_usd, known_usd, most_usd = spending
    if cost_usd is not None:
        return dollars(cost_usd)
    # "At least almost nothing" would carry no information.
    least = f"at least {dollars(known_usd)}" if known_usd >= ALMOST_NOTHING_USD else "cost unknown"
    return least if most_usd is None else f"{least}, at most {dollars(most_usd, up=True)}"


def duration_text(seconds: float) -> str:
    """``4.2 s``, ``38 s``, ``3 min 5 s``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def p_best_text(probability: float | None) -> str:
    """Format a probability to two decimals, never as certainty."""
    if probability is None:
        return UNKNOWN
    if probability < 0.005:
        return "<0.01"
    return ">0.99" if probability >= 0.995 else number(probability)


def shared_votes(seats: "Sequence[SeatSpec | Member]") -> tuple[str, ...]:
    """Describe each model, script or program with several seats."""
    by_model: dict[tuple[str, str | None, Options], list[SeatSpec | Member]] = {}
    for each in seats:
        if each.source:
            by_model.setdefault((each.source, each.url, each.options), []).append(each)
    return tuple(
        f"{'all seats' if len(same) == len(seats) else list_text([each.name for each in same])} "
        f"are held by one {KINDS.get(same[0].provider, 'model')}, {source}: "
        "their votes are not independent"
        for (source, _, _), same in by_model.items()
        if len(same) > 1
    )
