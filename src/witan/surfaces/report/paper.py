"""The report of a voting paper: the question, and the answers under their labels."""

from collections.abc import Iterator

from witan.service.operations.voting import VotingPaper
from witan.service.text import listed
from witan.surfaces.report.document import Block, Heading, Note, Quote, Report, Sentence


def paper_report(paper: VotingPaper) -> Report:
    """Write the report of a voting paper."""
    mark = "Simulated voting paper" if paper.simulated else "Voting paper"
    return Report(mark, (paper.session,), "", tuple(_paper(paper)))


def _paper(paper: VotingPaper) -> Iterator[Block]:
    yield Quote(paper.question or "(the question is not stored)")
    if paper.files:
        yield Sentence(f"with {listed(paper.files, most=20)}", quiet=True)
    if paper.absent:
        n, texts = paper.absent, "the texts of {:,} more answers are"
        absent = "the text of 1 more answer is" if n == 1 else texts.format(n)
        yield Note(f"{absent} not stored", "reason")
    for label, text in paper.answers.items():
        yield Heading(label, f"answer-{label}")
        yield Quote(text.strip("\n"))
