CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///mirror.duckdb' WITH updated, resolved = '1s', initial_scan = 'no'
----
CreateChangefeed(tables=(ObjectName(parts=('orders'), position=29)), sink='duckdb:///mirror.duckdb', options=(Option(name='updated', value=None, position=72), Option(name='resolved', value='1s', position=81), Option(name='initial_scan', value='no', position=98)), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None)

create changefeed for a, table b.c
----
CreateChangefeed(tables=(ObjectName(parts=('a'), position=23), ObjectName(parts=('b', 'c'), position=32)), sink=None, options=(), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None)

EXPERIMENTAL CHANGEFEED FOR t WITH (updated, cursor = '1.0')
----
CreateChangefeed(tables=(ObjectName(parts=('t'), position=29)), sink=None, options=(Option(name='updated', value=None, position=37), Option(name='cursor', value='1.0', position=46)), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None)

create changefeed for a, table b.c
----
CreateChangefeed(tables=(ObjectName(parts=('a'), position=23), ObjectName(parts=('b', 'c'), position=32)), sink=None, options=(), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None)

EXPERIMENTAL CHANGEFEED FOR t WITH (updated, cursor = '1.0')
----
CreateChangefeed(tables=(ObjectName(parts=('t'), position=29)), sink=None, options=(Option(name='updated', value=None, position=37), Option(name='cursor', value='1.0', position=46)), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None)

CREATE CHANGEFEED FOR t INTO mirror
----
position 30: syntax error at or near "mirror" (SQLSTATE 42601)
HINT: Expected the sink's URI in single quotes.

CREATE CHANGEFEED t
----
position 19: syntax error at or near "t" (SQLSTATE 42601)
HINT: Expected AS or FOR.

SHOW CHANGEFEED LATENCY 7
----
ShowFeedLatency(job_id=7)

SHOW CHANGEFEED LAG 7
----
ShowFeedLag(job_id=7)

SHOW CHANGEFEED LAG
----
position 20: syntax error at end of input (SQLSTATE 42601)
HINT: Expected a job's id.

SHOW CHANGEFEED JOBS
----
ShowJobs(changefeeds_only=True, job_id=None, watched=False)

SHOW JOBS
----
ShowJobs(changefeeds_only=False, job_id=None, watched=False)

SHOW CHANGEFEED JOB 12
----
ShowJobs(changefeeds_only=True, job_id=12, watched=False)

CANCEL JOB 12
----
ControlJobs(action=CANCEL, job_ids=(12), query=None, replication=None, schedules=False)

PAUSE JOBS 1, 2
----
ControlJobs(action=PAUSE, job_ids=(1, 2), query=None, replication=None, schedules=False)

RESUME JOB x
----
position 12: syntax error at or near "x" (SQLSTATE 42601)
HINT: Expected a query or a job's id.

CANCEL 12
----
position 8: syntax error at or near "12" (SQLSTATE 42601)
HINT: Expected JOB, JOBS or REPLICATION.

ALTER CHANGEFEED 12 ADD refunds, s.t WITH initial_scan DROP orders SET resolved = '1s', updated UNSET diff
----
AlterChangefeed(job_id=12, clauses=(AddTables(tables=(ObjectName(parts=('refunds'), position=25), ObjectName(parts=('s', 't'), position=34)), options=(Option(name='initial_scan', value=None, position=43))), DropTables(tables=(ObjectName(parts=('orders'), position=61))), SetFeedOptions(options=(Option(name='resolved', value='1s', position=72), Option(name='updated', value=None, position=89))), UnsetFeedOptions(names=('diff'))))

ALTER CHANGEFEED 12 PAUSE TABLE t RESUME TABLE u RESCAN TABLE v
----
AlterChangefeed(job_id=12, clauses=(ControlTables(action='PAUSE', tables=(ObjectName(parts=('t'), position=33))), ControlTables(action='RESUME', tables=(ObjectName(parts=('u'), position=48))), ControlTables(action='RESCAN', tables=(ObjectName(parts=('v'), position=63)))))

