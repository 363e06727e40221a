"""The councils that can be asked as text: a line for each."""

from collections.abc import Iterable, Iterator

from witan.deliberation.ports import Seat
from witan.service.operations.profiles import Profiles
from witan.service.sessions import Profile
from witan.service.text import Page


def profiles_text(page: Page, found: Profiles) -> Iterator[str]:
    """List councils with their seats, or why they cannot be asked."""
    for profile in found.profiles:
        yield page.sentence(_line(profile), hang=2)


def _line(profile: Profile) -> str:
    name = profile.name or "(no profile named)"
    about = f": {profile.about}" if profile.about else ""
    if profile.problem is not None:
        return f"{name}{about} — it cannot be asked: {profile.problem}"
    jury = f", judged by {_models(profile.jury)}" if profile.jury else ""
    simulated = " (simulated)" if profile.simulated else ""
    return f"{name}{about} — {_models(profile.seats)}{jury}{simulated}"


def _models(seats: Iterable[Seat]) -> str:
    return ", ".join(seat.source or seat.name for seat in seats)
