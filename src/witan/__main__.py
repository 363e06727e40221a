"""``python -m witan`` is the command ``witan``."""

import gc
import sys

__all__ = ["main"]

INTERRUPTED = 130
"""The exit status after Ctrl-C, known before anything else is imported."""


def main() -> int:
    """Run the command; Ctrl-C during its import ends it quietly."""
    try:
        # Starting makes thousands of classes and functions that stay, reading a file hundreds of
        # thousands of records; neither makes hardly any cycles.
        gc.set_threshold(100_000)
        from witan.surfaces.cli.app import main as command

        status = command()
        gc.freeze()  # or the interpreter would search all that for cycles once more as it ends
        return status
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
