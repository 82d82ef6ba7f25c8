"""Python functions of one row, as DuckDB calls them with whole columns.

A row with NULL among its values has NULL, and an SQLError passes through DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

import duckdb
import pyarrow as pa

from ...catalog.values.errors import SQLError
from ..results.passed_errors import passed_on


def define(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    function: Callable[..., Any],
    result: tuple[str, pa.DataType],
    parameters: Sequence[str] | None = None,
) -> None:
    """Defines a function of plain values in an evaluator's database. `result` is its type for
    DuckDB and for Arrow. Without `parameters` it takes columns of whatever types and number."""
    create: Any = connection.create_function  # its stubs know no function over Arrow's columns
    count = None if parameters is None else len(parameters)
    call = told(over_columns(function, result[1]), count)
    create(name, call, parameters, result[0], type="arrow", null_handling="special")


def over_columns(function: Callable[..., Any], type: pa.DataType) -> Callable[..., Any]:
    """Returns the function on columns: NULL where a value is NULL."""

    def call(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([None if None in row else function(*row) for row in rows], type)

    return call


def told(function: Callable[..., Any], count: int | None = None) -> Callable[..., Any]:
    """Returns the function with errors that pass through DuckDB, which sees `count` parameters."""

    def call(*columns: Any) -> Any:
        try:
            return function(*columns)
        except SQLError as error:
            raise passed_on(error) from None

    if count is not None:
        places = (Parameter(f"argument_{at}", Parameter.POSITIONAL_ONLY) for at in range(count))
        call.__signature__ = Signature(list(places))  # type: ignore[attr-defined]  # DuckDB reads it
    return call
