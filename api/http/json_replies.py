"""Replies with rows, written in slices.

A result may have millions of rows, and turning them into JSON is Python's work: it is done a slice
at a time, with the loop free for others in between, and no faster than the client reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa
from fastapi import Response
from fastapi.responses import StreamingResponse

from ...catalog.values.column_types import ColumnType
from ...kvlayer.clock import format_timestamp
from ...sql import Result
from ..json_values import json_datum, json_value, passes
from .bodies import JSON

SLICE_ROWS = 250
"""Rows that become JSON in well under a millisecond, unless they are very wide."""

_encode = msgspec.json.Encoder().encode


def reply(encoded: Iterator[bytes], row_count: int) -> Response:
    """A reply whole, or as a stream if it is long."""
    if row_count <= SLICE_ROWS:
        return Response(b"".join(encoded), media_type=JSON)
    return StreamingResponse(in_turns(encoded), media_type=JSON)


async def in_turns(encoded: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in encoded:
        yield part
        await asyncio.sleep(0)


def encode_lines(result: Result) -> Iterator[bytes]:
    """The rows as JSON lines: an object each, of columns by name."""
    names = [column.name for column in result.columns]
    for rows in _json_slices(result):
        yield b"".join(_encode(dict(zip(names, row, strict=True))) + b"\n" for row in rows)


def encode_results(results: Sequence[Result]) -> Iterator[bytes]:
    """`SqlReply`, in parts."""
    yield b'{"results":['
    for place, result in enumerate(results):
        if place:
            yield b","
        yield from encode_result(result)
    yield b"]}"


def encode_result(result: Result) -> Iterator[bytes]:
    head: dict[str, object] = {"tag": result.tag, "row_count": result.row_count}
    if result.commit_timestamp is not None:
        head["commit_timestamp"] = format_timestamp(result.commit_timestamp)
    if result.notice is not None:
        head["notice"] = result.notice
    if result.warnings:
        head["warnings"] = list(result.warnings)
    if not result.returns_rows:
        yield _encode(head)
        return
    yield from _with_rows({**head, "columns": _columns(result)}, _json_slices(result))


def encode_open_result(result: Result) -> bytes:
    """The beginning of a result whose rows are still to come, up to the first of them."""
    return _encode({"columns": _columns(result)})[:-1] + b',"rows":['


def encode_rows(result: Result) -> Iterator[bytes]:
    """The rows in slices, without the brackets around all of them."""
    for rows in _json_slices(result):
        yield _encode(rows)[1:-1]


def _columns(result: Result) -> list[dict[str, str]]:
    return [{"name": column.name, "type": column.type.sql_name} for column in result.columns]


def _json_slices(result: Result) -> Iterator[Sequence[Sequence[object]]]:
    changed = [
        (place, column.type)
        for place, column in enumerate(result.columns)
        if not passes(column.type)
    ]
    return (_changed(rows, changed) for rows in _row_slices(result))


def _row_slices(result: Result) -> Iterator[Sequence[Sequence[object]]]:
    if result.table is None:
        rows = result.rows or ()
        for start in range(0, len(rows), SLICE_ROWS):
            yield rows[start : start + SLICE_ROWS]
        return
    for start in range(0, result.table.num_rows, SLICE_ROWS):
        yield replace(result, table=result.table.slice(start, SLICE_ROWS)).fetch_rows()


def _changed(
    rows: Sequence[Sequence[object]], places: Sequence[tuple[int, ColumnType]]
) -> Sequence[Sequence[object]]:
    if not places:
        return rows
    lists = [list(row) for row in rows]
    for row in lists:
        for place, type in places:
            row[place] = json_datum(type, row[place])
    return lists


def encode_table(table: pa.Table) -> Iterator[bytes]:
    """`MirrorReply`, in parts. Types are Arrow's: a mirror's query may have any of DuckDB's."""
    columns = [{"name": field.name, "type": str(field.type)} for field in table.schema]
    return _with_rows({"row_count": table.num_rows, "columns": columns}, _table_slices(table))


def _table_slices(table: pa.Table) -> Iterator[Sequence[Sequence[object]]]:
    for start in range(0, table.num_rows, SLICE_ROWS):
        part = table.slice(start, SLICE_ROWS)
        columns = [[json_value(value) for value in column.to_pylist()] for column in part.columns]
        yield list(zip(*columns, strict=True))


def _with_rows(
    head: dict[str, object], slices: Iterator[Sequence[Sequence[object]]]
) -> Iterator[bytes]:
    yield _encode(head)[:-1] + b',"rows":['
    first = True
    for rows in slices:
        encoded = _encode(rows)[1:-1]
        yield encoded if first else b"," + encoded
        first = False
    yield b"]}"
