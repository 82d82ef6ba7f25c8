"""Dates and times: their fields, date_trunc(), patterns of to_char(), and clocks.

now() and transaction_timestamp() are parameters of the statement, and so is statement_timestamp()
(`client_functions`). clock_timestamp() is read anew for each row, and is never before these.

The patterns of to_char() are constants, of words that strftime() has:

    YYYY-MM-DD HH24:MI:SS       2021-03-02 14:05:06         %Y-%m-%d %H:%M:%S
    FMDD FMMonth, HH24"h"MI     2 March, 14h05              %-d %B, %Hh%M
"""

from __future__ import annotations

import re

from sqlglot import exp

from ...catalog.values.column_types import TIMESTAMP
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.scalars import DIGITS_HINT
from ..analyze.types.types import Types
from ..builtins.macros import call, duckdb, plain, text
from ..builtins.signatures import NUMBERS, type_name
from ..syntax.trees import error_at, position_of, unsupported
from .aggregates import around, in_place_of

_CLOCK = "greatest(make_timestamptz(wall_clock_us()), :s)"
CLOCKS = ("transaction_timestamp", "clock_timestamp")
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
    type = types.of(moment) or TIMESTAMP
    if kind is TypeKind.DATE and (unit in _OF_CLOCK or unit.startswith("timezone")):
        raise error_at(tree, "0A000", f'unit "{unit}" not supported for type {type_name(type)}')
    if kind is TypeKind.INTERVAL and unit == "epoch":
        return duckdb(_EPOCH_OF_INTERVAL, x=moment)
    if unit in _FIELDS:
        return duckdb(f"CAST(date_part('{unit}', :x) AS DECIMAL(18, 0))", x=moment)
    if unit not in _FRACTIONS:
        raise error_at(tree, "22023", f'unit "{unit}" not recognized for type {type_name(type)}')
    scale = 0 if kind is TypeKind.DATE else _SCALES.get(unit, 0)
    return duckdb(f"CAST({_FRACTIONS[unit]} AS DECIMAL(38, {scale}))", x=moment)


def part(arguments: list[exp.Expr], types: Types, *, tree: exp.Expr) -> exp.Expr:
    """date_part(): the same as a float."""
    unit = _constant(arguments[0], tree, "date_part() takes a constant field")
    return exp.cast(field(unit, arguments[1], types, tree=tree), "DOUBLE")


_UNITS = {
    "microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter",
    "year",
}  # fmt: skip


def truncated(arguments: list[exp.Expr], types: Types, *, tree: exp.Expr) -> exp.Expr:
    """date_trunc()."""
    unit = _constant(arguments[0], tree, "date_trunc() takes a constant unit").lower()
    if unit not in _UNITS and unit.rstrip("s") in _UNITS:
        unit = unit.rstrip("s")
    type = types.of(arguments[1]) or TIMESTAMP
    if unit not in _UNITS:
        raise error_at(tree, "22023", f'unit "{unit}" not recognized for type {type_name(type)}')
    if len(arguments) > 2:
        template = f"timezone(:z, date_trunc('{unit}', timezone(:z, :x)))"
        return duckdb(template, x=arguments[1], z=arguments[2])
    moment = arguments[1].copy()
    if type.kind is TypeKind.INTERVAL:
        raise unsupported("date_trunc() of an interval", tree, "extract() takes a field of it.")
    if type.kind is TypeKind.DATE:
        moment = exp.cast(moment, "TIMESTAMPTZ")
    return plain("date_trunc", text(unit), moment)


def _constant(argument: exp.Expr, tree: exp.Expr, what: str) -> str:
    inner = argument.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string:
        return str(inner.this)
    raise SQLError("0A000", what, position=position_of(tree))


_OF_NUMBERS = "round(x, 2)::TEXT writes the digits of a number, lpad() fills a text."
_OF_SPANS = "x::TEXT writes it, extract(hour FROM x) takes a field of it."
_NOT_WRITTEN = {
    **dict.fromkeys(NUMBERS, ("a number", _OF_NUMBERS)),
    TypeKind.INTERVAL: ("an interval", _OF_SPANS),
    TypeKind.TIME: ("a time", _OF_SPANS),
}
"""Operands of PostgreSQL's to_char() that have no patterns here, each with what does the same."""


