"""Moves: what a step of an element does to the descriptor. Pure: a version in, the next one out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from ..descriptors.descriptor import Column, DescriptorState, TableDescriptor
from ..descriptors.elements import CheckConstraint, Constraint, ElementState, Index, Validity
from .stages import Move, Status, VersionStage
from .targets import (
    ColumnElement,
    ConstraintElement,
    FactsElement,
    IndexElement,
    PrimaryElement,
    Target,
)

_STATES = {
    Status.DELETE_ONLY: ElementState.DELETE_ONLY,
    Status.WRITE_ONLY: ElementState.WRITE_ONLY,
    Status.PUBLIC: ElementState.PUBLIC,
}


def apply_stage(
    table: TableDescriptor, targets: Sequence[Target], stage: VersionStage
) -> TableDescriptor:
    """The table as the stage leaves it, version number and job aside."""
    if stage.lock is not None:
        return replace(table, locked=stage.lock)
    for move in sorted(stage.moves, key=lambda move: _turn(targets[move.target], move)):
        table = apply_move(table, targets[move.target], move)
    return table


def _turn(target: Target, move: Move) -> int:
    """Elements come, primary indexes are swapped, columns go: at no moment is a column of the
    primary key not public, or one of any index absent."""
    if isinstance(target.element, PrimaryElement):
        return 1
    goes = not target.present or move.to is Status.ABSENT
    return 2 if isinstance(target.element, ColumnElement) and goes else 0


def apply_move(table: TableDescriptor, target: Target, move: Move) -> TableDescriptor:
    match target.element:
        case ColumnElement() as element:
            if target.present:
                return _column_comes(table, element, move.to)
            return _column_goes(table, element, move.to)
        case IndexElement(index=index):
            return _index(table, index, move.to)
        case PrimaryElement(index=index):
            return _primary(table, index, move.to)
        case ConstraintElement() as element:
            return _constraint(table, element, move.to)
        case FactsElement() as element:
            return _facts(table, element)
        case _:
            assert_never(target.element)


def hidden_name(column: Column) -> str:
    """The name of a column that has lost its own, or has none yet: no statement can say it."""
    return f"{column.name}~{column.id}"


def _column_comes(table: TableDescriptor, element: ColumnElement, to: Status) -> TableDescriptor:
    column = element.column
    rest = tuple(found for found in table.columns if found.id != column.id)
    if to is Status.ABSENT:
        return replace(table, columns=rest)
    if to is not Status.PUBLIC:
        coming = replace(column, name=hidden_name(column), state=_STATES[to])
        if element.interim is not None:
            coming = _computed(coming, element.interim)
        next_id = max(table.next_column_id, column.id + 1)
        return replace(table, columns=(*rest, coming), next_column_id=next_id)
    if element.replaces is None:
        return replace(table, columns=(*rest, column))
    columns = [
        column if found.id == element.replaces else found
        for found in table.columns
        if found.id != column.id
    ]
    old = next((found for found in table.columns if found.id == element.replaces), None)
    if old is not None:
        columns.append(old)
    return replace(table, columns=tuple(columns))


def _column_goes(table: TableDescriptor, element: ColumnElement, to: Status) -> TableDescriptor:
    column = element.column
    if to is Status.ABSENT:
        return replace(
            table, columns=tuple(found for found in table.columns if found.id != column.id)
        )
    going = replace(column, name=hidden_name(column), state=_STATES[to], nullable=True)
    if element.interim is not None:
        going = _computed(going, element.interim)
    columns = tuple(going if found.id == column.id else found for found in table.columns)
    return replace(table, columns=columns)


def _computed(column: Column, expression: str) -> Column:
    """A column whose value is computed for now: it has no default, and is what other columns
    say."""
    return replace(
        column,
        computed=expression,
        has_default=False,
        default=None,
        default_expression=None,
        identity=None,
    )


def _index(table: TableDescriptor, index: Index, to: Status) -> TableDescriptor:
    rest = tuple(found for found in table.indexes if found.id != index.id)
    if to is Status.ABSENT:
        return replace(table, indexes=rest)
    moved = replace(index, state=_STATES[to])
    if any(found.id == index.id for found in table.indexes):
        indexes = tuple(moved if found.id == index.id else found for found in table.indexes)
    else:
        indexes = (*rest, moved)
    return replace(table, indexes=indexes, next_index_id=max(table.next_index_id, index.id + 1))


def _primary(table: TableDescriptor, index: Index, to: Status) -> TableDescriptor:
    match to:
        case Status.ABSENT:
            return replace(table, new_primary=None)
        case Status.PUBLIC:
            old = replace(table.primary_index, state=ElementState.WRITE_ONLY)
            return replace(
                table,
                primary_index_id=index.id,
                primary_key=index.columns,
                new_primary=None,
                old_primary=old,
            )
        case Status.SETTLED:
            return replace(table, old_primary=None)
        case _:
            return replace(
                table,
                new_primary=replace(index, state=_STATES[to]),
                next_index_id=max(table.next_index_id, index.id + 1),
            )


def _constraint(table: TableDescriptor, element: ConstraintElement, to: Status) -> TableDescriptor:
    constraint = element.constraint
    rest = tuple(found for found in table.constraints if found.name != constraint.name)
    not_null = constraint.not_null_column if isinstance(constraint, CheckConstraint) else None
    match to:
        case Status.WRITE_ONLY:
            validating = replace(element.enforced, validity=Validity.VALIDATING)
            table = replace(table, constraints=(*rest, validating))
            return table if not_null is None else _nullable(table, not_null, True)
        case Status.PUBLIC if not_null is not None:
            return _nullable(replace(table, constraints=rest), not_null, False)
        case Status.PUBLIC:
            validity = Validity.UNVALIDATED if element.unproven else Validity.VALIDATED
            return replace(table, constraints=(*rest, replace(constraint, validity=validity)))
        case _:
            if element.known:  # it was there before, and stays what it was
                return replace(table, constraints=(*rest, constraint))
            return replace(table, constraints=rest)


def _nullable(table: TableDescriptor, column_id: int, nullable: bool) -> TableDescriptor:
    columns = tuple(
        replace(column, nullable=nullable) if column.id == column_id else column
        for column in table.columns
    )
    return replace(table, columns=columns)


def _facts(table: TableDescriptor, facts: FactsElement) -> TableDescriptor:
    columns = {column.id: column for column in facts.columns}
    indexes = {index.id: index for index in facts.indexes}
    constraints = dict(facts.constraints)
    return replace(
        table,
        columns=tuple(columns.get(column.id, column) for column in table.columns),
        indexes=tuple(indexes.get(index.id, index) for index in table.indexes),
        constraints=tuple(_replaced(constraints, found) for found in table.constraints),
        name=table.name if facts.name is None else facts.name,
        primary_name=table.primary_name if facts.primary_name is None else facts.primary_name,
        parameters=table.parameters if facts.parameters is None else dict(facts.parameters),
        state=DescriptorState.DROPPED if facts.dropped else table.state,
    )


def _replaced(constraints: dict[str, Constraint], found: Constraint) -> Constraint:
    return constraints.get(found.name, found)
