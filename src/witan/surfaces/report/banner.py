"""The verdict banner of a result, and the gaps of an incomplete session."""

from collections.abc import Iterator

from witan.core.display import chance_percent, level_percent, percent_range
from witan.core.outcome import Outcome
from witan.core.stats.measures import Measure
from witan.deliberation.session import Session
from witan.service.text import count_noun, full_sentence, list_text, number
from witan.service.trust import (
    approval_text,
    count_voters,
    ignores_chance,
    leaders_text,
    outcome_details,
    trust_details,
    verdict_sentence,
    verdict_text,
)
from witan.surfaces.report.document import Banner, Chip, Link, Shortfall
from witan.surfaces.report.names import CandidateNames, SeatNames

SMALL_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


AWAITED = tuple(
    Chip(name, None, "It appears with the first ballots.")
    for name in ("first places", "match with people", "effective votes")
)
"""Key figures before the first ballot."""


def session_banner(
    session: Session, names: SeatNames, *, recount: str = "", is_closed: bool
) -> Banner:
    """Write the result of a session so far.

    `recount` describes another count than the session's own, if it is one.
    """
    headline, detail = _words(session, names, is_closed=is_closed)
    chips = tuple(_chips(session.outcome, session.reliability, names))
    if not is_closed:
        counted = (
            ("no ballot yet",) if session.outcome is None else outcome_details(session.outcome)
        )
        return Banner(headline, detail, chips or AWAITED, counted)
    facts = tuple(map(names.sentence, trust_details(session)))
    return Banner(headline, detail, chips, (*facts, recount) if recount else facts)


def _words(session: Session, names: SeatNames, *, is_closed: bool) -> tuple[str, str]:
    """Return the verdict in a few words, and in a sentence."""
    if (verdict := session.verdict) is not None:
        decision = verdict.decision or ""
        text = names.sentence(verdict_sentence(verdict).removeprefix(f"{decision}: ")) + "."
        if len(verdict.texts) == 1 or verdict.leader is None:
            text = text[:1].upper() + text[1:]
        if decision:
            return full_sentence(decision), text
        is_graded = len(verdict.texts) == 1 and verdict.texts[0].overall is not None
        return (f"Graded {text}" if is_graded else text), ""
    if session.synthesis is not None and session.synthesis.mode == "verdict":
        headline = full_sentence(verdict_text(session.synthesis.approved))
        votes = names.sentence("; ".join(approval_text(session.approval)))
        return headline, full_sentence(votes) if votes else ""
    if session.outcome is not None:
        headline, detail = verdict_words(session.outcome, names)
        # Members without an answer are not asked to review.
        is_final = is_closed or session.outstanding_reviewers <= session.unanswered.keys()
        return headline if is_final else f"{headline.removesuffix('.')} so far.", detail
    if not is_closed:
        return "No verdict yet.", "It appears with the first ballots."
    return _words_without_outcome(session)


def _words_without_outcome(session: Session) -> tuple[str, str]:
    if session.status in ("interrupted", "running"):
        return "Not finished.", f"{session.progress} so far." if session.progress else ""
    if session.answers_agree:
        return "All answers are the same.", "There was nothing to review."
    if len(session.answers) == 1 and session.opening.judging is None:
        return "Only one answer.", "There is nothing to compare it with."
    if not session.answers:
        return "No answer.", "Every member failed."
    ballots = session.reviewer_ballots.values()
    cast = sum(not ballot.abstained for ballot in ballots)
    voted = f"{cast} of {count_noun(len(ballots), 'reviewer')} voted"
    return "No outcome.", f"{voted}; fewer ballots count than the quorum requires."


def verdict_words(outcome: Outcome, names: CandidateNames) -> tuple[str, str]:
    """Return an outcome's verdict in a few words, and a sentence."""
    outcome = names.order_outcome(outcome)
    leaders = [*map(names.name, outcome.leaders)]
    if not any(line.votes for line in outcome.standings):
        return "No ranking.", "No ballot counts."
    if not outcome.can_be_won:
        return "No winner.", outcome.interpretation
    if sum(line.votes > 0 for line in outcome.standings) == 1:
        return f"Only {leaders[0]} has votes.", "There is nothing to compare it with."
    leads = leaders_text(leaders)
    if names.hides_names:  # a bare letter would mean nothing at the top of a page
        leads = f"{'Answer' if len(leaders) == 1 else 'Answers'} {leads}"
    if outcome.clear_leader is not None and not ignores_chance(outcome):
        return f"{leads} clearly.", _support(outcome, "It is")
    return _open_words(outcome, leads, names)


def _open_words(outcome: Outcome, leads: str, names: CandidateNames) -> tuple[str, str]:
    """Describe a verdict without a clear leader."""
    tied = outcome.tied_for_best
    if ignores_chance(outcome):
        return f"{leads}.", f"The rule {outcome.rule} does not test for chance."
    if outcome.disputed_by:
        above = list_text([*map(names.name, outcome.disputed_by)])
        fit = f"the fit of the same ballots places {above} above"
        return "Disputed.", f"{leads} by {outcome.rule}, but {fit}, beyond noise."
    if all(line.p_best is None for line in outcome.standings):
        return (
            "Too few ballots.",
            f"{leads}, but there are too few ballots to say how certain that is.",
        )
    if len(tied) == 1:
        return "Not settled.", names.sentence(outcome.interpretation)
    if len(outcome.leaders) == 1:
        return "Too close to call.", _support(outcome, f"{leads},")
    is_heat = {*tied} == {*outcome.leaders}
    return "A dead heat." if is_heat else "Too close to call.", f"{leads}."


