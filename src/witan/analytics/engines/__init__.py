"""Engines: where a leaderboard and an audit are summed, by one definition for all of them."""

from witan.analytics.engines.cache import CachedEngine
from witan.analytics.engines.duckdb_lake import DuckLake
from witan.analytics.engines.engine import Engine
from witan.analytics.engines.reductions import Found, Reductions
from witan.analytics.engines.spark_lake import SparkLake
from witan.analytics.engines.sql_engine import SqlEngine

__all__ = ["CachedEngine", "DuckLake", "Engine", "Found", "Reductions", "SparkLake", "SqlEngine"]
