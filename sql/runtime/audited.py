"""The statements of which the audit log tells, and its words for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from ..syntax.changefeed_statements import (
    AlterConnection,
    ConnectionChange,
    CreateConnection,
    CreateSchedule,
    CreateSubscription,
    RetryDeadLetters,
    SkipDeadLetters,
)
from ..syntax.keyspace_statements import BackupKeyspace, RestoreKeyspace
from ..syntax.rights_statements import ActAs, AlterUser, CreateUser, RightsChange
from ..syntax.statement import ObjectName, kinds_of
from ..syntax.statements import ControlJobs, CreateChangefeed, SetClusterSetting, VerifyChangefeed

AUDITED: frozenset[type[object]] = frozenset((
    *kinds_of(RightsChange), ActAs, CreateChangefeed, CreateSubscription, CreateSchedule,
    *kinds_of(ConnectionChange), ControlJobs, VerifyChangefeed,
    RetryDeadLetters, SkipDeadLetters, BackupKeyspace, RestoreKeyspace, SetClusterSetting,
))  # fmt: skip
"""Changes of users and rights, of who somebody acts as, of feeds, backups and the
cluster's settings."""

_NOT_TOLD = frozenset(
    {"password", "position", "text", "sink", "options", "schedule_options", "query", "uri"}
)
"""Fields that hold secrets, or places in a text that is not told."""


def told(statement: object) -> Mapping[str, object]:
    """The statement's own fields as JSON takes them: without passwords, a sink by its scheme."""
    facts = _fields(statement)
    if isinstance(statement, CreateUser | AlterUser):
        facts |= _fields(statement.options)
    if isinstance(statement, CreateChangefeed):
        facts |= {
            "sink": _scheme(statement.sink or ""),
            "options": [option.name for option in statement.options],
        }
    if isinstance(statement, CreateConnection | AlterConnection) and statement.uri is not None:
        facts["sink"] = _scheme(statement.uri)
    return facts


def _scheme(uri: str) -> str:
    """Empty for what is no URI, which may hold a secret anywhere."""
    scheme, separator, _ = uri.partition("://")
    return scheme if separator else ""


def _fields(statement: object) -> dict[str, object]:
    assert is_dataclass(statement), statement
    values = {each.name: getattr(statement, each.name) for each in fields(statement)}
    return {
        name: _plain(value)
        for name, value in values.items()
        if name not in _NOT_TOLD and value not in (None, (), False)
    }


def _plain(value: object) -> object:
    match value:
        case str() | int() | None:
            return value
        case bytes():
            return f"\\x{value.hex()}"
        case Enum():
            return value.value
        case ObjectName():
            return str(value)
        case tuple():
            return [_plain(each) for each in value]
        case _:
            return _fields(value)
