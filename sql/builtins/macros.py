"""Functions of PostgreSQL that DuckDB lacks or has with another meaning, as macros of DuckDB.

A call of one is parsed under a name of its own, so that nobody takes it for DuckDB's function of
the same name: `substr('x', -1)` is the macro `postgres_substr`. An error that begins with a
SQLSTATE and a bar is PostgreSQL's own (`error('22011|…')`).

A macro's arguments are put in place of its parameters, so one that is used twice is computed twice:
nested calls grow by that. None of them uses an argument more often than it must.
"""

from __future__ import annotations

from functools import cache, lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from ...catalog.values.column_types import ColumnType
from ...catalog.values.identifiers import RESERVED
from ..syntax.trees import CAST_TYPE, copied, own, wrap

PREFIX = "postgres_"

_SUBSTRING = """
(s, f) AS substring(s, CASE WHEN f < 1 THEN 1 ELSE f END),
(s, f, n) AS CASE
    WHEN n < 0 THEN error('22011|negative substring length not allowed')
    WHEN f < 1 THEN substring(s, 1, CASE WHEN f + CAST(n AS BIGINT) < 1 THEN 0
        ELSE f + CAST(n AS BIGINT) - 1 END)
    ELSE substring(s, f, least(n, 1000000000)) END
"""
_SPLIT_PART = """
(s, d, n) AS CASE
    WHEN n = 0 THEN error('22023|field position must not be zero')
    WHEN d = '' THEN CASE WHEN s IS NULL OR n IN (1, -1) THEN s ELSE '' END
    ELSE split_part(s, d, n) END
"""
_HEX = "regexp_full_match(s, '([0-9a-fA-F]{2})*')"
_DECODE = f"""
(s, f) AS CASE lower(f)
    WHEN 'hex' THEN CASE WHEN {_HEX} THEN unhex(s)
        ELSE error('22023|invalid hexadecimal data') END
    WHEN 'base64' THEN from_base64(regexp_replace(s, '\\s', '', 'g'))
    ELSE error('22023|unrecognized encoding') END
"""
_ENCODE = r"""
(b, f) AS CASE lower(f)
    WHEN 'hex' THEN lower(hex(b))
    WHEN 'base64' THEN regexp_replace(to_base64(b), '([^=]{76})', '\1' || chr(10), 'g')
    ELSE error('22023|unrecognized encoding') END
"""
_UTF8 = """
CASE WHEN lower(replace(e, '-', '')) IN ('utf8', 'unicode') THEN {made}
    WHEN e IS NULL THEN NULL
    ELSE error('0A000|not supported: encodings other than UTF8') END
"""
_POSITIVE = """
(x) AS CASE
    WHEN x = 0 THEN error('2201E|cannot take logarithm of zero')
    WHEN x < 0 THEN error('2201E|cannot take logarithm of a negative number')
    ELSE {function}(x) END
"""
_WITHIN_ONE = """
(x) AS CASE WHEN x < -1 OR x > 1 THEN error('22003|input is out of range') ELSE {function}(x) END
"""
_PAD = """
(s, n) AS {function}(s, CAST(if(n < 0, 0, n) AS INTEGER), ' '),
(s, n, f) AS CASE WHEN n IS NULL THEN NULL WHEN f = '' THEN left(s, greatest(n, 0))
    ELSE {function}(s, CAST(greatest(n, 0) AS INTEGER), f) END
"""
_TRIM = "(s) AS {function}(s, ' '), (s, c) AS {function}(s, c)"
_QUOTE_IDENT = """
(s) AS CASE WHEN regexp_full_match(s, '[a-z_][a-z0-9_]*') AND s NOT IN ({words}) THEN s
    ELSE '"' || replace(s, '"', '""') || '"' END
"""
_QUOTE_LITERAL = r"""
if(contains(s, '\'), 'E', '') || '''' || replace(replace(s, '\', '\\'), '''', '''''') || ''''
"""
_UPPER = """
(s) AS CASE WHEN contains(s, 'ß')
    THEN array_to_string(list_transform(string_split(s, 'ß'), lambda p: upper(p)), 'ß')
    ELSE upper(s) END
"""
_FLOAT_TEXT = """
(x) AS CASE
    WHEN isnan(x) THEN 'NaN' WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END
    WHEN abs(x) >= 1e15 AND abs(x) < 1e16 AND x = trunc(x)
    THEN regexp_replace(regexp_replace(
        CAST(CAST(x AS BIGINT) AS VARCHAR), '^(-?[0-9])([0-9]*?)0*$', '\\1.\\2e+15'), '\\.e', 'e')
    ELSE regexp_replace(CAST(x AS VARCHAR), '\\.0$', '') END
"""
_INTEGER_OF_TEXT = """
(s) AS CASE WHEN regexp_full_match(s, '\\s*[+-]?[0-9]+\\s*') THEN CAST(s AS BIGINT)
    WHEN s IS NULL THEN NULL
    ELSE error('22P02|invalid input syntax for type bigint: "' || s || '"') END
"""
_DECIMAL_OF_TEXT = r"""
(s) AS CASE WHEN regexp_full_match(s,
        '\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*') THEN trim(s)
    WHEN s IS NULL THEN NULL
    WHEN lower(trim(s)) IN ('nan', 'inf', '+inf', '-inf', 'infinity', '+infinity', '-infinity')
    THEN error('22003|DECIMAL has no NaN and no infinity')
    ELSE error('22P02|invalid input syntax for type numeric: "' || s || '"') END
"""
_SINGLE_TEXT = """
(x) AS CASE
    WHEN abs(x) >= 1e6 AND abs(x) < 1e16 THEN regexp_replace(regexp_replace(
        replace(regexp_replace(CAST(x AS VARCHAR), '\\.0$', ''), '.', ''),
        '^(-?[0-9])([0-9]*?)0*$', '\\1.\\2'), '\\.$', '')
        || printf('e+%02d', len(CAST(CAST(trunc(abs(x)) AS BIGINT) AS VARCHAR)) - 1)
    WHEN isnan(x) THEN 'NaN' WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END
    ELSE regexp_replace(CAST(x AS VARCHAR), '\\.0$', '') END
"""
_SINGLE = """
(x) AS CASE WHEN x <> 0 AND abs(x) < 7.006492321624085e-46
    THEN error('22003|value out of range: underflow') ELSE CAST(x AS FLOAT) END
"""
"""Half the least FLOAT4 is rounded to zero."""
_EXACT_DECIMAL_OF_TEXT = rf"""
(s) AS CASE WHEN if(contains(lower(s), 'e'),
        TRY_CAST(s AS DECIMAL(38, 12)) IS DISTINCT FROM TRY_CAST(s AS DECIMAL(38, 24)),
        regexp_matches(s, '\.[0-9]{{12}}[0-9]*[1-9]'))
    THEN error('22003|NUMERIC without digits keeps 12 behind the point of a text, and "' || s
        || '" has more: cast it to NUMERIC(p, s)')
    ELSE {PREFIX}decimal_of_text(s) END
"""
_BARE_DECIMAL = """
(x) AS CASE
    WHEN CAST(CAST(x AS DECIMAL(38, 9)) AS DECIMAL(38, 18)) = TRY_CAST(x AS DECIMAL(38, 18))
    THEN CAST(x AS DECIMAL(38, 9))
    WHEN x IS NOT NULL THEN error('22003|NUMERIC without digits keeps 9 behind the point, and '
        || CAST(x AS VARCHAR) || ' has more: cast it to NUMERIC(p, s)') END
"""
_DECIMAL_OF_FLOAT = """
(x) AS CASE WHEN isfinite(x) THEN printf('%.{digits}g', x)
    WHEN x IS NOT NULL THEN error('22003|DECIMAL has no NaN and no infinity') END
"""
_POWER = """
(a, b) AS CASE
    WHEN a = 0 AND b < 0 THEN error('2201F|zero raised to a negative power is undefined')
    WHEN a < 0 AND b <> floor(b) AND isfinite(a) THEN
    error('2201F|a negative number raised to a non-integer power yields a complex result')
    ELSE pow(a, b) END
"""
_BOOL_OF_TEXT = """
(s) AS CASE
    WHEN lower(trim(s)) IN ('t','tr','tru','true','y','ye','yes','on','1') THEN TRUE
    WHEN lower(trim(s)) IN ('f','fa','fal','fals','false','n','no','of','off','0') THEN FALSE
    WHEN s IS NULL THEN NULL
    ELSE error('22P02|invalid input syntax for type boolean: "' || s || '"') END
"""
_INTERVAL_SUM = """
CASE WHEN list_count(l) > 0
    THEN list_reduce(list_filter(l, lambda e: e IS NOT NULL), lambda a, b: a + b) END
"""
_SPLIT = (
    "CASE WHEN d IS NULL THEN string_split(s, '') WHEN s = '' THEN CAST([] AS VARCHAR[]) "
    "WHEN d = '' THEN [s] ELSE string_split(s, d) END"
)


