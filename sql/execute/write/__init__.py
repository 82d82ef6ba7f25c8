"""Writes executed: INSERT, UPSERT, UPDATE, DELETE, COPY and the bulk load.

What lives here: rows completed by the rules of their table, conflicts, foreign keys and their
actions, and the keys that follow from rows. It promises that a statement writes wholly or not at
all. It must never begin a transaction, but for the load.
"""
