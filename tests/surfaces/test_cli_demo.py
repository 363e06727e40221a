"""``witan demo``, black box: a marked session of scripts through the real pipeline."""
# ruff: noqa: S603 - every process started here is our own command

import json
import os
import struct
import subprocess
import sys
import time

import pytest

from scripts import write_council, write_script

WITAN = [sys.executable, "-m", "witan"]


class TestPiped:
    """Without a terminal."""

    def test_every_line_is_marked_as_simulated(self, witan):
        """Of the text and of the trust line."""
        said = witan("demo", "--fast")

        assert said.status == 0
        assert len(said.lines) > 3
        assert all(line.startswith("simulated | ") for line in said.lines)
        legend, trust = said.err.splitlines()
        assert all(fact in legend for fact in ("[A] elder", "[D] aster"))
        assert trust.startswith("simulated · 5 of 5 reviewers · ")

    def test_the_session_is_complete(self, witan):
        """A ballot is repaired, and nothing is missing."""
        said = witan("demo", "--fast", "--json")

        events = said.json["events"]
        assert [e["seat"] for e in events if e["event"] == "ballot_repaired"] == ["cedar"]
        assert said.json["status"] == "complete"
        assert said.json["missing"] == []
        assert sum(e["event"] == "ballot_cast" for e in events) == 5

    def test_the_degraded_demonstration_lacks_one_ballot(self, witan):
        """And nothing else."""
        said = witan("demo", "--degraded", "--fast", "--json")

        events = said.json["events"]
        assert sorted(e["seat"] for e in events if e["event"] == "ballot_repaired") == [
            "cedar",
            "dogwood",
        ]
        assert [e["seat"] for e in events if e["event"] == "ballot_abstained"] == ["dogwood"]
        assert said.json["status"] == "degraded"
        assert all(seat["simulated"] for seat in events[0]["seats"])

    def test_every_citation_has_an_answer(self, witan, tmp_path):
        """Every label in the final answer is in the legend."""
        path = tmp_path / "demo.json"
        witan("demo", "--fast", "--save", path)

        [done] = [
            event
            for event in json.loads(path.read_text(encoding="utf-8"))["events"]
            if event["event"] == "synthesis_done"
        ]
        assert "[?]" not in done["text"]
        assert sorted(done["labels"].values()) == ["aster", "birch", "cedar", "dogwood", "elder"]
        assert all(f"[{label}]" in done["text"] for label in done["labels"])

    def test_the_record_can_be_shown_and_recounted(self, witan, tmp_path):
        """Like any other."""
        path = tmp_path / "demo.json"
        witan("demo", "--fast", "--save", path)

        shown = witan("show", path)
        assert shown.lines[0].startswith("simulated session · ")
        assert shown.out.lower().count("simulated") == 1
        assert witan("recount", path, "--rule", "schulze").status == 0

    def test_every_pair_too_close_to_call_is_marked(self, witan, tmp_path):
        """However probable its order is, so that the marks explain the tiers."""
        path = tmp_path / "demo.json"
        witan("demo", "--fast", "--save", path)

        said = witan("recount", path).out
        pair_map = said[said.index("contested: ") :]

        assert pair_map.startswith("contested: 5 of 10 pairs are too close to call")
        assert pair_map[: pair_map.index("Chance in percent")].count("≈") == 5
        assert "≈ >99" in pair_map

    def test_the_demonstration_is_deterministic(self, witan):
        """Two runs end with the same text."""
        assert witan("demo", "--fast").out == witan("demo", "--fast").out


class Terminal:
    """The command on a pseudo-terminal: its output with times."""

    def __init__(self, *arguments: str, columns: int = 100, rows: int = 40) -> None:
        import fcntl
        import pty
        import termios

        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        start = time.perf_counter()
        process = subprocess.Popen(
            [*WITAN, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**kept, "TERM": "xterm-256color", "NO_COLOR": "1"},
        )
        os.close(theirs)
        self.first_seconds = None
        drawn = b""
        while piece := _read(ours):
            if self.first_seconds is None and b"witan" in drawn + piece:
                self.first_seconds = time.perf_counter() - start
            drawn += piece
        os.close(ours)
        self.status = process.wait(timeout=60)
        self.seconds = time.perf_counter() - start
        self.drawn = drawn.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other end is closed
        return b""


