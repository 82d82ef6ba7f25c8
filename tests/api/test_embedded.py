"""The API in process."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from threading import Thread

import polars
import pyarrow as pa
import pytest

import tailrace
from tailrace import LoadMode, NodeOptions, NodeRefused, SQLError

TABLE = "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)"


def decoded(datum: object) -> object:
    assert isinstance(datum, bytes), datum
    return json.loads(datum)


def test_rows_survive_reopening(tmp_path: Path) -> None:
    with tailrace.open(tmp_path / "data") as db:
        db.sql(TABLE)
        result = db.sql("INSERT INTO t VALUES ($1, $2), (2, NULL)", (1, "one"))
        assert result.row_count == 2
    with tailrace.open(tmp_path / "data") as db:
        assert db.sql("SELECT * FROM t ORDER BY k").fetchall() == [(1, "one"), (2, None)]


def test_transactions_span_calls() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(f"{TABLE}; BEGIN; INSERT INTO t VALUES (1, 'a')")
        db.sql("ROLLBACK")
        assert db.sql("SELECT * FROM t").fetchall() == []


def test_errors_have_a_sqlstate() -> None:
    with tailrace.open(":memory:") as db:
        with pytest.raises(SQLError) as caught:
            db.sql("SELECT 1; SELECT * FROM missing")
        assert caught.value.sqlstate == "42P01"
        assert caught.value.statement == 1
        assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_load_takes_arrow() -> None:
    rows = pa.table({"k": range(2500), "v": ["x"] * 2500})
    with tailrace.open(":memory:") as db:
        db.sql(TABLE)
        assert db.load("t", rows).row_count == 2500
        with pytest.raises(SQLError, match="23505"):
            db.load("t", rows.slice(10, 1))
        assert db.load("t", rows, mode=LoadMode.UPSERT).row_count == 2500
        assert db.sql("SELECT count(*) FROM t").fetchall() == [(2500,)]


def test_a_closed_database_says_that_it_is_closed() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(TABLE)
    with pytest.raises(tailrace.Error, match="the database is closed"):
        db.sql("SELECT 1")


def test_changefeed_yields_changes_until_closed() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(f"{TABLE}; INSERT INTO t VALUES (1, 'a')")
        feed = db.changefeed("t")
        table, key, value = next(feed)
        assert (table, decoded(key)) == ("t", [1])
        assert decoded(value) == {"after": {"k": 1, "v": "a"}}
        db.sql("DELETE FROM t")
        assert decoded(next(feed)[2]) == {"after": None}
        feed.close()
        db.sql("INSERT INTO t VALUES (2, 'b')")


def test_a_feed_begins_behind_a_commit() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(TABLE)
        written = db.sql("INSERT INTO t VALUES (1, 'a')").commit_timestamp
        assert written is not None
        db.sql("INSERT INTO t VALUES (2, 'b')")
        feed = db.changefeed("t", cursor=written, updated=False)
        assert decoded(next(feed)[2]) == {"after": {"k": 2, "v": "b"}}
        feed.close()
        with pytest.raises(TypeError, match=r"option resolved is a text or a bool, not 0\.2"):
            next(db.changefeed("t", resolved=0.2))  # type: ignore[arg-type]


def test_a_statement_whose_rows_have_no_end_is_refused() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(TABLE)
        with pytest.raises(SQLError, match="0A000") as caught:
            db.sql("CREATE CHANGEFEED FOR t")
        assert caught.value.hint is not None and "changefeed(…)" in caught.value.hint
        db.sql("DROP TABLE t")  # nobody holds it


def test_changefeed_may_outlive_its_database() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(f"{TABLE}; INSERT INTO t VALUES (1, 'a')")
        feed = db.changefeed("t")
        next(feed)
    feed.close()


def test_mirror_holds_what_was_waited_for() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(TABLE)
        db.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
        for key in range(20):
            db.sql("INSERT INTO t VALUES ($1, 'a')", (key,))
        db.sql("DELETE FROM t WHERE k < 15; UPDATE t SET v = 'b' WHERE k = 19")
        mirror = db.mirror("m.duckdb")
        mirror.wait()
        rows = mirror.sql("SELECT k, v FROM t ORDER BY k").to_pylist()
        assert rows == [{"k": key, "v": "b" if key == 19 else "a"} for key in range(15, 20)]
        with pytest.raises(SQLError, match="25006"):
            mirror.sql("DELETE FROM t")


def test_mirror_goes_on_after_reopening(tmp_path: Path) -> None:
    with tailrace.open(tmp_path) as db:
        db.sql(TABLE)
        db.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
        db.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        db.mirror("m.duckdb").wait()
    with tailrace.open(tmp_path) as db:
        db.sql("DELETE FROM t WHERE k = 1")
        db.mirror("m.duckdb").wait()
        assert db.mirror("m.duckdb").sql("SELECT k FROM t").to_pylist() == [{"k": 2}]


def test_async_sessions_are_apart() -> None:
    async def main() -> None:
        async with await tailrace.aopen(":memory:") as db:
            await db.sql(TABLE)
            other = db.session()
            await other.sql("BEGIN; INSERT INTO t VALUES (1, 'a')")
            await db.sql("INSERT INTO t VALUES (2, 'b')")
            await other.close()  # which rolls back
            assert (await db.sql("SELECT k FROM t")).fetchall() == [(2,)]

    asyncio.run(main())


def test_folder_opens_once_at_a_time(tmp_path: Path) -> None:
    with tailrace.open(tmp_path), pytest.raises(NodeRefused, match=str(tmp_path)):
        tailrace.open(tmp_path)
    tailrace.open(tmp_path).close()


def test_other_format_version_is_refused(tmp_path: Path) -> None:
    tailrace.open(tmp_path).close()
    (tmp_path / "FORMAT").write_text("99\n")
    with pytest.raises(NodeRefused, match="99"):
        tailrace.open(tmp_path)


def test_a_mirror_root_is_beside_the_stores_own(tmp_path: Path) -> None:
    """A relative path starts at the root that was named; the store's own folder stays one."""
    (tmp_path / "shared").mkdir()
    options = NodeOptions(mirror_roots=(tmp_path / "shared",))
    with tailrace.open(tmp_path / "data", options) as db:
        db.sql(f"{TABLE}; INSERT INTO t VALUES (1, 'a')")
        own = tmp_path / "data" / "mirrors" / "own.duckdb"
        for sink in ("duckdb:///shared.duckdb", f"duckdb:///{own}"):
            db.sql(f"CREATE CHANGEFEED FOR t INTO '{sink}'")
        for mirror in ("shared.duckdb", str(own)):
            db.mirror(mirror).wait()
            assert db.mirror(mirror).sql("SELECT k FROM t").to_pylist() == [{"k": 1}]
    assert own.exists() and (tmp_path / "shared" / "shared.duckdb").exists()


