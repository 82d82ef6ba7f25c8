"""Virtual tables: what the system knows of itself, as tables that SELECT can use anywhere.

What lives here: the registry of virtual tables by schema and name, `pg_catalog`,
`information_schema` and `tailrace_internal`. A virtual table is a name, columns, and a coroutine
that returns its rows; DuckDB reads them as it reads the snapshot of a table, so they join with
everything.

It promises that their rows are made when the statement runs, each table once. What is in the store
is read at the statement's read timestamp; what only this node knows is as of now.

It must never know who asks: HTTP, the wire protocol, a test.
"""
