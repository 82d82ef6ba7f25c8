"""Rules: by which way each kind of element goes, and what must have happened before a step.

The ways. A status in brackets is reached by work, every other by a version:

    column      comes   delete-only, write-only, public
                goes    write-only, delete-only, absent
    index       comes   delete-only, write-only, [ready], public
                goes    write-only, delete-only, absent, [removed]
    primary     comes   delete-only, write-only, [ready], public, settled, [removed]
    constraint  comes   write-only, [ready], public
                goes    absent; a NOT NULL write-only, absent
    facts       change  public, a name before all else; [removed] where the table is dropped

An index or a primary index that begins empty has nothing to make ready; a NOT VALID constraint
neither. One that is to be proven goes the way of one that comes, and back to being unproven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..descriptors.elements import CheckConstraint
from .stages import Status
from .targets import (
    ColumnElement,
    ConstraintElement,
    Element,
    FactsElement,
    IndexElement,
    PrimaryElement,
    Target,
)

_COMING = (Status.DELETE_ONLY, Status.WRITE_ONLY, Status.READY, Status.PUBLIC)
_GOING = (Status.WRITE_ONLY, Status.DELETE_ONLY, Status.ABSENT)


def way(target: Target) -> tuple[Status, ...]:
    """The statuses that a target goes through, from where it is to where it is to be."""
    match target.element:
        case ColumnElement():
            return (
                (Status.DELETE_ONLY, Status.WRITE_ONLY, Status.PUBLIC) if target.present else _GOING
            )
        case IndexElement(empty=empty):
            if not target.present:
                return (*_GOING, Status.REMOVED)
            return tuple(status for status in _COMING if not (empty and status is Status.READY))
        case PrimaryElement(empty=empty):
            coming = tuple(status for status in _COMING if not (empty and status is Status.READY))
            return (*coming, Status.SETTLED, Status.REMOVED)
        case ConstraintElement() as element:
            return _way_of_constraint(element, target.present)
        case FactsElement(dropped=dropped):
            return (Status.PUBLIC, Status.REMOVED) if dropped else (Status.PUBLIC,)


def _way_of_constraint(element: ConstraintElement, present: bool) -> tuple[Status, ...]:
    if not present:
        check = element.constraint
        not_null = isinstance(check, CheckConstraint) and check.not_null_column is not None
        return (Status.WRITE_ONLY, Status.ABSENT) if not_null else (Status.ABSENT,)
    if element.unproven:
        return (Status.PUBLIC,)
    return (Status.WRITE_ONLY, Status.READY, Status.PUBLIC)


def way_back(target: Target, at: Status) -> tuple[Status, ...]:
    """The way of an element that was on its way and is not to come, from where it got.

    What goes has not begun to go while there is a way back.
    """
    match target.element:
        case FactsElement():
            return ()
        case ConstraintElement():
            return (Status.ABSENT,) if at in (Status.WRITE_ONLY, Status.READY) else ()
        case ColumnElement() | IndexElement() | PrimaryElement():
            removed = () if isinstance(target.element, ColumnElement) else (Status.REMOVED,)
            match at:
                case Status.DELETE_ONLY:
                    return (Status.ABSENT, *removed)
                case Status.WRITE_ONLY | Status.READY:
                    return (Status.DELETE_ONLY, Status.ABSENT, *removed)
                case _:
                    return ()


@dataclass(frozen=True, slots=True)
class Position:
    """The targets of a change, where each is, and where each would be after the stage at hand."""

    targets: Sequence[Target]
    before: Sequence[Status]
    after: Sequence[Status]

    def uses(self, element: Element, column_id: int) -> bool:
        match element:
            case IndexElement(index=index):
                return column_id in (*index.columns, *index.storing)
            case ConstraintElement(constraint=constraint):
                return column_id in constraint.columns
            case PrimaryElement(index=index):
                return column_id in index.columns
            case _:
                return False


@dataclass(frozen=True, slots=True)
class Rule:
    """`holds(position, place)`: whether the target at `place` may make its step."""

    reason: str
    holds: Callable[[Position, int], bool]


def _all_ready(position: Position, place: int) -> bool:
    """No step is undone once anybody may rely on it, so all steps that may fail come before."""
    target, to = position.targets[place], position.after[place]
    if target.renames or (target.present and to is not Status.PUBLIC):
        return True
    return all(
        Status.READY not in way(other)
        or other.present is False
        or reached(other, position.before[i])
        for i, other in enumerate(position.targets)
    )


def reached(target: Target, status: Status) -> bool:
    """Whether the target's work is done."""
    order = list(way(target))
    return status in order and order.index(status) >= order.index(Status.READY)


