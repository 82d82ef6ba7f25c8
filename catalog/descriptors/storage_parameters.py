"""Storage parameters: what `WITH (…)`, `SET (…)` and `RESET (…)` of a table take.

    changefeed_optimized    boolean; locks the table for low-latency changefeeds
    schema_locked           the same, by the name under which CockroachDB ships it
    gc.ttlseconds           whole seconds for which old versions are kept at least

The lock is a field of the descriptor; the others are kept as text, in one form for each value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..values.errors import SQLError
from ..values.literals import read_bool, read_int
from .publish_rules import LOCK_PARAMETER

LOCK_ALIAS = "schema_locked"
GC_TTL_SECONDS = "gc.ttlseconds"
KNOWN = (LOCK_PARAMETER, LOCK_ALIAS, GC_TTL_SECONDS)

IGNORED = ("fillfactor", "toast_tuple_target", "parallel_workers", "user_catalog_table")
"""Parameters of PostgreSQL that say how pages are kept: there are none here."""
_IGNORED_PREFIXES = ("autovacuum_", "toast.", "vacuum_")

GC_TTL_SECONDS_MAX = 10 * 365 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageParameters:
    """Checked parameters. `locked` is None where the lock was not mentioned."""

    locked: bool | None
    others: Mapping[str, str]


def parse_parameters(given: Mapping[str, object]) -> StorageParameters:
    """Raises SQLError 22023 for a name that is not known or a value that does not fit."""
    locked: bool | None = None
    others: dict[str, str] = {}
    for name, value in given.items():
        known = check_name(name)
        if known == LOCK_PARAMETER:
            wanted = _boolean(name, value)
            if locked is not None and locked != wanted:
                raise SQLError(
                    "22023",
                    f"storage parameters {LOCK_PARAMETER} and {LOCK_ALIAS} contradict each other",
                    detail="They are two names of one parameter.",
                )
            locked = wanted
        else:
            others[known] = str(_ttl_seconds(name, value))
    return StorageParameters(locked=locked, others=others)


def without_ignored(given: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """The parameters that mean something, and the names of those that mean nothing here."""
    ignored = [
        name
        for name in given
        if name.lower() in IGNORED or name.lower().startswith(_IGNORED_PREFIXES)
    ]
    return {name: value for name, value in given.items() if name not in ignored}, ignored


def parse_names(given: Iterable[str]) -> frozenset[str]:
    """The parameters that a RESET names, an alias by its parameter's name."""
    return frozenset(map(check_name, given))


def check_name(name: str) -> str:
    """The name of the parameter behind a name or alias. Raises SQLError 22023."""
    lowered = name.lower()
    if lowered not in KNOWN:
        raise SQLError(
            "22023",
            f'unrecognized storage parameter "{name}"',
            hint=f"Known parameters: {', '.join(KNOWN)}.",
        )
    return LOCK_PARAMETER if lowered == LOCK_ALIAS else lowered


def _boolean(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    try:
        return read_bool(str(value))
    except SQLError:
        raise SQLError(
            "22023",
            f'storage parameter "{name}" requires a boolean value, not {value!r}',
            hint="Write true or false.",
        ) from None


def _ttl_seconds(name: str, value: object) -> int:
    try:
        seconds = read_int(str(value))
    except SQLError:
        seconds = 0
    if not 1 <= seconds <= GC_TTL_SECONDS_MAX:
        raise SQLError(
            "22023",
            f'storage parameter "{name}" requires whole seconds from 1 to {GC_TTL_SECONDS_MAX}, '
            f"not {value!r}",
        )
    return seconds
