"""Redact server-side details (paths, commands, URLs, prompts) from everything sent to clients.

The operator of a server sees everything in its log and history. Clients see no path, command line,
address of a model, system prompt or location of a history.
"""

import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeVar

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.deliberation import events as e
from witan.deliberation.ports import Seat
from witan.deliberation.session import Session
from witan.errors import (
    ConfigError,
    HistoryConflict,
    HistoryError,
    MissingKey,
    NoCouncil,
    WitanError,
)
from witan.history import SessionImport, SessionSummary
from witan.service.catalogue import redacts

REDACTED = "…"

_OPEN = r"(?:~|[A-Za-z]:)?[/\\]"
"""Beginning of an absolute or relative path."""

_QUOTED = re.compile(rf"(['\"`])(?:{_OPEN})(?!api/|v1/).*?\1")

_PATH = re.compile(
    rf"(?<![\w./\\:~])(?!/(?:api|v1)/){_OPEN}[^\s/\\'\"`:;,()\[\]<>]+[^\s'\"`:;,()<>]*"
)

_ADDRESS = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"`<>()]+[^\s'\"`<>().,;:]")

_LONG_ENOUGH = 4
"""Shortest part of a command to hide; shorter ones are too common in sentences."""

_SENTENCES: Mapping[str, tuple[str, ...]] = {
    e.AnswerDone.kind: ("notes",),
    e.AnswerFailed.kind: ("reason",),
    e.BallotAbstained.kind: ("reason",),
    e.BallotCast.kind: ("notes", "lost"),
    e.CallRetried.kind: ("reason",),
    e.SessionClosed.kind: ("missing",),
    e.SynthesisDone.kind: ("notes",),
    e.SynthesisFailedOver.kind: ("reason",),
}
"""Fields of an event with sentences about a seat, ours or a provider's."""


def redact_words(text: str) -> str:
    """Redact paths and addresses in a sentence."""
    if "/" not in text and "\\" not in text:
        return text
    text = _QUOTED.sub(rf"\g<1>{REDACTED}\g<1>", _ADDRESS.sub(REDACTED, text))
    return _PATH.sub(REDACTED, text)


def public_names(names: Iterable[str]) -> dict[str, str]:
    """Map seats to public names, if they differ.

    ``cmd:/opt/member --key k`` is shown as ``cmd:member``, ``http://host/v1#llama`` as ``llama``.
    Seats with equal public names get a mark of four characters.
    """
    sources = dict.fromkeys(names)
    bare = {
        source: bare_source for source in sources if (bare_source := _bare_model(source)) != source
    }
    name_counts = Counter([*bare.values(), *(source for source in sources if source not in bare)])
    return {
        source: f"{bare_source}~{sha256(source.encode(errors='replace')).hexdigest()[:4]}"
        if name_counts[bare_source] > 1
        else bare_source
        for source, bare_source in bare.items()
    }


def _bare_model(source: str) -> str:
    kind, _, rest = source.partition(":")
    if kind in ("http", "https"):
        model = source.partition("#")[2]
        return _last_segment(model) if model else REDACTED
    if kind == "cmd":
        return f"cmd:{_last_segment(_program(rest))}"
    if kind == "script":
        return f"script:{_last_segment(rest).removesuffix('.toml')}"
    # Some servers name a model by the file it was loaded from.
    if re.match(_OPEN, source):
        return _last_segment(source)
    if re.match(_OPEN, rest) and not rest.startswith("//"):
        return f"{kind}:{_last_segment(rest)}"
    return redact_words(source)


def _program(command: str) -> str:
    command = command.strip()
    if command[:1] in ("'", '"'):
        return command[1:].partition(command[0])[0]
    return command.partition(" ")[0]


def _last_segment(path: str) -> str:
    return re.split(r"[/\\]", path.strip().rstrip("/\\"))[-1]


class WordRedactor:
    """Removes the private words of seats from sentences.

    `models`: models as written to their public names.
    `names`: names of seats: clients see them, so they are never hidden.
    """

    __slots__ = ("_forms", "_like_paths", "_search")

    def __init__(
        self, models: Mapping[str, str], words: Iterable[str] = (), names: Iterable[str] = ()
    ) -> None:
        secret = (form for source in models for form in _parts(source))
        forms = {form: REDACTED for form in (*words, *secret) if len(form) >= _LONG_ENOUGH}
        forms |= models
        pattern_by_name = {name: rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in names if name}
        self._forms = {form: shown for form, shown in forms.items() if form not in pattern_by_name}
        self._search = _longest_match_pattern(
            {form: re.escape(form) for form in forms} | pattern_by_name
        )
        self._like_paths = _longest_match_pattern(
            {name: whole for name, whole in pattern_by_name.items() if redact_words(name) != name}
        )

    def __call__(self, text: str) -> str:
        """Redact a sentence of ours, or of a provider."""
        text = self._search.sub(lambda match: self._forms.get(match[0], match[0]), text)
        text_before, at = "", 0
        for name in self._like_paths.finditer(text):
            text_before += redact_words(text[at : name.start()]) + name[0]
            at = name.end()
        return text_before + redact_words(text[at:])


