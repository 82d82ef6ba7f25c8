"""The store in this process as a database of PEP 249.

    from tailrace import dbapi

    with dbapi.connect("data") as connection:          # commits, or rolls back an error, and closes
        cursor = connection.cursor()
        cursor.execute("INSERT INTO orders VALUES (%s, %s)", (1, "first"))

Connections of one process to one folder share its store, each with a session of its own; it is
closed with the last of them. `sqlalchemy.create_engine("tailrace:///data")` stands on this module.
A server is reached by psycopg and the other drivers of PostgreSQL.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

from .api.embedded import Database, Session
from .api.embedded import open as open_store
from .api.result import Result
from .catalog.values.errors import SQLError
from .error import Error as TailraceError
from .sql import Row

apilevel = "2.0"
threadsafety = 1  # a transaction is its connection's, so threads have connections of their own
paramstyle = "pyformat"  # and "format"

Parameters = Sequence[object] | Mapping[str, object]


class Warning(Exception):
    """PEP 249's; this module raises none."""


class Error(TailraceError):
    """`sqlstate`, `detail` and `hint` are those of the SQLError that it comes from."""

    sqlstate: str | None = None
    detail: str | None = None
    hint: str | None = None


class InterfaceError(Error):
    """The module is used otherwise than it can be."""


class DatabaseError(Error):
    """The store has refused something."""


class DataError(DatabaseError):
    """A value does not fit."""


class OperationalError(DatabaseError):
    """What may go well another time: conflicts, locks, limits, a store that is closed."""


class IntegrityError(DatabaseError):
    """A constraint would not hold."""


class InternalError(DatabaseError):
    """A fault of the store's."""


class ProgrammingError(DatabaseError):
    """A statement that is wrong, or at the wrong place."""


class NotSupportedError(DatabaseError):
    """What is understood and not offered."""


_CLASSES: Mapping[str, type[DatabaseError]] = {
    "08": OperationalError,
    "0A": NotSupportedError,
    "22": DataError,
    "23": IntegrityError,
    "40": OperationalError,
    "53": OperationalError,
    "54": OperationalError,
    "55": OperationalError,
    "57": OperationalError,
    "58": OperationalError,
    "XX": InternalError,
}
"""By the class of the SQLSTATE; the others say that the statement is wrong."""


class _TypeObject:
    """Equal to the type codes of its columns: names of types, without lengths."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other.partition("(")[0] in self._names)

    def __hash__(self) -> int:
        return hash(self._names)


STRING = _TypeObject("STRING", "VARCHAR", "CHAR", "UUID", "JSONB")
BINARY = _TypeObject("BYTES")
NUMBER = _TypeObject("INT2", "INT4", "INT8", "FLOAT4", "FLOAT8", "DECIMAL")
DATETIME = _TypeObject("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL")
ROWID = _TypeObject()

Date, Time, Timestamp, Binary = dt.date, dt.time, dt.datetime, bytes
DateFromTicks = dt.date.fromtimestamp
TimestampFromTicks = dt.datetime.fromtimestamp


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802  the name is PEP 249's
    return TimestampFromTicks(ticks).time()


_stores: dict[str, tuple[Database, int]] = {}
_stores_lock = Lock()
"""Held while stores are opened and closed: the open ones by path, and how many use each."""


def connect(path: str | PathLike[str], database: str | None = None) -> Connection:
    """A connection to the store in the folder `path`, or to a new one in memory for ":memory:".

    Raises OperationalError where the store cannot be opened.
    """
    key = str(path) if str(path) == ":memory:" else str(Path(path).resolve())
    with _stores_lock:
        store, uses = _stores.get(key, (None, 0))
        if store is None:
            try:
                store = open_store(path)
            except TailraceError as error:
                raise OperationalError(str(error)) from error
        if key != ":memory:":
            _stores[key] = (store, uses + 1)
    return Connection(store, key, database)


def _leave(store: Database, key: str) -> None:
    with _stores_lock:
        _, uses = _stores.get(key, (store, 1))
        if uses > 1:
            _stores[key] = (store, uses - 1)
            return
        _stores.pop(key, None)
        store.close()


class Connection:
    """A session. A transaction begins with the first statement behind `commit` or `rollback`,
    unless `autocommit` is set: then each statement is one, and BEGIN a statement as any other."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError = InternalError, ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, store: Database, key: str, database: str | None) -> None:
        self.autocommit = False
        self._store = store
        self._key = key
        self._session: Session | None = store.session(database=database)
        self._begun = False

    def cursor(self) -> Cursor:
        self._open()
        return Cursor(self)

    def commit(self) -> None:
        self._end("COMMIT")

    def rollback(self) -> None:
        self._end("ROLLBACK")

    def close(self) -> None:
        """Rolls back what is open. Closing twice is closing once."""
        session, self._session = self._session, None
        if session is not None:
            session.close()
            _leave(self._store, self._key)

    def run(self, text: str, parameters: Sequence[object]) -> Result:
        """The result of the last statement of `text`, whose parameters are `$1`, `$2`, …"""
        session = self._open()
        try:
            if not self.autocommit and not self._begun:
                session.sql("BEGIN")
                self._begun = True
            return session.sql(text, parameters)
        except SQLError as error:
            _raise(error)

    def _end(self, how: str) -> None:
        session = self._open()
        begun, self._begun = self._begun, False
        if begun:
            try:
                session.sql(how)
            except SQLError as error:
                _raise(error)

    def _open(self) -> Session:
        if self._session is None:
            raise InterfaceError("the connection is closed")
        return self._session

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()


