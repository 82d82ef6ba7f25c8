"""Whose a file, a table and a feed's progress are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.sinks.duckdb.errors import MirrorHeld
from tailrace.changefeed.sinks.protocol import SinkRefused
from tests.harness.descriptors import table
from tests.harness.mirrors import Mirrors, begin, progress_of, rows_batch, run

ORDERS = table()
ITEMS = table(id=105, name="items")
URI = "duckdb:///mirror.duckdb"


async def refusal(mirrors: Mirrors, *tables: TableDescriptor, uri: str = URI) -> SQLError:
    with pytest.raises(SQLError) as caught:
        await mirrors.kind.validate(uri, tables, store_id=mirrors.store_id)
    return caught.value


def test_file_of_another_store_is_refused(tmp_path: Path) -> None:
    async def first(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS):
            pass

    async def second(mirrors: Mirrors) -> None:
        with pytest.raises(SinkRefused, match="store store-1, and this is store store-2"):
            await begin(mirrors.sink(job_id=9), [ITEMS])
        error = await refusal(mirrors, ITEMS)
        assert error.sqlstate == "55000"
        assert "store-1" in error.message
        assert mirrors.files.open_files == []

    run(tmp_path, first)
    run(tmp_path, second, store_id="store-2")


def test_second_feed_into_a_table_is_refused(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS):
            for taken in (table(), table(id=200, name="ORDERS")):
                with pytest.raises(SinkRefused, match=r"changefeed job 7: .*CANCEL JOB 7"):
                    await begin(mirrors.sink(job_id=8), [taken])
                assert "job 7" in (await refusal(mirrors, taken)).message
            other = f"{URI}?table=orders2"
            await mirrors.kind.validate(other, [ORDERS], store_id="store-1")
            async with mirrors.open(ORDERS, job_id=8, uri=other):
                assert await mirrors.reader.tables("mirror.duckdb") == ["orders", "orders2"]

    run(tmp_path, scenario)


def test_refused_open_leaves_nothing(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS):
            with pytest.raises(SinkRefused):
                await begin(mirrors.sink(job_id=8), [ITEMS, ORDERS])
            assert await mirrors.reader.tables("mirror.duckdb") == ["orders"]
            assert await mirrors.read("SELECT job_id FROM _tailrace.progress") == [(7,)]

    run(tmp_path, scenario)


@pytest.mark.parametrize("uri", [URI, "duckdb:///mirror.duckdb?table=Items"])
def test_table_of_a_job_that_is_over_is_free(tmp_path: Path, uri: str) -> None:
    """Nobody released it: the job ended where the file could not be reached."""

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ITEMS, uri=uri) as sink:
            sink.emit(rows_batch(ITEMS, [((1,), 10, (1, "old"))]))
            await sink.flush(progress_of(ITEMS, 10))
        async with mirrors.open(ORDERS, job_id=6):
            pass
        mirrors.ended = {7}
        await mirrors.kind.validate(URI, [ITEMS], store_id="store-1")
        async with mirrors.open(ITEMS, job_id=8):
            assert await mirrors.read("FROM items") == []
        with pytest.raises(SinkRefused, match="belongs to changefeed job 6"):
            await begin(mirrors.sink(job_id=8), [ORDERS])

    run(tmp_path, scenario)


def test_sink_of_an_orphaned_table_takes_it_over(tmp_path: Path) -> None:
    """The job that owns it ended after the new feed had been created."""

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS):
            pass
        mirrors.ended = {7}
        async with mirrors.open(ORDERS, job_id=8):
            owners = "SELECT job_id FROM _tailrace.mirrors"
            assert await mirrors.read(owners) == [(8,)]

    run(tmp_path, scenario)


def test_own_progress_is_no_orphan(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        mirrors.ended = {7}
        async with mirrors.open(ORDERS) as sink:
            await sink.flush(progress_of(ORDERS, 10))
        again = mirrors.sink(epoch=2)
        assert await begin(again, [ORDERS]) == progress_of(ORDERS, 10)
        await again.close()

    run(tmp_path, scenario)


def test_release_waits_for_who_holds_the_file(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS):
            pass
        held = held_elsewhere(tmp_path / "mirror.duckdb")
        with held, pytest.raises(MirrorHeld, match="is held by another process"):
            await mirrors.kind.release(URI, mirrors.identity(), mirrors.holds)
        await mirrors.kind.release(URI, mirrors.identity(), mirrors.holds)
        assert await mirrors.read("SELECT job_id FROM _tailrace.mirrors") == [(None,)]

    run(tmp_path, scenario)


def test_released_table_starts_anew(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "old"))]))
            await sink.flush(progress_of(ORDERS, 10))
        await mirrors.kind.release(URI, mirrors.identity(), mirrors.holds)
        assert await mirrors.read("FROM orders") == [(1, "old")]
        await mirrors.kind.validate(URI, [ORDERS], store_id="store-1")
        async with mirrors.open(ORDERS, job_id=8):
            assert await mirrors.read("FROM orders") == []

    run(tmp_path, scenario)


def test_release_of_no_file_makes_none(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        await mirrors.kind.release(URI, mirrors.identity(), mirrors.holds)
        await mirrors.kind.validate(URI, [ORDERS], store_id="store-1")
        assert list(tmp_path.iterdir()) == []

    run(tmp_path, scenario)


def test_somebodys_own_table_is_refused(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "mirror.duckdb")) as own:
        own.execute("CREATE TABLE Orders (a INT)")

    async def scenario(mirrors: Mirrors) -> None:
        assert "no changefeed made it" in (await refusal(mirrors, ORDERS)).message
        with pytest.raises(SinkRefused, match='"Orders" is already a table'):
            await begin(mirrors.sink(), [ORDERS])
        async with mirrors.open(ITEMS):
            assert await mirrors.read("FROM Orders") == []

    run(tmp_path, scenario)


@contextmanager
def held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process has the file open, until the end of the block or of its standard input."""
    program = (
        "import duckdb, sys\n"
        f"connection = duckdb.connect({str(path)!r})\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
        "connection.close()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder


def test_file_that_another_process_holds(tmp_path: Path) -> None:
    path = tmp_path / "mirror.duckdb"

    async def scenario(mirrors: Mirrors) -> None:
        with pytest.raises(MirrorHeld, match=rf"{path} is held by another process.*{holder.pid}"):
            await begin(mirrors.sink(), [ORDERS])
        error = await refusal(mirrors, ORDERS)
        assert error.sqlstate == "55006"
        assert str(path) in error.message
        with pytest.raises(SQLError) as caught:
            await mirrors.read("SELECT 1")
        assert caught.value.sqlstate == "55006"
        holder.communicate("")
        async with mirrors.open(ORDERS):
            assert await mirrors.read("FROM orders") == []

    with held_elsewhere(path) as holder:
        run(tmp_path, scenario)


def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mirror.duckdb").write_bytes(b"not a database" * 1000)

    async def scenario(mirrors: Mirrors) -> None:
        assert "not a DuckDB database" in (await refusal(mirrors, ORDERS)).message
        with pytest.raises(SinkRefused, match="not a DuckDB database"):
            await begin(mirrors.sink(), [ORDERS])

    run(tmp_path, scenario)


def test_greater_epoch_fences_a_smaller_one(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as old, mirrors.open(ORDERS, epoch=2) as new:
            old.emit(rows_batch(ORDERS, [((1,), 10, (1, "old"))]))
            with pytest.raises(SinkRefused, match="fenced"):
                await old.flush(progress_of(ORDERS, 10))
            new.emit(rows_batch(ORDERS, [((1,), 10, (1, "new"))]))
            await new.flush(progress_of(ORDERS, 10))
            assert await mirrors.read("FROM orders") == [(1, "new")]
        with pytest.raises(SinkRefused, match="fenced"):
            await begin(mirrors.sink(epoch=1), [ORDERS])

    run(tmp_path, scenario)


def test_released_job_is_fenced(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            await mirrors.kind.release(URI, mirrors.identity(), mirrors.holds)
            with pytest.raises(SinkRefused, match="fenced"):
                await sink.flush(progress_of(ORDERS, 10))

    run(tmp_path, scenario)
