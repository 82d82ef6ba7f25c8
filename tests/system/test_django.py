"""A Django project over psycopg: migrations, the ORM's queries, `flush`, a second migration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

GIVEN = Path(__file__).parent / "django_project"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "server", "--insecure") as started:
        yield started


def made_project(folder: Path) -> Path:
    """A project with one application, `shop`, which has no migrations yet."""
    migrations = folder / "shop" / "migrations"
    migrations.mkdir(parents=True)
    (folder / "shop" / "__init__.py").touch()
    (migrations / "__init__.py").touch()
    shutil.copy(GIVEN / "settings.py", folder)
    shutil.copy(GIVEN / "queries.py", folder)
    shutil.copy(GIVEN / "models.py", folder / "shop")
    return folder


def test_project_migrates_queries_flushes_and_migrates_again(
    server: ServerProcess, tmp_path: Path
) -> None:
    project = made_project(tmp_path / "project")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings",
        "PYTHONPATH": str(project),
        "SERVER_PORT": str(server.pg_port),
    }

    def run(*arguments: str) -> str:
        command = [sys.executable, "-W", "ignore", *arguments]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    run("-m", "django", "makemigrations", "shop")
    run("-m", "django", "migrate")
    assert run("queries.py") == "queries hold\n"
    run("-m", "django", "flush", "--no-input")
    assert run("queries.py") == "queries hold\n", "flush left rows"
    shutil.copy(GIVEN / "second.py", project / "shop" / "migrations" / "0002_second.py")
    run("-m", "django", "migrate")
    with psycopg.connect(f"host=127.0.0.1 port={server.pg_port} user=root") as connection:
        deferred = connection.execute(
            "SELECT count(*), bool_and(condeferred) FROM pg_constraint WHERE contype = 'f'"
        ).fetchone()
        names = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'shop_order'"
        ).fetchall()
        marks = connection.execute("SELECT text, shade FROM shop_mark ORDER BY text").fetchall()
    assert marks == [("blue", "light"), ("crimson", "light")]
    assert deferred is not None
    assert deferred[0] > 10
    assert deferred[1]
    assert {"remark", "state"} <= {name for (name,) in names}
