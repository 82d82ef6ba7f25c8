"""A log holds each change once, whatever is sent again, and each name has one owner."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.catalog.values.column_types import Datum
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.sinks.protocol import SinkRefused
from tailrace.kvlayer.history import StorePosition
from tests.harness.descriptors import table
from tests.harness.mirrors import Mirrors, begin, progress_of, rows_batch, run

ORDERS = table()
BOTH = "duckdb:///mirror.duckdb?mode=both"
LOG = "duckdb:///mirror.duckdb?mode=log"

Row = tuple[Datum, ...] | None


def batch(*changes: tuple[int, int, Row, Row], kind: ChangeKind = ChangeKind.LIVE) -> ChangeBatch:
    """Of (key, timestamp, row, the row before)."""
    made = rows_batch(ORDERS, [((key,), ts, row) for key, ts, row, _ in changes], kind=kind)
    return replace(made, previous=[before for _, _, _, before in changes])


async def logged(mirrors: Mirrors) -> list[tuple[object, ...]]:
    rows = await mirrors.read(
        "SELECT commit_timestamp, operation, key, before, after FROM orders_log ORDER BY ALL"
    )
    return [(ts, op, *map(_read, documents)) for ts, op, *documents in rows]


def _read(document: object) -> object:
    return None if document is None else json.loads(str(document))


FIRST = (1, 10, (1, "a"), None)
SECOND = (1, 12, (1, "b"), (1, "a"))
GONE = (1, 14, None, (1, "b"))
A, B = {"k": 1, "v": "a"}, {"k": 1, "v": "b"}
ALL = [
    (10, "insert", [1], None, A),
    (12, "update", [1], A, B),
    (14, "delete", [1], B, None),
]


def test_what_comes_again_is_logged_once(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS, uri=BOTH) as sink:
            sink.emit(batch(FIRST, SECOND))
            await sink.flush(progress_of(ORDERS, 9))
            sink.emit(batch(GONE))
            await sink.flush(None)  # durable, and above what is saved
        async with mirrors.open(ORDERS, uri=BOTH, epoch=2) as sink:
            for length in (1, 2, 3):
                sink.emit(batch(*[FIRST, SECOND, GONE][:length]))
                await sink.flush(None)
                assert await logged(mirrors) == ALL
            sink.emit(batch(GONE))
            sink.emit(batch((2, 16, (2, "x"), None), (2, 16, (2, "x"), None)))
            sink.emit(batch((3, 16, (3, "y"), None), kind=ChangeKind.INITIAL_SCAN))
            await sink.flush(progress_of(ORDERS, 20))
            assert await logged(mirrors) == [
                *ALL,
                (16, "insert", [2], None, {"k": 2, "v": "x"}),
                (16, "scan", [3], None, {"k": 3, "v": "y"}),
            ]
            assert await mirrors.read("FROM orders ORDER BY k") == [(2, "x"), (3, "y")]

    run(tmp_path, scenario)


def test_a_log_stands_alone_and_begins_anew_where_nothing_was_saved(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        for epoch in (1, 2):
            async with mirrors.open(ORDERS, uri=LOG, epoch=epoch) as sink:
                sink.emit(batch(FIRST, SECOND, GONE))
                await sink.flush(None)
                assert await logged(mirrors) == ALL
        names = await mirrors.read("SELECT view_name FROM duckdb_views() WHERE NOT internal")
        assert names == [("orders_log",)]

    run(tmp_path, scenario)


def test_a_log_has_one_owner(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS, uri=LOG) as sink:
            await sink.flush(progress_of(ORDERS, 9))
        for uri, name in ((LOG, "orders"), ("duckdb:///mirror.duckdb", "orders_log")):
            other = mirrors.sink(uri, job_id=8)
            with pytest.raises(SinkRefused, match="changefeed job 7"):
                await begin(other, [table(name=name)])
            await other.close()
        async with mirrors.open(ORDERS, uri="duckdb:///mirror.duckdb", job_id=8):
            assert await mirrors.read("FROM orders") == []  # the name of the mirror was free
        ours, mirrors.position = mirrors.position, StorePosition(incarnation="a copy", index=1)
        await mirrors.kind.release(LOG, mirrors.identity(7, 1), mirrors.holds)
        assert await mirrors.read("SELECT job_id FROM _tailrace.progress WHERE job_id = 7")
        mirrors.position = ours
        await mirrors.kind.release(LOG, mirrors.identity(7, 1), mirrors.holds)
        async with mirrors.open(ORDERS, uri=LOG, job_id=9):
            assert await logged(mirrors) == []

    run(tmp_path, scenario)
