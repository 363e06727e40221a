"""The report of a session that came in as ballots: question, answers, votes, ranking."""

from witan.core.settings import Settings
from witan.service.operations.imported_sessions import ImportedSession, votes_beside
from witan.service.trust import trust_line
from witan.surfaces.report.document import Block, Facts, Heading, Note, Quote, Report
from witan.surfaces.report.outcome import BY_NAME, abstention_notes
from witan.surfaces.report.session import ranking_section, report_title, vote_blocks


def imported_report(imported: ImportedSession) -> Report:
    """Write the report of a session that came in as ballots."""
    about, record = imported.about, imported.held
    mark = "simulated · " if record.simulated else ""
    blocks: list[Block] = [Quote(record.question)] if record.question else []
    for at, (candidate, text) in enumerate(record.answers.items()):
        blocks += [Heading(f"{mark}{candidate}", f"answer-{at}"), Quote(text.strip("\n"))]
    rubric = Settings().counting.rubric
    blocks += vote_blocks(votes_beside(record.ballots), rubric, "models'")
    if imported.outcome is None:
        blocks.append(Note(f"not counted: {imported.not_counted}", "reason"))
    else:
        blocks += ranking_section(imported.outcome, mark)
        blocks += abstention_notes(imported.outcome, BY_NAME)
        blocks.append(Facts(tuple(trust_line(imported.outcome).split(" · "))))
    return Report(
        report_title(simulated=record.simulated),
        (about.session, f"imported from {about.source}", f"{about.at:%Y-%m-%d %H:%M} UTC"),
        "",
        tuple(blocks),
    )
