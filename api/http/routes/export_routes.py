"""`/v1/tables/{table}/spans` and `/export`: a table, or what changed in it, for programs.

Timestamps are decimal integers here, as the store keeps them, and keys are hexadecimal.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

import msgspec
import pyarrow as pa
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.system_tables import DEFAULT_DATABASE
from ....catalog.rows.row_codec import codec_for
from ....changefeed.export import (
    Comparison,
    ExportBatch,
    FilterRefused,
    MarkUnreadable,
    RowFilter,
    TableAltered,
    cut_table,
    export_snapshot,
    export_versions,
    stamped_schema,
    version_schema,
)
from ....kvlayer.clock import MAX_TIMESTAMP, Timestamp
from ....kvlayer.span import Span
from ...node import Node
from ..arrow_writer import ArrowWriter
from ..bodies import ARROW_STREAM, JSON, SpansReply, TableReply
from ..openapi import described
from ..table_lookup import check_readable, find_readable, moment

Table = Annotated[str, Path(description="its name, which dots may qualify, or its id")]
Database = Annotated[str, Query()]
Stamp = Annotated[int | None, Query(gt=0, le=MAX_TIMESTAMP)]

_STAMPED = "whether each row of a snapshot says when it was written"
_FORM = "write a JSON list of [column, comparison, value]"


def export_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["export"])
    _add_tables(router, node)
    _add_export(router, node)
    return router


def _add_tables(router: APIRouter, node: Node) -> None:
    @router.get("/v1/tables/{table}", **described(reply=TableReply))
    async def one_table(
        request: Request, table: Table, as_of: Stamp = None, database: Database = DEFAULT_DATABASE
    ) -> Response:
        """The table's columns as of a timestamp, or now."""
        at = await moment(node, as_of)
        descriptor = await find_readable(node, table, database, at, request)
        body = TableReply(**_table(node, descriptor, at))
        return Response(msgspec.json.encode(body), media_type=JSON)

    @router.get("/v1/tables/{table}/spans", **described(reply=SpansReply))
    async def spans(
        request: Request,
        table: Table,
        as_of: Stamp = None,
        cut: Annotated[bool, Query(description="whether to cut large ones")] = True,
        database: Database = DEFAULT_DATABASE,
    ) -> Response:
        """The table's spans, to be exported side by side: one for each range, larger ones cut."""
        at = await moment(node, as_of)
        descriptor = await find_readable(node, table, database, at, request)
        found = node.divide(descriptor.primary_span)
        if cut:
            found = await cut_table(node.store, at, borders=found)
        texts = [f"{span.start.hex()}-{span.end.hex()}" for span in found]
        body = SpansReply(**_table(node, descriptor, at), spans=texts)
        return Response(msgspec.json.encode(body), media_type=JSON)


def _add_export(router: APIRouter, node: Node) -> None:
    @router.get("/v1/tables/{table}/export", response_class=StreamingResponse)
    async def export(
        request: Request,
        table: Table,
        as_of: Stamp = None,
        after: Annotated[Stamp, Query(alias="from")] = None,
        upto: Annotated[Stamp, Query(alias="to")] = None,
        span: Annotated[str | None, Query(description="one of the spans")] = None,
        columns: Annotated[str | None, Query(description="a JSON list of names")] = None,
        where: Annotated[str | None, Query(description=_FORM)] = None,
        mark: Annotated[str | None, Query(description="of the last batch received")] = None,
        stamped: Annotated[bool, Query(description=_STAMPED)] = False,
        database: Database = DEFAULT_DATABASE,
    ) -> StreamingResponse:
        """An Arrow IPC stream: the rows as of `as_of`, or the versions in `(from, to]`.

        Each batch's metadata has its `mark`: a stream that broke is taken up behind it. A stream
        that ends without its end marker has failed, and a new request says why.
        """
        begin, end = await _interval(node, as_of, after, upto)
        # The version in force when the interval begins, which is at `from` + 1.
        seen_at = end if begin is None else Timestamp(min(begin + 1, end))
        descriptor = await find_readable(node, table, database, seen_at, request)
        names = _names(descriptor, columns)
        schema = pa.schema([codec_for(descriptor).arrow_schema.field(name) for name in names])
        row_filter = _row_filter(descriptor, where)
        part = _span(span, descriptor)
        taken_up = None if mark is None else _bytes(mark, "mark")
        if begin is None:
            batches = export_snapshot(
                node.store,
                descriptor,
                end,
                span=part,
                columns=names,
                row_filter=row_filter,
                mark=taken_up,
                stamped=stamped,
            )
            schema = stamped_schema(schema) if stamped else schema
        else:
            await _check_unaltered(node, descriptor, end)
            schema = version_schema(schema)
            batches = export_versions(
                node.store,
                descriptor,
                begin,
                end,
                span=part,
                columns=names,
                row_filter=row_filter,
                mark=taken_up,
            )
        try:
            first = await anext(batches, None)  # what is wrong from the start is an answer
        except MarkUnreadable as error:
            raise HTTPException(422, f"mark: {error}") from error
        check = partial(check_readable, node, descriptor, request)
        return StreamingResponse(_stream(schema, first, batches, check), media_type=ARROW_STREAM)


