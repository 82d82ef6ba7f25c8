"""The catalog: what tables are, and how their rows become keys and values.

What lives here: column types and their values, descriptors and the store of their versions, the
system's own tables, row codecs (compiled per version, shared by writers, readers and feeds), table
readers, leases on descriptors, and jobs. It promises that a descriptor version is published only if
the two-version invariant and the rules of the lock hold, whoever asks; that a row is read rightly
under any version of its table; and that ids are never used again. It must never know SQL text,
changefeeds or sinks.
"""

from .descriptors.descriptor import (
    Column,
    DatabaseDescriptor,
    Descriptor,
    DescriptorState,
    SchemaDescriptor,
    TableDescriptor,
    logically_equal,
)
from .descriptors.descriptor_encoding import DescriptorUnreadable
from .descriptors.names import TableName, quote_identifier
from .descriptors.publish_rules import LOCK_PARAMETER, StaleDescriptor
from .rights.bootstrap import bootstrap
from .rights.key_errors import duplicate_key
from .rows.row_codec import RowCodec, RowUnreadable, codec_for
from .rows.table_reader import VersionSlice, read_table, read_versions
from .store.catalog import Catalog, TableDefinition
from .store.catalog_changes import CatalogChanges
from .store.descriptor_store import DescriptorReader, DescriptorStore
from .store.live_leases import DescriptorLeased
from .store.show_create import show_create
from .values.column_types import ColumnType, Datum, coerce
from .values.errors import SQLError
from .values.type_kinds import TypeKind

__all__ = [
    "LOCK_PARAMETER",
    "Catalog",
    "CatalogChanges",
    "Column",
    "ColumnType",
    "DatabaseDescriptor",
    "Datum",
    "Descriptor",
    "DescriptorLeased",
    "DescriptorReader",
    "DescriptorState",
    "DescriptorStore",
    "DescriptorUnreadable",
    "RowCodec",
    "RowUnreadable",
    "SQLError",
    "SchemaDescriptor",
    "StaleDescriptor",
    "TableDefinition",
    "TableDescriptor",
    "TableName",
    "TypeKind",
    "VersionSlice",
    "bootstrap",
    "codec_for",
    "coerce",
    "duplicate_key",
    "logically_equal",
    "quote_identifier",
    "read_table",
    "read_versions",
    "show_create",
]
