"""generate_series() of decimals."""

from __future__ import annotations

from decimal import Context, Decimal

from ....catalog.values.errors import SQLError

_EXACT = Context(prec=100)
_VALUES_MAX = 10_000_000
"""A series is a list in memory: longer ones would take gigabytes."""


def decimal_series(start: str, stop: str, step: str) -> list[str]:
    """Decimals as their texts, to `stop` at most. Raises SQLError 22023, 54000."""
    first, last, each = Decimal(start), Decimal(stop), Decimal(step)
    if each == 0:
        raise SQLError("22023", "step size cannot equal zero")
    count = int(_EXACT.divide_int(_EXACT.subtract(last, first), each))
    if (last - first) / each < 0:
        return []
    if count >= _VALUES_MAX:
        raise SQLError(
            "54000",
            f"a series of decimals has {_VALUES_MAX} values at most",
            hint="Multiply a series of integers.",
        )
    return [f"{_EXACT.fma(each, Decimal(place), first):f}" for place in range(count + 1)]
