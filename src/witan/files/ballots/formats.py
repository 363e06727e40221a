"""The formats of files by name."""

from collections.abc import Mapping
from types import MappingProxyType

from witan.errors import UnknownName

__all__ = ["FORMATS", "WRITABLE", "check_format"]

WRITABLE = ("jsonl", "csv", "csv-pairs", "preflib", "parquet")
"""Formats in which ballots are written."""

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "jsonl": "JSON Lines: one ballot a line.",
        "csv": "CSV, long: one row per reviewer and candidate, with a rank, a grade or criteria.",
        "csv-pairs": "CSV, pairs: one row per comparison of two candidates.",
        "csv-judges": "CSV, a column per judge: one row per candidate, with a grade in each.",
        "csv-models": "CSV, a column per model: one row per item, or item and judge.",
        "preflib": "PrefLib .soc .soi .toc .toi: one line per distinct ranking, with its count.",
        "parquet": "Parquet: one row per ballot, or the columns of any CSV form.",
        "council-log": "JSON Lines: one council session a line, or the event log of one council.",
        "battles": "JSON, CSV or Parquet: one battle of two models a row, as arenas publish them.",
        "preferences": "JSON, CSV or Parquet: a chosen and a rejected answer a row.",
        "promptfoo": "JSON: the results of promptfoo, whole or one a line.",
        "inspect": "JSON or .eval: the log of an evaluation by Inspect.",
        "sessions": "JSON: whole sessions, as `witan ask --save` and `witan export` write them.",
        "conversations": "JSON: a saved conversation of the web app karpathy/llm-council.",
    }
)
"""Name and one sentence per format that is read."""


def check_format(name: str) -> None:
    """Refuse a format that does not exist."""
    if name not in FORMATS:
        raise UnknownName("format", name, FORMATS)
