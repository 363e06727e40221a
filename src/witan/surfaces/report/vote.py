"""Reports of a voting paper and of a vote."""

from collections.abc import Iterator

from witan.core.blind_vote import Agreement
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
    answers = result.answers
    panel = (
        ()
        if result.panel is None
        else (Sentence(f"The panel, by {result.panel.rule}: {result.panel.interpretation}"),)
    )
    return Report(
        "Simulated vote" if result.simulated else "Vote",
        (result.session,),
        _agreement(result.agreement),
        (
            *panel,
            table_of(
                "Your ranking beside the panel's",
                [
                    (Column("you", "left"), [str(each.rank) for each in answers]),
                    (Column("label", "left"), [each.label for each in answers]),
                    (
                        Column("written by", "left", fit="middle", heads=True),
                        [_author(each) for each in answers],
                    ),
                    (
                        Column("panel", "left"),
                        [
                            UNKNOWN if each.panel_rank is None else str(each.panel_rank)
                            for each in answers
                        ],
                    ),
                ],
            ),
        ),
    )


def _author(answer: RevealedAnswer) -> str:
    differs = not answer.model.endswith(answer.candidate) and not answer.model.startswith("script:")
    return f"{answer.candidate} ({answer.model})" if differs else answer.candidate


def _agreement(agreement: Agreement | None) -> str:
    """Say how a person's ranking and the panel's agree."""
    if agreement is None or agreement.same_best is None:
        return "The panel has no ranking to compare yours with."
    best = "the same answer" if agreement.same_best else "different answers"
    sentence = f"You and the panel picked {best}"
    if not agreement.pairs_decided:
        return f"{sentence}; there is no pair that both of you order."
    pairs = count_noun(agreement.pairs_decided, "pair")
    return f"{sentence}; you agree on {agreement.pairs_alike} of {pairs} that both of you order."
