"""Paths of SQL/JSON: the language of `jsonb_path_query(doc, '$.items[*] ? (@.price > 10)')`.

A *path* is read once (`scanner`, `reader`) into a tree (`nodes`) and asked of documents that are
read as Python values (`evaluation`): numbers are integers and Decimals, so that they keep their
digits, and arithmetic on them is NUMERIC's (`numbers`). What a path leads to are *items*; in lax
mode an array and its only item stand for each other, and what is not there is no error. `answers`
are the functions and operators of SQL.

It promises PostgreSQL 15's items, in their order, or an SQLError. `.datetime()` and `.keyvalue()`,
whose ids are places in PostgreSQL's binary documents, are errors. It never knows of statements.
"""
