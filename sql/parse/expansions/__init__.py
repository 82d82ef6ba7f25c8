"""Calls and casts that the parser replaces by queries, before anything is bound.

What lives here: functions and casts of pg_catalog as queries on its tables, functions that return
rows as the elements of a list, and `tableoid`. It promises a tree that means the call wherever it
stands. It must never know whether a table exists.
"""
