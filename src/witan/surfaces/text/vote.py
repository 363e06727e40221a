"""A person's vote as it is printed: the paper before it, and what is revealed after."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from witan.service.text import UNKNOWN, Page, counted, listed
from witan.surfaces.text.tables import Column, table

if TYPE_CHECKING:
    from witan.core.ballot import Groups
    from witan.core.blind_vote import Accord
    from witan.history.votes import Paper, RevealedAnswer, VoteResult

__all__ = [
    "accord_text",
    "paper_object",
    "paper_text",
    "ranking_text",
    "revealed_object",
    "revealed_text",
]


def paper_text(page: Page, paper: "Paper") -> Iterator[str]:
    """The question, and the answers under their labels."""
    mark = _mark(paper)
    yield page.sentence(f"{mark}{paper.session}", "bold")
    yield page.prose(paper.question or "(the question is not stored)")
    if paper.files:
        yield page.sentence(f"with {listed(paper.files, most=20)}", "dim", hang=2)
    for label, text in paper.texts.items():
        yield ""
        yield page.sentence(f"{mark}{label}", "bold")
        yield page.prose(text.strip("\n"))
    if paper.absent:
        yield ""
        yield page.sentence(f"{_absent(paper)} not stored", "dim")


def _absent(paper: "Paper") -> str:
    n = paper.absent
    return "the text of 1 more answer is" if n == 1 else f"the texts of {n:,} more answers are"


def _mark(paper: "Paper") -> str:
    return "simulated · " if paper.simulated else ""


def paper_object(paper: "Paper") -> dict[str, Any]:
    """The same for a program; nothing in it tells who wrote what."""
    return {
        "session": paper.session,
        "paper": paper.code,
        "simulated": paper.simulated,
        "reviewer": paper.sheet.reviewer,
        "question": paper.question,
        "files": list(paper.files),
        "answers": dict(paper.texts),
        "absent": paper.absent,
        "voted": paper.earlier is not None,
    }


def ranking_text(paper: "Paper", groups: "Groups") -> str:
    """A ranking by its labels: ``B > A = C``."""
    return " > ".join(" = ".join(map(paper.sheet.label, group)) for group in groups)


def revealed_text(page: Page, paper: "Paper", revealed: "VoteResult") -> Iterator[str]:
    """Who wrote what, how the panel ranked it, and how the two rankings go together."""
    yield page.sentence(f"{_mark(paper)}{paper.session}", "bold")
    columns = [
        Column("you"),
        Column("label", "left"),
        Column("written by", "left", elastic=True),
        Column("panel"),
    ]
    rows = [
        [
            str(one.place),
            one.label,
            _written_by(one),
            UNKNOWN if one.rank is None else str(one.rank),
        ]
        for one in revealed.lines
    ]
    yield from table(page, columns, rows)
    yield ""
    if revealed.outcome is not None:
        rule, said = revealed.outcome.rule, revealed.outcome.interpretation
        yield page.sentence(f"The panel, by {rule}: {said}", hang=2)
    yield page.sentence(accord_text(revealed.accord), hang=2)


def _written_by(one: "RevealedAnswer") -> str:
    told_apart = not one.model.endswith(one.candidate) and not one.model.startswith("script:")
    return f"{one.candidate} ({one.model})" if told_apart else one.candidate


def accord_text(found: "Accord | None") -> str:
    """How a person's ranking and the panel's go together, in one sentence."""
    if found is None or found.same_best is None:
        return "The panel has no ranking to compare yours with."
    best = "the same answer is" if found.same_best else "different answers are"
    sentence = f"For you and the panel {best} best"
    if not found.decided:
        return f"{sentence}; there is no pair that both of you place apart."
    pairs = counted(found.decided, "pair")
    return f"{sentence}; you agree on {found.alike} of {pairs} that both of you place apart."


def revealed_object(paper: "Paper", revealed: "VoteResult") -> dict[str, Any]:
    """The same for a program."""
    outcome, found = revealed.outcome, revealed.accord
    return {
        "session": paper.session,
        "simulated": paper.simulated,
        "reviewer": paper.sheet.reviewer,
        "replaced": paper.earlier is not None,
        "answers": [
            {
                "label": one.label,
                "position": one.position,
                "candidate": one.candidate,
                "model": one.model,
                "rank": one.place,
                "panel_rank": one.rank,
            }
            for one in revealed.lines
        ],
        "panel": None
        if outcome is None
        else {"rule": outcome.rule, "interpretation": outcome.interpretation},
        "agreement": None
        if found is None
        else {
            "pairs_alike": found.alike,
            "pairs_decided": found.decided,
            "pairs": found.pairs,
            "same_best": found.same_best,
        },
    }
