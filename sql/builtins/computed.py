"""Functions of PostgreSQL that nothing in DuckDB is like: `sql.builtins.functions` computes them.

A call is parsed under a name of its own, `postgres_get_byte`, as calls of the macros are; by their
signatures its operands are checked and converted before anything runs.
"""

from __future__ import annotations

SIGNATURES = """
    get_byte(bytea, int8) int8
    set_byte(bytea, int8, int8) bytea
    get_bit(bytea, int8) int8
    set_bit(bytea, int8, int8) bytea
    bit_count(bytea) int8
    sha224(bytea) bytea
    sha384(bytea) bytea
    sha512(bytea) bytea
    hashtext(text) int8
    hashtextextended(text, int8) int8

    normalize(text) text
    normalize(text, text) text
    is_normalized(text) bool
    is_normalized(text, text) bool
    unistr(text) text
    parse_ident(text) text[]
    parse_ident(text, bool) text[]

    sind(float8) float8
    cosd(float8) float8
    tand(float8) float8
    cotd(float8) float8
    asind(float8) float8
    acosd(float8) float8
    atand(float8) float8
    atan2d(float8, float8) float8

    min_scale(numeric) int8
    trim_scale(numeric) same
    scale(numeric) int8
"""

COMPUTED = frozenset(
    line.partition("(")[0].strip() for line in SIGNATURES.splitlines() if line.strip()
)
"""Their names."""
