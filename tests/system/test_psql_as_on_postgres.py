"""psql at this server and at PostgreSQL 15: the same script, the same output to the byte."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.servers import postgres_server
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

STYLES = r"""
\pset null NULL
CREATE TABLE s (k INT8 PRIMARY KEY, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, iv INTERVAL, b BYTEA,
    da DATE[], ba BYTEA[], ia INTERVAL[]);
INSERT INTO s VALUES
    (1, '1997-12-07', '1997-12-17 07:37:16.25', '1997-12-17 07:37:16+00',
     '1 year 2 mons -3 days 04:05:06.5', '\x00615cff27', '{1997-12-17,NULL}',
     '{"\\x00615c",NULL}', '{"1 mon 3 days",NULL}'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, '2000-02-29', '0999-01-01 00:00:00', '2020-07-01 12:00:00.000001+00', '-04:05:06', '\x',
     '{}', '{}', '{}');
SET TIME ZONE 'Europe/Berlin';
SET DateStyle = 'SQL, DMY'; SET IntervalStyle = sql_standard; SET bytea_output = escape;
SELECT * FROM s ORDER BY k;
SELECT d::text, ts::text, tz::text, iv::text, b::text, da::text, ba::text, ia::text
    FROM s ORDER BY k;
SELECT 'x' || d, iv || '!', concat(d, ts, iv, b), concat_ws('/', tz, iv, b),
    format('%s %s', d, iv), array_to_string(da, ';'), quote_literal(d), d::varchar(5),
    string_agg(d::text, ',') OVER () FROM s ORDER BY k;
SELECT INTERVAL '-1 2:03:04', 'a\000'::bytea, '\x41ff'::bytea::text;
COPY s TO STDOUT;
COPY s TO STDOUT (FORMAT csv);
SET DateStyle = postgres; SET IntervalStyle = postgres_verbose;
SELECT * FROM s ORDER BY k;
SELECT d::text, ts::text, tz::text, iv::text FROM s ORDER BY k;
SET DateStyle = 'postgres, mdy'; SELECT d, ts, tz FROM s ORDER BY k; SHOW DateStyle;
SET DateStyle = german; SET IntervalStyle = iso_8601; SELECT d, ts, tz, iv, ia FROM s ORDER BY k;
SET DateStyle = ISO, YMD; SHOW DateStyle; SELECT d, ts, tz FROM s ORDER BY k;
SET TIME ZONE 'America/Sao_Paulo'; SET DateStyle = sql; SELECT tz, tz::text FROM s ORDER BY k;
BEGIN; SET LOCAL DateStyle = german; SELECT d FROM s WHERE k = 1; COMMIT;
SELECT d FROM s WHERE k = 1; RESET DateStyle; SELECT d FROM s WHERE k = 1;
"""

SESSIONS = r"""
SELECT pg_advisory_lock(1), pg_advisory_lock_shared(-5, 7), pg_try_advisory_lock(-1);
SELECT locktype, classid, objid, objsubid, mode, granted, pid = pg_backend_pid() AS mine
    FROM pg_locks WHERE locktype = 'advisory' ORDER BY classid, objid;
SELECT pg_advisory_unlock(1), pg_advisory_unlock(1), pg_advisory_unlock_shared(-5, 7);
BEGIN; SELECT pg_advisory_xact_lock(2); ROLLBACK; SELECT pg_advisory_unlock_all();
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
SELECT pg_cancel_backend(999999), pg_terminate_backend(NULL);
SELECT hashtext('migrations'), hashtextextended('migrations', 7);
BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT 1;
SELECT name, is_holdable, is_binary, is_scrollable FROM pg_cursors; COMMIT; CLOSE c;
PREPARE p (INT8) AS SELECT $1 + 1;
SELECT name, parameter_types, from_sql FROM pg_prepared_statements;
SELECT v, pg_size_pretty(v) FROM (VALUES (0::INT8), (10239), (10240), (-10240), (10485248),
    (123456789012), (9223372036854775807)) AS t(v) ORDER BY v;
SELECT name, abbrev, utc_offset FROM pg_timezone_names WHERE name IN ('UTC', 'Asia/Kolkata')
    ORDER BY 1;
CREATE USER ada; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO ada;
\dn+ s
\df lower_
SELECT pg_terminate_backend(pg_backend_pid());
"""

SCRIPTS = {"styles": STYLES, "sessions": SESSIONS}


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """Of this server and of PostgreSQL, each with a database `defaultdb`."""
    folder = Path(tmp_path_factory.mktemp("both"))
    with ServerProcess(folder / "data", "--insecure") as server, postgres_server(folder) as port:
        told_by_psql(port, "CREATE DATABASE defaultdb", database="postgres")
        yield server.pg_port, port


def told_by_psql(port: int, script: str, *, database: str = "defaultdb") -> str:
    program = shutil.which("psql")
    assert program is not None, "psql is not installed"
    command = [program, "-X", "-h", "127.0.0.1", "-U", "root", "-p", str(port), "-d", database]
    done = subprocess.run(
        command, input=script, text=True, timeout=60, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_psql_is_told_the_same(ports: tuple[int, int], name: str) -> None:
    ours, theirs = (told_by_psql(port, SCRIPTS[name]).splitlines() for port in ports)
    assert _without_details(ours) == _without_details(theirs)


def _without_details(lines: list[str]) -> list[str]:
    """Hints and details are each server's own."""
    return [line for line in lines if not line.startswith(("HINT:", "DETAIL:"))]
