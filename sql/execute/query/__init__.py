"""Queries executed: rows by key in Python, everything else by DuckDB over Arrow snapshots.

What lives here: reading through a transaction, the DuckDB evaluator and its streams, and the row
locks that a SELECT takes. It promises batches in bounded memory, as the statement's timestamp saw
them. It must never know SQL text.
"""
