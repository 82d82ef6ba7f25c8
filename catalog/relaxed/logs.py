"""The definitions of relaxed logs, and the mark on their tables that only they may write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from ...kvlayer.access import Transaction
from ...kvlayer.keys import RELAXED_KIND
from ...kvlayer.span import Span
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.relaxed_tables import RELAXED_LOG
from ..store.catalog_changes import CatalogChanges
from ..store.descriptor_store import DescriptorReader, DescriptorStore
from ..values.errors import SQLError

_NAMES = RELAXED_KIND + bytes(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxedLog:
    """A log and its tables, by their ids."""

    name: str
    id: int
    table_ids: tuple[int, ...]

    @property
    def prefix(self) -> bytes:
        """The log's keyspace."""
        return RELAXED_KIND + self.id.to_bytes(4, "big")

    def position_key(self, domain: int) -> bytes:
        return self.prefix + b"p" + domain.to_bytes(8, "big")

    def pending_prefix(self, domain: int) -> bytes:
        return self.prefix + b"e" + domain.to_bytes(8, "big")


def unknown_log(name: str) -> SQLError:
    return SQLError("42704", f'relaxed log "{name}" does not exist')


async def find_log(reader: DescriptorReader, name: str) -> RelaxedLog:
    """Raises SQLError 42704."""
    body = await reader.get(_NAMES + name.encode())
    if body is None:
        raise unknown_log(name)
    return _decode(name, body)


async def list_logs(reader: DescriptorReader) -> list[RelaxedLog]:
    """All logs, by name."""
    rows = await reader.scan(Span.prefix(_NAMES))
    return [_decode(key[len(_NAMES) :].decode(), body) for key, body in rows]


async def create_log(
    descriptors: DescriptorStore,
    transaction: Transaction,
    name: str,
    tables: Sequence[TableDescriptor],
) -> RelaxedLog:
    """A log of these tables, which from now on it alone may write. Raises SQLError 42710 where
    there is one of that name, 55000 where a table is another log's."""
    key = _NAMES + name.encode()
    if await transaction.get(key) is not None:
        raise SQLError("42710", f'relaxed log "{name}" already exists')
    for table in tables:
        owner = table.parameters.get(RELAXED_LOG)
        if owner is not None:
            raise SQLError(
                "55000", f'table "{table.name}" is written by relaxed log "{owner}" already'
            )
        await _mark(descriptors, transaction, table, {**table.parameters, RELAXED_LOG: name})
    log = RelaxedLog(name=name, id=tables[0].id, table_ids=tuple(table.id for table in tables))
    await transaction.put([key], [msgspec.msgpack.encode([log.id, *log.table_ids])])
    return log


async def drop_log(descriptors: DescriptorStore, transaction: Transaction, log: RelaxedLog) -> None:
    """The log is forgotten with all that is pending. Its tables stay, for anybody to write."""
    for table_id in log.table_ids:
        table = await descriptors.read(transaction, table_id)
        if isinstance(table, TableDescriptor) and not table.dropped:
            rest = {key: value for key, value in table.parameters.items() if key != RELAXED_LOG}
            await _mark(descriptors, transaction, table, rest)
    keys = [key for key, _ in await transaction.scan(Span.prefix(log.prefix))]
    await transaction.delete([_NAMES + log.name.encode(), *keys])


async def _mark(
    descriptors: DescriptorStore,
    transaction: Transaction,
    table: TableDescriptor,
    parameters: dict[str, str],
) -> None:
    version = CatalogChanges.of(transaction).next_version(table)
    await descriptors.publish(transaction, replace(table, parameters=parameters, version=version))


def _decode(name: str, body: bytes) -> RelaxedLog:
    log_id, *table_ids = msgspec.msgpack.decode(body, type=list[int])
    return RelaxedLog(name=name, id=log_id, table_ids=tuple(table_ids))
