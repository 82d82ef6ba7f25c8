"""One row for each kind of statement: what it asks for, and how to try it.

`{n}` is a number of the attempt's own, so that each attempt has its own table `t{n}`, and `{user}`
who attempts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TABLE = "CREATE TABLE t{n} (k INT8 PRIMARY KEY, v INT8); INSERT INTO t{n} VALUES (1, 1)"
OWN_TABLE = "ALTER TABLE t{n} OWNER TO {user}"
OTHER = "CREATE USER other{n}"
SEQUENCE = "CREATE SEQUENCE s{n}"
TYPE = "CREATE TYPE y{n} AS ENUM ('a', 'b')"
VIEW = "CREATE VIEW w{n} AS SELECT k FROM t{n}"
SCHEMA = "CREATE SCHEMA h{n}"
OWN_SCHEMA = "ALTER SCHEMA h{n} OWNER TO {user}"
DATABASE = "CREATE DATABASE d{n}"
OWN_DATABASE = "ALTER DATABASE d{n} OWNER TO {user}"
OWN_SEQUENCE = "ALTER SEQUENCE s{n} OWNER TO {user}"
INDEXED = (TABLE, "CREATE INDEX i{n} ON t{n} (v)")
SPLIT = (TABLE, "ALTER TABLE t{n} SPLIT AT VALUES (5)")
LOGGED = (TABLE, "CREATE RELAXED LOG l{n} FOR TABLES (t{n})")
KEYSPACE = "CREATE KEYSPACE r{n}"
GRANT_DELETE = "GRANT DELETE ON t{n} TO {user}"
FEED_OF_OTHER = (
    TABLE,
    OTHER,
    "GRANT CHANGEFEED ON t{n} TO other{n}",
    "SET ROLE other{n}; CREATE CHANGEFEED FOR TABLE t{n} INTO 'null://'; RESET ROLE",
)
REPLICATED_BY_OTHER = (
    KEYSPACE,
    OTHER,
    "GRANT CHANGEFEED ON r{n} TO other{n}",
    "SET ROLE other{n}; CREATE REPLICATION p{n} FOR KEYSPACE r{n} "
    "INTO 'tailrace://replica.invalid/r{n}' WITH (workers = 2); RESET ROLE",
)
SCHEDULE_OF_OTHER = (
    *FEED_OF_OTHER[:-1],
    "SET ROLE other{n}; CREATE SCHEDULE FOR CHANGEFEED t{n} INTO 'null://' RECURRING '@yearly'; "
    "RESET ROLE",
)
MIRROR_OF_OTHER = (
    *FEED_OF_OTHER[:-1],
    FEED_OF_OTHER[-1].replace("null://", "duckdb:///r{n}.duckdb"),
)
PUBLIC_SCHEMA = "CREATE on the schema, which everybody has on `public` until it is revoked"
SUBSCRIBED_BY_OTHER = (
    *FEED_OF_OTHER[:-1],
    "SET ROLE other{n}; CREATE SUBSCRIPTION b{n} FOR t{n} WITH initial_scan = 'no'; RESET ROLE",
)
CONNECTED_BY_OTHER = (
    OTHER,
    "CREATE EXTERNAL CONNECTION x{n} AS 'null://'",
    "ALTER EXTERNAL CONNECTION x{n} OWNER TO other{n}",
)
OWN_ALONE = "nothing: it lists what its user may know of"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`sql` is tried; whoever was granted `grants` may. `owning` makes a user the owner of what
    it is about. `{job}` is the newest job, `{victim}` a session,
    both of a user without rights. `refusal` is what others are told: 42704 where they may not know
    that there is such a thing."""

    sql: str
    needs: str
    setup: Sequence[str] = (TABLE,)
    grants: Sequence[str] = ()
    owning: Sequence[str] = ()
    everybody: bool = False
    refusal: str = "42501"
    told: str = "ok"
    """What who may is told: an error, where nothing is there that it could do."""


