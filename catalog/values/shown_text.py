"""Texts of statements as others may see them: without the secrets that stand in them.

    ALTER USER ada PASSWORD 'secret'              ALTER USER ada PASSWORD '********'
    … INTO 'postgres://app:secret@host/db'        … INTO 'postgres://app:redacted@host/db'

They are read without a parser, which a text that is wrong would fail: more than a secret may be
hidden, and never less.
"""

from __future__ import annotations

import re

_PASSWORD = re.compile(
    r"""(\bpassword(?:\s|--[^\n]*\n|/\*.*?\*/)*)
    (?: (?:E|N|U&)? '(?:[^'\\]|''|\\.)*(?:'|\\?$)
      | \$(?P<tag>\w*)\$ .*? (?:\$(?P=tag)\$|$) )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""A literal behind the word, in any of its forms."""

_URI_PASSWORD = re.compile(
    r"(\b[a-z][a-z0-9+.-]*://[^:/?#@'\s]*:)(?:(?:[^']|'')*@|(?:[^'@]|'')*$)", re.IGNORECASE
)
"""What stands between the user and the last '@' of the literal, or its end where the text is cut
off before an '@'."""


def shown_text(text: str) -> str:
    return _URI_PASSWORD.sub(r"\1redacted@", _PASSWORD.sub(r"\1'********'", text))