def test_mirror_root_must_be_there(tmp_path: Path) -> None:
    options = NodeOptions(mirror_roots=(tmp_path / "nowhere",))
    with pytest.raises(NodeRefused, match="nowhere"):
        tailrace.open(tmp_path / "data", options)


def test_the_package_knows_its_version() -> None:
    assert tailrace.__version__ == version("tailrace")


def test_closing_twice_is_closing_once() -> None:
    db = tailrace.open(":memory:")
    db.close()
    db.close()


def test_results_read_as_other_libraries_do() -> None:
    with tailrace.open(":memory:") as db:
        result = db.sql("SELECT k, 'r' || k AS v FROM generate_series(1, 3) AS g(k) ORDER BY k")
        assert repr(result) == "<Result SELECT 3: k, v>"
        assert len(result) == 3 and list(result) == [(1, "r1"), (2, "r2"), (3, "r3")]
        assert (result.fetchone(), result.fetchmany(1)) == ((1, "r1"), [(2, "r2")])
        assert (result.fetchall(), result.fetchone()) == ([(3, "r3")], None)
        assert result.arrow().to_pylist()[0] == {"k": 1, "v": "r1"}
        assert list(result.df()["v"]) == ["r1", "r2", "r3"]
        assert result.pl().rows() == polars.DataFrame(result).rows() == list(result)
        assert "<td>r3</td>" in result._repr_html_()


