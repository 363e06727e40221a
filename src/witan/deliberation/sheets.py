"""Recorded sheets of a continued session: their check and completion."""

from collections.abc import Iterable, Iterator, Sequence, Set

from witan.core.blinding import Sheet, mirror
from witan.deliberation import events as e
from witan.deliberation.calls import drop_fruitless_resumes
from witan.deliberation.damage import DAMAGED
from witan.deliberation.session import Authorship, Session
from witan.errors import SessionFileError


def check_sheets(session: Session) -> None:
    """Refuse a session with a sheet that no council would draw.

    A sheet that another version may have drawn is accepted.

    Raises
    ------
    SessionFileError
        If there is one; the error names its event.
    """
    check = _SheetCheck(session)
    for event in drop_fruitless_resumes(session.events):
        if isinstance(event, e.BallotCast | e.BallotAbstained):
            check.ended_seats.add((event.round, event.seat))
        elif isinstance(event, e.SheetDrawn):
            for problem in check.find_problems(event):
                raise SessionFileError(
                    f"the session {session.id}", f"event {event.seq} is {problem}; {DAMAGED}"
                )


class _SheetCheck:
    """Check of a session's sheets, one by one."""

    def __init__(self, session: Session) -> None:
        self.n_rounds = session.opening.procedure.review_rounds
        self.answers = session.answers
        self.candidates_by_author = Authorship.of(session.opening).candidates_by_author
        self.shows_own = session.opening.procedure.self_review and not session.opening.jury
        self.drawn_seats: set[tuple[int, str]] = set()
        self.ended_seats: set[tuple[int, str]] = set()

    def find_problems(self, event: e.SheetDrawn) -> Iterator[str]:
        """Yield what is wrong with a sheet, if anything."""
        sheet, number, reviewer = event.sheet, event.round, event.sheet.reviewer
        if reviewer not in self.candidates_by_author:
            yield f"a sheet of the unknown reviewer {reviewer}"
        if not 1 <= number <= self.n_rounds:
            yield f"a sheet of round {number} of {self.n_rounds}"
        before = {each for each in self.drawn_seats if each[0] == number - 1}
        if number > 1 and not (before and before <= self.ended_seats):
            yield f"a sheet of round {number} before the end of round {number - 1}"
        self.drawn_seats.add((number, reviewer))
        if not sheet.is_well_formed:
            yield f"a malformed sheet of {reviewer}"
        if unknown_names := [name for name in sheet.candidates if name not in self.answers]:
            yield f"a sheet with an answer of {unknown_names[0]}, which has none"
        own_candidates = {*self.candidates_by_author[reviewer]}
        if not (self.shows_own or own_candidates.isdisjoint(sheet.candidates)):
            yield f"a sheet that shows {reviewer} its own answer"


def complete_sheets(
    recorded: Iterable[Sheet],
    drawn: Sequence[Sheet],
    seed: Sequence[int],
    *,
    visible: Set[str],
    size: int,
    n_orders: int,
) -> tuple[Sheet, ...]:
    """Complete a reviewer's recorded sheets by newly drawn ones.

    Another version may have drawn them, so a second order mirrors its recorded first, and from the
    first that does not suit this version they are drawn anew.

    Parameters
    ----------
    seed
        Seed of second orders, each of which adds the number of its pair.
    visible, size
        The candidates that the reviewer may see, and how many of them are on a sheet.
    n_orders
        2 if every other sheet is the one before it in opposite order.
    """
    sheets: tuple[Sheet, ...] = ()
    for sheet in recorded:
        order = sheet.candidates
        if len(order) != size or not {*order} <= visible:
            break
        if len(sheets) % n_orders and order != sheets[-1].candidates[::-1]:
            break
        sheets = (*sheets, sheet)
    sheets = sheets or tuple(drawn)
    if len(sheets) % n_orders:
        pair = len(sheets) // 2
        # Nothing is added for the first, so that recorded sessions stay valid.
        sheets = (*sheets, mirror(sheets[-1], (*seed, pair) if pair else seed))
    orders = {sheet.candidates for sheet in sheets}
    n_sheets = max(len(drawn), n_orders)
    return (*sheets, *(each for each in drawn if each.candidates not in orders))[:n_sheets]