class Cursor:
    """One statement after another, and the rows of the last."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self._result: Result | None = None
        self._closed = False

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Runs a statement in which `%s` or `%(name)s` stand for parameters. Without `parameters`
        a percent sign is itself."""
        if self._closed:
            raise InterfaceError("the cursor is closed")
        text, given = (operation, []) if parameters is None else _numbered(operation, parameters)
        self.description, self.rowcount, self._result = None, -1, None
        result = self.connection.run(text, given)
        self.rowcount = result.row_count
        if result.columns:
            self._result = result
            self.description = [
                (column.name, column.type.sql_name, None, None, None, None, None)
                for column in result.columns
            ]
        return self

    def executemany(self, operation: str, many: Sequence[Parameters]) -> None:
        count = 0
        for parameters in many:
            count += max(self.execute(operation, parameters).rowcount, 0)
        self.rowcount = count

    def fetchone(self) -> Row | None:
        return self._fetching().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        return self._fetching().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        return self._fetching().fetchall()

    def setinputsizes(self, sizes: object) -> None:
        """PEP 249's; parameters have the types of what they meet."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """PEP 249's; values come whole."""

    def close(self) -> None:
        self._closed, self._result = True, None

    def _fetching(self) -> Result:
        if self._closed or self._result is None:
            raise InterfaceError("there is no result to fetch from")
        return self._result

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchone, None)

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_PLACEHOLDER = re.compile(r"%(?:\((?P<name>[^)]*)\)s|(?P<sign>[s%])|.?)", re.DOTALL)


def _numbered(operation: str, parameters: Parameters) -> tuple[str, list[object]]:
    """The statement with `$1`, `$2`, … for its placeholders, and their values. A name that comes
    again is the same parameter. Raises ProgrammingError.

    >>> _numbered("SELECT %(a)s, %(b)s, %(a)s, 5 %% 2", {"a": 1, "b": 2})
    ('SELECT $1, $2, $1, 5 % 2', [1, 2])
    """
    names: dict[str, int] = {}
    values: list[object] = []

    def number(found: re.Match[str]) -> str:
        name, sign = found["name"], found["sign"]
        if sign == "%":
            return "%"
        try:
            if name is not None and isinstance(parameters, Mapping):
                if name not in names:
                    values.append(parameters[name])
                    names[name] = len(values)
                return f"${names[name]}"
            if sign == "s" and not isinstance(parameters, Mapping):
                values.append(parameters[len(values)])
                return f"${len(values)}"
        except LookupError as error:
            raise ProgrammingError(f"there is no value for {found[0]}") from error
        raise ProgrammingError(
            f"{found[0]!r} is no placeholder of these parameters: write %s for those of a "
            "sequence, %(name)s for those of a mapping, and %% for a percent sign"
        )

    text = _PLACEHOLDER.sub(number, operation)
    if not isinstance(parameters, Mapping) and len(values) != len(parameters):
        raise ProgrammingError(f"{len(parameters)} values for {len(values)} placeholders")
    return text, values


def _raise(error: SQLError) -> NoReturn:
    kind = _CLASSES.get(error.sqlstate[:2], ProgrammingError)
    raised = kind(str(error))
    raised.sqlstate, raised.detail, raised.hint = error.sqlstate, error.detail, error.hint
    raise raised from error
