"""Functions and operators: their signatures, and those that Python computes for DuckDB.

What lives here: what PostgreSQL's functions take and return (`known_functions`), and their bodies:
macros of DuckDB (`macros`), Python (`evaluator_functions`, `documents`, `patterns`). It promises
PostgreSQL's values or an SQLError. It must never know of statements or tables.
"""