def refuse_digits(node: exp.Expr, types: Types) -> None:
    """Raises SQLError 0A000 for `CURRENT_TIMESTAMP(3)`: a value has all six digits."""
    if node.this is not None and int(node.this.name) < 6:
        raise unsupported(f"{node.key}() of some digits", node, DIGITS_HINT)


def local(node: exp.Localtimestamp | exp.Localtime, types: Types) -> exp.Expr:
    """The transaction's time by the session's clock."""
    refuse_digits(node, types)
    moment = exp.cast(exp.CurrentTimestamp(), "TIMESTAMP")
    return exp.cast(moment, "TIME") if isinstance(node, exp.Localtime) else moment


def clock(name: str) -> exp.Expr:
    """The call of one of `CLOCKS` as DuckDB computes it."""
    if name == "transaction_timestamp":
        return exp.CurrentTimestamp()
    return duckdb(_CLOCK, s=plain("statement_timestamp"))


_OF_LISTS = {exp.Sum: "interval_sum", exp.Avg: "interval_average"}


def summed(tree: exp.Sum | exp.Avg, types: Types) -> bool:
    """sum() and avg() of intervals, with whatever FILTER and OVER they have: of a list of them."""
    if types.kind(tree) is not TypeKind.INTERVAL:
        return False
    listed = in_place_of(tree, exp.ArrayAgg(this=tree.this.copy()))
    around(tree).replace(call(_OF_LISTS[type(tree)], listed))
    return True


_NUMBERS = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "DDD": "%j", "HH24": "%H", "HH12": "%I",
    "HH": "%I", "MI": "%M", "SS": "%S", "MS": "%g", "US": "%f", "IYYY": "%G", "IW": "%V",
    "ID": "%u", "FMMM": "%-m", "FMDD": "%-d", "FMHH24": "%-H", "FMHH12": "%-I", "FMMI": "%-M",
}  # fmt: skip
"""Words in capitals or small letters; FM before one writes the number without zeros."""
_ZONE = "\1"
"""Stands for the zone's name, which strftime() does not write: no pattern may have it."""
_NAMES = {
    "AM": "%p", "PM": "%p", "Mon": "%b", "Dy": "%a", "FMMonth": "%B", "FMDay": "%A", "OF": "%z",
    "TZ": _ZONE, "%": "%%",
}  # fmt: skip
"""Words that are written in the case in which they stand, of which there is this one."""
_WORDS = "|".join(sorted((*_NUMBERS, *_NAMES, "SSSS"), key=len, reverse=True))
_TOKENS = re.compile(rf'"[^"]*"|{_WORDS}|[a-z"\\{_ZONE}]', re.IGNORECASE)
"""The parts of a pattern that do not stand for themselves."""


def written(arguments: list[exp.Expr], types: Types, *, tree: exp.Expr) -> exp.Expr:
    """to_char() of a date or a timestamp: NULL for an empty pattern. Raises SQLError 0A000 for
    other operands, for a pattern that is no constant, and for a word that is not offered."""
    moment, constant = arguments[0], arguments[1].unnest()
    kind = types.kind(moment)
    if kind in _NOT_WRITTEN:
        what, hint = _NOT_WRITTEN[kind]
        raise unsupported(f"to_char() of {what}", tree, hint)
    if not isinstance(constant, exp.Literal) or not constant.is_string:
        hint = "CASE chooses among calls with several patterns."
        raise error_at(constant, "0A000", "to_char() takes a constant pattern", hint)
    if not constant.this:
        return exp.Null()
    if kind is TypeKind.DATE:
        moment = exp.cast(moment.copy(), "TIMESTAMPTZ")
    form = _TOKENS.sub(lambda token: _form(token[0], constant), constant.this)
    made = plain("strftime", moment, text(form))
    if _ZONE not in form:
        return made
    zone = call("zone_abbreviation", exp.cast(moment.copy(), "TIMESTAMPTZ"))
    return plain("replace", made, text(_ZONE), zone)


def _form(word: str, constant: exp.Literal) -> str:
    """Returns what strftime() takes for a word, or for a text in quotes."""
    if len(word) > 1 and word[0] == '"':
        return word[1:-1].replace("%", "%%")
    form = _NAMES.get(word) or _NUMBERS.get(word.upper())
    if form is None:
        raise unsupported(
            f'"{word}" in a pattern of to_char()',
            constant,
            'A text stands in double quotes ("T"), extract() takes a field of a moment.',
        )
    return form
