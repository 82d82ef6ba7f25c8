"""The tree of a query with PostgreSQL's meaning of each node put into DuckDB's words."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.types import sets, singles
from ..analyze.types.derived_types import FLOAT4
from ..analyze.types.resolution import entries
from ..analyze.types.types import Types, untyped
from ..builtins.known_functions import FUNCTIONS, called
from ..builtins.macros import PREFIX
from ..builtins.operators import ARITHMETIC, COMPARISONS
from ..builtins.templates import call, cast_to, duckdb, plain
from ..builtins.type_names import type_name
from ..parse import position_of
from ..syntax.refusals import unsupported
from ..syntax.walks import find_all, stepping, walk
from . import (
    arrays,
    casts,
    numbers,
    patterns,
    spans,
    texts,
    times,
)
from .aggregation import aggregates
from .aggregation.aggregates import percentile


def mean_as_postgres(query: exp.Expr, types: Types) -> None:
    """Lowers `query` to DuckDB's expressions, in place. Raises SQLError as PostgreSQL does."""
    sets.check_conditional_series(query)
    for filtered in list(find_all(query, exp.Filter)):
        aggregates.guard_filtered(filtered)
    nodes = list(walk(query))
    for node in nodes:
        types.of(node)  # before anything is replaced
    for node in stepping(reversed(nodes)):
        made = _meaning(node, types)
        if made is not None and made is not node:
            assert node is not query, node
            node.replace(made)
            types.say(made, types.of(node))


def _meaning(node: exp.Expr, types: Types) -> exp.Expr | None:
    """Returns the replacement of a node whose parts have been replaced; None where it stays."""
    made = _of_bytes(node, types) or _of_numbers(node, types)
    if made is not None:
        return made
    match node:
        case exp.Anonymous():
            return _function(node, types)
        case exp.Literal():
            return numbers.exact_literal(node, types)
        case exp.Cast():
            return casts.cast(node, types)
        case exp.Sum() | exp.Avg() | exp.Filter() | exp.Window() if singles.is_sum(node, types):
            return cast_to(node.copy(), FLOAT4)
        case exp.Sum() | exp.Avg():
            if not spans.summed(node, types) and isinstance(node, exp.Avg):
                numbers.averaged(node, types)
            return None
        case exp.Like() | exp.ILike() | exp.RegexpLike() | exp.RegexpILike():
            return _matched(node, types)
        case exp.ArrayConcat() if len(node.expressions) == 1:
            return plain("array_join", node.this, *node.expressions)
        case exp.ConcatWs():
            return texts.concat_ws(node, types)
        case exp.ArrayToString():
            return arrays.joined(node, types)
        case exp.ArrayPosition():
            return arrays.position(node)
        case exp.Collate():
            texts.check_letters(node)
            return None
        case exp.Substring():
            return texts.substring(node, types)
        case exp.Extract():
            return times.field(node.name, node.expression, types, tree=node)
        case exp.GenerateSeries():
            _check_series(node, types)
            return None
        case exp.Select():
            sets.check_order_of_distinct(node)
            sets.check_distinct_series(node)
            sets.check_rows(node)
            return None
        case exp.Fetch():
            sets.check_fetch(node)
            return None
        case exp.Localtimestamp() | exp.Localtime():
            return times.local(node)
    if _meant_aggregate(node, types):
        return None
    return _operator(node, types)


def _meant_aggregate(node: exp.Expr, types: Types) -> bool:
    """Lowers an aggregate in place; returns False for any other node."""
    match node:
        case exp.ArrayAgg() | exp.GroupConcat():
            aggregates.sorted_distinct(node)
            aggregates.joined_by_nothing(node)
        case exp.WithinGroup(this=exp.PercentileCont() | exp.PercentileDisc()):
            percentile(node, types)
        case _ if isinstance(node, aggregates.OF_PAIRS):
            aggregates.paired(node)
        case _ if isinstance(node, aggregates.SPREADS):
            aggregates.spread(node, types)
        case _:
            return False
    return True


def _of_bytes(node: exp.Expr, types: Types) -> exp.Expr | None:
    """Lowers the functions of text that BYTEA has too; returns None for any other node."""
    found = called(node)
    if found is None or not found[1] or types.kind(found[1][0]) is not TypeKind.BYTES:
        return None
    name, given = found
    match name:
        case "substr" | "substring" if len(given) == 2:
            return duckdb(
                "unhex(substring(hex(:x), 2 * greatest(:f, 1) - 1))", x=given[0], f=given[1]
            )
        case "substr" | "substring":
            return duckdb(_PART_OF_BYTES, x=given[0], f=given[1], n=given[2])
        case "bit_length":
            return duckdb("octet_length(:x) * 8", x=given[0])
    return None


