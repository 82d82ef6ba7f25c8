"""The clauses of ALTER CHANGEFEED, their tables found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ...catalog.descriptors.descriptor import TableDescriptor


class TargetAction(Enum):
    """The actions on one target of a feed. The value is the statement's word."""

    PAUSE = "PAUSE"  # it is read no more, and what it has still to read is kept for it
    RESUME = "RESUME"  # it goes on where it stopped
    RESCAN = "RESCAN"  # its rows are shown again, as of where it stands


@dataclass(frozen=True, slots=True)
class TargetName:
    """A target as a statement names it: by what has that name now, or had it when it joined."""

    table_id: int | None
    name: str


@dataclass(frozen=True, slots=True)
class AddTarget:
    """`scans` is None where the statement does not say so."""

    table: TableDescriptor
    name: str
    scans: bool | None


@dataclass(frozen=True, slots=True)
class DropTarget:
    target: TargetName


@dataclass(frozen=True, slots=True)
class ControlTarget:
    action: TargetAction
    target: TargetName


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Options by name, each with its text or None where it had none."""

    options: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class UnsetOptions:
    names: tuple[str, ...]


Alteration = AddTarget | DropTarget | ControlTarget | SetOptions | UnsetOptions
