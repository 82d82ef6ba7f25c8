"""Patterns of dates and times, as to_char() reads them: constants, of words that DuckDB can write.

YYYY-MM-DD HH24:MI:SS       2021-03-02 14:05:06
FMDD FMMonth, "at" HH24hMI  2 March, at 14h05
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from ..builtins.templates import call, duckdb, text
from ..syntax.refusals import error_at, unsupported

_NUMBERS: dict[str, str] = {
    "YYYY": "lpad(CAST(year(:x) AS VARCHAR), 4, '0')",
    "YY": "right(lpad(CAST(year(:x) AS VARCHAR), 4, '0'), 2)",
    "MM": "strftime(:x, '%m')",
    "DD": "strftime(:x, '%d')",
    "DDD": "lpad(CAST(dayofyear(:x) AS VARCHAR), 3, '0')",
    "HH24": "strftime(:x, '%H')",
    "HH12": "strftime(:x, '%I')",
    "HH": "strftime(:x, '%I')",
    "MI": "strftime(:x, '%M')",
    "SS": "strftime(:x, '%S')",
    "MS": "strftime(:x, '%g')",
    "US": "strftime(:x, '%f')",
    "Q": "CAST(quarter(:x) AS VARCHAR)",
    "IYYY": "strftime(:x, '%G')",
    "IW": "strftime(:x, '%V')",
    "ID": "strftime(:x, '%u')",
    "D": "CAST(dayofweek(:x) + 1 AS VARCHAR)",
}
"""Words in capitals or small letters; FM before one writes the number without zeros."""
_NAMES: dict[str, str] = {
    "AM": "strftime(:x, '%p')",
    "PM": "strftime(:x, '%p')",
    "Month": "rpad(monthname(:x), 9, ' ')",
    "Mon": "left(monthname(:x), 3)",
    "Day": "rpad(dayname(:x), 9, ' ')",
    "Dy": "left(dayname(:x), 3)",
    "OF": "strftime(:x, '%z')",
}
"""Words that are written in the case in which they stand; FM before one leaves out its blanks."""
_NAMED = {
    **_NAMES,
    **{word.upper(): f"upper({template})" for word, template in _NAMES.items()},
    **{word.lower(): f"lower({template})" for word, template in _NAMES.items()},
}
_REFUSED = frozenset(
    """
    A.D. A.M. AD B.C. BC CC FF1 FF2 FF3 FF4 FF5 FF6 FM FX I IDDD IY IYY J P.M. RM SP SSSS SSSSS TH
    TM TZH TZM W WW Y Y,YYY YYY
    """.split()  # noqa: SIM905 (a list of words is read as such)
)
_ZONE = "TZ"
_WORDS = sorted(
    {
        form
        for word in (*_NUMBERS, _ZONE, *_REFUSED)
        for form in (word, word.lower())
    }
    | set(_NAMED),
    key=len,
    reverse=True,
)  # fmt: skip


_TOKENS = re.compile(
    rf"""
      (?P<unfilled> FM|fm)? (?P<word> {"|".join(map(re.escape, _WORDS))})
    | (?P<refused> FM|fm)
    | "(?P<quoted> (?: \\. | [^"] )* )"?
    | (?P<letter> \\" | .)
    """,
    re.VERBOSE | re.DOTALL,
)


def by_pattern(moment: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """Returns to_char() of a date or timestamp: NULL for an empty pattern. Raises SQLError 0A000
    for a pattern that is no constant, and for a word that is not offered."""
    constant = pattern.unnest()
    if not isinstance(constant, exp.Literal) or not constant.is_string:
        raise error_at(
            pattern,
            "0A000",
            "to_char() takes a constant pattern",
            "CASE chooses among calls with several patterns.",
        )
    made: exp.Expr | None = None
    for piece in _pieces(constant, moment):
        made = piece if made is None else exp.DPipe(this=made, expression=piece)
    return exp.Null() if made is None else exp.paren(made, copy=False)


def _pieces(constant: exp.Literal, moment: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions whose texts, one behind the other, are the moment's text."""
    for token in _TOKENS.finditer(constant.this):
        word = token["word"]
        if token["refused"] is not None or (word and word.upper() in _REFUSED):
            raise unsupported(
                f'"{token[0]}" in a pattern of to_char()',
                constant,
                "extract() takes a field of a moment.",
            )
        if word is not None:
            yield _written(word, moment, unfilled=token["unfilled"] is not None)
        elif token["quoted"] is not None:
            yield text(re.sub(r"\\(.)", r"\1", token["quoted"]))
        else:
            yield text(token["letter"][-1])


def _written(word: str, moment: exp.Expr, *, unfilled: bool) -> exp.Expr:
    if word.upper() == _ZONE:
        name = call("zone_abbreviation", exp.cast(moment.copy(), "TIMESTAMPTZ"))
        return name if word == _ZONE else duckdb("lower(:x)", x=name)
    if word in _NAMED:
        return duckdb(f"rtrim({_NAMED[word]})" if unfilled else _NAMED[word], x=moment)
    template = _NUMBERS[word.upper()]
    return duckdb(
        f"CAST(CAST({template} AS INTEGER) AS VARCHAR)" if unfilled else template, x=moment
    )
