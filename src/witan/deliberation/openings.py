"""Openings of sessions: questions, stored answers for another jury, texts to judge."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from hashlib import blake2s
from operator import attrgetter
from secrets import randbits

from witan.core.escaping import is_blank
from witan.core.verdict import check_expected, check_pass_mark
from witan.deliberation import events as e
from witan.deliberation.events import Judging, SessionOpened
from witan.deliberation.plan import Plan
from witan.deliberation.planner import fit_pairs, plan_reviews, plan_session
from witan.deliberation.ports import (
    MOST_TEXTS,
    NO_QUESTION,
    REFERENCE,
    TEXT,
    Expense,
    Member,
    Message,
    Seat,
    StoredAnswer,
    Usage,
)
from witan.deliberation.procedure import Procedure, with_looks
from witan.deliberation.session import Session, rename_clashes
from witan.deliberation.texts import mask, masked_names
from witan.errors import InvalidParameter, NoCouncil, NothingToCount


def check_question(question: object) -> None:
    """Refuse an empty question or a non-text."""
    if not isinstance(question, str) or is_blank(question):
        raise InvalidParameter("the question", question, "some text")


def check_category(category: object) -> None:
    """Refuse an empty category or a non-text."""
    if category is not None and not (isinstance(category, str) and category.strip()):
        raise InvalidParameter("category", category, "some text, or None")


def check_attachments(conversation: object, files: object) -> None:
    """Refuse malformed conversations and files."""
    turns = isinstance(conversation, Sequence) and not isinstance(conversation, str)
    if not (turns and all(isinstance(turn, Message) for turn in conversation)):  # type: ignore[attr-defined]
        raise InvalidParameter("conversation", conversation, "a list of Message")
    texts = [*files, *files.values()] if isinstance(files, Mapping) else [None]
    if not all(isinstance(text, str) for text in texts):
        if isinstance(files, Mapping) and not isinstance(files.get(REFERENCE, ""), str):
            raise InvalidParameter("reference", files[REFERENCE], "some text")
        raise InvalidParameter("files", files, "a table from name to text")


def draw_seed(seed: int | None) -> int:
    """Return the given seed, or draw a JSON-safe one from system entropy."""
    if seed is None:
        return randbits(53)
    if type(seed) is not int or not 0 <= seed < 2**53:
        raise InvalidParameter("seed", seed, "a whole number from 0 to 2**53 - 1")
    return seed


def make_session_name(now: datetime, seed: int, nth: int, question: str) -> str:
    """Name the nth session of a council uniquely."""
    distinct = f"{seed} {now.microsecond} {nth} {question}".encode(errors="replace")
    return f"{now:%Y%m%d-%H%M%S}-{blake2s(distinct, digest_size=5).hexdigest()}"


def check_stored_session(
    session: Session,
    members: Sequence[Member],
    reviewers: Sequence[Member],
    chairmen: Sequence[Member],
) -> None:
    """Refuse seats that differ from the session's."""
    opening = session.opening
    for role, names_here, names_in_session in (
        ("members", members, opening.members),
        ("jurors" if opening.members else "members", reviewers, opening.reviewers),
        ("chairmen", chairmen, opening.chairmen),
    ):
        if [(m.name, m.source) for m in names_here] != [
            (s.name, s.source) for s in names_in_session
        ]:
            seats = ", ".join(
                f"{s.name} ({s.source})" if s.source else s.name for s in names_in_session
            )
            raise NoCouncil(
                f"the session {session.id} was started with other {role}",
                f"seat {seats or 'none'} to resume it",
            )


def check_seats(
    members: Sequence[Member], jury: Sequence[Member], chairmen: Sequence[Member]
) -> None:
    """Refuse too few members or jurors and shared names."""
    if len(members) < 2:
        count = "there is one" if members else "there is none"
        raise NoCouncil(
            f"a council or jury needs at least two members, and {count}",
            "seat another; the same model may hold several seats",
        )
    if len(jury) == 1:
        raise NoCouncil(
            "a jury needs at least two jurors, and there is one",
            "seat another, or none: then the members review each other",
        )
    seats: dict[str, Member] = {}
    n_apart = len(members) + len(jury)
    for number, seat in enumerate((*members, *jury, *chairmen)):
        # A chairman may be another seat, but not share its name with another model.
        if seat.name in seats and (number < n_apart or seats[seat.name] != seat):
            expected = "a name that no other seat has"
            raise InvalidParameter("the name of a seat", seat.name, expected)
        seats[seat.name] = seat


