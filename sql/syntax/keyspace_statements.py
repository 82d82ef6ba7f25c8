"""Statements about raw keyspaces, as the parser hands them on."""

from __future__ import annotations

from dataclasses import field

from .statement import DDL, AsOf, CatalogStatement, ObjectName, Option, Statement, Syntax


class CreateKeyspace(DDL):
    grammar = "CREATE KEYSPACE if_not_exists:[IF NOT EXISTS] name:keyspace [options:with]"
    name: ObjectName
    if_not_exists: bool
    options: tuple[Option, ...]


class DropKeyspace(DDL):
    grammar = "DROP KEYSPACE if_exists:[IF EXISTS] name:keyspace"
    name: ObjectName
    if_exists: bool


class PromoteKeyspace(DDL):
    """A replica is written by its own store from here on."""

    grammar = "ALTER KEYSPACE name:keyspace PROMOTE"
    name: ObjectName


class SplitKeyspace(DDL):
    """Ranges begin at these keys."""

    grammar = "ALTER KEYSPACE name:keyspace SPLIT AT keys:key,…"
    name: ObjectName
    keys: tuple[bytes, ...]


class TransferKeyspace(DDL):
    """The replica at the target leads from here on."""

    grammar = "ALTER KEYSPACE name:keyspace TRANSFER TO target:replica"
    name: ObjectName
    target: str = field(repr=False)


class BackupKeyspace(Statement):
    grammar = "BACKUP KEYSPACE name:keyspace INTO uri:folder [AS OF SYSTEM TIME as_of:timestamp]"
    name: ObjectName
    uri: str
    as_of: AsOf | None = None


class RestoreKeyspace(Statement):
    grammar = "RESTORE KEYSPACE name:keyspace FROM uri:backup [options:with]"
    name: ObjectName
    uri: str
    options: tuple[Option, ...] = ()


class ShowKeyspaces(Statement):
    grammar = "SHOW KEYSPACES"


class ShowKeyspaceRanges(Statement):
    grammar = "SHOW RANGES FROM KEYSPACE name:keyspace"
    name: ObjectName


class ShowReplications(Statement):
    grammar = ("SHOW REPLICATIONS", "SHOW REPLICATION tasks_of:replication TASKS")
    tasks_of: str | None = None


class RebalanceReplication(CatalogStatement):
    """The replication's keys are dealt anew to its tasks."""

    grammar = "REBALANCE REPLICATION name:replication"
    name: str


class KeyspaceFeed(Syntax):
    """The keyspace of a changefeed, and which of its keys: `[start, end)`, None for no end."""

    grammar = "name:keyspace [FROM start:first_key] [TO end:key]"
    name: ObjectName
    start: bytes = b""
    end: bytes | None = None
