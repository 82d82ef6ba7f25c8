"""Descriptors that share the namespace of tables: types and sequences."""

from __future__ import annotations

from dataclasses import dataclass

from ...kvlayer.keys import index_prefix
from ..values.enum_type import EnumType
from .named_descriptor import SchemaObject


@dataclass(frozen=True, kw_only=True)
class TypeDescriptor(SchemaObject):
    """One version of a type that a user made: an enumeration.

    Tables hold the enumerations of their columns themselves (`enum_type`), and are published anew
    with the type, so nobody reads a row by this descriptor and nobody leases it.
    """

    enum: EnumType


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceOptions:
    """The options of a sequence. `minimum` ≤ `start` ≤ `maximum`, and `increment` is not zero.
    `cache` is what CACHE said, which is not obeyed."""

    start: int
    increment: int
    minimum: int
    maximum: int
    cycle: bool
    cache: int


@dataclass(frozen=True, kw_only=True)
class SequenceDescriptor(SchemaObject):
    """One version of a sequence. `owner` is the table and the column that it goes with."""

    options: SequenceOptions
    owner: tuple[int, int] | None = None

    @property
    def key(self) -> bytes:
        """The key of the sequence's value."""
        return index_prefix(self.id, 1)