_UNITS = ("kB", "MB", "GB", "TB", "PB")


def _size_pretty() -> str:
    """As pg_size_pretty() has it: each unit up to 10240 of it, halves rounded away from zero."""
    whens = ["WHEN abs(x) < 10240 THEN x || ' bytes'"]
    for place, unit in enumerate(_UNITS):
        halves = f"x // {1 << (9 + 10 * place)}"
        last = place + 1 == len(_UNITS)
        test = "ELSE" if last else f"WHEN abs({halves}) < 20479 THEN"
        whens.append(f"{test} ({halves} + if(x < 0, -1, 1)) // 2 || ' {unit}'")
    case = f"CASE {' '.join(whens)} END"
    return f"(n) AS list_transform([CAST(n AS HUGEINT)], lambda x: {case})[1]"


MACROS: dict[str, str] = {
    "substr": _SUBSTRING,
    "split_part": _SPLIT_PART,
    "strpos": "(s, t) AS instr(s, t)",
    "char_length": "(s) AS length(s)",
    "character_length": "(s) AS length(s)",
    "starts_with": "(s, p) AS starts_with(s, p)",
    "exp": "(x) AS CASE WHEN isinf(exp(x)) AND NOT isinf(x) "
    "THEN error('22003|value out of range: overflow') ELSE exp(x) END",
    "upper": _UPPER,
    "lpad": _PAD.format(function="lpad"),
    "rpad": _PAD.format(function="rpad"),
    "btrim": _TRIM.format(function="trim"),
    "ltrim": _TRIM.format(function="ltrim"),
    "rtrim": _TRIM.format(function="rtrim"),
    "replace": "(s, a, b) AS CASE WHEN a = '' THEN s ELSE replace(s, a, b) END",
    "chr": "(n) AS CASE WHEN n = 0 THEN error('54000|null character not permitted') "
    "WHEN n < 0 OR n > 1114111 THEN error('54000|requested character too large for encoding') "
    "ELSE chr(CAST(n AS INTEGER)) END",
    "ascii": "(s) AS CASE WHEN s = '' THEN 0 ELSE unicode(s) END",
    "to_hex": "(n) AS lower(hex(n))",
    "pg_size_pretty": _size_pretty(),
    "encode": _ENCODE,
    "decode": _DECODE,
    "convert_from": "(b, e) AS " + _UTF8.format(made="decode(b)"),
    "convert_to": "(s, e) AS " + _UTF8.format(made="encode(s)"),
    "quote_ident": _QUOTE_IDENT.format(words=", ".join(f"'{word}'" for word in sorted(RESERVED))),
    "quote_literal": f"(s) AS {_QUOTE_LITERAL}",
    "quote_nullable": f"(s) AS CASE WHEN s IS NULL THEN 'NULL' ELSE {_QUOTE_LITERAL} END",
    "string_to_array": f"(s, d) AS {_SPLIT}, "
    f"(s, d, n) AS list_transform({_SPLIT}, lambda e: nullif(e, n))",
    "cardinality": "(a) AS CAST(len(a) AS BIGINT)",
    "mod": "(a, b) AS a % b",
    **dict.fromkeys(("power", "pow"), _POWER),
    "sqrt": "(x) AS CASE WHEN x < 0 "
    "THEN error('2201F|cannot take square root of a negative number') ELSE sqrt(x) END",
    "ln": _POSITIVE.format(function="ln"),
    **dict.fromkeys(("log", "log10"), _POSITIVE.format(function="log10")),
    "asin": _WITHIN_ONE.format(function="asin"),
    "acos": _WITHIN_ONE.format(function="acos"),
    "ceiling": "(x) AS ceil(x)",
    "to_timestamp": "(x) AS to_timestamp(x)",
    "_pg_expandarray": "(a) AS list_transform(a, lambda x, n: {'x': x, 'n': CAST(n AS BIGINT)})",
}
"""Functions of users, by PostgreSQL's names."""

