"""Dates and times: their fields, date_trunc(), and patterns of to_char() and to_date()."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from ...catalog.column_types import ColumnType
from ...catalog.errors import SQLError
from ...catalog.session_zone import UTC_NAME, zone_name
from ...catalog.type_kinds import TypeKind
from ..parser import position_of
from .signatures import NUMBERS
from .templates import duckdb, plain, text
from .type_names import type_name
from .types import Types

_FIELDS = {
    "year", "years", "month", "months", "day", "days", "dow", "isodow", "doy", "week", "isoyear",
    "quarter", "decade", "century", "millennium", "hour", "hours", "minute", "minutes", "timezone",
    "timezone_hour", "timezone_minute",
}  # fmt: skip
_OF_CLOCK = {"hour", "hours", "minute", "minutes", "second", "seconds", "milliseconds",
             "millisecond", "microseconds", "microsecond"}  # fmt: skip
_FRACTIONS = {
    "second": "date_part('microseconds', :x) * 0.000001",
    "milliseconds": "date_part('microseconds', :x) * 0.001",
    "microseconds": "date_part('microseconds', :x)",
    "epoch": "CAST(epoch_us(:x) AS DECIMAL(30, 0)) * 0.000001",
    "julian": "CAST(julian(:x) AS DECIMAL(30, 9))",
}
_EPOCH_OF_INTERVAL = """
CAST(date_part('year', :x) * 31557600 + date_part('month', :x) * 2592000
    + date_part('day', :x) * 86400 + date_part('hour', :x) * 3600
    + date_part('minute', :x) * 60 AS DECIMAL(30, 0))
