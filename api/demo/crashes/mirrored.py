"""The crash store's mirror: its tables as SQL has them, and what the mirror holds, bit for bit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...embedded import AsyncMirror
from .table import CRASHES, ISSUES, NOTHING, Shape, image_of

LOG = "crash_store"
MIRROR = "crashes.duckdb"
SHAPES = (CRASHES, ISSUES)
_WIDTH = max(len(shape.columns) for shape in SHAPES)


def schema_statements() -> list[str]:
    """The tables, the log that writes them, and its mirror."""
    tables = [
        f"CREATE TABLE {shape.name} (id INT8 PRIMARY KEY, "
        + ", ".join(f"{column} INT8" for column in shape.columns)
        + ")"
        for shape in SHAPES
    ]
    names = ", ".join(shape.name for shape in SHAPES)
    return [
        *tables,
        f"CREATE RELAXED LOG {LOG} FOR TABLES ({names})",
        f"CREATE CHANGEFEED FOR RELAXED LOG {LOG} INTO 'duckdb:///{MIRROR}'",
    ]


def rows_query(as_of: str | None = None) -> str:
    """Every row of both tables in one result, so in one transaction: table, id, and its columns."""
    time = f" AS OF SYSTEM TIME '{as_of}'" if as_of else ""
    return " UNION ALL ".join(_select(shape) for shape in SHAPES) + time


def _select(shape: Shape) -> str:
    columns = [*shape.columns, *["NULL"] * (_WIDTH - len(shape.columns))]
    named = ", ".join(f"CAST({column} AS BIGINT) AS c{at}" for at, column in enumerate(columns))
    return f"SELECT '{shape.name}' AS table_name, id, {named} FROM {shape.name}"


def image_of_rows(rows: pa.Table) -> bytes:
    """The image of a crash store that has these rows of `rows_query`."""
    return b"".join(_image(shape, rows) for shape in SHAPES)


def _image(shape: Shape, rows: pa.Table) -> bytes:
    of_table = rows.filter(pc.field("table_name") == shape.name)
    ids = of_table.column("id").to_numpy()
    columns = {}
    for at, name in enumerate(shape.columns):
        values = np.full(shape.rows, NOTHING)
        found = of_table.column(f"c{at}").to_pylist()
        values[ids] = [NOTHING if value is None else value for value in found]
        columns[name] = values
    return image_of(shape, columns)


async def mirror_image(mirror: AsyncMirror) -> bytes:
    """The image of the mirror, as of one of its transactions."""
    return image_of_rows(await mirror.sql(rows_query()))
