"""A session that came into the history as ballots, as lines to read."""

from collections.abc import Callable, Iterator

from witan.core.settings import Settings
from witan.service.operations.imported_sessions import ImportedSession, votes_beside
from witan.service.text import Page, counted
from witan.surfaces.report.outcome import outcome_report
from witan.surfaces.report.text import report_text
from witan.surfaces.text.session import votes_text

__all__ = ["imported_text"]

VOTES_SHOWN = 20
"""Votes of people that are shown one by one."""


def imported_text(
    page: Page, found: ImportedSession, reword: Callable[[str], str] = str
) -> Iterator[str]:
    """The lines of an imported session: where it is from, question, answers, standings.

    Parameters
    ----------
    reword
        Says a remedy in the words of whoever reads, where that is not who types commands.
    """
    about, held = found.about, found.held
    mark = "simulated · " if held.simulated else ""
    head = f"{mark}{about.session} · imported from {about.source} · {about.at:%Y-%m-%d %H:%M} UTC"
    yield page.sentence(head, "bold", hang=2)
    if held.question:
        yield page.prose(held.question)
    for candidate, text in held.answers.items():
        yield ""
        yield page.sentence(f"{mark}{candidate}", "bold")
        yield page.prose(text.strip("\n"))
    if votes := votes_beside(held.ballots):
        yield ""
        yield page.sentence("People's votes", "bold")
        shown = votes_text(page, votes[:VOTES_SHOWN], Settings().counting.rubric, "models'")
        yield from map(reword, shown)
        if (more := len(votes) - VOTES_SHOWN) > 0:
            yield page.sentence(f"… and {counted(more, 'more vote')}; witan export has them", "dim")
    yield ""
    if found.outcome is None:
        yield page.sentence(f"not counted: {found.not_counted}")
    else:
        yield from report_text(page, outcome_report(found.outcome, simulated=held.simulated))
