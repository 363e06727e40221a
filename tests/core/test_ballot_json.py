"""The JSON text of a ballot equals its record."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from witan.core.ballot import Ballot, to_json, to_record
from witan.core.scale import Scale

GRADED = Ballot('ä "b"\\', grades={"a\n": 3, "é\u2028": 10}, session="s\t1")


@pytest.mark.parametrize(
    "ballot",
    [
        GRADED,
        replace(GRADED, session=""),
        replace(GRADED, scale=Scale()),
        replace(GRADED, scale=Scale.parse("1-5")),
        replace(GRADED, grades={"a": True, "b": 2}),
        replace(GRADED, grades={"a": 2.5, "b": float("nan")}),
        replace(GRADED, grades={"a": "n/a", "b": {"clear": 3}}),
        replace(GRADED, grades={1: 2, "b": 3}),
        replace(GRADED, groups=(("a", "b"), ("c",))),
        replace(GRADED, kind="human", notes="late", at=datetime(2026, 1, 2, tzinfo=UTC)),
        Ballot("a", abstained=True, reason="silent"),
    ],
)
def test_json_text_equals_the_record(ballot):
    """Histories compare stored ballots with those of a file by their text."""
    assert to_json(ballot) == json.dumps(to_record(ballot))