+ CAST(date_part('microseconds', :x) * 0.000001 AS DECIMAL(30, 6))
"""
"""A year counts 365.25 days, and a month that makes no year 30."""
_SCALES = {"second": 6, "milliseconds": 3, "epoch": 6, "julian": 9}
_SINGULAR = {"seconds": "second", "millisecond": "milliseconds", "microsecond": "microseconds"}


def field(unit: str, moment: exp.Expr, types: Types, *, tree: exp.Expr) -> exp.Expr:
    """A field of a moment as a decimal, as extract() has it. Raises SQLError 22023, 0A000."""
    kind, unit = types.kind(moment), _SINGULAR.get(unit.lower(), unit.lower())
    type = types.of(moment) or ColumnType(TypeKind.TIMESTAMP)
    if kind is TypeKind.DATE and (unit in _OF_CLOCK or unit.startswith("timezone")):
        raise SQLError(
            "0A000",
            f'unit "{unit}" not supported for type {type_name(type)}',
            position=position_of(tree),
        )
    if kind is TypeKind.INTERVAL and unit == "epoch":
        return duckdb(_EPOCH_OF_INTERVAL, x=moment)
    if unit in _FIELDS:
        return duckdb(f"CAST(date_part('{unit}', :x) AS DECIMAL(18, 0))", x=moment)
    if unit not in _FRACTIONS:
        raise SQLError(
            "22023",
            f'unit "{unit}" not recognized for type {type_name(type)}',
            position=position_of(tree),
        )
    scale = 0 if kind is TypeKind.DATE else _SCALES.get(unit, 0)
    return duckdb(f"CAST({_FRACTIONS[unit]} AS DECIMAL(38, {scale}))", x=moment)


def part(arguments: list[exp.Expr], types: Types, *, tree: exp.Expr) -> exp.Expr:
    """date_part(): the same as a float."""
    unit = _constant(arguments[0], tree, "date_part() takes a constant field")
    return exp.cast(field(unit, arguments[1], types, tree=tree), "DOUBLE")


_UNITS = {
    "microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter",
    "year", "decade", "century", "millennium",
}  # fmt: skip


def truncated(arguments: list[exp.Expr], types: Types, *, tree: exp.Expr) -> exp.Expr:
    """date_trunc(). Centuries and millennia begin with their year 1."""
    unit = _constant(arguments[0], tree, "date_trunc() takes a constant unit").lower()
    if unit not in _UNITS and unit.rstrip("s") in _UNITS:
        unit = unit.rstrip("s")
    type = types.of(arguments[1]) or ColumnType(TypeKind.TIMESTAMP)
    if unit not in _UNITS:
        raise SQLError(
            "22023",
            f'unit "{unit}" not recognized for type {type_name(type)}',
            position=position_of(tree),
        )
    if len(arguments) > 2:
        template = f"timezone(:z, date_trunc('{unit}', timezone(:z, :x)))"
        return duckdb(template, x=arguments[1], z=arguments[2])
    moment = arguments[1].copy()
    if type.kind in (TypeKind.INTERVAL, TypeKind.TIME):
        return plain("interval_truncated", text(unit), moment)
    if type.kind is TypeKind.DATE:
        moment = exp.cast(moment, "TIMESTAMPTZ")
    if unit in ("century", "millennium"):
        year = "INTERVAL 1 YEAR"
        return duckdb(f"date_trunc('{unit}', :x - {year}) + {year}", x=moment)
    return plain("date_trunc", text(unit), moment)


def _constant(argument: exp.Expr, tree: exp.Expr, what: str) -> str:
    inner = argument.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string:
        return str(inner.this)
    raise SQLError("0A000", what, position=position_of(tree))


_WRITTEN: tuple[tuple[str, str], ...] = (
    ("HH24", "strftime(:x, '%H')"),
    ("HH12", "strftime(:x, '%I')"),
    ("HH", "strftime(:x, '%I')"),
    ("MI", "strftime(:x, '%M')"),
    ("SSSS", "CAST(epoch(CAST(:x AS TIME)) AS BIGINT)"),
    ("SS", "strftime(:x, '%S')"),
    ("MS", "strftime(:x, '%g')"),
    ("US", "strftime(:x, '%f')"),
    ("AM", "strftime(:x, '%p')"),
    ("PM", "strftime(:x, '%p')"),
    ("am", "lower(strftime(:x, '%p'))"),
    ("pm", "lower(strftime(:x, '%p'))"),
    ("YYYY", "lpad(CAST(year(:x) AS VARCHAR), 4, '0')"),
    ("IYYY", "lpad(CAST(isoyear(:x) AS VARCHAR), 4, '0')"),
    ("YYY", "right(lpad(CAST(year(:x) AS VARCHAR), 4, '0'), 3)"),
    ("YY", "right(lpad(CAST(year(:x) AS VARCHAR), 4, '0'), 2)"),
    ("MONTH", "rpad(upper(monthname(:x)), 9, ' ')"),
    ("Month", "rpad(monthname(:x), 9, ' ')"),
    ("month", "rpad(lower(monthname(:x)), 9, ' ')"),
    ("MON", "upper(left(monthname(:x), 3))"),
    ("Mon", "left(monthname(:x), 3)"),
    ("mon", "lower(left(monthname(:x), 3))"),
    ("MM", "strftime(:x, '%m')"),
    ("DAY", "rpad(upper(dayname(:x)), 9, ' ')"),
    ("Day", "rpad(dayname(:x), 9, ' ')"),
    ("day", "rpad(lower(dayname(:x)), 9, ' ')"),
    ("DY", "upper(left(dayname(:x), 3))"),
    ("Dy", "left(dayname(:x), 3)"),
    ("dy", "lower(left(dayname(:x), 3))"),
    ("DDD", "lpad(CAST(dayofyear(:x) AS VARCHAR), 3, '0')"),
    ("DD", "strftime(:x, '%d')"),
    ("ID", "CAST(isodow(:x) AS VARCHAR)"),
    ("IW", "lpad(CAST(week(:x) AS VARCHAR), 2, '0')"),
    ("WW", "lpad(CAST((dayofyear(:x) - 1) // 7 + 1 AS VARCHAR), 2, '0')"),
    ("Q", "CAST(quarter(:x) AS VARCHAR)"),
    ("J", "CAST(CAST(julian(CAST(:x AS DATE)) AS BIGINT) AS VARCHAR)"),
    ("D", "CAST(dayofweek(:x) + 1 AS VARCHAR)"),
    ("OF", "'+00'"),
    ("TZ", "'UTC'"),
)
"""Patterns of to_char(), the longer before those that begin alike. OF and TZ are UTC's."""
_READ = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I",
    "MI": "%M", "SS": "%S", "MS": "%g", "US": "%f", "AM": "%p", "PM": "%p", "am": "%p", "pm": "%p",
    "Mon": "%b", "MON": "%b", "mon": "%b", "Month": "%B", "MONTH": "%B", "month": "%B",
    "DDD": "%j", "Dy": "%a", "DY": "%a", "dy": "%a", "Day": "%A", "DAY": "%A", "day": "%A",
}  # fmt: skip


