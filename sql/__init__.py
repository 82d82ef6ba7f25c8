"""SQL: statements in, results out.

What lives here: the parser, the binder and planner, execution (by key in Python, by DuckDB over
snapshots, DML, DDL), and sessions. It promises that every error of a statement is an `SQLError`
with a SQLSTATE, that a statement sees its transaction's own writes, and that a plan runs only under
the versions of its tables that it was made from, leased until the commit. It must never know how
statements arrive: bytes on wires are the doors' business.

`Session` is the face; `Services` is what it needs of a node.
"""

from .executor.duckdb import Analytics
from .executor.load import LoadMode, LoadReport, load
from .result_batches import ResultBatches
from .results import ClosedOnError, Result, ResultColumn, Row
from .services import (
    ChangefeedRequest,
    Changefeeds,
    ChangefeedStream,
    Jobs,
    JobSummary,
    Services,
)
from .session import Session
from .session_state import SessionState

__all__ = [
    "Analytics",
    "ChangefeedRequest",
    "ChangefeedStream",
    "Changefeeds",
    "ClosedOnError",
    "JobSummary",
    "Jobs",
    "LoadMode",
    "LoadReport",
    "Result",
    "ResultBatches",
    "ResultColumn",
    "Row",
    "Services",
    "Session",
    "SessionState",
    "load",
]
