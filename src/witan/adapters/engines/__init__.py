"""Engines: where a leaderboard and an audit are summed, by one definition for all of them."""

from witan.adapters.engines.duckdb_lake import DuckLake
from witan.adapters.engines.engine import Engine
from witan.adapters.engines.lake_reductions import LakeReductions
from witan.adapters.engines.reductions import Found, Reductions
from witan.adapters.engines.spark_lake import SparkLake
from witan.adapters.engines.sql_engine import SqlEngine

__all__ = ["DuckLake", "Engine", "Found", "LakeReductions", "Reductions", "SparkLake", "SqlEngine"]