def _support(outcome: Outcome, start: str) -> str:
    """State the leader's probability, and the ballots that would change the lead."""
    p_best, flips = outcome.standings[0].p_best, outcome.ballots_to_flip
    clauses = []
    if p_best is not None:
        is_within_noise = p_best >= outcome.level and outcome.clear_leader is None
        noise = (
            f", but not ahead beyond noise ({level_percent(outcome.level)})"
            if is_within_noise
            else ""
        )
        clauses.append(f"{start} {chance_percent(p_best)} likely to be best{noise}")
    if flips:
        count = SMALL_NUMBERS[flips] if flips < len(SMALL_NUMBERS) else f"{flips:,}"
        ballots = f"{count} ballot{'' if flips == 1 else 's'}"
        clauses.append(f"{ballots}{'' if outcome.flip_is_exact else ' or fewer'} would change it")
    text = "; ".join(clauses)
    return f"{text}." if p_best is not None else full_sentence(text) if text else ""


def _chips(
    outcome: Outcome | None, reliability: Measure | None, names: CandidateNames
) -> Iterator[Chip]:
    """Yield first places, agreement with people, and effective votes."""
    if outcome is None or not outcome.can_be_won:
        return
    if sum(line.votes > 0 for line in outcome.standings) > 1:
        yield _first_places_chip(names.order_outcome(outcome), names)
    if reliability is not None:
        yield _match_chip(reliability)
    votes = None if outcome.effective_votes is None else number(outcome.effective_votes, 1)
    yield Chip(
        "effective votes",
        None if votes is None else f"{votes.removesuffix('.0')} of {count_voters(outcome)}",
        "Unknown: reviewers may share mistakes."
        if votes is None
        else "Models tend to share mistakes: these reviewers are worth as much as this many "
        f"independent ones, {_shared_error_text(outcome)}.",
    )


def _first_places_chip(outcome: Outcome, names: CandidateNames) -> Chip:
    """Count the ballots with a leader first; the verdict has the probability."""
    leaders = {*outcome.leaders}
    rankings = [note.ranking for note in outcome.ballots]
    with_leader = [ranking for ranking in rankings if not leaders.isdisjoint(sum(ranking, ()))]
    n_first = sum(not leaders.isdisjoint(ranking[0]) for ranking in with_leader)
    name = "first places"
    if not with_leader:
        return Chip(name, None, "Unknown: no ballot ranks the leader.")
    alone = outcome.leaders[0] if len(leaders) == 1 else None
    who, it = (names.name(alone), "it") if alone else ("a leader", "one")
    meaning = f"Ballots that place {who} first, of those that rank {it}."
    return Chip(name, f"{n_first} of {len(with_leader)}", meaning)


def _match_chip(reliability: Measure) -> Chip:
    if reliability.value is None:
        return Chip("match with people", None, "Unknown until people vote on the same answers.")
    within = ""
    if reliability.interval is not None:
        within = f" ({percent_range(reliability.interval)})"
    pairs = count_noun(reliability.n, "decided pair")
    return Chip(
        "match with people",
        chance_percent(reliability.value),
        f"How often panels with similar confidence agreed with people, over {pairs}{within}.",
    )


def _shared_error_text(outcome: Outcome) -> str:
    if outcome.rho is None:
        return "assuming no shared error"
    how = "assuming" if outcome.rho_is_assumed else "at"
    return f"{how} a shared error of {number(outcome.rho)}"


def outcome_banner(outcome: Outcome, names: CandidateNames) -> Banner:
    """Write the verdict of an outcome without a session."""
    chips = tuple(_chips(outcome, None, names))
    return Banner(*verdict_words(outcome, names), chips, outcome_details(outcome))


def shortfall(session: Session, names: SeatNames) -> Shortfall | None:
    """Write the gaps of an incomplete session and their remedy; None without gaps."""
    if session.status == "complete":
        return None
    reasons = names.sort([*map(names.sentence, session.missing)])
    link = {"session": session.id}
    if session.status == "interrupted":
        text = "Stopped or interrupted; finished calls are saved"
        return Shortfall(session.status, text, (), "Resume", Link("resume", link))
    if session.status == "running":
        return Shortfall(session.status, "Running in another process", tuple(reasons))
    seats, gaps = names.order(failed_seats(session)), "; ".join(_gaps(session))
    if not gaps and reasons:
        gaps, *reasons = reasons
        if gaps.startswith(("the ", "there ")):  # otherwise it begins with the name of a seat
            gaps = gaps[0].upper() + gaps[1:]
    return Shortfall(
        session.status,
        gaps or session.status,
        tuple(reasons),
        f"Retry {list_text([*map(names.name, seats)])}" if seats else "",
        Link("retry", link) if seats else None,
        is_fatal=session.status == "failed" and session.outcome is None,
    )


def _gaps(session: Session) -> Iterator[str]:
    """Count answers, ballots and final answers that are missing."""
    if session.unanswered:
        everyone = len(session.answers) + len(session.unanswered)
        yield f"{len(session.answers)} of {everyone} answered"
    ballots = session.reviewer_ballots
    abstained = [name for name, ballot in ballots.items() if ballot.abstained]
    # Members without an answer are not asked to vote.
    if session.answers and not session.unanswered.keys() >= {*abstained}:
        yield f"{len(ballots) - len(abstained)} of {len(ballots)} voted"


def failed_seats(session: Session) -> tuple[str, ...]:
    """List seats without an answer, and reviewers without an awaited ballot."""
    abstaining_seats = [ballot.reviewer for ballot in session.ballots if ballot.abstained]
    return tuple(dict.fromkeys((*session.unanswered, *abstaining_seats)))
