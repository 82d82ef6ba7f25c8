"""The types of a query's expressions, as far as they are plain to see.

Columns of tables, derived tables and common table expressions are followed to where they come
from; functions and operators are looked up by their signatures. None is the type of whatever is
not known, which includes a text literal and NULL: they take the type of what they meet (`untyped`).

A type is kept with its tree, and so with each copy of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope
from sqlglot.optimizer.scope import ScopeType

from ....catalog.descriptors.enum_columns import enum_in
from ....catalog.values.column_types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT8,
    INTERVAL,
    JSONB,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    ColumnType,
    array_of,
)
from ....catalog.values.type_kinds import FLOATS, TypeKind
from ....kvlayer.process.fibre import give_way
from ...builtins.documents.calls import RESULTS
from ...builtins.known_functions import FUNCTIONS, called, operand_of
from ...builtins.macros import PREFIX
from ...builtins.signatures import (
    NUMBERS,
    SIGNS,
    Ambiguous,
    Argument,
    Chosen,
    Given,
    operation,
    resolve,
)
from ...syntax.trees import (
    CAST_TYPE,
    DECLARED,
    find_all,
    find_in_scope,
    folded,
    stepping,
    table_name,
)
from ..binder import Relations, scopes_in
from ..columns.stars import given_names, sources_of, tree_of
from ..given_tables import in_catalog
from ..scalars import broad_type_of_cast, parameter_number, type_of_cast
from .derived_types import (
    AT_ZONE,
    constant_places,
    decimal,
    literal_type,
    of_bare_numeric,
    quotient_scale,
    series,
    whole_of_recursion,
    widest,
)

UUID = ColumnType(TypeKind.UUID)

Lookup = Callable[[exp.Column], ColumnType | None]
Hints = Sequence[ColumnType | None]
Columns = list[tuple[str, ColumnType | None]]

_DEPTH_MAX = 200
"""Expressions nested deeper are of unknown type: the walk is recursive."""
_MAGNITUDE_OF_LEAST = str(2**63)
"""Digits that are an INT8 behind a minus only."""
_TYPE = "postgres_type"

_CHAINED = (exp.Binary, exp.Paren, exp.Not, exp.Neg, exp.Cast)
_WITHIN = {"integer_of_text": INT8, "bool_of_text": BOOL, "float_text": STRING,
           "single_text": STRING, "single": FLOAT4, "text": STRING,
           "subscripts": array_of(INT8), "vector_subscripts": array_of(INT8),
           "places_to": array_of(INT8)}  # fmt: skip
"""Result types of the macros that replace casts."""
_KEPT_MAX = 4096
"""Calls whose signature is kept, by name and types of operands."""


@lru_cache(_KEPT_MAX)
def _function(name: str, given: tuple[Argument, ...]) -> Chosen | None:
    return resolve(FUNCTIONS[name], given)


def untyped(tree: exp.Expr) -> bool:
    """Whether an expression has no type of its own: a text literal or NULL."""
    inner = tree.unnest()
    return isinstance(inner, exp.Null) or (isinstance(inner, exp.Literal) and inner.is_string)


class Types:
    """The types of one query. Trees that were put in place of others are typed by their own."""

    def __init__(self, query: exp.Expr, relations: Relations) -> None:
        self.relations = relations
        # Tables of the catalog have texts and INT8 where PostgreSQL has types of its own.
        self.strict = not any(map(in_catalog, relations.values()))
        self._scopes: dict[int, QueryScope] = {}
        self.scopes = scopes_in(query)
        for scope in self.scopes:
            for column in find_in_scope(scope, exp.Column):
                self._scopes.setdefault(id(column), scope)
            for column in _names_of_items(scope.expression):
                self._scopes.pop(id(column), None)
        self._query = query  # ids stay theirs as long as they live
        self._depth = 0

    def of(self, tree: exp.Expr | None) -> ColumnType | None:
        if tree is None or self._depth > _DEPTH_MAX:
            return None
        kept = self._kept(tree)
        if _TYPE not in kept:
            # What a chain begins with comes first, so that its length is no depth.
            chain = [tree]
            while isinstance(chain[-1], _CHAINED) and self._untouched(chain[-1].this):
                chain.append(chain[-1].this)
            for part in reversed(chain):
                give_way()
                self._depth += 1
                self._kept(part)[_TYPE] = None  # a query that is recursive meets itself
                self._kept(part)[_TYPE] = self._infer(part)
                self._depth -= 1
        found: ColumnType | None = kept[_TYPE]
        return found

    def _untouched(self, part: exp.Expr | None) -> bool:
        return part is not None and _TYPE not in self._kept(part)

    def _kept(self, tree: exp.Expr) -> dict[str, Any]:
        """Returns the dictionary in which the type of a tree is kept."""
        return tree.meta

    def kind(self, tree: exp.Expr | None) -> TypeKind | None:
        found = self.of(tree)
        return None if found is None else found.kind

    def say(self, tree: exp.Expr, type: ColumnType | None) -> None:
        """Keeps a type for a tree that was put in place of another."""
        tree.meta[_TYPE] = type

    def given(self, tree: exp.Expr) -> Argument:
        """The type of an operand, in terms of signatures."""
        found = self.of(tree)
        if found is not None:
            return found
        return Given.LITERAL if self.untyped(tree) else Given.ANYTHING

    def untyped(self, tree: exp.Expr) -> bool:
        """Whether an expression that has no type takes the one that is wanted of it."""
        return untyped(tree)

    def declared(self, tree: exp.Expr) -> ColumnType | None:
        """The type that CREATE TABLE or a cast says, which may be narrower."""
        return self.passed_on(tree) or self.of(tree)

    def passed_on(self, item: exp.Expr) -> ColumnType | None:
        """The type that an item of a query has for who reads it: columns and casts have their own;
        an expression has the enumeration that it is of, and a type of the catalog that all of its
        parts have, as CASE of object ids does. None where it is what is computed."""
        if isinstance(item, exp.Paren):
            return self.passed_on(item.this)
        found = self.of(item)
        if isinstance(item, exp.Column) or DECLARED in item.meta:
            said: ColumnType | None = item.meta.get(DECLARED)
            return said
        if isinstance(item, exp.Cast):
            return type_of_cast(item)
        if found is not None and enum_in(found) is not None:
            return found
        kept = self._of_parts(item)
        return kept if kept is not None and kept.in_catalog_only else None

    def _of_parts(self, item: exp.Expr) -> ColumnType | None:
        """The type of an expression that keeps the type of its parts."""
        match item:
            case exp.Case() | exp.Coalesce():
                parts = [branch.args["true"] for branch in item.args.get("ifs") or ()]
                parts += [item.args.get("default"), *item.expressions]
                parts += [item.this] if isinstance(item, exp.Coalesce) else []
                given = [part for part in parts if part and not isinstance(part, exp.Null)]
                found = {self.passed_on(part) for part in given}
                return found.pop() if len(found) == 1 else None
            case exp.ArrayAgg():
                element = self.passed_on(operand_of(item.this))
                return None if element is None or element.element is not None else array_of(element)
            case exp.Subquery():
                _, columns = self.declared_of(item)
                return columns[0] if columns else None
        return None

    def meant(self, tree: exp.Expr) -> Chosen | None:
        """The signature of a call or an operator, where it is known. Raises Ambiguous."""
        call = called(tree)
        if call is not None:
            name, operands = call
            return _function(name, tuple(map(self.given, operands)))
        if isinstance(tree, exp.Binary) and type(tree) in SIGNS:
            sides = self.given(tree.this), self.given(tree.args["expression"])
            return operation(SIGNS[type(tree)], *sides)
        return None

    def _infer(self, tree: exp.Expr) -> ColumnType | None:
        known = _TYPES.get(type(tree))
        if known is not None:
            return known
        rule = _RULES.get(type(tree))
        return self._called(tree) if rule is None else rule(self, tree)

    def _negation(self, tree: exp.Neg) -> ColumnType | None:
        if isinstance(tree.this, exp.Literal) and tree.this.this == _MAGNITUDE_OF_LEAST:
            return INT8
        return self.of(tree.this) or (FLOAT8 if self.untyped(tree.this) else None)

    def _nullif(self, tree: exp.Nullif) -> ColumnType | None:
        found = self.of(tree.this) or (STRING if self.untyped(tree.this) else None)
        others = (found, self.of(tree.args["expression"]))
        floats = found != FLOAT4 and (FLOAT8 in others or FLOAT4 in others)
        return FLOAT8 if floats else found

    def _element(self, tree: exp.Expr) -> ColumnType | None:
        found = self.of(tree.this)
        return None if found is None else found.element

    def _cast(self, tree: exp.Cast) -> ColumnType | None:
        made = of_bare_numeric(tree, self.of(tree.this))
        if made is not None:
            tree.meta[CAST_TYPE] = made
            return made
        return broad_type_of_cast(tree)

    def _called(self, tree: exp.Expr) -> ColumnType | None:
        """The type that a function returns."""
        try:
            chosen = self.meant(tree)
        except Ambiguous:
            return None
        if chosen is None:
            name = tree.name.lower() if isinstance(tree, exp.Anonymous) else ""
            return _WITHIN.get(name.removeprefix(PREFIX)) or RESULTS.get(name)
        name = chosen.signature.name
        call = called(tree)
        operands = call[1] if call is not None else []
        match name:
            case "round" | "trunc" | "ceil" | "ceiling" | "floor" | "mod":
                return self._rounded(name, operands, chosen)
            case "date_trunc":
                moment = self.of(operands[1])
                return TIMESTAMPTZ if moment == DATE else moment
        return chosen.result

    def _rounded(
        self, name: str, operands: Sequence[exp.Expr], chosen: Chosen
    ) -> ColumnType | None:
        if name == "mod" and len(operands) == 2:
            return self._numbers(exp.Mod, *map(self.of, operands))
        if chosen.wanted and chosen.wanted[0] == FLOAT8:
            return FLOAT8
        if len(operands) == 2 and name in ("round", "trunc"):
            places = constant_places(operands[1])
            return None if places is None else decimal(places)
        return decimal(0)

    def _series(self, tree: exp.Expr) -> ColumnType | None:
        return series([self.of(tree.args.get(place)) for place in ("start", "end", "step")])

    def _array(self, tree: exp.Expr) -> ColumnType | None:
        found = self._listed(tree)
        return None if found is None or found.element is not None else array_of(found)

    def of_elements(self, tree: exp.Expr) -> ColumnType | None:
        """The type of the elements of ARRAY[…] and array_agg(), where that is an array."""
        found = self._listed(tree)
        return found if found is not None and found.element is not None else None

    def _listed(self, tree: exp.Expr) -> ColumnType | None:
        items = tree.expressions if isinstance(tree, exp.Array) else [operand_of(tree.this)]
        if len(items) == 1 and isinstance(items[0], exp.Query):
            return next(iter(self.columns_of(items[0])[1]), None)
        return self.common(items)

    def _subscript(self, tree: exp.Bracket) -> ColumnType | None:
        base = self.of(tree.this)
        if base is None or base.element is None:
            return base if base == JSONB else None
        sliced = any(isinstance(item, exp.Slice) for item in tree.expressions)
        return base if sliced else base.element

    def _summed(self, tree: exp.Expr) -> ColumnType | None:
        call = called(tree)
        assert call is not None, tree
        found = self.of(call[1][0])
        kind = None if found is None else found.kind
        if kind is TypeKind.INTERVAL:
            return INTERVAL
        if found is None or kind not in (TypeKind.INT8, TypeKind.DECIMAL):
            if kind is TypeKind.FLOAT4 and isinstance(tree, exp.Sum):
                return FLOAT4
            return FLOAT8 if kind in FLOATS else None
        scale = found.decimal[1] if kind is TypeKind.DECIMAL else 0
        return decimal(scale if isinstance(tree, exp.Sum) else quotient_scale(scale, 0))

    def common(self, trees: Iterable[exp.Expr | None]) -> ColumnType | None:
        """The type of alternatives: a text where all are literals, else the widest number or
        moment, or the first that is known."""
        present = [tree for tree in trees if tree is not None]
        found = [type for tree in stepping(present) if (type := self.of(tree)) is not None]
        if not found:
            return STRING if present and all(map(self.untyped, present)) else None
        return widest(found)

    def _arithmetic(self, tree: exp.Expr) -> ColumnType | None:
        left, right = self.of(tree.this), self.of(tree.args["expression"])
        kinds = {type.kind for type in (left, right) if type is not None}
        if kinds and kinds <= set(NUMBERS):
            left = right if left is None and self.untyped(tree.this) else left
            right = left if right is None and self.untyped(tree.args["expression"]) else right
            return self._numbers(type(tree), left, right)
        try:
            chosen = self.meant(tree)
        except Ambiguous:
            return None
        return None if chosen is None else chosen.result

    def _numbers(
        self, sign: type[exp.Expr], left: ColumnType | None, right: ColumnType | None
    ) -> ColumnType | None:
        if left is None or right is None:
            return None
        kinds = {left.kind, right.kind}
        if kinds == {TypeKind.INT8}:
            return INT8
        if not kinds <= set(NUMBERS):
            return None
        if kinds == {TypeKind.FLOAT4}:
            return FLOAT4
        if not kinds.isdisjoint(FLOATS):
            return FLOAT8
        scales = [t.decimal[1] if t.kind is TypeKind.DECIMAL else 0 for t in (left, right)]
        if sign is exp.Mul:
            return decimal(min(sum(scales), 38))
        return decimal(quotient_scale(*scales) if sign is exp.Div else max(scales))

    def _column(self, column: exp.Column) -> ColumnType | None:
        if not isinstance(column.this, exp.Identifier):
            return None
        name, qualifier = folded(column.this), column.args.get("table")
        for scope in self._scopes_around(column):
            found: list[ColumnType | None] = []
            for source in sources_of(scope, qualifier):
                has, type = self._of_source(source, name)
                if has:
                    found.append(type)
            if found and (len(found) == 1 or qualifier is None):
                column.meta[DECLARED] = found[0]
                return None if found[0] is None else found[0].broad
            if found:
                return None
        return None

    def _scopes_around(self, column: exp.Column) -> Iterator[QueryScope]:
        """The scope of a column, and those around it whose sources it may name."""
        scope = self._scopes.get(id(column))
        while scope is not None:
            yield scope
            correlated = scope.can_be_correlated and scope.scope_type is not ScopeType.CTE
            scope = scope.parent if correlated else None

    def names_row(self, column: exp.Column) -> bool:
        """Whether a name is that of a source in FROM, whose whole row it means, and no column's."""
        if not isinstance(column.this, exp.Identifier) or column.args.get("table") is not None:
            return False
        name = folded(column.this)
        for scope in self._scopes_around(column):
            sources = scope.sources.items()
            if any(self._of_source(source, name)[0] for _, source in sources):
                return False
            named = (source for alias, source in sources if alias.lower() == name.lower())
            rows = (source for source in named if isinstance(tree_of(source), _ROWS))
            if any(self.columns_in(source) is not None for source in rows):
                return True
        return False

    def _of_source(
        self, source: exp.Expr | QueryScope, name: str
    ) -> tuple[bool, ColumnType | None]:
        """Whether a source has a column, and its type."""
        if isinstance(source, exp.Table):
            if isinstance(source.this, exp.GenerateSeries):
                names = given_names(source)
                return name in (*names, source.alias.lower()), self._series(source.this)
            if not isinstance(source.this, exp.Identifier):
                return False, None
            descriptor = self.relations.get(table_name(source).parts)
            column = descriptor.find_column(name) if descriptor is not None else None
            return column is not None, None if column is None else column.type
        if isinstance(source, exp.Unnest):
            return self.of_unnest(source, name)
        if not isinstance(source, QueryScope):
            return False, None
        if isinstance(source.expression, exp.Unnest):
            return self.of_unnest(source.expression, name)
        names, types = self.declared_of(source.expression)
        known = dict(zip_longest(names, types[: len(names)]))  # WITH ORDINALITY adds a name
        return name in known, known.get(name)

    def declared_of(self, tree: exp.Expr) -> tuple[list[str], list[ColumnType | None]]:
        """The columns of a query with the types that CREATE TABLE and casts say, where all of its
        sides say the same."""
        names, types = self.columns_of(tree)
        _, parts = self.parts_of(tree)
        found: list[ColumnType | None] = []
        for type, several in zip(types, parts, strict=True):
            narrow = self.passed_on(several[0])
            if any(self.passed_on(part) != narrow for part in stepping(several[1:])):
                narrow = None
            found.append(narrow or type)
        return names, found

    def of_unnest(self, source: exp.Unnest, name: str) -> tuple[bool, ColumnType | None]:
        found = self.of(source.expressions[0])
        names = given_names(source) or [source.alias.lower()]
        if name == names[0] or name == source.alias.lower():
            return True, None if found is None else found.element
        return (True, INT8) if name in names else (False, None)

    def columns_of(self, tree: exp.Expr) -> tuple[list[str], list[ColumnType | None]]:
        """The columns of a derived table or common table expression: what is of no type is text."""
        tree = whole_of_recursion(tree)
        names, parts = self.parts_of(tree)
        recursive = isinstance(tree.parent, exp.CTE)
        types = [
            (self.of(column[0]) if recursive else None) or self.common(column) for column in parts
        ]
        given = given_names(tree)
        return [*given, *names[len(given) :]], types

    def parts_of(self, tree: exp.Expr) -> tuple[list[str], list[list[exp.Expr]]]:
        """The names of a query's columns, and what stands for each in all of its sides."""
        match tree:
            case exp.Subquery() | exp.Lateral():
                return self.parts_of(tree.this)
            case exp.SetOperation():
                give_way()
                names, left = self.parts_of(tree.this)
                _, right = self.parts_of(tree.args["expression"])
                if len(left) != len(right):
                    return names, left
                return names, [one + other for one, other in zip(left, right, strict=True)]
            case exp.Values():
                rows = [row.expressions for row in tree.expressions if isinstance(row, exp.Tuple)]
                columns = [list(column) for column in zip(*rows, strict=False)]
                return [f"column{place + 1}" for place in range(len(columns))], columns
            case exp.Select():
                names = [item.alias_or_name.lower() for item in tree.expressions]
                return names, [[item.unalias()] for item in tree.expressions]
        return [], []

    def columns_in(self, source: exp.Expr | QueryScope) -> Columns | None:
        """Returns the columns of a table, view or subquery, with the types that CREATE TABLE and
        casts say; None where they are not known."""
        tree = tree_of(source)
        given = given_names(tree)
        if isinstance(tree, exp.Table):
            named = isinstance(tree.this, exp.Identifier)
            descriptor = self.relations.get(table_name(tree).parts) if named else None
            if descriptor is None:
                return None
            shown = [(column.name, column.type) for column in descriptor.shown_columns]
            return [*zip(given, (type for _, type in shown), strict=False), *shown[len(given) :]]
        if isinstance(tree, exp.Unnest):
            return [(name, self.of_unnest(tree, name)[1]) for name in given] or None
        names, types = self.declared_of(tree)
        return None if "*" in names or not names else list(zip(names, types, strict=False))

    def declared_types(self, query: exp.Query) -> tuple[ColumnType | None, ...]:
        """The types that tables and casts give a query's columns, None where its computation says
        the type; nothing from where a star hides them. Of a set operation enumerations alone."""
        if any(item.is_star for item in query.selects):
            return ()
        if isinstance(query, exp.Select):
            return tuple(self.passed_on(item.unalias()) for item in query.expressions)
        _, found = self.columns_of(query)
        return tuple(None if type is None or enum_in(type) is None else type for type in found)

    def _of_subquery(self, tree: exp.Subquery) -> ColumnType | None:
        if not isinstance(tree.this, exp.Query):
            return self.of(tree.this) if isinstance(tree.this, exp.Expr) else None
        _, types = self.columns_of(tree.this)
        return types[0] if len(types) == 1 else None


