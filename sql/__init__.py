"""SQL: statements in, results out.

The rooms, each of which imports only from those behind it:

    `session`        turns of statements, transactions, prepared statements, cursors
    `execute`        plans and statements carried out
    `introspection`  virtual tables
    `runtime`        what statements are executed with: services, rights, plans that are kept
    `plan`           from bound statements to plans; the rights that they need
    `lower`          queries in DuckDB's words
    `access`         rows by their keys
    `analyze`        names and types of a statement
    `parse`          from text to statements
    `builtins`       functions and operators
    `results`        rows, errors, and types as clients know them
    `syntax`, `variables`   statements as values; what SET sets

It promises that every error of a statement is an `SQLError` with a SQLSTATE, that a statement sees
its transaction's own writes, and that a plan runs only under the versions of its tables that it was
made from, leased until the commit. It must never know how statements arrive: bytes on wires are the
doors' business.

`Session` is the face, and `Services` what it needs of a node. Doors import what is listed here, and
from `session`, `results`, `syntax` and `variables`; `api.node` puts the other rooms together.
"""

from .execute.query.duckdb import Analytics
from .execute.query.worker import PlacedAnalytics
from .execute.write.copy import CopyIn
from .execute.write.dml import Apart
from .execute.write.load import ROWS_PER_TRANSACTION, Batches, LoadMode, LoadReport, load
from .parse.lexer import statement_ends
from .results.result_batches import ResultBatches
from .results.results import ClosedOnError, Result, ResultColumn, Row
from .runtime.activity import SessionState, statement_begun
from .runtime.services import Services
from .session.mirror_session import MirrorSession
from .session.session import Session

__all__ = [
    "ROWS_PER_TRANSACTION",
    "Analytics",
    "Apart",
    "Batches",
    "ClosedOnError",
    "CopyIn",
    "LoadMode",
    "LoadReport",
    "MirrorSession",
    "PlacedAnalytics",
    "Result",
    "ResultBatches",
    "ResultColumn",
    "Row",
    "Services",
    "Session",
    "SessionState",
    "load",
    "statement_begun",
    "statement_ends",
]
