"""Databases and tables as they are created: columns, constraints, indexes, identities; tables made
of queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...syntax.schema_statements import (
    CHECK,
    NULLS,
    Check,
    ColumnDefinition,
    IdentityClause,
    IndexDefinition,
    Reference,
    SequenceChange,
    TableConstraint,
)
from ...syntax.statement import ObjectName, TypeName, rows_of
from ...syntax.statements import CreateTable, CreateTableAs, Query
from ...syntax.trees import unsupported
from .. import kinds
from ..cursor import Cursor
from ..rules import Row, Rules

# Sequences.

kinds.define_rules(
    "width",  # INTEGER is INT8, as it is for columns
    kinds.one_of({"SMALLINT/INT2": 16, "INT4": 32, "INTEGER/INT/BIGINT/INT8": 64}),
)
_sequence_option = Rules(
    ("AS bits:width", dict),
    ("INCREMENT [BY] increment:number", dict),
    ("START [WITH] start:number", dict),
    ("MINVALUE minimum:number", dict),
    ("MAXVALUE maximum:number", dict),
    ("NO MINVALUE/MAXVALUE", dict),
    ("NO CYCLE", dict, {"cycle": False}),
    ("CYCLE", dict, {"cycle": True}),
    ("CACHE cache:number", dict),
    ("OWNED BY NONE", dict, {"owned_by": ()}),
    ("OWNED BY path:column_path", lambda path: {"owned_by": tuple(path.split("."))}),
    ("SEQUENCE NAME name:sequence", dict),
    ("RESTART [[WITH] restart:number]", dict, {"restarts": True}),
)
kinds.define_rules("sequence_option", _sequence_option)
_sequence_options = kinds.gathered(_sequence_option)


@kinds.kind("sequence_options", absent=SequenceChange(position=1))
def _sequence_change(cursor: Cursor) -> SequenceChange:
    """The options up to the end of the statement, or of the parentheses around them."""
    position = cursor.position
    return SequenceChange(position=position, **_sequence_options(cursor))  # type: ignore[arg-type]


kinds.define_rules("identity", Rules(*rows_of(IdentityClause)))


# Indexes.

_OPERATOR_CLASSES = ("text_pattern_ops", "varchar_pattern_ops", "bpchar_pattern_ops")
"""PostgreSQL's names of the order that every index has: texts are ordered by their bytes."""


@kinds.kind("index_method")
def _method(cursor: Cursor) -> None:
    position, method = cursor.position, kinds.identifier(cursor, "an index's method")
    if method != "btree":
        raise unsupported(
            f'indexes of method "{method}"',
            position,
            "Indexes are ordered by their columns: leave USING out, or write USING btree.",
        )


kinds.define(
    "operator_class",
    lambda cursor: cursor.advance(),
    lambda cursor: cursor.key in _OPERATOR_CLASSES,
)
kinds.refuses(
    "computed",
    "(",
    "indexes of expressions",
    "Add a computed column (… AS (expression) STORED), and index that.",
)
kinds.refuses(
    "collated", "COLLATE", "collations", "Texts are ordered by their bytes: leave COLLATE out."
)
kinds.refuses(
    "partial", "WHERE", "partial indexes", "Leave WHERE out: the index then holds every row."
)
kinds.refuses(
    "not_distinct",
    "NOT",
    "NULLS NOT DISTINCT",
    "Rows with a NULL are never equal. Give them a value, and make it NOT NULL.",
)
kinds.define_rules(
    "index_column",
    Rules(
        (
            "[_:computed] name:column [_:computed] [_:collated] [_:operator_class] "
            "[otherwise:DESC | ASC] [NULLS ( first:FIRST | LAST )]",
            lambda name, otherwise, first: (name, otherwise or first),
        )
    ),
)
_STORING = f"columns:(index_column,…) [STORING/INCLUDE/COVERING storing:(column,…)] {NULLS}"
INDEX = f"[name:index] ON table:table [USING _:index_method] {_STORING} [_:partial]"


def index_definition(columns: Sequence[tuple[str, bool]], **fields: object) -> IndexDefinition:
    """An index of these columns, each with whether it is to be in another order."""
    return IndexDefinition(
        columns=tuple(name for name, _ in columns),
        descending=tuple(name for name, other in columns if other),
        **fields,  # type: ignore[arg-type]
    )


