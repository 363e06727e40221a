"""Reports of a voting paper and of a vote."""

from collections.abc import Iterator, Sequence

from witan.core.blind_vote import Agreement, Difference
from witan.history.ballots import RevealedAnswer, VoteResult
from witan.service.operations.voting import VotingPaper
from witan.service.text import UNKNOWN, count_noun, list_text
from witan.surfaces.report.document import (
    Block,
    Column,
    Heading,
    Note,
    Quote,
    Report,
    Sentence,
    Sides,
    table_of,
)


def paper_report(paper: VotingPaper) -> Report:
    """Write the report of a voting paper."""
    mark = "Simulated voting paper" if paper.simulated else "Voting paper"
    return Report(mark, (paper.session,), "", tuple(_paper(paper)))


def _paper(paper: VotingPaper) -> Iterator[Block]:
    yield Quote(paper.question or "(the question is not stored)")
    if paper.files:
        yield Sentence(f"with {list_text(paper.files, most=20)}", quiet=True)
    if paper.absent:
        n, texts = paper.absent, "the texts of {:,} more answers are"
        absent = "the text of 1 more answer is" if n == 1 else texts.format(n)
        yield Note(f"{absent} not stored", "reason")
    for label, text in paper.answers.items():
        yield Heading(label, f"answer-{label}")
        yield Quote(text.strip("\n"))


def vote_report(result: VoteResult) -> Report:
    """Write the report of a vote."""
    return Report(
        "Simulated vote" if result.simulated else "Vote",
        (result.session,),
        STILL_OPEN if result.is_open else agreement_text(result.agreement),
        tuple(_comparison(result)),
    )


STILL_OPEN = "The session is not over: what the panel makes of the answers follows at its end."


def _comparison(result: VoteResult) -> Iterator[Block]:
    """Yield both rankings, what the agreement rests on, and the differences."""
    answers, panel, found = result.answers, result.panel, result.agreement
    yield Heading("Your vote" if result.is_open else "You and the panel", "panel")
    if found is not None and found.pairs_decided:
        yield Sentence(_clear_text(found))
    if panel is not None:
        ballots = count_noun(panel.n_ballots, "ballot")
        yield Sentence(f"The panel ({ballots}, by {panel.rule}): {panel.interpretation}")
    ranks = [UNKNOWN if each.panel_rank is None else str(each.panel_rank) for each in answers]
    panel_column = (Column("panel", "left"), ranks)
    yield table_of(
        "Your ranking" if result.is_open else "Your ranking beside the panel's",
        [
            (Column("you", "left"), [str(each.rank) for each in answers]),
            *([] if result.is_open else [panel_column]),
            (Column("label", "left"), [each.label for each in answers]),
            (
                Column("written by", "left", fit="middle", heads=True),
                [_author(each) for each in answers],
            ),
        ],
    )
    if found is not None and found.differences:
        yield Heading("Where you differ", "differences")
        clear = [each for each in found.differences if each.is_clear]
        close = [each for each in found.differences if not each.is_clear]
        titles = ("Clear to the panel", clear), ("Too close to call for the panel", close)
        yield Sides(tuple((title, tuple(_differences(each))) for title, each in titles if each))


MOST_DIFFERENCES = 8
"""Pairs of each kind that are listed."""


def _differences(found: Sequence[Difference]) -> Iterator[str]:
    for each in found[:MOST_DIFFERENCES]:
        yield f"You place {each.above} above {each.below}, the panel {each.below} above"
    if (n_more := len(found) - MOST_DIFFERENCES) > 0:
        yield f"And {count_noun(n_more, 'more pair')}"


def _clear_text(found: Agreement) -> str:
    """Say how many of the pairs were clear to the panel."""
    n_close = found.pairs_decided - found.clear_decided
    close = f"{found.pairs_alike - found.clear_alike} of {n_close:,} that are too close to call"
    if not found.clear_decided:
        return "The panel finds all of these pairs too close to call."
    clear = f"You agree on {found.clear_alike} of {count_noun(found.clear_decided, 'pair')}"
    verb = "is" if found.clear_decided == 1 else "are"
    clear = f"{clear} that {verb} clear to the panel"
    return f"{clear}, and on {close}." if n_close else f"{clear}."


def _author(answer: RevealedAnswer) -> str:
    differs = not answer.model.endswith(answer.candidate) and not answer.model.startswith("script:")
    return f"{answer.candidate} ({answer.model})" if differs else answer.candidate


def agreement_text(agreement: Agreement | None) -> str:
    """Say how a person's ranking and the panel's agree."""
    if agreement is None or agreement.same_best is None:
        return "The panel has no ranking to compare yours with."
    best = "the same answer" if agreement.same_best else "different answers"
    sentence = f"You and the panel picked {best}"
    if not agreement.pairs_decided:
        return f"{sentence}; there is no pair that both of you order."
    pairs = count_noun(agreement.pairs_decided, "pair")
    return f"{sentence}; you agree on {agreement.pairs_alike} of {pairs} that both of you order."
