"""What drivers set at start-up: each option does what it says, or the connection is refused."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pg8000.native
import psycopg
import pytest

from tests.harness.server_process import ServerProcess
from tests.system.programs import node_modules

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("options") / "data", "--insecure") as process:
        process.sql("CREATE TABLE t (id INT8 PRIMARY KEY, n INT8)")
        process.sql("INSERT INTO t VALUES (1, 0)")
        process.sql("CREATE USER ada")
        process.sql("GRANT SELECT, UPDATE ON t TO ada")
        yield process


def connect(server: ServerProcess, user: str = "root", **options: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user=user, dbname="defaultdb", **options
    )


def test_timeouts_of_the_start_hold(server: ServerProcess) -> None:
    options = "-c lock_timeout=50ms -c idle_in_transaction_session_timeout=200ms"
    with connect(server) as holder:
        holder.execute("UPDATE t SET n = 1 WHERE id = 1")
        with (
            connect(server, options=options, autocommit=True) as waiting,
            pytest.raises(psycopg.errors.LockNotAvailable),
        ):
            waiting.execute("UPDATE t SET n = 2 WHERE id = 1")
        holder.rollback()
    idle = connect(server, options=options)
    idle.execute("SELECT 1")
    with pytest.raises(psycopg.Error):
        asyncio.run(asyncio.sleep(0.6))
        idle.execute("SELECT 1")
    idle.close()
    slow = (
        "SELECT sum(a.i * b.i) FROM generate_series(1, 60000) a(i), generate_series(1, 60000) b(i)"
    )
    with (
        connect(server, options="-c statement_timeout=100", autocommit=True) as short,
        pytest.raises(psycopg.errors.QueryCanceled),
    ):
        short.execute(slow)


def test_isolation_and_messages_of_the_start_hold(server: ServerProcess) -> None:
    options = r"-c default_transaction_isolation=read\ committed -c client_min_messages=warning"
    with connect(server, options=options, autocommit=True) as client:
        shown = client.execute("SHOW transaction_isolation").fetchone()
        assert shown == ("read committed",)
        heard: list[str] = []
        client.add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
        client.execute("DROP TABLE IF EXISTS nowhere")
        assert heard == []
        client.execute("SET client_min_messages = notice")
        client.execute("DROP TABLE IF EXISTS nowhere")
        assert len(heard) == 1


@pytest.mark.parametrize(
    "option",
    [
        "bytea_output=escape", "intervalstyle=sql_standard", "datestyle=German",
        "extra_float_digits=0", "search_path=shop", "timezone=Mars/Base",
        "client_encoding=latin1", "statement_timeout=soon", "standard_conforming_strings=off",
        "default_transaction_isolation=chaos", "client_min_messages=shout",
    ],
)  # fmt: skip
def test_what_would_not_hold_is_refused(server: ServerProcess, option: str) -> None:
    name = option.partition("=")[0]
    with pytest.raises(psycopg.OperationalError, match=f"(?i){name}"):
        connect(server, options=f"-c {option}")
    with (
        connect(server, autocommit=True) as client,
        pytest.raises(psycopg.Error, match=f"(?i){name}"),
    ):
        client.execute(f"SET {name} = '{option.partition('=')[2]}'")


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("bytea_output=hex", "hex"), ("intervalstyle=postgres", "postgres"),
        ("datestyle=ISO,DMY", "ISO, DMY"), ("extra_float_digits=3", "3"),
        ("search_path=public", "public"), ("search_path=pg_catalog", "pg_catalog"),
        ("timezone=UTC", "UTC"), ("enable_experimental_alter_column_type_general=true", "on"),
        ("application_name=probe", "probe"), ("statement_timeout=5s", "5s"),
    ],
)  # fmt: skip
def test_what_holds_is_shown(server: ServerProcess, option: str, shown: str) -> None:
    with connect(server, options=f"-c {option}") as client:
        assert client.execute(f"SHOW {option.partition('=')[0]}").fetchone() == (shown,)


def test_moments_are_shown_in_the_zone_of_the_start(server: ServerProcess) -> None:
    with connect(server, options="-c timezone=Europe/Berlin", autocommit=True) as client:
        assert client.info.parameter_status("TimeZone") == "Europe/Berlin"
        query = "SELECT TIMESTAMPTZ '2020-07-01 12:00Z', '2020-07-01 12:00'::TIMESTAMPTZ"
        for binary in (False, True):
            found = client.execute(query, binary=binary).fetchone()
            assert found is not None
            assert [str(moment) for moment in found] == [
                "2020-07-01 14:00:00+02:00", "2020-07-01 12:00:00+02:00",
            ]  # fmt: skip
        with client.cursor().copy(
            "COPY (SELECT TIMESTAMPTZ '2020-01-01 00:00Z') TO STDOUT"
        ) as copy:
            assert list(copy.rows()) == [("2020-01-01 01:00:00+01",)]
        client.execute("SET TIME ZONE 'America/St_Johns'")
        assert client.info.parameter_status("TimeZone") == "America/St_Johns"
        written = client.execute("SELECT (TIMESTAMPTZ '2020-07-01 12:00Z')::TEXT").fetchone()
        assert written == ("2020-07-01 09:30:00-02:30",)


def test_intervals_are_written_in_the_style_of_the_session(server: ServerProcess) -> None:
    """Rails sets it whenever it connects, and reads nothing else."""
    query = "SELECT i, ARRAY[i], i::TEXT FROM (VALUES (INTERVAL '1 mon -2 days 03:00:00.5')) v(i)"
    with connect(server, autocommit=True) as client:
        client.execute("SET intervalstyle = iso_8601")
        client.execute("SET TIME ZONE 'Europe/Berlin'")
        assert client.info.parameter_status("IntervalStyle") == "iso_8601"
        found = client.pgconn.exec_(query.encode())
        texts = [found.get_value(0, column) for column in range(3)]
        assert texts == [b"P1M-2DT3H0.5S", b"{P1M-2DT3H0.5S}", b"1 mon -2 days +03:00:00.5"]
        client.execute("RESET intervalstyle")
        assert client.pgconn.exec_(query.encode()).get_value(0, 0) == b"1 mon -2 days +03:00:00.5"


def test_a_superuser_is_an_admin(server: ServerProcess) -> None:
    for user, wanted in (("root", "on"), ("ada", "off")):
        with connect(server, user, autocommit=True) as client:
            assert client.info.parameter_status("is_superuser") == wanted
            assert client.execute("SHOW is_superuser").fetchone() == (wanted,)
    with connect(server, "ada", autocommit=True) as client:
        server.sql("GRANT admin TO ada")
        assert client.execute("SHOW is_superuser").fetchone() == ("on",)
        server.sql("REVOKE admin FROM ada")
        assert client.execute("SHOW is_superuser").fetchone() == ("off",)


def test_what_changes_is_reported(server: ServerProcess) -> None:
    with connect(server) as client:
        client.execute("SET application_name = 'one'")
        assert client.info.parameter_status("application_name") == "one"
        client.rollback()
        assert client.info.parameter_status("application_name") == ""
        client.execute("SET LOCAL default_transaction_read_only = on")
        assert client.info.parameter_status("default_transaction_read_only") == "on"
        client.commit()
        assert client.info.parameter_status("default_transaction_read_only") == "off"


def test_asyncpg_sets_what_it_is_told(server: ServerProcess) -> None:
    async def scenario() -> None:
        address: dict[str, Any] = {
            "host": "127.0.0.1", "port": server.pg_port, "user": "root", "database": "defaultdb"
        }  # fmt: skip
        settings = {"application_name": "probe", "lock_timeout": "50", "jit": "off"}
        connection = await asyncpg.connect(**address, server_settings=settings)
        assert await connection.fetchval("SHOW lock_timeout") == "50ms"
        assert await connection.fetchval("SHOW application_name") == "probe"
        await connection.close()
        with pytest.raises(asyncpg.InvalidParameterValueError):
            await asyncpg.connect(**address, server_settings={"bytea_output": "base64"})

    asyncio.run(scenario())


def test_pg8000_sets_what_it_is_told(server: ServerProcess) -> None:
    made = pg8000.native.Connection(
        "root", host="127.0.0.1", port=server.pg_port, database="defaultdb",
        application_name="probe",
    )  # fmt: skip
    assert made.run("SHOW application_name") == [["probe"]]
    made.close()


NODE = """
const { Client } = require('pg');
const ask = async (more) => {
  const client = new Client({
    host: '127.0.0.1', port: PORT, user: 'root', database: 'defaultdb', ...more});
  try { await client.connect(); } catch (error) { return error.code; }
  const shown = await client.query("SELECT current_setting('statement_timeout') AS s, "
    + "current_setting('lock_timeout') AS l, current_setting('application_name') AS a, "
    + "current_setting('idle_in_transaction_session_timeout') AS i");
  await client.end();
  return shown.rows[0];
};
(async () => {
  console.log(JSON.stringify(await ask({statement_timeout: 5000, lock_timeout: 50,
    application_name: 'probe', idle_in_transaction_session_timeout: 7000})));
  console.log(JSON.stringify(await ask({options: '-c intervalstyle=french'})));
})();
"""


def test_node_postgres_sets_what_it_is_told(server: ServerProcess, tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node is not None
    program = tmp_path / "options.js"
    program.write_text(NODE.replace("PORT", str(server.pg_port)))
    done = subprocess.run(
        [node, str(program)], capture_output=True, text=True, timeout=60,
        env={"NODE_PATH": str(node_modules())},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['{"s":"5s","l":"50ms","a":"probe","i":"7s"}', '"22023"']
