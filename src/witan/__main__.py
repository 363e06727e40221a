"""``python -m witan`` is the command ``witan``."""

import gc
import sys

__all__ = ["main"]

INTERRUPTED = 130
"""Exit status after Ctrl-C, defined before other modules are imported."""


def main() -> int:
    """Run the command; Ctrl-C during its import ends it quietly."""
    try:
        # Start-up creates thousands of long-lived objects and reading a file creates many records,
        # but neither creates many reference cycles.
        gc.set_threshold(100_000)
        from witan.surfaces.cli.app import main as command

        status = command()
        gc.freeze()  # otherwise the interpreter searches for cycles again at exit
    except KeyboardInterrupt:
        status = INTERRUPTED
    if status == INTERRUPTED:
        # If the interrupt came while source text was executed (as for the methods of a data class),
        # `python -m` would still exit with the signal; executing any other text clears that state.
        eval("None")  # noqa: S307 - our own text
    return status


if __name__ == "__main__":
    sys.exit(main())
