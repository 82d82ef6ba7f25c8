ALTER TABLE t SET (changefeed_optimized = true)
----
AlterTable(table=ObjectName(parts=('t'), position=13), commands=(SetParameters(position=15, parameters=(Option(name='changefeed_optimized', value='true', position=20)), reset=False)), if_exists=False, text='ALTER TABLE t SET (changefeed_optimized = true)')

ALTER TABLE IF EXISTS db.t SET (schema_locked, a.b = 'x')
----
AlterTable(table=ObjectName(parts=('db', 't'), position=23), commands=(SetParameters(position=28, parameters=(Option(name='schema_locked', value='true', position=33), Option(name='a.b', value='x', position=48)), reset=False)), if_exists=True, text="ALTER TABLE IF EXISTS db.t SET (schema_locked, a.b = 'x')")

ALTER TABLE t RESET (schema_locked, other)
----
AlterTable(table=ObjectName(parts=('t'), position=13), commands=(SetParameters(position=15, parameters=(Option(name='schema_locked', value=None, position=22), Option(name='other', value=None, position=37)), reset=True)), if_exists=False, text='ALTER TABLE t RESET (schema_locked, other)')

ALTER TABLE t ADD COLUMN x INT8
----
AlterTable(table=ObjectName(parts=('t'), position=13), commands=(AddColumn(position=26, definition=ColumnDefinition(name='x', type=TypeName(name='int8', arguments=(), position=28), nullable=None, default=None, primary_key=False, position=26, computed=None, constraints=(), hidden=False, identity=None, primary_name=None), if_not_exists=False)), if_exists=False, text='ALTER TABLE t ADD COLUMN x INT8')

ALTER TABLE t SET changefeed_optimized = true
----
position 19: syntax error at or near "changefeed_optimized" (SQLSTATE 42601)
HINT: Expected "(", SCHEMA, LOGGED, UNLOGGED, TABLESPACE or WITHOUT.

DROP TABLE IF EXISTS a, b.c
----
DropTable(names=(ObjectName(parts=('a'), position=22), ObjectName(parts=('b', 'c'), position=25)), if_exists=True, cascade=False)

DROP TABLE a CASCADE
----
DropTable(names=(ObjectName(parts=('a'), position=12)), if_exists=False, cascade=True)

DROP DATABASE x
----
DropDatabase(name='x', position=15, if_exists=False)