def test_a_statement_without_rows_is_an_empty_result() -> None:
    with tailrace.open(":memory:") as db:
        result = db.sql(TABLE)
        assert (repr(result), len(result), list(result)) == ("<Result CREATE TABLE>", 0, [])
        assert result._repr_html_() == "<p>CREATE TABLE</p>"


def test_notebooks_show_text_as_text() -> None:
    with tailrace.open(":memory:") as db:
        shown = db.sql("SELECT '<script>' AS \"<b>\", NULL AS n")._repr_html_()
        assert "&lt;script&gt;" in shown and "&lt;b&gt;" in shown and "<td>NULL</td>" in shown


def test_a_session_of_its_own_ends_with_its_block() -> None:
    """And rolls back what it has not committed."""
    with tailrace.open(":memory:") as db:
        db.sql(TABLE)
        before = db.sql("SELECT pid FROM pg_stat_activity").row_count
        with db.session() as other:
            other.sql("BEGIN; INSERT INTO t VALUES (1, 'a')")
            assert db.sql("SELECT k FROM t").fetchall() == []
        assert db.sql("SELECT pid FROM pg_stat_activity").row_count == before
        assert db.sql("INSERT INTO t VALUES (1, 'b')").row_count == 1


def test_each_thread_has_its_own_transaction() -> None:
    with tailrace.open(":memory:") as db, ThreadPoolExecutor(1) as other:
        db.sql(f"{TABLE}; BEGIN; INSERT INTO t VALUES (1, 'a')")
        other.submit(db.sql, "INSERT INTO t VALUES (2, 'b')").result()
        db.sql("ROLLBACK")
        assert db.sql("SELECT k FROM t").fetchall() == [(2,)]


def test_what_a_thread_left_open_goes_with_it() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(TABLE)
        thread = Thread(target=db.sql, args=("BEGIN; INSERT INTO t VALUES (1, 'a')",))
        thread.start()
        thread.join()
        assert db.sql("INSERT INTO t VALUES (1, 'b')").row_count == 1


def test_a_transaction_commits_or_leaves_nothing() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(TABLE)
        with db.transaction() as txn:
            txn.sql("INSERT INTO t VALUES (1, 'a')")
        with pytest.raises(ZeroDivisionError), db.transaction() as txn:
            txn.sql("INSERT INTO t VALUES (2, 'b')")
            raise ZeroDivisionError
        assert db.sql("SELECT k FROM t").fetchall() == [(1,)]


def test_an_asynchronous_transaction_commits_or_leaves_nothing() -> None:
    async def main() -> None:
        async with await tailrace.aopen(":memory:") as db:
            await db.sql(TABLE)
            async with db.transaction() as txn:
                await txn.sql("INSERT INTO t VALUES (1, 'a')")
            with pytest.raises(ZeroDivisionError):
                async with db.transaction() as txn:
                    await txn.sql("INSERT INTO t VALUES (2, 'b')")
                    raise ZeroDivisionError
            assert list(await db.sql("SELECT k FROM t")) == [(1,)]

    asyncio.run(main())


def test_errors_are_one_family_without_frames_of_the_loop() -> None:
    with tailrace.open(":memory:") as db:
        db.sql(TABLE)
        with pytest.raises(tailrace.Error) as caught:
            db.sql(TABLE)
        files = [Path(frame.path).name for frame in caught.traceback]
        assert set(files) == {"test_embedded.py", "embedded.py", "loop_thread.py"}
        assert caught.value.__cause__ is None and caught.value.__suppress_context__
