"""From statements to targets: what ALTER TABLE and its like want of which elements.

Each command is read against the table as it will be when the commands before it are done, so that
`ADD COLUMN a INT8, ADD CHECK (a > 0)` means what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....catalog.descriptors import elements
from ....catalog.descriptors.descriptor import Column, TableDescriptor, check_indexable
from ....catalog.descriptors.publish_rules import LOCK_PARAMETER, check_width, lock_not_alone
from ....catalog.descriptors.storage_parameters import check_name, parse_names, parse_parameters
from ....catalog.schema_change.moves import apply_move, hidden_name
from ....catalog.schema_change.rules import way
from ....catalog.schema_change.stages import Move
from ....catalog.schema_change.targets import (
    ColumnElement,
    ConstraintElement,
    Element,
    FactsElement,
    IndexElement,
    PrimaryElement,
    Target,
)
from ....catalog.store.show_create import plain_text
from ....catalog.values.column_types import ColumnType, coerce
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...analyze.columns.column_values import casts_alone, check_using
from ...analyze.default_expressions import with_default
from ...lower.row_expressions import compile_check, compile_expression
from ...parse import cast_text, columns_in, renamed, text_of, uses_any
from ...syntax import schema_statements as s
from ...syntax.statement import at
from .given_columns import check_identity_type, column_type, new_column


class TableChanges:
    """Targets for one table, gathered one by one. `table` is what it will be. Whoever adds one says
    where it stands in the statement (`statement.at`)."""

    def __init__(self, table: TableDescriptor, read: TableDescriptor | None = None) -> None:
        """`read` is the version that the transaction reads, where the changes began at another."""
        self.before = table
        self.table = table
        self.read = read or table
        self.targets: list[Target] = []
        self._primary: int | None = None
        self._key_dropped: s.DropConstraint | None = None

    def add(self, element: Element, *, present: bool = True) -> None:
        """Wants an element to be there, or not to be."""
        target = Target(element, present)
        self.targets.append(target)
        for status in way(target):
            if not status.by_work:
                self.table = apply_move(self.table, target, Move(len(self.targets) - 1, status))

    def restate(self, column: Column, label: str) -> None:
        """A column as it is from here on, in a way that changes no row."""
        self.add(FactsElement(label=label, columns=(column,)))

    def run(self, command: s.AlterCommand) -> None:
        _COMMANDS[type(command)](self, command)

    def finish(self) -> None:
        """Behind the last command. Raises SQLError 0A000 where the table is left without a key."""
        if self._key_dropped is not None:
            with at(self._key_dropped.position):
                raise self._no_constraint(self._key_dropped.name)

    # Columns.

    def _add_column(self, command: s.AddColumn) -> None:
        given = command.definition
        if self.table.find_column(given.name) is not None:
            if command.if_not_exists:
                return
            raise self._exists(given.name)
        if given.primary_key:
            raise SQLError(
                "0A000",
                f'column "{given.name}" cannot be added and become the primary key at once',
                hint="Add it NOT NULL, then put the primary key over it.",
            )
        check_width(len(self.table.visible_columns) + 1)
        self._refuse_coming(given)
        column, must_fill = new_column(self.table, given)
        if must_fill:
            self._new_primary(self.table.primary_key)
        demanded = not column.nullable and not must_fill and column.missing is None
        if demanded:
            column = replace(column, nullable=True)
        self.add(ColumnElement(column=column, filled=must_fill))
        if demanded:
            self.add(_not_null(column))

    def _ignore(self, command: s.IgnoredAlteration) -> None:
        if command.name is not None:
            self.table.column(command.name)  # which must be there

    def _exists(self, name: str) -> SQLError:
        return SQLError("42701", f'column "{name}" of relation "{self.table.name}" already exists')

    def _is_identity(self, column: Column) -> SQLError:
        of = f'column "{column.name}" of relation "{self.table.name}"'
        return SQLError("42601", f"{of} is an identity column")

    def _refuse_coming(self, given: s.ColumnDefinition) -> None:
        """Rows are filled from columns that are there: those of the same change come with it."""
        there = {column.name for column in self.before.visible_columns}
        used = columns_in(given.computed) if given.computed is not None else ()
        for name in used:
            if name not in there and self.table.find_column(name) is not None:
                raise SQLError(
                    "0A000",
                    f'computed column "{given.name}" uses column "{name}", which is added with it',
                    hint="Add the computed column when the other one is there.",
                )

    def _drop_column(self, command: s.DropColumn) -> None:
        if command.if_exists and self.table.find_column(command.name) is None:
            return
        column = self.table.column(command.name)
        if len(self.table.visible_columns) == 1:
            raise SQLError("0A000", "a table keeps at least one column")
        if column.id in self.table.primary_key:
            raise SQLError(
                "42P10",
                f'column "{column.name}" is referenced by the primary key',
                hint="Run ALTER TABLE … ALTER PRIMARY KEY USING COLUMNS (…) first.",
            )
        for index in self.table.indexes:
            if column.id in (*index.columns, *index.storing):
                self.add(IndexElement(index=index), present=False)
        for constraint in self.table.constraints:
            if column.id in constraint.columns:
                self.add(ConstraintElement(constraint=constraint), present=False)
        self._refuse_computing(column)
        self.add(ColumnElement(column=column), present=False)

    def _rename_column(self, command: s.RenameColumn) -> None:
        column = self.table.column(command.name)
        if command.new_name == column.name:
            return
        if self.table.find_column(command.new_name) is not None:
            raise self._exists(command.new_name)
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
        label = f"rename column {column.name} to {command.new_name}"
        self.add(FactsElement(label=label, columns=tuple(columns), constraints=tuple(constraints)))

    def _alter_type(self, command: s.AlterType) -> None:
        column = self.table.column(command.name)
        type = column_type(command.type)
        using = None if casts_alone(command.using, column, type) else command.using
        if type == column.type and using is None:
            return
        if column.identity is not None:
            check_identity_type(type)
        if type.widens(column.type) and using is None:
            # Rows, keys and whatever uses the column stay as they are.
            label = f"give column {column.name} the type {type}"
            self.restate(replace(column, type=type), label)
            return
        self._refuse_users(column, "its type be changed")
        if _holds_labels(type) or _holds_labels(column.type):
            raise SQLError(
                "0A000",
                f'the type of column "{column.name}" cannot be changed from or to an enumeration',
                hint="Add a column, fill it by UPDATE, and drop this one.",
            )
        converted = cast_text(column.name, type.broad.declared_name)
        interim = converted if using is None else text_of(using)
        default = column.default
        if column.has_default:  # another type reads its text; NULL and truths stay what they are
            plain = default is None or isinstance(default, bool)
            default = coerce(type, default if plain else plain_text(default), column=column.name)
        new = replace(
            column, id=self.table.next_column_id, type=type, default=default, missing=None
        )
        self._new_primary(self.table.primary_key)
        compiled = compile_expression(self.table, interim, type)
        if using is not None and compiled.scalar is not None:
            check_using(column, type, compiled.scalar.type, using)
        back = cast_text(column.name, column.type.broad.sql_name)
        self.add(ColumnElement(column=new, filled=True, replaces=column.id, interim=interim))
        self.add(ColumnElement(column=column, replaced=True, interim=back), present=False)

    def _refuse_users(self, column: Column, what: str) -> None:
        if column.id in self.table.primary_key:
            raise _depends(column, "the primary key")
        for index in self.table.indexes:
            if column.id in (*index.columns, *index.storing):
                raise _depends(column, f'index "{index.name}"')
        for constraint in self.table.constraints:
            if column.id in constraint.columns:
                raise _depends(column, f'constraint "{constraint.name}"')
        self._refuse_computing(column)
        if column.computed is not None:
            raise SQLError("0A000", f'column "{column.name}" is computed and cannot have {what}')

    def _refuse_computing(self, column: Column) -> None:
        for other in self.table.visible_columns:
            if other.computed is not None and uses_any(other.computed, [column.name]):
                raise _depends(column, f'computed column "{other.name}"')

    def _set_default(self, command: s.SetDefault) -> None:
        column = self.table.column(command.name)
        if column.computed is not None:
            raise SQLError("42601", f'column "{column.name}" is computed and takes no default')
        if column.identity is not None:
            raise self._is_identity(column)
        plain = replace(column, has_default=False, default=None, default_expression=None)
        changed = plain if command.default is None else with_default(plain, command.default)
        verb = "drop" if command.default is None else "set"
        self.restate(changed, f"{verb} default of {column.name}")

    def _set_not_null(self, command: s.SetNotNull) -> None:
        column = self.table.column(command.name)
        if column.nullable is not command.not_null:
            return
        if command.not_null:
            self._prove_not_null(column)
            return
        if column.id in self.table.primary_key:
            raise SQLError("42P16", f'column "{column.name}" is in a primary key')
        if column.identity is not None:
            raise self._is_identity(column)
        self.add(_not_null(column), present=False)

    def _prove_not_null(self, column: Column) -> None:
        """NOT NULL of a column is proven by a look at all rows; of a new one that the same change
        fills, by a look at each value that it fills in."""
        for place, target in enumerate(self.targets):
            match target:
                case Target(
                    ColumnElement(column=coming, filled=True, replaces=None) as element, True
                ) if coming.id == column.id:
                    filled = replace(element, column=replace(coming, nullable=False))
                    targets, self.targets, self.table = self.targets, [], self.before
                    for each in (*targets[:place], Target(filled), *targets[place + 1 :]):
                        self.add(each.element, present=each.present)
                    return
        self.add(_not_null(column))

    # The primary index.

    def _new_primary(self, key: tuple[int, ...]) -> None:
        """A new primary index, if the statement has not made one already."""
        if self._primary is not None:
            return
        index = elements.Index(
            id=self.table.next_index_id,
            name=self.table.primary_index_name,
            kind=elements.IndexKind.PRIMARY,
            unique=True,
            columns=key,
        )
        self._primary = index.id
        self.add(PrimaryElement(index=index))

    def _add_primary_key(self, command: s.AddPrimaryKey) -> None:
        """A key in place of the hidden one, whose column goes with it, or of one that the same
        statement drops."""
        table = self.table
        dropped, self._key_dropped = self._key_dropped, None
        if not table.keyless and dropped is None:
            raise SQLError(
                "42P16",
                f'multiple primary keys for table "{table.name}" are not allowed',
                hint="ALTER PRIMARY KEY USING COLUMNS (…) changes the one that is there.",
            )
        hidden = table.key_columns if table.keyless else ()
        name = command.name or (f"{table.name}_pkey" if dropped is not None else None)
        if name is not None and not table.named_key(name):
            self._name_primary_key(self._free_name(name, ""))
        for column in [self.table.column(name) for name in command.columns]:
            if column.nullable:
                self.add(_not_null(column))
        self._alter_primary_key(command)
        for column in hidden:
            self.add(ColumnElement(column=column), present=False)

    def _alter_primary_key(self, command: s.AddPrimaryKey | s.AlterPrimaryKey) -> None:
        if self._primary is not None:
            raise SQLError(
                "0A000",
                "ALTER PRIMARY KEY cannot stand beside another change that rewrites the table",
            )
        columns = [self.table.column(name) for name in command.columns]
        key = tuple(column.id for column in columns)
        if len(set(key)) != len(key):
            raise SQLError("42701", "a column appears twice in the key")
        for column in columns:
            check_indexable(column)
            if column.nullable:
                raise SQLError(
                    "42P16",
                    f'column "{column.name}" is nullable and cannot be in a primary key',
                    hint=f'Run ALTER TABLE … ALTER COLUMN "{column.name}" SET NOT NULL first.',
                )
        if key == self.table.primary_key:
            return
        if self.table.referenced_by:
            raise SQLError(
                "2BP01", f'the primary key of "{self.table.name}" is referenced by foreign keys'
            )
        old = list(self.table.indexes)
        self._new_primary(key)
        for index in old:
            self._rebuild(index, key)

    def _rebuild(self, index: elements.Index, key: tuple[int, ...], *, empty: bool = False) -> None:
        fresh = replace(index, id=self.table.next_index_id, suffix=key)
        self.add(IndexElement(index=fresh, empty=empty))
        self.add(IndexElement(index=index), present=False)

    def truncate(self) -> None:
        """Every index anew and without entries."""
        old = list(self.table.indexes)
        index = replace(self.table.primary_index, id=self.table.next_index_id, empty=True)
        self.add(PrimaryElement(index=index, empty=True))
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
        self.add(FactsElement(label="set storage parameters", parameters=kept))

    # Constraints.

    def add_check(self, given: s.Check) -> None:
        columns = [self.table.column(name) for name in columns_in(given.tree)]
        stem = "_".join([self.table.name, *(column.name for column in columns), "check"])
        name = self._free_name(given.name, stem)
        check = elements.CheckConstraint(
            name=name,
            expression=text_of(given.tree),
            columns=tuple(column.id for column in columns),
        )
        compile_check(self.table, check)
        interim = self._interim(check, columns)
        self.add(ConstraintElement(constraint=check, unproven=given.not_valid, interim=interim))

    def _interim(self, check: elements.CheckConstraint, columns: Sequence[Column]) -> str | None:
        """The check while columns that it names are coming, by the names that they have then."""
        there = {column.id for column in self.before.visible_columns}
        coming = {column.name: column for column in columns if column.id not in there}
        if not coming:
            return None
        for target in self.targets:
            match target:
                case Target(ColumnElement(column=column, filled=True), present=True) if (
                    column.name in coming
                ):
                    raise SQLError(
                        "0A000",
                        f'a check of column "{column.name}" cannot be added with it, for its '
                        "rows are filled",
                        hint="Add the check when the column is there.",
                    )
        return renamed(
            check.expression, {name: hidden_name(column) for name, column in coming.items()}
        )

    def add_reference(self, given: s.Reference, referenced: TableDescriptor) -> None:
        """A foreign key to a table that is there, as it is or (of this one) as it will be."""
        columns = [self.table.column(name) for name in given.columns]
        targets = self._referenced_columns(given, referenced)
        if len(columns) != len(targets):
            raise SQLError(
                "42830", "number of referencing and referenced columns for foreign key disagree"
            )
        for column, target in zip(columns, targets, strict=True):
            if not _comparable(column.type, target.type):
                raise SQLError(
                    "42804",
                    f'foreign key column "{column.name}" is of type {column.type} and the '
                    f'referenced column "{target.name}" of type {target.type}',
                )
        stem = "_".join([self.table.name, *given.columns, "fkey"])
        key = elements.ForeignKey(
            name=self._free_name(given.name, stem),
            columns=tuple(column.id for column in columns),
            referenced_id=referenced.id,
            referenced_columns=tuple(target.id for target in targets),
            on_delete=elements.ReferentialAction(given.on_delete),
            on_update=elements.ReferentialAction(given.on_update),
            deferrable=given.deferrable,
            initially_deferred=given.initially_deferred,
        )
        self.add(ConstraintElement(constraint=key, unproven=given.not_valid))

    def _referenced_columns(
        self, given: s.Reference, referenced: TableDescriptor
    ) -> Sequence[Column]:
        if not given.referenced_columns:
            if referenced.keyless:
                raise SQLError(
                    "42704", f'there is no primary key for referenced table "{referenced.name}"'
                )
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
            )
        return columns

    def drop_constraint(self, command: s.DropConstraint) -> None:
        if self.table.named_key(command.name):
            self._key_dropped = command
            return
        index = self.table.find_index(command.name)
        if index is not None and index.unique:
            self.add(IndexElement(index=index), present=False)
            return
        if command.if_exists and self.table.find_constraint(command.name) is None:
            return
        constraint = self._constraint(command.name)
        self.add(ConstraintElement(constraint=constraint), present=False)

    def validate(self, command: s.ValidateConstraint) -> None:
        constraint = self._constraint(command.name)
        if constraint.validity is elements.Validity.VALIDATED:
            return
        if self.before.find_constraint(command.name) is None:
            raise SQLError(
                "0A000",
                f'constraint "{command.name}" is added and validated by one transaction',
                hint="Leave NOT VALID out, or validate it in a transaction of its own.",
            )
        self.add(ConstraintElement(constraint=constraint, known=True))

    def _name_primary_key(self, name: str) -> None:
        label = f"rename primary key to {name}"
        self.add(FactsElement(label=label, primary_name=name))

    def _constraint(self, name: str) -> elements.Constraint:
        """Raises SQLError 42704."""
        constraint = self.table.find_constraint(name)
        if constraint is None:
            raise self._no_constraint(name)
        return constraint

    def _no_constraint(self, name: str) -> SQLError:
        if name == self.table.primary_index_name:
            return SQLError(
                "0A000",
                f'constraint "{name}" is the primary key, which is not dropped',
                hint="ALTER TABLE … ALTER PRIMARY KEY USING COLUMNS (…) puts another in its place.",
            )
        return SQLError(
            "42704", f'constraint "{name}" of relation "{self.table.name}" does not exist'
        )

    def _free_name(self, given: str | None, stem: str) -> str:
        """The name given, which must be free, or a free one made from `stem`."""
        taken = {index.name for index in self.table.indexes}
        taken |= {constraint.name for constraint in self.table.constraints}
        if not self.table.keyless:  # a hidden key has no name that anybody knows
            taken.add(self.table.primary_index_name)
        if given is None:
            name, number = stem, 1
            while name in taken:
                name, number = f"{stem}{number}", number + 1
            return name
        if given in taken:
            raise SQLError(
                "42710", f'constraint "{given}" for relation "{self.table.name}" already exists'
            )
        return given

    # Indexes.

    def add_index(self, given: s.IndexDefinition, *, if_not_exists: bool = False) -> None:
        columns = [self.table.column(name) for name in given.columns]
        for column in columns:
            check_indexable(column)
        storing = [self.table.column(name) for name in given.storing]
        if len({column.id for column in columns}) != len(columns):
            raise SQLError("42701", "a column appears twice in an index")
        if {column.id for column in storing} & {column.id for column in columns}:
            raise SQLError("42701", "a column is both indexed and stored")
        if given.name is not None and self.table.find_index(given.name) is not None:
            if if_not_exists:
                return
            raise SQLError("42P07", f'index "{given.name}" already exists')
        suffix = "key" if given.unique else "idx"
        stem = "_".join([self.table.name, *given.columns, suffix])
        index = elements.Index(
            id=self.table.next_index_id,
            name=self._free_name(given.name, stem),
            columns=tuple(column.id for column in columns),
            unique=given.unique,
            constraint=given.constraint,
            storing=tuple(
                column.id for column in storing if column.id not in self.table.primary_key
            ),
            suffix=self.table.primary_key,
        )
        self.add(IndexElement(index=index))

    def change_index(self, statement: s.IndexStatement) -> None:
        """ALTER INDEX and DROP INDEX."""
        index = self.table.find_index(statement.name)
        if index is None and not self.table.named_key(statement.name):
            raise SQLError("42704", f'index "{statement.name}" does not exist')
        if isinstance(statement, s.RenameIndex):
            new_name = self._free_name(statement.new_name, "")
            if index is None:
                self._name_primary_key(new_name)
                return
            label = f"rename index {index.name} to {new_name}"
            self.add(FactsElement(label=label, indexes=(replace(index, name=new_name),)))
        elif index is not None:
            self.add(IndexElement(index=index), present=False)
        else:
            raise SQLError(
                "2BP01",
                f'cannot drop index "{statement.name}" because the primary key of table '
                f'"{self.table.name}" requires it',
            )


def _depends(column: Column, what: str) -> SQLError:
    return SQLError("2BP01", f'column "{column.name}" is used by {what}', hint="Drop that first.")


def _holds_labels(type: ColumnType) -> bool:
    """Whether values of the type are labels of an enumeration, or arrays of them."""
    return TypeKind.ENUM in (type.kind, type.element and type.element.kind)


def _not_null(column: Column) -> ConstraintElement:
    check = elements.CheckConstraint(
        name=f"{column.name}~not_null",
        expression=f'"{column.name}" IS NOT NULL',
        columns=(column.id,),
        not_null_column=column.id,
    )
    return ConstraintElement(constraint=check)


def _comparable(one: ColumnType, other: ColumnType) -> bool:
    """Whether equal values of two types have the same key: types that differ in width alone."""
    if one == other:
        return True
    broad = one.broad
    return broad == other.broad and broad.kind in (TypeKind.INT8, TypeKind.STRING)


_COMMANDS: Mapping[type, Callable[[TableChanges, Any], None]] = {
    s.AddColumn: TableChanges._add_column,
    s.AddPrimaryKey: TableChanges._add_primary_key,
    s.AlterPrimaryKey: TableChanges._alter_primary_key,
    s.AlterType: TableChanges._alter_type,
    s.DropColumn: TableChanges._drop_column,
    s.DropConstraint: TableChanges.drop_constraint,
    s.IgnoredAlteration: TableChanges._ignore,
    s.RenameColumn: TableChanges._rename_column,
    s.SetDefault: TableChanges._set_default,
    s.SetNotNull: TableChanges._set_not_null,
    s.SetParameters: TableChanges._set_parameters,
    s.ValidateConstraint: TableChanges.validate,
}
