"""Functions that tell the time: the transaction's, and the clock's as it goes on.

now() and transaction_timestamp() are parameters of the statement, and so is statement_timestamp()
(`client_functions`). clock_timestamp() is read anew for each row, and is never before these.
"""

from __future__ import annotations

from sqlglot import exp

from ..builtins.templates import duckdb, plain

_CLOCK = "greatest(make_timestamptz(wall_clock_us()), :s)"
CLOCKS = ("transaction_timestamp", "clock_timestamp")


def read(name: str) -> exp.Expr:
    if name == "transaction_timestamp":
        return exp.CurrentTimestamp()
    return duckdb(_CLOCK, s=plain("statement_timestamp"))
