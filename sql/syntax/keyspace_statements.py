"""Statements about raw keyspaces, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class ShowKeyspaces:
    """SHOW KEYSPACES."""


@dataclass(frozen=True, slots=True)
class ShowReplications:
    """SHOW REPLICATIONS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyspaceFeed:
    """The keyspace of a changefeed, and which of its keys: `[start, end)`, None for no end."""

    name: ObjectName
    start: bytes = b""
    end: bytes | None = None


KeyspaceStatement = CreateKeyspace | DropKeyspace | PromoteKeyspace
