"""Documents in a query: operators and functions on JSONB, in DuckDB's words.

What lives here: `meaning` (which function each operator is), `grouping` (documents compared,
ordered and grouped as PostgreSQL's btree does it), and `element_names` (functions in FROM whose
name is their value). The functions themselves are `sql.builtins.documents`.
"""
