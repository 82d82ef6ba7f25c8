CREATE KEYSPACE sessions
----
CreateKeyspace(name=ObjectName(parts=('sessions'), position=17), if_not_exists=False, options=())

create keyspace if not exists web.sessions with (ttl = '1h')
----
CreateKeyspace(name=ObjectName(parts=('web', 'sessions'), position=31), if_not_exists=True, options=(Option(name='ttl', value='1h', position=50)))

CREATE KEYSPACE sessions WITH ttl = '1h', role = 'main'
----
CreateKeyspace(name=ObjectName(parts=('sessions'), position=17), if_not_exists=False, options=(Option(name='ttl', value='1h', position=31), Option(name='role', value='main', position=43)))

CREATE KEYSPACE
----
position 16: syntax error at end of input (SQLSTATE 42601)
HINT: Expected a keyspace's name.

DROP KEYSPACE sessions
----
DropKeyspace(name=ObjectName(parts=('sessions'), position=15), if_exists=False)

drop keyspace if exists b.c
----
DropKeyspace(name=ObjectName(parts=('b', 'c'), position=25), if_exists=True)

SHOW KEYSPACES
----
ShowKeyspaces()

SHOW KEYSPACES now
----
position 16: syntax error at or near "now" (SQLSTATE 42601)
HINT: Expected the end of the statement.

CREATE CHANGEFEED FOR KEYSPACE sessions INTO 'duckdb:///mirror.duckdb' WITH resolved
----
CreateChangefeed(tables=(ObjectName(parts=('sessions'), position=32)), sink='duckdb:///mirror.duckdb', options=(Option(name='resolved', value=None, position=77)), relaxed_log=None, keyspace=KeyspaceFeed(name=ObjectName(parts=('sessions'), position=32), start=b'', end=None), replication=None, workers=None, query=None, whole_database=None)

CREATE CHANGEFEED FOR KEYSPACE sessions FROM 'a' TO '\xff00'
----
CreateChangefeed(tables=(ObjectName(parts=('sessions'), position=32)), sink=None, options=(), relaxed_log=None, keyspace=KeyspaceFeed(name=ObjectName(parts=('sessions'), position=32), start=b'a', end=b'\xff\x00'), replication=None, workers=None, query=None, whole_database=None)

CREATE CHANGEFEED FOR KEYSPACE sessions TO 'm' INTO 'duckdb:///mirror.duckdb'
----
CreateChangefeed(tables=(ObjectName(parts=('sessions'), position=32)), sink='duckdb:///mirror.duckdb', options=(), relaxed_log=None, keyspace=KeyspaceFeed(name=ObjectName(parts=('sessions'), position=32), start=b'', end=b'm'), replication=None, workers=None, query=None, whole_database=None)

CREATE CHANGEFEED FOR KEYSPACE sessions FROM '\xzz'
----
position 46: "\xzz" is no key: what follows \x must be hex (SQLSTATE 22P02)

CREATE CHANGEFEED FOR KEYSPACE sessions, others
----
position 40: syntax error at or near "," (SQLSTATE 42601)
HINT: Expected the end of the statement.

ALTER KEYSPACE web.sessions TRANSFER TO 'tailrace://app:secret@127.0.0.1:8081/sessions'
----
TransferKeyspace(name=ObjectName(parts=('web', 'sessions'), position=16), target='tailrace://app:secret@127.0.0.1:8081/sessions')

ALTER KEYSPACE sessions TRANSFER
----
position 33: syntax error at end of input (SQLSTATE 42601)
HINT: Expected TO.

ALTER KEYSPACE sessions TRANSFER FROM 'a' TO 'm' TO 'tailrace://127.0.0.1:8081/sessions'
----
position 34: some keys of a keyspace cannot be transferred without the others (SQLSTATE 0A000)
DETAIL: A keyspace has one leader, and one epoch: its feeds, its replicas and whoever reads it go by what that one leader has resolved.
HINT: TRANSFER TO 'tailrace://…' hands all of its keys over. Keys that are to be led elsewhere belong in a keyspace of their own.

ALTER KEYSPACE sessions TRANSFER TO 'm' TO 'tailrace://127.0.0.1:8081/sessions'
----
position 34: some keys of a keyspace cannot be transferred without the others (SQLSTATE 0A000)
DETAIL: A keyspace has one leader, and one epoch: its feeds, its replicas and whoever reads it go by what that one leader has resolved.
HINT: TRANSFER TO 'tailrace://…' hands all of its keys over. Keys that are to be led elsewhere belong in a keyspace of their own.

ALTER KEYSPACE sessions TRANSFER FROM 'm' TO 'tailrace://127.0.0.1:8081/sessions'
----
position 34: some keys of a keyspace cannot be transferred without the others (SQLSTATE 0A000)
DETAIL: A keyspace has one leader, and one epoch: its feeds, its replicas and whoever reads it go by what that one leader has resolved.
HINT: TRANSFER TO 'tailrace://…' hands all of its keys over. Keys that are to be led elsewhere belong in a keyspace of their own.

SHOW RANGES FROM KEYSPACE web.sessions
----
ShowKeyspaceRanges(name=ObjectName(parts=('web', 'sessions'), position=27))

SHOW RANGES FROM KEYSPACE sessions WITH DETAILS
----
position 36: syntax error at or near "WITH" (SQLSTATE 42601)
HINT: Expected the end of the statement.

CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://h/ks' WITH (engine = 'spark', workers = 2, batch_size = 10)
----
CreateChangefeed(tables=(ObjectName(parts=('ks'), position=35)), sink='spark+tailrace://h/ks?workers=2&batch_size=10', options=(Option(name='mvcc_timestamp', value=None, position=1)), relaxed_log=None, keyspace=KeyspaceFeed(name=ObjectName(parts=('ks'), position=35), start=b'', end=None), replication='r', workers=None, query=None, whole_database=None)

CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://h/ks' WITH (engine = 'local', workers = 2)
----
CreateChangefeed(tables=(ObjectName(parts=('ks'), position=35)), sink='tailrace://h/ks', options=(Option(name='mvcc_timestamp', value=None, position=1)), relaxed_log=None, keyspace=KeyspaceFeed(name=ObjectName(parts=('ks'), position=35), start=b'', end=None), replication='r', workers=2, query=None, whole_database=None)

CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://h/ks' WITH (engine = 'flink')
----
position 67: engine "flink" is not known (SQLSTATE 22023)
HINT: 'local' has the nodes send the entries, and 'spark' a Spark application.

CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://h/ks' WITH (master = 'local')
----
position 67: a master is named for engine = 'spark' alone (SQLSTATE 22023)

CREATE REPLICATION r FOR KEYSPACE ks INTO 'external://h' WITH (engine = 'spark')
----
position None: engine = 'spark' sends into a keyspace that is named by its URI (SQLSTATE 0A000)
HINT: Write INTO 'tailrace://user:password@host:port/keyspace'.
