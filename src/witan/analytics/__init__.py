"""Leaderboards and audits: SQL sums over views of a history or lake.

leaderboards, audits     reports computed from a source
sources                  a history, files, or a lake in DuckDB or Spark
sums                     the tables of sums, their queries and cache
queries                  SQL of the sums, the same on every engine
views                    views used by the queries, for each database
lake                     Parquet files by day
"""
