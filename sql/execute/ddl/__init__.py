"""Schema statements executed: from what a statement wants to descriptors and schema changes.

What lives here: databases, tables, indexes, constraints, types, views and sequences. It promises
that a statement that fails leaves nothing. The stages of a change are `catalog.schema_change`'s.
"""
