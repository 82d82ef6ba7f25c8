"""Feeds of tables with hidden columns: none is in a row, and one that is a key is the key alone."""

from __future__ import annotations

import json

import tailrace


def decoded(datum: object) -> object:
    assert isinstance(datum, bytes), datum
    return json.loads(datum)


def test_a_feed_has_the_hidden_key_as_key_alone() -> None:
    with tailrace.open(":memory:") as db:
        db.sql("CREATE TABLE log (a INT8); INSERT INTO log VALUES (1)")
        ((rowid,),) = db.sql("SELECT rowid FROM log").fetchall()
        feed = db.changefeed("log")
        _, key, value = next(feed)
        assert decoded(key) == [rowid]
        assert decoded(value) == {"after": {"a": 1}}
        feed.close()


def test_a_mirror_holds_equal_rows_apart() -> None:
    with tailrace.open(":memory:") as db:
        db.sql("CREATE TABLE log (a INT8, b STRING)")
        db.sql("CREATE CHANGEFEED FOR log INTO 'duckdb:///m.duckdb'")
        db.sql("INSERT INTO log VALUES (1, 'x'), (1, 'x'), (2, 'y')")
        db.sql("UPDATE log SET b = 'z' WHERE a = 2")
        mirror = db.mirror("m.duckdb")
        mirror.wait()
        rows = mirror.sql("SELECT * FROM log ORDER BY a").to_pylist()
        assert rows == [{"a": 1, "b": "x"}] * 2 + [{"a": 2, "b": "z"}]
        db.sql("DELETE FROM log WHERE a = 1")
        db.sql("ALTER TABLE log ADD PRIMARY KEY (a)")
        db.sql("INSERT INTO log VALUES (3, 'w')")
        mirror.wait()
        rows = mirror.sql("SELECT * FROM log ORDER BY a").to_pylist()
        assert rows == [{"a": 2, "b": "z"}, {"a": 3, "b": "w"}]


def test_hidden_columns_come_and_go_unseen() -> None:
    with tailrace.open(":memory:") as db:
        db.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8, h INT8 NOT VISIBLE DEFAULT 5)")
        db.sql("INSERT INTO t VALUES (1, 10)")
        feed = db.changefeed("t")
        shown = [decoded(next(feed)[2])]
        db.sql("ALTER TABLE t ADD COLUMN g INT8 NOT VISIBLE DEFAULT 7")
        assert db.sql("SELECT *, h, g FROM t").fetchall() == [(1, 10, 5, 7)]
        db.sql("INSERT INTO t VALUES (2, 20)")
        shown.append(decoded(next(feed)[2]))
        db.sql("ALTER TABLE t DROP COLUMN h")
        db.sql("INSERT INTO t VALUES (3, 30)")
        shown.append(decoded(next(feed)[2]))
        feed.close()
        assert shown == [{"after": {"k": k, "v": 10 * k}} for k in (1, 2, 3)]
