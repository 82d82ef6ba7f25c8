"""What bad input gets: a clear error with its SQLSTATE, and nothing lost or half done."""

from __future__ import annotations

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

TABLE = "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING NOT NULL, d DECIMAL(4,2), at TIMESTAMPTZ)"

CASES = [
    ("SELEC 1", "42601", 1),
    ("SELECT k FROM t WHERE", "42601", 22),
    ("SELECT * FROM missing", "42P01", 15),
    ("EXPLAIN VERBOSE SELECT 1", "0A000", 9),
    ("EXPLAIN (ANALYZE, BUFFERS) SELECT 1", "0A000", 19),
    ("EXPLAIN (FORMAT JSON) SELECT 1", "0A000", 10),
    ("EXPLAIN (COSTS OFF) SELECT 1", "0A000", 10),
    ("EXPLAIN (ANALIZE) SELECT 1", "42601", 10),
    ("EXPLAIN (", "42601", 10),
    ("EXPLAIN (ANALYZE)", "42601", 18),
    ("CREATE INDEX ON t USING gin (v)", "0A000", 25),
    ("CREATE INDEX ON t (lower(v))", "0A000", 25),
    ("CREATE INDEX ON t ((k + 1))", "0A000", 20),
    ("CREATE INDEX ON t (v) WHERE k > 1", "0A000", 23),
    ("CREATE TABLE p (k INT8) PARTITION BY RANGE (k)", "0A000", 25),
    ("CREATE TYPE pair AS (a INT8, b TEXT)", "0A000", 18),
    ("CREATE DOMAIN d AS INT8", "0A000", 1),
    ("INSERT INTO missing VALUES (1)", "42P01", 13),
    ("SELECT * FROM other.t", "3D000", 15),
    ("SELECT x.k FROM t", "42P01", 8),
    ("SELECT vv FROM t", "42703", 8),
    ("SELECT v FROM t WHERE kk = 1", "42703", 23),
    ("SELECT v FROM t ORDER BY nope", "42703", 26),
    ("INSERT INTO t (k, w) VALUES (1, 'a')", "42703", 19),
    ("INSERT INTO t (k, k) VALUES (1, 2)", "42701", 19),
    ("UPDATE t SET w = 1 WHERE k = 1", "42703", 14),
    ("UPDATE t SET v = 'a', v = 'b' WHERE k = 1", "42601", 23),
    ("DELETE FROM t WHERE nope = 1", "42703", 21),
    ("DELETE FROM t RETURNING upper(w)", "42703", 31),
    ("DELETE FROM t RETURNING count(*)", "42803", 25),
    ("INSERT INTO t VALUES (1, 5.5)", "42804", 26),
    ("INSERT INTO t VALUES ('x', 'a')", "22P02", 23),
    ("INSERT INTO t VALUES (1.5, 'a')", "22P02", 23),
    ("INSERT INTO t VALUES (9223372036854775808, 'a')", "22003", 23),
    ("INSERT INTO t VALUES (1, 'a', 100)", "22003", 31),
    ("INSERT INTO t VALUES (1, 'a', 1, 'never')", "22007", 34),
    ("INSERT INTO t VALUES (1, NULL)", "23502", None),
    ("INSERT INTO t (k) VALUES (1)", "23502", None),
    ("INSERT INTO t VALUES (NULL, 'a')", "23502", None),
    ("INSERT INTO t VALUES (7, 'again')", "23505", None),
    ("INSERT INTO t VALUES (8, 'a'), (8, 'b')", "23505", None),
    ("INSERT INTO t VALUES (1, 'a', 2, '2020-01-01', 5)", "42601", 48),
    ("INSERT INTO t (k, v) VALUES (1)", "42601", 30),
    ("INSERT INTO t (k, v) VALUES (1, nofn('a'))", "42883", 33),
    ("INSERT INTO t (k, v) SELECT 1", "42601", None),
    ("INSERT INTO t (k, v) SELECT 7, 'again'", "23505", None),
    ("UPDATE t SET v = NULL WHERE k = 7", "23502", None),
    ("UPDATE t SET k = 'x' WHERE k = 7", "22P02", 18),
    ("SELECT 1 / 0", "22012", None),
    ("SELECT 'x'::int", "22P02", 8),
    ("SELECT nofunction(1)", "42883", 8),
    ("SELECT k, count(*) FROM t", "42803", 8),
    ("SELECT (SELECT k FROM generate_series(1, 2) AS s(k))", "21000", None),
    ("SELECT * FROM read_csv('/etc/passwd')", "42883", 15),
    ("SELECT * FROM '/etc/passwd'", "42P01", 15),
    ("SELECT $1", "08P01", None),
    ("SELECT k FROM t LIMIT -1", "2201W", None),
    ("SELECT * FROM t AS OF SYSTEM TIME 'soon'", "22023", 35),
    ("SELECT * FROM t AS OF SYSTEM TIME '2089-01-01'", "22023", 35),
    ("CREATE TABLE t (k INT8 PRIMARY KEY)", "42P07", 14),
    ("ALTER TABLE t ADD PRIMARY KEY (k)", "42P16", 15),
    ("CREATE TABLE u (k INT8 PRIMARY KEY, K STRING)", "42701", 14),
    ("CREATE TABLE u (k NOSUCHTYPE PRIMARY KEY)", "42704", 19),
    ("CREATE TABLE u (k INT8 PRIMARY KEY, v INT8 DEFAULT 'x')", "22P02", 52),
    ("CREATE TABLE u (k INT8 PRIMARY KEY, v INT8 DEFAULT k + 1)", "0A000", 52),
    ("CREATE TABLE u (k INT8 PRIMARY KEY, PRIMARY KEY (k))", "42P16", 17),
    ("CREATE TABLE u (k INT8 PRIMARY KEY) WITH (nonsense = 1)", "22023", 43),
    ("ALTER TABLE t SET (nonsense = 1)", "22023", 20),
    ("ALTER TABLE t SET (changefeed_optimized = 'maybe')", "22023", 20),
    ("ALTER TABLE t SET (schema_locked = true, changefeed_optimized = false)", "22023", 20),
    ("DROP TABLE u", "42P01", 12),
    ("CREATE CHANGEFEED FOR u", "42P01", 23),
    ("CREATE CHANGEFEED FOR t, t", "42712", 26),
    ("CREATE CHANGEFEED FOR t WITH updated, updated", "42601", 39),
    ("USE nowhere", "3D000", None),
    ("SHOW nonsense", "42704", 6),
    ("SET CLUSTER SETTING nonsense = 1", "42704", 21),
    ("INSERT INTO system.settings VALUES ('a', 'b')", "42501", None),
    ("DELETE FROM system.descriptor", "42501", None),
]


