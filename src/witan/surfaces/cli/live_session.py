"""A running session: show it, stream it, and always save it."""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import anyio

from witan.deliberation import events as e
from witan.deliberation.record import event_to_json
from witan.deliberation.session import Session
from witan.errors import MissingExtra, WitanError
from witan.files.session_files import write_session
from witan.models.seats import describe_risk
from witan.service.history_access import RecordingPlace
from witan.service.session_recording import SessionRecorder
from witan.service.sessions.councils import LocalCouncils
from witan.service.sessions.manager import Service
from witan.service.sessions.running import RunningSession
from witan.service.sessions.spending import LOCAL
from witan.service.stored_sessions import ClientService
from witan.service.telemetry import SpanExport, Spans, is_configured
from witan.service.text import Folding, clean, readable, span
from witan.service.trust import missing_text, session_trust
from witan.surfaces.cli.interruption import wait_for_signal
from witan.surfaces.cli.options import Status
from witan.surfaces.cli.panel import Panel
from witan.surfaces.live_board import Board, FinalText
from witan.surfaces.report.outcome import outcome_report
from witan.surfaces.report.session import judgment_report, legend_text
from witan.surfaces.report.text import report_text
from witan.surfaces.terminal import echo, is_terminal, measure_page, say

if TYPE_CHECKING:
    from witan.models.scripted import Demonstration
    from witan.surfaces.cli.session import Say, SessionOutput, SessionStart

NO_PRICES: Mapping[str, Any] = MappingProxyType({})


