"""A session as it happens: shown, streamed, and kept whatever ends it."""

import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from witan.deliberation import events as e
from witan.deliberation.ports import SystemClock
from witan.deliberation.record import event_to_json
from witan.deliberation.recorder import skip_past_events
from witan.deliberation.session import Session
from witan.errors import MissingExtra, WitanError
from witan.files.session_files import write_session
from witan.service.history_access import RecordingPlace
from witan.service.session_recording import Record
from witan.service.telemetry import Exporting, Spans, is_configured
from witan.service.text import Folding, Page, clean, readable, span
from witan.service.trust import missing_text, session_trust
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.panel import Panel
from witan.surfaces.live_board import Board
from witan.surfaces.report.outcome import outcome_report
from witan.surfaces.report.session import legend_text
from witan.surfaces.report.text import report_text
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.surfaces.cli.session import SessionOutput


class LiveSession:
    """Follows one session.

    Parameters
    ----------
    panel
        The live view, already drawn; None: there is no terminal for it.
    place
        The history that the session goes into; None: none.
    """

    def __init__(
        self, output: "SessionOutput", panel: Panel | None, place: RecordingPlace | None = None
    ) -> None:
        self.output, self.panel = output, panel
        self.record = Record(place, output.save, self._waits)
        self.heard: list[e.Event] = []
        self.board = Board()
        self.voice = _Voice(output, panel)
        self.session: Session | None = None
        self.interrupted = False
        self._failure: WitanError | OSError | None = None
        self._scope: anyio.CancelScope | None = None
        self._scripted = False
        self._tracing: _Tracing | None = None

    def run(self, hold: "SessionRunner") -> int:
        """Run the session, print its result, and return the exit status."""
        self._tracing = _Tracing.configured(quiet=self.output.quiet)
        try:
            anyio.run(self._run_session, hold)
        except KeyboardInterrupt:  # where no signal can be waited for, or the loop was closing
            self._interrupt()
        self._close_panel()
        try:
            return self._report_end()
        finally:
            if self._tracing is not None:
                self._tracing.close()

    def _report_end(self) -> int:
        """Say what came of it."""
        if self.interrupted:
            return Status.INTERRUPTED
        if self._failure is not None:
            if isinstance(self._failure, OSError):
                echo(self.record.broken_off("the output failed", self.heard), err=True)
            raise self._failure
        assert self.session is not None  # noqa: S101 - it ended neither early nor badly
        return self._finish(self.session)

    async def _run_session(self, hold: "SessionRunner") -> None:
        async with anyio.create_task_group() as group:
            self._scope = group.cancel_scope
            if sys.platform != "win32":
                group.start_soon(self._heed)
            try:
                self.session = await hold(self)
            except WitanError as error:  # raised here, it would come out wrapped in a group
                self._failure = error
            group.cancel_scope.cancel()

    async def _heed(self) -> None:
        """Wait for Ctrl-C or its like; the first ends the session in order, a second at once."""
        # Who has it ignored, as nohup does, wants to go on when the terminal is gone.
        ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        heeded = [n for n in ending if signal.getsignal(n) is not signal.SIG_IGN]
        with anyio.open_signal_receiver(*heeded) as signals:
            async for _ in signals:
                break
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)
        self._interrupt()
        self._stop()

    def keep(self, event: e.Event) -> None:
        """Take in what has just happened."""
        if self.interrupted:
            return  # what was kept has been said
        self.heard.append(event)
        self.record.take(event)
        if self._tracing is not None:
            self._tracing.listener(event)

    def flush(self) -> None:
        """Pass on all that was withheld from the record."""
        self.record.flush()

    async def commit(self) -> int | None:
        """Wait until what was taken in outlives this process, as far as it can be kept."""
        return await self.record.commit(self.heard)

    def __call__(self, event: e.Event) -> None:
        """Show an event."""
        if self.interrupted:
            return
        try:
            if self.output.events:
                echo(event_to_json(event, simulated=self._simulated(event)))
            else:
                self.voice.take(event)
        except OSError as error:
            # Nobody reads on, or the disk is full: nothing more is worth paying for.
            self._failure = error
            self._stop()
        if self.panel is not None:
            self.board = self.board.after(event)
            self.panel.show(self.board)

    def _simulated(self, event: e.Event) -> bool:
        """Check that any seat of this session plays a script."""
        if isinstance(event, e.SessionOpened):
            self._scripted = event.simulated
        return self._scripted

    def _waits(self, for_what: str) -> None:
        """Say at the end what is waited for."""
        with suppress(OSError):  # the terminal may be what is gone
            self._close_panel()
            self.voice.end_line()
            echo(clean(for_what), err=True)

    def _stop(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def _close_panel(self) -> None:
        if self.panel is not None:
            self.panel.close(keep=bool(self.heard))

    def _interrupt(self) -> None:
        """Keep what came in, and say how to go on; the calls are cancelled after that."""
        if self.interrupted:
            return
        self.interrupted = True
        words = self.record.broken_off("interrupted", self.heard)
        with suppress(OSError):  # the terminal may be what is gone
            self._close_panel()
            self.voice.end_line()
            echo(words, err=True)
        if self.output.as_json and self.heard:
            with suppress(OSError):
                _print_record(Session.of(self.heard))

    def _finish(self, session: Session) -> int:
        """Save, print, and say how far it can be trusted."""
        try:
            if self.output.save is not None:
                write_session(session, self.output.save)
        finally:
            # What was paid for is shown even where it cannot be saved.
            self._print(session)
            self._say_where(session)
        status = session_status(session, require_winner=self.output.require_winner)
        return status or (Status.NOT_KEPT if self.record.unkept else Status.ANSWERED)

    def _say_where(self, session: Session) -> None:
        """Wait for the history, and say what became of the record there."""
        problem = self.record.closed(session)
        if problem is not None:
            echo(problem, err=True)
        elif self.record.place is not None and self.heard and self._on_terminal():
            page = Page.of(sys.stderr)
            again = f"witan show {session.id}{self.record.place.option}"
            echo(page.sentence(f"to see it again: {again}", "dim"), err=True)

    def _on_terminal(self) -> bool:
        return sys.stderr.isatty() and not self.output.quiet

    def _print(self, session: Session) -> None:
        if self.output.as_json:
            _print_record(session)
        elif not self.output.events:
            self.voice.finish(session)
        self._print_trust(session)

    def _print_trust(self, session: Session) -> None:
        """Print legend and trust line on standard error, or with --quiet what is missing."""
        page = Page.of(sys.stderr)
        if self.output.quiet:
            if missing := missing_text(session):
                echo(page.sentence(missing, hang=2), err=True)
            return
        if self.output.legend and sys.stdout.isatty() and sys.stderr.isatty():
            return  # both stand below the text
        if self.voice.wanted:
            if sys.stderr.isatty():
                echo(err=True)
            if legend := legend_text(session):
                echo(page.sentence(legend, "dim", hang=2), err=True)
        echo(page.sentence(session_trust(session), hang=2), err=True)


class _Tracing:
    """Sends spans of the one session, where the environment says so."""

    def __init__(self) -> None:
        self._exporting = Exporting()
        self._spans = Spans(self._exporting.provider)
        self.listener = skip_past_events(self._spans.watch(self), SystemClock().now())

    @classmethod
    def configured(cls, *, quiet: bool) -> "_Tracing | None":
        """Open the exporter; None: it is not configured, or cannot be opened."""
        if not is_configured():
            return None
        try:
            return cls()
        except MissingExtra as error:
            if not quiet:
                echo(f"{error}; OTEL_TRACES_EXPORTER=none turns them off", err=True)
            return None

    def close(self) -> None:
        """End what is open, and send the last."""
        self._spans.over(self)
        self._exporting.close()


SessionRunner = Callable[[LiveSession], Awaitable[Session]]
"""Holds a session from beginning to end, and tells who follows it of everything that happens."""


class _Voice:
    """Says the final answer: on a terminal as it is written, elsewhere once it is whole."""

    def __init__(self, output: "SessionOutput", panel: Panel | None) -> None:
        self.mark, self.legend, self.panel = output.mark, output.legend, panel
        self.wanted = not output.as_json and not output.events
        self.streams = self.wanted and sys.stdout.isatty()
        self.said = ""
        self.at_line_start = True
        self.page = self._page()
        self.folding = Folding(self.page.width)

    def _page(self) -> Page:
        """Make the page; the mark before every line takes its part of the width."""
        page = Page.of(sys.stdout)
        return page if page.width is None else replace(page, width=page.width - span(self.mark))

    def take(self, event: e.Event) -> None:
        """Go on with the text, or say that what was said of it is void."""
        if not self.streams:
            return
        match event:
            case e.SynthesisDelta():
                self._say(event.text)
            case e.SynthesisFailedOver():
                self._break_off(f"{event.chairman} failed: {event.reason}")
            case e.CallRetried(stage="synthesis"):
                self._break_off(f"attempt {event.attempt} failed: {event.reason}")
            case e.TextWithdrawn(stage="synthesis"):
                self._break_off(f"so far {event.seat} was reasoning")
            case _:
                pass

    def finish(self, session: Session) -> None:
        """Say what of the text was not said yet; without a text, the standings."""
        text = session.text
        if text is None:
            if session.outcome is not None:
                report = outcome_report(session.outcome, simulated=session.simulated)
                self._write("\n".join(report_text(self.page, report)))
        elif self.said.strip() != text.strip():
            if self.said:
                self._break_off("the text that counts follows")
            self._write(self.folding.take(readable(text)))
        self.end_line()
        if self.legend:
            for line in (legend_text(session), session_trust(session)):
                self._write(f"\n{self.page.sentence(line, hang=2)}\n" if line else "")

    def end_line(self) -> None:
        """End the line that the text broke off in."""
        self._write(self.folding.end())
        self.folding = Folding(self.page.width)
        if not self.at_line_start:
            self.at_line_start = True
            echo()

    def _break_off(self, why: str) -> None:
        if self.said:
            self.end_line()
            self.said = ""
            echo(f"[interrupted: {clean(why)}; it starts again]", err=True)

    def _say(self, text: str) -> None:
        if not self.said and self.panel is not None:
            # The picture stays above the text, and nothing is drawn over it from here on.
            self.panel.close()
            echo(err=True)
        self.said += text
        self._write(self.folding.take(readable(text)))

    def _write(self, text: str) -> None:
        if not text:
            return
        start = self.mark if self.at_line_start else ""
        body = text.removesuffix("\n").replace("\n", f"\n{self.mark}")
        self.at_line_start = text.endswith("\n")
        echo(start + body, nl=self.at_line_start)


def session_status(session: Session, *, require_winner: bool = False) -> Status:
    """Return the exit status of a session."""
    if session.outcome is None and not session.answers_agree:
        return Status.OVER_BUDGET if session.over_budget else Status.NO_QUORUM
    if require_winner and (session.outcome is None or session.outcome.clear_leader is None):
        return Status.TIED
    approved = session.synthesis is not None and session.synthesis.approved is True
    if session.opened.procedure.mode == "verdict" and not approved:
        return Status.FAILED
    return Status.ANSWERED


def _print_record(session: Session) -> None:
    from witan.service.session_records import CouncilSession

    echo(CouncilSession(session).to_json())
