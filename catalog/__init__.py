"""The catalog: what tables are, and how their rows become keys and values.

What lives here: column types and their values, descriptors and the store of their versions, the
system's own tables, row codecs (compiled per version, shared by writers, readers and feeds), table
readers, leases on descriptors, and jobs. It promises that a descriptor version is published only if
the two-version invariant and the rules of the lock hold, whoever asks; that a row is read rightly
under any version of its table; and that ids are never used again. It must never know SQL text,
changefeeds or sinks.
"""

from .bootstrap import bootstrap
from .catalog import Catalog, ColumnDefinition, TableDefinition
from .catalog_changes import CatalogChanges
from .column_types import ColumnType, Datum, coerce
from .descriptor import (
    Column,
    DatabaseDescriptor,
    Descriptor,
    DescriptorState,
    SchemaDescriptor,
    TableDescriptor,
    logically_equal,
)
from .descriptor_encoding import DescriptorUnreadable
from .descriptor_store import DescriptorReader, DescriptorStore
from .errors import SQLError
from .key_errors import duplicate_key
from .live_leases import DescriptorLeased
from .names import TableName, quote_identifier
from .publish_rules import LOCK_PARAMETER, StaleDescriptor
from .row_codec import RowCodec, RowUnreadable, codec_for
from .show_create import show_create
from .table_reader import VersionSlice, read_table, read_versions
from .type_kinds import TypeKind

__all__ = [
    "LOCK_PARAMETER",
    "Catalog",
    "CatalogChanges",
    "Column",
    "ColumnDefinition",
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
