"""``witan explain``: why the leader leads, by hand."""

import sys
from collections.abc import Mapping
from typing import Any

from witan.service.operations.explain import ExplainParameters, explain
from witan.service.text import Page
from witan.surfaces.cli.counting import ballot_command
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.reading import Body
from witan.surfaces.terminal import echo

EXAMPLES = """\b
Examples:
  witan explain last
  witan explain ballots.jsonl --session q1
  witan explain ballots.jsonl --session q1 --rule schulze
"""


def _run(given: ExplainParameters, _: Body, options: Mapping[str, Any]) -> Status:
    found = explain.handler(None, given)
    if options["as_json"]:
        from witan.service.json_output import to_json

        echo(to_json(found))
    else:
        from witan.surfaces.text.explanation import explanation_text

        echo("\n".join(explanation_text(Page.of(sys.stdout), found)))
    return Status.ANSWERED if found.outcome.leaders else Status.NO_QUORUM


command = ballot_command(explain, _run, options=[], examples=EXAMPLES)
