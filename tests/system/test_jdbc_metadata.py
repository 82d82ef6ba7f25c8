"""What PostgreSQL's JDBC driver tells tools of a database, asked by a Java program."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

DRIVER = "/usr/share/java/postgresql.jar"
PROGRAM = Path(__file__).with_name("JdbcMetadata.java")
SCHEMA = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE customers (id INT8 PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE);
CREATE TABLE orders (
    id INT8, line INT4, customer INT8 REFERENCES customers ON DELETE RESTRICT,
    amount DECIMAL(12,2) DEFAULT 0, m mood, PRIMARY KEY (id, line)
);
CREATE INDEX orders_by_customer ON orders (customer) STORING (amount);
CREATE TABLE counted (id INT8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE VIEW large AS SELECT id, amount FROM orders WHERE amount > 9;
COMMENT ON VIEW large IS 'the large ones';
GRANT SELECT ON orders TO ada
"""

Answers = dict[str, list[tuple[str, ...]]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    java = shutil.which("java")
    if java is None or not Path(DRIVER).exists():
        pytest.skip("Java or PostgreSQL's JDBC driver is not installed")
    with ServerProcess(tmp_path_factory.mktemp("jdbc") / "data", "--insecure") as server:
        for statement in ("CREATE USER ada", *SCHEMA.split(";\n")):
            server.sql(statement)
        url = f"jdbc:postgresql://127.0.0.1:{server.pg_port}/defaultdb"
        command = [java, "-Duser.timezone=Europe/Berlin", "-cp", DRIVER, str(PROGRAM), url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]
    answers: Answers = defaultdict(list)
    for line in done.stdout.splitlines():
        question, *row = line.split("\t")
        answers[question] += [tuple(row)] if row else []
    return answers


def test_tables_and_views_are_told_with_their_columns(told: Answers) -> None:
    assert told["tables"] == [
        ("counted_id_seq", "SEQUENCE", "null"), ("counted", "TABLE", "null"),
        ("customers", "TABLE", "null"), ("orders", "TABLE", "null"),
        ("large", "VIEW", "the large ones"),
    ]  # fmt: skip
    assert told["columns"] == [
        ("counted", "id", "int8", "19", "0", "NO", "null", "YES"),
        ("customers", "id", "int8", "19", "0", "NO", "null", "NO"),
        ("customers", "name", "varchar", "20", "0", "NO", "null", "NO"),
        ("large", "id", "int8", "19", "0", "YES", "null", "NO"),
        ("large", "amount", "numeric", "12", "2", "YES", "null", "NO"),
        ("orders", "id", "int8", "19", "0", "NO", "null", "NO"),
        ("orders", "line", "int4", "10", "0", "NO", "null", "NO"),
        ("orders", "customer", "int8", "19", "0", "YES", "null", "NO"),
        ("orders", "amount", "numeric", "12", "2", "YES", "0.00", "NO"),
        ("orders", "m", "mood", "2147483647", "0", "YES", "null", "NO"),
    ]
    assert ("public",) in told["schemas"] and ("defaultdb",) in told["catalogs"]
    assert {("TABLE",), ("VIEW",)} <= set(told["kinds"])


def test_keys_are_told_column_by_column(told: Answers) -> None:
    assert told["primary"] == [("id", "1", "orders_pkey"), ("line", "2", "orders_pkey")]
    key = (
        "customers", "id", "orders", "customer", "1", "1", "orders_customer_fkey",
        "customers_pkey",
    )  # fmt: skip
    assert told["imported"] == told["exported"] == told["crossed"] == [key]
    assert told["indexes"] == [
        ("orders_pkey", "f", "1", "id", "A"), ("orders_pkey", "f", "2", "line", "A"),
        ("orders_by_customer", "t", "1", "customer", "A"),
        ("orders_by_customer", "t", "2", "amount", "A"),
    ]  # fmt: skip
    assert told["unique"] == [("customers_name_key", "name"), ("customers_pkey", "id")]
    assert told["best"] == [("id", "int8"), ("line", "int4")]


def test_types_are_told_by_their_numbers(told: Answers) -> None:
    types = {row[0]: row[1] for row in told["types"]}
    assert types["int8"] == "-5" and types["text"] == "12" and types["_int4"] == "2003"
    assert types["mood"] == "12" and types["uuid"] == "1111"


def test_rights_are_told(told: Answers) -> None:
    assert ("ada", "SELECT") in told["rights"]
    assert ("root", "SELECT") in told["column rights"]


def test_what_is_not_there_is_told_as_nothing(told: Answers) -> None:
    assert told["procedures"] == [] and told["own types"] == []


def test_functions_are_told_with_their_columns(told: Answers) -> None:
    assert ("lower",) in {row[:1] for row in told["functions"]}
    assert len(told["function columns"]) > len(told["functions"])


def test_facts_are_told(told: Answers) -> None:
    facts = {row[0]: row[1] for row in told["fact"]}
    assert facts["getDatabaseProductName"] == "PostgreSQL"
    assert facts["getDefaultTransactionIsolation"] == "2"
    assert int(facts["getMaxConnections"]) > 0 and facts["getMaxColumnNameLength"] == "63"
    assert "returning" in facts["getSQLKeywords"].split(",")


def test_columns_of_a_result_know_their_table(told: Answers) -> None:
    assert told["result"] == [
        ("id", "int8", "orders", "0", "19", "false"),
        ("line", "int4", "orders", "0", "10", "false"),
        ("customer", "int8", "orders", "1", "19", "false"),
        ("amount", "numeric", "orders", "1", "12", "false"),
        ("m", "mood", "orders", "1", "2147483647", "false"),
        ("more", "numeric", "", "2", "13", "false"),
        ("Same", "int8", "large", "1", "19", "false"),
    ]
    assert told["parameter"] == [("int8",)]


def test_rows_are_edited_through_a_result(told: Answers) -> None:
    assert told["edited"] == [("7", "grace")]


def test_a_session_begins_in_the_zone_of_the_driver(told: Answers) -> None:
    shown = "2020-07-01 00:00:00+02"
    assert told["zone"] == [("Europe/Berlin", shown, shown)]
