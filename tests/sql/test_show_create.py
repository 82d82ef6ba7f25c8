"""SHOW CREATE TABLE: the statement that it prints makes the table again."""

from __future__ import annotations

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

ORDERS = """\
CREATE TABLE orders (
    id INT8 NOT NULL DEFAULT unique_rowid(),
    customer INT8 NOT NULL,
    "Code" STRING DEFAULT 'it''s',
    amount DECIMAL(10,2),
    twice DECIMAL(10,2) AS ("amount" * 2) STORED,
    CONSTRAINT orders_pkey PRIMARY KEY (id),
    INDEX by_customer (customer, amount) STORING ("Code"),
    CONSTRAINT "orders_Code_key" UNIQUE ("Code"),
    CONSTRAINT positive CHECK ("amount" > 0),
    CONSTRAINT orders_customer_fkey FOREIGN KEY (customer) REFERENCES customers(id) \
ON DELETE RESTRICT
) WITH (changefeed_optimized = true, "gc.ttlseconds" = 600)"""


async def shown(node: SqlNode, table: str) -> str:
    [(_, text)] = await node.rows(f"SHOW CREATE TABLE {table}")
    assert isinstance(text, str)
    return text


def test_the_statement_makes_the_table_again() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE customers (id INT8 PRIMARY KEY)")
            await node.sql(ORDERS)
            assert await shown(node, "orders") == ORDERS

    sim = Simulation(seed=1)
    sim.run(scenario())


def test_what_was_altered_is_shown() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
            await node.sql("ALTER TABLE t ADD COLUMN u UUID NOT NULL DEFAULT gen_random_uuid()")
            await node.sql("ALTER TABLE t ADD CONSTRAINT c CHECK (v <> 0) NOT VALID")
            await node.sql("CREATE UNIQUE INDEX by_v ON t (v)")
            text = await shown(node, "t")
            assert "u UUID NOT NULL DEFAULT gen_random_uuid()" in text
            assert "UNIQUE INDEX by_v (v)" in text
            assert 'CONSTRAINT c CHECK ("v" <> 0) NOT VALID' in text
            await node.sql("ALTER TABLE t DROP CONSTRAINT c, DROP COLUMN v CASCADE")
            assert "by_v" not in await shown(node, "t")

    sim = Simulation(seed=2)
    sim.run(scenario())


def test_new_tables_may_be_locked_by_themselves() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            session = node.session()
            await session.execute("SET create_table_with_schema_locked = on")
            await session.execute("CREATE TABLE a (k INT8 PRIMARY KEY)")
            await session.execute("CREATE TABLE b (k INT8 PRIMARY KEY) WITH (schema_locked = off)")
            await session.execute("ALTER TABLE a ADD COLUMN v INT8 DEFAULT 1")
            await session.execute("TRUNCATE a")
            await session.close()
            assert "WITH (changefeed_optimized = true)" in await shown(node, "a")
            assert "WITH" not in await shown(node, "b")

    sim = Simulation(seed=3)
    sim.run(scenario())
