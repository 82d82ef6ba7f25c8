"""Execution: plans and statements carried out, in a transaction or in one phase.

What lives here: reads by key and scans for DuckDB (`reading`), DuckDB itself (`duckdb`), DML, DDL,
SHOW, and the bulk load. Nothing here begins or commits a transaction but the load; sessions do. It
must never know SQL text.
"""