def _columns_first(position: Position, place: int) -> bool:
    """A column is written no later than the elements that are made of it."""
    target, to = position.targets[place], position.after[place]
    if not target.present or to not in (Status.DELETE_ONLY, Status.WRITE_ONLY):
        return True
    early = (Status.ABSENT,) if to is Status.DELETE_ONLY else (Status.ABSENT, Status.DELETE_ONLY)
    return not any(
        isinstance(other.element, ColumnElement)
        and other.present
        and position.uses(target.element, other.element.column.id)
        and position.after[i] in early
        for i, other in enumerate(position.targets)
    )


def _keys_are_never_null(position: Position, place: int) -> bool:
    """An index of a new key is built once its columns are proven to have no NULL."""
    target, to = position.targets[place], position.after[place]
    if not target.present or to is not Status.DELETE_ONLY:
        return True
    if not isinstance(target.element, IndexElement | PrimaryElement):
        return True
    keys = {
        column_id
        for other in position.targets
        if isinstance(other.element, PrimaryElement)
        for column_id in other.element.index.columns
    }
    return all(
        reached(other, position.before[i])
        for i, other in enumerate(position.targets)
        if other.present
        and isinstance(other.element, ConstraintElement)
        and isinstance(other.element.constraint, CheckConstraint)
        and other.element.constraint.not_null_column in keys
    )


def _users_leave_first(position: Position, place: int) -> bool:
    """A column is written for as long as an index is made of it.

    Where the primary key changes, every index that goes may carry the key of before.
    """
    target, to = position.targets[place], position.after[place]
    if target.present or not isinstance(target.element, ColumnElement):
        return True
    if to not in (Status.DELETE_ONLY, Status.ABSENT):
        return True
    gone = (Status.ABSENT, Status.REMOVED)
    new_key = any(isinstance(other.element, PrimaryElement) for other in position.targets)
    return all(
        other.present
        or position.after[i] in gone
        or not (
            position.uses(other.element, target.element.column.id)
            or (new_key and isinstance(other.element, IndexElement))
        )
        for i, other in enumerate(position.targets)
    )


def _together(position: Position, place: int) -> bool:
    """In one version all that comes becomes public, and all that goes begins to go.

    A retyped column takes over a name, and a filled one is read from the new primary index: there
    must be no version with one and not the other.
    """
    target, to = position.targets[place], position.after[place]
    begins = position.before[place] is Status.PUBLIC and not target.present
    if target.renames or (not begins and not (target.present and to is Status.PUBLIC)):
        return True
    return all(
        position.after[i] in (Status.PUBLIC, Status.SETTLED, Status.REMOVED)
        for i, other in enumerate(position.targets)
        if other.present and not other.renames
    )


def _replaced_is_read_no_more(position: Position, place: int) -> bool:
    """A primary index that goes holds columns that go with it for as long as it is written."""
    target, to = position.targets[place], position.after[place]
    if target.present or not isinstance(target.element, ColumnElement):
        return True
    if to is not Status.DELETE_ONLY:
        return True
    return all(
        position.after[i] in (Status.ABSENT, Status.SETTLED, Status.REMOVED)
        for i, other in enumerate(position.targets)
        if isinstance(other.element, PrimaryElement)
    )


RULES = (
    Rule("all that may fail comes before what cannot be taken back", _all_ready),
    Rule("a column is written before what is made of it", _columns_first),
    Rule("the columns of a key are proven NOT NULL before it is built", _keys_are_never_null),
    Rule("what is made of a column leaves before the column", _users_leave_first),
    Rule("what comes becomes public in one version", _together),
    Rule("a column is written while the old primary index is", _replaced_is_read_no_more),
)