_WRITTEN: dict[str, str] = {
    "subscripts": "(a, d) AS CASE WHEN d = 1 THEN range(1, len(a) + 1) END",
    "places_to": "(n) AS range(1, n + 1)",
    "vector_subscripts": "(a, d) AS CASE WHEN d = 1 THEN range(0, len(a)) END",
    "float_text": _FLOAT_TEXT,
    "days": "(n) AS CAST(n AS INTEGER)",
    "integer_of_text": _INTEGER_OF_TEXT,
    "bool_of_text": _BOOL_OF_TEXT,
    "decimal_of_text": _DECIMAL_OF_TEXT,
    "exact_decimal_of_text": _EXACT_DECIMAL_OF_TEXT,
    "bare_decimal": _BARE_DECIMAL,
    "decimal_of_float": _DECIMAL_OF_FLOAT.format(digits=15),
    "decimal_of_single": _DECIMAL_OF_FLOAT.format(digits=6),
    "single": _SINGLE,
    "single_text": _SINGLE_TEXT,
    "interval_over": '(i, n) AS "/"(i, n)',  # the operator is one of integers
    "interval_sum": f"(l) AS {_INTERVAL_SUM}",
    "interval_average": f'(l) AS "/"({_INTERVAL_SUM}, list_count(l))',
}
"""Casts and the like, which the lowering writes."""

