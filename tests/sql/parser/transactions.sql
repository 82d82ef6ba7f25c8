BEGIN
----
Begin(read_only=False, as_of=None)

BEGIN READ ONLY; COMMIT
----
Begin(read_only=True, as_of=None)
Commit()

START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE
----
Begin(read_only=False, as_of=None)

BEGIN TRANSACTION AS OF SYSTEM TIME '-10s'
----
Begin(read_only=True, as_of=AsOf(literal='-10s', parameter=None, position=37))

ABORT WORK; END
----
Rollback()
Commit()

BEGIN ISOLATION LEVEL READ COMMITTED
----
position 23: every transaction is SERIALIZABLE (SQLSTATE 0A000)

BEGIN QUICKLY
----
position 7: syntax error at or near "QUICKLY" (SQLSTATE 42601)
HINT: Expected READ ONLY, AS OF SYSTEM TIME or the end of the statement.

ROLLBACK TO SAVEPOINT x
----
position 10: savepoints are not supported (SQLSTATE 0A000)

SAVEPOINT x
----
position 1: SAVEPOINT is not supported (SQLSTATE 0A000)

START
----
position 6: syntax error at end of input (SQLSTATE 42601)
HINT: Statements that begin so: START TRANSACTION.
