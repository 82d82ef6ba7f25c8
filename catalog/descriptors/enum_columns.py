"""Columns whose type is an enumeration: what a change of the enumeration does to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..values.column_types import ColumnType, Datum, array_of, enum_of
from ..values.enum_type import EnumType
from ..values.physical import from_physical, physical_of
from .descriptor import Column, TableDescriptor


def enum_in(type: ColumnType) -> EnumType | None:
    """The enumeration that a type is, or is an array of."""
    return type.enum if type.element is None else type.element.enum


def columns_of(table: TableDescriptor, type_id: int) -> list[Column]:
    """The table's columns of an enumeration, in whatever state."""
    return [
        column
        for column in table.columns
        if (enum := enum_in(column.type)) is not None and enum.id == type_id
    ]


def users_of(tables: Iterable[TableDescriptor], type_id: int) -> list[TableDescriptor]:
    return [table for table in tables if not table.dropped and columns_of(table, type_id)]


def next_copy(copy: EnumType, whole: EnumType) -> EnumType:
    """The next version of a table's copy of an enumeration on its way to `whole`.

    Members that it lacks come first, for everybody to read; then all may be written. Whoever is
    one version behind so never meets a mark that it does not know.
    """
    known = {member.mark: member for member in copy.members}
    if all(member.mark in known for member in whole.members):
        return all_writable(whole)
    members = [
        replace(member, writable=member.mark in known and known[member.mark].writable)
        for member in whole.members
    ]
    return replace(whole, members=tuple(members))


def all_writable(enum: EnumType) -> EnumType:
    members = tuple(replace(member, writable=True) for member in enum.members)
    return replace(enum, members=members)


def with_enum(column: Column, enum: EnumType) -> Column:
    """The column with another version of its enumeration. Its defaults keep their members."""
    old = column.type
    new = enum_of(enum) if old.element is None else array_of(enum_of(enum))

    def moved(datum: Datum) -> Datum:
        return from_physical(new, physical_of(old, datum))

    return replace(column, type=new, default=moved(column.default), missing=moved(column.missing))