def test_bad_input_is_refused_and_changes_nothing() -> None:
    sim = Simulation(seed=2)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(TABLE)
            await node.sql("INSERT INTO t VALUES (7, 'seven')")
            wrong = []
            for text, sqlstate, position in CASES:
                error = await node.error(text)
                if (error.sqlstate, error.position) != (sqlstate, position):
                    wrong.append((text, error.sqlstate, error.position, str(error)))
                assert "scan_" not in str(error), error
            assert not wrong, "\n".join(map(str, wrong))
            assert await node.rows("SELECT * FROM t") == [(7, "seven", None, None)]
            assert await node.rows("SHOW TABLES") == [("public", "t", "table", False)]

    sim.run(main())


@pytest.mark.parametrize("parameter", [[object()], {1}, object()])
def test_parameters_must_be_datums(parameter: object) -> None:
    sim = Simulation(seed=3)

    async def main() -> None:
        async with sql_node(sim) as node:
            assert (await node.error("SELECT $1", parameter)).sqlstate == "42804"

    sim.run(main())


def test_error_stops_a_text_of_several_statements() -> None:
    sim = Simulation(seed=4)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(TABLE)
            text = "INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (1, 'b'); DELETE FROM t"
            assert (await node.error(text)).sqlstate == "23505"
            assert await node.rows("SELECT k, v FROM t") == [(1, "a")]
            assert (await node.error("DELETE FROM t; SELEC")).sqlstate == "42601"
            assert await node.rows("SELECT k, v FROM t") == [(1, "a")]

    sim.run(main())
