"""The one rewriter of a query's tree, which replaces each node by what a rule makes of it, and the
rules that put PostgreSQL's meaning of a node into DuckDB's words, by the node's class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from ...catalog.values.column_types import FLOAT4
from ...catalog.values.type_kinds import TypeKind
from ..analyze.types import conversions
from ..analyze.types.rows import check_fetch, entries
from ..analyze.types.types import Types, untyped
from ..builtins.known_functions import FUNCTIONS
from ..builtins.macros import PREFIX, call, cast_to, duckdb, plain
from ..builtins.signatures import ARITHMETIC, COMPARISONS, type_name
from ..syntax.trees import error_at, find_all, stepping, unsupported, walk
from . import aggregates, arrays, casts, numbers, texts, times

Replace = Callable[[exp.Expr], exp.Expr | None]
"""Returns the replacement of a node whose parts have been replaced; None where the node stays."""


def rewritten(query: exp.Expr, types: Types, rule: Replace) -> exp.Expr:
    """Returns the query with its nodes replaced, in place, inner ones first. What stands for a node
    has the node's type."""
    nodes = list(walk(query))
    for node in nodes:
        types.of(node)  # before anything is replaced
    for node in stepping(reversed(nodes)):
        made = rule(node)
        if made is None or made is node:
            continue
        types.say(made, types.of(node))
        if node is query:
            query = made
        else:
            node.replace(made)
    return query


Rule = Callable[[Any, Types], exp.Expr | None]
"""A rule for one class of nodes (`rewriter.Rule`)."""


def mean_as_postgres(query: exp.Expr, types: Types, typed: arrays.Typed) -> None:
    """Lowers `query` to DuckDB's expressions, in place. Raises SQLError as PostgreSQL does."""
    for filtered in list(find_all(query, exp.Filter)):
        aggregates.guard_filtered(filtered)

    def rule(node: exp.Expr) -> exp.Expr | None:
        of_operator = _OPERATORS.get(type(node))
        made = None if of_operator is None else of_operator(node, types, typed)
        if made is not None:
            types.say(made, types.of(node))
        meant = node if made is None else made
        of_class = _RULES.get(type(meant))
        return (None if of_class is None else of_class(meant, types)) or made

    made = rewritten(query, types, rule)
    assert made is query, query


def _summed(node: exp.Expr, types: Types) -> exp.Expr | None:
    """sum() and avg(), and the FILTER or OVER around one."""
    if conversions.is_sum(node, types):
        return cast_to(node.copy(), FLOAT4)
    lowered = isinstance(node, exp.Sum | exp.Avg) and times.summed(node, types)
    if isinstance(node, exp.Avg) and not lowered:
        numbers.averaged(node, types)
    return None


def _matched(node: exp.Expr, types: Types) -> exp.Expr | None:
    """A text and a pattern. Raises SQLError 0A000 for the patterns of an array."""
    if isinstance(node.expression, exp.Any | exp.All):
        hint = "EXISTS (SELECT FROM unnest(patterns) AS p WHERE x LIKE p) compares with each."
        raise unsupported("patterns by ANY or ALL", node, hint)
    return texts.escaped_like(node, types) if isinstance(node, exp.Like | exp.ILike) else None


def _arithmetic(node: exp.Expr, types: Types) -> exp.Expr | None:
    # A date plus days: DuckDB has that for its narrower integers alone.
    for days, moment in ((node.this, node.expression), (node.expression, node.this)):
        whole = types.kind(days) is TypeKind.INT8 and not isinstance(days.unnest(), exp.Literal)
        if whole and types.kind(moment) is TypeKind.DATE:
            days.replace(call("days", days))
    return numbers.divided(node, types) if isinstance(node, exp.Div) else None


def _series(node: exp.GenerateSeries, types: Types) -> None:
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
        raise error_at(node, "42883", "function generate_series of four arguments does not exist")
    for place in ("start", "end"):
        bound = node.args[place]
        if types.kind(bound) is TypeKind.DATE:
            bound.replace(exp.cast(bound.copy(), "TIMESTAMPTZ"))


def _function(node: exp.Anonymous, types: Types) -> exp.Expr | None:
    name, given = node.name.lower(), list(node.expressions)
    if name in times.CLOCKS and not given:
        return times.clock(name)
    made = _FUNCTIONS.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if made is None:
        return None
    name = name.removeprefix(PREFIX)
    if not any(signature.words(len(given)) is not None for signature in FUNCTIONS[name]):
        raise error_at(node, "42883", f"function {name} with {len(given)} arguments does not exist")
    return made(given, node, types)


def _type_name(argument: exp.Expr, types: Types) -> exp.Expr:
    type = types.declared(argument)
    if type is None and untyped(argument):
        return exp.Literal.string("unknown")
    if type is None:
        return duckdb("lower(typeof(:x))", x=argument)
    return exp.Literal.string(type_name(type))


