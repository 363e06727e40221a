"""Data sets through a council, alone or against its best member."""

from witan.core.arms import ArmAnswer, ArmComparison, ArmCost, ArmDifference
from witan.files.ballots.formats import read_rows
from witan.service.arms import ArmBatch, ArmBatchReport, ArmBill, ArmOptions, ArmRowResult
from witan.service.batch import (
    Batch,
    BatchBill,
    BatchOptions,
    BatchReport,
    Progress,
)
from witan.service.batch_rows import BatchRow, RowResult, RowResults, read_batch_rows
from witan.service.batch_texts import TextSummary
from witan.service.spark_batch import SparkBatch

__all__ = [
    "ArmAnswer",
    "ArmBatch",
    "ArmBatchReport",
    "ArmBill",
    "ArmComparison",
    "ArmCost",
    "ArmDifference",
    "ArmOptions",
    "ArmRowResult",
    "Batch",
    "BatchBill",
    "BatchOptions",
    "BatchReport",
    "BatchRow",
    "Progress",
    "RowResult",
    "RowResults",
    "SparkBatch",
    "TextSummary",
    "read_batch_rows",
    "read_rows",
]