_PART_OF_BYTES = """
CASE WHEN :n < 0 THEN error('22011|negative substring length not allowed')
ELSE unhex(substring(hex(:x), 2 * greatest(:f, 1) - 1,
    2 * greatest(:f + :n - greatest(:f, 1), 0))) END
"""


def _of_numbers(node: exp.Expr, types: Types) -> exp.Expr | None:
    """Lowers functions of numbers and the minus; returns None for any other node."""
    match node:
        case exp.Degrees():
            return duckdb(f"CAST(:x AS DOUBLE) / {_DEGREE}", x=node.this)
        case exp.Radians():
            return duckdb(f"CAST(:x AS DOUBLE) * {_DEGREE}", x=node.this)
        case exp.Sin() | exp.Cos() | exp.Tan() | exp.Cot():
            return duckdb(_FINITE.format(function=node.key), x=node.this)
        case exp.Pow():
            return call("power", node.this, node.expression)
        case exp.Factorial():
            return call("factorial", node.this)
        case exp.Round():
            return numbers.rounded([node.this, *_optional(node, "decimals")], types)
        case exp.Neg() if types.kind(node.this) is TypeKind.INT8:
            return numbers.negated(node)
    return None


_DEGREE = "CAST(0.017453292519943295 AS DOUBLE)"
_FINITE = "CASE WHEN isinf(:x) THEN error('22003|input is out of range') ELSE {function}(:x) END"


def _matched(node: exp.Expr, types: Types) -> exp.Expr | None:
    """A text and a pattern, or the patterns of an array."""
    some = node.expression
    padded = texts.padded(node.this, types)
    if padded is not None:
        node.this.replace(padded)
    if not isinstance(some, exp.Any | exp.All):
        return _matched_one(node, some, types)
    one = node.copy()
    return arrays.any_like(node, _matched_one(one, arrays.ELEMENT, types) or one, some)


def _matched_one(node: exp.Expr, pattern: exp.Expr, types: Types) -> exp.Expr | None:
    if not isinstance(node, exp.Like | exp.ILike):
        flags = patterns.ANY_CASE if isinstance(node, exp.RegexpILike) else ""
        return patterns.like(node.this, pattern, flags, tree=node)
    node.set("expression", pattern.copy())
    return texts.escaped_like(node, types)


def _operator(node: exp.Expr, types: Types) -> exp.Expr | None:
    if isinstance(node, (*COMPARISONS, exp.In)):
        return compared_rows(node)
    if isinstance(node, ARITHMETIC):
        _days_of_dates(node, types)
        if isinstance(node, exp.Mul | exp.Div) and (made := spans.scaled(node, types)) is not None:
            return made
        return numbers.divided(node, types) if isinstance(node, exp.Div) else None
    return None


def _days_of_dates(node: exp.Expr, types: Types) -> None:
    """A date plus days: DuckDB has that for its narrower integers alone."""
    for days, moment in ((node.this, node.expression), (node.expression, node.this)):
        whole = types.kind(days) is TypeKind.INT8 and not isinstance(days.unnest(), exp.Literal)
        if whole and types.kind(moment) is TypeKind.DATE:
            days.replace(call("days", days))


def _check_series(node: exp.GenerateSeries, types: Types) -> None:
    """Makes a series of dates one of TIMESTAMPTZ. Raises SQLError 42883 for a fourth operand, and
    0A000 for decimals, of which DuckDB has no series."""
    element = types.of(node)
    if element is not None and element.kind is TypeKind.DECIMAL:
        raise unsupported(
            "generate_series() of decimals",
            node,
            "n * 0.1 over generate_series(0, 10) AS s(n) is one of tenths.",
        )
    if node.args.get("is_end_exclusive") is not None:
        raise SQLError(
            "42883",
            "function generate_series of four arguments does not exist",
            position=position_of(node),
        )
    for place in ("start", "end"):
        bound = node.args[place]
        if types.kind(bound) is TypeKind.DATE:
            bound.replace(exp.cast(bound.copy(), "TIMESTAMPTZ"))


def _optional(node: exp.Expr, name: str) -> list[exp.Expr]:
    found = node.args.get(name)
    return [found] if found is not None else []


Make = Callable[[list[exp.Expr], exp.Expr, Types], exp.Expr]

