"""The grammar of databases and tables."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.descriptors.elements import Identity
from ....catalog.descriptors.temporary_schema import TEMPORARY
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import SQL_NAMES
from ...syntax.refusals import unsupported
from ...syntax.schema_statements import (
    Check,
    ColumnDefinition,
    IdentityClause,
    IndexDefinition,
    PrimaryKey,
    Reference,
    TableConstraint,
    Unique,
)
from ...syntax.statements import (
    CreateDatabase,
    CreateTable,
    CreateTableAs,
    Option,
    TypeName,
)
from ..cursor import Cursor, LexemeKind
from ..queries import parse_tree
from .deferrable import deferral, not_deferrable
from .identity import identity_mode, identity_options
from .index_columns import column_names, index_definition, nulls_distinct
from .table_copies import create_table_as, on_commit

SERIALS = frozenset(
    ("serial", "serial2", "serial4", "serial8", "smallserial", "bigserial"),
)
"""INT8 NOT NULL DEFAULT unique_rowid(), whatever the width that is asked for, as in CockroachDB:
numbers that every node draws by itself are as wide as a clock, and no sequence is a bottleneck."""

TYPES_OF_SEVERAL_WORDS = {
    "double": ("precision",),
    "character": ("varying",),
}
# fmt: off
_COLUMN_CONSTRAINTS = frozenset({
    "not", "null", "primary", "default", "constraint", "unique", "check", "references",
    "generated", "collate", "as", "using",
})
# fmt: on
_REFUSED = {
    "collate": "collations",
    "exclude": "EXCLUDE constraints",
}


def create_database(cursor: Cursor) -> CreateDatabase:
    if_not_exists = cursor.accept_words("if", "not", "exists")
    name = cursor.identifier("a database's name")
    return CreateDatabase(name=name, if_not_exists=if_not_exists)


def create_temporary_table(cursor: Cursor) -> CreateTable | CreateTableAs:
    """As `create_table`, with `[ON COMMIT {PRESERVE ROWS | DELETE ROWS | DROP}]` at its end, or
    before AS."""
    made = create_table(cursor, temporary=True)
    *schema, _ = made.table.parts
    if schema not in ([], [TEMPORARY]):
        raise SQLError(
            "42P16",
            "cannot create temporary relation in non-temporary schema",
            position=made.table.position,
        )
    return made


def create_table(cursor: Cursor, *, temporary: bool = False) -> CreateTable | CreateTableAs:
    """`[IF NOT EXISTS] name (element, …) [WITH (parameter = value, …)]`, or `… AS query`"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    table = cursor.object_name("a table's name")
    temporary = temporary or table.parts[0] == TEMPORARY
    made = create_table_as(cursor, table, if_not_exists=if_not_exists, temporary=temporary)
    if made is not None:
        return made
    cursor.expect_symbol("(")
    columns: list[ColumnDefinition] = []
    elements: list[TableConstraint | IndexDefinition] = []
    primary_key: PrimaryKey | None = None
    while True:
        position = cursor.position
        if cursor.at_words("like"):
            raise unsupported(
                "LIKE in CREATE TABLE",
                position,
                "SHOW CREATE TABLE writes its columns out; CREATE TABLE … AS copies its rows.",
            )
        element = table_element(cursor)
        if element is None:
            columns.append(column_definition(cursor))
        elif not isinstance(element, PrimaryKey):
            elements.append(element)
        elif primary_key is not None:
            raise SQLError(
                "42P16",
                f'multiple primary keys for table "{table.parts[-1]}" are not allowed',
                position=position,
            )
        else:
            primary_key = element
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    parameters = parameter_list(cursor, with_values=True) if cursor.accept_words("with") else ()
    _refuse_partitions(cursor)
    ends = on_commit(cursor) if temporary else None
    return CreateTable(
        table=table,
        columns=tuple(columns),
        primary_key=() if primary_key is None else primary_key.columns,
        primary_name=None if primary_key is None else primary_key.name,
        elements=tuple(elements),
        if_not_exists=if_not_exists,
        parameters=parameters,
        temporary=ends,
    )


