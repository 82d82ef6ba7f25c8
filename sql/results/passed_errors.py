"""Errors of our functions on their way through DuckDB, which passes on nothing but a text."""

from __future__ import annotations

from ...catalog.values.errors import SQLError

_OWN = "SQLSTATE "


_FIELDS = "\x1f"


def passed_on(error: SQLError) -> ValueError:
    """Returns an exception for DuckDB, which passes only its text on, with the SQLError marked
    in it."""
    told = (error.message, error.detail or "", error.hint or "", "")
    return ValueError(f"{_OWN}{error.sqlstate}: {_FIELDS.join(told)}")


def taken_back(message: str) -> SQLError | None:
    """Returns the SQLError marked in a text; None for an error of DuckDB's own."""
    _, marked, told = message.partition(_OWN)
    if not marked:
        return None
    text, detail, hint, _ = told[7:].rsplit(_FIELDS, 3)  # a message may quote anything
    return SQLError(told[:5], text, detail=detail or None, hint=hint or None)
