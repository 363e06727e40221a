"""Leaderboards and audits: SQL sums over views of a history or lake.

leaderboards, audits     what is read off a source
sources                  a history, files, or a lake in DuckDB or Spark
sums                     which query fills which table of sums, and their cache
queries                  their SQL, the same on every engine
views                    the views that they name, for each database
lake                     Parquet files by day
"""
