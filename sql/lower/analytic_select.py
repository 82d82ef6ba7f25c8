"""A query for DuckDB, and the tables and parameters that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.arrow_conform import broad_schema
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.column_types import ColumnType
from ..access.key_access import KeyAccess
from ..analyze.scalars import Scalar
from ..results.results import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """A table that DuckDB reads: registered as `registered`, with the columns at `places`.

    `access` narrows the rows where conditions of the statement allow it.
    """

    registered: str
    descriptor: TableDescriptor
    places: tuple[int, ...]
    access: KeyAccess | None

    @property
    def covered(self) -> bool:
        """Whether the entries that the access reads say all that is asked for."""
        columns = self.descriptor.visible_columns
        return self.access is None or self.access.holds(
            [columns[place].id for place in self.places]
        )

    @property
    def stored_schema(self) -> pa.Schema:
        schema = codec_for(self.descriptor).arrow_schema
        return pa.schema([schema.field(place) for place in self.places])

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema that DuckDB reads: broad types, in which expressions are computed."""
        return broad_schema(self.descriptor, self.places)


@dataclass(frozen=True, slots=True)
class TypedParameter:
    """A parameter of the DuckDB statement; `type` is what it is cast to, if it is known."""

    scalar: Scalar
    type: ColumnType | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticSelect:
    """A query for DuckDB, in its dialect, over registered snapshots.

    `positions` says where the statement's names stand, for errors that DuckDB finds; `declared`
    the types that tables give the result's columns, as far as they are known, and `origins` the
    tables' columns that they are; `piecewise` how it is answered a part of its table at a time, if
    it can be. A query that is `fixed` was made of the numbers of one text, and is no plan of the
    text's shape (`sql.runtime.plan_cache`).
    """

    sql: str
    scans: tuple[TableScan, ...]
    parameters: tuple[TypedParameter, ...]
    positions: Mapping[str, int]
    declared: tuple[ColumnType | None, ...] = ()
    origins: tuple[Origin | None, ...] = ()
    piecewise: Piecewise | None = None
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Piecewise:
    """A query of one table that treats each row by itself and returns `limit` rows at most.

    `ordered` says that ORDER BY names leading columns of the primary key: pieces are read in key
    order, and each is sorted by itself.
    """

    limit: Scalar | None
    ordered: bool
