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
import time
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import psycopg

from benchmarks.servers import BINARIES, READY_SECONDS, free_port

PASSWORD = "s3cret"


class PostgresProcess:
    """One cluster, whose superuser `root` has the password `PASSWORD`."""

    def __init__(self) -> None:
        self.port = free_port()
        # Not below pytest's folder: each start of pytest closes that to other users.
        self._place = tempfile.TemporaryDirectory(prefix="tailrace-postgres-")
        folder = Path(self._place.name)
        self._data = folder / "postgres"
        self._log = folder / "postgres.log"
        self._data.mkdir()
        self._user: str | None = None
        if os.geteuid() == 0:
            self._user = "postgres"
            account = pwd.getpwnam(self._user)
            for owned in (folder, self._data):
                os.chown(owned, account.pw_uid, account.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None
        words = folder / "postgres.password"
        words.write_text(PASSWORD)
        words.chmod(0o644)
        subprocess.run(
            [
                BINARIES / "initdb", "-D", self._data, "-U", "root", "-A", "scram-sha-256",
                f"--pwfile={words}", "--no-instructions", "--no-sync",
            ],
            check=True, stdout=subprocess.DEVNULL, user=self._user, cwd=self._data,
        )  # fmt: skip

    def start(self) -> None:
        """Returns when it takes connections. Backends of a killed one may have to end first."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            self._process = self._begin()
            while self._process.poll() is None:
                assert time.monotonic() < deadline, self._log.read_text()[-4000:]
                try:
                    self.connect().close()
                    return
                except psycopg.OperationalError:
                    time.sleep(0.05)
            assert time.monotonic() < deadline, self._log.read_text()[-4000:]
            time.sleep(0.05)

    def _begin(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [
                    BINARIES / "postgres", "-D", self._data, "-p", str(self.port),
                    "-h", "127.0.0.1,::1", "-k", self._data, "-c", "fsync=off",
                ],
                stderr=log, user=self._user, cwd=self._data,
            )  # fmt: skip

    def kill(self) -> None:
        """Without a word. Its backends find out by themselves."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """In order, and without waiting for its clients."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        assert process is not None, "not running"
        process.send_signal(how)
        process.wait()

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

    def __enter__(self) -> PostgresProcess:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            # Immediately: clients that a test has left are of no matter.
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        self._place.cleanup()
