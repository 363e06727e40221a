"""``witan sessions``."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from witan.service.operations.session_list import sessions
from witan.surfaces.cli.generated import value_command
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.stored_sessions import LocalSessions, open_sessions
from witan.surfaces.text.sessions import sessions_remarks, sessions_text

EXAMPLES = """\b
Examples:
  witan sessions
  witan sessions hash map --since 30d
  witan sessions --status interrupted --json
"""


@contextmanager
def _open(options: Mapping[str, Any]) -> Iterator[LocalSessions]:
    with open_sessions(options["config"], options["history"]) as store:
        yield store


command = value_command(
    sessions,
    _open,
    text=sessions_text,
    remarks=sessions_remarks,
    options=[config_option, history_option],
    examples=EXAMPLES,
    notes="The first column is a name that other commands take.",
)
