"""Analysis: what the names of a statement are, and of which types.

What lives here: the binder and views, predicates, types (`types`), functions that are queries or
calls (`calls`), and what columns a statement has (`columns`). It promises PostgreSQL's errors
before anything runs. It must never know how a statement is executed.
"""
