SELEKT 1
----
position 1: syntax error at or near "SELEKT" (SQLSTATE 42601)
HINT: Did you mean SELECT?

CREATE NONSENSE x
----
position 8: syntax error at or near "NONSENSE" (SQLSTATE 42601)
HINT: Statements that begin so: CREATE CHANGEFEED, CREATE DATABASE, CREATE INDEX, CREATE ROLE, CREATE SCHEMA, CREATE SEQUENCE, CREATE TABLE, CREATE TYPE, CREATE UNIQUE INDEX, CREATE USER.

VERIFY CHANGEFEED 1
----
position 1: VERIFY is not supported (SQLSTATE 0A000)
HINT: `tailrace` verifies changefeeds over REST.

123
----
position 1: syntax error at or near "123" (SQLSTATE 42601)
HINT: Expected a statement.

COPY t FROM STDIN
----
CopyFrom(table=ObjectName(parts=('t'), position=6), columns=None, options=CopyOptions(format=TEXT, delimiter='\t', null='\\N', header=NONE, quote='"', escape='"', force_quote=()))

TRUNCATE t
----
Truncate(tables=(ObjectName(parts=('t'), position=10)), cascade=False, text='TRUNCATE t')

WIDTH 1
----
position 1: syntax error at or near "WIDTH" (SQLSTATE 42601)
HINT: Did you mean WITH?