class PlainTypes(Types):
    """The types of a query whose parameters have no types yet, or of expressions that stand in no
    query: `lookup` then knows the columns, and what a subquery returns is not known. `declared` are
    the parameters' types as far as clients say them. No type is kept with a tree."""

    def __init__(
        self,
        query: exp.Expr | None,
        relations: Relations,
        declared: Hints = (),
        lookup: Lookup | None = None,
    ) -> None:
        if query is not None:
            super().__init__(query, relations)
        self._depth = 0
        self._lookup = lookup
        self._declared = declared
        self._found: defaultdict[int, dict[str, Any]] = defaultdict(dict)

    def _kept(self, tree: exp.Expr) -> dict[str, Any]:
        return self._found[id(tree)]

    def untyped(self, tree: exp.Expr) -> bool:
        return isinstance(tree.unnest(), exp.Parameter) or untyped(tree)

    def _infer(self, tree: exp.Expr) -> ColumnType | None:
        if isinstance(tree, exp.Parameter):
            number = parameter_number(tree)
            return self._declared[number - 1] if 0 < number <= len(self._declared) else None
        return super()._infer(tree)

    def _column(self, column: exp.Column) -> ColumnType | None:
        if self._lookup is None:
            return super()._column(column)
        found = column.meta[DECLARED] = self._lookup(column)
        return None if found is None else found.broad

    def _cast(self, tree: exp.Cast) -> ColumnType | None:
        return broad_type_of_cast(tree)

    def parts_of(self, tree: exp.Expr) -> tuple[list[str], list[list[exp.Expr]]]:
        return ([], []) if self._lookup is not None else super().parts_of(tree)


