"""Sessions from files: ballots, battles, conversations, and whole sessions."""

from witan.files.imports.evaluations import join_ballots
from witan.files.imports.reading import (
    digest_of,
    gather,
    import_files,
    read_imports,
    rereadable_file,
)

__all__ = [
    "digest_of",
    "gather",
    "import_files",
    "join_ballots",
    "read_imports",
    "rereadable_file",
]