def written(arguments: list[exp.Expr], types: Types, *, tree: exp.Expr) -> exp.Expr:
    """to_char() of a moment by a constant pattern."""
    moment, kind = arguments[0], types.kind(arguments[0])
    if kind in (*NUMBERS, TypeKind.INTERVAL):
        raise SQLError(
            "0A000",
            f"to_char() of {kind.value} is not supported",
            position=position_of(tree),
            hint="Dates and timestamps have to_char(); numbers have round() and ::TEXT.",
        )
    pattern = _constant(arguments[1], tree, "to_char() takes a constant pattern")
    pieces = [text("")]
    fill = True
    for word, template in _words(pattern):
        if word == "FM":
            fill = False
        elif word == "TH" and len(pieces) > 1:
            raise SQLError("0A000", "TH in a pattern of to_char() is not supported")
        elif word in ("OF", "TZ") and zone_name() != UTC_NAME:
            raise SQLError(
                "0A000",
                f"{word} in a pattern of to_char() is not supported in the zone {zone_name()}",
                hint="SET TIME ZONE 'UTC', or cast the moment to TEXT.",
            )
        elif template is None:
            pieces.append(text(word))
        else:
            piece = duckdb(template, x=moment)
            pieces.append(piece if fill else _without_fill(word, piece))
            fill = True
    made = pieces[0]
    for piece in pieces[1:]:
        made = exp.DPipe(this=made, expression=piece)
    return exp.paren(made, copy=False)


def _without_fill(word: str, piece: exp.Expr) -> exp.Expr:
    if word.isalpha() and word.lower() in ("month", "day"):
        return duckdb("rtrim(:x)", x=piece)
    return duckdb("coalesce(nullif(ltrim(:x, '0'), ''), '0')", x=piece)


def _words(pattern: str) -> Iterator[tuple[str, str | None]]:
    """The words of a pattern with what each means, or None for what stands for itself."""
    at = 0
    while at < len(pattern):
        if pattern[at] == '"':
            end = pattern.find('"', at + 1)
            end = len(pattern) if end < 0 else end
            yield pattern[at + 1 : end], None
            at = end + 1
            continue
        if pattern.startswith(("FM", "TH", "th"), at):
            yield pattern[at : at + 2].upper(), None
            at += 2
            continue
        found = next((pair for pair in _WRITTEN if pattern.startswith(pair[0], at)), None)
        if found is None and pattern[at].isalpha():
            found = next(
                (pair for pair in _WRITTEN if pattern[at:].upper().startswith(pair[0])), None
            )
        if found is None and pattern[at].isalpha():
            raise SQLError("0A000", f'"{pattern[at:]}" in a pattern of time is not supported')
        yield (found[0], found[1]) if found else (pattern[at], None)
        at += len(found[0]) if found else 1


def read(arguments: list[exp.Expr], name: str, *, tree: exp.Expr) -> exp.Expr:
    """to_date() and to_timestamp() by a constant pattern."""
    pattern = _constant(arguments[1], tree, f"{name}() takes a constant pattern")
    made: list[str] = []
    for word, template in _words(pattern):
        if template is None:
            made.append("" if word in ("FM", "TH") else word.replace("%", "%%"))
        elif word in _READ:
            made.append(_READ[word])
        else:
            raise SQLError("0A000", f'"{word}" in a pattern of {name}() is not supported')
    target = "DATE" if name == "to_date" else "TIMESTAMP WITH TIME ZONE"
    made_pattern = "".join(made).replace("'", "''")
    return duckdb(f"CAST(strptime(:x, '{made_pattern}') AS {target})", x=arguments[0])


def local(node: exp.Localtimestamp | exp.Localtime) -> exp.Expr:
    """The transaction's time by the session's clock."""
    moment = exp.cast(exp.CurrentTimestamp(), "TIMESTAMP")
    return exp.cast(moment, "TIME") if isinstance(node, exp.Localtime) else moment
