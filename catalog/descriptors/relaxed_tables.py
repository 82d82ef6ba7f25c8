"""Tables that a relaxed log writes, and nobody else."""

from __future__ import annotations

from ..values.errors import SQLError
from .descriptor import TableDescriptor

RELAXED_LOG = "relaxed_log"
"""The parameter that names the log. No statement sets it but CREATE RELAXED LOG."""


def refuse_other_writers(table: TableDescriptor) -> None:
    """Raises SQLError 55000 where the table is a relaxed log's."""
    log = table.parameters.get(RELAXED_LOG)
    if log is not None:
        raise SQLError(
            "55000",
            f'table "{table.name}" is written by relaxed log "{log}" alone',
            hint=f"Write to the store that the log is of, or run DROP RELAXED LOG {log} first.",
        )