ALTER CHANGEFEED 12
----
position 20: syntax error at end of input (SQLSTATE 42601)
HINT: Expected ADD, DROP, SET, UNSET, PAUSE TABLE, RESUME TABLE or RESCAN TABLE.

ALTER CHANGEFEED 12 PAUSE t
----
position 27: syntax error at or near "t" (SQLSTATE 42601)
HINT: Expected TABLE.

ALTER CHANGEFEED j ADD t
----
position 18: syntax error at or near "j" (SQLSTATE 42601)
HINT: Expected a job's id.

CREATE CHANGEFEED INTO 'null://' WITH updated FOR t
----
CreateChangefeed(tables=(ObjectName(parts=('t'), position=51)), sink='null://', options=(Option(name='updated', value=None, position=39)), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None)

CREATE CHANGEFEED WITH (paused) INTO 'null://' FOR TABLE t, u
----
CreateChangefeed(tables=(ObjectName(parts=('t'), position=58), ObjectName(parts=('u'), position=61)), sink='null://', options=(Option(name='paused', value=None, position=25)), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None)

CREATE CHANGEFEED FOR t WITH OPTIONS (updated) INTO 'null://'
----
CreateChangefeed(tables=(ObjectName(parts=('t'), position=23)), sink='null://', options=(Option(name='updated', value=None, position=39)), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None)

CREATE CHANGEFEED FOR t INTO 'null://' OPTIONS (updated, resolved = '1s')
----
CreateChangefeed(tables=(ObjectName(parts=('t'), position=23)), sink='null://', options=(Option(name='updated', value=None, position=49), Option(name='resolved', value='1s', position=58)), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None)

CREATE CHANGEFEED FOR t OPTIONS updated
----
position 33: syntax error at or near "updated" (SQLSTATE 42601)
HINT: Expected "(".

CREATE CHANGEFEED INTO 'null://' FOR t INTO 'null://'
----
position 40: syntax error at or near "INTO" (SQLSTATE 42601)
HINT: Expected the end of the statement.

CREATE CHANGEFEED FOR TABLE t FAMILY f INTO 'null://'
----
position 31: not supported: changefeeds of column families (SQLSTATE 0A000)
HINT: A table's rows are stored whole: a changefeed of it tells of all columns.

SHOW CHANGEFEED JOBS WITH WATCHED_TABLES
----
ShowJobs(changefeeds_only=True, job_id=None, watched=True)

SHOW CHANGEFEED JOB 12 WITH watched_tables
----
ShowJobs(changefeeds_only=True, job_id=12, watched=True)

SHOW JOBS WITH WATCHED_TABLES
----
position 11: syntax error at or near "WITH" (SQLSTATE 42601)
HINT: Expected the end of the statement or WHEN COMPLETE.

PAUSE JOBS (SELECT job_id FROM [SHOW CHANGEFEED JOBS] WHERE status = 'running')
----
ControlJobs(action=PAUSE, job_ids=(), query=Query(tree=‹SELECT job_id FROM tailrace_internal.changefeed_jobs WHERE status = 'running'›, as_of=None, lock=None), replication=None, schedules=False)

CANCEL JOBS SELECT 1
----
ControlJobs(action=CANCEL, job_ids=(), query=Query(tree=‹SELECT 1›, as_of=None, lock=None), replication=None, schedules=False)

RESUME JOB (SELECT 1)
----
ControlJobs(action=RESUME, job_ids=(), query=Query(tree=‹SELECT 1›, as_of=None, lock=None), replication=None, schedules=False)

SHOW JOBS WHEN COMPLETE 1, 2
----
AwaitJobs(job_ids=(1, 2), query=None)

SHOW JOB WHEN COMPLETE 1
----
AwaitJobs(job_ids=(1), query=None)

