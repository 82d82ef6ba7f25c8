"""The functions whose operands and results are known, and the nodes that stand for them."""

from __future__ import annotations

from sqlglot import exp

from .macros import PREFIX
from .signatures import Signature, signatures

FUNCTIONS: dict[str, tuple[Signature, ...]] = signatures(
    """
    abs(int8|numeric|float4|float8) same
    sign ceil ceiling floor round trunc(numeric|float8) same
    round trunc(numeric, int8) numeric
    mod(int8, int8) int8
    mod(numeric, numeric) numeric
    power pow atan2(float8, float8) float8
    sqrt exp ln log log10 sin cos tan cot asin acos atan degrees radians(float8) float8
    pi random() float8
    pg_typeof(any) text

    length octet_length(text|bytea) int8
    char_length character_length bit_length ascii(text) int8
    upper lower initcap reverse quote_ident(text) text
    left right repeat(text, int8) text
    lpad rpad(text, int8, text?) text
    btrim ltrim rtrim(text, text?) text
    replace translate(text, text, text) text
    split_part(text, text, int8) text
    strpos position(text, text) int8
    starts_with(text, text) bool
    substr substring(text, int8, int8?) text
    overlay(text, text, int8, int8?) text
    chr to_hex(int8) text
    md5(text|bytea) text
    pg_size_pretty(int8|numeric) text
    sha256(bytea) bytea
    encode convert_from(bytea, text) text
    decode convert_to(text, text) bytea
    quote_literal quote_nullable(any) text
    concat(*any) text
    concat_ws format(text, *any) text
    string_to_array(text, text, text?) text[]

    date_part(text, timestamp|timestamptz|interval|time|date) float8
    date_trunc(text, timestamp|timestamptz|interval) result
    date_trunc(text, timestamptz, text) timestamptz
    age(timestamp|timestamptz) interval
    age(timestamp, timestamp) interval
    age(timestamptz, timestamptz) interval
    clock_timestamp statement_timestamp transaction_timestamp() timestamptz
    to_char(timestamp|timestamptz|interval|numeric|int8|float4|float8, text) text
    to_timestamp(float8) timestamptz
    timezone(text|interval, timestamp) timestamptz
    timezone(text|interval, timestamptz) timestamp

    array_append array_remove(array, element) array
    array_prepend(element, array) array
    array_cat(array, array) array
    array_replace(array, element, element) array
    array_position(array, element, int8?) int8
    array_length array_upper array_lower(array, int8) int8
    cardinality(array) int8
    array_to_string(array, text, text?) text
    unnest(array) element

    sum(int8|numeric|float4|float8|interval) sum
    avg(int8|numeric|float4|float8|interval) avg
    max min(int8|numeric|float4|float8|text|interval|enum|array) same
    max min(date|time|timestamp|timestamptz) same
    bool_and bool_or every(bool) bool
    stddev stddev_pop stddev_samp variance var_samp var_pop(float8) float8
    string_agg(text, text) text
    ntile(int8) int8
    """
)
"""By PostgreSQL's names. Results that depend on more than a word says (`sum`, `avg`, `result`, and
the scale of what is `numeric`) are `types.Types`' to know."""

ELSEWHERE: dict[str, tuple[Signature, ...]] = signatures(
    """
    count(any?) int8
    array_agg(plain) array
    now clock_timestamp transaction_timestamp statement_timestamp() timestamptz
    gen_random_uuid() uuid
    random percent_rank cume_dist() float8
    nextval currval(text) int8
    setval(text, int8, bool?) int8
    pg_backend_pid row_number rank dense_rank() int8
    version current_database current_schema() text
    cluster_logical_timestamp() numeric
    current_setting(text, bool?) text
    set_config(text, text, bool) text
    lag lead first_value last_value(element) element
    nth_value(element, int8) element
    generate_series(int8, int8, int8?) int8
    generate_series(timestamp, timestamp, interval) timestamp
    generate_series(timestamptz, timestamptz, interval) timestamptz
    """
)
"""Functions that are resolved elsewhere: by nodes of the grammar, or before a plan is made."""