def _table(node: Node, descriptor: TableDescriptor, at: Timestamp) -> dict[str, Any]:
    """The fields of `TableReply`, which every reply about a table has."""
    schema = schema_text(codec_for(descriptor).arrow_schema)
    return {"store_id": node.store.id, "table_id": descriptor.id, "as_of": at, "schema": schema}


def schema_text(schema: pa.Schema) -> str:
    """A schema as an IPC message, in base64."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


async def _stream(
    schema: pa.Schema,
    first: ExportBatch | None,
    batches: AsyncGenerator[ExportBatch, None],
    check: Callable[[], Awaitable[None]],
) -> AsyncIterator[bytes]:
    """The stream, broken off where the right to the table ends: a client takes it up again, and is
    told why it may not."""
    writer = ArrowWriter(schema)
    async with aclosing(batches):
        if first is not None:
            yield writer.write(first.rows, first.mark)
        async for batch in batches:
            await check()
            yield writer.write(batch.rows, batch.mark)
        yield writer.end()


async def _interval(
    node: Node, as_of: int | None, after: int | None, upto: int | None
) -> tuple[Timestamp | None, Timestamp]:
    """The begin of the export (None for a snapshot) and its end. Raises HTTPException 422."""
    if (after is None) != (upto is None) or (as_of is not None and after is not None):
        raise HTTPException(422, "give as_of, for a snapshot, or both from and to, for versions")
    if upto is None or after is None:
        return None, await moment(node, as_of)
    if after > upto:
        raise HTTPException(422, f"the interval ({after}, {upto}] is inverted")
    return Timestamp(after), await moment(node, upto)


async def _check_unaltered(node: Node, descriptor: TableDescriptor, upto: Timestamp) -> None:
    try:
        await node.positions.check_interval(descriptor, upto)
    except TableAltered as error:
        raise HTTPException(
            409, f"{error}: export the part below it, and go on from there"
        ) from error


def _names(descriptor: TableDescriptor, columns: str | None) -> Sequence[str]:
    """The columns asked for. Raises SQLError 42703, HTTPException 422."""
    if columns is None:
        return [column.name for column in descriptor.visible_columns]
    try:
        names = msgspec.json.decode(columns, type=list[str])
    except msgspec.MsgspecError as error:
        raise HTTPException(422, f"columns: {error}: write a JSON list of names") from error
    if not names or len(set(names)) < len(names):
        raise HTTPException(422, "columns: name one at least, and each once")
    return [descriptor.column(name).name for name in names]


def _row_filter(descriptor: TableDescriptor, where: str | None) -> RowFilter:
    if where is None:
        return RowFilter()
    try:
        conditions = msgspec.json.decode(
            where, type=list[tuple[str, Comparison, str | int | float | bool | None]]
        )
        return RowFilter.of(descriptor, conditions)
    except msgspec.MsgspecError as error:
        raise HTTPException(422, f"where: {error}: {_FORM}") from error
    except FilterRefused as error:
        raise HTTPException(422, f"where: {error}") from error


def _span(text: str | None, descriptor: TableDescriptor) -> Span:
    """The part to export. Raises HTTPException 422 for what is not within the table."""
    whole = descriptor.primary_span
    if text is None:
        return whole
    start, _, end = text.partition("-")
    first, last = _bytes(start, "span"), _bytes(end, "span")
    if first >= last or not whole.covers(Span(first, last)):
        raise HTTPException(422, f'span: not within table "{descriptor.name}" as it lies then')
    return Span(first, last)


def _bytes(text: str, what: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise HTTPException(422, f"{what}: not hexadecimal") from None
