"""Users and rights: who may do what, and what they are told who may not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.parse import parse
from tailrace.sql.syntax.statements import CopyFrom
from tests.harness.people import People, refused, rows, run, sql


@pytest.mark.parametrize(
    ("statement", "privilege"),
    [
        ("SELECT * FROM orders", "SELECT"),
        ("SELECT v FROM orders WHERE k = 1", "SELECT"),
        ("SELECT count(*) FROM (SELECT 1 FROM orders) AS inside", "SELECT"),
        ("EXPLAIN SELECT * FROM orders", "SELECT"),
        ("INSERT INTO orders VALUES (2, 'b')", "INSERT"),
        ("UPDATE orders SET v = 'c'", "UPDATE"),
        ("DELETE FROM orders", "DELETE"),
        ("DROP TABLE orders", "DROP"),
        ("TRUNCATE orders", "DROP"),
        ("ALTER TABLE orders ADD COLUMN w INT8", "CREATE"),
        ("ALTER TABLE orders SET (changefeed_optimized = true)", "CREATE"),
        ("CREATE INDEX ON orders (v)", "CREATE"),
        ("COMMENT ON TABLE orders IS 'mine'", "CREATE"),
        ("ALTER TABLE orders SPLIT AT VALUES (5)", "INSERT"),
        ("SHOW RANGES FROM TABLE orders", "SELECT"),
        ("CREATE CHANGEFEED FOR TABLE orders", "SELECT"),
    ],
)
def test_each_statement_needs_its_privilege(statement: str, privilege: str) -> None:
    async def scenario(people: People) -> None:
        told = await refused(people.ada, statement)
        assert told == f"user ada does not have {privilege} privilege on relation orders"
        await people.root(f"GRANT {privilege} ON orders TO ada")
        await people.ada.execute(statement)

    run(scenario)


def test_reading_what_one_writes_needs_select_too() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT INSERT, UPDATE, DELETE ON orders TO ada")
        for statement in (
            "INSERT INTO orders VALUES (2, 'b') RETURNING v",
            "UPDATE orders SET v = v || 'x'",
            "UPDATE orders SET v = 'x' WHERE k = 1",
            "DELETE FROM orders WHERE k = 1",
            "UPSERT INTO orders VALUES (2, 'b')",
            "INSERT INTO orders VALUES (1, 'b') ON CONFLICT DO NOTHING",
        ):
            told = await refused(people.ada, statement)
            assert told == "user ada does not have SELECT privilege on relation orders"

    run(scenario)


def test_columns_are_not_told_to_strangers() -> None:
    async def scenario(people: People) -> None:
        told = await refused(people.ada, "SELECT nosuch FROM orders")
        assert told == "user ada does not have SELECT privilege on relation orders"
        with pytest.raises(SQLError) as caught:
            await people.ada.prepare("SELECT k FROM orders")
        assert caught.value.sqlstate == "42501"

    run(scenario)


def test_revoke_holds_for_plans_that_are_kept() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT SELECT ON orders TO ada")
        prepared = await people.ada.prepare("SELECT v FROM orders WHERE k = $1")
        assert (await people.ada.run(prepared, [1])).fetch_rows() == [("a",)]
        await people.root("REVOKE SELECT ON orders FROM ada")
        with pytest.raises(SQLError) as caught:
            await people.ada.run(prepared, [1])
        assert caught.value.sqlstate == "42501"
        await refused(people.ada, "SELECT v FROM orders WHERE k = 1")

    run(scenario)


def test_revoke_holds_within_open_transactions() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT SELECT ON orders TO ada")
        await people.ada.execute("BEGIN")
        assert await rows(people.ada, "SELECT k FROM orders") == [(1,)]
        await people.root("REVOKE SELECT ON orders FROM ada")
        await refused(people.ada, "SELECT k FROM orders")

    run(scenario)


def test_roles_are_inherited_at_any_remove() -> None:
    async def scenario(people: People) -> None:
        await people.root("CREATE ROLE reader; CREATE ROLE clerk")
        await people.root("GRANT SELECT ON orders TO reader")
        await people.root("GRANT reader TO clerk; GRANT clerk TO ada")
        assert await rows(people.ada, "SELECT k FROM orders") == [(1,)]
        await people.root("REVOKE reader FROM clerk")
        await refused(people.ada, "SELECT k FROM orders")

    run(scenario)


def test_roles_are_no_members_of_themselves() -> None:
    async def scenario(people: People) -> None:
        await people.root("CREATE ROLE a; CREATE ROLE b; GRANT a TO b")
        assert (await people.node.error("GRANT b TO a")).sqlstate == "0LP01"

    run(scenario)


def test_makers_own_what_they_make() -> None:
    async def scenario(people: People) -> None:
        await people.ada.execute("CREATE TABLE mine (k INT8 PRIMARY KEY)")
        await people.ada.execute("INSERT INTO mine VALUES (1)")
        await refused(people.bo, "SELECT * FROM mine")
        await people.ada.execute("GRANT SELECT ON mine TO bo")
        assert await rows(people.bo, "SELECT * FROM mine") == [(1,)]
        assert (await people.node.error("DROP USER ada")).sqlstate == "2BP01"
        await people.ada.execute("DROP TABLE mine")
        await people.root("DROP USER ada")

    run(scenario)


def test_a_transaction_sees_the_rights_that_it_makes() -> None:
    async def scenario(people: People) -> None:
        text = "CREATE TABLE mine (k INT8 PRIMARY KEY); INSERT INTO mine VALUES (1)"
        await people.ada.execute(f"BEGIN; {text}; ROLLBACK")
        await people.ada.execute(f"BEGIN; {text}; COMMIT")
        assert await rows(people.ada, "SELECT k FROM mine") == [(1,)]

    run(scenario)


def test_grants_that_are_rolled_back_give_nothing() -> None:
    async def scenario(people: People) -> None:
        await people.root("BEGIN; GRANT SELECT ON orders TO ada; ROLLBACK")
        await refused(people.ada, "SELECT * FROM orders")
        await people.root("BEGIN; GRANT SELECT ON orders TO ada; COMMIT")
        await people.ada.execute("SELECT * FROM orders")

    run(scenario)


def test_owners_and_admins_pass_rights_on() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT SELECT ON orders TO ada")
        told = await refused(people.ada, "GRANT SELECT ON orders TO bo")
        assert told == "must be owner of relation orders"
        told = await refused(people.ada, "GRANT SYSTEM VIEWJOB TO bo")
        assert told == "only users with the admin role are allowed to give system privileges"
        await people.root("ALTER TABLE orders OWNER TO ada")
        await people.ada.execute("GRANT SELECT ON orders TO bo")
        assert await rows(people.bo, "SELECT k FROM orders") == [(1,)]
        await people.ada.execute("REVOKE ALL ON orders FROM bo")
        await refused(people.bo, "SELECT k FROM orders")

    run(scenario)


def test_roles_are_given_by_createrole_but_for_admins() -> None:
    async def scenario(people: People) -> None:
        await people.root("CREATE ROLE reader; CREATE ROLE chief; GRANT admin TO chief")
        told = await refused(people.ada, "GRANT reader TO bo")
        assert told == "user ada does not have CREATEROLE system privilege"
        await people.root("GRANT SYSTEM CREATEROLE TO ada")
        await people.ada.execute("GRANT reader TO bo")
        for role in ("admin", "chief"):
            told = await refused(people.ada, f"GRANT {role} TO bo")
            assert told == "only users with the admin role are allowed to change admins"
        told = await refused(people.ada, "CREATE USER eve CREATEDB")
        assert told == "only users with the admin role are allowed to give system privileges"

    run(scenario)


def test_rows_of_a_database_are_its_tables_rows() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT ALL ON DATABASE defaultdb TO ada")
        await refused(people.ada, "SELECT * FROM orders")
        await people.root("GRANT SELECT ON DATABASE defaultdb TO ada")
        await people.root("CREATE TABLE later (k INT8 PRIMARY KEY)")
        assert await rows(people.ada, "SELECT * FROM later") == []

    run(scenario)


def test_all_tables_are_those_of_today() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT SELECT ON ALL TABLES IN SCHEMA public TO ada")
        await people.root("CREATE TABLE later (k INT8 PRIMARY KEY)")
        await people.ada.execute("SELECT * FROM orders")
        await refused(people.ada, "SELECT * FROM later")

    run(scenario)


def test_schemas_without_usage_are_closed() -> None:
    async def scenario(people: People) -> None:
        await people.root("CREATE SCHEMA closed; CREATE TABLE closed.t (k INT8 PRIMARY KEY)")
        await people.root("GRANT SELECT ON closed.t TO ada")
        told = await refused(people.ada, "SELECT * FROM closed.t")
        assert told == "user ada does not have USAGE privilege on schema closed"
        await people.root("GRANT USAGE ON SCHEMA closed TO ada")
        assert await rows(people.ada, "SELECT * FROM closed.t") == []
        told = await refused(people.ada, "CREATE TABLE closed.u (k INT8 PRIMARY KEY)")
        assert told == "user ada does not have CREATE privilege on schema closed"

    run(scenario)


def test_public_is_everybody_until_it_is_not() -> None:
    async def scenario(people: People) -> None:
        await people.ada.execute("CREATE TABLE one (k INT8 PRIMARY KEY)")
        await people.root("REVOKE CREATE ON SCHEMA public FROM public")
        await refused(people.ada, "CREATE TABLE two (k INT8 PRIMARY KEY)")
        await people.root("GRANT SELECT ON orders TO public")
        assert await rows(people.bo, "SELECT k FROM orders") == [(1,)]

    run(scenario)


def test_locked_tables_take_grants() -> None:
    async def scenario(people: People) -> None:
        await people.root("ALTER TABLE orders SET (changefeed_optimized = true)")
        await people.root("GRANT SELECT ON orders TO ada")
        assert await rows(people.ada, "SELECT k FROM orders") == [(1,)]

    run(scenario)


def test_the_systems_tables_are_for_admins() -> None:
    async def scenario(people: People) -> None:
        await refused(people.ada, "SELECT * FROM system.users")
        assert (await people.node.error("GRANT SELECT ON system.users TO ada")).sqlstate == "42501"
        await people.root("GRANT admin TO ada")
        assert await rows(people.ada, "SELECT name FROM system.users ORDER BY 1") == [
            ("ada",), ("bo",),
        ]  # fmt: skip

    run(scenario)


def test_settings_and_databases_need_system_privileges() -> None:
    async def scenario(people: People) -> None:
        told = await refused(people.ada, "CREATE DATABASE shop")
        assert told == "user ada does not have CREATEDB system privilege"
        await refused(people.ada, "SHOW CLUSTER SETTINGS")
        await refused(people.ada, "SET CLUSTER SETTING kv.lock_timeout = '1s'")
        await refused(people.ada, "CREATE USER eve")
        await people.root("GRANT SYSTEM CREATEDB, MODIFYCLUSTERSETTING, CREATEROLE TO ada")
        await people.ada.execute("CREATE DATABASE shop")
        await people.ada.execute("SET CLUSTER SETTING kv.lock_timeout = '1s'")
        await people.ada.execute("CREATE USER eve")
        await refused(people.ada, "GRANT admin TO eve")
        await refused(people.ada, "ALTER USER root PASSWORD 'x'")

    run(scenario)


def test_changefeeds_into_sinks_need_changefeed() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT SELECT ON orders TO ada")
        feed = "CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///m.duckdb'"
        told = await refused(people.ada, feed)
        assert "requires the CHANGEFEED privilege on all target tables" in told
        await (await sql(people.ada, "CREATE CHANGEFEED FOR TABLE orders")).stream.aclose()  # type: ignore[union-attr]

    run(scenario)


def test_a_user_without_things_and_rights_is_dropped() -> None:
    async def scenario(people: People) -> None:
        await people.ada.execute("CREATE TABLE mine (k INT8 PRIMARY KEY)")
        await people.root("GRANT SELECT ON orders TO ada")
        assert (await people.node.error("DROP USER ada")).sqlstate == "2BP01"
        await people.root("ALTER TABLE mine OWNER TO bo")
        assert (await people.node.error("DROP USER ada")).sqlstate == "2BP01"
        await people.root("REVOKE ALL ON orders FROM ada; DROP USER ada")
        assert await rows(people.bo, "SELECT * FROM mine") == []

    run(scenario)


def test_grants_are_shown_as_given() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT SELECT, INSERT ON orders TO ada")
        await people.root("GRANT ALL ON orders TO bo; REVOKE DROP ON orders FROM bo")
        grants = "SELECT privilege, grantable FROM tailrace_internal.grants "
        grants += "WHERE full_name = 'public.orders' AND grantee = '{}' ORDER BY 1"
        shown = await people.root(grants.format("ada"))
        assert shown == [("INSERT", False), ("SELECT", False)]
        shown = await people.root(grants.format("bo"))
        assert "DROP" not in {row[0] for row in shown}
        assert len(shown) == 6
        await people.root("GRANT SYSTEM VIEWJOB TO bo")
        system = "SELECT grantee, privilege FROM tailrace_internal.grants WHERE kind = 'system'"
        assert ("bo", "VIEWJOB") in await people.root(system)

    run(scenario)


def test_unknown_roles_and_privileges_are_named() -> None:
    async def scenario(people: People) -> None:
        error = await people.node.error("GRANT SELECT ON orders TO nobody")
        assert (error.sqlstate, error.message) == ("42704", 'role "nobody" does not exist')
        error = await people.node.error("GRANT FLY ON orders TO ada")
        assert (error.sqlstate, error.position) == ("0LP01", 7)
        error = await people.node.error("GRANT SELECT ON nosuch TO ada")
        assert error.sqlstate == "42P01"

    run(scenario)


def test_copies_need_select_on_what_they_copy() -> None:
    async def scenario(people: People) -> None:
        told = await refused(people.ada, "CREATE TABLE c AS SELECT * FROM orders")
        assert told == "user ada does not have SELECT privilege on relation orders"

    run(scenario)


def test_catalogs_say_who_may_what() -> None:
    async def scenario(people: People) -> None:
        await people.root("CREATE ROLE reader; GRANT reader TO ada")
        await people.root("GRANT SELECT ON orders TO reader")
        asked = "SELECT has_table_privilege('orders', 'select'), "
        asked += "has_table_privilege('ada', 'orders', 'INSERT'), "
        asked += "has_table_privilege('root', 'public.orders', 'DROP'), "
        asked += "has_schema_privilege('public', 'CREATE')"
        assert await rows(people.ada, asked) == [(True, False, True, True)]
        acl = await people.root("SELECT relacl FROM pg_class WHERE relname = 'orders'")
        assert acl == [(["root=arwdDCF/root", "reader=r/root"],)]
        roles = await people.root("SELECT rolname, rolsuper, rolcanlogin FROM pg_roles ORDER BY 1")
        assert roles == [
            ("ada", False, True), ("admin", True, False), ("bo", False, True),
            ("reader", False, False), ("root", True, True),
        ]  # fmt: skip

    run(scenario)


def test_information_schema_shows_what_one_has_a_privilege_on() -> None:
    async def scenario(people: People) -> None:
        await people.root("CREATE TABLE lines (k INT8 PRIMARY KEY REFERENCES orders (k))")
        await people.ada.execute("CREATE TABLE mine (k INT8 PRIMARY KEY)")
        asked = {
            what: f"SELECT DISTINCT table_name FROM information_schema.{what} "
            "WHERE table_schema = 'public' ORDER BY 1"
            for what in ("tables", "columns", "table_constraints", "key_column_usage")
        }
        for text in asked.values():
            assert await rows(people.ada, text) == [("mine",)]
            assert await rows(people.bo, text) == []
            assert await people.root(text) == [("lines",), ("mine",), ("orders",)]
        await people.root("GRANT INSERT ON lines TO bo; CREATE ROLE reader; GRANT reader TO ada")
        await people.root("GRANT SELECT ON orders TO reader")
        keys = "SELECT constraint_name FROM information_schema.referential_constraints"
        for text in asked.values():
            assert await rows(people.ada, text) == [("mine",), ("orders",)]
            assert await rows(people.bo, text) == [("lines",)]
        assert await rows(people.bo, keys) == [("lines_k_fkey",)]
        assert await rows(people.ada, keys) == []
        named = "SELECT relname FROM pg_class WHERE relname IN ('lines', 'orders') ORDER BY 1"
        assert await rows(people.ada, named) == [("lines",), ("orders",)]

    run(scenario)


def test_keys_are_told_to_who_may_read_them() -> None:
    """Also those of rows that a COPY or an update meets, and of tables that refer to this one."""

    async def scenario(people: People) -> None:
        await people.root("CREATE UNIQUE INDEX ON orders (v); GRANT INSERT ON orders TO ada")
        await people.root("GRANT UPDATE ON orders TO ada; INSERT INTO orders VALUES (2, 'b')")
        for statement in ("INSERT INTO orders VALUES (1, 'c')", "UPDATE orders SET v = 'b'"):
            with pytest.raises(SQLError) as caught:
                await people.ada.execute(statement)
            assert (caught.value.sqlstate, caught.value.detail) == ("23505", None), statement
        await people.root("GRANT SELECT ON orders TO ada")
        with pytest.raises(SQLError) as caught:
            await people.ada.execute("INSERT INTO orders VALUES (1, 'c')")
        assert caught.value.detail == "Key (k)=(1) already exists."

    run(scenario)


def test_keys_of_references_are_told_to_who_may_read_both_tables() -> None:
    async def scenario(people: People) -> None:
        await people.root("CREATE TABLE lines (n INT8 PRIMARY KEY, k INT8 REFERENCES orders)")
        await people.root("INSERT INTO lines VALUES (1, 1); GRANT DELETE, SELECT ON orders TO ada")
        await people.root("GRANT INSERT, SELECT ON lines TO bo")
        for session, statement in (
            (people.ada, "DELETE FROM orders WHERE k = 1"),
            (people.bo, "INSERT INTO lines VALUES (2, 9)"),
        ):
            with pytest.raises(SQLError) as caught:
                await session.execute(statement)
            assert (caught.value.sqlstate, caught.value.detail) == ("23503", None), statement

    run(scenario)


def test_keys_are_not_told_by_copy_either() -> None:
    async def scenario(people: People) -> None:
        await people.root("GRANT INSERT ON orders TO ada")
        [statement] = parse("COPY orders FROM STDIN").statements
        assert isinstance(statement, CopyFrom)
        loading = await people.ada.copy_in(statement)
        with pytest.raises(SQLError) as caught:
            await loading.write(pa.RecordBatch.from_pydict({"k": [1], "v": ["c"]}))
        assert (caught.value.sqlstate, caught.value.detail) == ("23505", None)
        await people.ada.fail()

    run(scenario)
