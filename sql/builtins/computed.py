"""Functions of PostgreSQL that nothing in DuckDB is like: `sql.builtins.functions` computes them.

A call is parsed under a name of its own, `postgres_hashtext`, as calls of the macros are; by their
signatures its operands are checked and converted before anything runs.
"""

from __future__ import annotations

SIGNATURES = """
    sha224(bytea) bytea
    sha384(bytea) bytea
    sha512(bytea) bytea
    hashtext(text) int8
    hashtextextended(text, int8) int8

    min_scale(numeric) int8
    trim_scale(numeric) same
    scale(numeric) int8
"""

COMPUTED = frozenset(
    line.partition("(")[0].strip() for line in SIGNATURES.splitlines() if line.strip()
)
"""Their names."""
