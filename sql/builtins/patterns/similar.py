"""Patterns of SIMILAR TO as regular expressions.

a%(b|_)     ^(?:a.*(?:b|.))$
"""

from __future__ import annotations

from ....catalog.values.errors import SQLError

ESCAPE = "\\"
_MEANT = {"%": ".*", "_": ".", "(": "(?:", "\\": "\\\\", ".": "\\.", "^": "\\^", "$": "\\$"}
_PARTED = ("){1,1}?(", "){1,1}(?:")
"""What stands between the parts of `substring(… SIMILAR 'a#"b#"c' ESCAPE '#')`: the first is as
short as may be, and the second as long."""


def regular(pattern: str, escape: str = ESCAPE) -> str:
    """The regular expression for the whole of a text. Raises SQLError 2200C and 22025.

    An escape at the end of a pattern escapes nothing.
    """
    if len(escape) > 1:
        raise SQLError(
            "22025", "invalid escape string", hint="Escape string must be empty or one character."
        )
    made: list[str] = []
    escaped = in_brackets = False
    quotes = 0
    for letter in pattern:
        if escaped:
            escaped = False
            if letter == '"' and not in_brackets:
                made.append(_quoted(quotes))
                quotes += 1
            else:
                made.append(f"\\{letter}")
        elif letter == escape:
            escaped = True
        elif in_brackets:
            made.append("\\\\" if letter == "\\" else letter)
            in_brackets = letter != "]"
        else:
            in_brackets = letter == "["
            made.append(_MEANT.get(letter, letter))
    return f"^(?:{''.join(made)})$"


def _quoted(before: int) -> str:
    """What the quote of that number stands for, others being before it."""
    if before == len(_PARTED):
        raise SQLError(
            "2200C",
            "SQL regular expression may not contain more than two escape-double-quote separators",
        )
    return _PARTED[before]