_FUNCTIONS: dict[str, Make] = {
    "div": lambda found, tree, types: numbers.whole_quotient(found[0], found[1], types),
    "round": lambda found, tree, types: numbers.rounded(found, types),
    "sign": lambda found, tree, types: numbers.sign(found[0], types),
    "log": lambda found, tree, types: numbers.logarithm(found),
    "to_char": lambda found, tree, types: times.written(found, types, tree=tree),
    "date_part": lambda found, tree, types: times.part(found, types, tree=tree),
    "date_trunc": lambda found, tree, types: times.truncated(found, types, tree=tree),
    "format": lambda found, tree, types: texts.formatted(found, types),
    "concat": lambda found, tree, types: texts.concat(found, types),
    "length": lambda found, tree, types: texts.length(found[0], types),
    "octet_length": lambda found, tree, types: texts.octet_length(found[0], types),
    "every": lambda found, tree, types: plain("bool_and", *found),
    "variance": lambda found, tree, types: plain("var_samp", *found),
    "pg_typeof": lambda found, tree, types: _type_name(found[0], types),
}


def _type_name(argument: exp.Expr, types: Types) -> exp.Expr:
    type = types.declared(argument)
    if type is None and untyped(argument):
        return exp.Literal.string("unknown")
    if type is None:
        return duckdb("lower(typeof(:x))", x=argument)
    return exp.Literal.string(type_name(type))


def _function(node: exp.Anonymous, types: Types) -> exp.Expr | None:
    name = node.name.lower()
    if name in times.CLOCKS and not node.expressions:
        return times.clock(name)
    if name in ("num_nulls", "num_nonnulls"):
        return numbers.nulls(node.expressions, there=name == "num_nonnulls")
    if name == "array_fill":
        return arrays.filled(node.expressions, types, tree=node)
    if name == "enum_range" and len(node.expressions) == 2:
        return plain("enum_range_boundary", *node.expressions)
    if name == "cardinality":
        return exp.cast(plain("len", *node.expressions), "BIGINT")
    if name == "isfinite" and types.kind(node.expressions[0]) is TypeKind.INTERVAL:
        return duckdb("CASE WHEN :x IS NOT NULL THEN true END", x=node.expressions[0])
    if name.startswith(PREFIX):
        name = name.removeprefix(PREFIX)
        if name in patterns.FUNCTIONS:
            return patterns.FUNCTIONS[name](list(node.expressions), types, node)
        if name in _FUNCTIONS:
            count, signatures = len(node.expressions), FUNCTIONS[name]
            if not any(signature.words(count) is not None for signature in signatures):
                raise SQLError(
                    "42883",
                    f"function {name} with {count} arguments does not exist",
                    position=position_of(node),
                )
            return _FUNCTIONS[name](list(node.expressions), node, types)
    return None


def compared_rows(tree: exp.Expr) -> exp.Expr | None:
    """`(a, b) < (1, 2)` in terms of its parts: NULL where the parts leave it open."""
    if isinstance(tree, exp.In):
        return _in_rows(tree)
    left, right = entries(tree.this), entries(tree.args["expression"])
    if left is None or right is None:
        return None
    if len(left) != len(right):
        raise SQLError(
            "42601", "unequal number of entries in row expressions", position=position_of(tree)
        )
    match tree:
        case exp.EQ():
            return exp.paren(exp.and_(*_pairs(exp.EQ, left, right)), copy=False)
        case exp.NEQ():
            return exp.paren(exp.or_(*_pairs(exp.NEQ, left, right)), copy=False)
        case exp.NullSafeEQ():
            return exp.paren(exp.and_(*_pairs(exp.NullSafeEQ, left, right)), copy=False)
        case exp.NullSafeNEQ():
            return exp.paren(exp.or_(*_pairs(exp.NullSafeNEQ, left, right)), copy=False)
    strict = exp.LT if isinstance(tree, exp.LT | exp.LTE) else exp.GT
    made: exp.Expr = type(tree)(this=left[-1].copy(), expression=right[-1].copy())
    for first, second in list(zip(left, right, strict=True))[-2::-1]:
        same = exp.EQ(this=first.copy(), expression=second.copy())
        apart = strict(this=first.copy(), expression=second.copy())
        made = exp.or_(apart, exp.and_(same, made))
    return exp.paren(made, copy=False)


def _in_rows(tree: exp.In) -> exp.Expr | None:
    left = entries(tree.this)
    if left is None or not tree.expressions:
        return None
    rows = [entries(item) for item in tree.expressions]
    if any(row is None or len(row) != len(left) for row in rows):
        raise SQLError(
            "42601", "unequal number of entries in row expressions", position=position_of(tree)
        )
    tests = [exp.and_(*_pairs(exp.EQ, left, row)) for row in rows if row is not None]
    return exp.paren(exp.or_(*tests), copy=False)


def _pairs(
    operator: type[exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ],
    left: list[exp.Expr],
    right: list[exp.Expr],
) -> list[exp.Expr]:
    return [
        operator(this=first.copy(), expression=second.copy())
        for first, second in zip(left, right, strict=True)
    ]
