"""A table is altered by SQL, and its mirror follows: the whole house, on real threads and files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import tailrace
from tailrace.api.embedded import AsyncDatabase, aopen

CREATE = (
    "CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING, amount INT8 NOT NULL) "
    "WITH (changefeed_optimized = true)"
)
INTO_MIRROR = "CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///mirror.duckdb'"

CHANGES = {
    "a constant default": "ALTER TABLE orders ADD COLUMN extra INT8 DEFAULT 7",
    "no default": "ALTER TABLE orders ADD COLUMN extra DATE",
    "a volatile default": "ALTER TABLE orders ADD COLUMN extra UUID DEFAULT gen_random_uuid()",
    "a drop": "ALTER TABLE orders DROP COLUMN note",
    "a rename": "ALTER TABLE orders RENAME COLUMN note TO remark",
    "a retype": "ALTER TABLE orders ALTER COLUMN amount TYPE FLOAT8",
    "another key": "ALTER TABLE orders ALTER PRIMARY KEY USING COLUMNS (id, amount)",
    "an index": "CREATE INDEX by_amount ON orders (amount)",
    "a truncation": "TRUNCATE orders",
}


async def compare(database: AsyncDatabase, job_id: int) -> None:
    """The mirror equals SELECT *, names and types included."""
    await asyncio.wait_for(
        database.feed(job_id).wait_until(await database.node.store.now()), timeout=30
    )
    expected = (await database.sql("SELECT * FROM orders ORDER BY id")).arrow()
    found = await database.mirror("mirror.duckdb").sql("SELECT * FROM orders ORDER BY id")
    assert found.column_names == expected.column_names
    assert found.to_pylist() == expected.to_pylist()
    assert [field.type for field in found.schema] == [field.type for field in expected.schema]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_mirror_equals_the_table_behind(tmp_path: Path, change: str) -> None:
    async def scenario() -> None:
        async with await aopen(tmp_path / "data") as database:
            await database.sql(CREATE)
            job_id = (await database.sql(INTO_MIRROR)).fetchall()[0][0]
            assert isinstance(job_id, int)
            await database.sql("INSERT INTO orders VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)")
            await compare(database, job_id)
            await database.sql(change)
            await compare(database, job_id)
            await database.sql("INSERT INTO orders (id, amount) VALUES (4, 40)")
            await database.sql("DELETE FROM orders WHERE id = 2")
            await compare(database, job_id)

    asyncio.run(scenario())


def test_longer_texts_reach_the_mirror() -> None:
    """A VARCHAR that is given room keeps its rows, and its lock."""
    with tailrace.open(":memory:") as db:
        db.sql(
            "CREATE TABLE t (k VARCHAR(2) PRIMARY KEY, v VARCHAR(3)) "
            "WITH (changefeed_optimized = true)"
        )
        db.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
        db.sql("INSERT INTO t VALUES ('a', 'abc')")
        db.sql("ALTER TABLE t ALTER k TYPE VARCHAR(9), ALTER v TYPE STRING")
        db.sql("INSERT INTO t VALUES ('a longer', 'and longer still')")
        mirror = db.mirror("m.duckdb")
        mirror.wait()
        rows = mirror.sql("SELECT * FROM t ORDER BY k").to_pylist()
        assert rows == [{"k": "a", "v": "abc"}, {"k": "a longer", "v": "and longer still"}]
