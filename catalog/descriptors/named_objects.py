"""Descriptors that share the namespace of tables: types and sequences."""

from __future__ import annotations

from dataclasses import dataclass

from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.keys import index_prefix
from ..values.enum_type import EnumType
from .descriptor_state import DescriptorState


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDescriptor:
    """One version of a type that a user made: an enumeration.

    Tables hold the enumerations of their columns themselves (`enum_type`), and are published anew
    with the type, so nobody reads a row by this descriptor and nobody leases it.
    """

    id: int
    name: str
    database_id: int
    schema_id: int
    enum: EnumType
    version: int = 1
    modification_time: Timestamp = ZERO
    state: DescriptorState = DescriptorState.PUBLIC

    @property
    def parent_id(self) -> int:
        return self.database_id

    @property
    def parent_schema_id(self) -> int:
        return self.schema_id

    @property
    def dropped(self) -> bool:
        return self.state is DescriptorState.DROPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceOptions:
    """The options of a sequence. `minimum` ≤ `start` ≤ `maximum`, and `increment` is not zero."""

    start: int
    increment: int
    minimum: int
    maximum: int
    cycle: bool
    cache: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceDescriptor:
    """One version of a sequence. `owner` is the table and the column that it goes with."""

    id: int
    name: str
    database_id: int
    schema_id: int
    options: SequenceOptions
    owner: tuple[int, int] | None = None
    version: int = 1
    modification_time: Timestamp = ZERO
    state: DescriptorState = DescriptorState.PUBLIC

    @property
    def parent_id(self) -> int:
        return self.database_id

    @property
    def parent_schema_id(self) -> int:
        return self.schema_id

    @property
    def dropped(self) -> bool:
        return self.state is DescriptorState.DROPPED

    @property
    def key(self) -> bytes:
        """The key of the sequence's value."""
        return index_prefix(self.id, 1)
