"""The two servers that benchmarks compare: `tailrace serve`, and PostgreSQL 15 beside it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.api.demo.raw.server import free_port as free_port

BINARIES = Path("/usr/lib/postgresql/15/bin")
READY_SECONDS = 60.0


def postgres_installed() -> bool:
    """Where it is not, benchmarks measure one side only. As root it needs another user to be."""
    return BINARIES.exists() and (os.geteuid() != 0 or shutil.which("su") is not None)


@contextmanager
def tailrace_server(
    folder: Path,
    *,
    program: tuple[str, ...] = ("tailrace.api.cli",),
    options: tuple[str, ...] = (),
) -> Iterator[tuple[str, int]]:
    """`tailrace serve`, trusting loopback. Gives its URL and its Postgres port.

    `program` is the module that runs it, with arguments of its own; `options` are those of `serve`.
    """
    command = [sys.executable, "-m", *program, "serve", str(folder / "tailrace")]
    process = subprocess.Popen(
        [*command, "--port", "0", "--pg-port", "0", "--insecure", *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        port, url = 0, ""
        for line in process.stdout:
            if "postgres at " in line:
                port = int(line.split("postgres at ")[1].split()[0].rpartition(":")[2])
            if "ready on " in line:
                url = line.rpartition("ready on ")[2].strip()
                break
        yield url, port
    finally:
        process.terminate()
        process.stdout.close()
        process.wait()


@contextmanager
def postgres_server(folder: Path, *options: str) -> Iterator[int]:
    """PostgreSQL 15 on a new cluster. As root it runs as the user `postgres`, as it insists on.

    `options` are of its command line, as in `-c wal_level=logical`.
    """
    data, port = folder / "postgres", free_port()
    data.mkdir()
    user: str | None = None
    if os.geteuid() == 0:
        user = "postgres"
        account = pwd.getpwnam(user)
        os.chown(data, account.pw_uid, account.pw_gid)
        for parent in (folder, *folder.parents[:-2]):
            if parent.owner() == "root" and parent != Path(tempfile.gettempdir()):
                parent.chmod(0o755)
    subprocess.run(
        [BINARIES / "initdb", "-D", data, "-U", "root", "-A", "trust", "--no-instructions"],
        check=True, stdout=subprocess.DEVNULL, user=user, cwd=data,
    )  # fmt: skip
    process = subprocess.Popen(
        [
            BINARIES / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", data,
            *options,
        ],
        stderr=subprocess.DEVNULL, user=user, cwd=data,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + READY_SECONDS
        ready = [str(BINARIES / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
        while subprocess.run(ready, check=False).returncode != 0:
            assert time.monotonic() < deadline, "PostgreSQL does not start"
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()