def _longest_match_pattern(patterns: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern that prefers the longer of overlapping texts."""
    ordered = sorted(patterns, key=len, reverse=True)
    return re.compile("|".join(patterns[text] for text in ordered) or r"(?!)")


class SessionRedactor:
    """Shows the events of one session as clients see them.

    `opening`: the first event, with the seats whose details are hidden.
    """

    __slots__ = ("_models", "words")

    def __init__(self, opening: e.SessionOpened) -> None:
        seats = (*opening.seats, *opening.jury, *opening.chairmen)
        self._models = public_names(seat.source for seat in seats)
        redacted_forms = (form for seat in seats for form in _hide(seat))
        self.words = WordRedactor(self._models, redacted_forms, (seat.name for seat in seats))

    def __call__(self, event: e.Event) -> e.Event:
        """Redact an event; unchanged if nothing is private."""
        if isinstance(event, e.SessionOpened):
            return self._redact_opening(event)
        if isinstance(event, e.OutcomeChanged):
            outcome = self.outcome(event.outcome)
            return event if outcome is event.outcome else replace(event, outcome=outcome)
        values = {
            name: self._redact_field(getattr(event, name))
            for name in _SENTENCES.get(event.kind, ())
        }
        is_changed = any(getattr(event, name) != value for name, value in values.items())
        return replace(event, **values) if is_changed else event

    def _redact_opening(self, event: e.SessionOpened) -> e.SessionOpened:
        redacted_opening = replace(
            event,
            seats=_seats(event.seats, self._models),
            jury=_seats(event.jury, self._models),
            chairmen=_seats(event.chairmen, self._models),
            notes=self._redact_field(event.notes),
        )
        return event if redacted_opening == event else redacted_opening

    def outcome(self, outcome: Outcome) -> Outcome:
        """Redact an outcome; unchanged if nothing is private."""
        reasons = {seat: self.words(reason) for seat, reason in outcome.abstentions.items()}
        warnings = self._redact_field(outcome.warnings)
        if reasons == outcome.abstentions and warnings == outcome.warnings:
            return outcome
        return replace(outcome, abstentions=reasons, warnings=warnings)

    def _redact_field(self, value: Any) -> Any:
        """Redact the sentences of a field: one, several, or none."""
        if isinstance(value, tuple):
            return tuple(map(self.words, value))
        return None if value is None else self.words(value)


def redact_seats(*groups: Iterable[Seat]) -> tuple[tuple[Seat, ...], ...]:
    """Redact seats by name and model, distinct across all groups."""
    seats = [tuple(group) for group in groups]
    models = public_names(seat.source for group in seats for seat in group)
    return tuple(_seats(group, models) for group in seats)


def _seats(seats: Iterable[Seat], models: Mapping[str, str]) -> tuple[Seat, ...]:
    return tuple(
        replace(
            seat,
            source=models.get(seat.source, seat.source),
            # A server without a name is named by its address.
            provider=seat.provider.partition("://")[0],
            options=seat.options
            if seat.options.system is None
            else replace(seat.options, system=REDACTED),
            url=None,
            key_variable=None,
        )
        for seat in seats
    )


def _hide(seat: Seat) -> Iterator[str]:
    """List a seat's words to hide in every sentence."""
    yield from _parts(seat.source)
    if seat.url is not None:
        yield seat.url
    if "://" in seat.provider:
        yield seat.provider.partition("://")[2]


def _parts(source: str) -> Iterator[str]:
    """List a seat's words to hide even on their own."""
    kind, _, rest = source.partition(":")
    if kind in ("cmd", "script"):
        yield rest
        yield from (word.strip("'\"") for word in rest.split() if len(word) > _LONG_ENOUGH)
    elif "://" in source:
        yield source.partition("#")[0]


@redacts(Session)
def redact_session(session: Session) -> Session:
    """Redact a session; unchanged if nothing is private."""
    redactor = SessionRedactor(session.opening)
    opening, *events = map(redactor, session.events)
    if all(shown is event for shown, event in zip(events, session.events[1:], strict=True)):
        if opening is session.opening:
            return session
        assert isinstance(opening, e.SessionOpened)  # noqa: S101 - every session's first event
        # Seats keep their names, and the other events refer to seats by name only.
        return replace(session, opening=opening, events=(opening, *events))
    return Session.of((opening, *events))


def redact_summaries(summaries: Iterable[SessionSummary]) -> list[SessionSummary]:
    """Lines of a list of sessions as clients see them."""
    lines = [*summaries]
    models = public_names(line.leader for line in lines if line.leader is not None)
    seats = public_names(line.leader_seat for line in lines if line.leader_seat is not None)
    return [
        replace(
            line,
            source=_last_segment(line.source),
            leader=_redact_model(models, line.leader),
            leader_seat=_redact_model(seats, line.leader_seat),
        )
        for line in lines
    ]


@redacts(SessionSummary)
def redact_summary(line: SessionSummary) -> SessionSummary:
    """Redact a single summary; its leader needs no distinct name."""
    [redacted_summary] = redact_summaries([line])
    return redacted_summary


def _redact_model(models: Mapping[str, str], model: str | None) -> str | None:
    return None if model is None else models.get(model, model)


def public_error(error: BaseException) -> str:
    """Describe an error for clients, without paths or addresses of the server."""
    match error:
        case HistoryConflict():
            return redact_words(f"{error.problem}; {error.remedy}")
        case HistoryError():
            problem, remedy = redact_words(error.problem), redact_words(str(error.remedy))
            return str(HistoryError("the history", problem, remedy))
        case ConfigError():
            return redact_words(f"{error.key} {error.problem}".strip())
        case _:
            return redact_words(str(error))


def redact_refusal(error: WitanError) -> str:
    """Redact why a council cannot be seated."""
    if isinstance(error, MissingKey | NoCouncil):
        return redact_words(str(error))
    key = redact_words(error.key) if isinstance(error, ConfigError) else ""
    subject = f"{key} of " if key else ""
    return f"{subject}its configuration is not accepted; the log of the server says why"


V = TypeVar("V")


def redact_import(session_import: SessionImport) -> tuple[SessionImport, Mapping[str, str]]:
    """Redact an import; also map its names to public ones.

    Returns the same object if there is nothing to hide.
    """
    names = public_names(_names(session_import))
    words = WordRedactor(names)
    ballots = tuple(_ballot(ballot, names, words) for ballot in session_import.ballots)
    if not names:
        same = all(map(operator.is_, ballots, session_import.ballots))
        return (session_import if same else replace(session_import, ballots=ballots)), names
    redacted_import = replace(
        session_import,
        ballots=ballots,
        answers=_rename_keys(session_import.answers, names),
        lengths=_rename_keys(session_import.lengths, names),
        models={
            name: names.get(who, who)
            for name, who in _rename_keys(session_import.models, names).items()
        },
        kept=_rename_keys(session_import.kept, names),
        repaired=_rename_each(session_import.repaired, names),
        took=tuple(
            replace(
                answer_usage,
                seat=names.get(answer_usage.seat, answer_usage.seat),
                model=names.get(answer_usage.model, answer_usage.model),
            )
            for answer_usage in session_import.took
        ),
    )
    return redacted_import, names


def _names(session_import: SessionImport) -> Iterator[str]:
    for ballot in session_import.ballots:
        yield ballot.reviewer
        yield from ballot.candidate_names()
        yield from ballot.positions or ()
        for candidate, author in (ballot.authors or {}).items():
            yield from (candidate, author)
    for group in (
        session_import.answers,
        session_import.lengths,
        session_import.models,
        session_import.kept,
        session_import.repaired,
    ):
        yield from group
    yield from session_import.models.values()
    for took in session_import.took:
        yield from (took.seat, took.model)


def _ballot(ballot: Ballot, names: Mapping[str, str], words: WordRedactor) -> Ballot:
    reason, notes = (text and words(text) for text in (ballot.reason, ballot.notes))
    if not names and (reason, notes) == (ballot.reason, ballot.notes):
        return ballot
    authors, positions = ballot.authors, ballot.positions
    return replace(
        ballot,
        reviewer=names.get(ballot.reviewer, ballot.reviewer),
        groups=tuple(_rename_each(group, names) for group in ballot.groups),
        grades=_rename_keys(ballot.grades, names),
        reason=reason,
        candidates=None if ballot.candidates is None else _rename_each(ballot.candidates, names),
        authors=authors and {c: names.get(a, a) for c, a in _rename_keys(authors, names).items()},
        positions=positions and _rename_keys(positions, names),
        notes=notes,
    )


def _rename_keys(mapping: Mapping[str, V], names: Mapping[str, str]) -> dict[str, V]:
    return {names.get(name, name): value for name, value in mapping.items()}


def _rename_each(sequence: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in sequence)
