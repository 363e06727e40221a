"""Sessions from files: ballots, battles, conversations, and whole sessions."""

from witan.files.imports.evaluations import joined_ballots
from witan.files.imports.reading import (
    digest_of,
    gathered,
    import_files,
    read_imports,
    rereadable_file,
)

__all__ = [
    "digest_of",
    "gathered",
    "import_files",
    "joined_ballots",
    "read_imports",
    "rereadable_file",
]
