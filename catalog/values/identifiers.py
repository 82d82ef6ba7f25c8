"""Identifiers as SQL writes them."""

from __future__ import annotations


def quote_identifier(name: str) -> str:
    """`name` as SQL reads it back: in quotes unless it is plain lower case and no reserved word.

    >>> quote_identifier("flights"), quote_identifier("Tail Number")
    ('flights', '"Tail Number"')
    """
    plain = name.replace("_", "a")
    simple = plain.isascii() and plain.isalnum() and plain == plain.lower()
    if simple and not plain[0].isdigit() and name not in RESERVED:
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


_WORDS = (
    "all analyse analyze and any array as asc asymmetric authorization binary both case cast "
    "check collate collation column concurrently constraint create cross current_catalog "
    "current_date current_role current_schema current_time current_timestamp current_user "
    "default deferrable desc distinct do else end except false fetch for foreign freeze from "
    "full grant group having ilike in index initially inner intersect into is isnull join "
    "lateral leading left like limit localtime localtimestamp natural not nothing notnull "
    "null offset on only or order outer overlaps placing primary references returning right "
    "select session_user similar some symmetric table tablesample then to trailing true "
    "union unique user using variadic verbose when where window with"
)
RESERVED = frozenset(_WORDS.split())
"""PostgreSQL's (appendix C), and `index`, which CREATE TABLE takes for an element."""
