"""Data sets through a council, row by row."""

from witan.files.rows import read_rows
from witan.service.batch import (
    Batch,
    BatchBill,
    BatchOptions,
    BatchReport,
    BatchRow,
    Progress,
    RowResult,
    read_batch_rows,
)

__all__ = [
    "Batch",
    "BatchBill",
    "BatchOptions",
    "BatchReport",
    "BatchRow",
    "Progress",
    "RowResult",
    "read_batch_rows",
    "read_rows",
]
