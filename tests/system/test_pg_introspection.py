"""psql's meta-commands and SQLAlchemy's reflection, by the real programs at a real server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy import orm

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

SCHEMA = """
CREATE TABLE customers (id INT8 PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE);
CREATE TABLE orders (
    id INT8, line INT4, customer INT8 REFERENCES customers ON DELETE RESTRICT,
    amount DECIMAL(12,2) DEFAULT 0, note STRING, PRIMARY KEY (id, line), CHECK (amount >= 0)
);
CREATE INDEX orders_by_customer ON orders (customer) STORING (amount);
COMMENT ON COLUMN orders.note IS 'anything';
CREATE VIEW large AS SELECT id, amount FROM orders WHERE amount > 9;
COMMENT ON VIEW large IS 'the large ones';
COMMENT ON COLUMN large.amount IS 'in euros';
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE SEQUENCE numbers;
CREATE USER ada;
"""

VIEW = """\
                                View "public.large"
 Column |     Type      | Collation | Nullable | Default | Storage | Description 
--------+---------------+-----------+----------+---------+---------+-------------
 id     | bigint        |           |          |         | plain   | 
 amount | numeric(12,2) |           |          |         | main    | in euros
View definition:
 SELECT id, amount FROM public.orders WHERE amount > 9;
"""

TABLE = """\
                       Table "public.orders"
  Column  |     Type      | Collation | Nullable | Default 
----------+---------------+-----------+----------+---------
 id       | bigint        |           | not null | 
 line     | integer       |           | not null | 
 customer | bigint        |           |          | 
 amount   | numeric(12,2) |           |          | 0.00
 note     | text          |           |          | 
Indexes:
    "orders_pkey" PRIMARY KEY, btree (id, line)
    "orders_by_customer" btree (customer) INCLUDE (amount)
Check constraints:
    "orders_amount_check" CHECK ("amount" >= 0)
Foreign-key constraints:
    "orders_customer_fkey" FOREIGN KEY (customer) REFERENCES customers(id) ON DELETE RESTRICT
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("catalog") / "data", "--insecure") as process:
        psql(process, SCHEMA)
        yield process


def psql(server: ServerProcess, script: str, *options: str) -> str:
    done = told_by_psql(server, script, *options, "-v", "ON_ERROR_STOP=1")
    assert done.returncode == 0, done.stderr
    return done.stdout


def told_by_psql(
    server: ServerProcess, script: str, *options: str
) -> subprocess.CompletedProcess[str]:
    found = shutil.which("psql")
    if found is None:
        pytest.skip("psql is not installed")
    command = [found, "-X", *options, "-h", "127.0.0.1", "-U", "root"]
    command += ["-p", str(server.pg_port), "-d", "defaultdb"]
    return subprocess.run(command, input=script, capture_output=True, text=True, timeout=60)


def test_psql_describes_a_table(server: ServerProcess) -> None:
    assert psql(server, "\\d orders\n").strip() == TABLE.strip()
    assert "Referenced by:" in psql(server, "\\d customers\n")
    assert "anything" in psql(server, "\\d+ orders\n")


def test_psql_describes_a_view(server: ServerProcess) -> None:
    assert [line.strip() for line in psql(server, "\\d+ large\n").strip().splitlines()] == [
        line.strip() for line in VIEW.strip().splitlines()
    ]
    assert psql(server, "\\sv large\n") == (
        "CREATE OR REPLACE VIEW public.large AS\n"
        " SELECT id, amount FROM public.orders WHERE amount > 9\n"
    )
    assert "the large ones" in psql(server, "\\dv+\n")


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("\\d", [
            "public|customers|table|root", "public|large|view|root",
            "public|numbers|sequence|root", "public|orders|table|root",
        ]),
        ("\\dt", ["public|customers|table|root", "public|orders|table|root"]),
        ("\\dt ord*", ["public|orders|table|root"]),
        ("\\dn", ["public|root", "tailrace_internal|root"]),
        ("\\l", ["defaultdb|root|UTF8|C|C.UTF-8||libc|", "system|root|UTF8|C|C.UTF-8||libc|"]),
        ("\\du", [
            "ada||{}",
            "admin|Superuser, Create role, Create DB, Cannot login, Bypass RLS|{}",
            "root|Superuser, Create role, Create DB, Bypass RLS|{admin}",
        ]),
        ("\\df", []),
        ("\\dv", ["public|large|view|root"]),
        ("\\dT", ["public|mood|"]),
        ("\\di", [
            "public|customers_name_key|index|root|customers",
            "public|customers_pkey|index|root|customers",
            "public|orders_by_customer|index|root|orders",
            "public|orders_pkey|index|root|orders",
        ]),
        ("\\dp", [
            "public|customers|table|||", "public|large|view|||", "public|numbers|sequence|||",
            "public|orders|table|||",
        ]),
    ],
)  # fmt: skip
def test_psql_lists(server: ServerProcess, command: str, lines: list[str]) -> None:
    assert psql(server, f"{command}\n", "-At").splitlines() == lines


