"""Commands on a terminal of their own, with somebody who types."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Sequence


def run_on_terminal(
    command: Sequence[str],
    steps: Iterable[tuple[str, str | signal.Signals]],
    *,
    columns: int = 70,
    kind: str = "dumb",
) -> tuple[int, str]:
    """Run ``witan`` on a terminal; of each step the second is typed where the first is shown."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "witan", *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={key: of for key, of in os.environ.items() if key != "COLUMNS"} | {"TERM": kind},
    )
    os.close(theirs)
    shown, waiting = b"", list(steps)
    # Sent again each second: Python misses a signal between its prompt and the start of reading.
    again: list[signal.Signals] = []
    while True:
        if not select.select([ours], [], [], 1 if again else 20)[0]:
            if not again:
                break
            process.send_signal(again.pop())
            continue
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        shown += piece
        again = []
        if waiting and waiting[0][0].encode() in shown:
            typed = waiting.pop(0)[1]
            if isinstance(typed, signal.Signals):
                again = [typed] * 20
                process.send_signal(typed)
            else:
                os.write(ours, typed.encode())
    os.close(ours)
    if waiting:
        process.kill()
    return process.wait(timeout=60), shown.decode()