class LiveSession:
    """Follows one session of the local service.

    `panel`: the live view, already drawn; None without a terminal.
    `say`: function that prints a line for the user before the session is opened.
    """

    def __init__(
        self,
        output: "SessionOutput",
        panel: Panel | None,
        place: RecordingPlace | None,
        say: "Say",
    ) -> None:
        self.output, self.panel, self.place, self.say = output, panel, place, say
        history = None if place is None else place.history
        self.recorder = SessionRecorder(history, file=output.save, say=self._wait)
        self.board = Board()
        self.voice = _Voice(output, panel)
        self.session: Session | None = None
        self.is_interrupted = False
        self._failure: Exception | None = None
        self._scope: anyio.CancelScope | None = None
        self._plays_script = False

    def councils(
        self,
        config: Path | None,
        prices: Mapping[str, Any] = NO_PRICES,
        demo: "Demonstration | None" = None,
    ) -> LocalCouncils:
        """Make the factory that seats the council of this session."""
        history = None if self.place is None else self.place.history
        return LocalCouncils(
            config, prices, recorder=self.recorder, history=history, say=self.say, demo=demo
        )

    def run(self, start: "SessionStart | Session") -> int:
        """Run a session, or show a stored one; return the exit status."""
        if isinstance(start, Session):
            self._close_panel()
            return self._finish(start)
        exporting = self._open_exporter()
        try:
            anyio.run(self._follow, start, exporting)
        except KeyboardInterrupt:  # on Windows, or while the loop was closing
            self._interrupt()
        self._close_panel()
        try:
            return self._report(start)
        finally:
            if exporting is not None:
                exporting.close()

    def _open_exporter(self) -> SpanExport | None:
        if not is_configured():
            return None
        try:
            return SpanExport()
        except MissingExtra as error:
            if not self.output.quiet:
                echo(f"{error}; OTEL_TRACES_EXPORTER=none turns them off", err=True)
            return None

    def _report(self, start: "SessionStart") -> int:
        if self.is_interrupted:
            return Status.INTERRUPTED
        if self._failure is not None:
            if isinstance(self._failure, OSError):
                echo(self._say_remains("the output failed"), err=True)
            raise self._failure
        assert self.session is not None  # noqa: S101 - it ended neither early nor badly
        status = self._finish(self.session)
        if (open_session := self.recorder.left_open) is not None:
            self._leave_open(open_session, start)
        return status

    async def _follow(self, start: "SessionStart", export: SpanExport | None) -> None:
        observers = [] if export is None else [Spans(export.provider)]
        async with anyio.create_task_group() as group:
            self._scope = group.cancel_scope
            group.start_soon(self._wait_for_signal)
            try:
                async with Service.open(
                    start.councils,
                    observers=[self, *observers],
                    local=True,
                    sessions=start.sessions,
                ) as service:
                    subject = ClientService(service, LOCAL)
                    running_session = await start.operation.handler(subject, start.request)
                    await running_session.wait_for_end()
                    self._failure = self._failure or running_session.failure
                    self.session = Session.of(self.recorder.events)
            except WitanError as error:  # raised here, it would be wrapped in an exception group
                self._failure = self._failure or error
            group.cancel_scope.cancel()

    async def _wait_for_signal(self) -> None:
        """Wait for Ctrl-C; the first cancels in order, the second at once."""
        await wait_for_signal()
        self._interrupt()
        self._stop()

    def watch(self, _: RunningSession) -> e.Listener:
        """Show every event of the session."""
        return self._show

    def end_session(self, running_session: RunningSession) -> None:
        """Do nothing: `run` handles the end."""

    def _show(self, event: e.Event) -> None:
        if self.is_interrupted:
            return
        try:
            if self.output.events:
                echo(event_to_json(event, is_simulated=self._has_script(event)))
            else:
                self.voice.take(event)
        except OSError as error:
            # The reader is gone or the disk is full: stop the calls, which cost money.
            self._failure = error
            self._stop()
        if self.panel is not None:
            self.board = self.board.apply_event(event)
            self.panel.show(self.board)

    def _has_script(self, event: e.Event) -> bool:
        """Check that any seat of this session plays a script."""
        if isinstance(event, e.SessionOpened):
            self._plays_script = event.is_simulated
        return self._plays_script

    def _wait(self, sentence: str) -> None:
        """Report why the end is delayed."""
        with suppress(OSError):  # the terminal may be gone
            self._close_panel()
            self.voice.end_line()
            say(sentence)

    def _stop(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def _close_panel(self) -> None:
        if self.panel is not None:
            self.panel.close(keep=bool(self.recorder.events))

    def _interrupt(self) -> None:
        """Save the session, print the resume command, then cancel calls."""
        if self.is_interrupted:
            return
        self.is_interrupted = True
        remains = self._say_remains("interrupted")
        with suppress(OSError):  # the terminal may be gone
            self._close_panel()
            self.voice.end_line()
            echo(remains, err=True)
        if self.output.as_json and self.recorder.events:
            with suppress(OSError):
                _print_record(Session.of(self.recorder.events))

    def _say_remains(self, reason: str) -> str:
        """Save the session so far and print the resume command."""
        place = self.recorder.interrupt()
        if place is None:
            return f"{reason} before the session was opened"
        history_problem = (
            "" if place.problem is None else f"it was not recorded ({place.problem}); "
        )
        if place.failure is not None:
            if not place.in_history:
                return f"{reason}; {history_problem}nothing was saved: {place.failure}"
            history_problem = f"{place.failure}; "
        resume_name = place.session.id if place.file is None else shlex.quote(str(place.file))
        own = place.in_history and self.place is not None and self.place.is_own
        trust = (
            ""
            if own or not any(map(describe_risk, place.session.opening.callable_seats))
            else " --trust"
        )
        resume_name = f"witan resume {resume_name}{self._history_option}{trust}"
        return (
            f"{reason}; {history_problem}{place.session.progress} saved; resume with: {resume_name}"
        )

    @property
    def _history_option(self) -> str:
        return " --no-history" if self.place is None else self.place.option

    def _finish(self, session: Session) -> int:
        try:
            if self.output.save is not None:
                write_session(session, self.output.save)
        finally:
            # Show a paid session even if it cannot be saved.
            if self.output.as_json:
                _print_record(session)
            elif not self.output.events:
                self.voice.finish(session)
            self._print_trust(session)
            self._report_record(session)
        status = session_status(session, require_winner=self.output.require_winner)
        return status or (Status.NOT_KEPT if self.recorder.problem else Status.ANSWERED)

    def _report_record(self, session: Session) -> None:
        if self.recorder.problem is not None:
            echo(self._unkept_text(self.recorder.problem), err=True)
        elif self.output.quiet or not is_terminal(err=True):
            return
        elif self.place is not None and self.recorder.events:
            page = measure_page(err=True)
            again = f"witan show {session.id}{self.place.option}"
            echo(page.sentence(f"to show it again: {again}", "dim"), err=True)

    def _unkept_text(self, problem: str) -> str:
        unkept = f"the session was not recorded: {problem}"
        rescued = self.recorder.rescue_result
        if not isinstance(rescued, Path):
            return f"{unkept}; nor could its record be written: {clean(str(rescued))}"
        name = shlex.quote(str(rescued))
        if self.recorder.is_conflict:  # an import would be refused for the same reason
            return f"{unkept}; its record is {rescued}; show it with: witan show {name}"
        again = f"witan import {name}{self._history_option}"
        return f"{unkept}; its record is {rescued}; import it with: {again}"

    def _leave_open(self, session: Session, start: "SessionStart") -> None:
        """Leave a session without new results open, so it stays resumable."""
        if start.file is not None and self.output.save == start.file:
            write_session(session, start.file)
        location = session.id if start.file is None else start.file
        before = start.sessions[0].cost
        news = "new, only cost" if replace(session.cost, calls=before.calls) != before else "new"
        left_open = f"{location} is still interrupted, and can be resumed"
        echo(f"resuming produced nothing {news}: {left_open}", err=True)

    def _print_trust(self, session: Session) -> None:
        """Print legend and trust line, or with --quiet only gaps."""
        page = measure_page(err=True)
        if self.output.quiet:
            voice = self.voice
            needs_mark = session.is_simulated and voice.wanted and not (voice.mark or voice.legend)
            if parts := [*filter(None, ["simulated" if needs_mark else "", missing_text(session)])]:
                echo(page.sentence(" · ".join(parts), hang=2), err=True)
            return
        if self.output.legend and is_terminal() and is_terminal(err=True):
            return  # both are already printed below the text
        if self.voice.wanted:
            if is_terminal(err=True):
                echo(err=True)
            if legend := legend_text(session):
                echo(page.sentence(legend, "dim", hang=2), err=True)
        echo(page.sentence(session_trust(session), hang=2), err=True)


class _Voice:
    """Prints the final answer, streamed on a terminal, otherwise at the end."""

    def __init__(self, output: "SessionOutput", panel: Panel | None) -> None:
        self.mark, self.legend, self.panel = output.mark, output.legend, panel
        self.wanted = not output.as_json and not output.events
        self.streams = self.wanted and is_terminal()
        self.final = FinalText()
        self.at_line_start = True
        self.page = measure_page()
        if self.page.width is not None:  # leave room for the mark before every line
            self.page = replace(self.page, width=self.page.width - span(self.mark))
        self.folding = Folding(self.page.width)

    def take(self, event: e.Event) -> None:
        """Print the next text, or report that earlier text is void."""
        if not self.streams:
            return
        piece, void = self.final.take(event)
        self._break_off(void)
        if piece:
            self._say(piece)

    def finish(self, session: Session) -> None:
        """Print the remaining text; without a text, the standings."""
        text = session.text
        if text is None:
            if session.verdict is not None:
                self._write("\n".join(report_text(self.page, judgment_report(session))))
            elif session.outcome is not None:
                report = outcome_report(session.outcome, is_simulated=session.is_simulated)
                self._write("\n".join(report_text(self.page, report)))
        else:
            rest, void = self.final.end(text)
            self._break_off(void)
            self._write(self.folding.take(readable(rest)))
        self.end_line()
        if self.legend:
            for line in (legend_text(session), session_trust(session)):
                self._write(f"\n{self.page.sentence(line, hang=2)}\n" if line else "")

    def end_line(self) -> None:
        """End the unfinished line of the text."""
        self._write(self.folding.end())
        self.folding = Folding(self.page.width)
        if not self.at_line_start:
            self.at_line_start = True
            echo()

    def _break_off(self, sentence: str) -> None:
        if sentence:
            self.end_line()
            echo(sentence, err=True)

    def _say(self, text: str) -> None:
        if self.panel is not None:
            # The last picture stays above the text, and is not redrawn.
            self.panel.close()
            echo(err=True)
            self.panel = None
        self._write(self.folding.take(readable(text)))

    def _write(self, text: str) -> None:
        if not text:
            return
        start = self.mark if self.at_line_start else ""
        body = text.removesuffix("\n").replace("\n", f"\n{self.mark}")
        self.at_line_start = text.endswith("\n")
        echo(start + body, nl=self.at_line_start)


DECIDED: Mapping[str | None, Status] = MappingProxyType(
    {
        None: Status.ANSWERED,
        "passed": Status.ANSWERED,
        "failed": Status.FAILED,
        "too close to call": Status.TIED,
    }
)
"""Exit status by the decision on texts; None: no decision was requested."""


def session_status(session: Session, *, require_winner: bool = False) -> Status:
    """Return the exit status of a session."""
    if session.outcome is None and not session.answers_agree:
        return Status.OVER_BUDGET if session.over_budget else Status.NO_QUORUM
    if (verdict := session.verdict) is not None:
        return DECIDED[verdict.decision]
    if require_winner and (session.outcome is None or session.outcome.clear_leader is None):
        return Status.TIED
    approved = session.synthesis is not None and session.synthesis.approved is True
    if session.opening.procedure.mode == "verdict" and not approved:
        return Status.FAILED
    return Status.ANSWERED


def _print_record(session: Session) -> None:
    from witan.service.session_records import CouncilSession

    echo(CouncilSession(session).to_json())
