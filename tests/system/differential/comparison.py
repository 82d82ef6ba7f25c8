"""Differences between what two servers did with the same statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.system.differential.outcome import Client, Grid, Outcome
from tests.system.differential.topic import Topic


@dataclass(frozen=True, slots=True)
class Difference:
    """A statement that did not do the same. `parts` names what of its outcome differs."""

    topic: str
    statement: str
    binary: bool
    parts: frozenset[str]
    theirs: Outcome
    ours: Outcome

    def __str__(self) -> str:
        form = " (binary)" if self.binary else ""
        return (
            f"{self.topic}{form}: {self.statement}\n"
            f"  {', '.join(sorted(self.parts))}\n"
            f"  postgres: {self.theirs}\n  tailrace: {self.ours}"
        )


@dataclass(slots=True)
class Comparison:
    """The statements compared so far."""

    statements: int = 0
    executions: int = 0
    differences: list[Difference] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.differences = []

    def run(self, topic: Topic, theirs: Client, ours: Client) -> None:
        """Each statement in turn on both, in text; queries that agree in binary, too."""
        for statement in topic.statements:
            self.statements += 1
            agreed = self._compare(topic, statement, theirs, ours, binary=False)
            if agreed and _is_query(statement):
                self._compare(topic, statement, theirs, ours, binary=True)

    def _compare(
        self, topic: Topic, statement: str, theirs: Client, ours: Client, *, binary: bool
    ) -> bool:
        """Whether both gave the same rows, of the same types."""
        self.executions += 1
        expected, found = theirs.run(statement, binary=binary), ours.run(statement, binary=binary)
        parts = frozenset(differing_parts(statement, expected, found))
        if parts:
            self.differences.append(
                Difference(topic.name, statement, binary, parts, expected, found)
            )
        return expected.sqlstate is None and not parts & {"types", "rows", "error"}


def differing_parts(statement: str, theirs: Outcome, ours: Outcome) -> Iterator[str]:
    if theirs.transaction != ours.transaction:
        yield "transaction"
    if theirs.sqlstate != ours.sqlstate:
        yield "error"
        return
    if theirs.tag != ours.tag:
        yield "tag"
    if theirs.names != ours.names:
        yield "names"
    if theirs.types != ours.types:
        yield "types"
    if _in_order(statement, theirs.rows) != _in_order(statement, ours.rows):
        yield "rows"


def _in_order(statement: str, rows: Grid) -> Sequence[tuple[bytes | None, ...]]:
    """Rows as they came where the statement orders them, else sorted."""
    if _ordered(statement):
        return rows
    return sorted(rows, key=lambda row: [(cell is None, cell or b"") for cell in row])


def _ordered(statement: str) -> bool:
    """Whether ORDER BY stands outside all parentheses."""
    depth = 0
    for place, letter in enumerate(statement):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and statement[place : place + 9].lower() == "order by ":
            return True
    return False


def _is_query(statement: str) -> bool:
    return statement.split(None, 1)[0].lower() in ("select", "values", "with", "table")


@contextmanager
def databases(theirs_port: int, ours_port: int, name: str) -> Iterator[tuple[Client, Client]]:
    """A new database of the same name on both, and a connection to each."""
    for port, database, options in (
        (theirs_port, "postgres", " TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'"),
        (ours_port, "defaultdb", ""),
    ):
        client = Client(port, database)
        made = client.run(f"CREATE DATABASE {name}{options}")
        assert made.sqlstate is None, made
        client.close()
    clients = Client(theirs_port, name), Client(ours_port, name)
    clients[0].run("SET timezone = 'UTC'")
    try:
        yield clients
    finally:
        for client in clients:
            client.close()
