"""DuckDB's errors in our words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from ..protocol import SinkError, SinkRefused


class MirrorHeld(SinkError):
    """Another process holds the file. It may let go, so a feed tries again."""


def open_error(path: Path, error: duckdb.Error) -> SinkError | SinkRefused:
    """The error of a file that could not be opened: DuckDB's message alone tells which."""
    text = str(error)
    if "Could not set lock" in text:
        _, found, holder = text.partition("Conflicting lock is held in ")
        who = f": {holder.split('. See')[0].strip()}" if found else ""
        return MirrorHeld(f"mirror file {path} is held by another process{who}")
    if "not a valid DuckDB database" in text:
        return SinkRefused(f"mirror file {path} exists and is not a DuckDB database")
    return SinkError(f"mirror file {path} cannot be opened: {text}")


def file_error(path: Path, error: duckdb.Error) -> SinkError:
    """An error of a file that is open. What the feed made and does not find, others have taken."""
    text = str(error)
    lacks = isinstance(error, duckdb.BinderException | duckdb.CatalogException)
    if lacks and ("does not exist" in text or "not found" in text):
        text = (
            f"{text.splitlines()[0]} Others have altered the feed's tables: put the file back, or "
            "remove it, and the feed scans its tables again."
        )
    return SinkError(f"mirror file {path}: {text}")


def breaks_database(error: BaseException) -> bool:
    """Whether the instance is of no further use: it must be closed and opened again."""
    return isinstance(error, duckdb.FatalException | duckdb.InternalException) or (
        isinstance(error, duckdb.Error) and "database has been invalidated" in str(error)
    )


_ERRORS: Mapping[str, type[duckdb.Error]] = {
    "Binder Error": duckdb.BinderException,
    "Catalog Error": duckdb.CatalogException,
    "Conversion Error": duckdb.ConversionException,
    "INTERRUPT Error": duckdb.InterruptException,
    "Invalid Input Error": duckdb.InvalidInputException,
    "Not implemented Error": duckdb.NotImplementedException,
    "Out of Memory Error": duckdb.OutOfMemoryException,
    "Out of Range Error": duckdb.OutOfRangeException,
}


def duckdb_error(text: str) -> duckdb.Error:
    """The error as DuckDB would raise it: one that came through Arrow keeps its text alone."""
    return _ERRORS.get(text.partition(":")[0], duckdb.Error)(text)
