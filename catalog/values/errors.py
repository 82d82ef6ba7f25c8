"""Errors that reach SQL: a SQLSTATE, a message, and optionally a detail, a hint and a position."""

from __future__ import annotations

from ...error import Error


class SQLError(Error):
    """An error of a statement, as its client is told of it.

    The message is in lower case and without a full stop; detail and hint are sentences. `position`
    is the one-based character of the statement at which it went wrong. Codes are those of
    PostgreSQL's appendix A. `statement` is set by sessions: the zero-based place of the statement
    that failed in a text of several.
    """

    def __init__(
        self,
        sqlstate: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message)
        assert len(sqlstate) == 5, sqlstate
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.statement: int | None = None

    def __str__(self) -> str:
        lines = [f"{self.message} (SQLSTATE {self.sqlstate})"]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)