def on_table(
    sql: str,
    privileges: str,
    *,
    setup: Sequence[str] = (TABLE,),
    grants: Sequence[str] | None = None,
) -> Row:
    return Row(
        sql=sql,
        needs=f"{privileges} on the table",
        setup=setup,
        grants=grants or [f"GRANT {privileges} ON t{{n}} TO {{user}}"],
        owning=[OWN_TABLE],
    )


def on_keyspace(sql: str, privileges: str) -> Row:
    return Row(
        sql=sql,
        needs=f"{privileges} on the keyspace",
        setup=[KEYSPACE],
        grants=[f"GRANT {privileges} ON r{{n}} TO {{user}}"],
    )


def free(sql: str, needs: str = "nothing") -> Row:
    return Row(sql=sql, needs=needs, everybody=True)


def for_system(
    sql: str, privilege: str, *, setup: Sequence[str] = (), refusal: str = "42501"
) -> Row:
    grant = f"GRANT SYSTEM {privilege} TO {{user}}"
    return Row(
        sql=sql,
        needs=f"{privilege} of the system",
        setup=setup,
        grants=[grant],
        refusal=refusal,
    )


ROWS: Sequence[Row] = (
    on_table("SELECT * FROM t{n}", "SELECT"),
    on_table("SELECT * FROM t{n} FOR UPDATE", "SELECT, UPDATE"),
    on_table("INSERT INTO t{n} VALUES (2, 2)", "INSERT"),
    on_table("UPSERT INTO t{n} VALUES (2, 2)", "SELECT, INSERT, UPDATE"),
    on_table("UPDATE t{n} SET v = 3", "UPDATE"),
    on_table("UPDATE t{n} SET v = 3 WHERE k = 1", "SELECT, UPDATE"),
    on_table("DELETE FROM t{n}", "DELETE"),
    on_table("DELETE FROM t{n} WHERE k = 1", "SELECT, DELETE"),
    on_table("WITH gone AS (DELETE FROM t{n} RETURNING k) SELECT * FROM gone", "SELECT, DELETE"),
    on_table("EXPLAIN SELECT * FROM t{n}", "SELECT"),
    on_table("PREPARE p AS SELECT * FROM t{n}; EXECUTE p", "SELECT"),
    on_table("DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t{n}; FETCH ALL FROM c", "SELECT"),
    on_table("CREATE TABLE u{n} AS SELECT * FROM t{n}", "SELECT"),
    on_table("CREATE VIEW w{n} AS SELECT * FROM t{n}", "SELECT"),
    on_table("TRUNCATE t{n}", "DROP"),
    on_table("DROP TABLE t{n}", "DROP"),
    on_table("ALTER TABLE t{n} ADD COLUMN w INT8", "CREATE"),
    on_table("ALTER TABLE t{n} SET (schema_locked = true)", "CREATE"),
    on_table("COMMENT ON TABLE t{n} IS 'rows'", "CREATE"),
    on_table("CREATE INDEX i{n} ON t{n} (v)", "CREATE"),
    on_table("DROP INDEX t{n}@i{n}", "CREATE", setup=INDEXED),
    on_table("ALTER INDEX t{n}@i{n} RENAME TO j{n}", "CREATE", setup=INDEXED),
    on_table("ALTER TABLE t{n} SPLIT AT VALUES (5)", "INSERT"),
    on_table("ALTER TABLE t{n} UNSPLIT ALL", "INSERT", setup=SPLIT),
    on_table("SHOW RANGES FROM TABLE t{n}", "SELECT"),
    on_table("CREATE CHANGEFEED FOR TABLE t{n} INTO 'null://'", "CHANGEFEED"),
    on_table(
        "CREATE SCHEDULE s{n} FOR CHANGEFEED t{n} INTO 'null://' RECURRING '@daily'", "CHANGEFEED"
    ),
    on_table("EXPLAIN CHANGEFEED FOR TABLE t{n} INTO 'null://'", "CHANGEFEED"),
    on_table("EXPLAIN CHANGEFEED FOR TABLE t{n} WITH sample = 1", "SELECT"),
    Row(
        sql="CREATE CHANGEFEED FOR DATABASE d{n} INTO 'null://'",
        needs="CHANGEFEED on the database",
        setup=[DATABASE],
        grants=["GRANT CHANGEFEED ON DATABASE d{n} TO {user}"],
    ),
    on_table("CREATE SUBSCRIPTION b{n} FOR t{n}", "SELECT"),
    *(
        Row(
            sql=sql,
            needs="to be a member of its owner",
            setup=SUBSCRIBED_BY_OTHER,
            owning=["GRANT other{n} TO {user}"],
            refusal="42704",
        )
        for sql in (
            "FETCH ALL FROM SUBSCRIPTION b{n} WITH timeout = '1ms'",
            "ACKNOWLEDGE SUBSCRIPTION b{n} UP TO '-1us'",
            "DROP SUBSCRIPTION b{n}",
        )
    ),
    Row(
        sql="CREATE EXTERNAL CONNECTION x{n} AS 'null://'",
        needs="SYSTEM EXTERNALCONNECTION",
        grants=["GRANT SYSTEM EXTERNALCONNECTION TO {user}"],
    ),
    *(
        Row(
            sql=sql,
            needs="to be a member of its owner",
            setup=CONNECTED_BY_OTHER,
            owning=["GRANT other{n} TO {user}"],
            refusal="42704",
        )
        for sql in (
            "ALTER EXTERNAL CONNECTION x{n} AS 'null://'",
            "ALTER EXTERNAL CONNECTION x{n} OWNER TO {user}",
            "DROP EXTERNAL CONNECTION x{n}",
            "SHOW EXTERNAL CONNECTION x{n}",
        )
    ),
    on_table("CREATE RELAXED LOG l{n} FOR TABLES (t{n})", "CREATE"),
    on_table("DROP RELAXED LOG l{n}", "CREATE", setup=LOGGED),
    on_table("CREATE CHANGEFEED FOR RELAXED LOG l{n} INTO 'null://'", "CHANGEFEED", setup=LOGGED),
    on_keyspace("SELECT raw_get('r{n}', 'k')", "SELECT"),
    on_keyspace("SELECT raw_put('r{n}', 'k', 'v')", "INSERT"),
    on_keyspace("SELECT raw_delete('r{n}', 'k')", "DELETE"),
    on_keyspace("SELECT raw_delete_range('r{n}', 'a', 'b')", "SELECT, DELETE"),
    on_keyspace("SELECT raw_cas('r{n}', 'k', NULL, 'v')", "SELECT, INSERT"),
    on_keyspace("SELECT raw_cas('r{n}', 'k', 'v', NULL)", "SELECT, DELETE"),
    on_keyspace("CREATE CHANGEFEED FOR KEYSPACE r{n} INTO 'null://'", "CHANGEFEED"),
    on_keyspace(
        "CREATE REPLICATION p{n} FOR KEYSPACE r{n} INTO 'tailrace://replica.invalid/r{n}'",
        "CHANGEFEED",
    ),
    on_keyspace("DROP KEYSPACE r{n}", "DROP"),
    on_keyspace("BACKUP KEYSPACE r{n} INTO 'file:///backup{n}'", "SELECT"),
    Row(
        sql="RESTORE KEYSPACE h{n}.x FROM 'file:///kept{n}'",
        needs="admin; or CREATE on the schema, and to own the folder",
        setup=[SCHEMA, KEYSPACE, "BACKUP KEYSPACE r{n} INTO 'file:///kept{n}'"],
    ),
    Row(
        sql="ALTER KEYSPACE r{n} PROMOTE",
        needs="CREATE on the keyspace",
        setup=[f"{KEYSPACE} WITH (role = 'replica')"],
        grants=["GRANT CREATE ON r{n} TO {user}"],
    ),
    on_keyspace("ALTER KEYSPACE r{n} SPLIT AT 'k'", "CREATE"),
    on_keyspace("SHOW RANGES FROM KEYSPACE r{n}", "SELECT"),
    Row(
        sql="ALTER KEYSPACE r{n} TRANSFER TO 'tailrace://127.0.0.1/'",
        needs="CREATE on the keyspace",
        setup=[KEYSPACE],
        grants=["GRANT CREATE ON r{n} TO {user}"],
        told="22023",  # no keyspace is named
    ),
    on_table("SHOW CREATE TABLE t{n}", "any privilege", grants=[GRANT_DELETE]),
    on_table("SHOW COLUMNS FROM t{n}", "any privilege", grants=[GRANT_DELETE]),
    Row(
        sql="CREATE TEMP TABLE x{n} (k INT8 PRIMARY KEY)",
        needs="nothing: it is the session's",
        setup=(),
        everybody=True,
    ),
    Row(
        sql="CREATE TABLE h{n}.x (k INT8 PRIMARY KEY)",
        needs="CREATE on the schema",
        setup=[SCHEMA],
        grants=["GRANT CREATE, USAGE ON SCHEMA h{n} TO {user}"],
        owning=[OWN_SCHEMA],
    ),
    Row(
        sql="CREATE KEYSPACE h{n}.x",
        needs="CREATE on the schema",
        setup=[SCHEMA],
        grants=["GRANT CREATE, USAGE ON SCHEMA h{n} TO {user}"],
        owning=[OWN_SCHEMA],
    ),
    Row(
        sql="CREATE TABLE r{n} (k INT8 REFERENCES t{n} (k))",
        needs="CREATE on the table that it refers to",
        grants=["GRANT CREATE ON t{n} TO {user}"],
        owning=[OWN_TABLE],
    ),
    Row(sql="DROP SCHEMA h{n}", needs="to own the schema", setup=[SCHEMA], owning=[OWN_SCHEMA]),
    Row(
        sql="USE d{n}; CREATE SCHEMA x",
        needs="CREATE on the database",
        setup=[DATABASE],
        grants=["GRANT CREATE ON DATABASE d{n} TO {user}"],
        owning=[OWN_DATABASE],
    ),
    Row(
        sql="DROP DATABASE d{n}",
        needs="DROP on the database",
        setup=[DATABASE],
        grants=["GRANT DROP ON DATABASE d{n} TO {user}"],
        owning=[OWN_DATABASE],
    ),
    Row(
        sql="USE d{n}",
        needs="CONNECT to the database, which everybody has until it is revoked",
        setup=[DATABASE, "REVOKE CONNECT ON DATABASE d{n} FROM public"],
        grants=["GRANT CONNECT ON DATABASE d{n} TO {user}"],
        owning=[OWN_DATABASE],
    ),
    Row(
        sql="SELECT nextval('s{n}')",
        needs="USAGE or UPDATE on the sequence",
        setup=[SEQUENCE],
        grants=["GRANT USAGE ON SEQUENCE s{n} TO {user}"],
        owning=[OWN_SEQUENCE],
    ),
    Row(
        sql="ALTER SEQUENCE s{n} INCREMENT 2",
        needs="CREATE on the sequence",
        setup=[SEQUENCE],
        grants=["GRANT CREATE ON SEQUENCE s{n} TO {user}"],
        owning=[OWN_SEQUENCE],
    ),
    Row(
        sql="ALTER SEQUENCE s{n} OWNED BY t{n}.v",
        needs="CREATE on the sequence, and on the table",
        setup=[TABLE, SEQUENCE, "GRANT CREATE ON SEQUENCE s{n} TO public"],
        grants=["GRANT CREATE ON t{n} TO {user}"],
        owning=[OWN_TABLE],
    ),
    Row(
        sql="DROP SEQUENCE s{n}",
        needs="DROP on the sequence",
        setup=[SEQUENCE],
        grants=["GRANT DROP ON SEQUENCE s{n} TO {user}"],
        owning=[OWN_SEQUENCE],
    ),
    free("CREATE SEQUENCE s{n}", PUBLIC_SCHEMA),
    free("CREATE TABLE u{n} (k INT8 PRIMARY KEY)", PUBLIC_SCHEMA),
    free("CREATE TYPE z{n} AS ENUM ('a')", PUBLIC_SCHEMA),
    *(
        Row(
            sql=sql,
            needs=f"{privilege} on the type",
            setup=[TYPE],
            grants=[f"GRANT {privilege} ON TYPE y{{n}} TO {{user}}"],
            owning=["ALTER TYPE y{n} OWNER TO {user}"],
        )
        for sql, privilege in (
            ("ALTER TYPE y{n} ADD VALUE 'c'", "CREATE"),
            ("ALTER TYPE y{n} RENAME VALUE 'a' TO 'c'", "CREATE"),
            ("DROP TYPE y{n}", "DROP"),
        )
    ),
    Row(
        sql="SELECT * FROM w{n}",
        needs="SELECT on the view, whose owner needs it on what it reads",
        setup=[TABLE, VIEW],
        grants=["GRANT SELECT ON w{n} TO {user}"],
    ),
    Row(
        sql="DROP VIEW w{n}",
        needs="DROP on the view",
        setup=[TABLE, VIEW],
        grants=["GRANT DROP ON w{n} TO {user}"],
        owning=["ALTER TABLE w{n} OWNER TO {user}"],
    ),
    for_system("CREATE DATABASE d{n}", "CREATEDB"),
    for_system("CREATE USER made{n}", "CREATEROLE"),
    for_system("ALTER USER other{n} PASSWORD 'x'", "CREATEROLE", setup=[OTHER]),
    for_system("DROP USER other{n}", "CREATEROLE", setup=[OTHER]),
    for_system("SET CLUSTER SETTING kv.gc.interval = '1h'", "MODIFYCLUSTERSETTING"),
    for_system("SHOW CLUSTER SETTING kv.gc.interval", "VIEWCLUSTERSETTING"),
    for_system("SELECT pg_terminate_backend({victim})", "CANCELQUERY"),
    for_system("PAUSE JOB {job}", "CONTROLJOB", setup=FEED_OF_OTHER, refusal="42704"),
    for_system(
        "PAUSE JOBS (SELECT {job}::INT8)", "CONTROLJOB", setup=FEED_OF_OTHER, refusal="42704"
    ),
    for_system("PAUSE SCHEDULE {job}", "CONTROLJOB", setup=SCHEDULE_OF_OTHER, refusal="42704"),
    for_system(
        "ALTER CHANGEFEED {job} SET resolved = '1s'",
        "CONTROLJOB",
        setup=FEED_OF_OTHER,
        refusal="42704",
    ),
    for_system(
        "REBALANCE REPLICATION p{n}", "CONTROLJOB", setup=REPLICATED_BY_OTHER, refusal="42704"
    ),
    for_system(
        "SHOW REPLICATION p{n} TASKS", "VIEWJOB", setup=REPLICATED_BY_OTHER, refusal="42704"
    ),
    *(
        Row(
            sql=f"SHOW CHANGEFEED {what} {{job}}",
            needs="VIEWJOB of the system, and SELECT on the tables",
            setup=FEED_OF_OTHER,
            grants=["GRANT SYSTEM VIEWJOB TO {user}", "GRANT SELECT ON t{n} TO {user}"],
            owning=["GRANT other{n} TO {user}"],
            refusal="42704",
        )
        for what in ("LATENCY", "LAG")
    ),
    Row(
        sql="VERIFY CHANGEFEED {job}",
        needs="CONTROLJOB of the system, and SELECT on the tables",
        setup=MIRROR_OF_OTHER,
        grants=["GRANT SYSTEM CONTROLJOB TO {user}", "GRANT SELECT ON t{n} TO {user}"],
        owning=["GRANT other{n} TO {user}"],
        refusal="42704",
    ),
    *(
        Row(
            sql=f"{verb} DEAD LETTERS FOR CHANGEFEED {{job}}",
            needs=f"{right} of the system, and SELECT on the tables",
            setup=MIRROR_OF_OTHER,
            grants=[f"GRANT SYSTEM {right} TO {{user}}", "GRANT SELECT ON t{n} TO {user}"],
            owning=["GRANT other{n} TO {user}"],
            refusal="42704",
        )
        for verb, right in (("SHOW", "VIEWJOB"), ("RETRY", "CONTROLJOB"), ("SKIP", "CONTROLJOB"))
    ),
    Row(
        sql="GRANT SELECT ON t{n} TO other{n}",
        needs="the privilege WITH GRANT OPTION",
        setup=[TABLE, OTHER],
        grants=["GRANT SELECT ON t{n} TO {user} WITH GRANT OPTION"],
        owning=[OWN_TABLE],
    ),
    Row(
        sql="GRANT role{n} TO other{n}",
        needs="the role WITH ADMIN OPTION",
        setup=["CREATE ROLE role{n}", OTHER],
        grants=["GRANT role{n} TO {user} WITH ADMIN OPTION"],
    ),
    Row(
        sql="ALTER TABLE t{n} OWNER TO role{n}",
        needs="to own it, and to be a member of the new owner",
        setup=[TABLE, "CREATE ROLE role{n}; GRANT CREATE ON SCHEMA public TO role{n}"],
        owning=[OWN_TABLE, "GRANT role{n} TO {user}"],
    ),
    Row(
        sql="REASSIGN OWNED BY other{n} TO other{n}",
        needs="to be a member of both roles",
        setup=[OTHER],
        grants=["GRANT other{n} TO {user}"],
    ),
    Row(
        sql="SET ROLE other{n}",
        needs="to be a member of the role",
        setup=[OTHER],
        grants=["GRANT other{n} TO {user}"],
    ),
    Row(
        sql="SET SESSION AUTHORIZATION other{n}",
        needs="to have logged in as an admin",
        setup=[OTHER],
    ),
    *(
        free(sql, OWN_ALONE)
        for sql in (
            "SHOW JOBS",
            "SELECT job_id FROM [SHOW CHANGEFEED JOBS]",
            "SHOW JOBS WHEN COMPLETE (SELECT job_id FROM [SHOW JOBS] WHERE finished IS NOT NULL)",
            "SHOW RELAXED LOGS",
            "SHOW KEYSPACES",
            "SHOW REPLICATIONS",
            "SHOW SUBSCRIPTIONS",
            "SHOW SCHEDULES",
            "SHOW EXTERNAL CONNECTIONS",
            "SHOW TABLES",
            "SHOW DATABASES",
            "SHOW USERS",
        )
    ),
    *(
        free(sql)
        for sql in (
            "SHOW search_path",
            "SET application_name = 'x'",
            "ANALYZE t{n}",
            "LOCK TABLE t{n} IN ACCESS SHARE MODE",
            "BEGIN; SAVEPOINT a; ROLLBACK TO a; RELEASE a; SET TRANSACTION READ ONLY; COMMIT",
            "BEGIN; ROLLBACK",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            "PREPARE p AS SELECT 1; EXECUTE p; DEALLOCATE p",
            "DECLARE c CURSOR WITH HOLD FOR SELECT 1; FETCH c; CLOSE c",
            "DISCARD ALL",
            "SET CONSTRAINTS ALL IMMEDIATE",
        )
    ),
)