def test_no_meta_command_is_an_sql_error(server: ServerProcess) -> None:
    """Each of psql's commands on a catalog lists something, or says that there is nothing."""
    commands = Path(__file__).with_name("meta_commands.txt").read_text()
    assert "ERROR" not in told_by_psql(server, commands).stderr


def test_no_query_of_a_tool_is_an_sql_error(server: ServerProcess) -> None:
    psql(server, Path(__file__).with_name("tool_queries.sql").read_text())


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("\\dT+", ["public|mood|mood|4|sad", "happy|root||"]),
        ("\\ds", ["public|numbers|sequence|root"]),
        ("\\ddp", []),
        ("\\db", ["pg_default|root|"]),
        ("\\dd", []),
        ("\\dC date", [
            "date|timestamp with time zone||yes", "date|timestamp without time zone||yes",
            "timestamp with time zone|date||in assignment",
            "timestamp without time zone|date||in assignment",
        ]),
        ("\\df lower", ["pg_catalog|lower|text|text|func"]),
        ("\\do ~", ["pg_catalog|~|text|text|boolean|"]),
        ("\\dx", ["tailrace|1|pg_catalog|"]),
        ("\\drds", []),
        ("\\dconfig app*", ["application_name|psql"]),
    ],
)  # fmt: skip
def test_psql_lists_what_else_there_is(
    server: ServerProcess, command: str, lines: list[str]
) -> None:
    assert psql(server, f"{command}\n", "-At").splitlines() == lines


@pytest.fixture
def engine(server: ServerProcess) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(
        f"postgresql+psycopg://root@127.0.0.1:{server.pg_port}/defaultdb"
    )
    yield made
    made.dispose()


def test_sqlalchemy_reflects_tables(engine: sqlalchemy.Engine) -> None:
    inspector = sqlalchemy.inspect(engine)
    assert inspector.has_table("orders") and not inspector.has_table("nowhere")
    assert sorted(inspector.get_table_names()) == ["customers", "orders"]
    columns = {column["name"]: str(column["type"]) for column in inspector.get_columns("orders")}
    assert columns == {
        "id": "BIGINT", "line": "INTEGER", "customer": "BIGINT", "amount": "NUMERIC(12, 2)",
        "note": "TEXT",
    }  # fmt: skip
    assert inspector.get_pk_constraint("orders")["constrained_columns"] == ["id", "line"]
    (index,) = inspector.get_indexes("orders")
    assert (index["name"], index["column_names"]) == ("orders_by_customer", ["customer"])
    (key,) = inspector.get_foreign_keys("orders")
    assert (key["referred_table"], key["options"]) == ("customers", {"ondelete": "RESTRICT"})
    (unique,) = inspector.get_unique_constraints("customers")
    assert unique["column_names"] == ["name"]
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    assert [table.name for table in metadata.sorted_tables] == ["customers", "orders"]


def test_sqlalchemy_reflects_a_view(engine: sqlalchemy.Engine) -> None:
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_view_names() == ["large"]
    assert str(inspector.get_view_definition("large")).strip() == (
        "SELECT id, amount FROM public.orders WHERE amount > 9;"
    )
    assert inspector.has_table("large")
    large = sqlalchemy.Table("large", sqlalchemy.MetaData(), autoload_with=engine)
    assert [(c.name, str(c.type)) for c in large.columns] == [
        ("id", "BIGINT"), ("amount", "NUMERIC(12, 2)"),
    ]  # fmt: skip
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.select(large.c.id)).all() == []


class Base(orm.DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"
    id: orm.Mapped[int] = orm.mapped_column(sqlalchemy.BigInteger, primary_key=True)
    name: orm.Mapped[str]


def test_an_orm_session_rolls_back_to_its_savepoint(engine: sqlalchemy.Engine) -> None:
    with orm.Session(engine) as session, session.begin():
        session.add(Customer(id=1, name="ada"))
        session.flush()
        with pytest.raises(sqlalchemy.exc.IntegrityError), session.begin_nested():
            session.add(Customer(id=2, name="ada"))
            session.flush()
        session.add(Customer(id=3, name="grace"))
    with orm.Session(engine) as session:
        session.add(Customer(id=4, name="lost"))
        session.flush()
        session.rollback()
        names = session.scalars(sqlalchemy.select(Customer.name).order_by(Customer.id)).all()
        assert names == ["ada", "grace"]
        session.execute(sqlalchemy.delete(Customer))
        session.commit()
