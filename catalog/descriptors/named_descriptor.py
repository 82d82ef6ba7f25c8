"""The base of all descriptors: an id, a name, a version, a state, and a place by the parents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...kvlayer.clock import ZERO, Timestamp


class DescriptorState(Enum):
    PUBLIC = "public"  # in use
    DROPPED = "dropped"  # its name is free again; kept so that feeds and old reads understand it


@dataclass(frozen=True, kw_only=True)
class NamedDescriptor:
    """One version of a database, a schema, or an object in a schema."""

    id: int
    name: str
    version: int = 1
    modification_time: Timestamp = ZERO
    state: DescriptorState = DescriptorState.PUBLIC

    @property
    def parent_id(self) -> int:
        """The id of the database that it is in; zero for a database."""
        return 0

    @property
    def parent_schema_id(self) -> int:
        """The id of the schema that it is in; zero for a database, and for a schema."""
        return 0

    @property
    def dropped(self) -> bool:
        return self.state is DescriptorState.DROPPED


@dataclass(frozen=True, kw_only=True)
class SchemaObject(NamedDescriptor):
    """A descriptor of an object in a schema."""

    database_id: int
    schema_id: int

    @property
    def parent_id(self) -> int:
        return self.database_id

    @property
    def parent_schema_id(self) -> int:
        return self.schema_id
