"""The store in this process as a database of PEP 249, and SQLAlchemy's ORM on it."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from tailrace import dbapi

[(NAME, HOME)] = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())[
    "project"
]["entry-points"]["sqlalchemy.dialects"].items()
registry.register(NAME, *HOME.split(":"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store that a connection keeps open."""
    path = tmp_path_factory.mktemp("dbapi") / "data"
    with dbapi.connect(path):
        yield path


@pytest.fixture
def connection(folder: Path) -> Iterator[dbapi.Connection]:
    with dbapi.connect(folder) as made:
        cursor = made.cursor()
        cursor.execute("DROP TABLE IF EXISTS t")
        cursor.execute("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING NOT NULL)")
        made.commit()
        yield made


def test_a_transaction_begins_by_itself(folder: Path, connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("INSERT INTO t VALUES (%s, %s)", (1, "100%"))
    assert cursor.rowcount == 1 and cursor.description is None
    connection.rollback()
    cursor.executemany(
        "INSERT INTO t VALUES (%(k)s, %(v)s)", [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
    )
    assert cursor.rowcount == 2
    with dbapi.connect(folder) as other:
        assert other.cursor().execute("SELECT count(*) FROM t").fetchone() == (0,)
    connection.commit()
    cursor.execute("SELECT k, v FROM t WHERE v LIKE 'a%' OR k = 2 ORDER BY k")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["k", "v"]
    kinds = [column[1] for column in cursor.description]
    assert kinds == [dbapi.NUMBER, dbapi.STRING] and kinds != [dbapi.STRING, dbapi.NUMBER]
    assert (cursor.fetchone(), cursor.fetchmany(), cursor.fetchall()) == ((1, "a"), [(2, "b")], [])


ERRORS = [
    ("INSERT INTO t VALUES (1, NULL)", dbapi.IntegrityError, "23502"),
    ("SELECT nothing FROM t", dbapi.ProgrammingError, "42703"),
    ("SELECT 1 / 0", dbapi.DataError, "22012"),
    ("CREATE TRIGGER t", dbapi.NotSupportedError, "0A000"),
    ("SELECT currval('s')", dbapi.OperationalError, "55000"),
]


@pytest.mark.parametrize(("text", "kind", "sqlstate"), ERRORS)
def test_errors_are_of_the_classes_of_pep_249(
    connection: dbapi.Connection, text: str, kind: type[dbapi.Error], sqlstate: str
) -> None:
    connection.cursor().execute("CREATE SEQUENCE IF NOT EXISTS s")
    with pytest.raises(kind) as told:
        connection.cursor().execute(text)
    assert told.value.sqlstate == sqlstate and issubclass(kind, connection.DatabaseError)
    connection.rollback()


@pytest.mark.parametrize(
    ("text", "parameters"),
    [("SELECT %s", ()), ("SELECT 1", (1,)), ("SELECT %(a)s", {}), ("SELECT 5 % 2", (1,))],
)
def test_wrong_parameters_are_refused(
    connection: dbapi.Connection, text: str, parameters: dbapi.Parameters
) -> None:
    with pytest.raises(dbapi.ProgrammingError):
        connection.cursor().execute(text, parameters)


def test_what_is_closed_says_so(folder: Path) -> None:
    connection = dbapi.connect(folder)
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError, match="no result"):
        cursor.fetchone()
    connection.close()
    connection.close()
    with pytest.raises(dbapi.InterfaceError, match="closed"):
        cursor.execute("SELECT 1")


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(40), unique=True)
    orders: Mapped[list[Order]] = relationship(back_populates="customer", cascade="all")


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(sa.ForeignKey("customers.id"))
    customer: Mapped[Customer] = relationship(back_populates="orders")
    amount: Mapped[Decimal] = mapped_column(sa.Numeric(10, 2))
    placed: Mapped[dt.datetime] = mapped_column(sa.DateTime(timezone=True))
    facts: Mapped[dict[str, Any]] = mapped_column(sa.JSON)
    photo: Mapped[bytes]
    paid: Mapped[bool] = mapped_column(default=False)


def test_the_orm_goes_there_and_back(folder: Path) -> None:
    engine = sa.create_engine(f"tailrace:///{folder}")
    Base.metadata.create_all(engine)
    at = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    key = uuid4()
    with Session(engine) as session:
        order = Order(id=key, amount=Decimal("12.50"), placed=at, facts={"a": [1]}, photo=b"\x00")
        session.add(Customer(name="ada", orders=[order]))
        session.add_all([Customer(name=f"c{n}") for n in range(50)])
        session.commit()
        session.add(Customer(name="ada"))
        with pytest.raises(sa.exc.IntegrityError):
            session.flush()
    with Session(engine) as session:
        found = session.scalars(sa.select(Order).join(Order.customer).where(Customer.name == "ada"))
        order = found.one()
        assert (order.amount, order.placed, order.photo) == (Decimal("12.50"), at, b"\x00")
        assert (order.facts, order.paid, order.customer.name) == ({"a": [1]}, False, "ada")
        order.paid = True
        session.delete(session.scalars(sa.select(Customer).where(Customer.name == "c7")).one())
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Customer)) == 50
        assert session.scalar(sa.select(sa.literal(3) + 4)) == 7
    assert {"customers", "orders"} <= set(sa.inspect(engine).get_table_names())
    Base.metadata.drop_all(engine)
    engine.dispose()