_SEAT = attrgetter(*(field.name for field in fields(Seat)))


def make_seat(member: Member) -> Seat:
    """Make the recorded seat of a member, without its model."""
    return Seat(*_SEAT(member))


def link_parent(opening: SessionOpened, parent: object) -> SessionOpened:
    """Link an opening to its question's parent session, if any."""
    if parent is None:
        return opening
    if not (isinstance(parent, str) and parent.strip()):
        raise InvalidParameter("parent", parent, "the name of a session, or None")
    return replace(opening, parent=parent, relation="continued")


def open_rejudgment(
    opening: e.SessionOpened, session: Session, jury: Sequence[Member], chairmen: Sequence[Member]
) -> e.SessionOpened:
    """Open a session for a jury's judgment of another's answers.

    `opening`: the opening of the question as asked of the jury itself.
    `jury`, `chairmen`: members of this council; those that share the name of a seat are renamed.
    """
    judging = session.opening.judging
    if len(session.answers) < (2 if judging is None else 1):
        answer_count = "one answer" if session.answers else "no answer"
        raise NothingToCount(f"the session {session.id} has {answer_count}; a comparison needs two")
    seats = tuple(seat for seat in session.opening.seats if seat.name in session.answers)
    if judging is not None:
        chairmen = ()
        opening = replace(opening, procedure=judging_procedure(opening.procedure, len(jury)))
    jury_and_chairmen = rename_clashes((*jury, *chairmen), seats)
    draft = replace(
        opening,
        seats=seats,
        chairmen=tuple(make_seat(jury_and_chairmen[chairman.name]) for chairman in chairmen),
        jury=tuple(make_seat(jury_and_chairmen[juror.name]) for juror in jury),
        answers=collect_answers(session),
        parent=session.id,
        relation="rejudged",
        parent_ranking=() if session.outcome is None else session.outcome.ranking,
        judging=judging,
    )
    return _plan(draft)


def collect_answers(session: Session) -> tuple[StoredAnswer, ...]:
    """Return the answers of a session with their safety flags."""
    flags_by_seat = {each.seat: each.flags for each in session.opening.answers}
    flags_by_seat |= {x.seat: x.flags for x in session.events if isinstance(x, e.GateVerdict)}
    return tuple(
        StoredAnswer(
            answer.seat, answer.text, answer.cut, answer.spent, flags_by_seat.get(answer.seat)
        )
        for answer in session.answers.values()
    )


def plan_rejudgment(
    session: Session, jury: Sequence[Member], chairmen: Sequence[Member], procedure: Procedure
) -> Plan:
    """Plan a jury's review of a session's answers."""
    opening = session.opening
    return open_rejudgment(replace(opening, procedure=procedure), session, jury, chairmen).plan


Texts = str | Sequence[str] | Mapping[str, str]
"""One text, several, or text by name."""


def name_texts(texts: Texts) -> dict[str, str]:
    """Name unnamed texts ``text``, or ``text 1``, ``text 2`` and so on.

    Raises `InvalidParameter` if there is none, one is empty, or there are too many for a sheet.
    """
    _check_kind(texts)
    if isinstance(texts, str):
        text_by_name: Mapping[str, str] = {"text": texts}
    elif isinstance(texts, Mapping):
        text_by_name = texts
    else:
        text_by_name = {f"text {number}": text for number, text in enumerate(texts, start=1)}
    if not 1 <= len(text_by_name) <= MOST_TEXTS:
        raise InvalidParameter("texts", len(text_by_name), f"1 to {MOST_TEXTS} texts")
    pairs: Iterable[tuple[object, object]] = text_by_name.items()
    for name, text in pairs:
        if not (isinstance(name, str) and name.strip()):
            raise InvalidParameter("the name of a text", name, "some text")
        if not isinstance(text, str) or is_blank(text):
            label = name if name.split(" ")[0] == "text" else f"text {name}"
            raise InvalidParameter(f"the {label}", text, "some text")
    return dict(text_by_name)


def _check_kind(texts: object) -> None:
    if not isinstance(texts, str | Sequence | Mapping) or isinstance(texts, bytes):
        raise InvalidParameter(
            "texts", texts, "a text, a list of texts, or a table of them by name"
        )


