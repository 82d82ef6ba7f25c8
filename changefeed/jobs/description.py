"""The description of a feed's job: the statement that would create the feed as it is now.

It is built from what the feed is, and never from the text of a statement, which may hold secrets
in any place and form.
"""

from __future__ import annotations

from .details import ChangefeedDetails

REDACTED = "redacted"


def describe(details: ChangefeedDetails) -> str:
    names = ", ".join(target.name for target in details.targets)
    what = "CREATE CHANGEFEED FOR TABLE"
    if details.replication:
        what = f"CREATE REPLICATION {details.replication} FOR KEYSPACE"
    text = f"{what} {names} INTO {_quoted(details.shown_sink)}"
    options = [
        name if value is None else f"{name} = {_quoted(REDACTED if 'auth' in name else value)}"
        for name, value in sorted(details.options.items())
        if not (details.replication and name == "mvcc_timestamp")
    ]
    return f"{text} WITH {', '.join(options)}" if options else text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
