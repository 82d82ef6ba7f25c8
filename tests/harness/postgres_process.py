"""A PostgreSQL of one's own, which a test may kill and start again.

with PostgresProcess() as postgres:
    postgres.rows("SELECT 1")
    postgres.kill()      # -9
    postgres.start()     # again, on the same data
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import psycopg

from benchmarks.servers import BINARIES, free_port
from tests.harness.program_process import ProgramProcess

PASSWORD = "s3cret"


class PostgresProcess(ProgramProcess):
    """One cluster, whose superuser `root` has the password `PASSWORD`."""

    ended_by = signal.SIGINT

    def __init__(self) -> None:
        self.port = free_port()
        # Not below pytest's folder: each start of pytest closes that to other users.
        self._place = tempfile.TemporaryDirectory(prefix="tailrace-postgres-")
        folder = Path(self._place.name)
        self._data = folder / "postgres"
        super().__init__(folder / "postgres.log")
        self._data.mkdir()
        if os.geteuid() == 0:
            self.user = "postgres"
            account = pwd.getpwnam(self.user)
            for owned in (folder, self._data):
                os.chown(owned, account.pw_uid, account.pw_gid)
        words = folder / "postgres.password"
        words.write_text(PASSWORD)
        words.chmod(0o644)
        subprocess.run(
            [
                BINARIES / "initdb", "-D", self._data, "-U", "root", "-A", "scram-sha-256",
                f"--pwfile={words}", "--no-instructions", "--no-sync",
            ],
            check=True, stdout=subprocess.DEVNULL, user=self.user, cwd=self._data,
        )  # fmt: skip

    def command(self) -> list[str]:
        return [
            str(BINARIES / "postgres"), "-D", str(self._data), "-p", str(self.port),
            "-h", "127.0.0.1,::1", "-k", str(self._data), "-c", "fsync=off",
        ]  # fmt: skip

    def answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def process_id(self) -> int:
        assert self._process is not None, "not running"
        return self._process.pid

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="root", password=PASSWORD, dbname=database,
            autocommit=True,
        )  # fmt: skip

    def rows(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else []

    def uri(
        self, *, user: str = "root", password: str = PASSWORD, host: str = "127.0.0.1",
        database: str = "postgres", port: int | None = None, query: str = "",
    ) -> str:  # fmt: skip
        """A sink URI."""
        words = quote(password, safe="")
        return f"postgres://{user}:{words}@{host}:{port or self.port}/{database}{query}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            # Immediately: clients that a test has left are of no matter.
            self._end(signal.SIGQUIT)
        self._place.cleanup()