REWRITTEN = frozenset(
    """
    div round sign to_char to_date date_part date_trunc format concat every octet_length length
    variance pg_typeof json_object json_extract_path json_extract_path_text
    regexp_replace regexp_like regexp_match regexp_substr regexp_count regexp_instr
    regexp_split_to_array make_time make_timestamp width_bucket date_bin
    factorial cbrt gcd lcm sha224 sha384 sha512
    """.split()  # noqa: SIM905 (a list of words is read as such)
)
"""Functions whose lowering depends on their arguments' types, and those that are refused though
sqlglot knows them; they are parsed under a name of their own."""

CALLED = frozenset(MACROS) | REWRITTEN
"""The functions whose calls are parsed under a name of their own."""


_ARRAY_MACROS = (
    "array_upper(l, d) AS if(d = 1, nullif(len(l), 0), NULL)",
    "array_lower(l, d) AS if(d = 1 AND len(l) > 0, 1::BIGINT, NULL)",
    "array_remove(l, x) AS list_filter(l, lambda e: e IS DISTINCT FROM x)",
    "array_replace(l, x, y) AS "
    "list_transform(l, lambda e: CASE WHEN e IS NOT DISTINCT FROM x THEN y ELSE e END)",
    "array_join(a, b) AS CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a "
    "ELSE list_concat(a, b) END",
    "array_slice_of(l, low, high) AS CASE WHEN low IS NULL OR high IS NULL THEN NULL "
    "ELSE list_slice(l, greatest(low, 1), greatest(high, 0)) END",
    "array_text(l) AS '{' || array_to_string(list_transform(l, lambda e: CASE "
    "WHEN e IS NULL THEN 'NULL' "
    "WHEN e = '' OR upper(e) = 'NULL' OR regexp_matches(e, '[\\s{},\"\\\\]') "
    """THEN '"' || replace(replace(e, '\\', '\\\\'), '"', '\\"') || '"' """
    "ELSE e END), ',') || '}'",
    "array_position_from(l, x, f) AS list_extract(list_filter(range(greatest(f, 1), len(l) + 1), "
    "lambda i: l[i] IS NOT DISTINCT FROM x), 1)",
    "array_has_all_of(a, b) AS CASE WHEN a IS NOT NULL AND b IS NOT NULL "
    "THEN list_has_all(a, b) AND len(list_filter(b, lambda e: e IS NULL)) = 0 END",
)

"""Functions on arrays under names of DuckDB's own kind, which the lowering writes."""


def definitions() -> list[str]:
    """The statements that make the macros."""
    named = [f"{PREFIX}{name}{body}" for name, body in (MACROS | _WRITTEN).items()]
    return [f"CREATE MACRO {macro}" for macro in (*named, *_ARRAY_MACROS)]


# Trees of DuckDB's dialect, out of text with places for trees.

DUCKDB = DuckDB()
DUCKDB.INDEX_OFFSET = 0  # subscripts are as they are written, as `sql.parse.dialect` has them

TYPES_KEPT_MAX = 256
"""Types whose names are not read again: users declare enumerations, and decimals of many widths."""


def duckdb(template: str, **parts: exp.Expr) -> exp.Expr:
    """The expression of a DuckDB `template`, each `:name` replaced by the tree of that name."""
    tree = copied(_parsed(template))
    for node in list(tree.find_all(exp.Placeholder)):
        part = exp.Paren(this=own(parts[node.name]))
        if node is tree:
            return part
        node.replace(part)
    return exp.Paren(this=tree) if isinstance(tree, exp.Binary) else tree


@cache
def _parsed(template: str) -> exp.Expr:
    tree: exp.Expr = sqlglot.parse_one(template, dialect=DUCKDB)
    # What begins with a parenthesis might be a query, and comes as an alias that is none.
    return tree.this if isinstance(tree, exp.Alias) else tree


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of one of the macros."""
    return exp.Anonymous(this=f"{PREFIX}{name}", expressions=list(map(own, arguments)))


def plain(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a function of DuckDB's."""
    return exp.Anonymous(this=name, expressions=list(map(own, arguments)))


def text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def duckdb_type(type: ColumnType) -> exp.DataType:
    """Returns the name of the type in DuckDB as a tree, which is the caller's."""
    return copied(_read_type(type.duckdb_name))


@lru_cache(TYPES_KEPT_MAX)
def _read_type(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="duckdb")


def cast_to(tree: exp.Expr, type: ColumnType) -> exp.Cast:
    made = exp.Cast(this=tree, to=duckdb_type(type))
    made.meta[CAST_TYPE] = type
    return made


def cast_in_place(tree: exp.Expr, type: ColumnType) -> exp.Expr:
    """Puts a cast of the tree in its place. Returns the cast."""
    return wrap(tree, lambda inner: cast_to(inner, type))
