"""Patterns of dates and times, as to_char() reads them: constants, of words that strftime() has.

YYYY-MM-DD HH24:MI:SS       2021-03-02 14:05:06         %Y-%m-%d %H:%M:%S
FMDD FMMonth, "at" HH24hMI  2 March, at 14h05           %-d %B, at %Hh%M
"""

from __future__ import annotations

import re

from sqlglot import exp

from ..builtins.templates import call, plain, text
from ..syntax.refusals import error_at, unsupported

_NUMBERS = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "DDD": "%j", "HH24": "%H", "HH12": "%I",
    "HH": "%I", "MI": "%M", "SS": "%S", "MS": "%g", "US": "%f", "IYYY": "%G", "IW": "%V",
    "ID": "%u", "FMMM": "%-m", "FMDD": "%-d", "FMDDD": "%-j", "FMHH24": "%-H", "FMHH12": "%-I",
    "FMHH": "%-I", "FMMI": "%-M",
}  # fmt: skip
"""Words in capitals or small letters; FM before one writes the number without zeros."""
_ZONE = "\0"
"""Stands for the zone's name, which strftime() does not write: no text has it."""
_NAMES = {
    "AM": "%p", "PM": "%p", "Mon": "%b", "Dy": "%a", "FMMon": "%b", "FMDy": "%a", "FMMonth": "%B",
    "FMDay": "%A", "OF": "%z", "TZ": _ZONE,
}  # fmt: skip
"""Words that are written in the case in which they stand, of which there is this one."""
_REFUSED = """
    A.D. A.M. AD B.C. BC CC D DAY FF1 FF2 FF3 FF4 FF5 FF6 FM FX I IDDD IY IYY J MONTH P.M. Q RM SP
    SSSS SSSSS TH TM TZH TZM W WW Y Y,YYY YYY
    """.split()  # noqa: SIM905 (a list of words is read as such)
_WORDS = sorted((*_NUMBERS, *_NAMES, *_REFUSED), key=len, reverse=True)
_TOKENS = re.compile(
    rf"""
      (?P<word> (?i: (?:FM)? (?:{"|".join(map(re.escape, _WORDS))})))
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
    if not constant.this:
        return exp.Null()
    tokens = _TOKENS.finditer(constant.this)
    first, *others = "".join(_form(token, constant) for token in tokens).split(_ZONE)
    made = _written(moment, first)
    for form in others:
        zone = call("zone_abbreviation", exp.cast(moment.copy(), "TIMESTAMPTZ"))
        named = exp.DPipe(this=made, expression=zone)
        made = exp.DPipe(this=named, expression=_written(moment, form))
    return exp.paren(made, copy=False)


def _written(moment: exp.Expr, form: str) -> exp.Expr:
    return plain("strftime", moment, text(form)) if form else text("")


def _form(token: re.Match[str], constant: exp.Literal) -> str:
    """Returns what strftime() takes for a word, or for a text that stands for itself."""
    word = token["word"]
    if word is None:
        quoted = token["quoted"]
        said = token["letter"][-1] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        return str(said).replace("%", "%%")
    form = _NAMES.get(word) or _NUMBERS.get(word.upper())
    if form is None:
        raise unsupported(
            f'"{word}" in a pattern of to_char()',
            constant,
            "extract() takes a field of a moment, upper() writes a name in capitals.",
        )
    return form
