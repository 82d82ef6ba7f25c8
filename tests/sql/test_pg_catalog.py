"""pg_catalog and information_schema: what clients ask, and the functions that go with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.sql.introspection.virtual_table import virtual_tables
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE p (id INT8 PRIMARY KEY)")
            await node.sql(
                "CREATE TABLE t (id INT4 PRIMARY KEY, v VARCHAR(7) DEFAULT 'x', "
                "p INT8 REFERENCES p, d DECIMAL(5,2), CHECK (id > 0), UNIQUE (v))"
            )
            await scenario(node)

    sim = Simulation(11)
    sim.run(whole())


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT oid, typtype FROM pg_type", ["oid", '"char"']),
        ("SELECT attname, array_agg(attname), attname || 'x' FROM pg_attribute GROUP BY attname",
         ["name", "name[]", "STRING"]),  # Sequelize's showIndex()
        ("SELECT array_agg(oid), (SELECT min(oid) FROM pg_type) FROM pg_class", ["oid[]", "INT8"]),
        ("SELECT CASE WHEN relhasindex THEN reltype ELSE NULL END FROM pg_class", ["oid"]),
        ("WITH c(a, b) AS (SELECT oid, relkind FROM pg_class) SELECT DISTINCT *, b FROM c",
         ["oid", '"char"', '"char"']),
        ("SELECT x.k FROM (SELECT relkind AS k FROM pg_class UNION SELECT 'long') x", ["STRING"]),
        ("SELECT $1::oid[], id + 1 FROM t", ["oid[]", "INT8"]),
    ],
)  # fmt: skip
def test_columns_of_the_catalog_keep_its_types(query: str, names: list[str]) -> None:
    async def scenario(node: SqlNode) -> None:
        result = await node.sql(query, *([[1]] if "$1" in query else []))
        assert [column.type.sql_name for column in result.columns] == names

    run(scenario)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT relname FROM pg_class WHERE relkind = 'r' ORDER BY 1", [("p",), ("t",)]),
        (
            "SELECT attname, pg_catalog.format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = 't'::regclass ORDER BY attnum",
            [
                ("id", "integer"),
                ("v", "character varying(7)"),
                ("p", "bigint"),
                ("d", "numeric(5,2)"),
            ],
        ),
        (
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint ORDER BY conname DESC",
            [
                ("t_v_key", "UNIQUE (v)"),
                ("t_pkey", "PRIMARY KEY (id)"),
                ("t_p_fkey", "FOREIGN KEY (p) REFERENCES p(id)"),
                ("t_id_check", 'CHECK ("id" > 0)'),
                ("p_pkey", "PRIMARY KEY (id)"),
            ],
        ),
        (
            "SELECT indexrelid::regclass, indkey FROM pg_index i ORDER BY 1",
            [("p_pkey", [1]), ("t_pkey", [1]), ("t_v_key", [2])],
        ),
        ("SELECT relname FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(t)$' "
         "COLLATE pg_catalog.default AND pg_table_is_visible(oid)", [("t",)]),
        ("SELECT 'pg_class'::regclass::oid, to_regclass('nowhere')", [(1259, None)]),
        ("SELECT current_setting('default_table_access_method')", [("heap",)]),
        ("SELECT array_agg(typname ORDER BY oid) FROM pg_type WHERE typname LIKE 'int_'",
         [(["int8", "int2", "int4"],)]),
        ("SELECT column_name, data_type, is_nullable FROM information_schema.columns "
         "WHERE table_name = 't' AND ordinal_position < 3",
         [("id", "integer", "NO"), ("v", "character varying", "YES")]),
        ("SELECT constraint_name, unique_constraint_name "
         "FROM information_schema.referential_constraints", [("t_p_fkey", "p_pkey")]),
        # TypeORM, when it connects and when it compares a schema
        ("SELECT * FROM current_schema()", [("public",)]),
        ("SELECT * FROM current_database()", [("defaultdb",)]),
        ("SELECT obj_description((quote_ident(table_schema) || '.' || quote_ident(table_name))"
         "::regclass, 'pg_class') FROM information_schema.tables WHERE table_name = 't'",
         [(None,)]),
        # ADBC, when it connects
        ("SELECT count(*) > 0 FROM pg_catalog.pg_type WHERE (typreceive != 0 OR typsend != 0) AND "
         "typtype != 'r' AND typreceive::TEXT != 'array_recv'", [(True,)]),
        # Peewee's get_indexes(): subscripts of a vector begin with 0
        ("SELECT array_to_string(ARRAY(SELECT pg_get_indexdef(i.indexrelid, k + 1, TRUE) "
         "FROM generate_subscripts(i.indkey, 1) AS k ORDER BY k), ',') FROM pg_index i "
         "WHERE i.indrelid = 'p'::regclass", [("id",)]),
        # SQLAlchemy's reflection, by asyncpg
        ("SELECT relname FROM pg_class WHERE oid = CAST('p'::REGCLASS AS REGCLASS)", [("p",)]),
        # Rails' primary_keys()
        ("SELECT a.attname FROM (SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx "
         "FROM pg_index WHERE indrelid = '\"p\"'::regclass AND indisprimary) i "
         "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx] "
         "ORDER BY i.idx", [("id",)]),
        ("SELECT indkey[0], indkey[1] FROM pg_index WHERE indrelid = 'p'::regclass",
         [(1, None)]),
        # Flyway's clean(): functions by their arguments
        ("SELECT oidvectortypes(proargtypes) FROM pg_proc p JOIN pg_namespace n "
         "ON n.oid = p.pronamespace WHERE n.nspname = 'public'", []),
        # drizzle-kit
        ("SELECT s.nspname FROM pg_namespace s JOIN pg_catalog.pg_user u "
         "ON u.usesysid = s.nspowner WHERE nspname = 'public'", [("public",)]),
        ("SELECT * FROM pg_policies", []),
        # Prisma, for PostgreSQL and for CockroachDB
        ("SELECT info.column_name FROM information_schema.columns info JOIN pg_attribute att ON "
         "att.attname = info.column_name JOIN pg_class ON pg_class.oid = att.attrelid "
         "AND relname = info.table_name WHERE reltype > 0 AND info.is_hidden = 'NO' "
         "AND table_schema = ANY (ARRAY['public']) ORDER BY 1", [("d",), ("id",), ("id",), ("p",),
                                                                 ("v",)]),
        # Sequelize's describeTable()
        ("SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN "
         "pg_catalog.pg_description pgd ON (pgd.objoid = st.relid) WHERE st.relname = 't'", []),
    ],
)  # fmt: skip
def test_the_catalog_answers(query: str, rows: list[tuple[object, ...]]) -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(query) == rows

    run(scenario)


def test_every_table_can_be_read() -> None:
    """Each row has a value per column, of the column's type."""

    async def scenario(node: SqlNode) -> None:
        for table in virtual_tables():
            await node.rows(f"SELECT * FROM {table.schema}.{table.name}")

    run(scenario)


