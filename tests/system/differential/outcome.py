"""What a statement did on one server, in terms that two servers can be compared by."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import pq

Cell = bytes | None
Grid = tuple[tuple[Cell, ...], ...]

CONNECTION_LOST = "08006"

_TRANSACTIONS = {
    pq.TransactionStatus.IDLE: "idle",
    pq.TransactionStatus.INTRANS: "in transaction",
    pq.TransactionStatus.INERROR: "failed transaction",
}


FIRST_OWN_TYPE = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One execution. `sqlstate` is None where it succeeded; then `message` is empty. Types that
    users make, which each server numbers by itself, are all told as FIRST_OWN_TYPE."""

    sqlstate: str | None
    message: str
    tag: str
    names: tuple[str, ...]
    types: tuple[int, ...]
    rows: Grid
    transaction: str

    def __str__(self) -> str:
        if self.sqlstate is not None:
            return f"{self.sqlstate} {self.message} ({self.transaction})"
        columns = ", ".join(f"{n}:{t}" for n, t in zip(self.names, self.types, strict=True))
        shown = [[None if c is None else c.decode("latin-1") for c in row] for row in self.rows[:8]]
        return f"{self.tag} [{columns}] {shown} ({self.transaction})"


class Client:
    """One connection, below the level at which a driver would interpret anything."""

    def __init__(self, port: int, database: str) -> None:
        self._target = f"host=127.0.0.1 port={port} user=root dbname={database}".encode()
        self._connect()

    def _connect(self) -> None:
        self._connection = pq.PGconn.connect(self._target)
        assert self._connection.status == pq.ConnStatus.OK, self._connection.error_message

    def run(self, statement: str, *, binary: bool = False) -> Outcome:
        """By the simple protocol in text; by the extended one where `binary` is asked for."""
        text = statement.encode()
        if binary:
            result = self._connection.exec_params(text, None, result_format=pq.Format.BINARY)
        else:
            result = self._connection.exec_(text)
        if self._connection.status != pq.ConnStatus.OK:
            self._connect()
            return _lost(statement)
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        columns, rows = range(result.nfields), range(result.ntuples)
        return Outcome(
            sqlstate=None if state is None else state.decode(),
            message="" if message is None else message.decode(),
            tag=(result.command_status or b"").decode(),
            names=tuple((result.fname(column) or b"").decode() for column in columns),
            types=tuple(min(result.ftype(column), FIRST_OWN_TYPE) for column in columns),
            rows=tuple(
                tuple(_cell(result.get_value(r, c), result.ftype(c), binary) for c in columns)
                for r in rows
            ),
            transaction=_TRANSACTIONS[pq.TransactionStatus(self._connection.transaction_status)],
        )

    def close(self) -> None:
        self._connection.finish()


def _cell(value: bytes | None, type: int, binary: bool) -> bytes | None:
    """A value as it is compared: an array in binary has the number of its elements' type within."""
    if value is None or not binary or type < FIRST_OWN_TYPE:
        return value
    element = min(int.from_bytes(value[8:12]), FIRST_OWN_TYPE)
    return value[:8] + element.to_bytes(4) + value[12:] if len(value) >= 12 else value


def _lost(statement: str) -> Outcome:
    """What is told of a statement at which the server closed the connection."""
    return Outcome(
        sqlstate=CONNECTION_LOST,
        message=f"the connection was closed at: {statement}",
        tag="", names=(), types=(), rows=(), transaction="idle",
    )  # fmt: skip
