"""From statements to targets: what ALTER TABLE and its like want of which elements.

Each command is read against the table as it will be when the commands before it are done, so that
`ADD COLUMN a INT8, ADD CHECK (a > 0)` means what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sqlglot import exp

from ...catalog.column_types import ColumnType, Datum, coerce
from ...catalog.descriptor import Column, TableDescriptor
from ...catalog.elements import (
    CheckConstraint,
    ForeignKey,
    Index,
    IndexKind,
    ReferentialAction,
    Validity,
)
from ...catalog.errors import SQLError
from ...catalog.publish_rules import LOCK_PARAMETER, lock_not_alone
from ...catalog.schema_change.moves import apply_move
from ...catalog.schema_change.rules import way
from ...catalog.schema_change.stages import Move
from ...catalog.schema_change.targets import (
    ColumnElement,
    ConstraintElement,
    FactsElement,
    IndexElement,
    PrimaryElement,
    Target,
)
from ...catalog.storage_parameters import check_name, parse_names, parse_parameters
from ...catalog.type_kinds import TypeKind
from ..default_expressions import compile_default, volatile
from ..parser import columns_in, position_of, renamed, text_of, uses_any
from ..parser import schema_statements as s
from ..parser.names import TypeName
from ..row_expressions import compile_check, compile_expression
from ..scalars import Bindings

EPOCH = Bindings((), datetime(1970, 1, 1, tzinfo=UTC))


class TableChanges:
    """Targets for one table, gathered command by command. `table` is what it will be."""

    def __init__(self, table: TableDescriptor) -> None:
        self.before = table
        self.table = table
        self.targets: list[Target] = []
        self._primary: int | None = None

    def add(self, *targets: Target) -> None:
        for target in targets:
            self.targets.append(target)
            for status in way(target):
                if not status.by_work:
                    self.table = apply_move(self.table, target, Move(len(self.targets) - 1, status))

    def run(self, command: s.AlterCommand) -> None:
        match command:
            case s.AddColumn():
                self._add_column(command)
            case s.DropColumn():
                self._drop_column(command)
            case s.RenameColumn():
                self._rename_column(command)
            case s.AlterType():
                self._alter_type(command)
            case s.SetDefault():
                self._set_default(command)
            case s.SetNotNull():
                self._set_not_null(command)
            case s.AddConstraint(constraint=s.Check() as check):
                self.add_check(check)
            case s.AddConstraint(constraint=s.Unique() as unique):
                self.add_unique(unique)
            case s.DropConstraint():
                self._drop_constraint(command)
            case s.ValidateConstraint():
                self._validate(command)
            case s.RenameConstraint():
                self._rename_constraint(command)
            case s.AlterPrimaryKey():
                self._alter_primary_key(command)
            case s.SetParameters():
                self._set_parameters(command)
            case _:
                raise AssertionError(f"{command} is not about one table alone")

    # Columns.

    def _add_column(self, command: s.AddColumn) -> None:
        given = command.definition
        if self.table.find_column(given.name) is not None:
            if command.if_not_exists:
                return
            raise SQLError(
                "42701",
                f'column "{given.name}" of relation "{self.table.name}" already exists',
                position=given.position,
            )
        if given.primary_key:
            raise SQLError(
                "42P16",
                f'multiple primary keys for table "{self.table.name}" are not allowed',
                position=given.position,
            )
        column, must_fill = new_column(self.table, given)
        if must_fill:
            self._new_primary(self.table.primary_key)
        demanded = not column.nullable and not must_fill and column.missing is None
        if demanded:
            column = replace(column, nullable=True)
        self.add(Target(ColumnElement(column=column, filled=must_fill)))
        if demanded:
            self._demand_not_null(column)
        for constraint in given.constraints:
            if isinstance(constraint, s.Check):
                self.add_check(constraint)
            elif isinstance(constraint, s.Unique):
                self.add_unique(constraint)

    def check_computed(self, given: s.ColumnDefinition) -> None:
        """Of a computed column that CREATE TABLE makes: whether its expression may be one."""
        assert given.computed is not None, given
        column = self.table.column(given.name)
        with_computed(self.table, replace(column, computed=None), given.computed)

    def _drop_column(self, command: s.DropColumn) -> None:
        if command.if_exists and self.table.find_column(command.name) is None:
            return
        column = self._column(command.name, command.position)
        if len(self.table.visible_columns) == 1:
            raise SQLError("0A000", "a table keeps at least one column", position=command.position)
        if column.id in self.table.primary_key:
            raise SQLError(
                "42P10",
                f'column "{column.name}" is referenced by the primary key',
                hint="Run ALTER TABLE … ALTER PRIMARY KEY USING COLUMNS (…) first.",
                position=command.position,
            )
        for index in self.table.indexes:
            if column.id in (*index.columns, *index.storing):
                self._must_cascade(command, f'index "{index.name}"')
                self.add(Target(IndexElement(index=index), present=False))
        for constraint in self.table.constraints:
            if column.id in constraint.columns:
                self._must_cascade(command, f'constraint "{constraint.name}"')
                self.add(Target(ConstraintElement(constraint=constraint), present=False))
        for other in self.table.visible_columns:
            if other.computed is not None and uses_any(other.computed, [column.name]):
                raise _depends(column, f'computed column "{other.name}"', command.position)
        self.add(Target(ColumnElement(column=column), present=False))

    def _must_cascade(self, command: s.DropColumn, what: str) -> None:
        if not command.cascade:
            raise SQLError(
                "2BP01",
                f'cannot drop column "{command.name}" of table "{self.table.name}" because '
                f"{what} depends on it",
                hint="Use DROP COLUMN … CASCADE to drop the dependent objects too.",
                position=command.position,
            )

    def _rename_column(self, command: s.RenameColumn) -> None:
        column = self._column(command.name, command.position)
        if command.new_name == column.name:
            return
        if self.table.find_column(command.new_name) is not None:
            raise SQLError(
                "42701",
                f'column "{command.new_name}" of relation "{self.table.name}" already exists',
                position=command.position,
            )
        names = {column.name: command.new_name}
        columns = [replace(column, name=command.new_name)]
        columns += [
            replace(other, computed=renamed(other.computed, names))
            for other in self.table.visible_columns
            if other.computed is not None and uses_any(other.computed, names)
        ]
        constraints = [
            (check.name, replace(check, expression=renamed(check.expression, names)))
            for check in self.table.checks
            if column.id in check.columns
        ]
        self.add(
            Target(
                FactsElement(
                    label=f"rename column {column.name} to {command.new_name}",
                    columns=tuple(columns),
                    constraints=tuple(constraints),
                )
            )
        )

    def _alter_type(self, command: s.AlterType) -> None:
        column = self._column(command.name, command.position)
        type = column_type(command.type)
        if type == column.type and command.using is None:
            return
        self._refuse_users(column, "its type be changed", command.position)
        source = command.using or exp.cast(exp.column(column.name, quoted=True), _cast_name(type))
        interim = text_of(source)
        default = (
            column.default
            if not column.has_default
            else coerce(type, _as_text(column.default), column=column.name)
        )
        new = replace(
            column, id=self.table.next_column_id, type=type, default=default, missing=None
        )
        self._new_primary(self.table.primary_key)
        compile_expression(self.table, interim, type)
        back = exp.TryCast(
            this=exp.column(column.name, quoted=True),
            to=exp.DataType.build(_cast_name(column.type)),
        )
        self.add(
            Target(ColumnElement(column=new, filled=True, replaces=column.id, interim=interim)),
            Target(
                ColumnElement(column=column, replaced=True, interim=f"{back.sql('postgres')}"),
                present=False,
            ),
        )

    def _refuse_users(self, column: Column, what: str, position: int) -> None:
        if column.id in self.table.primary_key:
            raise _depends(column, "the primary key", position)
        for index in self.table.indexes:
            if column.id in (*index.columns, *index.storing):
                raise _depends(column, f'index "{index.name}"', position)
        for constraint in self.table.constraints:
            if column.id in constraint.columns:
                raise _depends(column, f'constraint "{constraint.name}"', position)
        for other in self.table.visible_columns:
            if other.computed is not None and uses_any(other.computed, [column.name]):
                raise _depends(column, f'computed column "{other.name}"', position)
        if column.computed is not None:
            raise SQLError(
                "0A000",
                f'column "{column.name}" is computed and cannot have {what}',
                position=position,
            )

    def _set_default(self, command: s.SetDefault) -> None:
        column = self._column(command.name, command.position)
        if column.computed is not None:
            raise SQLError(
                "42601",
                f'column "{column.name}" is computed and takes no default',
                position=command.position,
            )
        plain = replace(column, has_default=False, default=None, default_expression=None)
        changed = plain if command.default is None else with_default(plain, command.default)
        verb = "drop" if command.default is None else "set"
        self.add(Target(FactsElement(label=f"{verb} default of {column.name}", columns=(changed,))))

    def _set_not_null(self, command: s.SetNotNull) -> None:
        column = self._column(command.name, command.position)
        if column.nullable is not command.not_null:
            return
        if command.not_null:
            self._demand_not_null(column)
            return
        if column.id in self.table.primary_key:
            raise SQLError(
                "42P16",
                f'column "{column.name}" is in a primary key',
                position=command.position,
            )
        self.add(Target(ConstraintElement(constraint=_not_null(column)), present=False))

    def _demand_not_null(self, column: Column) -> None:
        self.add(Target(ConstraintElement(constraint=_not_null(column))))

    def _column(self, name: str, position: int) -> Column:
        try:
            return self.table.column(name)
        except SQLError as error:
            error.position = position
            raise

    # Constraints.

    def add_check(self, given: s.Check) -> None:
        columns = [self._column(name, given.position) for name in columns_in(given.tree)]
        stem = "_".join([self.table.name, *(column.name for column in columns), "check"])
        name = self._free_name(given.name, stem, given.position)
        check = CheckConstraint(
            name=name,
            expression=text_of(given.tree),
            columns=tuple(column.id for column in columns),
        )
        compile_check(self.table, check)
        self.add(Target(ConstraintElement(constraint=check, unproven=given.not_valid)))

    def add_unique(self, given: s.Unique) -> None:
        self.add_index(
            s.IndexDefinition(
                name=given.name,
                columns=given.columns,
                storing=(),
                unique=True,
                position=given.position,
            )
        )

    def add_reference(self, given: s.Reference, referenced: TableDescriptor) -> None:
        """A foreign key to a table that is there, as it is or (of this one) as it will be."""
        columns = [self._column(name, given.position) for name in given.columns]
        targets = self._referenced_columns(given, referenced)
        if len(columns) != len(targets):
            raise SQLError(
                "42830",
                "number of referencing and referenced columns for foreign key disagree",
                position=given.position,
            )
        for column, target in zip(columns, targets, strict=True):
            if column.type != target.type:
                raise SQLError(
                    "42804",
                    f'foreign key column "{column.name}" is of type {column.type} and the '
                    f'referenced column "{target.name}" of type {target.type}',
                    position=given.position,
                )
        stem = "_".join([self.table.name, *given.columns, "fkey"])
        key = ForeignKey(
            name=self._free_name(given.name, stem, given.position),
            columns=tuple(column.id for column in columns),
            referenced_id=referenced.id,
            referenced_columns=tuple(target.id for target in targets),
            on_delete=_action(given.on_delete, given.position),
            on_update=_action(given.on_update, given.position),
        )
        self.add(Target(ConstraintElement(constraint=key, unproven=given.not_valid)))

    def _referenced_columns(
        self, given: s.Reference, referenced: TableDescriptor
    ) -> Sequence[Column]:
        if not given.referenced_columns:
            return referenced.key_columns
        columns = [referenced.column(name) for name in given.referenced_columns]
        wanted = {column.id for column in columns}
        unique = [set(referenced.primary_key)]
        unique += [set(index.columns) for index in referenced.indexes if index.unique]
        if wanted not in unique or len(wanted) != len(columns):
            raise SQLError(
                "42830",
                "there is no unique constraint matching given keys for referenced table "
                f'"{referenced.name}"',
                position=given.position,
            )
        return columns

    def _drop_constraint(self, command: s.DropConstraint) -> None:
        index = self.table.find_index(command.name)
        if index is not None and index.unique:
            self.drop_index(index)
            return
        constraint = self.table.find_constraint(command.name)
        if constraint is None and command.if_exists:
            return
        if constraint is None:
            raise self._no_constraint(command.name, command.position)
        self.add(Target(ConstraintElement(constraint=constraint), present=False))

    def _validate(self, command: s.ValidateConstraint) -> None:
        constraint = self.table.find_constraint(command.name)
        if constraint is None:
            raise self._no_constraint(command.name, command.position)
        if constraint.validity is not Validity.VALIDATED:
            self.add(Target(ConstraintElement(constraint=constraint, known=True)))

    def _rename_constraint(self, command: s.RenameConstraint) -> None:
        self._free_name(command.new_name, "", command.position)
        index = self.table.find_index(command.name)
        label = f"rename constraint {command.name} to {command.new_name}"
        if index is not None and index.unique:
            changed = replace(index, name=command.new_name)
            self.add(Target(FactsElement(label=label, indexes=(changed,))))
            return
        constraint = self.table.find_constraint(command.name)
        if constraint is None:
            raise self._no_constraint(command.name, command.position)
        new = replace(constraint, name=command.new_name)
        self.add(Target(FactsElement(label=label, constraints=((command.name, new),))))

    def _no_constraint(self, name: str, position: int) -> SQLError:
        return SQLError(
            "42704",
            f'constraint "{name}" of relation "{self.table.name}" does not exist',
            position=position,
        )

    def _free_name(self, given: str | None, stem: str, position: int) -> str:
        """The name given, which must be free, or a free one made from `stem`."""
        taken = {index.name for index in self.table.indexes}
        taken |= {constraint.name for constraint in self.table.constraints}
        taken.add(self.table.primary_index_name)
        if given is None:
            name, number = stem, 1
            while name in taken:
                name, number = f"{stem}{number}", number + 1
            return name
        if given in taken:
            raise SQLError(
                "42710",
                f'constraint "{given}" for relation "{self.table.name}" already exists',
                position=position,
            )
        return given

    # Indexes.

    def add_index(self, given: s.IndexDefinition, *, if_not_exists: bool = False) -> None:
        columns = [self._column(name, given.position) for name in given.columns]
        storing = [self._column(name, given.position) for name in given.storing]
        if len({column.id for column in columns}) != len(columns):
            raise SQLError("42701", "a column appears twice in an index", position=given.position)
        if {column.id for column in storing} & {column.id for column in columns}:
            raise SQLError("42701", "a column is both indexed and stored", position=given.position)
        if given.name is not None and self.table.find_index(given.name) is not None:
            if if_not_exists:
                return
            raise SQLError("42P07", f'index "{given.name}" already exists', position=given.position)
        suffix = "key" if given.unique else "idx"
        stem = "_".join([self.table.name, *given.columns, suffix])
        index = Index(
            id=self.table.next_index_id,
            name=self._free_name(given.name, stem, given.position),
            columns=tuple(column.id for column in columns),
            unique=given.unique,
            storing=tuple(
                column.id for column in storing if column.id not in self.table.primary_key
            ),
            suffix=self.table.primary_key,
        )
        self.add(Target(IndexElement(index=index)))

    def drop_index(self, index: Index) -> None:
        self.add(Target(IndexElement(index=index), present=False))

    def rename_index(self, index: Index, new_name: str, position: int) -> None:
        self._free_name(new_name, "", position)
        changed = replace(index, name=new_name)
        label = f"rename index {index.name} to {new_name}"
        self.add(Target(FactsElement(label=label, indexes=(changed,))))

    # The primary index.

    def _new_primary(self, key: tuple[int, ...]) -> None:
        """A new primary index, if the statement has not made one already."""
        if self._primary is not None:
            return
        index = Index(
            id=self.table.next_index_id,
            name=self.table.primary_index_name,
            kind=IndexKind.PRIMARY,
            unique=True,
            columns=key,
        )
        self._primary = index.id
        self.add(Target(PrimaryElement(index=index)))

    def _alter_primary_key(self, command: s.AlterPrimaryKey) -> None:
        if self._primary is not None:
            raise SQLError(
                "0A000",
                "ALTER PRIMARY KEY cannot stand beside another change that rewrites the table",
                position=command.position,
            )
        columns = [self._column(name, command.position) for name in command.columns]
        key = tuple(column.id for column in columns)
        if len(set(key)) != len(key):
            raise SQLError("42701", "a column appears twice in the key", position=command.position)
        for column in columns:
            if column.nullable:
                raise SQLError(
                    "42P16",
                    f'column "{column.name}" is nullable and cannot be in a primary key',
                    hint=f'Run ALTER TABLE … ALTER COLUMN "{column.name}" SET NOT NULL first.',
                    position=command.position,
                )
        if key == self.table.primary_key:
            return
        if self.table.referenced_by:
            raise SQLError(
                "2BP01",
                f'the primary key of "{self.table.name}" is referenced by foreign keys',
                position=command.position,
            )
        old = list(self.table.indexes)
        self._new_primary(key)
        for index in old:
            self._rebuild(index, key)

    def _rebuild(self, index: Index, key: tuple[int, ...], *, empty: bool = False) -> None:
        fresh = replace(index, id=self.table.next_index_id, suffix=key)
        self.add(
            Target(IndexElement(index=fresh, empty=empty)),
            Target(IndexElement(index=index), present=False),
        )

    def truncate(self) -> None:
        """Every index anew and without entries."""
        old = list(self.table.indexes)
        index = replace(self.table.primary_index, id=self.table.next_index_id, empty=True)
        self.add(Target(PrimaryElement(index=index, empty=True)))
        for secondary in old:
            self._rebuild(secondary, self.table.primary_key, empty=True)

    # Storage parameters.

    def _set_parameters(self, command: s.SetParameters) -> None:
        names = [check_name(parameter.name) for parameter in command.parameters]
        if LOCK_PARAMETER in names:
            raise lock_not_alone(replace(self.table, locked=not command.reset))
        if command.reset:
            gone = parse_names(names)
            kept = {n: v for n, v in self.table.parameters.items() if n not in gone}
        else:
            given = {parameter.name: parameter.value for parameter in command.parameters}
            kept = {**self.table.parameters, **parse_parameters(given).others}
        self.add(Target(FactsElement(label="set storage parameters", parameters=kept)))


def _depends(column: Column, what: str, position: int) -> SQLError:
    return SQLError(
        "2BP01",
        f'column "{column.name}" is used by {what}',
        hint="Drop that first.",
        position=position,
    )


def _not_null(column: Column) -> CheckConstraint:
    return CheckConstraint(
        name=f"{column.name}~not_null",
        expression=f'"{column.name}" IS NOT NULL',
        columns=(column.id,),
        not_null_column=column.id,
    )


def _action(text: str, position: int) -> ReferentialAction:
    action = ReferentialAction(text)
    if action not in (ReferentialAction.NO_ACTION, ReferentialAction.RESTRICT):
        raise SQLError("0A000", f"the action {text} is not supported", position=position)
    return action


# Columns as statements give them.


def column_type(given: TypeName) -> ColumnType:
    try:
        return ColumnType.from_sql(given.name, given.arguments)
    except SQLError as error:
        error.position = error.position or given.position
        raise


def new_column(table: TableDescriptor, given: s.ColumnDefinition) -> tuple[Column, bool]:
    """The column that ADD COLUMN adds, and whether existing rows must be filled."""
    column = Column(
        id=table.next_column_id,
        name=given.name,
        type=column_type(given.type),
        nullable=given.nullable is not False,
    )
    if given.computed is not None:
        return with_computed(table, column, given.computed), True
    if given.default is None:
        return column, False
    column = with_default(column, given.default)
    if column.default_expression is not None:
        return column, True
    if column.default is None and not column.nullable:
        raise SQLError(
            "23502",
            f'column "{column.name}" is NOT NULL and its default is NULL',
            position=given.position,
        )
    return replace(column, missing=column.default), False


def with_default(column: Column, tree: exp.Expr) -> Column:
    """The column with a constant default, or one that is drawn for each row."""
    scalar = compile_default(tree)
    if volatile(tree):
        _check_default_type(column, scalar.type, tree)
        return replace(column, default_expression=text_of(tree))
    try:
        datum: Datum = coerce(column.type, scalar.value(EPOCH), column=column.name)
    except SQLError as error:
        error.position = error.position or position_of(tree)
        raise
    return replace(column, has_default=True, default=datum)


def _check_default_type(column: Column, type: ColumnType | None, tree: exp.Expr) -> None:
    times = (TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ)
    kind = None if type is None else type.kind
    both_times = kind in times and column.type.kind in times
    if kind is not column.type.broad.kind and not both_times:
        raise SQLError(
            "42804",
            f'column "{column.name}" is of type {column.type} but default expression is of type '
            f"{type}",
            position=position_of(tree),
        )


def with_computed(table: TableDescriptor, column: Column, tree: exp.Expr) -> Column:
    for name in columns_in(tree):
        if table.column(name).computed is not None:
            raise SQLError(
                "42P17",
                f'computed column "{column.name}" cannot reference computed column "{name}"',
                position=position_of(tree),
            )
    text = text_of(tree)
    compile_expression(table, text, column.type)
    return replace(column, computed=text)


def constraint_definitions(
    columns: Iterable[s.ColumnDefinition],
) -> Iterable[s.TableConstraint]:
    for column in columns:
        yield from column.constraints


def _cast_name(type: ColumnType) -> str:
    """What is too long or too great for the type itself is an error when it is stored."""
    return type.broad.sql_name


def _as_text(value: Datum) -> object:
    """A default as another type takes it: from its text, where it is not taken as it is."""
    return value if value is None or isinstance(value, bool) else str(value)