# Constraints.


kinds.refuses(
    "deferred_key",
    "DEFERRABLE/DEFERRED",
    "deferrable keys",
    "A key holds at the end of each statement, by its index: foreign keys are deferrable.",
)
_NOW = "NOT DEFERRABLE | INITIALLY ( IMMEDIATE | _:deferred_key ) | _:deferred_key"
kinds.define_rules("not_deferrable", Rules((f"{{ {_NOW} }}", lambda: None)))


def _reference(
    columns: tuple[str, ...],
    immediate: bool,
    deferrable: bool,
    deferred: bool,
    on_delete: str | None,
    on_update: str | None,
    position: int,
    **fields: object,
) -> Reference:
    if immediate and deferred:
        message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE"
        raise SQLError("42601", message, position=position)
    return Reference(
        columns=columns,
        on_delete=on_delete or "NO ACTION",
        on_update=on_update or "NO ACTION",
        deferrable=deferrable or deferred,
        initially_deferred=deferred,
        position=position,
        **fields,  # type: ignore[arg-type]
    )


kinds.refuses(
    "match",
    "MATCH",
    hint="Leave it out, and let a CHECK say which columns may be NULL beside others.",
)
_ACTIONS = ("NO ACTION", "RESTRICT", "CASCADE", "SET NULL")
kinds.define_rules("action", kinds.one_of({action: action for action in _ACTIONS}))
_NAMED = "^ [CONSTRAINT name:constraint]"
_REFERENCES = (
    "REFERENCES table:table [referenced_columns:(column,…)] [_:match] "
    "{ ON DELETE on_delete:action | ON UPDATE on_update:action } "
    "{ immediate:NOT DEFERRABLE | deferrable:DEFERRABLE "
    "| INITIALLY ( deferred:DEFERRED | IMMEDIATE ) } "
    "not_valid:[NOT VALID]"
)
_CONSTRAINTS: tuple[Row, ...] = (
    *rows_of(IndexDefinition),
    *rows_of(Check),
    (f"{_NAMED} FOREIGN KEY columns:(column,…) {_REFERENCES}", _reference),
)
kinds.define_rules("table_constraint", Rules(*_CONSTRAINTS))


# Columns.

SERIALS = frozenset(("serial", "serial2", "serial4", "serial8", "smallserial", "bigserial"))
"""INT8 NOT NULL DEFAULT unique_rowid(), whatever the width that is asked for, as in CockroachDB:
numbers that every node draws by itself are as wide as a clock, and no sequence is a bottleneck."""

kinds.refuses("virtual", "VIRTUAL", "virtual columns")
_STORED = "computed:parenthesised [_:virtual] STORED"
_clause = Rules(
    ("NOT VISIBLE", dict, {"hidden": True}),
    ("NOT NULL", dict, {"nullable": False}),
    ("NULL", dict, {"nullable": True}),
    ("DEFAULT default:expression", dict),
    ("PRIMARY KEY _:not_deferrable", dict, {"primary_key": True}),
    ("identity:identity", dict),
    (f"GENERATED ALWAYS AS {_STORED}", dict),
    (f"AS {_STORED}", dict),
    (
        f"UNIQUE {NULLS} _:not_deferrable",
        lambda: {"constraint": partial(IndexDefinition, unique=True, constraint=True)},
    ),
    (CHECK, lambda **fields: {"constraint": lambda columns, **named: Check(**fields, **named)}),
    (_REFERENCES, lambda **fields: {"constraint": partial(_reference, **fields)}),
    ("_:collated", dict),
)
_VALUES = frozenset({"default", "computed", "identity"})
"""Clauses that say where a column has its values from: one of them may stand."""


