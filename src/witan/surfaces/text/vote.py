"""A person's vote as it is printed: the paper before it, and what is revealed after."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from witan.service.text import UNKNOWN, Page, counted, listed
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table

if TYPE_CHECKING:
    from witan.core.ballot import Groups
    from witan.core.blind_vote import Agreement
    from witan.history.votes import Paper, RevealedAnswer, VoteResult
    from witan.service.operations.voting import VotingPaper


def paper_text(page: Page, paper: "VotingPaper") -> Iterator[str]:
    """Yield the question, and the answers under their labels."""
    mark = _mark(paper)
    yield page.sentence(f"{mark}{paper.session}", "bold")
    yield page.prose(paper.question or "(the question is not stored)")
    if paper.files:
        yield page.sentence(f"with {listed(paper.files, most=20)}", "dim", hang=2)
    for label, text in paper.answers.items():
        yield ""
        yield page.sentence(f"{mark}{label}", "bold")
        yield page.prose(text.strip("\n"))
    if paper.absent:
        yield ""
        yield page.sentence(f"{_absent(paper)} not stored", "dim")


def _absent(paper: "VotingPaper") -> str:
    n = paper.absent
    return "the text of 1 more answer is" if n == 1 else f"the texts of {n:,} more answers are"


def _mark(result: "VotingPaper | VoteResult") -> str:
    return "simulated · " if result.simulated else ""


def ranking_text(paper: "Paper", groups: "Groups") -> str:
    """Return a ranking by its labels: ``B > A = C``."""
    return " > ".join(" = ".join(map(paper.sheet.label, group)) for group in groups)


def vote_text(page: Page, revealed: "VoteResult") -> Iterator[str]:
    """Reveal authors and the panel's ranks; compare both rankings."""
    yield page.sentence(f"{_mark(revealed)}{revealed.session}", "bold")
    columns = [
        Column("you"),
        Column("label", "left"),
        Column("written by", "left", fit="middle"),
        Column("panel"),
    ]
    rows = [
        [
            str(one.rank),
            one.label,
            _written_by(one),
            UNKNOWN if one.panel_rank is None else str(one.panel_rank),
        ]
        for one in revealed.answers
    ]
    yield from table(page, columns, rows)
    yield ""
    if (panel := revealed.panel) is not None:
        yield page.sentence(f"The panel, by {panel.rule}: {panel.interpretation}", hang=2)
    yield page.sentence(agreement_text(revealed.agreement), hang=2)


def _written_by(one: "RevealedAnswer") -> str:
    told_apart = not one.model.endswith(one.candidate) and not one.model.startswith("script:")
    return f"{one.candidate} ({one.model})" if told_apart else one.candidate


def agreement_text(found: "Agreement | None") -> str:
    """Word the agreement of a person with the panel."""
    if found is None or found.same_best is None:
        return "The panel has no ranking to compare yours with."
    best = "the same answer is" if found.same_best else "different answers are"
    sentence = f"For you and the panel {best} best"
    if not found.pairs_decided:
        return f"{sentence}; there is no pair that both of you place apart."
    pairs = counted(found.pairs_decided, "pair")
    return f"{sentence}; you agree on {found.pairs_alike} of {pairs} that both of you place apart."
