SELECT 1; ; VALUES (1, 'a;b') -- c;d
; TABLE t
----
Query(tree=‹SELECT 1›, as_of=None, lock=None)
Query(tree=‹VALUES (1, 'a;b') /* c;d */›, as_of=None, lock=None)
Query(tree=‹SELECT * FROM t›, as_of=None, lock=None)

SELECT * FROM t AS OF SYSTEM TIME '-10s' WHERE a = $1
----
Query(tree=‹SELECT * FROM t WHERE a = $1›, as_of=AsOf(literal='-10s', parameter=None, position=35), lock=None)

SELECT * FROM t AS OF SYSTEM TIME $2
----
Query(tree=‹SELECT * FROM t›, as_of=AsOf(literal=None, parameter=2, position=35), lock=None)

SELECT * FROM t AS OF SYSTEM TIME 1700000000000000000.0000000003
----
Query(tree=‹SELECT * FROM t›, as_of=AsOf(literal='1700000000000000000.0000000003', parameter=None, position=35), lock=None)

SELECT * FROM t AS OF SYSTEM TIME
----
position 34: syntax error at end of input (SQLSTATE 42601)
HINT: Write a timestamp, an ISO date and time, or an interval such as '-10s', in quotes.

WITH x AS (SELECT 1) SELECT * FROM x
----
Query(tree=‹WITH x AS (SELECT 1) SELECT * FROM x›, as_of=None, lock=None)

(SELECT a FROM t)
----
Query(tree=‹SELECT a FROM t›, as_of=None, lock=None)

SELECT a FROM t FOR UPDATE
----
Query(tree=‹SELECT a FROM t›, as_of=None, lock=RowLock(mode=EXCLUSIVE, when_locked=WAIT, tables=()))

SELECT 1 INTO x
----
position 10: not supported: SELECT INTO (SQLSTATE 0A000)
HINT: CREATE TABLE … AS makes a table of a query.

SELECT a FROM WHERE b = 1
----
position 15: syntax error at or near "WHERE" (SQLSTATE 42601)

SELECT 1 1
----
position 10: syntax error at or near "1" (SQLSTATE 42601)

SELECT (1
----
position 10: syntax error at end of input (SQLSTATE 42601)
HINT: Expecting ).

SELECT ?
----
position 8: syntax error at or near "?" (SQLSTATE 42601)
HINT: Parameters are written $1, $2, …

SELECT @x
----
position 8: not supported: the operator @ (SQLSTATE 0A000)
HINT: abs(x) is the absolute value of a number.

SELECT $x
----
position 8: syntax error at or near "$" (SQLSTATE 42601)
HINT: Parameters are written $1, $2, …

SELECT 'abc
----
position 8: unterminated quoted text at or near "'abc" (SQLSTATE 42601)
HINT: A quote inside a string is written twice.

SELECT 'it''s fine', "oops
----
position 22: unterminated quoted text at or near '"oops' (SQLSTATE 42601)
HINT: A quote inside a string is written twice.

/* say */ SELECT
  a,
  FROM t
WHERE ==
----
position 25: syntax error at or near "FROM" (SQLSTATE 42601)

SELECT
----
position 7: syntax error at end of input (SQLSTATE 42601)
HINT: Expected a list of expressions.

SELECT a, FROM t
----
position 11: syntax error at or near "FROM" (SQLSTATE 42601)

SELECT f(a,) FROM t
----
position 12: syntax error at or near ")" (SQLSTATE 42601)

SELECT ($1,$2), 'costs $5, or $6', "a$1b", $$x $1,$2$$, $tag$ $1 $tag$ -- $1
----
Query(tree=‹SELECT ($1, $2), 'costs $5, or $6', "a$1b", 'x $1,$2', ' $1 '›, as_of=None, lock=None)

SELECT @1,$2
----
position 8: not supported: the operator @ (SQLSTATE 0A000)
HINT: abs(x) is the absolute value of a number.

SELECT $1,$2,'open $3
----
position 14: unterminated quoted text at or near "'open $3" (SQLSTATE 42601)
HINT: A quote inside a string is written twice.

SELECT tmp$1, v$x, $1+$2 FROM t$1
----
Query(tree=‹SELECT tmp$1, v$x, $1 + $2 FROM t$1›, as_of=None, lock=None)

SELECT INT8 '5'::TEXT, nextval('s'::regclass), 1 = SOME (a), f[:k]
----
Query(tree=‹SELECT CAST(CAST('5' AS BIGINT) AS TEXT), NEXTVAL('s'), 1 = ANY(a), f[:k]›, as_of=None, lock=None)

SHOW TABLES; EXPLAIN SELECT 1; FETCH 3 FROM c
----
ShowTables(database=None)
Explain(analyze=False, statement=Query(tree=‹SELECT 1›, as_of=None, lock=None))
FetchCursor(count=3, absolute=False, name='c', position=45, moves=False)