@kinds.kind("column_definition", kinds.begins_name)
def _column(cursor: Cursor) -> ColumnDefinition:
    """`name type [[CONSTRAINT name] clause …]`"""
    position, column = cursor.position, kinds.identifier(cursor, "a column's name")
    type, said = kinds.type_name(cursor), dict[str, object]()
    constraints: list[TableConstraint] = []

    def conflict(what: str, at: int = position) -> SQLError:
        return SQLError("42601", f'{what} for column "{column}"', position=at)

    while not (cursor.finished or cursor.key in (",", ")")):
        here, name = cursor.position, None
        if cursor.accept("constraint"):
            name = kinds.identifier(cursor, "a constraint's name")
        clause = _clause.read(cursor)
        assert isinstance(clause, dict), clause
        make = clause.pop("constraint", None)
        if make is not None:
            constraints.append(make(name=name, columns=(column,), position=here))
        if "primary_key" in clause:
            clause["primary_name"] = name
        for field, value in clause.items():
            if said.setdefault(field, value) is not value:
                raise conflict("conflicting or redundant clauses", here)
    serial = type.name in SERIALS
    values = sorted(_VALUES.intersection(said)) + ["serial"] * serial
    if len(values) > 1:
        raise conflict(f"both {' and '.join(values)} value specified")
    drawn = serial or "identity" in said
    if said.get("nullable") and (drawn or "primary_key" in said):
        raise conflict("conflicting NULL/NOT NULL declarations")
    if drawn:
        said["nullable"] = False
    if serial:
        said["default"] = exp.Anonymous(this="unique_rowid", expressions=[])
        type = TypeName("int8", (), type.position)
    return ColumnDefinition(
        name=column,
        type=type,
        constraints=tuple(constraints),
        position=position,
        **said,  # type: ignore[arg-type]
    )


# Tables.

kinds.refuses(
    "like",
    "LIKE",
    "LIKE in CREATE TABLE",
    "SHOW CREATE TABLE writes its columns out; CREATE TABLE … AS copies its rows.",
)
kinds.refuses("excluded", "EXCLUDE", "EXCLUDE constraints")
kinds.refuses(
    "divided",
    "PARTITION/INHERITS",
    hint="Tables are split into ranges by themselves, as they grow: leave it out.",
)


class _Key(NamedTuple):
    """PRIMARY KEY (…) among the elements of a table."""

    position: int
    name: str | None
    columns: tuple[str, ...]


kinds.define_rules(
    "element",
    Rules(
        (f"[_:like] {_NAMED} PRIMARY KEY columns:(column,…) _:not_deferrable", _Key),
        *_CONSTRAINTS,
        (f"unique:[UNIQUE] INDEX ^ [name:index] {_STORING}", index_definition),
        ("[CONSTRAINT _:constraint] _:excluded", dict),
        ("name:column_definition", kinds.itself),
    ),
)  # fmt: skip
kinds.refuses("ends", "ON", "ON COMMIT", "The table ends with its session, or by DROP TABLE.")


@kinds.kind("stored_query", kinds.begins_query)
def stored_query(cursor: Cursor) -> Query:
    """The query of a view, or of CREATE TABLE AS. Raises SQLError 0A000 where it reads the past."""
    query = kinds.query(cursor)
    if query.as_of is not None:
        raise SQLError(
            "0A000",
            "what is made of a query does not read the past",
            hint="Write AS OF SYSTEM TIME where the view or the table is read.",
            position=query.as_of.position,
        )
    return query


def _table(
    table: ObjectName,
    elements: tuple[ColumnDefinition | _Key | TableConstraint, ...],
    **fields: object,
) -> CreateTable:
    columns = tuple(each for each in elements if isinstance(each, ColumnDefinition))
    keys = [each for each in elements if isinstance(each, _Key)]
    keys += [_Key(c.position, c.primary_name, (c.name,)) for c in columns if c.primary_key]
    if len(keys) > 1:
        message = f'multiple primary keys for table "{table.parts[-1]}" are not allowed'
        raise SQLError("42P16", message, position=keys[1].position)
    return CreateTable(
        table=table,
        columns=columns,
        primary_key=keys[0].columns if keys else (),
        primary_name=keys[0].name if keys else None,
        elements=tuple(each for each in elements if not isinstance(each, ColumnDefinition | _Key)),
        **fields,  # type: ignore[arg-type]
    )


_TABLE = (
    "CREATE temporary:[[LOCAL/GLOBAL] TEMP/TEMPORARY] TABLE if_not_exists:[IF NOT EXISTS] "
    "table:table"
)
TABLES: tuple[Row, ...] = (
    (f"{_TABLE} elements:(element,…) [WITH parameters:(parameter,…)] [_:divided] [_:ends]", _table),
    (f"{_TABLE} [WITH parameters:(option,…)] [_:ends] AS query:stored_query", CreateTableAs),
)
