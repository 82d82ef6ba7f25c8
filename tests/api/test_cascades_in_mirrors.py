"""Feeds see each row that a foreign key deletes or changes, of locked tables too."""

from __future__ import annotations

import tailrace


def test_a_mirror_follows_what_foreign_keys_do() -> None:
    with tailrace.open(":memory:") as db:
        db.sql("CREATE TABLE a (k INT8 PRIMARY KEY)")
        db.sql(
            "CREATE TABLE b (k INT8 PRIMARY KEY, a INT8, p INT8) WITH (changefeed_optimized = true)"
        )
        db.sql(
            "ALTER TABLE b ADD FOREIGN KEY (a) REFERENCES a ON DELETE CASCADE ON UPDATE CASCADE,"
            " ADD FOREIGN KEY (p) REFERENCES b ON DELETE SET NULL"
        )
        db.sql("ALTER TABLE a SET (changefeed_optimized = true)")
        for table in "ab":
            told = db.sql(f"SHOW CREATE TABLE {table}").fetchall()
            assert "changefeed_optimized = true" in str(told), told
        db.sql("CREATE CHANGEFEED FOR TABLE a, b INTO 'duckdb:///m.duckdb'")
        db.sql("INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (1, 1, NULL), (2, 2, 1)")
        db.sql("UPDATE a SET k = 5 WHERE k = 2; DELETE FROM a WHERE k = 1")
        mirror = db.mirror("m.duckdb")
        mirror.wait()
        assert mirror.sql("SELECT k, a, p FROM b").to_pylist() == [{"k": 2, "a": 5, "p": None}]
