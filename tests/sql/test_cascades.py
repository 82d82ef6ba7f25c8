"""What foreign keys do to the rows that refer to what is gone."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

ACTIONS = ("NO ACTION", "RESTRICT", "CASCADE", "SET NULL")


@pytest.fixture
def sim() -> Simulation:
    return Simulation(seed=5)


async def outcome(node: SqlNode, statement: str) -> str | None:
    """The SQLSTATE of its error; None where it did what it said."""
    try:
        await node.sql(statement)
    except SQLError as error:
        return error.sqlstate
    return None


def run(sim: Simulation, schema: str, *steps: tuple[str, object]) -> None:
    """Each step is a statement and its SQLSTATE or None, or a query and its rows."""

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(schema)
            for statement, wanted in steps:
                if isinstance(wanted, list):
                    assert await node.rows(statement) == wanted, statement
                else:
                    assert await outcome(node, statement) == wanted, statement

    sim.run(main())


def test_a_tree_in_one_table_is_deleted_with_its_root(sim: Simulation) -> None:
    run(
        sim,
        "CREATE TABLE t (k INT8 PRIMARY KEY, p INT8 REFERENCES t ON DELETE CASCADE);"
        "INSERT INTO t VALUES (1, NULL), (2, 1), (3, 1), (4, 2), (5, 4), (9, NULL)",
        ("DELETE FROM t WHERE k = 1", None),
        ("SELECT k FROM t", [(9,)]),
    )


def test_a_ring_is_deleted_whole(sim: Simulation) -> None:
    run(
        sim,
        "CREATE TABLE t (k INT8 PRIMARY KEY, p INT8);"
        "INSERT INTO t VALUES (1, 3), (2, 1), (3, 2), (4, 4)",
        ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES t ON DELETE CASCADE", None),
        ("DELETE FROM t WHERE k = 2", None),
        ("SELECT k, p FROM t", [(4, 4)]),
        ("DELETE FROM t WHERE k = 4", None),
        ("SELECT k FROM t", []),
    )


def test_keys_that_shift_take_their_references_along_all_at_once(sim: Simulation) -> None:
    run(
        sim,
        "CREATE TABLE t (k INT8 PRIMARY KEY);"
        "CREATE TABLE c (k INT8 PRIMARY KEY, p INT8 REFERENCES t ON UPDATE CASCADE, INDEX (p));"
        "INSERT INTO t VALUES (1), (2), (3); INSERT INTO c VALUES (10, 1), (20, 2), (30, 3)",
        ("UPDATE t SET k = k + 1", None),
        ("SELECT k, p FROM c ORDER BY k", [(10, 2), (20, 3), (30, 4)]),
        ("SELECT k FROM c WHERE p = 2", [(10,)]),
    )


def test_a_table_that_refers_to_itself_follows_its_keys(sim: Simulation) -> None:
    run(
        sim,
        "CREATE TABLE t (k INT8 PRIMARY KEY, p INT8 REFERENCES t ON UPDATE CASCADE);"
        "INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)",
        ("UPDATE t SET k = k + 10", None),
        ("SELECT k, p FROM t ORDER BY k", [(11, 11), (12, 11), (13, 12)]),
    )


def test_a_key_that_is_part_of_a_foreign_key_moves_on_through_the_levels(sim: Simulation) -> None:
    run(
        sim,
        "CREATE TABLE a (k INT8 PRIMARY KEY);"
        "CREATE TABLE b (a INT8 REFERENCES a ON UPDATE CASCADE ON DELETE CASCADE, n INT8,"
        " PRIMARY KEY (a, n));"
        "CREATE TABLE c (k INT8 PRIMARY KEY, a INT8, n INT8,"
        " FOREIGN KEY (a, n) REFERENCES b ON UPDATE CASCADE ON DELETE SET NULL);"
        "INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (1, 1), (1, 2), (2, 1);"
        "INSERT INTO c VALUES (1, 1, 1), (2, 1, 2), (3, 2, 1)",
        ("UPDATE a SET k = 7 WHERE k = 1", None),
        ("SELECT a, n FROM b ORDER BY a, n", [(2, 1), (7, 1), (7, 2)]),
        ("SELECT * FROM c ORDER BY k", [(1, 7, 1), (2, 7, 2), (3, 2, 1)]),
        ("DELETE FROM a WHERE k = 7", None),
        ("SELECT * FROM c ORDER BY k", [(1, None, None), (2, None, None), (3, 2, 1)]),
    )


def test_rules_of_the_referring_table_hold_for_what_is_done_to_it(sim: Simulation) -> None:
    run(
        sim,
        "CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (0), (1), (2);"
        "CREATE TABLE n (k INT8 PRIMARY KEY, p INT8 NOT NULL REFERENCES t ON DELETE SET NULL,"
        " twice INT8 AS (p * 2) STORED); INSERT INTO n VALUES (1, 1);"
        "CREATE TABLE d (k INT8 PRIMARY KEY, p INT8 REFERENCES t ON DELETE CASCADE"
        " ON UPDATE CASCADE, twice INT8 AS (p * 2) STORED, CHECK (p < 9));"
        "INSERT INTO d VALUES (1, 2)",
        ("DELETE FROM t WHERE k = 1", "23502"),
        ("UPDATE t SET k = 9 WHERE k = 2", "23514"),
        ("UPDATE t SET k = 8 WHERE k = 2", None),
        ("SELECT p, twice FROM d", [(8, 16)]),
    )


def test_no_action_looks_when_all_is_done_and_restrict_at_once(sim: Simulation) -> None:
    """The row that refers by NO ACTION is deleted by another way."""
    for action, wanted in (("NO ACTION", None), ("RESTRICT", "23503")):
        run(
            Simulation(seed=5),
            "CREATE TABLE a (k INT8 PRIMARY KEY);"
            "CREATE TABLE b (k INT8 PRIMARY KEY, a INT8 REFERENCES a ON DELETE CASCADE);"
            "CREATE TABLE c (k INT8 PRIMARY KEY, b INT8 REFERENCES b ON DELETE CASCADE,"
            f" a INT8 REFERENCES a ON DELETE {action});"
            "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1, 1); INSERT INTO c VALUES (1, 1, 1)",
            ("DELETE FROM a", wanted),
            ("SELECT count(*) FROM c", [(0 if wanted is None else 1,)]),
        )


def test_a_row_that_is_changed_and_then_goes_need_refer_to_nothing(sim: Simulation) -> None:
    run(
        sim,
        "CREATE TABLE a (k INT8 PRIMARY KEY);"
        "CREATE TABLE b (k INT8 PRIMARY KEY, a INT8 REFERENCES a ON DELETE CASCADE);"
        "CREATE TABLE c (k INT8 PRIMARY KEY, b INT8 REFERENCES b ON DELETE CASCADE,"
        " a INT8 REFERENCES a ON DELETE SET NULL);"
        "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1, 1); INSERT INTO c VALUES (1, 1, 1)",
        ("DELETE FROM a", None),
        ("SELECT count(*) FROM c", [(0,)]),
    )


def test_a_computed_column_is_not_written_by_a_foreign_key(sim: Simulation) -> None:
    run(
        sim,
        "CREATE TABLE t (k INT8 PRIMARY KEY);"
        "CREATE TABLE c (k INT8 PRIMARY KEY, p INT8 AS (k + 1) STORED)",
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES t ON DELETE SET NULL", None),
        ("INSERT INTO t VALUES (2); INSERT INTO c VALUES (1)", None),
        ("DELETE FROM t", "23503"),
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES t ON DELETE SET DEFAULT", "42601"),
    )


# Against a model

Rows = dict[int, int | None]


class Refused(Exception):
    pass


class Model:
    """Levels of tables, each of whose rows may refer to a row of the one before.

    `actions[i]` is what becomes of rows of level i + 1, on delete and on update.
    """

    def __init__(self, actions: list[tuple[str, str]], levels: list[Rows]) -> None:
        self.actions = actions
        self.levels = [dict(level) for level in levels]

    def change(self, level: int, moves: dict[int, int | None]) -> None:
        """Each key becomes another one, or its row goes (None)."""
        rows = self.levels[level]
        moved = {new: rows[old] for old, new in moves.items() if new is not None}
        for old in moves:
            del rows[old]
        if rows.keys() & moved.keys():
            raise Refused
        rows |= moved
        if level + 1 < len(self.levels):
            self._follow(level + 1, {old: new for old, new in moves.items() if old != new})

    def _follow(self, level: int, moves: dict[int, int | None]) -> None:
        rows, on = self.levels[level], self.actions[level - 1]
        gone: dict[int, int | None] = {}
        for key, refers_to in list(rows.items()):
            if refers_to not in moves:
                continue
            action = on[0] if moves[refers_to] is None else on[1]
            match action:
                case "RESTRICT":
                    raise Refused
                case "CASCADE" if moves[refers_to] is None:
                    gone[key] = None
                case "CASCADE":
                    rows[key] = moves[refers_to]
                case "SET NULL":
                    rows[key] = None
        self.change(level, gone)

    def check(self) -> None:
        for above, rows in itertools.pairwise(self.levels):
            if any(refers_to not in above for refers_to in rows.values() if refers_to is not None):
                raise Refused


KEYS = st.integers(0, 4)
PAIRS = st.tuples(st.sampled_from(ACTIONS), st.sampled_from(ACTIONS))
CHANGES = st.lists(st.tuples(st.integers(0, 2), KEYS, st.none() | KEYS), min_size=1, max_size=6)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(PAIRS, min_size=2, max_size=2), CHANGES, st.booleans(), st.randoms())
def test_levels_of_tables_are_as_in_a_model(
    actions: list[tuple[str, str]],
    changes: list[tuple[int, int, int | None]],
    indexed: bool,
    random: st.DataObject,
) -> None:
    levels: list[Rows] = [dict.fromkeys(range(5))]
    for _ in range(2):
        levels.append({key: random.choice([None, 0, 1, 2, 3, 4]) for key in range(5)})  # type: ignore[attr-defined]

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t0 (k INT8 PRIMARY KEY, p INT8)")
            for level, (on_delete, on_update) in enumerate(actions, start=1):
                index = ", INDEX (p)" if indexed else ""
                await node.sql(
                    f"CREATE TABLE t{level} (k INT8 PRIMARY KEY, p INT8"
                    f" REFERENCES t{level - 1} ON DELETE {on_delete} ON UPDATE {on_update}{index})"
                )
            for level, rows in enumerate(levels):
                values = ", ".join(
                    f"({key}, {'NULL' if p is None else p})" for key, p in rows.items()
                )
                await node.sql(f"INSERT INTO t{level} VALUES {values}")
            model = Model(actions, levels)
            for level, key, new in changes:
                await step(node, model, level, key, new)

    async def step(node: SqlNode, model: Model, level: int, key: int, new: int | None) -> None:
        after = Model(model.actions, model.levels)
        if new is None:
            statement, moves = f"DELETE FROM t{level} WHERE k >= {key}", range(key, 100)
        else:
            statement = f"UPDATE t{level} SET k = k + {new} WHERE k >= {key}"
            moves = range(key, 100)
        wanted: str | None = None
        try:
            present = [found for found in after.levels[level] if found in moves]
            after.change(level, {k: None if new is None else k + new for k in present})
            after.check()
            model.levels = after.levels
        except Refused:
            wanted = "refused"
        found = await outcome(node, statement)
        assert (found is None) == (wanted is None), (statement, found)
        for number, rows in enumerate(model.levels):
            stored = await node.rows(f"SELECT k, p FROM t{number} ORDER BY k")
            assert stored == sorted(rows.items()), (statement, number)

    sim = Simulation(seed=9)
    sim.run(main())


def test_keys_of_other_widths_are_referred_to() -> None:
    run(
        Simulation(seed=4),
        "CREATE TABLE p (k INT8 PRIMARY KEY, name STRING UNIQUE);"
        "CREATE TABLE c (k INT2 REFERENCES p ON UPDATE CASCADE ON DELETE CASCADE, "
        "name VARCHAR(3) REFERENCES p (name) ON UPDATE CASCADE);"
        "INSERT INTO p VALUES (1, 'one'), (2, 'two')",
        ("INSERT INTO c VALUES (1, 'one'), (2, 'two')", None),
        ("INSERT INTO c VALUES (3, 'one')", "23503"),
        ("INSERT INTO c VALUES (1, 'x')", "23503"),
        ("UPDATE p SET k = 40000 WHERE k = 1", "22003"),
        ("UPDATE p SET name = 'eleven' WHERE k = 1", "22001"),
        ("UPDATE p SET k = 7, name = 'vii' WHERE k = 1", None),
        ("SELECT * FROM c ORDER BY k", [(2, "two"), (7, "vii")]),
        ("DELETE FROM p WHERE k = 2", None),
        ("SELECT * FROM c", [(7, "vii")]),
        ("CREATE TABLE d (k STRING REFERENCES p)", "42804"),
        ("CREATE TABLE d (k DECIMAL(10,2) REFERENCES p)", "42804"),
    )
