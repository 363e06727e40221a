"""The report of the councils that can be asked."""

from collections.abc import Iterable

from witan.deliberation.ports import Seat
from witan.service.operations.profiles import Profiles
from witan.service.sessions import CouncilProfile
from witan.service.text import UNKNOWN
from witan.surfaces.report.document import Column, Note, Report, table_of


def profiles_report(result: Profiles) -> Report:
    """Write the report of councils: who sits in each, and why one cannot be asked."""
    profiles = result.profiles
    if not profiles:
        return Report("Councils", (), "No council is configured.", ())
    columns = [
        (Column("profile", "left", heads=True), [*map(_name, profiles)]),
        (
            Column("seats", "left", fit="fold"),
            [_models(each.seats) or UNKNOWN for each in profiles],
        ),
    ]
    if any(each.jury for each in profiles):
        juries = [_models(each.jury) or "its members" for each in profiles]
        columns.append((Column("judged by", "left", fit="fold"), juries))
    if any(each.about for each in profiles):
        columns.append((Column("about", "left", fit="fold"), [each.about for each in profiles]))
    problems = (
        Note(f"{_name(each)} cannot be asked: {each.problem}", "concern")
        for each in profiles
        if each.problem is not None
    )
    return Report("Councils", (), "", (table_of("Councils", columns), *problems))


def _name(profile: CouncilProfile) -> str:
    simulated = " (simulated)" if profile.simulated else ""
    return f"{profile.name or '(no profile named)'}{simulated}"


def _models(seats: Iterable[Seat]) -> str:
    return ", ".join(seat.source or seat.name for seat in seats)
