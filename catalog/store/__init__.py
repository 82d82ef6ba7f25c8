"""The store's descriptors, and the rows about them, kept for all nodes.

What lives here: descriptors in the store (`descriptor_store`), what a transaction does to them
(`catalog_changes`), the catalog over them, and what else is one for all nodes: cluster settings,
node ids, secrets. It promises the two-version invariant (`live_leases`) and that ids are never used
again. It must never know a statement.
"""
