"""Statements about raw keyspaces, as the parser hands them on."""

from __future__ import annotations

from dataclasses import field

from .names import AsOf, ObjectName, Option
from .statement import Statement, Syntax


class CreateKeyspace(Statement):
    name: ObjectName
    if_not_exists: bool
    options: tuple[Option, ...]


class DropKeyspace(Statement):
    name: ObjectName
    if_exists: bool


class PromoteKeyspace(Statement):
    """ALTER KEYSPACE name PROMOTE: a replica is written by its own store from here on."""

    name: ObjectName


class BackupKeyspace(Statement):
    """BACKUP KEYSPACE name INTO 'uri' [AS OF SYSTEM TIME …]."""

    name: ObjectName
    uri: str
    as_of: AsOf | None = None


class RestoreKeyspace(Statement):
    """RESTORE KEYSPACE name FROM 'uri' [WITH (role = 'replica')]."""

    name: ObjectName
    uri: str
    options: tuple[Option, ...] = ()


class TransferKeyspace(Statement):
    """ALTER KEYSPACE name TRANSFER TO 'tailrace://…': the replica there leads from here on."""

    name: ObjectName
    target: str = field(repr=False)


class SplitKeyspace(Statement):
    """ALTER KEYSPACE name SPLIT AT 'key' [, …]: ranges begin at these keys."""

    name: ObjectName
    keys: tuple[bytes, ...]


class ShowKeyspaces(Statement):
    """SHOW KEYSPACES."""


class ShowKeyspaceRanges(Statement):
    """SHOW RANGES FROM KEYSPACE name."""

    name: ObjectName


class ShowReplications(Statement):
    """SHOW REPLICATIONS, or SHOW REPLICATION name TASKS."""

    tasks_of: str | None = None


class RebalanceReplication(Statement):
    """REBALANCE REPLICATION name: the replication's keys are dealt anew to its tasks."""

    name: str


class KeyspaceFeed(Syntax):
    """The keyspace of a changefeed, and which of its keys: `[start, end)`, None for no end."""

    name: ObjectName
    start: bytes = b""
    end: bytes | None = None


KeyspaceStatement = (
    CreateKeyspace | DropKeyspace | PromoteKeyspace | TransferKeyspace | SplitKeyspace
)
