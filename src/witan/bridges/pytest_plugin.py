"""The pytest fixture ``assert_judged``: a jury must pass a text."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from uuid import uuid4

import pytest

import witan
from witan import councils
from witan.bridges.replies import accepts

if TYPE_CHECKING:
    from witan import Council, Session
    from witan.councils import JudgeOptions

FOLDER = "witan"
"""Folder of the sessions in pytest's cache."""


@dataclass(frozen=True, slots=True)
class JudgedAssertion:
    """Assert that a jury passes a text.

    Parameters
    ----------
    folder
        Folder of stored sessions, a file each; None stores nothing.
    """

    folder: Path | None

    def __call__(
        self,
        text: str | Sequence[str] | Mapping[str, str],
        *,
        pass_mark: float | None = None,
        jury: Sequence[Any] | None = None,
        allow_too_close: bool = False,
        **options: Unpack["JudgeOptions"],
    ) -> "Session":
        """Return the judging session, new or cached; fail on its verdict.

        It warns if the text passes and a ballot is missing.

        Parameters
        ----------
        text, jury, pass_mark
            As in `witan.judge`; a single text needs a pass_mark.
        allow_too_close
            Accept a verdict that is too close to call.
        **options
            As in `witan.judge`: question, reference, expected, files, rubric, …
        """
        __tracebackhide__ = True
        try:
            session = self._judge(text, jury, {**options, "pass_mark": pass_mark})
        except witan.errors.WitanError as error:
            raise error.with_traceback(None)  # noqa: B904 - the failure ends at the user's line
        decision = None if session.verdict is None else session.verdict.decision
        if not accepts(decision, allow_too_close=allow_too_close):
            raise AssertionError(witan.reports.judgment_text(session))
        if session.missing:
            warnings.warn(f"{session.status} judgment: {'; '.join(session.missing)}", stacklevel=2)
        return session

    def _judge(
        self,
        text: str | Sequence[str] | Mapping[str, str],
        jury: Sequence[Any] | None,
        options: dict[str, Any],
    ) -> "Session":
        """Read the judging session of the same inputs, or judge."""
        file = self._find_file(text, jury, options)
        if options["pass_mark"] is None and (isinstance(text, str) or len(text) == 1):
            expected = "a grade from 1 to 10; a single text needs a pass mark"
            raise witan.errors.InvalidParameter("pass_mark", None, expected)
        session = _read_session(file)
        if session is None:
            session = witan.judge(text, jury, **options)
            if file is not None and session.status == "complete":
                _write_session(file, session)
        return session

    def _find_file(
        self, text: object, jury: Sequence[Any] | None, options: dict[str, Any]
    ) -> Path | None:
        if self.folder is None:
            return None
        of_judge = ("question", "reference", "pass_mark", "expected", "files", "seed", "category")
        seating = {name: each for name, each in options.items() if name not in of_judge}
        for apart in ("listener", "name"):  # neither changes the judgment
            seating.pop(apart, None)
        judging_options = sorted((name, options[name]) for name in of_judge if name in options)
        try:
            description = _describe(councils.seat_jury(jury, **seating))
        except witan.errors.UnknownOption as error:
            known = sorted({*of_judge, *error.known_names})
            raise witan.errors.UnknownOption(error.name, known) from None
        everything = repr((witan.__version__, text, judging_options, *description))
        return self.folder / f"{blake2b(everything.encode(), digest_size=16).hexdigest()}.json"


def _describe(council: "Council") -> list[object]:
    """Describe jury and procedure; scripts by their text."""
    jury_description: list[object] = [councils.procedure_to_json(council.procedure)]
    for member in council.reviewers:
        script = Path(member.source.removeprefix("script:"))
        script_text = script.read_text(encoding="utf-8") if member.provider == "script" else ""
        jury_description.append(
            (member.name, member.source, member.url, member.options, script_text)
        )
    return jury_description


def _read_session(file: Path | None) -> "Session | None":
    if file is None or not file.exists():
        return None
    try:
        return witan.session_from_json(file.read_text(encoding="utf-8"))
    except witan.errors.SessionFileError:  # written by another version, or damaged: judge again
        return None


def _write_session(file: Path, session: "Session") -> None:
    """Write a session atomically: parallel processes may run the same test."""
    draft = file.with_suffix(f".{uuid4().hex}")
    draft.write_text(witan.session_to_json(session), encoding="utf-8")
    draft.replace(file)


@pytest.fixture(scope="session")
def assert_judged(pytestconfig: pytest.Config) -> JudgedAssertion:
    """Fail unless a jury passes a text.

    A judgment of the same text and jury is read from pytest's cache.
    """
    cache = getattr(pytestconfig, "cache", None)  # none under -p no:cacheprovider
    return JudgedAssertion(None if cache is None else cache.mkdir(FOLDER))
