"""The result of `Database.sql`, with the names that Python's database libraries use."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..kvlayer.clock import Timestamp
from ..sql import Result as StatementResult
from ..sql import ResultColumn, Row

if TYPE_CHECKING:
    import pandas
    import polars

SHOWN_ROWS = 20
"""Rows of a result that a notebook shows; the page says how many more there are."""


class Result:
    """The outcome of one statement, whole.

    `tag` is PostgreSQL's command tag (`SELECT 3`, `INSERT 0 1`), `row_count` the rows returned, or
    written. Statements that return no rows are empty results without columns. `commit_timestamp` is
    set when the statement committed by itself. `notice` and `warnings` are what the server says
    beside the answer.

    Rows are tuples of Python values, in the order of `columns`. Iteration begins at the first row
    each time; `fetchone` and `fetchmany` go on from where they stopped.
    """

    def __init__(self, result: StatementResult) -> None:
        self._result = result
        self._rows: list[Row] | None = None
        self._fetched_count = 0

    @property
    def tag(self) -> str:
        return self._result.tag

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return self._result.columns

    @property
    def row_count(self) -> int:
        return self._result.row_count

    @property
    def commit_timestamp(self) -> Timestamp | None:
        return self._result.commit_timestamp

    @property
    def notice(self) -> str | None:
        return self._result.notice

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._result.warnings

    def fetchall(self) -> list[Row]:
        """The rows that `fetchone` and `fetchmany` have not returned."""
        return self.fetchmany(len(self))

    def fetchmany(self, count: int) -> list[Row]:
        """The next `count` rows, or as many as there are."""
        rows = self._whole()[self._fetched_count : self._fetched_count + count]
        self._fetched_count += len(rows)
        return rows

    def fetchone(self) -> Row | None:
        """The next row, or None behind the last."""
        return next(iter(self.fetchmany(1)), None)

    def arrow(self) -> pa.Table:
        """All rows as Arrow. Names of columns may repeat."""
        return self._result.fetch_arrow()

    def df(self) -> pandas.DataFrame:
        """All rows as a pandas frame. Needs pandas."""
        return self.arrow().to_pandas()

    def pl(self) -> polars.DataFrame:
        """All rows as a polars frame. Needs polars."""
        import polars

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame), frame
        return frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule protocol: `polars.DataFrame(result)`, `pyarrow.table(result)`."""
        table: Any = self.arrow()
        return table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._whole())

    def __len__(self) -> int:
        """Rows returned: 0 for a statement that returns none."""
        return self.row_count if self._result.returns_rows else 0

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"<Result {self.tag}{f': {names}' if names else ''}>"

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        if not self._result.returns_rows:
            return f"<p>{escape(self.tag)}</p>"
        head = "".join(f"<th>{escape(column.name)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{_shown(datum)}</td>" for datum in row) + "</tr>"
            for row in self._whole()[:SHOWN_ROWS]
        )
        rest = len(self) - SHOWN_ROWS
        more = f"<p>… and {rest} more rows</p>" if rest > 0 else ""
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
            f"<p>{escape(self.tag)}</p>"
        )

    def _whole(self) -> list[Row]:
        if self._rows is None:
            self._rows = self._result.fetch_rows()
        return self._rows


def _shown(datum: object) -> str:
    return "NULL" if datum is None else escape(str(datum))