SHOW JOBS WHEN COMPLETE (SELECT 1)
----
AwaitJobs(job_ids=(), query=Query(tree=‹SELECT 1›, as_of=None, lock=None))

SELECT job_id FROM [SHOW JOBS] AS j
----
Query(tree=‹SELECT job_id FROM tailrace_internal.jobs AS j›, as_of=None, lock=None)

SELECT * FROM [SHOW TABLES]
----
position 15: syntax error at or near "[" (SQLSTATE 42601)

EXPLAIN CHANGEFEED FOR TABLE t INTO 'null://' WITH updated, sample = 3
----
ExplainChangefeed(changefeed=CreateChangefeed(tables=(ObjectName(parts=('t'), position=30)), sink='null://', options=(Option(name='updated', value=None, position=52)), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None), sample=3)

EXPLAIN CREATE CHANGEFEED FOR t
----
ExplainChangefeed(changefeed=CreateChangefeed(tables=(ObjectName(parts=('t'), position=31)), sink=None, options=(), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None), sample=None)

EXPLAIN CREATE CHANGEFEED FOR t
----
ExplainChangefeed(changefeed=CreateChangefeed(tables=(ObjectName(parts=('t'), position=31)), sink=None, options=(), relaxed_log=None, keyspace=None, replication=None, workers=None, query=None, whole_database=None), sample=None)

EXPLAIN CHANGEFEED FOR t WITH sample = 'many'
----
position 31: sample takes how many messages to show: from 1 to 1000 (SQLSTATE 22023)

CREATE SUBSCRIPTION IF NOT EXISTS s FOR TABLE a, b.c WITH (updated, resolved = '1s')
----
CreateSubscription(name='s', position=35, tables=(ObjectName(parts=('a'), position=47), ObjectName(parts=('b', 'c'), position=50)), options=(Option(name='updated', value=None, position=60), Option(name='resolved', value='1s', position=69)), if_not_exists=True)

DROP SUBSCRIPTION IF EXISTS s
----
DropSubscription(name='s', position=29, if_exists=True)

FETCH 100 FROM SUBSCRIPTION s WITH (timeout = '5s')
----
FetchSubscription(name='s', position=29, count=100, options=(Option(name='timeout', value='5s', position=37)))

FETCH ALL FROM SUBSCRIPTION s
----
FetchSubscription(name='s', position=29, count=None, options=())

FETCH LAST FROM SUBSCRIPTION s
----
position 30: syntax error at or near "s" (SQLSTATE 42601)
HINT: Expected the end of the statement.

FETCH NEXT FROM subscription
----
FetchCursor(count=1, absolute=False, name='subscription', position=17, moves=False)

ACKNOWLEDGE SUBSCRIPTION s UP TO 1795423823000000000.0000000001
----
AcknowledgeSubscription(name='s', position=26, upto='1795423823000000000.0000000001')

SHOW SUBSCRIPTIONS
----
ShowSubscriptions()

CREATE EXTERNAL CONNECTION mirror AS 'postgres://app:secret@host/db'
----
CreateConnection(name='mirror', position=28, uri='postgres://app:secret@host/db')

CREATE EXTERNAL CONNECTION 'mirror' AS 'null://'
----
CreateConnection(name='mirror', position=28, uri='null://')

CREATE EXTERNAL CONNECTION mirror 'postgres://app:secret@host/db'
----
position 35: syntax error at or near "'postgres://app:redacted@host/db'" (SQLSTATE 42601)
HINT: Expected AS.

ALTER EXTERNAL CONNECTION mirror AS 'null://'
----
AlterConnection(name='mirror', position=27, uri='null://', owner=None)

ALTER EXTERNAL CONNECTION mirror OWNER TO feeders
----
AlterConnection(name='mirror', position=27, uri=None, owner='feeders')

DROP EXTERNAL CONNECTION mirror
----
DropConnection(name='mirror', position=26)

SHOW EXTERNAL CONNECTIONS
----
ShowConnections()
