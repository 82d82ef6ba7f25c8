from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tailrace.catalog.descriptors.descriptor import Column, DescriptorState, TableDescriptor
from tailrace.catalog.descriptors.elements import ElementState, Index, IndexKind
from tailrace.catalog.values.column_types import ColumnType, enum_of
from tailrace.catalog.values.enum_type import EnumMember, EnumType
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.schemafeed.table_events import EventKind, classify, describe, table_event
from tests.harness.descriptors import INT8, KEY, STRING, VALUE, table

ADDED = Column(id=3, name="w", type=INT8)
NEW_PRIMARY = Index(id=2, name="orders_pkey", kind=IndexKind.PRIMARY, columns=(1,))
BEFORE = table(1, 100)
BUILDING = replace(BEFORE, new_primary=NEW_PRIMARY, next_index_id=3)
"""BEFORE, with the rows being rewritten into another index."""


def after(**changes: Any) -> TableDescriptor:
    return replace(table(2, 200), **changes)


STEPS = [
    (after(columns=(KEY, VALUE, ADDED)), "ADD_COLUMN"),
    (after(columns=(KEY,)), "DROP_COLUMN"),
    (after(columns=(KEY, replace(VALUE, name="w"))), "RENAME_COLUMN"),
    (after(columns=(KEY, replace(VALUE, type=INT8))), "RETYPE_COLUMN"),
    (after(name="purchases"), "RENAME_TABLE"),
    (after(columns=(KEY, replace(VALUE, nullable=False)), primary_key=(2,)), "PRIMARY_KEY_CHANGE"),
    (after(primary_index_id=2, next_index_id=3), "TRUNCATE"),
    (after(state=DescriptorState.DROPPED), "DROP_TABLE"),
    (after(locked=True), "LOCK"),
    (after(parameters={"fillfactor": "70"}), "OTHER"),
    (after(columns=(KEY, replace(VALUE, default="x", has_default=True))), "OTHER"),
    (after(), "OTHER"),
]


def swapped(**changes: Any) -> TableDescriptor:
    return after(primary_index_id=2, next_index_id=3, **changes)


SWAPS = [
    (swapped(columns=(KEY, VALUE, ADDED)), "ADD_COLUMN_BACKFILL"),
    (swapped(columns=(KEY, replace(VALUE, id=4, type=INT8))), "RETYPE_COLUMN"),
    (
        swapped(columns=(KEY, replace(VALUE, id=4, type=INT8), ADDED)),
        "ADD_COLUMN_BACKFILL|RETYPE_COLUMN",
    ),
    (
        swapped(columns=(KEY, replace(VALUE, nullable=False)), primary_key=(2,)),
        "PRIMARY_KEY_CHANGE",
    ),
    (swapped(), "OTHER"),
]
EMPTIED = replace(BEFORE, new_primary=replace(NEW_PRIMARY, empty=True), next_index_id=3)
"""BEFORE, while it is being truncated."""

"""What stands behind a swap of the primary index says what it was for."""


@pytest.mark.parametrize(("changed", "kinds"), SWAPS)
def test_a_swap_is_what_it_was_for(changed: TableDescriptor, kinds: str) -> None:
    assert describe(classify(BUILDING, changed)) == kinds


def test_an_index_that_came_empty_is_a_truncation() -> None:
    assert describe(classify(EMPTIED, swapped())) == "TRUNCATE"


def test_columns_on_their_way_are_no_event() -> None:
    coming = replace(ADDED, state=ElementState.WRITE_ONLY)
    assert describe(classify(BEFORE, after(columns=(KEY, VALUE, coming)))) == "OTHER"
    shown = table(3, 300, columns=(KEY, VALUE, ADDED))
    assert describe(classify(after(columns=(KEY, VALUE, coming)), shown)) == "ADD_COLUMN"
    going = table(4, 400, columns=(KEY, VALUE, coming))
    assert describe(classify(shown, going)) == "DROP_COLUMN"
    assert describe(classify(going, table(5, 500))) == "OTHER"


@pytest.mark.parametrize(("changed", "kinds"), STEPS)
def test_a_step_is_what_changed(changed: TableDescriptor, kinds: str) -> None:
    assert describe(classify(BEFORE, changed)) == kinds


def test_the_step_back_from_a_lock_is_an_unlock() -> None:
    assert classify(table(1, locked=True), table(2, 200)) == EventKind.UNLOCK


def test_one_step_carries_several_kinds() -> None:
    changed = after(columns=(KEY, replace(VALUE, name="x"), ADDED), name="purchases")
    assert describe(classify(BEFORE, changed)) == "ADD_COLUMN|RENAME_COLUMN|RENAME_TABLE"


def test_a_dropped_and_readded_name_is_no_rename() -> None:
    readded = Column(id=4, name="v", type=STRING)
    changed = after(columns=(KEY, readded))
    assert describe(classify(BEFORE, changed)) == "ADD_COLUMN|DROP_COLUMN"


def test_a_changed_scale_is_a_retype() -> None:
    narrow = replace(VALUE, type=ColumnType(TypeKind.DECIMAL, 10, 2))
    wide = replace(VALUE, type=ColumnType(TypeKind.DECIMAL, 12, 4))
    before = replace(BEFORE, columns=(KEY, narrow))
    assert classify(before, after(columns=(KEY, wide))) == EventKind.RETYPE_COLUMN


def test_room_for_longer_texts_is_no_retype() -> None:
    short, long = (ColumnType(TypeKind.VARCHAR, width=width) for width in (3, 5))
    before = replace(BEFORE, columns=(KEY, replace(VALUE, type=short)))
    for wider in (long, STRING):
        assert classify(before, after(columns=(KEY, replace(VALUE, type=wider)))) == EventKind.OTHER
    before = replace(BEFORE, columns=(KEY, replace(VALUE, type=long)))
    assert classify(before, after(columns=(KEY, replace(VALUE, type=short)))) == (
        EventKind.RETYPE_COLUMN
    )


def test_members_that_an_enumeration_gains_are_no_retype() -> None:
    """Rows that are there read as before."""
    sad, fine = EnumMember("sad", b"1"), EnumMember("ok", b"2")
    was, gained = (enum_of(EnumType(7, "mood", members)) for members in ((sad,), (sad, fine)))
    before = replace(BEFORE, columns=(KEY, replace(VALUE, type=was)))
    then = after(columns=(KEY, replace(VALUE, type=gained)))
    assert classify(before, then) == EventKind.OTHER


def test_an_event_holds_from_the_later_version_on() -> None:
    event = table_event(BEFORE, after(locked=True))
    assert (event.timestamp, event.table_id) == (200, 104)


def test_versions_out_of_order_are_no_step() -> None:
    with pytest.raises(AssertionError):
        table_event(table(2, 200), table(1, 100))