def _names_of_items(tree: exp.Expr) -> Iterator[exp.Column]:
    """The names in ORDER BY and DISTINCT ON that are items' of the select list."""
    items = set(tree.named_selects) if isinstance(tree, exp.Select) else ()
    for clause in (tree.args.get("order"), tree.args.get("distinct")) if items else ():
        for column in () if clause is None else find_all(clause, exp.Column):
            bare = column.name in items and not column.table
            if bare and column.find_ancestor(exp.Order, exp.Distinct, exp.Query) is clause:
                yield column


_ROWS = (exp.Table, exp.Select, exp.SetOperation, exp.Values, exp.Lateral)

_TYPES: dict[type[exp.Expr], ColumnType] = {
    **dict.fromkeys(
        (exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Exists,
         exp.RegexpLike, exp.RegexpILike, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
         exp.NullSafeEQ, exp.NullSafeNEQ, exp.ArrayContainsAll, exp.ArrayContainedBy,
         exp.ArrayOverlaps, exp.JSONBContainsTopKey, exp.JSONBContainsAnyTopKeys,
         exp.JSONBContainsAllTopKeys, exp.Boolean),
        BOOL,
    ),
    **dict.fromkeys((exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank), INT8),
    **dict.fromkeys(
        (exp.Corr, exp.Pi, exp.Rand, exp.CumeDist, exp.PercentRank), FLOAT8
    ),
    **dict.fromkeys(
        (exp.CurrentUser, exp.CurrentSchema, exp.CurrentDatabase, exp.SessionUser,
         exp.JSONExtractScalar, exp.JSONBExtractScalar),
        STRING,
    ),
    **dict.fromkeys(
        (exp.JSONExtract, exp.JSONBExtract, exp.JSONBDeleteAtPath, exp.ParseJSON,
         exp.JSONArrayAgg),
        JSONB,
    ),
    exp.CurrentTimestamp: TIMESTAMPTZ,
    exp.Localtimestamp: TIMESTAMP,
    exp.Localtime: TIME,
    exp.CurrentDate: DATE,
    exp.Uuid: UUID,
    exp.Extract: decimal(6),
}  # fmt: skip
"""The types that all nodes of a class have."""