def _refuse_partitions(cursor: Cursor) -> None:
    for words in (("partition", "by"), ("inherits",)):
        if cursor.at_words(*words):
            raise unsupported(
                f"{' '.join(words).upper()}",
                cursor.position,
                "Tables are split into ranges by themselves, as they grow: leave it out.",
            )


def parameter_list(cursor: Cursor, *, with_values: bool) -> tuple[Option, ...]:
    """`(name [= value], …)`; names alone unless `with_values`."""

    def parameter() -> Option:
        position = cursor.position
        name = cursor.dotted_name("a parameter")
        value = None
        if with_values:
            # A boolean parameter may stand alone, as in Postgres.
            value = cursor.option_value() if cursor.accept_symbol("=") else "true"
        return Option(name, value, position)

    return cursor.enclosed(parameter)


def table_element(cursor: Cursor) -> PrimaryKey | TableConstraint | IndexDefinition | None:
    """A constraint or an index; None before a column."""
    position = cursor.position
    name = cursor.identifier("a constraint's name") if cursor.accept_words("constraint") else None
    if cursor.accept_words("primary", "key"):
        key = PrimaryKey(name=name, columns=column_names(cursor))
        not_deferrable(cursor)
        return key
    constraint = constraint_of(cursor, name, position)
    if constraint is not None:
        return constraint
    unique = cursor.at_words("unique", "index")
    if name is None and (unique or (cursor.at_words("index") and not _typed(cursor))):
        cursor.accept_words("unique")
        cursor.expect_words("index")
        return index_definition(cursor, unique=unique)
    _refuse_unsupported(cursor)
    if name is not None:
        cursor.fail(expected="PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY")
    return None


def _typed(cursor: Cursor) -> bool:
    """Whether the word INDEX is a column's name: a type that is a word stands behind it."""
    return any(cursor.at_words("index", name) for name in SQL_NAMES)


def constraint_of(cursor: Cursor, name: str | None, position: int) -> TableConstraint | None:
    """`UNIQUE (…)`, `CHECK (…)`, `FOREIGN KEY (…) REFERENCES …`, or None before anything else."""
    if cursor.at_words("unique", "index"):
        return None
    if cursor.accept_words("unique"):
        if cursor.at_words("using", "index"):
            raise unsupported(
                "constraints USING INDEX",
                cursor.position,
                "A unique index is a constraint already: ALTER INDEX … RENAME TO gives it the "
                "name.",
            )
        nulls_distinct(cursor)
        unique = Unique(name=name, columns=column_names(cursor), position=position)
        not_deferrable(cursor)
        return unique
    if cursor.accept_words("check"):
        tree = parenthesised(cursor)
        cursor.accept_words("no", "inherit")  # as every table does
        not_valid = cursor.accept_words("not", "valid")
        return Check(name=name, tree=tree, position=position, not_valid=not_valid)
    if cursor.accept_words("foreign", "key"):
        return reference(cursor, name, column_names(cursor), position)
    return None


def reference(
    cursor: Cursor, name: str | None, columns: tuple[str, ...], position: int
) -> Reference:
    """`REFERENCES table [(columns)] [MATCH kind] [ON {DELETE | UPDATE} action]
    [[NOT] DEFERRABLE] [INITIALLY {DEFERRED | IMMEDIATE}] [NOT VALID]`"""
    cursor.expect_words("references")
    table = cursor.object_name("a table's name")
    referenced = column_names(cursor) if cursor.at_symbol("(") else ()
    _match(cursor, len(columns))
    actions = {"delete": "NO ACTION", "update": "NO ACTION"}
    while cursor.accept_words("on"):
        event = next((word for word in actions if cursor.accept_words(word)), None)
        if event is None:
            cursor.fail(expected="DELETE or UPDATE")
        actions[event] = _action(cursor)
    deferrable, deferred = deferral(cursor)
    not_valid = cursor.accept_words("not", "valid")
    return Reference(
        name=name,
        columns=columns,
        table=table,
        referenced_columns=referenced,
        on_delete=actions["delete"],
        on_update=actions["update"],
        position=position,
        not_valid=not_valid,
        deferrable=deferrable,
        initially_deferred=deferred,
    )


