"""Texts of statements as others may see them: without the secrets that stand in them.

    ALTER USER ada PASSWORD 'secret'              ALTER USER ada PASSWORD '********'
    … INTO 'postgres://app:secret@host/db'        … INTO 'postgres://app:redacted@host/db'
    … INTO 'webhook-https://host/?token=secret'   … INTO 'webhook-https://host/?redacted'

They are read without a parser, which a text that is wrong would fail: more than a secret may be
hidden, and never less.
"""

from __future__ import annotations

import re

_PASSWORD = re.compile(
    r"""(\b(?:password|webhook_auth_header|extra_headers)(?:[\s="]|--[^\n]*\n|/\*.*?\*/)*)
    (?: (?:E|N|U&)? '(?:[^'\\]|''|\\.)*(?:'|\\?$)
      | \$(?P<tag>\w*)\$ .*? (?:\$(?P=tag)\$|$) )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""A literal behind one of the words, in any of its forms."""

_URI_PASSWORD = re.compile(
    r"(\b[a-z][a-z0-9+.-]*://[^:/?#@'\s]*:)(?:(?:[^']|'')*@|(?:[^'@]|'')*$)", re.IGNORECASE
)
"""What stands between the user and the last '@' of the literal, or its end where the text is cut
off before an '@'."""

_URI_PARAMETERS = re.compile(
    r"((?<![\w+.-])(?!(?:duckdb|file|nodelocal|delta|iceberg|spark\+\w+)://)"
    r"[a-z][a-z0-9+.-]*://[^?'\s]*\?)(?:[^']|'')+",
    re.IGNORECASE,
)
"""What stands behind the '?' of any URI but one of a place on the node, which takes no secret."""


def shown_text(text: str) -> str:
    text = _URI_PARAMETERS.sub(r"\1redacted", text)
    return _URI_PASSWORD.sub(r"\1redacted@", _PASSWORD.sub(r"\1'********'", text))
