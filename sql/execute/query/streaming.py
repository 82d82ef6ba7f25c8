"""Queries whose result may be longer than fits in memory: it comes in batches, as it is read.

DuckDB computes a batch when it is asked for. A query that answers each row of a table by itself is
given the table a part at a time besides, so that of neither more than a part is held:

    table     [1 … 9,000]  [9,001 … 18,000]  …      read when the batches before it are gone
    result    [2, 4, …]    [9,002, …]        …

What is read is what the statement saw: the view of the store that the first part was read from is
kept to the end, whatever the transaction does meanwhile, and after it has ended.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

import pyarrow as pa

from ....catalog.rows.row_codec import codec_for
from ....catalog.values.errors import SQLError
from ....kvlayer.errors import BatchTimestampBeforeGC
from ....kvlayer.span import Span
from ....kvlayer.txn import Transaction
from ...access.key_access import TooManyRows
from ...analyze.columns.output_columns import with_origins
from ...analyze.scalars import Bindings
from ...lower.transpile import AnalyticSelect, TableScan
from ...plan.plans import SelectPlan
from ...results.result_batches import ResultBatches, ResultsOfUser
from ...results.results import Answer, Result, selected
from .duckdb import BATCH_BYTES, BATCH_ROWS
from .evaluator_errors import asked_of_duckdb
from .reading import arrow_of, cut, read_arrow, read_image, run_native, spans_of

PART_ROWS = 16 * 1024
"""Rows of a part of a table: decoding them takes some ten milliseconds, DuckDB's start one."""

PART_BYTES = 2 * 1024 * 1024
"""Bytes of row bodies from which on a part is given no more rows: very wide ones are bounded."""

Answers = AsyncGenerator[Answer, None]
_Rows = list[tuple[bytes, bytes]]


async def stream_select(
    plan: SelectPlan, transaction: Transaction, bindings: Bindings, waiting: ResultsOfUser
) -> Result:
    """The rows of a query: a result that is whole where it is short, and else has `batches`."""
    if plan.native is not None:
        try:
            return await run_native(plan.native, transaction, bindings)
        except TooManyRows:
            pass
    analytic = await plan.analysed()
    answers = await _answers(analytic, transaction, bindings)
    result = await result_of(answers, waiting)
    return replace(result, columns=with_origins(result.columns, analytic.origins))


async def result_of(answers: Answers, waiting: ResultsOfUser) -> Result:
    """The result that answers make: whole if there is but one."""
    try:
        first = await anext(answers)
        second = await anext(answers, None)
        if second is not None:
            waiting.refuse_more()
    except BaseException:
        await answers.aclose()
        raise
    if second is None:
        return selected(first.columns, first.table)
    batches = ResultBatches((first.table, second.table), _tables(answers), waiting)
    return Result(tag="SELECT", columns=first.columns, batches=batches)


async def _tables(answers: Answers) -> AsyncGenerator[pa.Table, None]:
    async with aclosing(answers):
        async for answer in answers:
            yield answer.table


async def _answers(select: AnalyticSelect, transaction: Transaction, bindings: Bindings) -> Answers:
    """One answer at least, and others as they are asked for."""
    if select.piecewise is not None:
        (scan,) = select.scans
        spans = _spans(scan, bindings)
        if len(spans) == 1 and not (bindings.images and bindings.images.holds(scan.descriptor)):
            found = await read_image(
                scan, transaction, None if scan.access is None else spans, bindings.images
            )
            if found is not None:
                return _whole(select, {scan.registered: found[0]}, bindings)
            limit = cut(select.piecewise.limit, None, bindings).stop
            parts = _parts(scan, spans[0], transaction, bindings)
            return _piecewise(select, parts, limit, bindings)
    tables = {
        scan.registered: await read_arrow(scan, transaction, bindings) for scan in select.scans
    }
    return _whole(select, tables, bindings)


def _spans(scan: TableScan, bindings: Bindings) -> Sequence[Span]:
    """The spans of the rows of a scan, in the order of their keys; none for an index's order.

    Of several spans only the first would be seen as the statement saw it: a view is opened when the
    reading of a span begins.
    """
    access = scan.access
    if access is None:
        return [scan.descriptor.primary_span]
    spans = [] if access.secondary else spans_of(access, bindings)
    return [scan.descriptor.primary_span] if spans is None else spans


async def _whole(
    select: AnalyticSelect, tables: Mapping[str, pa.Table], bindings: Bindings
) -> Answers:
    """The query's answers over whole tables."""
    with asked_of_duckdb(select):
        answers = bindings.evaluator.answers(select.over(tables, bindings))
        async with aclosing(answers):
            async for answer in answers:
                yield answer


async def _piecewise(
    select: AnalyticSelect,
    parts: AsyncGenerator[pa.Table, None],
    limit: int | None,
    bindings: Bindings,
) -> Answers:
    """The query's answers over the parts of its table, those of few rows put together."""
    (scan,) = select.scans
    gathered: list[Answer] = []
    row_count = byte_count = 0
    left = limit
    async with aclosing(parts):
        async for part in parts:
            tables = {scan.registered: part}
            with asked_of_duckdb(select):
                answer = await bindings.evaluator.run(select.over(tables, bindings))
            if left is not None:
                answer = Answer(answer.columns, answer.table.slice(0, left))
                left -= answer.table.num_rows
            gathered.append(answer)
            row_count += answer.table.num_rows
            byte_count += answer.table.nbytes
            if row_count >= BATCH_ROWS or byte_count >= BATCH_BYTES:
                yield _together(gathered)
                gathered, row_count, byte_count = [], 0, 0
            if left == 0:
                break
    if gathered:
        yield _together(gathered)


def _together(answers: Sequence[Answer]) -> Answer:
    return Answer(answers[0].columns, pa.concat_tables([answer.table for answer in answers]))


async def _parts(
    scan: TableScan, span: Span, transaction: Transaction, bindings: Bindings
) -> AsyncGenerator[pa.Table, None]:
    """The rows of a span of a table in key order: one part at least, perhaps empty."""
    codec, places = codec_for(scan.descriptor), list(scan.places)
    batches: list[pa.RecordBatch] = []
    row_count = part_rows = part_bytes = 0
    slices = transaction.scan_slices(span)
    async with aclosing(slices):
        async for rows in _kept(slices):
            bodies = [body for _, body in rows]
            batches.append(codec.decode_columns(bodies, places=places))
            row_count += len(bodies)
            part_rows += len(bodies)
            part_bytes += sum(map(len, bodies))
            if part_rows >= PART_ROWS or part_bytes >= PART_BYTES:
                yield arrow_of(scan, batches)
                batches, part_rows, part_bytes = [], 0, 0
    if batches or not row_count:
        yield arrow_of(scan, batches)
    if scan.access is None and bindings.images is not None:
        bindings.images.note_scan(scan.descriptor, row_count)


async def _kept(slices: AsyncIterator[_Rows]) -> AsyncIterator[_Rows]:
    """The slices, whose versions may be collected between two of them if that takes long."""
    begun = False
    try:
        async for rows in slices:
            begun = True
            yield rows
    except BatchTimestampBeforeGC as error:
        if not begun:
            raise
        raise SQLError(
            "72000",
            "snapshot too old: rows that are still to come may have been removed meanwhile",
            detail=f"{error}",
            hint="Read the result faster, or keep old versions for longer: gc.ttlseconds.",
        ) from error
