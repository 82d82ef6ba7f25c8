"""Patterns of SIMILAR TO as regular expressions.

a%(b|_)     ^(?:a.*(?:b|.))$
"""

from __future__ import annotations

from ....catalog.values.errors import SQLError

ESCAPE = "\\"
_MEANT = {"%": ".*", "_": ".", "(": "(?:", "\\": "\\\\", ".": "\\.", "^": "\\^", "$": "\\$"}


def regular(pattern: str, escape: str = ESCAPE) -> str:
    """The regular expression for the whole of a text. Raises SQLError 22025 and 0A000.

    An escape at the end of a pattern escapes nothing.
    """
    if len(escape) > 1:
        raise SQLError(
            "22025", "invalid escape string", hint="Escape string must be empty or one character."
        )
    made: list[str] = []
    escaped = in_brackets = False
    for letter in pattern:
        if escaped:
            escaped = False
            if letter == '"' and not in_brackets:
                raise SQLError(
                    "0A000",
                    "not supported: parts of a pattern of SIMILAR",
                    hint="Use substring(text FROM pattern), with a regular expression.",
                )
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
