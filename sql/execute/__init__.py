"""Execution: plans and statements carried out, in a transaction or in one phase.

What lives here: queries and DML from prepared text to result (`run`), statements that write to the
catalog (`catalog_statements`), EXPLAIN, and the rooms of each kind of statement: `query`, `write`,
`ddl`, `admin`, and tables kept as columns (`columnar_cache`). It promises that a statement that
fails for a reason that passes is run again only where its client has seen nothing of it. It must
never know SQL text.
"""
