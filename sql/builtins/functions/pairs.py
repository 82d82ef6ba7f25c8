"""Aggregates of pairs of floats: correlation, covariance, and the line of the least squares.

Sums and sums of squared differences are carried along row by row, as PostgreSQL does it (Youngs and
Cramer, 1971: "Updating mean and variance estimates"), so that results agree to the last bit for
rows in the same order. A row is a dictionary of `a`, which is Y, and `b`, which is X.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ....catalog.values.errors import SQLError

Row = Mapping[str, float | None]


@dataclass(slots=True)
class Moments:
    """`sxx`, `syy` and `sxy` are the sums of products of differences from the averages."""

    count: float = 0.0
    sx: float = 0.0
    sxx: float = 0.0
    sy: float = 0.0
    syy: float = 0.0
    sxy: float = 0.0

    def add(self, y: float, x: float) -> None:
        before, first = self, self.count == 0.0
        sx_before, sy_before = before.sx, before.sy
        self.count += 1.0
        self.sx += x
        self.sy += y
        if first:
            # A first number that is none, or is infinite, leaves no differences that are any.
            self.sxx = 0.0 if math.isfinite(x) else math.nan
            self.syy = 0.0 if math.isfinite(y) else math.nan
            self.sxy = 0.0 if math.isfinite(x) and math.isfinite(y) else math.nan
            return
        off_x, off_y = x * self.count - self.sx, y * self.count - self.sy
        scale = 1.0 / (self.count * (self.count - 1.0))
        self.sxx += off_x * off_x * scale
        self.syy += off_y * off_y * scale
        self.sxy += off_x * off_y * scale
        self._check(sx_before, sy_before, x, y)

    def _check(self, sx: float, sy: float, x: float, y: float) -> None:
        """Raises SQLError 22003 where finite numbers made an infinite sum."""
        found = (self.sx, self.sxx, self.sy, self.syy, self.sxy)
        if not any(map(math.isinf, found)):
            return
        over_x = (math.isinf(self.sx) or math.isinf(self.sxx)) and not (
            math.isinf(sx) or math.isinf(x)
        )
        over_y = (math.isinf(self.sy) or math.isinf(self.syy)) and not (
            math.isinf(sy) or math.isinf(y)
        )
        over_xy = math.isinf(self.sxy) and not any(map(math.isinf, (sx, x, sy, y)))
        if over_x or over_y or over_xy:
            raise SQLError("22003", "value out of range: overflow")
        self.sxx = math.nan if math.isinf(self.sxx) else self.sxx
        self.syy = math.nan if math.isinf(self.syy) else self.syy
        self.sxy = math.nan if math.isinf(self.sxy) else self.sxy


def _moments(rows: Iterable[Row]) -> Moments:
    made = Moments()
    for row in rows:
        y, x = row["a"], row["b"]
        if y is not None and x is not None:
            made.add(y, x)
    return made


def of_pairs(compute: Callable[[Moments], float | None]) -> Callable[[Iterable[Row]], float | None]:
    return lambda rows: compute(_moments(rows))


def corr(m: Moments) -> float | None:
    if m.count < 1 or m.sxx == 0 or m.syy == 0:
        return None
    return m.sxy / math.sqrt(m.sxx * m.syy)


def covar_pop(m: Moments) -> float | None:
    return m.sxy / m.count if m.count >= 1 else None


def covar_samp(m: Moments) -> float | None:
    return m.sxy / (m.count - 1.0) if m.count >= 2 else None


def regr_avgx(m: Moments) -> float | None:
    return m.sx / m.count if m.count >= 1 else None


def regr_avgy(m: Moments) -> float | None:
    return m.sy / m.count if m.count >= 1 else None


def regr_sxx(m: Moments) -> float | None:
    return m.sxx if m.count >= 1 else None


def regr_syy(m: Moments) -> float | None:
    return m.syy if m.count >= 1 else None


def regr_sxy(m: Moments) -> float | None:
    return m.sxy if m.count >= 1 else None


def regr_slope(m: Moments) -> float | None:
    return m.sxy / m.sxx if m.count >= 1 and m.sxx != 0 else None


def regr_intercept(m: Moments) -> float | None:
    if m.count < 1 or m.sxx == 0:
        return None
    return (m.sy - m.sx * m.sxy / m.sxx) / m.count


def regr_r2(m: Moments) -> float | None:
    if m.count < 1 or m.sxx == 0:
        return None
    if m.syy == 0:
        return 1.0
    return (m.sxy * m.sxy) / (m.sxx * m.syy)


AGGREGATES = {
    one.__name__: of_pairs(one)
    for one in (corr, covar_pop, covar_samp, regr_avgx, regr_avgy, regr_sxx, regr_syy, regr_sxy,
                regr_slope, regr_intercept, regr_r2)
}  # fmt: skip
