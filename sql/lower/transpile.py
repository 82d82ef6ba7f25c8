"""Queries for DuckDB: the Postgres tree with tables, parameters and times replaced.

    SELECT count(*) FROM shop.orders WHERE placed > $1 AND note = 'x'

    SELECT COUNT(*) AS "count" FROM "scan_0" AS "orders"
    WHERE "placed" > CAST($1 AS TIMESTAMP) AND "note" = CAST($2 AS VARCHAR)

A parameter or text literal that is compared with a table's column takes the column's type and is
converted by the same rules as everywhere else; a parameter that meets no column goes as it is.
now() is the statement's time, not DuckDB's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, time
from functools import partial
from types import MappingProxyType
from typing import Final

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ErrorLevel
from sqlglot.generator import Generator

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.enum_columns import enum_in
from ...catalog.rows.arrow_conform import broad_schema
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.column_types import DATE, INT8, TIMESTAMPTZ, ColumnType
from ...catalog.values.errors import SQLError
from ...catalog.values.interval import Interval
from ...catalog.values.json_text import write_json
from ...catalog.values.type_kinds import TypeKind
from ...kvlayer.process.fibre import give_way
from ..access.key_access import KeyAccess
from ..analyze import scalars
from ..analyze.binder import Relations, scopes_in, tables_in
from ..analyze.calls.client_functions import CLIENT_NODES, client_fact
from ..analyze.calls.row_calls import is_sequence_call, refuse_session_call
from ..analyze.columns.output_columns import column_origins, output_name
from ..analyze.columns.stars import expand_stars
from ..analyze.types.conversions import literal_cast
from ..analyze.types.resolution import operands as compared_with
from ..analyze.types.resolution import resolve_types
from ..analyze.types.types import Types
from ..analyze.views import selected
from ..builtins.macros import DUCKDB, duckdb_type
from ..builtins.signatures import COMPARISONS
from ..results.results import ArrowQuery, Origin
from ..syntax.trees import (
    alias_named,
    copied,
    dismantle,
    error_at,
    find_all,
    folded,
    folded_alias,
    position_of,
    stepping,
    table_name,
    wrap,
)
from .documents import mean_documents
from .implied_columns import group_by_keys, name_elements
from .meaning import mean_as_postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """A table that DuckDB reads: registered as `registered`, with the columns at `places`.

    `access` narrows the rows where conditions of the statement allow it.
    """

    registered: str
    descriptor: TableDescriptor
    places: tuple[int, ...]
    access: KeyAccess | None

    @property
    def covered(self) -> bool:
        """Whether the entries that the access reads say all that is asked for."""
        columns = self.descriptor.visible_columns
        return self.access is None or self.access.holds(
            [columns[place].id for place in self.places]
        )

    @property
    def stored_schema(self) -> pa.Schema:
        schema = codec_for(self.descriptor).arrow_schema
        return pa.schema([schema.field(place) for place in self.places])

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema that DuckDB reads: broad types, in which expressions are computed."""
        return broad_schema(self.descriptor, self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticSelect:
    """A query for DuckDB, in its dialect, over registered snapshots.

    `positions` says where the statement's names stand, for errors that DuckDB finds; `declared`
    the types that tables give the result's columns, as far as they are known, and `origins` the
    tables' columns that they are; `piecewise` how it is answered a part of its table at a time, if
    it can be. A query that is `fixed` was made of the numbers of one text, and is no plan of the
    text's shape (`sql.runtime.plan_cache`).
    """

    sql: str
    scans: tuple[TableScan, ...]
    parameters: tuple[scalars.Scalar, ...]
    positions: Mapping[str, int]
    declared: tuple[ColumnType | None, ...] = ()
    origins: tuple[Origin | None, ...] = ()
    piecewise: Piecewise | None = None
    fixed: bool = False

    def over(self, tables: Mapping[str, pa.Table], bindings: scalars.Bindings) -> ArrowQuery:
        """The query for an evaluator: over the rows of its scans, by the names they have in it."""
        return ArrowQuery(self.sql, tables, parameter_values(self, bindings), self.declared)


@dataclass(frozen=True, slots=True)
class Piecewise:
    """A query of one table that treats each row by itself and returns `limit` rows at most. Where
    it is ordered, by leading columns of the primary key, each piece is sorted by itself."""

    limit: scalars.Scalar | None


NO_ACCESSES: Final[Mapping[str, KeyAccess]] = MappingProxyType({})


def transpile(
    tree: exp.Expr, relations: Relations, accesses: Mapping[str, KeyAccess] = NO_ACCESSES
) -> AnalyticSelect:
    """The plan of a query, which reads tables by `accesses`, by their aliases, and others whole."""
    positions = _positions(tree)
    slots = {
        slot
        for node in find_all(tree, exp.Literal)
        if (slot := node.meta.get(scalars.SLOT)) is not None
    }
    query = _as_query(copied(tree))
    scopes = scopes_in(query)
    expand_stars(query, relations, scopes)
    group_by_keys(query, relations, scopes)
    name_elements(relations, scopes)
    origins = column_origins(query, relations, scopes)
    _name_columns(query)
    parameters = _Parameters()
    types = Types(query, relations)
    declared = types.declared_types(query)
    resolve_types(query, types)
    query = mean_documents(query, types)
    mean_as_postgres(query, types, parameters.typed)
    _retype_casts(query, parameters)
    _type_constants(query, types, parameters)
    _replace_rest(query, parameters)
    replaced = _replace_slots(query, types, parameters) if slots else slots
    scans = _replace_tables(query, relations, accesses)
    kept = parameters.kept_in(query)
    sql = _generate(query)
    dismantle(query)
    return AnalyticSelect(
        sql=sql,
        scans=scans,
        parameters=kept,
        positions=positions,
        declared=declared,
        origins=origins,
        fixed=replaced != slots,
    )


def _generate(query: exp.Query) -> str:
    """The query's text. The generator changes what it writes, and gives way at each leaf."""
    generator = DUCKDB.generator(identify=True, unsupported_level=ErrorLevel.IGNORE)
    generator._dispatch = dict(generator._dispatch)
    for kind in _LEAVES:
        generator._dispatch[kind] = _giving_way(generator._dispatch[kind])
    text: str = generator.generate(query, copy=False)
    refused = generator.unsupported_messages
    # What depends on a session's time zone is the same in both: there is only UTC.
    if refused and not any("timezone handling" in message for message in refused):
        raise SQLError("0A000", f"not supported: {refused[0].splitlines()[0]}".lower())
    return text


_LEAVES = (exp.Identifier, exp.Literal, exp.Boolean, exp.Null)
_Write = Callable[[Generator, exp.Expr], str]


def _giving_way(write: _Write) -> _Write:
    def written(generator: Generator, tree: exp.Expr) -> str:
        give_way()
        return write(generator, tree)

    return written


def _positions(tree: exp.Expr) -> dict[str, int]:
    """The first position of each name, for errors that DuckDB finds."""
    positions: dict[str, int] = {}
    for node in find_all(tree, exp.Identifier, exp.Anonymous):
        start = node.meta.get("start")
        if start is not None:
            name = node.name.lower()
            positions[name] = min(start + 1, positions.get(name, start + 1))
    return positions


def _retype_casts(query: exp.Query, parameters: _Parameters) -> None:
    """Types mean what they mean in CREATE TABLE: INT is INT8, a bare DECIMAL of what is not
    known is DECIMAL(38,9).

    A text literal is read here, by the same rules as one that is stored.
    """
    # Inner ones first: what is narrowed is copied.
    for cast in stepping(reversed(list(find_all(query, exp.Cast)))):
        read = literal_cast(cast)
        if read is not None:
            cast.replace(parameters.typed(*read))
            continue
        type = scalars.type_of_cast(cast)
        if type is not None and type.bare and _client_parameter(cast.this.unnest()):
            cast.replace(parameters.numeric(cast.this.unnest(), type))
        elif type is not None:
            target = duckdb_type(type)
            if type == type.broad:
                cast.set("to", target)
            else:
                wrap(cast, partial(_narrow_cast, type=type, target=target))


def _narrow_cast(cast: exp.Expr, *, type: ColumnType, target: exp.DataType) -> exp.Expr:
    """Within the limits of the narrow type, and of the broad one: text is cut, as Postgres does."""
    narrow: exp.Expr = cast.__class__(this=cast.this, to=target)
    if type.width is not None:
        narrow = exp.Left(this=narrow, expression=exp.Literal.number(type.width))
    if type.kind is TypeKind.CHAR:
        return exp.Trim(this=narrow, position="TRAILING", expression=exp.Literal.string(" "))
    if type.arrow_type != type.broad.arrow_type:
        return _cast(narrow, type.broad)
    return narrow


def _as_query(tree: exp.Expr) -> exp.Query:
    """VALUES is a query only as a subquery."""
    tail = {}
    if isinstance(tree, exp.Values):
        names = ("order", "limit", "offset")
        tail = {arg: tree.args.pop(arg) for arg in names if tree.args.get(arg)}
    query = selected(tree)
    for arg, part in tail.items():
        query.set(arg, part)
    return query


class _Parameters:
    """The DuckDB statement's parameters, in the order of their numbers. What is the same value is
    one parameter: GROUP BY must see the same expression twice."""

    def __init__(self) -> None:
        self.found: list[scalars.Scalar] = []
        self._known: dict[tuple[object, ...], int] = {}

    def typed(
        self, scalar: scalars.Scalar, type: ColumnType, said: tuple[str, ...] = ()
    ) -> exp.Expr:
        """A scalar as a value of a type; those that are `said` alike are one."""
        return _cast(self._once(said, scalar) if said else self.constant(scalar, type), type)

    def plain(self, tree: exp.Parameter) -> exp.Expr:
        """A parameter as the client gave it."""
        return self._once(("plain", tree.this.this), scalars.compile_scalar(tree, {}))

    def numeric(self, tree: exp.Parameter, type: ColumnType) -> exp.Expr:
        """A parameter as a bare DECIMAL, which drops no digit of it."""
        given = scalars.coerced(scalars.compile_scalar(tree, {}), type)
        return _cast(self._once(("numeric", tree.this.this), given), type)

    def now(self, tree: exp.Expr, type: ColumnType) -> exp.Expr:
        return _cast(self._once(("now", type.kind), scalars.compile_scalar(tree, {})), type)

    def kept_in(self, query: exp.Expr) -> tuple[scalars.Scalar, ...]:
        """Returns the parameters that the query still has, numbered anew: pg_typeof() of a literal
        leaves none, and DuckDB wants no value that it does not use."""
        places = [node for node in find_all(query, exp.Parameter) if node.args.get("_ours")]
        used = sorted({int(node.this.this) for node in stepping(places)})
        number = {old: new for new, old in enumerate(used, 1)}
        for node in stepping(places):
            node.set("this", exp.Literal.number(number[int(node.this.this)]))
        return tuple(self.found[old - 1] for old in used)

    def constant(self, scalar: scalars.Scalar, type: ColumnType | None) -> exp.Expr:
        try:
            key: tuple[object, ...] = (type, repr(scalars.constant_datum(scalar)))
        except scalars.NotNative:
            key = (len(self.found),)
        return self._once(key, scalar)

    def _once(self, key: tuple[object, ...], scalar: scalars.Scalar) -> exp.Expr:
        if key not in self._known:
            self.found.append(scalar)
            self._known[key] = len(self.found)
        return exp.Parameter(this=exp.Literal.number(self._known[key]), _ours=True)


def _cast(tree: exp.Expr, type: ColumnType) -> exp.Expr:
    return exp.Cast(this=tree, to=duckdb_type(type))


def _type_constants(query: exp.Expr, types: Types, parameters: _Parameters) -> None:
    """Types texts and parameters that are compared with columns of one type."""
    for node in list(find_all(query, *COMPARISONS, exp.In, exp.Between)):
        operands = [part.unnest() for part in (node.this, *compared_with(node))]
        columns = [part for part in operands if isinstance(part, exp.Column)]
        found = {types.of(column) for column in columns}
        type = found.pop() if len(found) == 1 else None
        if type is not None:
            for operand in operands:
                _type_constant(operand, type, parameters)


def _type_constant(operand: exp.Expr, type: ColumnType, parameters: _Parameters) -> None:
    give_way()
    text = isinstance(operand, exp.Literal) and operand.is_string
    if not text and not _client_parameter(operand):
        return
    scalar = scalars.compile_scalar(operand, {})
    scalar = scalars.adapt(scalar, type, position=position_of(operand))
    if type.kind is TypeKind.DECIMAL:
        # Not cast: a constant with more digits than the column has must not be rounded to meet it.
        operand.replace(parameters.constant(scalar, None))
    else:
        operand.replace(parameters.typed(scalar, type))


def _client_parameter(node: exp.Expr) -> bool:
    return isinstance(node, exp.Parameter) and not node.args.get("_ours")


def _replace_rest(query: exp.Query, parameters: _Parameters) -> None:
    """Puts parameters for what is one value for the whole statement."""
    for node in list(
        find_all(query, exp.Parameter, exp.CurrentTimestamp, exp.CurrentDate, *CLIENT_NODES)
    ):
        made = _value(node, parameters)
        if made is not None:
            node.replace(made)


def _value(node: exp.Expr, parameters: _Parameters) -> exp.Expr | None:
    """Returns the parameter for a node; None where the node stays. Raises SQLError 0A000 for a call
    that would have to be one for each row."""
    match node:
        case exp.Parameter():
            return parameters.plain(node) if _client_parameter(node) else None
        case exp.CurrentTimestamp() | exp.CurrentDate():
            node.set("this", None)
            type = TIMESTAMPTZ if isinstance(node, exp.CurrentTimestamp) else DATE
            return parameters.now(node.copy(), type)
    refuse_session_call(node)
    told = client_fact(node)
    if told is None and not is_sequence_call(node):
        return None
    if told is None and not _evaluated_once(node):
        raise error_at(
            node,
            "0A000",
            f"{node.name.lower()} cannot be called for each row of a query",
            "Make it the DEFAULT of a column, or call it in VALUES.",
        )
    try:
        return parameters.typed(
            scalars.compile_scalar(node, {}), INT8 if told is None else told[0].type
        )
    except scalars.NotNative:
        what = f"{node.name.lower()} takes constants and parameters"
        raise error_at(node, "0A000", what) from None


def _replace_slots(query: exp.Expr, types: Types, parameters: _Parameters) -> set[int]:
    """Makes parameters of the numbers that differ between texts of a shape, where each stands
    beside INT8 alone. Returns the slots that were replaced wherever they stand."""
    replaced: set[int] = set()
    kept: set[int] = set()
    for node in list(find_all(query, exp.Literal)):
        slot, parent = node.meta.get(scalars.SLOT), node.parent
        if slot is None or parent is None:
            continue
        others = [part for part in parent.iter_expressions() if scalars.SLOT not in part.meta]
        if isinstance(parent, _BESIDE_INT8) and others and all(_is_int8(o, types) for o in others):
            node.replace(parameters.typed(scalars.compile_scalar(node, {}), INT8))
            replaced.add(slot)
        else:
            kept.add(slot)
    return replaced - kept


_BESIDE_INT8 = (*COMPARISONS, exp.In, exp.Between, exp.Add, exp.Sub, exp.Mul)


def _is_int8(tree: exp.Expr, types: Types) -> bool:
    """Whether an operand is of INT8 in DuckDB too, whose literals are of any integer type."""
    return not isinstance(tree.unnest(), exp.Literal) and types.kind(tree) is TypeKind.INT8


def _evaluated_once(call: exp.Expr) -> bool:
    """Whether a call is one value: an item without rows, or of VALUES in the outermost FROM."""
    nearest = call.find_ancestor(exp.Values, exp.Select)
    if isinstance(nearest, exp.Values):
        select = nearest.find_ancestor(exp.Select)
        lateral = nearest.find_ancestor(exp.Lateral) is not None
        return select is not None and select.parent is None and not lateral
    return nearest is not None and nearest.args.get("from_") is None


def _replace_tables(
    query: exp.Query, relations: Relations, accesses: Mapping[str, KeyAccess]
) -> tuple[TableScan, ...]:
    used, starred = names_used(query)
    scans: dict[tuple[tuple[str, ...], bool, str], TableScan] = {}
    for table in tables_in(query):
        parts, alias = table_name(table).parts, folded_alias(table)
        descriptor = relations[parts]
        # `t AS x (a, b)` renames columns by their places, so none may be left out.
        whole = bool(table.args.get("alias") and table.args["alias"].columns)
        access = accesses.get(alias)
        read = parts, whole, alias if access is not None else ""
        places = [
            place
            for place, column in enumerate(descriptor.visible_columns)
            if column.name in used or ((whole or starred) and not column.hidden)
        ]
        if read not in scans:
            scans[read] = TableScan(
                registered=f"scan_{len(scans)}",
                descriptor=descriptor,
                places=tuple(places) or (0,),
                access=access,
            )
        named = table.args.get("alias") or alias_named(folded(table.this))
        replacement = _scanned(scans[read], named)
        for arg in ("joins", "sample", "laterals"):
            if table.args.get(arg):
                replacement.set(arg, table.args[arg])
        table.replace(replacement)
        for arg in ("alias", "joins", "sample", "laterals"):
            table.args.pop(arg, None)  # the replacement's now
        dismantle(table)
    for column in find_all(query, exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return tuple(scans.values())


def _scanned(scan: TableScan, alias: exp.TableAlias) -> exp.Expr:
    """Returns the scan of a table, whose labels become members of their enumerations."""
    table = exp.Table(this=exp.to_identifier(scan.registered, quoted=True))
    columns = [scan.descriptor.visible_columns[place] for place in scan.places]
    if not any(enum_in(column.type) for column in columns):
        table.set("alias", alias)
        return table
    items: list[exp.Expr] = []
    for column in columns:
        named: exp.Expr = exp.column(column.name, quoted=True)
        if enum_in(column.type) is not None:
            named = exp.alias_(_cast(named, column.type), column.name, quoted=True)
        items.append(named)
    return exp.Subquery(this=exp.select(*items).from_(table), alias=alias)


def names_used(query: exp.Query) -> tuple[set[str], bool]:
    """Returns every name that may be of a column, and whether a star takes all."""
    names = {folded(node) for node in find_all(query, exp.Identifier)}
    starred = any(not isinstance(star.parent, exp.Count) for star in find_all(query, exp.Star))
    return names, starred


def _name_columns(query: exp.Query) -> None:
    """Gives columns the names that Postgres gives them: the result's, and those of parts of it."""
    for node in find_all(query, exp.Alias, exp.Column):
        name = node.args["alias"] if isinstance(node, exp.Alias) else node.this
        if isinstance(name, exp.Identifier):
            name.set("this", folded(name))
    for values in find_all(query, exp.Values):
        _name_values(values)
    for select in find_all(query, exp.Select):
        whole: exp.Expr = select
        while isinstance(whole.parent, exp.SetOperation):
            whole = whole.parent
        if whole is query or isinstance(whole.parent, exp.Subquery | exp.CTE):
            _name_items(select)


def _name_values(values: exp.Values) -> None:
    alias = values.args.get("alias")
    if alias is not None and values.expressions:
        width, given = len(values.expressions[0].expressions), alias.columns
        others = [exp.to_identifier(f"column{place + 1}") for place in range(len(given), width)]
        alias.set("columns", [*given, *others])


def _name_items(select: exp.Select) -> None:
    for item in list(select.expressions):
        give_way()
        # A column has its name already, and an alias of itself would confuse DuckDB's messages.
        if isinstance(item, exp.Star | exp.Alias | exp.Aliases | exp.Column):
            continue
        name = output_name(item)
        wrap(item, partial(exp.alias_, alias=name, quoted=True, copy=False))


def parameter_values(select: AnalyticSelect, bindings: scalars.Bindings) -> list[object]:
    """Returns DuckDB's parameters. Times go as text, which the cast reads back exactly."""
    return [_as_parameter(parameter.value(bindings)) for parameter in select.parameters]


def _as_parameter(value: object) -> object:
    if isinstance(value, Interval):
        return value.fields
    if isinstance(value, dict):
        return write_json(value)
    if isinstance(value, date | time):  # a datetime is a date
        return str(value)
    return [_as_parameter(item) for item in value] if isinstance(value, list) else value
