"""Indexes and constraints: what statements want of them, as targets of a schema change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import Column, TableDescriptor, check_indexable
from ....catalog.descriptors.elements import (
    CheckConstraint,
    Constraint,
    ForeignKey,
    Index,
    ReferentialAction,
    Validity,
)
from ....catalog.schema_change.moves import apply_move, hidden_name
from ....catalog.schema_change.rules import way
from ....catalog.schema_change.stages import Move
from ....catalog.schema_change.targets import (
    ColumnElement,
    ConstraintElement,
    FactsElement,
    IndexElement,
    Target,
)
from ....catalog.values.column_type import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...parse import columns_in, renamed, text_of
from ...syntax import schema_statements as s
from ..write.row_rules import compile_check


class ElementChanges:
    """Targets for one table, gathered one by one. `table` is what it will be. Whoever adds one says
    where it stands in the statement (`positions.at`)."""

    def __init__(self, table: TableDescriptor) -> None:
        self.before = table
        self.table = table
        self.targets: list[Target] = []

    def add(self, *targets: Target) -> None:
        for target in targets:
            self.targets.append(target)
            for status in way(target):
                if not status.by_work:
                    self.table = apply_move(self.table, target, Move(len(self.targets) - 1, status))

    def restate(self, column: Column, label: str) -> None:
        """A column as it is from here on, in a way that changes no row."""
        self.add(Target(FactsElement(label=label, columns=(column,))))

    def column(self, name: str) -> Column:
        return self.table.column(name)

    # Constraints.

    def add_check(self, given: s.Check) -> None:
        columns = [self.column(name) for name in columns_in(given.tree)]
        stem = "_".join([self.table.name, *(column.name for column in columns), "check"])
        name = self._free_name(given.name, stem)
        check = CheckConstraint(
            name=name,
            expression=text_of(given.tree),
            columns=tuple(column.id for column in columns),
        )
        compile_check(self.table, check)
        element = ConstraintElement(
            constraint=check,
            unproven=given.not_valid,
            interim=self._interim(check, columns),
        )
        self.add(Target(element))

    def _interim(self, check: CheckConstraint, columns: Sequence[Column]) -> str | None:
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
        columns = [self.column(name) for name in given.columns]
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
        key = ForeignKey(
            name=self._free_name(given.name, stem),
            columns=tuple(column.id for column in columns),
            referenced_id=referenced.id,
            referenced_columns=tuple(target.id for target in targets),
            on_delete=ReferentialAction(given.on_delete),
            on_update=ReferentialAction(given.on_update),
            deferrable=given.deferrable,
            initially_deferred=given.initially_deferred,
        )
        _check_actions(key, columns)
        self.add(Target(ConstraintElement(constraint=key, unproven=given.not_valid)))

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
        index = self.table.find_index(command.name)
        if index is not None and index.unique:
            self.drop_index(index)
            return
        if command.if_exists and self.table.find_constraint(command.name) is None:
            return
        constraint = self._constraint(command.name)
        self.add(Target(ConstraintElement(constraint=constraint), present=False))

    def validate(self, command: s.ValidateConstraint) -> None:
        constraint = self._constraint(command.name)
        if constraint.validity is Validity.VALIDATED:
            return
        coming = (n for n, target in enumerate(self.targets) if _unproven(target, command.name))
        place = next(coming, None)
        if place is None:
            self.add(Target(ConstraintElement(constraint=constraint, known=True)))
            return
        # It comes with this very change, and is undone with it.
        self.targets[place] = Target(ConstraintElement(constraint=constraint))
        proven = replace(constraint, validity=Validity.VALIDATED)
        rest = (other for other in self.table.constraints if other.name != proven.name)
        self.table = replace(self.table, constraints=(*rest, proven))

    def rename_constraint(self, command: s.RenameConstraint) -> None:
        index = self.table.find_index(command.name)
        if (index is not None and index.unique) or self.table.named_key(command.name):
            self._rename_index(index, "constraint", command.new_name)
            return
        self._free_name(command.new_name, "")
        label = f"rename constraint {command.name} to {command.new_name}"
        constraint = self._constraint(command.name)
        new = replace(constraint, name=command.new_name)
        self.add(Target(FactsElement(label=label, constraints=((command.name, new),))))

    def _name_primary_key(self, name: str) -> None:
        label = f"rename primary key to {name}"
        self.add(Target(FactsElement(label=label, primary_name=name)))

    def _constraint(self, name: str) -> Constraint:
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
        columns = [self.column(name) for name in given.columns]
        for column in columns:
            check_indexable(column)
        storing = [self.column(name) for name in given.storing]
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
        index = Index(
            id=self.table.next_index_id,
            name=self._free_name(given.name, stem),
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

    def change_index(self, statement: s.DropIndex | s.RenameIndex) -> None:
        """ALTER INDEX and DROP INDEX."""
        index = self.table.find_index(statement.name)
        if index is None and not self.table.named_key(statement.name):
            raise SQLError("42704", f'index "{statement.name}" does not exist')
        if isinstance(statement, s.RenameIndex):
            self._rename_index(index, "index", statement.new_name)
        elif index is not None:
            self.drop_index(index)
        else:
            raise SQLError(
                "2BP01",
                f'cannot drop index "{statement.name}" because the primary key of table '
                f'"{self.table.name}" requires it',
            )

    def _rename_index(self, index: Index | None, what: str, new_name: str) -> None:
        """Renames an index, or the primary key where there is None."""
        self._free_name(new_name, "")
        if index is None:
            self._name_primary_key(new_name)
            return
        label = f"rename {what} {index.name} to {new_name}"
        self.add(Target(FactsElement(label=label, indexes=(replace(index, name=new_name),))))


def _unproven(target: Target, name: str) -> bool:
    """Whether a target is a NOT VALID constraint of that name."""
    match target:
        case Target(ConstraintElement(constraint=coming, unproven=True), present=True):
            return coming.name == name
    return False


def _comparable(one: ColumnType, other: ColumnType) -> bool:
    """Whether equal values of two types have the same key: types that differ in width alone."""
    if one == other:
        return True
    broad = one.broad
    return broad == other.broad and broad.kind in (TypeKind.INT8, TypeKind.STRING)


def _check_actions(key: ForeignKey, columns: Sequence[Column]) -> None:
    """A computed column takes no value but its own."""
    writing = (ReferentialAction.SET_NULL, ReferentialAction.SET_DEFAULT)
    event = None
    if key.on_update in (*writing, ReferentialAction.CASCADE):
        event = f"ON UPDATE {key.on_update.value}"
    elif key.on_delete in writing:
        event = f"ON DELETE {key.on_delete.value}"
    computed = next((column for column in columns if column.computed is not None), None)
    if event is not None and computed is not None:
        raise SQLError(
            "42601", f'foreign key with {event} cannot write computed column "{computed.name}"'
        )
