"""The audit log: what it tells, what it never tells, and what happens when it cannot be written."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tailrace.api import audit_log
from tailrace.api.node import Node
from tailrace.api.pgwire import PostgresOptions
from tailrace.api.pgwire.authentication import Method
from tailrace.catalog.values.errors import SQLError
from tests.harness.http_door import HttpDoor, problem_of
from tests.harness.pg_door import WireError, pg_door

SECRET = "pässword-of-ada"


def lines(folder: Path) -> list[dict[str, object]]:
    text = (folder / audit_log.AUDIT_FILE).read_text()
    assert SECRET not in text
    return [json.loads(line) for line in text.splitlines()]


def test_statements_are_told_as_asked_and_with_their_outcome(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = await Node.open(tmp_path)
        try:
            root = node.session(address="198.51.100.7")
            await root.execute(
                f"CREATE USER ada PASSWORD '{SECRET}'; CREATE TABLE t (k INT PRIMARY KEY);"
                "GRANT SELECT ON t TO ada; SELECT * FROM t;"
                "CREATE CHANGEFEED FOR TABLE t INTO 'null://' WITH resolved"
            )
            ada = node.session(user="ada")
            with pytest.raises(SQLError):
                await ada.execute("GRANT SELECT ON t TO PUBLIC")
            await root.close()
            await ada.close()
        finally:
            await node.close()
        told = [(line["event"], line["outcome"], line["user"]) for line in lines(tmp_path)]
        assert told == [
            ("CreateUser", "asked", "root"),
            ("CreateUser", "ok", "root"),
            ("GrantPrivileges", "asked", "root"),
            ("GrantPrivileges", "ok", "root"),
            ("CreateChangefeed", "asked", "root"),
            ("CreateChangefeed", "ok", "root"),
            ("GrantPrivileges", "asked", "ada"),
            ("GrantPrivileges", "42501", "ada"),
        ]
        created = lines(tmp_path)[4]
        assert created["address"] == "198.51.100.7"
        assert created["what"] == {"tables": ["t"], "sink": "null", "options": ["resolved"]}
        assert "null://" not in (tmp_path / audit_log.AUDIT_FILE).read_text()
        assert (tmp_path / audit_log.AUDIT_FILE).stat().st_mode & 0o077 == 0

    asyncio.run(scenario())


def test_logins_are_told_with_their_address(tmp_path: Path) -> None:
    async def scenario() -> None:
        options = PostgresOptions(method=Method.SCRAM)
        async with pg_door(options, tmp_path) as door:
            session = door.node.session()
            await session.execute(f"CREATE USER ada PASSWORD '{SECRET}'")
            await session.close()
            door.node.passwords.guesses.failed("ada", "203.0.113.9")
            assert lines(tmp_path)[-1]["outcome"] == "28P01"
            assert lines(tmp_path)[-1]["address"] == "203.0.113.9"

    asyncio.run(scenario())


def test_a_client_that_was_let_in_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with pg_door(path=tmp_path) as door:
            await door.client(application_name="psql")
            login = lines(tmp_path)[-1]
            assert (login["event"], login["user"], login["address"]) == (
                "Login",
                "root",
                "127.0.0.1",
            )
            assert login["application"] == "psql"

    asyncio.run(scenario())


def test_tokens_are_told_and_not_shown(tmp_path: Path) -> None:
    """One that cannot be recorded is not made."""
    with HttpDoor(trust=False, path=tmp_path) as door:
        session = door.node.session()
        door.run(session.execute(f"CREATE USER ada PASSWORD '{SECRET}'"))
        door.run(session.close())
        login = {"user": "ada", "password": SECRET}
        reply = door.post("/v1/login", login).json()
        told = lines(tmp_path)[-1]
        assert (told["event"], told["outcome"], told["user"], told["address"]) == (
            "CreateToken",
            "ok",
            "ada",
            "127.0.0.1",
        )
        assert told["what"] == {"expires": reply["expires"].replace("Z", "+00:00")}
        assert reply["token"] not in (tmp_path / audit_log.AUDIT_FILE).read_text()
        (tmp_path / audit_log.AUDIT_FILE).unlink()
        (tmp_path / audit_log.AUDIT_FILE).mkdir()  # as a folder that cannot be written to
        assert problem_of(door.post("/v1/login", login))["sqlstate"] == "58030"


def test_what_cannot_be_recorded_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with pg_door(path=tmp_path) as door:
            client = await door.client()
            (tmp_path / audit_log.AUDIT_FILE).unlink()
            (tmp_path / audit_log.AUDIT_FILE).mkdir()  # as a folder that cannot be written to
            with pytest.raises(WireError) as refused:
                await client.query("CREATE USER bo")
            assert refused.value.sqlstate == "58030"
            stranger = await door.connect()
            stranger.startup(user="root")
            assert b"C58030" in await stranger.ended()
            (tmp_path / audit_log.AUDIT_FILE).rmdir()
            await client.query("CREATE USER bo")  # who is not there yet

    asyncio.run(scenario())


def test_an_audit_that_is_switched_off_is_told_last(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = await Node.open(tmp_path)
        try:
            session = node.session()
            await session.execute("SET CLUSTER SETTING sql.audit.enabled = false")
            await session.execute("CREATE USER bo")
            await session.close()
        finally:
            await node.close()
        (line,) = lines(tmp_path)
        assert (line["event"], line["outcome"]) == ("SetClusterSetting", "asked")

    asyncio.run(scenario())


def test_files_are_kept_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(audit_log, "FILE_BYTES_MAX", 200)
        monkeypatch.setattr(audit_log, "FILES_KEPT", 2)
        node = await Node.open(tmp_path)
        try:
            session = node.session()
            for number in range(8):
                await session.execute(f"CREATE USER user{number}")
            await session.close()
        finally:
            await node.close()
        names = sorted(path.name for path in tmp_path.glob("audit.log*"))
        assert names[-2:] == ["audit.log.1", "audit.log.2"]
        assert "user7" in (tmp_path / "audit.log.1").read_text()

    asyncio.run(scenario())
