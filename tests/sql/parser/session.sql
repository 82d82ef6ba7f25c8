SHOW TABLES FROM db
----
ShowTables(database='db')

SHOW DATABASES
----
ShowDatabases()

SHOW CREATE TABLE a.b
----
ShowCreateTable(table=ObjectName(parts=('a', 'b'), position=19))

SHOW COLUMNS FROM t
----
ShowColumns(table=ObjectName(parts=('t'), position=19))

USE shop
----
UseDatabase(name='shop')

SET CLUSTER SETTING changefeed.experimental_poll_interval = '200ms'
----
SetClusterSetting(name='changefeed.experimental_poll_interval', position=21, value='200ms')

SET CLUSTER SETTING a.b = -1
----
SetClusterSetting(name='a.b', position=21, value='-1')

SET CLUSTER SETTING a.b = DEFAULT
----
SetClusterSetting(name='a.b', position=21, value=None)

RESET CLUSTER SETTING a.b
----
SetClusterSetting(name='a.b', position=23, value=None)

SHOW CLUSTER SETTINGS
----
ShowClusterSettings(name=None, position=22)

SHOW CLUSTER SETTING a.b
----
ShowClusterSettings(name='a.b', position=22)

SET search_path = public
----
SetVariable(name='search_path', value='public', local=False, position=5)

SHOW database
----
position 14: not supported: SHOW DATABASE (SQLSTATE 0A000)
HINT: SELECT current_database() tells it.

SHOW
----
position 5: syntax error at end of input (SQLSTATE 42601)
HINT: Expected CLUSTER SETTINGS, TIME ZONE, what to show, DATABASES, TABLES, COLUMNS FROM, CREATE, RANGES FROM TABLE, JOBS, JOB, CHANGEFEED, JOBS WHEN COMPLETE or others.

EXPLAIN SELECT 1
----
Explain(analyze=False, statement=Query(tree=‹SELECT 1›, as_of=None, lock=None))

EXPLAIN ANALYZE SELECT 1
----
Explain(analyze=True, statement=Query(tree=‹SELECT 1›, as_of=None, lock=None))

EXPLAIN SHOW TABLES
----
position 9: syntax error at or near "SHOW" (SQLSTATE 42601)
HINT: EXPLAIN takes SELECT, INSERT, UPSERT, UPDATE or DELETE.

EXPLAIN
----
position 8: syntax error at end of input (SQLSTATE 42601)
HINT: Expected a statement, CHANGEFEED or "(".

LOCK TABLE ONLY shop.a, b IN ACCESS SHARE MODE
----
Maintain(tag='LOCK TABLE', notice=None, tables=(ObjectName(parts=('shop', 'a'), position=17), ObjectName(parts=('b'), position=25)))

LOCK TABLE a IN EXCLUSIVE MODE
----
position 6: not supported: LOCK TABLE but IN ACCESS SHARE MODE (SQLSTATE 0A000)
HINT: Serializable transactions need no table locks. SELECT … FOR UPDATE locks rows, and pg_advisory_xact_lock(n) whatever all agree on.

PREPARE p (pg_catalog.oid, int) AS SELECT $1
----
Prepare(name='p', types=(TypeName(name='oid', arguments=(), position=12), TypeName(name='int', arguments=(), position=28)), text='                                   SELECT $1')
