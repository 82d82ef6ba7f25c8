BEGIN
----
Begin(modes=TransactionModes(isolation=None, read_only=None, deferrable=None, as_of=None))

BEGIN READ ONLY; COMMIT
----
Begin(modes=TransactionModes(isolation=None, read_only=True, deferrable=None, as_of=None))
Commit()

START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE
----
Begin(modes=TransactionModes(isolation=SERIALIZABLE, read_only=False, deferrable=None, as_of=None))

BEGIN TRANSACTION AS OF SYSTEM TIME '-10s'
----
Begin(modes=TransactionModes(isolation=None, read_only=True, deferrable=None, as_of=AsOf(literal='-10s', parameter=None, position=37)))

ABORT WORK; END
----
Rollback()
Commit()

BEGIN ISOLATION LEVEL READ COMMITTED
----
Begin(modes=TransactionModes(isolation=READ_COMMITTED, read_only=None, deferrable=None, as_of=None))

BEGIN QUICKLY
----
position 7: syntax error at or near "QUICKLY" (SQLSTATE 42601)
HINT: Expected ISOLATION LEVEL, READ ONLY, READ WRITE, DEFERRABLE, NOT DEFERRABLE or AS OF SYSTEM TIME.

ROLLBACK TO SAVEPOINT x
----
RollbackTo(name='x', position=23)

SAVEPOINT x
----
MakeSavepoint(name='x')

START
----
position 6: syntax error at end of input (SQLSTATE 42601)
HINT: Expected TRANSACTION.
