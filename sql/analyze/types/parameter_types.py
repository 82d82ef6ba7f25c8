"""The types of a statement's parameters, found before any value is known.

A parameter takes the type that its client declared, else that of what it first meets, as in
PostgreSQL, else STRING:

    SELECT * FROM t WHERE id = $1 LIMIT $2          id's type, INT8
    INSERT INTO t (id, note) VALUES ($1, $2)        the columns' types
    UPDATE t SET n = n + $1                         n's type
    SELECT $1::date, $2                             DATE, STRING

Where the place does not say the type by itself, the parameter is cast to it in the tree, so that
the same statement has the same result columns whatever the values are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import zip_longest
from typing import Any
from uuid import UUID

from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.enum_columns import enum_in
from ....catalog.values.column_types import BOOL, DECIMAL, INT8, JSONB, STRING, ColumnType, array_of
from ....catalog.values.errors import SQLError
from ....catalog.values.interval import Interval
from ....catalog.values.type_kinds import CatalogName, TypeKind
from ...builtins.documents.calls import FUNCTIONS
from ...builtins.known_functions import called
from ...builtins.macros import duckdb_type
from ...builtins.signatures import ARITHMETIC, COMPARISONS, SIGNS, Ambiguous
from ...parse.constants import LIST, write_out
from ...syntax.statements import Delete, Insert, PlannedStatement, Query, Update, WithWrites
from ...syntax.trees import (
    CAST_TYPE,
    DECLARED,
    copied,
    exchange,
    find_all,
    find_in_scope,
    folded,
    table_name,
    with_parts,
)
from ..binder import Relations, parts_of, single_table
from ..calls.row_calls import session_function
from ..columns.output_columns import TYPED_PARAMETER
from ..enum_casts import bind_enum_casts
from ..scalars import parameter_number, type_of_cast
from .types import Hints, Lookup, PlainTypes, Types

PARAMETERS_MAX = 65_535
"""As many as the wire protocol counts."""


@dataclass(frozen=True, slots=True)
class TypedStatement:
    """A statement whose parameters have types, and these types by their numbers."""

    statement: PlannedStatement
    parameter_types: tuple[ColumnType, ...]


def type_parameters(
    statement: PlannedStatement, relations: Relations, hints: Hints, count: int
) -> TypedStatement:
    """The statement with its parameters typed. The statement that was given stays as it is."""
    if count > PARAMETERS_MAX:
        raise SQLError("54000", f"a statement has at most {PARAMETERS_MAX} parameters")
    if count == 0:
        return TypedStatement(statement, ())
    bind_enum_casts(statement, relations)
    declared = [*hints, *([None] * count)][:count]
    found = list(_contexts(statement, relations, declared))
    types = list(declared)
    for node, context in found:
        for number in _numbers(node):
            if not 0 < number <= count:
                raise SQLError("42P02", f"there is no parameter ${number}")
            types[number - 1] = types[number - 1] or context
    final = tuple(type or STRING for type in types)
    if not all(_says_types(node, context, final) for node, context in found):
        statement = with_parts(statement, exp.Expr, _own)
        for node, context in list(_contexts(statement, relations, declared)):
            if _says_types(node, context, final):
                continue
            if isinstance(node, exp.In):
                write_out(node)
            for parameter in list(find_all(node, exp.Parameter)):
                _cast(parameter, final[parameter_number(parameter) - 1], context)
    return TypedStatement(statement, final)


def _says_types(node: exp.Expr, context: ColumnType | None, types: Sequence[ColumnType]) -> bool:
    """Whether the place of a parameter, or of a list with some, says their types by itself."""
    return all(_agree(types[number - 1], context) for number in _numbers(node))


def _numbers(node: exp.Expr) -> list[int]:
    """The number of a parameter, or of all that are in a list."""
    if isinstance(node, exp.Parameter):
        return [parameter_number(node)]
    numbers: list[int] = node.meta[LIST].parameters
    return numbers


def _agree(type: ColumnType, context: ColumnType | None) -> bool:
    return context is not None and context.broad.kind is type.broad.kind


def _cast(node: exp.Parameter, type: ColumnType, context: ColumnType | None) -> None:
    """Casts a parameter to its type where its place does not say it."""
    if _agree(type, context):
        return
    type = type.broad
    cast = exp.Cast(this=copied(node), to=duckdb_type(type))
    cast.meta[TYPED_PARAMETER] = True
    if enum_in(type) is not None or type.bare:
        cast.meta[CAST_TYPE] = type
    exchange(node, cast)


def _own(tree: exp.Expr) -> exp.Expr:
    """A copy of a tree; a bare parameter in parentheses, so that it may be replaced."""
    made = copied(tree)
    return exp.Paren(this=made) if isinstance(made, exp.Parameter) else made


Assignments = tuple[tuple[exp.Column, exp.Expr], ...]

Context = tuple[exp.Expr, ColumnType | None]
"""A parameter, or an IN that keeps a list with some."""


def _contexts(
    statement: PlannedStatement, relations: Relations, declared: Hints
) -> Iterator[Context]:
    """Every use of a parameter, with the type that its place gives it."""
    if isinstance(statement, WithWrites):
        for part in parts_of(statement):
            yield from _contexts(part, relations, declared)
        return
    if isinstance(statement, Query):
        yield from _in_query(statement.tree, relations, declared)
        return
    table = relations[statement.table.parts]
    lookup = _by_name(table, *relations.values())
    match statement:
        case Insert(source=exp.Values() as values):
            targets = _targets(statement, table)
            for row in values.expressions:
                items = row.expressions if isinstance(row, exp.Tuple) else [row]
                for item, target in zip_longest(items, targets[: len(items)]):
                    yield from _in_tree(item, lambda column: None, declared, target)
        case Insert(source=exp.Expr() as source):
            yield from _in_query(source, relations, declared, _targets(statement, table))
        case Update() | Delete():
            assignments = statement.assignments if isinstance(statement, Update) else ()
            yield from _in_changes(assignments, statement.where, lookup, declared)
            for tree in (*statement.sources, *statement.ctes):
                yield from _in_tree(tree, lookup, declared, None)
    for item in statement.returning:
        yield from _in_tree(item, lookup, declared, None)
    if isinstance(statement, Insert) and statement.conflict is not None:
        conflict = statement.conflict
        yield from _in_changes(conflict.assignments, conflict.where, lookup, declared)


def _in_changes(
    assignments: Assignments, where: exp.Expr | None, lookup: Lookup, declared: Hints
) -> Iterator[Context]:
    for column, value in assignments:
        yield from _in_tree(value, lookup, declared, lookup(column))
    if where is not None:
        yield from _in_tree(where, lookup, declared, BOOL)


def _targets(statement: Insert, descriptor: TableDescriptor) -> list[ColumnType]:
    if statement.columns is None:
        return [_told(column.type) for column in descriptor.columns]
    known = {column.name: column.type for column in descriptor.columns}
    return [_told(known[name]) for column in statement.columns if (name := folded(column)) in known]


def _by_name(*tables: TableDescriptor | None, alias: str | None = None) -> Lookup:
    """Columns of tables by name alone, the first table's first, or of the only one called so."""

    def lookup(column: exp.Column) -> ColumnType | None:
        if not isinstance(column.this, exp.Identifier):
            return None
        if alias is not None and column.table and column.table.lower() != alias:
            return None
        name = folded(column.this)
        known = (table.find_column(name) for table in tables if table is not None)
        return next((_told(found.type) for found in known if found is not None), None)

    return lookup


