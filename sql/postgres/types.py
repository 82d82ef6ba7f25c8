"""The types of a query's expressions, as far as they are plain to see.

Columns of tables, derived tables and common table expressions are followed to where they come
from. None is the type of whatever is not known, which includes a text literal and NULL: they take
the type of what they meet (`untyped`).
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ...catalog.column_types import ColumnType
from ...catalog.type_kinds import TypeKind
from ..binder import Relations, scopes_in
from ..expression_types import FUNCTIONS
from ..introspection.virtual_table import is_virtual
from ..parser import folded
from ..parser.queries import table_name
from ..scalars import broad_type_of_cast
from .macros import PREFIX

INT8 = ColumnType(TypeKind.INT8)
FLOAT8 = ColumnType(TypeKind.FLOAT8)
STRING = ColumnType(TypeKind.STRING)
BOOL = ColumnType(TypeKind.BOOL)
BYTES = ColumnType(TypeKind.BYTES)
DATE = ColumnType(TypeKind.DATE)
TIMESTAMP = ColumnType(TypeKind.TIMESTAMP)
TIMESTAMPTZ = ColumnType(TypeKind.TIMESTAMPTZ)
INTERVAL = ColumnType(TypeKind.INTERVAL)
UUID = ColumnType(TypeKind.UUID)

SCALE_UNKNOWN = 12
"""Fractional digits that are kept of a decimal about which nothing more is known."""
_DEPTH_MAX = 200
"""Expressions nested deeper are of unknown type: the walk is recursive."""

NUMBERS = (TypeKind.INT8, TypeKind.DECIMAL, TypeKind.FLOAT8)

_TRUTHS = (
    exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Exists,
    exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT,
    exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LogicalAnd, exp.LogicalOr,
)  # fmt: skip
_TEXTS = (exp.DPipe, exp.Lower, exp.Upper, exp.Concat, exp.ConcatWs, exp.GroupConcat, exp.Overlay,
          exp.Left, exp.Right, exp.Initcap, exp.Reverse, exp.Repeat, exp.Translate)  # fmt: skip
_COUNTS = (exp.Count, exp.CountIf, exp.Length, exp.StrPosition, exp.RowNumber, exp.Rank,
           exp.DenseRank, exp.Ntile)  # fmt: skip
_FLOATS = (exp.Exp, exp.Ln, exp.Sqrt, exp.Cbrt, exp.Stddev, exp.StddevPop, exp.StddevSamp,
           exp.Variance, exp.VariancePop, exp.PercentileCont, exp.Corr, exp.Pi)  # fmt: skip
_SAME = (
    exp.Paren, exp.Alias, exp.Neg, exp.Abs, exp.Max, exp.Min, exp.Floor, exp.Ceil, exp.Filter,
    exp.Window, exp.IgnoreNulls, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
    exp.Order, exp.Distinct, exp.Collate, exp.AnyValue,
)  # fmt: skip
_FIRST_KNOWN = (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif)

_TEXT_FUNCTIONS = (
    "substr split_part upper lpad rpad btrim ltrim rtrim replace chr to_hex encode quote_ident "
    "convert_from quote_literal quote_nullable regexp_substr to_char format concat float_text "
    "regexp_replace pg_typeof"
)
_INTEGER_FUNCTIONS = "strpos char_length character_length octet_length length ascii"
_FLOAT_FUNCTIONS = "power pow sqrt exp ln log log10 asin acos date_part"

_RESULTS: dict[str, ColumnType] = {
    **dict.fromkeys(_TEXT_FUNCTIONS.split(), STRING),
    **dict.fromkeys(_INTEGER_FUNCTIONS.split(), INT8),
    **dict.fromkeys(_FLOAT_FUNCTIONS.split(), FLOAT8),
    **dict.fromkeys(["decode", "convert_to"], BYTES),
    "make_date": DATE,
    "to_date": DATE,
    "to_timestamp": TIMESTAMPTZ,
    "regexp_like": BOOL,
    "integer_of_text": INT8,
    "bool_of_text": BOOL,
}


def untyped(tree: exp.Expr) -> bool:
    """Whether an expression takes the type of what it meets."""
    inner = tree.unnest()
    return isinstance(inner, exp.Null) or (isinstance(inner, exp.Literal) and inner.is_string)


class Types:
    """The types of one query. Trees that were put in place of others are typed by their own."""

    def __init__(self, query: exp.Expr, relations: Relations) -> None:
        self._relations = relations
        # Tables of the catalog have texts and INT8 where PostgreSQL has types of its own.
        self.strict = not any(map(is_virtual, relations.values()))
        self._scopes: dict[int, list[QueryScope]] = {}
        for scope in scopes_in(query):
            for column in scope.columns:
                self._scopes.setdefault(id(column), []).append(scope)
        self._known: dict[int, ColumnType | None] = {}
        self._kept: list[exp.Expr] = []  # ids stay theirs as long as they live
        self._depth = 0

    def of(self, tree: exp.Expr | None) -> ColumnType | None:
        if tree is None or self._depth > _DEPTH_MAX:
            return None
        key = id(tree)
        if key not in self._known:
            self._depth += 1
            self._kept.append(tree)
            self._known[key] = None  # a query that is recursive meets itself
            self._known[key] = self._infer(tree)
            self._depth -= 1
        return self._known[key]

    def kind(self, tree: exp.Expr | None) -> TypeKind | None:
        found = self.of(tree)
        return None if found is None else found.kind

    def _infer(self, tree: exp.Expr) -> ColumnType | None:
        match tree:
            case exp.Column():
                return self._column(tree)
            case exp.Literal():
                return None if tree.is_string else literal_type(tree.this)
            case exp.Boolean():
                return BOOL
            case exp.Cast():
                return broad_type_of_cast(tree)
            case exp.Sum():
                return self._sum(tree)
            case exp.Avg():
                return FLOAT8 if self.kind(tree.this) is not TypeKind.INTERVAL else INTERVAL
            case exp.Case():
                results = [branch.args.get("true") for branch in tree.args.get("ifs") or ()]
                return self._common([*results, tree.args.get("default")])
            case exp.Round() | exp.Trunc():
                return None if tree.args.get("decimals") else self.of(tree.this)
            case exp.Substring() | exp.Trim():
                found = self.of(tree.this)
                return found if found == BYTES else STRING
            case exp.Subquery():
                inner = tree.this
                return self._items(inner)[0] if isinstance(inner, exp.Select) else None
            case exp.Anonymous():
                name = tree.name.lower()
                if name == f"{PREFIX}round":
                    return self._rounded(tree.expressions)
                return _RESULTS.get(name.removeprefix(PREFIX)) or FUNCTIONS.get(name)
            case exp.CurrentTimestamp():
                return TIMESTAMPTZ
            case exp.CurrentDate():
                return DATE
            case exp.Interval():
                return INTERVAL
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._arithmetic(tree)
        if isinstance(tree, _SAME):
            return self.of(tree.this)
        if isinstance(tree, _FIRST_KNOWN):
            return self._common(list(tree.iter_expressions()))
        for nodes, type in ((_TRUTHS, BOOL), (_COUNTS, INT8), (_FLOATS, FLOAT8)):
            if isinstance(tree, nodes):
                return type
        if isinstance(tree, exp.DPipe):
            return self._concatenated(tree)
        return STRING if isinstance(tree, _TEXTS) else None

    def _rounded(self, arguments: list[exp.Expr]) -> ColumnType | None:
        if len(arguments) == 1:
            found = self.of(arguments[0])
            return decimal(0) if found is not None and found.kind is TypeKind.DECIMAL else FLOAT8
        places = constant_places(arguments[1]) if len(arguments) == 2 else None
        return None if places is None else decimal(places)

    def _concatenated(self, tree: exp.DPipe) -> ColumnType | None:
        found = {self.kind(tree.this), self.kind(tree.expression)}
        if TypeKind.BYTES in found:
            return BYTES
        return None if found & {TypeKind.ARRAY, TypeKind.JSONB} else STRING

    def _sum(self, tree: exp.Sum) -> ColumnType | None:
        found = self.of(tree.this)
        match found:
            case ColumnType(kind=TypeKind.INT8):
                return decimal(0)
            case ColumnType(kind=TypeKind.DECIMAL):
                return decimal(found.decimal[1])
        return found

    def _common(self, trees: Iterable[exp.Expr | None]) -> ColumnType | None:
        """The type of alternatives: the widest number, or the first that is known."""
        found = [type for tree in trees if (type := self.of(tree)) is not None]
        if not found:
            return None
        if any(type.kind is TypeKind.FLOAT8 for type in found):
            return FLOAT8
        scales = [type.decimal[1] for type in found if type.kind is TypeKind.DECIMAL]
        return decimal(max(scales)) if scales else found[0]

    def _arithmetic(self, tree: exp.Expr) -> ColumnType | None:
        left, right = self.of(tree.this), self.of(tree.args["expression"])
        if left is None and untyped(tree.this):
            left = right
        if right is None and untyped(tree.args["expression"]):
            right = left
        if left is None or right is None:
            return None
        kinds = {left.kind, right.kind}
        if kinds == {TypeKind.INT8}:
            return INT8
        if not kinds <= set(NUMBERS):
            return _moments(tree, left, right)
        if TypeKind.FLOAT8 in kinds:
            return FLOAT8
        scales = [t.decimal[1] if t.kind is TypeKind.DECIMAL else 0 for t in (left, right)]
        match tree:
            case exp.Mul():
                return decimal(min(sum(scales), 38))
            case exp.Div():
                return decimal(quotient_scale(*scales))
        return decimal(max(scales))

    def _column(self, column: exp.Column) -> ColumnType | None:
        if not isinstance(column.this, exp.Identifier):
            return None
        name, qualifier = folded(column.this), column.args.get("table")
        for scope in self._scopes.get(id(column), ()):
            found: list[ColumnType | None] = []
            for alias, source in scope.sources.items():
                if qualifier is None or alias.lower() == folded(qualifier).lower():
                    has, type = self._of_source(source, name)
                    if has:
                        found.append(type)
            if found:
                return found[0] if len(found) == 1 or qualifier is None else None
        return None

    def _of_source(
        self, source: exp.Expr | QueryScope, name: str
    ) -> tuple[bool, ColumnType | None]:
        """Whether a source has a column, and its type."""
        if isinstance(source, exp.Table):
            if isinstance(source.this, exp.GenerateSeries):
                names = _given_names(source)
                return name in (*names, source.alias.lower()), self.of(source.this.args["start"])
            if not isinstance(source.this, exp.Identifier):
                return False, None
            descriptor = self._relations.get(table_name(source).parts)
            column = descriptor.find_column(name) if descriptor is not None else None
            return column is not None, None if column is None else column.type.broad
        if not isinstance(source, QueryScope):
            return False, None
        names, types = self.columns_of(source.expression)
        return (True, types[names.index(name)]) if name in names else (False, None)

    def columns_of(self, tree: exp.Expr) -> tuple[list[str], list[ColumnType | None]]:
        """The columns of a derived table or common table expression."""
        select: exp.Expr = tree
        while isinstance(select, exp.SetOperation | exp.Subquery):
            select = select.this
        if isinstance(select, exp.Values):
            rows = [row.expressions for row in select.expressions if isinstance(row, exp.Tuple)]
            types = [self._common(column) for column in zip(*rows, strict=False)]
            names = [f"column{place + 1}" for place in range(len(types))]
        elif isinstance(select, exp.Select):
            types = self._items(select)
            names = [item.alias_or_name.lower() for item in select.expressions]
        else:
            return [], []
        given = _given_names(tree)
        return [*given, *names[len(given) :]], types

    def _items(self, select: exp.Select) -> list[ColumnType | None]:
        return [self.of(item) for item in select.expressions] or [None]


def _given_names(tree: exp.Expr) -> list[str]:
    """The names of `AS t (a, b)`."""
    holder = tree if tree.args.get("alias") else tree.parent
    alias = holder.args.get("alias") if holder is not None else None
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return [folded(c if isinstance(c, exp.Identifier) else c.this) for c in columns or ()]


_MOMENTS = (TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ)


def _moments(tree: exp.Expr, left: ColumnType, right: ColumnType) -> ColumnType | None:
    if left.kind is TypeKind.DATE and right.kind is TypeKind.DATE:
        return INT8 if isinstance(tree, exp.Sub) else None
    if left.kind in _MOMENTS and right.kind in _MOMENTS:
        return INTERVAL if isinstance(tree, exp.Sub) else None
    for moment, other in ((left, right), (right, left)):
        if moment.kind is TypeKind.DATE and other.kind is TypeKind.INT8:
            return DATE
        if moment.kind in _MOMENTS and other.kind is TypeKind.INTERVAL:
            return TIMESTAMP if moment.kind is TypeKind.DATE else moment
    return None


def decimal(scale: int) -> ColumnType:
    return ColumnType(TypeKind.DECIMAL, 38, scale)


def quotient_scale(left: int, right: int) -> int:
    """How many fractional digits a quotient has: sixteen, as PostgreSQL's has from 1 to 9999."""
    return max(16, left, right)


def constant_places(tree: exp.Expr) -> int | None:
    """The number of fractional digits that round() is asked for, if it is plain to see."""
    text = tree.this if isinstance(tree, exp.Literal) else ""
    return int(text) if text.isdecimal() and int(text) <= 30 else None


def literal_type(text: str) -> ColumnType:
    """Digits are an INT8, anything else is a decimal with the digits that are written."""
    if text.isdecimal():
        return INT8
    mantissa, _, exponent = text.lower().partition("e")
    scale = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return decimal(min(max(scale, 0), 38))
