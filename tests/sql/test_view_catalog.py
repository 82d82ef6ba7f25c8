"""What the catalogs say of views: their columns, their queries, what they read, who may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

ORDERS = (
    "CREATE TABLE orders (id INT4 PRIMARY KEY, customer VARCHAR(9), total DECIMAL(8,2), note TEXT)"
)
LARGE = "CREATE VIEW large AS SELECT id, customer, total FROM orders WHERE total > 9"
FULL = "SELECT id, customer, total FROM defaultdb.public.orders WHERE total > 9"
"""What is kept; within its own database a view is printed without that."""

QUERY = "SELECT id, customer, total FROM public.orders WHERE total > 9"


def run(scenario: Callable[[SqlNode], Awaitable[None]], *more: str) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in (ORDERS, LARGE, *more):
                await node.sql(text)
            await scenario(node)

    sim = Simulation(41)
    sim.run(whole())


def test_columns_of_a_view_have_their_types() -> None:
    async def scenario(node: SqlNode) -> None:
        kinds = (
            "SELECT relname, relkind, relhasrules FROM pg_class "
            "WHERE relname IN ('large', 'orders') ORDER BY 1"
        )
        assert await node.rows(kinds) == [
            ("large", "v", True), ("orders", "r", False),
        ]  # fmt: skip
        types = (
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = 'large'::regclass ORDER BY attnum"
        )
        assert await node.rows(types) == [
            ("id", "integer"), ("customer", "character varying(9)"), ("total", "numeric(8,2)"),
        ]  # fmt: skip
        standard = (
            "SELECT column_name, is_updatable FROM information_schema.columns "
            "WHERE table_name = 'large' ORDER BY ordinal_position"
        )
        assert await node.rows(standard) == [("id", "NO"), ("customer", "NO"), ("total", "NO")]
        listed = "SELECT table_name, table_type FROM information_schema.tables "
        assert await node.rows(f"{listed} WHERE table_schema = 'public' ORDER BY 1") == [
            ("large", "VIEW"), ("orders", "BASE TABLE"),
        ]  # fmt: skip
        assert await node.rows("SHOW TABLES") == [
            ("public", "large", "view", False), ("public", "orders", "table", False),
        ]  # fmt: skip
        assert await node.rows("SELECT * FROM pg_indexes WHERE tablename = 'large'") == []

    run(scenario)


def test_query_of_a_view_makes_it_again() -> None:
    async def scenario(node: SqlNode) -> None:
        for text in (
            "SELECT pg_get_viewdef('large'::regclass)",
            "SELECT pg_get_viewdef('large', true)",
            "SELECT pg_catalog.pg_get_viewdef(oid) FROM pg_class WHERE relname = 'large'",
            "SELECT definition FROM pg_views",
            "SELECT view_definition FROM information_schema.views",
        ):
            assert await node.rows(text) == [(f" {QUERY};",)], text
        assert (await node.sql("SELECT pg_get_viewdef('large')")).columns[
            0
        ].name == "pg_get_viewdef"
        assert await node.rows("SELECT pg_get_viewdef('orders'::regclass)") == [(None,)]
        await node.sql("CREATE VIEW named AS SELECT id AS number FROM orders")
        ((query,),) = await node.rows("SELECT pg_get_viewdef('named'::regclass)")
        await node.sql(f"CREATE OR REPLACE VIEW named AS {query!s}")
        await node.sql("INSERT INTO orders VALUES (7)")
        assert await node.rows("SELECT number FROM named") == [(7,)]

    run(scenario)


def test_dependencies_name_the_columns_that_a_view_reads() -> None:
    async def scenario(node: SqlNode) -> None:
        read = (
            "SELECT a.attname FROM pg_depend AS d JOIN pg_rewrite AS r ON r.oid = d.objid "
            "JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid "
            "WHERE r.ev_class = 'large'::regclass AND d.deptype = 'n' ORDER BY a.attnum"
        )
        assert await node.rows(read) == [("id",), ("customer",), ("total",)]

    run(scenario)


def test_comment_on_a_view_is_a_comment() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("COMMENT ON VIEW large IS 'more than nine'")
        await node.sql("COMMENT ON COLUMN large.total IS 'in euros'")
        comments = (
            "SELECT obj_description('large'::regclass), col_description('large'::regclass, 3)"
        )
        assert await node.rows(comments) == [("more than nine", "in euros")]
        assert (await node.error("COMMENT ON COLUMN large.nothing IS 'no'")).sqlstate == "42703"
        assert (await node.error("COMMENT ON VIEW nowhere IS 'no'")).sqlstate == "42P01"

    run(scenario)


def test_dropped_column_takes_its_views_with_it() -> None:
    async def scenario(node: SqlNode) -> None:
        refused = await node.error("ALTER TABLE orders DROP COLUMN total")
        assert refused.sqlstate == "2BP01" and '"large"' in refused.message
        await node.sql("ALTER TABLE orders DROP COLUMN note CASCADE")
        names = "SELECT table_name FROM information_schema.views ORDER BY 1"
        assert await node.rows(names) == [("large",), ("other",), ("upon",)]
        await node.sql("ALTER TABLE orders DROP COLUMN total CASCADE")
        assert await node.rows(names) == [("other",)]

    run(scenario, "CREATE VIEW upon AS SELECT id FROM large",
        "CREATE VIEW other AS SELECT customer FROM orders")  # fmt: skip


def test_show_create_view_is_of_views() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows("SHOW CREATE VIEW large") == [
            ("large", f"CREATE VIEW large AS {FULL}")
        ]

    run(scenario)


def test_granted_view_is_shown_without_its_query() -> None:
    async def scenario(node: SqlNode) -> None:
        ada = node.session("ada")
        views = "SELECT table_name, view_definition FROM information_schema.views"
        assert (await ada.execute(views))[0].fetch_rows() == []
        await node.sql("GRANT SELECT ON large TO ada")
        assert (await ada.execute(views))[0].fetch_rows() == [("large", None)]
        held = "SELECT has_table_privilege('ada', 'large', 'SELECT')"
        assert await node.rows(held) == [(True,)]

    run(scenario, "CREATE USER ada")
