"""A lake: the rows of histories as Parquet files by day, to be read where they lie."""

from witan.analytics.lake.reading import Lake
from witan.analytics.lake.writing import LakeWritten, write_lake

__all__ = ["Lake", "LakeWritten", "write_lake"]
