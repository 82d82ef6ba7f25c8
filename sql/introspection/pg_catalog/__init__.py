"""The schema `pg_catalog`: what clients of Postgres ask of a database.

What lives here: its tables, made of descriptors as the statement's transaction sees them. The
functions that go with them (`format_type`, `pg_get_indexdef`, …) are rewritten into queries on
these tables by `sql.parse.expansions.catalog_functions`.

It promises PostgreSQL 15's column names and meanings. A table that has nothing to say (triggers,
policies, inheritance) is there and empty, because clients join it; a column without a meaning here
has the value that PostgreSQL gives a plain table.
"""
