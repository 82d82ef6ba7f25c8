"""A table of an Iceberg catalog, which is a SQLite file, and the commits of one feed to it.

The module imports pyiceberg, which takes a second: it is imported in a lane.

The feed's record is a property of the table, which a commit sets together with its snapshot, and is
in the snapshot's summary too. A commit is refused where another snapshot came between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from inspect import isclass

import pyarrow as pa
import pyiceberg.exceptions
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import Table, Transaction
from sqlalchemy.exc import SQLAlchemyError

from ....kvlayer.history import StorePosition
from ..lake.lake_table import another_type
from ..lake.record import FIELD, TableRecord, application, decode_record
from ..protocol import FeedIdentity, SinkRefused
from .location import IcebergTarget

ERRORS: tuple[type[Exception], ...] = (
    SQLAlchemyError,
    *(
        each
        for each in vars(pyiceberg.exceptions).values()
        if isclass(each) and issubclass(each, Exception)
    ),
)
"""The library's errors, which have no root of their own."""

NO_RETRIES = {"commit.retry.num-retries": "0"}
"""A commit that another came before is not made behind it: who was taken over would go on."""

NAME = "default"
"""The catalog's name, as readers give it."""


@contextmanager
def open_catalog(target: IcebergTarget) -> Iterator[SqlCatalog]:
    """The catalog, which is made where there is none."""
    target.path.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog(
        NAME, uri=f"sqlite:///{target.catalog}", warehouse=f"file://{target.path.absolute()}"
    )
    try:
        yield catalog
    finally:
        catalog.close()


class IcebergTable:
    """A table of a catalog, which may not be there yet. Use it in a lane."""

    def __init__(
        self, catalog: SqlCatalog, identifier: tuple[str, str], identity: FeedIdentity
    ) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._application = application(identity)
        self._table: Table | None = None
        self._written: str | None = None
        """The record that the feed has last read or written."""

    @property
    def shown(self) -> str:
        return f"Iceberg table {'.'.join(self._identifier)}"

    def read(self) -> TableRecord | None:
        """The record of the feed's last commit; None where the table is not the feed's."""
        if not self._catalog.table_exists(self._identifier):
            return None
        self._table = self._catalog.load_table(self._identifier)
        self._written = self._table.properties.get(FIELD)
        record = None if self._written is None else decode_record(self._written)
        if record is None or record.application != self._application or record.released:
            return None
        return record

    @property
    def foreign(self) -> bool:
        if self._table is None:
            return False
        text = self._table.properties.get(FIELD)
        return text is None or decode_record(text).application != self._application

    def check_types(self, schema: pa.Schema) -> None:
        """Raises SinkRefused where a column of the table has another type than in `schema`."""
        assert self._table is not None, self.shown
        known = {field.name: field.type for field in self._table.schema().as_arrow()}
        for field in schema:
            now, was = _stored(field.type), _stored(known.get(field.name, field.type))
            if now != was:
                raise SinkRefused(another_type(self.shown, field.name, was, now))

    def append(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], record: TableRecord
    ) -> None:
        """Adds rows, and the columns of `schema` that the table has not, in one commit."""
        if self._table is None:
            self._catalog.create_namespace_if_not_exists(self._identifier[0])
            transaction: Transaction = self._catalog.create_table_transaction(
                self._identifier, schema, properties=NO_RETRIES
            )
        else:
            transaction = self._follow().transaction()
        self._commit(transaction, schema, batches, record)

    def overwrite(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], record: TableRecord
    ) -> None:
        """Puts rows and columns in the place of those that are there, in one commit."""
        if self._table is None:
            return self.append(schema, batches, record)
        transaction = self._follow().transaction()
        transaction.delete(AlwaysTrue())
        wanted = {field.name: _stored(field.type) for field in schema}
        with transaction.update_schema() as update:
            for field in self._table.schema().as_arrow():
                if wanted.get(field.name) != _stored(field.type):
                    update.delete_column(field.name)
        self._commit(transaction, schema, batches, record)

    def release(self, record: TableRecord, position: StorePosition) -> None:
        """Lets go of the table: it stays as it is, and its commits tell no progress any more."""
        assert self._table is not None, self.shown
        self.append(self._table.schema().as_arrow(), [], record.letting_go(position))

    def _follow(self) -> Table:
        """The table with the commits of others. Raises OSError where another attempt of the feed
        has written to it."""
        assert self._table is not None, self.shown
        table = self._table.refresh()
        if table.properties.get(FIELD) != self._written:
            raise OSError(f"{self.shown}: a later claim of the feed's job has written to it")
        return table

    def _commit(
        self,
        transaction: Transaction,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        record: TableRecord,
    ) -> None:
        text = record.encode()
        known = {field.name for field in transaction.table_metadata.schema().fields}
        if not known >= set(schema.names):
            with transaction.update_schema() as update:
                update.union_by_name(schema)
        rows = pa.RecordBatchReader.from_batches(schema, batches)
        transaction.append(rows, snapshot_properties={FIELD: text})
        transaction.set_properties({FIELD: text, **NO_RETRIES})
        transaction.commit_transaction()
        self._table = self._catalog.load_table(self._identifier)
        self._written = text


def _stored(type: pa.DataType) -> pa.DataType:
    """The type as Iceberg has it."""
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(pa.field("element", _stored(type.value_type)))
    if pa.types.is_large_string(type):
        return pa.string()
    if pa.types.is_large_binary(type):
        return pa.binary()
    return pa.int32() if pa.types.is_integer(type) and type.bit_width < 32 else type
