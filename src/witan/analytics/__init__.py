"""Leaderboards and audits: SQL sums over views of a history or lake.

leaderboards, audits                    what is read off a source
sources                                 a history, files, or a lake with its engine
sums                                    which query fills which table of sums
queries                                 their SQL, the same on every engine
views                                   the views that they name, for each database
engine, cache                           SQLite and PostgreSQL, and the results they keep
lake_engine, spark_engine               DuckDB and Spark
lake_files, lake_writing                Parquet files by day
"""
