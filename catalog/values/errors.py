"""Errors that reach SQL: a SQLSTATE, a message, and optionally a detail, a hint and a position."""

from __future__ import annotations

from dataclasses import dataclass

from ...error import Error


@dataclass(frozen=True, slots=True)
class Violated:
    """The names of what an error of class 23 is about, which clients are told in fields of their
    own: programs tell by the constraint which of their rules was broken."""

    table: str
    column: str | None = None
    constraint: str | None = None


class SQLError(Error):
    """An error of a statement, as its client is told of it.

    The message is in lower case and without a full stop; detail and hint are sentences. `position`
    is the one-based character of the statement at which it went wrong. Codes are those of
    PostgreSQL's appendix A. `routine` is the function of PostgreSQL's source that raises the error,
    given only where drivers tell the error by it. `statement` is set by sessions: the zero-based
    place of the statement that failed in a text of several.
    """

    def __init__(
        self,
        sqlstate: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        violated: Violated | None = None,
        routine: str | None = None,
    ) -> None:
        super().__init__(message)
        assert len(sqlstate) == 5, sqlstate
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.violated = violated
        self.routine = routine
        self.statement: int | None = None

    def __str__(self) -> str:
        lines = [f"{self.message} (SQLSTATE {self.sqlstate})"]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)


def null_value(table: str, column: str, *, detail: str | None = None) -> SQLError:
    """Returns the error (23502) for a row without a value that it must have."""
    return SQLError(
        "23502",
        f'null value in column "{column}" of relation "{table}" violates not-null constraint',
        detail=detail,
        violated=Violated(table, column=column),
    )