def _match(cursor: Cursor, width: int) -> None:
    """`[MATCH SIMPLE | MATCH FULL]`, which is the same for one column. Raises SQLError 0A000 where
    it is not."""
    if not cursor.accept_words("match"):
        return
    position = cursor.position
    if cursor.accept_words("simple") or (width == 1 and cursor.accept_words("full")):
        return
    if cursor.at_words("full") or cursor.at_words("partial"):
        raise unsupported(
            f"MATCH {cursor.current.text.upper()}",
            position,
            "Leave it out, and let a CHECK say which columns may be NULL beside others.",
        )
    cursor.fail(expected="SIMPLE or FULL")


def _action(cursor: Cursor) -> str:
    for words in ("no action", "restrict", "cascade", "set null", "set default"):
        if cursor.accept_words(*words.split()):
            return words.upper()
    cursor.fail(expected="NO ACTION, RESTRICT, CASCADE, SET NULL or SET DEFAULT")


def parenthesised(cursor: Cursor) -> exp.Expr:
    """`(expression)`"""
    cursor.expect_symbol("(")
    tokens = cursor.until(lambda: cursor.at_symbol(")"))
    if not tokens:
        cursor.fail(expected="an expression")
    cursor.expect_symbol(")")
    return parse_tree(cursor.text, tokens)


def column_definition(cursor: Cursor) -> ColumnDefinition:
    """`name type [constraint …]`"""
    position = cursor.position
    name = cursor.identifier("a column's name")
    clauses = _ColumnClauses(name, type_name(cursor), position)
    while not (cursor.at_symbol(",") or cursor.at_symbol(")") or cursor.finished):
        clauses.read(cursor)
    return clauses.definition()


class _ColumnClauses:
    """The clauses behind a column's type."""

    def __init__(self, name: str, type: TypeName, position: int) -> None:
        self._name = name
        self._type = type
        self._position = position
        self._nullable: bool | None = None
        self._default: exp.Expr | None = None
        self._computed: exp.Expr | None = None
        self._primary_key = False
        self._primary_name: str | None = None
        self._hidden = False
        self._identity: IdentityClause | None = None
        self._constraints: list[TableConstraint] = []

    def read(self, cursor: Cursor) -> None:
        here = cursor.position
        name = (
            cursor.identifier("a constraint's name") if cursor.accept_words("constraint") else None
        )
        if cursor.accept_words("not", "visible"):
            self._hidden = True
        elif cursor.at_words("not", "null") or cursor.at_words("null"):
            wanted = not cursor.accept_words("not")
            cursor.expect_words("null")
            if self._nullable is not None and self._nullable != wanted:
                raise self._conflict("conflicting NULL/NOT NULL declarations", here)
            self._nullable = wanted
        elif cursor.accept_words("default"):
            self._set_default(expression(cursor), here)
        elif cursor.accept_words("primary", "key"):
            self._primary_key, self._primary_name = True, name
            not_deferrable(cursor)
        elif cursor.accept_words("unique"):
            nulls_distinct(cursor)
            self._constraints.append(Unique(name=name, columns=(self._name,), position=here))
            not_deferrable(cursor)
        elif cursor.at_words("references"):
            self._constraints.append(reference(cursor, name, (self._name,), here))
        elif (identity := identity_mode(cursor)) is not None:
            self._set_identity(identity, cursor, here)
        elif cursor.accept_words("generated", "always", "as") or cursor.accept_words("as"):
            self._set_computed(parenthesised(cursor), here)
            if cursor.at_words("virtual"):
                raise unsupported("virtual columns", cursor.position)
            cursor.expect_words("stored")
        elif (constraint := constraint_of(cursor, name, here)) is not None:
            self._constraints.append(constraint)
        else:
            _refuse_unsupported(cursor)
            cursor.fail(expected='NULL, NOT NULL, DEFAULT, PRIMARY KEY, "," or ")"')

    def _set_default(self, tree: exp.Expr, position: int) -> None:
        if self._default is not None:
            raise self._conflict("multiple default values specified", position)
        self._default = tree

    def _set_computed(self, tree: exp.Expr, position: int) -> None:
        if self._computed is not None:
            raise self._conflict("multiple generation clauses specified", position)
        self._computed = tree

    def definition(self) -> ColumnDefinition:
        if self._identity is not None:
            self._check_identity()
        if self._type.name in SERIALS:
            self._make_serial()
        if self._default is not None and self._computed is not None:
            raise self._conflict("both default and computed value specified", self._position)
        return ColumnDefinition(
            name=self._name,
            type=self._type,
            nullable=self._nullable,
            default=self._default,
            primary_key=self._primary_key,
            primary_name=self._primary_name,
            position=self._position,
            computed=self._computed,
            constraints=tuple(self._constraints),
            hidden=self._hidden,
            identity=self._identity,
        )

    def _set_identity(self, identity: Identity, cursor: Cursor, position: int) -> None:
        if self._identity is not None:
            raise self._conflict("multiple identity specifications", position)
        self._identity = IdentityClause(identity, identity_options(cursor))

    def _check_identity(self) -> None:
        if self._type.name in SERIALS or self._default is not None:
            raise self._conflict("both default and identity specified", self._position)
        if self._computed is not None:
            raise self._conflict("both identity and computed value specified", self._position)
        if self._nullable is True:
            raise self._conflict("conflicting NULL/NOT NULL declarations", self._position)
        self._nullable = False

    def _conflict(self, what: str, position: int) -> SQLError:
        return SQLError("42601", f'{what} for column "{self._name}"', position=position)

    def _make_serial(self) -> None:
        if self._default is not None or self._computed is not None:
            raise self._conflict("multiple default values specified", self._position)
        if self._nullable is True:
            raise self._conflict("conflicting NULL/NOT NULL declarations", self._position)
        self._default = exp.Anonymous(this="unique_rowid", expressions=[])
        self._nullable = False
        self._type = TypeName("int8", (), self._type.position)


