"""Alembic's own round: models to migrations, up, nothing left to do, changed models, and down."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.dialects.postgresql import JSONB

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ENVIRONMENT = """
from alembic import context
from sqlalchemy import create_engine

engine = create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=context.config.attributes["models"],
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()
engine.dispose()
"""


def models(*, second: bool) -> sa.MetaData:
    """A shop's tables; `second` is what they become."""
    found = sa.MetaData()
    sa.Table(
        "customers", found,
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("email", sa.String(200), nullable=False, unique=True),
        sa.Column("joined_at", sa.DateTime(timezone=True), server_default=sa.func.now()),
        *([sa.Column("score", sa.Numeric(8, 2), server_default="0")] if second else []),
    )  # fmt: skip
    sa.Table(
        "orders", found,
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("customer_id", sa.BigInteger, sa.ForeignKey("customers.id"), nullable=False),
        sa.Column("amount", sa.Numeric(10, 2), nullable=second),
        sa.Column("details", JSONB),  # JSON is JSONB here, and autogenerate would see it change
        sa.CheckConstraint("amount >= 0", name="amount_is_not_negative"),
        sa.Index("orders_by_customer", "customer_id", *(["amount"] if second else [])),
    )  # fmt: skip
    if second:
        sa.Table("tags", found, sa.Column("name", sa.Text, primary_key=True))
    return found


class Project:
    """A folder of migrations, as `alembic init` makes it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.config = Config()
        self.config.set_main_option("script_location", str(folder / "migrations"))
        self.config.set_main_option("sqlalchemy.url", url)
        self.config.config_file_name = str(folder / "alembic.ini")
        command.init(self.config, str(folder / "migrations"))
        (folder / "migrations" / "env.py").write_text(ENVIRONMENT)

    def migrate(self, target: sa.MetaData) -> None:
        """Writes the migration to the models, runs it, and sees that nothing is left to do."""
        self.config.attributes["models"] = target
        command.revision(self.config, autogenerate=True, message="to the models")
        command.upgrade(self.config, "head")
        command.check(self.config)


def test_models_migrate_up_and_down(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        url = f"postgresql+psycopg://root@127.0.0.1:{server.pg_port}/defaultdb"
        project = Project(tmp_path, url)
        project.migrate(models(second=False))
        server.sql("INSERT INTO customers (email) VALUES ('ada@example.org')")
        project.migrate(models(second=True))
        assert server.rows("SELECT email, score FROM customers") == [["ada@example.org", "0.00"]]
        command.downgrade(project.config, "-1")
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        left = {name for [name] in server.rows(tables)}
        assert left == {"alembic_version", "customers", "orders"}
        command.downgrade(project.config, "base")
        assert server.rows("SELECT count(*) FROM alembic_version") == [[0]]