AGGREGATES = frozenset(
    {"count", "array_agg", "sum", "avg", "max", "min", "bool_and", "bool_or", "every", "stddev",
     "stddev_pop", "stddev_samp", "variance", "var_samp", "var_pop", "string_agg"}
)  # fmt: skip
WINDOWS = frozenset(
    {"ntile", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "lag", "lead",
     "first_value", "last_value", "nth_value"}
)  # fmt: skip
"""Functions of a window alone."""

_THIS, _TWO = ("this",), ("this", "expression")
_OF_ONE = (
    exp.Abs, exp.Ceil, exp.Floor, exp.Sqrt, exp.Sin, exp.Cos, exp.Tan, exp.Cot,
    exp.Atan, exp.Degrees, exp.Radians, exp.Length, exp.Lower, exp.Upper, exp.Initcap, exp.Reverse,
    exp.MD5, exp.Sum, exp.Avg, exp.Max, exp.Min, exp.Stddev, exp.Variance, exp.Ntile,
)  # fmt: skip
"""Nodes with one operand that are called as their classes."""
_NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    **{node: (node.key, _THIS) for node in _OF_ONE},
    **{node: (node.key, _TWO) for node in (exp.Atan2, exp.Left, exp.Right)},
    exp.Trunc: ("trunc", ("this", "decimals")),
    exp.Pow: ("power", _TWO),
    exp.BitLength: ("bit_length", _THIS),
    exp.Repeat: ("repeat", ("this", "times")),
    exp.Translate: ("translate", ("this", "from_", "to")),
    exp.StrPosition: ("position", ("substr", "this")),
    exp.StartsWith: ("starts_with", _TWO),
    exp.Overlay: ("overlay", ("this", "expression", "from_", "for_")),
    exp.SHA2Digest: ("sha256", _THIS),
    exp.Explode: ("unnest", _THIS),
    exp.ArrayAppend: ("array_append", _TWO),
    exp.ArrayPrepend: ("array_prepend", ("expression", "this")),
    exp.ArrayRemove: ("array_remove", _TWO),
    exp.ArrayPosition: ("array_position", ("this", "expression", "zero_based")),
    exp.ArraySize: ("array_length", _TWO),
    exp.ArrayToString: ("array_to_string", ("this", "expression", "null")),
    exp.LogicalAnd: ("bool_and", _THIS),
    exp.LogicalOr: ("bool_or", _THIS),
    exp.StddevPop: ("stddev_pop", _THIS),
    exp.StddevSamp: ("stddev_samp", _THIS),
    exp.VariancePop: ("var_pop", _THIS),
    exp.GroupConcat: ("string_agg", ("this", "separator")),
    exp.ArrayConcat: ("array_cat", ("this", "expressions")),
    exp.Concat: ("concat", ("expressions",)),
    exp.ConcatWs: ("concat_ws", ("expressions",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Trim: ("btrim", _TWO),
}
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}


def called(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """Returns the name and the operands of a call of a known function; None for any other node."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower().removeprefix(PREFIX)
        return (name, list(node.expressions)) if name in FUNCTIONS else None
    known = _NODES.get(type(node))
    if known is None or (isinstance(node, exp.Substring) and node.args.get("start") is None):
        return None
    name, places = known
    if isinstance(node, exp.Trim):
        name = _TRIMS.get(str(node.args.get("position") or "").upper(), name)
    given = [node.args[place] for place in places if node.args.get(place) is not None]
    listed = [each for part in given for each in (part if isinstance(part, list) else [part])]
    return name, list(map(operand_of, listed))


def operand_of(tree: exp.Expr) -> exp.Expr:
    """Returns the expression that an aggregate is over, without DISTINCT and ORDER BY."""
    match tree:
        case exp.Order():
            return operand_of(tree.this)
        case exp.Distinct() if len(tree.expressions) == 1:
            return operand_of(tree.expressions[0])
    return tree