@pytest.fixture(scope="module")
def demo_run() -> Terminal:
    """One demonstration, with its pauses."""
    return Terminal("demo")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
class TestTerminal:
    """The live view on a terminal."""

    def test_it_draws_before_it_imports(self):
        """The first frame appears within a third of a fast run's time."""
        shares = []
        while not shares or (min(shares) >= 1 / 3 and len(shares) < 6):  # the machine is shared
            quick = Terminal("demo", "--fast")
            shares.append(quick.first_seconds / quick.seconds)

        assert min(shares) < 1 / 3

    @pytest.mark.slow
    @pytest.mark.alone
    def test_the_first_frame_appears_at_once(self, demo_run):
        """Within a quarter of a second of the start."""
        seconds = [demo_run.first_seconds]
        while min(seconds) >= 0.25 and len(seconds) < 6:  # the machine is shared
            seconds.append(Terminal("demo", "--fast").first_seconds)

        assert min(seconds) < 0.25

    @pytest.mark.slow
    @pytest.mark.alone
    def test_it_takes_a_few_seconds(self, demo_run):
        """Long enough to watch, short enough to watch to the end."""
        assert demo_run.status == 0
        assert 3 < demo_run.seconds < 15

    def test_work_of_the_seats_is_shown(self, demo_run):
        """Answers, reviews, a repair and the ranking are drawn while they happen."""
        for words in (
            "preparing the council",
            "answering",
            "reviewing",
            "asked again",
            "ranking by",
        ):
            assert words in demo_run.drawn

    def test_the_text_stands_below_the_last_frame(self, demo_run):
        """It is never overdrawn; the trust line is last."""
        text = demo_run.drawn[demo_run.drawn.index("simulated | ") :]

        assert "\x1b[2K" not in text
        assert "\x1b[1A" not in text
        assert " · 5 of 5 reviewers · " in " ".join(text.split())

    def test_the_last_frame_is_final(self, demo_run):
        """It shows nobody writing, and all reviews counted."""
        last = demo_run.drawn[: demo_run.drawn.index("simulated | ")].rpartition("\x1b[2K")[2]

        assert "reviews: 5 of 5" in last
        assert "hazel" not in last

    def test_every_line_of_the_text_is_whole_and_marked(self):
        """Wrapped at words, each line carries the mark."""
        narrow = Terminal("demo", "--fast", "--quiet", columns=50)
        lines = narrow.drawn.splitlines()
        text = [line for line in lines if line.startswith("simulated | ")]

        assert max(map(len, lines)) <= 50
        assert lines[: len(text)] == text
        assert len(text) > 12
        assert "simulated | No" in narrow.drawn

    def test_the_cursor_is_restored(self, demo_run):
        assert demo_run.drawn.rindex("\x1b[?25h") > demo_run.drawn.rindex("\x1b[?25l")

    @pytest.mark.slow
    def test_quiet_draws_nothing(self):
        """``--quiet`` prints the text and what is missing."""
        quiet = Terminal("demo", "--degraded", "--fast", "--quiet")
        lines = quiet.drawn.splitlines()
        text = [line for line in lines if line.startswith("simulated | ")]

        assert lines[: len(text)] == text
        assert lines[len(text)].startswith("degraded: dogwood cast no ballot: ")

    def test_labels_are_resolved_below_the_text(self, demo_run):
        """Beside the trust line."""
        text = demo_run.drawn[demo_run.drawn.index("simulated | ") :]

        assert "] elder" in text
        assert text.index("] elder") > text.rindex("simulated | ")

    @pytest.mark.slow
    def test_a_retried_text_is_printed_whole(self, tmp_path):
        """The partial text stays, marked as void, above the whole one."""
        breaks = {"text": "Half a", "error": "is gone", "status": 401}
        seats = write_council(tmp_path, chair={"synthesis": [breaks]})
        spare = write_script(tmp_path / "spare.toml", synthesis=[{"text": "All of it."}])
        seen = Terminal("ask", "Q?", *seats, "--chairman", f"script:{spare}")

        text = seen.drawn[seen.drawn.index("Half a") :]
        assert text.startswith("Half a\n[interrupted: chair failed")
        assert "\nAll of it.\n" in text
        assert "chair did not write" in " ".join(text.split())
