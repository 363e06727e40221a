"""Sessions that come in as files: ballots, battles, conversations, and whole sessions."""

from witan.adapters.imports.digests import digest_of, held, import_files
from witan.adapters.imports.evaluations import joined_ballots
from witan.adapters.imports.gathering import gathered
from witan.adapters.imports.reading import read_imports
from witan.adapters.imports.taking import Meaning, Taken, take_in

__all__ = [
    "Meaning",
    "Taken",
    "digest_of",
    "gathered",
    "held",
    "import_files",
    "joined_ballots",
    "read_imports",
    "take_in",
]
