"""Enumerations: marks keep the order that is declared, whatever is added where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.catalog.descriptors.descriptor_encoding import decode_descriptor, encode_descriptor
from tailrace.catalog.descriptors.enum_columns import all_writable, next_copy
from tailrace.catalog.descriptors.named_objects import TypeDescriptor
from tailrace.catalog.values.enum_type import EnumType, new_members
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp

MOOD = EnumType(7, "mood", new_members(["sad", "ok", "happy"]))


@given(st.lists(st.tuples(st.integers(0, 1000), st.booleans()), max_size=60), st.integers(0, 80))
def test_marks_sort_as_members_do(places: list[tuple[int, bool]], count: int) -> None:
    labels = [f"m{number}" for number in range(count)]
    enum = EnumType(1, "e", new_members(labels))
    for number, (place, before) in enumerate(places):
        label = f"new{number}"
        if not labels:
            enum, labels = enum.with_member(label, before=None, after=None), [label]
            continue
        index = place % len(labels)
        beside = labels[index]
        enum = enum.with_member(
            label, before=beside if before else None, after=None if before else beside
        )
        labels.insert(index + (not before), label)
    assert list(enum.labels) == labels
    marks = [member.mark for member in enum.members]
    assert marks == sorted(set(marks))


def test_member_is_read_before_it_is_written() -> None:
    whole = all_writable(MOOD.with_member("fine", before=None, after="ok"))
    first = next_copy(MOOD, whole)
    assert first.labels == ("sad", "ok", "fine", "happy")
    assert [member.writable for member in first.members] == [True, True, False, True]
    with pytest.raises(SQLError) as caught:
        first.checked("fine")
    assert caught.value.sqlstate == "55000"
    assert next_copy(first, whole) == whole


@pytest.mark.parametrize(("labels", "sqlstate"), [(["a", "a"], "42710"), (["x" * 64], "42602")])
def test_bad_labels_are_refused(labels: list[str], sqlstate: str) -> None:
    with pytest.raises(SQLError) as caught:
        new_members(labels)
    assert caught.value.sqlstate == sqlstate


def test_type_comes_back_from_its_bytes() -> None:
    type = TypeDescriptor(id=7, name="mood", database_id=1, schema_id=2, enum=MOOD, version=3)
    at = Timestamp(9)
    stored = decode_descriptor(encode_descriptor(type), at)
    assert isinstance(stored, TypeDescriptor)
    assert (stored.enum, stored.version, stored.modification_time) == (MOOD, 3, at)