_FUNCTIONS: dict[str, Callable[[list[exp.Expr], exp.Expr, Types], exp.Expr]] = {
    "round": lambda found, tree, types: numbers.rounded(found, types),
    "sign": lambda found, tree, types: numbers.sign(found[0], types),
    "to_char": lambda found, tree, types: times.written(found, types, tree=tree),
    "date_part": lambda found, tree, types: times.part(found, types, tree=tree),
    "date_trunc": lambda found, tree, types: times.truncated(found, types, tree=tree),
    "format": lambda found, tree, types: texts.formatted(found, types),
    "concat": lambda found, tree, types: texts.concat("concat", found, types),
    "length": lambda found, tree, types: texts.length(found[0], types),
    "octet_length": lambda found, tree, types: texts.octet_length(found[0], types),
    "every": lambda found, tree, types: plain("bool_and", *found),
    "variance": lambda found, tree, types: plain("var_samp", *found),
    "pg_typeof": lambda found, tree, types: _type_name(found[0], types),
}


def compared_rows(tree: exp.Expr) -> exp.Expr | None:
    """`(a, b) < (1, 2)` in terms of its parts: NULL where the parts leave it open."""
    if isinstance(tree, exp.In):
        rights = [entries(item) for item in tree.expressions]
    else:
        rights = [entries(tree.args["expression"])]
    left = entries(tree.this)
    rows = [right for right in rights if right is not None]
    if left is None or not rows:
        return None
    if len(rows) < len(rights) or any(len(row) != len(left) for row in rows):
        raise error_at(tree, "42601", "unequal number of entries in row expressions")
    match tree:
        case exp.In():
            tests = [exp.and_(*_pairs(exp.EQ, left, row)) for row in rows]
            return exp.paren(exp.or_(*tests), copy=False)
        case exp.EQ() | exp.NullSafeEQ():
            return exp.paren(exp.and_(*_pairs(type(tree), left, rows[0])), copy=False)
        case exp.NEQ() | exp.NullSafeNEQ():
            return exp.paren(exp.or_(*_pairs(type(tree), left, rows[0])), copy=False)
    strict = exp.LT if isinstance(tree, exp.LT | exp.LTE) else exp.GT
    made: exp.Expr = type(tree)(this=left[-1].copy(), expression=rows[0][-1].copy())
    for first, second in list(zip(left, rows[0], strict=True))[-2::-1]:
        same = exp.EQ(this=first.copy(), expression=second.copy())
        apart = strict(this=first.copy(), expression=second.copy())
        made = exp.or_(apart, exp.and_(same, made))
    return exp.paren(made, copy=False)


def _pairs(operator: type[exp.Expr], left: list[exp.Expr], right: list[exp.Expr]) -> list[exp.Expr]:
    return [
        operator(this=first.copy(), expression=second.copy())
        for first, second in zip(left, right, strict=True)
    ]


_DEGREE = "CAST(0.017453292519943295 AS DOUBLE)"
_FINITE = "CASE WHEN isinf(:x) THEN error('22003|input is out of range') ELSE {function}(:x) END"

_OPERATORS: dict[type[exp.Expr], arrays.OperatorRule] = {
    **arrays.OPERATORS,
    **dict.fromkeys((exp.RegexpLike, exp.RegexpILike), texts.found),
}
"""The rules of nodes whose operands may become parameters, before those of `_RULES`."""

_RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Anonymous: _function,
    exp.Literal: numbers.exact_literal,
    exp.Cast: casts.cast,
    **dict.fromkeys((exp.Sum, exp.Avg, exp.Filter, exp.Window), _summed),
    **dict.fromkeys((exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike), _matched),
    exp.ArrayConcat: lambda node, types: plain("array_join", node.this, *node.expressions),
    exp.ConcatWs: lambda node, types: texts.concat("concat_ws", node.expressions, types),
    exp.ArrayToString: arrays.joined,
    exp.ArrayPosition: arrays.position,
    exp.Collate: texts.check_collation,
    exp.Substring: texts.substring,
    exp.Extract: lambda node, types: times.field(node.name, node.expression, types, tree=node),
    **dict.fromkeys((exp.GenerateSeries, exp.ExplodingGenerateSeries), _series),
    exp.Fetch: check_fetch,
    exp.CurrentTimestamp: times.refuse_digits,
    **dict.fromkeys((exp.Localtimestamp, exp.Localtime), times.local),
    **dict.fromkeys((exp.ArrayAgg, exp.GroupConcat), aggregates.listed),
    **dict.fromkeys((*COMPARISONS, exp.In), lambda node, types: compared_rows(node)),
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    exp.Degrees: lambda node, types: duckdb(f"CAST(:x AS DOUBLE) / {_DEGREE}", x=node.this),
    exp.Radians: lambda node, types: duckdb(f"CAST(:x AS DOUBLE) * {_DEGREE}", x=node.this),
    **dict.fromkeys(
        (exp.Sin, exp.Cos, exp.Tan, exp.Cot),
        lambda node, types: duckdb(_FINITE.format(function=node.key), x=node.this),
    ),
    exp.Pow: lambda node, types: call("power", node.this, node.expression),
}
