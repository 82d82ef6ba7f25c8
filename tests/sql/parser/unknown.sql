SELEKT 1
----
position 1: syntax error at or near "SELEKT" (SQLSTATE 42601)
HINT: Did you mean SELECT?

CREATE NONSENSE x
----
position 8: syntax error at or near "NONSENSE" (SQLSTATE 42601)
HINT: Statements that begin so: CREATE CHANGEFEED, CREATE DATABASE, CREATE TABLE.

GRANT ALL ON t TO u
----
position 1: GRANT is not supported (SQLSTATE 0A000)

123
----
position 1: syntax error at or near "123" (SQLSTATE 42601)
HINT: Expected a statement.

COPY t FROM STDIN
----
position 1: COPY is not supported (SQLSTATE 0A000)

TRUNCATE t
----
position 1: TRUNCATE is not supported (SQLSTATE 0A000)

WIDTH 1
----
position 1: syntax error at or near "WIDTH" (SQLSTATE 42601)
HINT: Did you mean WITH?