def _in_query(
    tree: exp.Expr, relations: Relations, declared: Hints, targets: Sequence[ColumnType] = ()
) -> Iterator[Context]:
    alone = None if targets else single_table(tree)
    if alone is not None:
        table, alias = relations.get(table_name(alone).parts), alone.alias_or_name.lower()
        yield from _in_tree(tree, _by_name(table, alias=alias), declared, None)
        return
    seen: set[int] = set()
    types = PlainTypes(tree, relations, declared)
    for scope in types.scopes:
        for node in _uses(find_in_scope(scope, exp.Parameter, exp.In)):
            if id(node) not in seen:
                seen.add(id(node))
                yield node, _context(node, types) or _as_item(node, tree, targets)
    # LIMIT of a set operation, VALUES, and whatever else belongs to no scope.
    for node in find_all(tree, exp.Parameter):
        if id(node) not in seen and not _listed(node.parent):
            yield node, _context(node, types)


def _uses(nodes: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """Parameters, and INs that keep a list with some, in which each parameter is used alike."""
    for node in nodes:
        if _listed(node) if isinstance(node, exp.In) else not _listed(node.parent):
            yield node


def _listed(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.In) and LIST in node.meta and bool(node.meta[LIST].parameters)


def _as_item(node: exp.Expr, tree: exp.Expr, targets: Sequence[ColumnType]) -> ColumnType | None:
    """The target column of a parameter that is an item of INSERT's SELECT."""
    if isinstance(tree, exp.Select):
        for place, item in enumerate(tree.expressions[: len(targets)]):
            if item.unalias() is node:
                return targets[place]
    return None


def _in_tree(
    tree: exp.Expr, lookup: Lookup, declared: Hints, whole: ColumnType | None
) -> Iterator[Context]:
    """The parameters of an expression that, as a whole, is of type `whole`."""
    types: Types | None = None  # rows of VALUES are mostly bare parameters
    for node in list(_uses(find_all(tree, exp.Parameter, exp.In))):
        if node is tree or tree.unnest() is node:
            yield node, whole
        else:
            types = types or PlainTypes(None, {}, declared, lookup)
            yield node, _context(node, types)


def _context(node: exp.Expr, types: Types) -> ColumnType | None:
    """The type that the place of `node` says it has, or the list that an IN keeps."""
    if isinstance(node, exp.In):
        return _of_siblings(node, node, types)
    place, parent = node, node.parent
    while isinstance(parent, exp.Paren):
        place, parent = parent, parent.parent
    if parent is None:
        return None
    return _RULES.get(type(parent), _of_call)(parent, place, types)


def _of_call(call: exp.Expr, place: exp.Expr, types: Types) -> ColumnType | None:
    """The type that a function wants of an argument."""
    function = session_function(call)
    if function is not None:
        return function.argument(_number_in(call.expressions, place))
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    if name in FUNCTIONS:
        return _of_document_call(name, _number_in(call.expressions, place))
    known = called(call)
    return None if known is None else _wanted(call, known[1], place, types)


def _of_operator(tree: exp.Binary, place: exp.Expr, types: Types) -> ColumnType | None:
    """The type that an operator wants of an operand. Arithmetic of operands that have no type is of
    the type that its own place has."""
    operands = [tree.this, tree.args["expression"]]
    if isinstance(tree, ARITHMETIC) and not any(map(types.of, operands)):
        return _context(tree, types)
    return _wanted(tree, operands, place, types)


def _wanted(
    tree: exp.Expr, operands: Sequence[exp.Expr], place: exp.Expr, types: Types
) -> ColumnType | None:
    """The type that the signature of a call or an operator wants of an operand."""
    try:
        chosen = types.meant(tree)
    except Ambiguous:
        return None
    return None if chosen is None else chosen.wanted[_number_in(operands, place)]


def _number_in(several: Sequence[exp.Expr], place: exp.Expr) -> int:
    return next(number for number, each in enumerate(several) if each is place)


def _of_document_call(name: str, number: int) -> ColumnType | None:
    """`jsonb_set(doc, $1, $2)`: a set of texts, and a document."""
    _, takes, _ = FUNCTIONS[name]
    match takes[number : number + 1]:
        case "d":
            return JSONB
        case "s" if name == "jsonb_set":
            return array_of(STRING)
    return None


def _of_cast(cast: exp.Cast) -> ColumnType | None:
    type = type_of_cast(cast)
    return None if type is None else _told(type)


def _told(type: ColumnType) -> ColumnType:
    """Parameters beside narrow integers and object ids, and arrays of them, are told to clients as
    what they are, which is all that tokio-postgres sends; others by what they are part of."""
    return type if _of_integers(type) else type.broad


def _of_integers(type: ColumnType) -> bool:
    names = {type.catalog_name, (type.element or type).catalog_name}
    if names == {None}:
        return (type.element or type).broad.kind is TypeKind.INT8
    return CatalogName.OID in names


def _of_set(parent: exp.Expr, place: exp.Expr, types: Types) -> ColumnType | None:
    """`x = ANY ($1)`: an array of what x is."""
    comparison = parent.parent
    if comparison is None or not isinstance(comparison, COMPARISONS):
        return None
    found = _of_siblings(comparison, parent, types)
    return None if found is None or found.element is not None else array_of(found)


def _of_siblings(parent: exp.Expr, place: exp.Expr, types: Types) -> ColumnType | None:
    for child in parent.iter_expressions():
        if child is not place:
            found = _taken_by(child, types)
            if found is not None:
                return found
    return None


def _of_row(parent: exp.Expr, place: exp.Expr, types: Types) -> ColumnType | None:
    """`(a, b) IN (($1, $2))` and `(a, b) > ($1, $2)`: what stands in the same place."""
    comparison = parent.parent
    number = _number_in(parent.expressions, place)
    if isinstance(comparison, (exp.In, *COMPARISONS)):
        for row in comparison.iter_expressions():
            entries = row.expressions if isinstance(row, exp.Tuple) else []
            if row is not parent and len(entries) > number:
                found = _taken_by(entries[number], types)
                if found is not None:
                    return found
    return None


def _of_branches(parent: exp.Expr, place: exp.Expr, types: Types) -> ColumnType | None:
    """The type of CASE's other results, or of what it compares."""
    if isinstance(parent, exp.If):
        if parent.this is place:
            case = parent.parent
            operand = case.args.get("this") if case is not None else None
            return BOOL if operand is None else _taken_by(operand, types)
        parent = parent.parent if isinstance(parent.parent, exp.Case) else parent
    return _taken_by(parent, types)


def _taken_by(tree: exp.Expr, types: Types) -> ColumnType | None:
    """The type of an expression, for a parameter that takes it: one beside a decimal that is
    computed has digits of its own."""
    found = types.of(tree)
    said = tree.meta.get(DECLARED) if isinstance(tree, exp.Column) else None
    if isinstance(said, ColumnType) and _of_integers(said):
        return said
    computed = not isinstance(tree.unnest(), exp.Column | exp.Parameter | exp.Cast)
    return DECIMAL if found is not None and found.kind is TypeKind.DECIMAL and computed else found


_Rule = Callable[[Any, exp.Expr, Types], ColumnType | None]
_RULES: dict[type[Any], _Rule] = {
    **dict.fromkeys((exp.Cast, exp.TryCast), lambda parent, place, types: _of_cast(parent)),
    **dict.fromkeys(
        (exp.Limit, exp.Offset, exp.GenerateSeries, exp.ExplodingGenerateSeries), lambda *_: INT8
    ),
    **dict.fromkeys((exp.Where, exp.And, exp.Or, exp.Not, exp.Having), lambda *_: BOOL),
    exp.Neg: lambda parent, place, types: _context(parent, types),
    **dict.fromkeys((exp.If, exp.Case), _of_branches),
    exp.Tuple: _of_row,
    **dict.fromkeys((exp.Any, exp.All), _of_set),
    **dict.fromkeys(
        (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBContainsTopKey),
        lambda parent, place, types: JSONB if parent.this is place else STRING,
    ),
    **dict.fromkeys(
        (exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONBContainsAnyTopKeys,
         exp.JSONBContainsAllTopKeys, exp.JSONBDeleteAtPath),
        lambda parent, place, types: JSONB if parent.this is place else array_of(STRING),
    ),
    **dict.fromkeys(SIGNS, _of_operator),
    **dict.fromkeys(
        (*COMPARISONS, exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif, exp.In, exp.Between),
        _of_siblings,
    ),
}  # fmt: skip
"""The rules by which a place gives a parameter its type, by the class of the node around it. What
is not here is a call of a function."""


# Parameters as clients give them.

# fmt: off
_PLAIN = (
    str, int, float, bytes, Decimal, date, datetime, time, timedelta, Interval, UUID, dict,
    type(None),
)
_PLAIN_SET = frozenset(_PLAIN)
# fmt: on


def check_parameters(given: Sequence[object], wanted: int) -> Sequence[object]:
    """The parameters as values that every path takes. Raises SQLError 08P01 or 42804.

    Numbers of other libraries (NumPy's) become Python's.
    """
    if len(given) != wanted:
        raise SQLError(
            "08P01",
            f"{len(given)} parameters are given, but the statement has {wanted}",
            hint="Parameters are written $1, $2, …",
        )
    if _PLAIN_SET.issuperset(map(type, given)):
        return given
    return [_plain(value, number) for number, value in enumerate(given, start=1)]


def _plain(value: object, number: int) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, list | tuple):
        if _PLAIN_SET.issuperset(map(type, value)):
            return list(value)
        return [_plain(item, number) for item in value]
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    for convert in ("__index__", "__float__"):
        method = getattr(value, convert, None)
        if method is not None:
            return method()
    raise SQLError("42804", f"parameter ${number} is a {type(value).__name__}, which is no datum")
