"""Descriptors: databases, schemas, tables, types, sequences and views, version by version.

What lives here: what descriptors hold, as which bytes, and the system's own tables. It promises
that a locked version equals its neighbours (`publish_rules`). It must never know the store that
keeps them, nor a statement.
"""