Rule = Callable[[Types, Any], ColumnType | None]
_RULES: dict[type[exp.Expr], Rule] = {
    exp.Column: lambda types, tree: types._column(tree),
    exp.Literal: lambda types, tree: None if tree.is_string else literal_type(tree.this),
    **dict.fromkeys((exp.Cast, exp.TryCast), lambda types, tree: types._cast(tree)),
    **dict.fromkeys((exp.Sum, exp.Avg), Types._summed),
    exp.Case: lambda types, tree: types.common(
        [*(branch.args.get("true") for branch in tree.args.get("ifs") or ()),
         tree.args.get("default")]
    ),
    **dict.fromkeys(
        (exp.Lag, exp.Lead),
        lambda types, tree: types.common([tree.this, tree.args.get("default")]),
    ),
    exp.Subquery: Types._of_subquery,
    exp.Neg: Types._negation,
    exp.Nullif: Types._nullif,
    exp.AtTimeZone: lambda types, tree: AT_ZONE.get(types.kind(tree.this)),
    **dict.fromkeys((exp.GenerateSeries, exp.ExplodingGenerateSeries), Types._series),
    **dict.fromkeys((exp.Explode, exp.Any, exp.All), Types._element),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod), Types._arithmetic),
    **dict.fromkeys(
        (exp.Paren, exp.Alias, exp.Filter, exp.Window, exp.FirstValue,
         exp.LastValue, exp.NthValue, exp.Order, exp.Collate, exp.AnyValue, exp.Ordered),
        lambda types, tree: types.of(tree.this),
    ),
    **dict.fromkeys(
        (exp.Coalesce, exp.Greatest, exp.Least),
        lambda types, tree: types.common(list(tree.iter_expressions())),
    ),
    **dict.fromkeys((exp.Array, exp.ArrayAgg), Types._array),
    exp.Bracket: Types._subscript,
}  # fmt: skip
"""Rules that give the other nodes' types by their parts'; what is not here calls a function."""
