"""Each statement of `docs/rights.md` as nobody, as granted, as owner and as an admin."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

from tailrace.api.node import Node
from tailrace.catalog.values.errors import SQLError
from tailrace.sql.parse.grammar import parse
from tailrace.sql.syntax.statement import Statement
from tailrace.sql.syntax.statements import CopyFrom, CopyTo, ReadMirror
from tailrace.sql.syntax.transaction_statements import SetVariable

from .document import DOCUMENT, document
from .statements import ROWS, Row

IN_COPY = {CopyFrom, CopyTo, ReadMirror}
"""What is said over the wire alone: `tests/sql/test_rights.py` has their rights, and
`tests/api/pgwire/test_mirror_databases.py` those of mirrors."""

_numbers = count(1)


class Attempt:
    """One user's try at a row, with objects of its own."""

    def __init__(self, node: Node, row: Row) -> None:
        self._node = node
        self._row = row
        number = next(_numbers)
        self.user = f"u{number}"
        self._names: dict[str, object] = {"n": number, "user": self.user, "job": 0, "victim": 0}

    async def outcome(self, rights: list[str]) -> str:
        """`ok`, or the SQLSTATE with which the statement ended for a user who has `rights`."""
        root, victim = self._node.session(), self._node.session(user="bystander")
        try:
            self._names["victim"] = victim.activity.process_id
            await root.execute(f"CREATE USER {self.user}")
            for text in (*self._row.setup, *rights):
                for result in await root.execute(text.format(**self._names)):
                    if result.tag in ("CREATE CHANGEFEED", "CREATE SCHEDULE"):
                        self._names["job"] = result.fetch_rows()[0][0]
            return await self._try()
        finally:
            await root.close()
            await victim.close()

    async def _try(self) -> str:
        session = self._node.session(user=self.user)
        try:
            await session.execute(self._row.sql.format(**self._names))
        except SQLError as error:
            return error.sqlstate
        finally:
            await session.close()
        return "ok"


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def node(runner: asyncio.Runner) -> Iterator[Node]:
    node = runner.run(Node.open(":memory:"))
    session = node.session()
    runner.run(session.execute("CREATE USER bystander"))
    runner.run(session.close())
    yield node
    runner.run(node.close())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.sql)
def test_a_statement_is_for_who_may(row: Row, node: Node, runner: asyncio.Runner) -> None:
    def tried(*rights: str) -> str:
        return runner.run(Attempt(node, row).outcome(list(rights)))

    assert tried() == ("ok" if row.everybody else row.refusal)
    assert tried("GRANT admin TO {user}") == row.told
    if row.grants:
        assert tried(*row.grants) == row.told
    if row.owning:
        assert tried(*row.owning) == "ok"


def _kinds(of: type) -> Iterator[type]:
    below: list[type] = of.__subclasses__()
    yield from (kind for each in below for kind in _kinds(each))
    if not below:
        yield of


def test_every_kind_of_statement_has_a_row() -> None:
    names = {"n": 1, "user": "ada", "job": 1, "victim": 1}
    tried = {
        type(statement) for row in ROWS for statement in parse(row.sql.format(**names)).statements
    }
    assert set(_kinds(Statement)) - tried - IN_COPY == set()
    assert SetVariable in tried


def test_the_document_is_the_table() -> None:
    assert DOCUMENT.read_text() == document(), "run python -m tests.rights.document"
