"""Dumps of pg_dump, as they are: PostgreSQL's restored here, and ours here and in PostgreSQL.

The commands are those of docs/pgwire.md.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from benchmarks.servers import BINARIES, postgres_server
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

SCHEMA = """
CREATE SCHEMA shop;
CREATE SEQUENCE shop.numbers START 100 INCREMENT 5 CACHE 3;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE shop."Kind" AS ENUM ('new', 'old');
CREATE TABLE customers (
    id bigint GENERATED ALWAYS AS IDENTITY, name varchar(40) NOT NULL, m mood DEFAULT 'ok',
    born date, CONSTRAINT customers_pkey PRIMARY KEY (id), CONSTRAINT by_name UNIQUE (name)
);
CREATE TABLE shop.orders (
    id serial PRIMARY KEY, customer bigint REFERENCES customers ON DELETE CASCADE,
    amount numeric(12,2) DEFAULT 0 NOT NULL CHECK (amount >= 0), placed timestamptz DEFAULT now(),
    tags text[] DEFAULT '{}'::text[], doc jsonb DEFAULT '{}'::jsonb,
    number bigint DEFAULT nextval('shop.numbers'),
    gross numeric(12,2) GENERATED ALWAYS AS (amount * 1.19) STORED,
    code text DEFAULT ('N' || upper('x')), up uuid DEFAULT gen_random_uuid()
);
CREATE INDEX by_customer ON shop.orders (customer) INCLUDE (amount);
CREATE VIEW shop.large AS SELECT id, amount FROM shop.orders WHERE amount > 10;
COMMENT ON TABLE customers IS 'those who buy';
COMMENT ON COLUMN customers.name IS 'their name';
ALTER TABLE shop.orders ALTER COLUMN tags SET STATISTICS 200;
ALTER TABLE shop.orders ALTER COLUMN doc SET STORAGE EXTERNAL;
CREATE TABLE nokey (a int, b text, kind shop."Kind", kinds shop."Kind"[]);
"""
ROWS = """
INSERT INTO customers (name, m, born) VALUES ('Ada', 'happy', '1815-12-10'), ('Bo', 'ok', NULL);
INSERT INTO shop.orders (customer, amount, tags, doc) VALUES
    (1, 12.50, '{a,"b c"}', '{"k": [1, 2.5]}'), (2, 3, DEFAULT, DEFAULT), (NULL, 0, NULL, NULL);
INSERT INTO nokey VALUES (1, E'tab\\there', 'new', '{old}'), (NULL, 'x', NULL, NULL);
"""
QUERIES = (
    "SELECT * FROM customers ORDER BY id",
    "SELECT * FROM shop.orders ORDER BY id",
    "SELECT * FROM nokey ORDER BY b",
    "SELECT * FROM shop.large",
    "INSERT INTO shop.orders (amount) VALUES (50) RETURNING id, gross, code",
    "INSERT INTO customers (name) VALUES ('Cy') RETURNING id, m",
    "SELECT obj_description('customers'::regclass, 'pg_class')",
)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with postgres_server(tmp_path_factory.mktemp("postgres")) as port:
        with psycopg.connect(_target(port, "postgres"), autocommit=True) as connection:
            connection.execute("SET timezone = 'UTC'; " + SCHEMA + ROWS)
        yield port


def _target(port: int, database: str) -> str:
    return f"host=127.0.0.1 port={port} user=root dbname={database}"


@pytest.mark.parametrize("form", ["--format=plain", "--column-inserts"])
def test_a_dump_is_restored(postgres: int, tmp_path: Path, form: str) -> None:
    dump = tmp_path / "dump.sql"
    source = ["--host=127.0.0.1", f"--port={postgres}", "--username=root", "postgres"]
    told = ["--no-owner", "--no-privileges", form, f"--file={dump}"]
    subprocess.run([BINARIES / "pg_dump", *told, *source], check=True)
    with ServerProcess(tmp_path / "t", "--insecure") as server:
        restored = subprocess.run(
            [
                BINARIES / "psql", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--quiet",
                f"--file={dump}", _target(server.pg_port, "defaultdb"),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert restored.returncode == 0, restored.stderr
        with (
            psycopg.connect(_target(postgres, "postgres"), options="-c timezone=UTC") as theirs,
            psycopg.connect(_target(server.pg_port, "defaultdb")) as ours,
        ):
            for query in QUERIES:
                assert ours.execute(query).fetchall() == theirs.execute(query).fetchall(), query
            theirs.rollback()


UNIQUE_ROWID = """
CREATE FUNCTION unique_rowid() RETURNS bigint LANGUAGE sql
AS 'SELECT (extract(epoch FROM clock_timestamp()) * 1e9)::bigint'
"""
"""What a column of SERIAL has here for a default, and PostgreSQL has not."""

SERIAL = "bigint DEFAULT unique_rowid()"

DRAWN = "INSERT INTO shop.orders (customer) VALUES (1) RETURNING number, gross, code"
KEPT = (*QUERIES[:4], DRAWN, *QUERIES[5:])


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], Path]:
    """What a store answers to `KEPT`, and the folder with its dumps in each form."""
    folder = tmp_path_factory.mktemp("dumped")
    with ServerProcess(folder / "t", "--insecure") as server:
        target = _target(server.pg_port, "defaultdb")
        _run(target, SCHEMA + ROWS)
        source = ["--host=127.0.0.1", f"--port={server.pg_port}", "--username=root", "defaultdb"]
        for name, form in (
            ("plain", []), ("inserts", ["--inserts"]), ("custom", ["--format=custom"]),
            ("data", ["--data-only", "--inserts"]),
        ):  # fmt: skip
            told = subprocess.run(
                [BINARIES / "pg_dump", *form, f"--file={folder / name}", *source],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert (told.returncode, told.stderr) == (0, ""), form
        return _answers(target), folder


def _run(target: str, text: str) -> None:
    with psycopg.connect(target, autocommit=True) as connection:
        for statement in filter(str.strip, text.split(";\n")):
            connection.execute(statement)


def _answers(target: str) -> list[object]:
    with psycopg.connect(target, options="-c timezone=UTC") as connection:
        return [connection.execute(query).fetchall() for query in KEPT]


def _restore(dump: Path, target: str) -> None:
    psql = ["--no-psqlrc", "--set=ON_ERROR_STOP=1", "--quiet", f"--file={dump}", target]
    run = [f"{BINARIES}/psql", *psql]
    if dump.name == "custom":
        run = [f"{BINARIES}/pg_restore", "--exit-on-error", str(dump), f"--dbname={target}"]
    restored = subprocess.run(run, capture_output=True, text=True, check=False)
    assert restored.returncode == 0, restored.stderr


@pytest.mark.parametrize("form", ["plain", "inserts", "custom", "data"])
def test_a_store_is_dumped_and_restored_in_both(
    postgres: int, dumped: tuple[list[object], Path], tmp_path: Path, form: str
) -> None:
    wanted, folder = dumped
    before = SCHEMA if form == "data" else ""
    _run(_target(postgres, "postgres"), f"CREATE DATABASE {form}")
    with ServerProcess(tmp_path / "t", "--insecure") as restored:
        ours, theirs = _target(restored.pg_port, "defaultdb"), _target(postgres, form)
        _run(ours, before)
        _run(theirs, UNIQUE_ROWID + ";\n" + before.replace("serial", SERIAL))
        for target in (ours, theirs):
            _restore(folder / form, target)
            assert _answers(target) == wanted
