"""Show a session live on a terminal, with few imports at first."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import ConsoleOptions, Group, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.table import Table

from witan.service.text import Page, count_noun, decimals, interval_text, number
from witan.surfaces import terminal
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table
from witan.surfaces.terminal import style_line

if TYPE_CHECKING:
    from rich.console import Console  # noqa: TID251 - a type alone
    from rich.text import Text  # noqa: TID251 - a type alone

    from witan.core.outcome import Outcome, Standing
    from witan.surfaces.live_board import Board, LiveLine


FRAMES_PER_SECOND = 8

PLOT_COLUMNS = 21
"""Width of the plot of intervals."""

ECHO_COLUMNS = 3
"""Free columns at the right, so that an echoed ^C does not shift the picture."""

NARROWEST = 60 - ECHO_COLUMNS
"""Narrowest picture with amounts."""

GAP = 2
"""Columns between two cells."""

TIED = "tied for best"

NEWS_SHOWN = 4

GLYPHS = {"idle": ("·", "dim"), "busy": ("…", "cyan"), "done": ("✓", "green"), "bad": ("✗", "red")}
"""Glyph and style of a mark; the word next to it has the same meaning."""


class Panel:
    """Live view of seats, ranking and problems, redrawn on changes.

    It draws on a console, by default on standard error; the clock is for elapsed seconds.
    """

    def __init__(
        self,
        console: "Console | None" = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._board: Board | None = None
        self._is_settled = False
        self._console = console or terminal.console()
        # Standard output has the answer, which must not be overdrawn.
        self._live = Live(
            console=self._console,
            get_renderable=lambda: self,
            refresh_per_second=FRAMES_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> "Panel":
        self._live.start(refresh=True)
        return self

    def __exit__(self, *failure: object) -> None:
        self.close(keep=self._board is not None)

    def show(self, board: "Board") -> None:
        """Draw this from now on."""
        self._board = board

    def say(self, text: str) -> None:
        """Print a line above the picture."""
        self._console.print(style_line(text))

    def close(self, *, keep: bool = True) -> None:
        """Stop drawing; keep the last picture if it is useful."""
        if self._live.is_started:
            self._is_settled = True
            self._live.transient = not keep
            self._live.stop()

    def __rich_console__(self, console: "Console", options: ConsoleOptions) -> RenderResult:
        if self._board is None:
            yield style_line(f"witan · preparing the council · {self._since(self._began)}", "bold")
            return
        board = self._board.settle() if self._is_settled else self._board
        # The last picture may scroll; earlier ones have to fit the screen.
        room = None if self._is_settled else console.size.height - 1
        width = options.max_width - ECHO_COLUMNS
        picture = Group(*self._picture(board, options.update(width=width), room))
        yield Constrain(picture, width)

    def _picture(
        self, board: "Board", options: ConsoleOptions, room: int | None
    ) -> "Iterator[Text | Table]":
        visible, n_standings = _fit_seats(board, room)
        yield style_line(self._title(board), "bold", one_line=True)
        yield self._seats(visible, board.writer, options)
        if n_hidden := len(board.seats) - len(visible):
            more = f"… and {count_noun(n_hidden, 'more seat')}, none of them pending"
            yield style_line(more, "dim", one_line=True)
        if board.outcome is not None and n_standings:
            yield from _ranking(board.outcome, board.n_counted, options, n_standings)
        for news in board.news[-NEWS_SHOWN:]:
            yield style_line(news, "yellow", one_line=True)

    def _title(self, board: "Board") -> str:
        parts = ["witan", board.stage_text, self._since(board.began or self._began)]
        if board.unsaved_remark and not self._is_settled:
            parts.append(board.unsaved_remark)
        return " · ".join(["simulated", *parts] if board.scripted_seats else parts)

    def _seats(
        self, seats: "Sequence[LiveLine]", writer: "LiveLine | None", options: ConsoleOptions
    ) -> Table:
        grid = Table.grid(padding=(0, GAP, 0, 0), expand=True)
        grid.add_column(no_wrap=True)
        longest_name = min(24, options.max_width // 4)
        grid.add_column(no_wrap=True, overflow="ellipsis", max_width=longest_name)
        grid.add_column(no_wrap=True)
        if _is_wide(options):
            grid.add_column(no_wrap=True, justify="right")
        grid.add_column(no_wrap=True, justify="right")
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for line in seats:
            grid.add_row(*self._row(line, line.name, options))
        if writer is not None:
            grid.add_row(*self._row(writer, f"chairman {writer.name}", options))
        return grid

    def _row(self, line: "LiveLine", name: str, options: ConsoleOptions) -> "Iterator[Text]":
        mark, style = GLYPHS[line.mark]
        yield style_line(mark, style)
        yield style_line(name)
        yield style_line(line.status, style)
        if _is_wide(options):
            yield style_line(line.amount, "dim")
        elapsed = line.elapsed_seconds(self._clock())
        yield style_line(line.seconds if elapsed is None else f"{elapsed:.1f} s", "dim")
        notes = [*(["simulated"] if line.simulated else []), *([line.note] if line.note else [])]
        yield style_line(" · ".join(notes), "dim")

    def _since(self, start: datetime) -> str:
        return f"{max((self._clock() - start).total_seconds(), 0.0):.1f} s"


def _is_wide(options: ConsoleOptions) -> bool:
    return options.max_width >= NARROWEST


def _fit_seats(board: "Board", room: int | None) -> "tuple[Sequence[LiveLine], int]":
    """Fit seats and standings into the available lines, keeping working seats."""
    outcome = board.outcome
    n_standings = 0 if outcome is None or not outcome.leaders else len(outcome.standings)
    n_standings = n_standings if n_standings > 1 else 0  # a text judged alone has no rank
    if room is None:
        return board.seats, n_standings
    ranking = 1 + n_standings if n_standings else 0
    n_other_lines = 1 + (board.writer is not None) + len(board.news[-NEWS_SHOWN:])
    excess = n_other_lines + len(board.seats) + ranking - room
    if excess <= 0:
        return board.seats, n_standings
    at_rest = [line.name for line in board.seats if not line.is_running]
    hidden = set(at_rest[: excess + 1])  # one more, to make room for the line with their number
    visible = [line for line in board.seats if line.name not in hidden]
    n_lines_left = room - n_other_lines - len(visible) - 1
    # The ranking needs two more lines: its title, and the number of hidden candidates.
    return visible, n_standings if n_lines_left >= ranking else max(n_lines_left - 2, 0)


def _ranking(
    outcome: "Outcome", n_ballots: int, options: ConsoleOptions, n_shown: int
) -> "Iterator[Text | Table]":
    """Draw the standings: rank, candidate, score; with room, the interval."""
    after = f"ranking by {outcome.rule} after {count_noun(n_ballots, 'ballot')}"
    yield style_line(after, "bold", one_line=True)
    lines = outcome.standings[:n_shown]
    digits = decimals([line.score for line in outcome.standings])
    tied = outcome.tied_for_best if len(outcome.tied_for_best) > 1 else ()
    plot = _plot(outcome, "o-|" if options.ascii_only else "●─│")
    intervals = ["" if x.interval is None else interval_text(x.interval, digits) for x in lines]
    columns = [
        (Column("", "right"), [str(line.rank) for line in lines]),
        (Column("", "left", fit="middle"), [line.candidate for line in lines]),
        (Column(""), [number(line.score, digits) for line in lines]),
        (Column("", "left", keep=30), intervals),
        (Column("", "left", keep=20), [plot(line) for line in lines]),
        (Column("", "left", keep=10), [TIED if x.candidate in tied else "" for x in lines]),
    ]
    visible = [(column, cells) for column, cells in columns if any(cells)]
    rows = [*zip(*(cells for _, cells in visible), strict=True)]
    for line in table(Page(options.max_width), [column for column, _ in visible], rows):
        yield style_line(line, one_line=True)
    if more := len(outcome.standings) - n_shown:
        yield style_line(f"… and {count_noun(more, 'more candidate')}", "dim")


def _plot(outcome: "Outcome", glyphs: str) -> "Callable[[Standing], str]":
    lines = [line.interval for line in outcome.standings if line.interval is not None]
    low = min((interval.low for interval in lines), default=0.0)
    width = max((interval.high for interval in lines), default=0.0) - low

    def draw(line: "Standing") -> str:
        if line.interval is None or line.score is None or not width > 0:
            return ""
        left, dot, right = (
            round((value - low) / width * (PLOT_COLUMNS - 1))
            for value in (line.interval.low, line.score, line.interval.high)
        )
        cells = [" "] * PLOT_COLUMNS
        cells[left : right + 1] = glyphs[1] * (right + 1 - left)
        cells[left] = cells[right] = glyphs[2]
        cells[min(max(dot, 0), PLOT_COLUMNS - 1)] = glyphs[0]
        return "".join(cells)

    return draw
