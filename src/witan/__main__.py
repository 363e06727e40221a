"""``python -m witan`` is the command ``witan``."""

import gc
import sys

__all__ = ["main"]

INTERRUPTED = 130
"""The exit status after Ctrl-C, known before anything else is imported."""


def main() -> int:
    """Run the command; Ctrl-C during its import ends it quietly."""
    try:
        # Start-up creates thousands of lasting objects, and reading a file many records; neither
        # makes many cycles.
        gc.set_threshold(100_000)
        from witan.surfaces.cli.app import main as command

        status = command()
        gc.freeze()  # or the interpreter would search all that for cycles once more as it ends
    except KeyboardInterrupt:
        status = INTERRUPTED
    if status == INTERRUPTED:
        # Where the interrupt came inside source text that was being executed, as the methods of a
        # data class are, `python -m` would still end by the signal; executing any forgets that.
        eval("None")  # noqa: S307 - our own text
    return status


if __name__ == "__main__":
    sys.exit(main())
