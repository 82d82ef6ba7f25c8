"""Views: a name for a query, which means the same whatever becomes of the tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import format_timestamp
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

ORDERS = "CREATE TABLE orders (id INT4 PRIMARY KEY, customer VARCHAR(9), total DECIMAL(8,2))"
LINES = "CREATE TABLE lines (id INT4, line INT4, item STRING, PRIMARY KEY (id, line))"
ROWS = "INSERT INTO orders VALUES (1, 'ada', 5), (2, 'bob', 50), (3, 'ada', 500)"
ITEMS = "INSERT INTO lines VALUES (1, 1, 'tea'), (3, 1, 'pot'), (3, 2, 'cup')"
LARGE = "CREATE VIEW large AS SELECT * FROM orders WHERE total > 9"


def run(scenario: Callable[[SqlNode], Awaitable[None]], *more: str, seed: int = 31) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in (ORDERS, LINES, ROWS, ITEMS, *more):
                await node.sql(text)
            await scenario(node)

    sim = Simulation(seed)
    sim.run(whole())


def test_view_is_read_like_a_table() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows("SELECT id FROM large ORDER BY id") == [(2,), (3,)]
        assert await node.rows("SELECT l.id FROM public.large AS l WHERE customer = 'ada'") == [
            (3,)
        ]
        assert await node.rows("SELECT id FROM large WHERE id = $1", 2) == [(2,)]
        joined = "SELECT large.id, item FROM large JOIN lines USING (id) ORDER BY line"
        assert await node.rows(joined) == [(3, "pot"), (3, "cup")]
        assert await node.rows(
            "SELECT count(*) FROM orders WHERE id IN (SELECT id FROM large)"
        ) == [(2,)]
        assert await node.rows("WITH large AS (SELECT 7 AS id) SELECT id FROM large") == [(7,)]
        within = "WITH large AS (SELECT id FROM large WHERE id = 3) SELECT id FROM large"
        assert await node.rows(within) == [(3,)]

    run(scenario, LARGE)


def test_statement_holds_a_bounded_number_of_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.sql.analyze.views.EXPANSIONS_MAX", 20)

    async def scenario(node: SqlNode) -> None:
        make = "CREATE VIEW v{} AS SELECT a.id FROM {} a JOIN {} b USING (id)"
        for number in range(4):
            below = f"v{number - 1}" if number else "orders"
            await node.sql(make.format(number, below, below))
        assert await node.rows("SELECT * FROM v3 ORDER BY id") == [(1,), (2,), (3,)]
        assert (await node.error(make.format(4, "v3", "v3"))).sqlstate == "54001"
        assert (await node.error("SELECT 1 FROM v3, v3 w")).sqlstate == "54001"

    run(scenario)


def test_columns_keep_the_types_of_the_table() -> None:
    async def scenario(node: SqlNode) -> None:
        direct = (await node.sql("SELECT * FROM orders")).columns
        assert (await node.sql("SELECT * FROM large")).columns == direct
        assert (await node.sql("SELECT id, customer, total FROM large l")).columns == direct
        named = (await node.sql("SELECT * FROM renamed")).columns
        assert [column.name for column in named] == ["number", "who", "total"]
        assert [column.type for column in named] == [column.type for column in direct]

    run(
        scenario,
        LARGE,
        "CREATE VIEW renamed AS SELECT id AS number, customer AS who, total FROM large",
    )


def test_names_of_columns_are_the_querys() -> None:
    async def scenario(node: SqlNode) -> None:
        named = await node.error("CREATE VIEW v (a) AS SELECT id FROM lines")
        assert named.sqlstate == "42601"
        wrong = await node.error("CREATE VIEW v AS SELECT 1 FROM nothing")
        assert wrong.sqlstate == "42P01" and wrong.position == 32

    run(scenario)


def test_views_over_views() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE VIEW by_customer AS SELECT customer AS name, "
                       "count(*) AS number FROM large GROUP BY customer")  # fmt: skip
        await node.sql("CREATE VIEW twice AS SELECT name, number * 2 AS number FROM by_customer")
        assert await node.rows("SELECT * FROM twice ORDER BY name") == [("ada", 2), ("bob", 2)]
        assert await node.rows("SELECT a.number FROM twice a JOIN twice b USING (name)"
                               " WHERE name = 'ada'") == [(2,)]  # fmt: skip

    run(scenario, LARGE)


def test_statements_that_write_read_views() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO lines SELECT id, 9, customer FROM large")
        assert await node.rows("SELECT id FROM lines WHERE line = 9 ORDER BY id") == [(2,), (3,)]
        await node.sql("UPDATE lines SET item = large.customer FROM large "
                       "WHERE large.id = lines.id AND line = 1")  # fmt: skip
        assert await node.rows("SELECT item FROM lines WHERE line = 1 ORDER BY id") == [
            ("tea",), ("ada",)
        ]  # fmt: skip
        await node.sql("DELETE FROM lines WHERE id IN (SELECT id FROM large)")
        assert await node.rows("SELECT id FROM lines") == [(1,)]
        await node.sql("CREATE TABLE copied AS SELECT * FROM large")
        assert await node.rows("SELECT count(*) FROM copied") == [(2,)]

    run(scenario, LARGE)


def test_star_is_settled_when_the_view_is_made() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE VIEW both_ AS SELECT * FROM orders o JOIN lines USING (id)")
        await node.sql("CREATE VIEW one AS SELECT l.*, 2 * o.id AS d FROM orders o, lines l")
        await node.sql("ALTER TABLE orders ADD COLUMN note STRING DEFAULT 'new'")
        await node.sql("ALTER TABLE lines ADD COLUMN note STRING DEFAULT 'new'")
        names = [column.name for column in (await node.sql("SELECT * FROM both_")).columns]
        assert names == ["id", "customer", "total", "line", "item"]
        names = [column.name for column in (await node.sql("SELECT * FROM one")).columns]
        assert names == ["id", "line", "item", "d"]
        assert len((await node.sql("SELECT * FROM large")).columns) == 3

    run(scenario, LARGE)


def test_names_are_settled_when_the_view_is_made() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE DATABASE other")
        session = node.session()
        await session.execute("USE other")
        await session.execute("CREATE TABLE orders (id INT4 PRIMARY KEY)")
        (result,) = await session.execute("SELECT id FROM defaultdb.public.large ORDER BY id")
        assert result.fetch_rows() == [(2,), (3,)]

    run(scenario, LARGE)


def test_transaction_reads_what_it_wrote_and_made() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        await node.sql("INSERT INTO orders VALUES (4, 'cyd', 40)")
        assert await node.rows("SELECT max(id) FROM large") == [(4,)]
        await node.sql("CREATE VIEW small AS SELECT id FROM orders WHERE total < 9")
        assert await node.rows("SELECT id FROM small") == [(1,)]
        await node.sql("ROLLBACK")
        assert await node.rows("SELECT max(id) FROM large") == [(3,)]
        assert (await node.error("SELECT id FROM small")).sqlstate == "42P01"

    run(scenario, LARGE)


def test_past_is_read_through_the_view_of_then() -> None:
    async def scenario(node: SqlNode) -> None:
        (inserted,) = await node.first.execute("INSERT INTO orders VALUES (0, 'eve', 1)")
        before = inserted.commit_timestamp
        assert before is not None
        await node.sql("INSERT INTO orders VALUES (4, 'cyd', 40)")
        await node.sql("CREATE OR REPLACE VIEW large AS SELECT * FROM orders WHERE total > 100")
        assert await node.rows("SELECT id FROM large") == [(3,)]
        past = f"SELECT id FROM large AS OF SYSTEM TIME '{format_timestamp(before)}' ORDER BY id"
        assert await node.rows(past) == [(2,), (3,)]

    run(scenario, LARGE)


def test_plan_that_is_kept_goes_with_its_view() -> None:
    async def scenario(node: SqlNode) -> None:
        text = "SELECT id FROM large ORDER BY id"
        assert await node.rows(text) == [(2,), (3,)]
        assert await node.rows(text) == [(2,), (3,)]
        await node.sql("CREATE OR REPLACE VIEW large AS SELECT * FROM orders WHERE total > 100")
        assert await node.rows(text) == [(3,)]
        await node.sql("CREATE OR REPLACE VIEW large AS SELECT *, 1 AS one FROM orders")
        assert len(await node.rows(text)) == 3
        await node.sql("CREATE VIEW over_it AS SELECT id FROM large")
        await node.sql("DROP VIEW over_it, large")
        assert (await node.error(text)).sqlstate == "42P01"

    run(scenario, LARGE)


def test_a_view_is_replaced_while_no_other_reads_it() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("GRANT SELECT ON large TO ada")
        await node.sql("CREATE OR REPLACE VIEW large AS SELECT customer AS who FROM orders")
        (result,) = await node.session("ada").execute("SELECT * FROM large WHERE who = 'bob'")
        assert result.fetch_rows() == [("bob",)]
        error = await node.error("CREATE OR REPLACE VIEW large AS SELECT * FROM large")
        assert error.sqlstate == "42P17"
        await node.sql("CREATE VIEW over_it AS SELECT * FROM large")
        error = await node.error("CREATE OR REPLACE VIEW large AS SELECT 'x' AS who")
        assert error.sqlstate == "2BP01" and '"over_it"' in error.message
        assert (await node.error("CREATE OR REPLACE VIEW orders AS SELECT 1 AS x")).sqlstate == (
            "42809"
        )

    run(scenario, LARGE, "CREATE USER ada")


def test_names_collide() -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(LARGE)).sqlstate == "42P07"
        assert (await node.error("CREATE VIEW orders AS SELECT 1 AS x")).sqlstate == "42P07"
        assert (await node.error("CREATE TABLE large (a INT8 PRIMARY KEY)")).sqlstate == "42P07"
        await node.sql("CREATE TABLE IF NOT EXISTS large (a INT8 PRIMARY KEY)")
        assert (await node.error("ALTER VIEW large RENAME TO huge")).sqlstate == "0A000"

    run(scenario, LARGE)


def test_tables_are_held_back_by_views() -> None:
    async def scenario(node: SqlNode) -> None:
        for text in (
            "DROP TABLE orders",
            "DROP VIEW large",
            "ALTER TABLE orders DROP COLUMN total",
            "ALTER TABLE orders RENAME COLUMN customer TO who",
            "ALTER TABLE orders ALTER COLUMN id TYPE INT8",
        ):
            error = await node.error(text)
            assert error.sqlstate == "2BP01", text
            assert '"large"' in error.message or '"over_it"' in error.message, text
        await node.sql("ALTER TABLE orders ADD COLUMN note STRING")
        await node.sql("ALTER TABLE orders DROP COLUMN note")
        await node.sql("DROP TABLE orders CASCADE")
        for name in ("orders", "large", "over_it"):
            assert (await node.error(f"SELECT * FROM {name}")).sqlstate == "42P01"

    run(scenario, LARGE, "CREATE VIEW over_it AS SELECT id FROM large")


def test_new_names_of_relations_go_into_views() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE orders RENAME TO invoices")
        await node.sql("ALTER TABLE large RENAME TO huge")
        assert await node.rows("SELECT * FROM over_it ORDER BY 1") == [(2, 50), (3, 500)]
        assert (await node.error("SELECT * FROM large")).sqlstate == "42P01"
        assert (await node.error("ALTER TABLE huge RENAME TO over_it")).sqlstate == "42P07"
        await node.sql("ALTER TABLE invoices SET (changefeed_optimized = true)")
        assert (await node.error("ALTER TABLE invoices RENAME TO orders")).sqlstate == "2BP01"

    run(scenario, LARGE, "CREATE VIEW over_it AS SELECT id, large.total FROM large")


@pytest.mark.parametrize("kind", ["VIEW", "TABLE"])
def test_dbt_puts_a_new_relation_in_the_place_of_another(kind: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(f"CREATE {kind} model AS SELECT id FROM orders")
        await node.sql("CREATE VIEW upon AS SELECT id FROM model")
        await node.sql(
            f"BEGIN; CREATE {kind} model__dbt_tmp AS SELECT id, total FROM orders; "
            "ALTER TABLE model RENAME TO model__dbt_backup; "
            "ALTER TABLE model__dbt_tmp RENAME TO model; COMMIT"
        )
        assert await node.rows("SELECT * FROM model WHERE id = 2") == [(2, 50)]
        assert await node.rows("SELECT count(*) FROM upon") == [(3,)]
        await node.sql(f"DROP {kind} IF EXISTS model__dbt_backup CASCADE")
        assert (await node.error("SELECT * FROM upon")).sqlstate == "42P01"

    run(scenario)


def test_unused_columns_are_not_held_back() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE lines DROP COLUMN item")
        await node.sql("ALTER TABLE orders RENAME COLUMN customer TO who")
        assert await node.rows("SELECT n FROM pairs") == [(3,)]

    run(scenario, "CREATE VIEW pairs AS SELECT count(*) AS n FROM orders o JOIN lines USING (id)")


def test_schema_goes_with_its_views() -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error("DROP SCHEMA s")).sqlstate == "2BP01"
        await node.sql("DROP SCHEMA s CASCADE")
        assert (await node.error("SELECT * FROM s.large")).sqlstate != "42601"
        await node.sql("DROP TABLE orders")

    run(scenario, "CREATE SCHEMA s", "CREATE VIEW s.large AS SELECT * FROM orders")


def test_views_are_only_read() -> None:
    async def scenario(node: SqlNode) -> None:
        for text in (
            "INSERT INTO large VALUES (9, 'x', 1)",
            "UPDATE large SET total = 1",
            "DELETE FROM large",
            "TRUNCATE large",
            "DROP TABLE large",
            "ALTER TABLE large ADD COLUMN x INT8",
            "CREATE INDEX ON large (id)",
            "CREATE CHANGEFEED FOR TABLE large INTO 'null://'",
            "SHOW RANGES FROM TABLE large",
            "DROP VIEW orders",
        ):
            error = await node.error(text)
            assert error.sqlstate == "42809", (text, error)
        assert (await node.error("SELECT * FROM large FOR UPDATE")).sqlstate == "0A000"
        assert (await node.error("DROP VIEW nothing")).sqlstate == "42P01"
        assert (await node.sql("DROP VIEW IF EXISTS nothing")).notice is not None

    run(scenario, LARGE)


def test_queries_that_are_no_views() -> None:
    async def scenario(node: SqlNode) -> None:
        for query, state in (
            ("SELECT * FROM nothing", "42P01"),
            ("SELECT nothing FROM orders", "42703"),
            ("SELECT id, id FROM orders", "42701"),
            ("SELECT id FROM orders AS OF SYSTEM TIME '-1s'", "0A000"),
            ("SELECT id FROM orders FOR UPDATE", "0A000"),
            ("SELECT id FROM orders WITH CHECK OPTION", "42601"),
            ("SELECT", "42601"),
        ):
            assert (await node.error(f"CREATE VIEW v AS {query}")).sqlstate == state, query
        parameter = "CREATE VIEW v AS SELECT id FROM orders WHERE id = $1"
        assert (await node.error(parameter, 1)).sqlstate == "42P02"

    run(scenario)


def test_view_is_read_by_the_rights_of_its_owner() -> None:
    async def scenario(node: SqlNode) -> None:
        async def error(user: str, text: str) -> SQLError:
            with pytest.raises(SQLError) as caught:
                await node.session(user).execute(text)
            return caught.value

        assert (await error("ada", "SELECT * FROM large")).sqlstate == "42501"
        await node.sql("GRANT SELECT ON large TO ada")
        (result,) = await node.session("ada").execute("SELECT id FROM large ORDER BY id")
        assert result.fetch_rows() == [(2,), (3,)]
        assert (await error("ada", "SELECT * FROM orders")).sqlstate == "42501"
        assert (await error("ada", "CREATE VIEW v AS SELECT id FROM lines")).sqlstate == "42501"
        await node.session("ada").execute("CREATE VIEW mine AS SELECT id FROM large")
        await node.sql("GRANT SELECT ON mine TO bob")
        (result,) = await node.session("bob").execute("SELECT id FROM mine ORDER BY id")
        assert result.fetch_rows() == [(2,), (3,)]
        await node.sql("REVOKE SELECT ON large FROM ada")
        refused = await error("bob", "SELECT id FROM mine ORDER BY id")
        assert refused.sqlstate == "42501" and "user ada" in refused.message
        assert (await error("bob", "DROP VIEW mine")).sqlstate == "42501"
        await node.session("ada").execute("DROP VIEW mine")

    run(scenario, LARGE, "CREATE USER ada", "CREATE USER bob",
        "GRANT CREATE ON SCHEMA public TO ada")  # fmt: skip


def test_show_create_makes_the_view_again() -> None:
    async def scenario(node: SqlNode) -> None:
        ((name, made),) = await node.rows("SHOW CREATE TABLE large")
        assert name == "large"
        assert made == (
            "CREATE VIEW large AS "
            "SELECT id, customer, total FROM defaultdb.public.orders WHERE total > 9"
        )
        await node.sql("DROP VIEW large")
        await node.sql(str(made))
        assert await node.rows("SHOW CREATE TABLE large") == [(name, made)]

    run(scenario, LARGE)