def type_name(cursor: Cursor) -> TypeName:
    """`name[.name] [(number, …)] [WITH | WITHOUT TIME ZONE] [[]]`. Raises SQLError 42601, and
    0A000 for arrays of several dimensions."""
    position = cursor.position
    if cursor.current.kind not in (LexemeKind.WORD, LexemeKind.QUOTED):
        cursor.fail(expected="a column's type")
    words = [cursor.advance().text]
    while cursor.accept_symbol("."):  # a user's type, in its schema
        words[0] += f".{cursor.identifier('a type')}"
    for following in TYPES_OF_SEVERAL_WORDS.get(words[0], ()):
        if cursor.accept_words(following):
            words.append(following)
    arguments: tuple[int, ...] = ()
    if cursor.at_symbol("("):
        arguments = cursor.enclosed(lambda: cursor.integer("a whole number"))
    if words[0] in ("timestamp", "time"):
        for zone in ("with", "without"):
            if cursor.accept_words(zone, "time", "zone"):
                words += [zone, "time", "zone"]
    if _array_marks(cursor):
        words[-1] += "[]"
    return TypeName(" ".join(words), arguments, position)


def _array_marks(cursor: Cursor) -> bool:
    """`[]`, `[3]` (the bound says nothing, as in PostgreSQL) or ARRAY behind a type."""
    if cursor.accept_words("array"):
        return True
    if not cursor.accept_symbol("["):
        return False
    if not cursor.at_symbol("]"):
        cursor.integer("a bound")
    cursor.expect_symbol("]")
    if cursor.at_symbol("["):
        raise unsupported("arrays of several dimensions", cursor.position)
    return True


def expression(cursor: Cursor) -> exp.Expr:
    """The tokens up to the next constraint, comma or closing parenthesis, as an expression."""
    begun = cursor.mark()

    def ends() -> bool:
        if cursor.at_symbol(",") or cursor.at_symbol(")"):
            return True
        word = cursor.current.kind is LexemeKind.WORD
        return word and cursor.mark() > begun and cursor.current.text in _COLUMN_CONSTRAINTS

    tokens = cursor.until(ends)
    if not tokens:
        cursor.fail(expected="a constant")
    return parse_tree(cursor.text, tokens)


def _refuse_unsupported(cursor: Cursor) -> None:
    lexeme = cursor.current
    what = _REFUSED.get(lexeme.text) if lexeme.kind is LexemeKind.WORD else None
    if what is not None:
        raise unsupported(what, cursor.position)
