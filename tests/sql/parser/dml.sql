INSERT INTO t VALUES (1, DEFAULT, NULL, $1, -2, 'x')
----
Insert(table=ObjectName(parts=('t'), position=13), columns=None, source=‹VALUES (1, DEFAULT, NULL, $1, -2, 'x')›, mode=INSERT, returning=(), alias=None, conflict=None, overriding=False)

INSERT INTO db.t (a, "B") VALUES (1, 2), (3, 4) RETURNING a, *
----
Insert(table=ObjectName(parts=('db', 't'), position=13), columns=(‹a›, ‹"B"›), source=‹VALUES (1, 2), (3, 4)›, mode=INSERT, returning=(‹a›, ‹*›), alias=None, conflict=None, overriding=False)

UPSERT INTO t (a) SELECT b FROM u
----
Insert(table=ObjectName(parts=('t'), position=13), columns=(‹a›), source=‹SELECT b FROM u›, mode=UPSERT, returning=(), alias=None, conflict=None, overriding=False)

INSERT INTO t DEFAULT VALUES
----
Insert(table=ObjectName(parts=('t'), position=13), columns=None, source=None, mode=INSERT, returning=(), alias=None, conflict=None, overriding=False)

INSERT INTO t (a)
----
position 18: syntax error at end of input (SQLSTATE 42601)
HINT: Expected VALUES.

INSERT INTO t VALUES (1
----
position 24: syntax error at end of input (SQLSTATE 42601)
HINT: Expecting ).

INSERT t VALUES (1)
----
position 8: syntax error at or near "t" (SQLSTATE 42601)
HINT: Expected INTO.

INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING
----
Insert(table=ObjectName(parts=('t'), position=13), columns=None, source=‹VALUES (1)›, mode=INSERT, returning=(), alias=None, conflict=OnConflict(columns=None, constraint=None, updates=False, assignments=(), where=None, position=29), overriding=False)

INSERT INTO t AS x (a) VALUES (1) ON CONFLICT (a, "B") DO UPDATE SET b = excluded.b, (c, d) = ((SELECT e FROM u), DEFAULT) WHERE x.b > 1
----
Insert(table=ObjectName(parts=('t'), position=13), columns=(‹a›), source=‹VALUES (1)›, mode=INSERT, returning=(), alias='x', conflict=OnConflict(columns=(‹a›, ‹"B"›), constraint=None, updates=True, assignments=((‹b›, ‹excluded.b›), (‹c›, ‹(SELECT e FROM u)›), (‹d›, ‹DEFAULT›)), where=‹x.b > 1›, position=38), overriding=False)

UPSERT INTO t VALUES (1) ON CONFLICT DO NOTHING
----
position 29: UPSERT takes no ON CONFLICT (SQLSTATE 42601)

UPDATE t SET a = a + 1, (b, c) = (1, $2) WHERE k = 1 RETURNING *
----
Update(table=ObjectName(parts=('t'), position=8), alias=None, assignments=((‹a›, ‹a + 1›), (‹b›, ‹1›), (‹c›, ‹$2›)), where=‹k = 1›, returning=(‹*›), sources=(), ctes=())

UPDATE t AS x SET a = 1 FROM u
----
Update(table=ObjectName(parts=('t'), position=8), alias='x', assignments=((‹a›, ‹1›)), where=None, returning=(), sources=(‹u›), ctes=())

UPDATE t SET a
----
position 14: SET takes column = value (SQLSTATE 42601)

UPDATE t
----
position 9: syntax error at end of input (SQLSTATE 42601)

DELETE FROM t WHERE k IN (1, 2) RETURNING k
----
Delete(table=ObjectName(parts=('t'), position=13), alias=None, where=‹k IN (1, 2)›, returning=(‹k›), sources=(), ctes=())

DELETE t
----
position 9: syntax error at end of input (SQLSTATE 42601)

DELETE FROM t USING u
----
Delete(table=ObjectName(parts=('t'), position=13), alias=None, where=None, returning=(), sources=(‹u›), ctes=())

INSERT INTO t (k, v) OVERRIDING SYSTEM VALUE VALUES (1, 2)
----
Insert(table=ObjectName(parts=('t'), position=13), columns=(‹k›, ‹v›), source=‹VALUES (1, 2)›, mode=INSERT, returning=(), alias=None, conflict=None, overriding=True)

MERGE INTO t AS x USING u ON x.a = u.a WHEN MATCHED AND u.b THEN DELETE WHEN NOT MATCHED THEN INSERT (a) VALUES (u.a)
----
position 1: not supported: MERGE (SQLSTATE 0A000)
HINT: INSERT … ON CONFLICT (…) DO UPDATE writes a row or changes the one that is there; UPDATE … FROM and DELETE … USING go by another table.