def own_question(texts: Mapping[str, str]) -> str:
    """Return the question on texts without one."""
    question = "How good is this text?" if len(texts) == 1 else "Which of these texts is best?"
    return f"{question} {NO_QUESTION}"


def judging_procedure(procedure: Procedure, n_jurors: int) -> Procedure:
    """Return the procedure for jurors only, without a final answer."""
    review_procedure = replace(procedure, synthesis=False, mode="consensus", json_schema=None)
    return with_looks(review_procedure, n_jurors, authors=False)


FREE = Expense(Usage(0, 0), cost_usd=0.0, calls=0)
"""Expense of a text that no model wrote for this session."""


def check_judgment(
    procedure: Procedure,
    texts: Mapping[str, str],
    question: str,
    judging: Judging,
    files: Mapping[str, str],
) -> None:
    """Refuse a judgment that cannot be made."""
    check_question(question)
    check_attachments((), files)
    check_pass_mark(judging.pass_mark)
    check_expected(judging.expected, texts)
    if judging.expected is not None and len(texts) == 1 and judging.pass_mark is None:
        expected = "one of several texts; a single one needs a pass mark instead"
        raise InvalidParameter("the expected text", judging.expected, expected)
    check_judging(procedure, judging.pass_mark, len(texts))
    if is_blank(files.get(REFERENCE, "none")):
        raise InvalidParameter("reference", files[REFERENCE], "some text, or none")


def check_judging(procedure: Procedure, pass_mark: float | None, n_texts: int) -> None:
    """Refuse a procedure that cannot judge so many texts."""
    level = procedure.counting.level
    if level <= 0.5:
        raise InvalidParameter("level", level, "above 0.5, so that no text passes and fails")
    if procedure.spend == "adaptive" and n_texts == 1 and pass_mark is None:
        expected = "'all' for a single text without a pass mark"
        raise InvalidParameter("spend", "adaptive", expected)
    graded = n_texts == 1 or pass_mark is not None
    if graded and procedure.pairs is not None:
        expected = "none with a pass mark, as pairs are not graded"
        if n_texts == 1:
            expected = "none for a single text, which makes no pair"
        raise InvalidParameter("pairs", procedure.pairs, expected)
    if graded and not procedure.asks_grades:
        raise InvalidParameter("rubric_scoring", False, "True: without grades no text can pass")


def open_judgment(
    opening: e.SessionOpened, texts: Mapping[str, str], judging: Judging, jury: Sequence[Member]
) -> e.SessionOpened:
    """Open a session for a jury's judgment of texts.

    `opening`: the opening of the question under the `judging_procedure` of the jury.
    `texts`: text by name; the sheets show neither names nor their order.
    `jury`: members of this council; those that share the name of a text are renamed.
    """
    seats = tuple(Seat(name, "", TEXT) for name in texts)
    renamed = rename_clashes(jury, seats)
    jurors = tuple(make_seat(renamed[juror.name]) for juror in jury)

    def plan(fitted: Procedure) -> Plan:
        return plan_judgment(jurors, fitted, texts, opening.question, opening.files)

    procedure = fit_pairs(opening.procedure, len(texts), len(jurors), plan)
    return replace(
        opening,
        seats=seats,
        chairmen=(),
        jury=jurors,
        procedure=procedure,
        plan=plan(procedure),
        answers=tuple(StoredAnswer(name, text, spent=FREE) for name, text in texts.items()),
        judging=judging,
    )


def plan_judgment(
    jury: Sequence[Member] | Sequence[Seat],
    procedure: Procedure,
    texts: Mapping[str, str],
    question: str,
    files: Mapping[str, str],
) -> Plan:
    """Plan a jury's reviews of texts that no juror wrote."""
    names = masked_names(jury)
    return plan_reviews(
        jury,
        (),
        procedure,
        question,
        answers={name: mask(text, question, names) for name, text in texts.items()},
        own_candidates=dict.fromkeys((juror.name for juror in jury), ()),
        substitutes=(),
        files=files,
    )


def _plan(draft: e.SessionOpened) -> e.SessionOpened:
    """Plan a session with stored answers, within its ceiling of pairs."""
    if draft.procedure.pairs is not None:
        procedure = fit_pairs(
            draft.procedure,
            len(draft.answers),
            len(draft.jury),
            lambda fitted: plan_session(replace(draft, procedure=fitted)),
        )
        draft = replace(draft, procedure=procedure)
    return replace(draft, plan=plan_session(draft))
