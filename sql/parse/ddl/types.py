"""The grammar of types that users make."""

from __future__ import annotations

from ...syntax.refusals import unsupported
from ...syntax.type_statements import (
    AddEnumValue,
    CreateEnum,
    RenameEnumValue,
    RenameType,
)
from ..cursor import Cursor


def create_type(cursor: Cursor) -> CreateEnum:
    """`[IF NOT EXISTS] name AS ENUM ([label, …])`"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    name = cursor.object_name("a type's name")
    position = cursor.position
    if cursor.accept_words("as") and not cursor.at_words("enum"):
        raise unsupported(
            "types other than enumerations",
            position,
            "Write CREATE TYPE … AS ENUM ('a label', …); JSONB holds values of several parts.",
        )
    cursor.expect_words("enum")
    cursor.expect_symbol("(")
    none = cursor.at_symbol(")")
    labels = () if none else cursor.listed(lambda: cursor.string("a label"))
    cursor.expect_symbol(")")
    return CreateEnum(name=name, labels=labels, if_not_exists=if_not_exists)


def alter_type(cursor: Cursor) -> AddEnumValue | RenameEnumValue | RenameType:
    """`name ADD VALUE …`, `name RENAME VALUE … TO …`, `name RENAME TO …`"""
    name = cursor.object_name("a type's name")
    if cursor.accept_words("rename", "value"):
        label = cursor.string("a label")
        cursor.expect_words("to")
        new_label = cursor.string("a label")
        return RenameEnumValue(name=name, label=label, new_label=new_label)
    if cursor.accept_words("rename", "to"):
        new_name = cursor.identifier("a type's name")
        return RenameType(name=name, new_name=new_name)
    if not cursor.accept_words("add", "value"):
        cursor.fail(expected="ADD VALUE, RENAME VALUE or RENAME TO")
    if_not_exists = cursor.accept_words("if", "not", "exists")
    label = cursor.string("a label")
    before = cursor.string("a label") if cursor.accept_words("before") else None
    after = cursor.string("a label") if before is None and cursor.accept_words("after") else None
    return AddEnumValue(
        name=name, label=label, before=before, after=after, if_not_exists=if_not_exists
    )