def test_ids_are_unique_and_stay() -> None:
    async def scenario(node: SqlNode) -> None:
        query = "SELECT oid, relname FROM pg_class ORDER BY oid"
        before = await node.rows(query)
        assert len({oid for oid, _ in before}) == len(before)
        await node.sql("ALTER TABLE t ADD COLUMN w INT8")
        assert await node.rows(query) == before

    run(scenario)


def test_the_catalog_is_as_of_the_transaction() -> None:
    async def scenario(node: SqlNode) -> None:
        other = node.session()
        await other.execute("BEGIN")
        await other.execute("SELECT count(*) FROM pg_class")
        await node.sql("CREATE TABLE later (id INT8 PRIMARY KEY)")
        query = "SELECT count(*) FROM pg_class WHERE relname = 'later'"
        (seen,) = await other.execute(query)
        assert seen.fetch_rows() == [(0,)]
        await other.execute("COMMIT")
        assert await node.rows(query) == [(1,)]

    run(scenario)


def test_what_the_catalogs_told_need_not_hold_at_the_commit() -> None:
    """Flyway keeps a transaction open that has looked for tables, while another makes some."""

    async def scenario(node: SqlNode) -> None:
        tables = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        other = node.session()
        await other.execute(f"BEGIN ISOLATION LEVEL SERIALIZABLE; {tables}")
        await node.sql("CREATE TABLE made (id INT8 PRIMARY KEY)")
        await other.execute("INSERT INTO p VALUES (1); COMMIT")
        assert await node.rows("SELECT count(*) FROM p") == [(1,)]

    run(scenario)
