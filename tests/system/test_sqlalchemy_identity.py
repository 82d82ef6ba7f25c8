"""SQLAlchemy's Identity(), Sequence() and server defaults, at a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy import orm

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    with ServerProcess(tmp_path_factory.mktemp("server"), "--insecure") as server:
        made = sa.create_engine(f"postgresql+psycopg://root@127.0.0.1:{server.pg_port}/defaultdb")
        yield made
        made.dispose()


def by_itself(engine: sa.Engine) -> sa.Engine:
    """For DDL: a statement that is a transaction by itself is run again where others conflict."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


class Base(orm.DeclarativeBase):
    pass


NUMBERS = sa.Sequence("order_numbers", start=1000, increment=10, metadata=Base.metadata)


class Order(Base):
    __tablename__ = "orders"
    id: orm.Mapped[int] = orm.mapped_column(
        sa.BigInteger, sa.Identity(start=5, cycle=False), primary_key=True
    )
    number: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, NUMBERS)
    code: orm.Mapped[str] = orm.mapped_column(server_default=sa.text("upper('n') || 'ew'"))
    made: orm.Mapped[object] = orm.mapped_column(
        sa.DateTime(timezone=True), server_default=sa.func.now()
    )
    lines: orm.Mapped[list[Line]] = orm.relationship(back_populates="order")


class Line(Base):
    __tablename__ = "lines"
    id: orm.Mapped[int] = orm.mapped_column(
        sa.BigInteger, sa.Identity(always=True), primary_key=True
    )
    order_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("orders.id"))
    order: orm.Mapped[Order] = orm.relationship(back_populates="lines")


def test_a_session_learns_what_the_server_has_drawn(engine: sa.Engine) -> None:
    Base.metadata.create_all(by_itself(engine))
    with orm.Session(engine) as session:
        orders = [Order(lines=[Line(), Line()]) for _ in range(3)]
        session.add_all(orders)
        session.flush()
        assert [order.id for order in orders] == [5, 6, 7]
        assert [order.number for order in orders] == [1000, 1010, 1020]
        assert {order.code for order in orders} == {"New"}
        assert sorted(line.id for order in orders for line in order.lines) == [1, 2, 3, 4, 5, 6]
        session.rollback()
        session.add(Order())
        session.commit()
    with engine.begin() as connection:
        assert connection.execute(sa.select(Order.id, Order.number)).all() == [(8, 1030)]
        assert connection.scalar(sa.select(NUMBERS.next_value())) == 1040
        drawn = sa.insert(Order).from_select(
            ["number", "code"], sa.select(NUMBERS.next_value(), Order.code)
        )
        connection.execute(drawn)
        assert connection.scalar(sa.select(sa.func.max(Order.number))) == 1050
    Base.metadata.drop_all(by_itself(engine))


def test_identities_are_reflected(engine: sa.Engine) -> None:
    Base.metadata.create_all(by_itself(engine))
    inspector = sa.inspect(engine)
    (found,) = [c for c in inspector.get_columns("orders") if c["name"] == "id"]
    assert found["identity"]["start"] == 5
    assert not found["identity"]["always"]
    assert inspector.get_sequence_names() == ["lines_id_seq", "order_numbers", "orders_id_seq"]
    assert inspector.has_sequence("order_numbers")
    Base.metadata.drop_all(by_itself(engine))
    assert not sa.inspect(engine).has_table("orders")
