"""Aggregates, windows and grouping in a query, in DuckDB's words.

What lives here: what PostgreSQL computes otherwise over sets of rows: ordered-set
aggregates, frames, named windows and grouped keys.
"""
