SELEKT 1
----
position 1: syntax error at or near "SELEKT" (SQLSTATE 42601)
HINT: Did you mean SELECT?

CREATE NONSENSE x
----
position 8: syntax error at or near "NONSENSE" (SQLSTATE 42601)
HINT: Expected USER, TEMP, TEMPORARY, TABLE, INDEX, DATABASE, SUBSCRIPTION, SCHEDULE, EXTERNAL CONNECTION, KEYSPACE, TYPE, SEQUENCE or others.

VERIFY CHANGEFEED 1
----
VerifyChangefeed(job_id=1, at_resolved=False, repairs=False, replication=None)

123
----
position 1: syntax error at or near "123" (SQLSTATE 42601)
HINT: Expected a statement.

COPY t FROM STDIN
----
CopyFrom(table=ObjectName(parts=('t'), position=6), columns=None, options=CopyOptions(format=TEXT, delimiter='\t', null='\\N', header=False, quote='"', escape='"'))

TRUNCATE t
----
Truncate(tables=(ObjectName(parts=('t'), position=10)), cascade=False, restart_identity=False, text='TRUNCATE t', within=False)

WIDTH 1
----
position 1: syntax error at or near "WIDTH" (SQLSTATE 42601)
HINT: Did you mean WITH?

CREATE TEMP TABLE t (a INT8)
----
CreateTable(table=ObjectName(parts=('t'), position=19), columns=(ColumnDefinition(name='a', type=TypeName(name='int8', arguments=(), position=24), nullable=None, default=None, primary_key=False, position=22, computed=None, constraints=(), hidden=False, identity=None, primary_name=None)), primary_key=(), if_not_exists=False, parameters=(), primary_name=None, elements=(), temporary=True)

LISTEN channel
----
position 1: not supported: LISTEN (SQLSTATE 0A000)
HINT: CREATE CHANGEFEED FOR t streams the rows that change to the client.

CREATE OR REPLACE VIEW v AS SELECT 1
----
CreateView(name=ObjectName(parts=('v'), position=24), text='                            SELECT 1', replaces=True)
