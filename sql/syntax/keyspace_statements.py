"""Statements about raw keyspaces, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass, field

from .as_of_clause import AsOf
from .names import ObjectName, Option


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateKeyspace:
    name: ObjectName
    if_not_exists: bool
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropKeyspace:
    name: ObjectName
    if_exists: bool


@dataclass(frozen=True, slots=True)
class PromoteKeyspace:
    """ALTER KEYSPACE name PROMOTE: a replica is written by its own store from here on."""

    name: ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupKeyspace:
    """BACKUP KEYSPACE name INTO 'uri' [AS OF SYSTEM TIME …]."""

    name: ObjectName
    uri: str
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreKeyspace:
    """RESTORE KEYSPACE name FROM 'uri' [WITH (role = 'replica')]."""

    name: ObjectName
    uri: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class TransferKeyspace:
    """ALTER KEYSPACE name TRANSFER TO 'tailrace://…': the replica there leads from here on."""

    name: ObjectName
    target: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SplitKeyspace:
    """ALTER KEYSPACE name SPLIT AT 'key' [, …]: ranges begin at these keys."""

    name: ObjectName
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ShowKeyspaces:
    """SHOW KEYSPACES."""


@dataclass(frozen=True, slots=True)
class ShowKeyspaceRanges:
    """SHOW RANGES FROM KEYSPACE name."""

    name: ObjectName


@dataclass(frozen=True, slots=True)
class ShowReplications:
    """SHOW REPLICATIONS, or SHOW REPLICATION name TASKS."""

    tasks_of: str | None = None


@dataclass(frozen=True, slots=True)
class RebalanceReplication:
    """REBALANCE REPLICATION name: the replication's keys are dealt anew to its tasks."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyspaceFeed:
    """The keyspace of a changefeed, and which of its keys: `[start, end)`, None for no end."""

    name: ObjectName
    start: bytes = b""
    end: bytes | None = None


KeyspaceStatement = (
    CreateKeyspace | DropKeyspace | PromoteKeyspace | TransferKeyspace | SplitKeyspace
)
