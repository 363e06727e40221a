"""Sentences about a review, with names instead of sheet labels.

Each sheet has labels of its own: in the record of a session they would stand for other answers.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from witan.core.ballot import Ballot
from witan.core.blinding import Sheet
from witan.deliberation import events as e

NOT_RANKED, NOT_GRADED = "left out of its ranking", "left without a grade"

NOT_ON_SHEET = "names answers that are not on its sheet; dropped"

_LISTED = "[A-Z]{1,3}(?:, [A-Z]{1,3})*"
_JUDGES_ONLY = re.compile(rf"judges only ({_LISTED}) of ({_LISTED})")
_LEFT_OUT = re.compile(rf"not (ranked|graded): ({_LISTED})")
_REPEATED = re.compile(r"(ranked|graded) more than once: ['\"].*; the first (place|grade) counts")


def judges_only(judged: int, on_sheet: int) -> str:
    """The problem of a ballot on too few answers."""
    return f"judges only {judged} of the {on_sheet} answers on its sheet"


def name_candidates(notes: str, sheet: Sheet) -> str:
    """Replace sheet labels in a reviewer's notes by candidates.

    Only a label that cannot be a word is replaced: in brackets, as the form asks for (``[B]``,
    ``[B, C]``), or after a noun for an answer ("Answer B").
    """
    candidates = dict(zip(sheet.labels, sheet.candidates, strict=True))
    label = "|".join(map(re.escape, sheet.labels))
    bracketed = rf"\[((?:{label})(?: ?[,;&/] ?(?:{label}))*)\](?!\()"
    spoken = (
        rf"(?i:\b(answer|candidate|response|option|reply|text)) (?:({label})\b|\*\*({label})\*\*)"
    )

    def name(match: re.Match[str]) -> str:
        if (labels := match[1]) is not None:
            return f"[{re.sub(label, lambda one: candidates[one[0]], labels)}]"
        return f"{match[2]} [{candidates[match[3] or match[4]]}]"

    return re.sub(rf"{bracketed}|{spoken}", name, notes)


def drop_sheet_labels(event: e.Event) -> e.Event:  # noqa: PLR0911 - one a kind
    """Replace sheet labels in the sentences of earlier versions' events."""
    match event:
        case e.BallotRepaired(problem=problem):
            return _replace_changed(event, problem=_count_labels(problem))
        case e.BallotAbstained(reason=reason):
            return _replace_changed(event, reason=_count_labels(reason))
        case e.BallotCast(notes=notes, lost=lost, ballot=ballot):
            named = tuple(_name_omissions(note, ballot) for note in notes)
            return _replace_changed(event, notes=named, lost=lost and _count_labels(lost))
        case e.OutcomeChanged(outcome=outcome):
            reasons = {name: _count_labels(why) for name, why in outcome.abstentions.items()}
            if reasons == dict(outcome.abstentions):
                return event
            return replace(event, outcome=replace(outcome, abstentions=reasons))
        case e.SessionClosed(missing=missing):
            return _replace_changed(event, missing=tuple(map(_count_labels, missing)))
        case _:
            return event


def _replace_changed(event: e.Event, **fields: object) -> e.Event:
    same = all(getattr(event, name) == value for name, value in fields.items())
    return event if same else replace(event, **fields)  # type: ignore[arg-type]


def _count_labels(sentence: str) -> str:
    return _JUDGES_ONLY.sub(
        lambda match: judges_only(*(group.count(",") + 1 for group in match.groups())), sentence
    )


def _name_omissions(note: str, ballot: Ballot) -> str:
    if left_out := _LEFT_OUT.fullmatch(note):
        words, judged = _left_out(left_out[1], ballot)
        missing = [name for name in ballot.positions or () if name not in judged]
        n_missing = left_out[2].count(",") + 1
        # Of two sheets a ballot may hold together what each of them left out.
        many = "an answer" if n_missing == 1 else f"{n_missing} answers"
        return f"{words}: {', '.join(missing) if len(missing) == n_missing else many}"
    if repeated := _REPEATED.fullmatch(note):
        return f"an answer is {repeated[1]} more than once; the first {repeated[2]} counts"
    return NOT_ON_SHEET if note.startswith("not on the sheet: ") else _count_labels(note)


def _left_out(verb: str, ballot: Ballot) -> tuple[str, Iterable[str] | Mapping[str, object]]:
    if verb == "graded":
        return NOT_GRADED, ballot.grades
    return NOT_RANKED, {name for group in ballot.groups for name in group}
