"""The description of a feed's job: the statement that would create the feed as it is now.

It is built from what the feed is, and never from the text of a statement, which may hold secrets
in any place and form.
"""

from __future__ import annotations

from ...catalog.values.identifiers import quote_identifier
from ..contract.options import SECRET_OPTIONS
from ..targets import KeyspacePart
from .details import ChangefeedDetails

REDACTED = "redacted"


def describe(details: ChangefeedDetails) -> str:
    of = f" FOR {_followed(details)}" if details.query is None else ""
    what = f"CREATE CHANGEFEED{of}"
    if details.replication:
        what = f"CREATE REPLICATION {details.replication}{of}"
    text = f"{what} INTO {quoted(details.shown_sink)}"
    options = [
        name
        if value is None
        else f"{name} = {quoted(REDACTED if name.lower() in SECRET_OPTIONS else value)}"
        for name, value in sorted(details.options.items())
        if not (details.replication and name == "mvcc_timestamp")
    ]
    text = f"{text} WITH {', '.join(options)}" if options else text
    return text if details.query is None else f"{text} AS {details.query.text}"


def _followed(details: ChangefeedDetails) -> str:
    database = details.whole_database
    for target in details.targets:
        if target.keyspace is not None:  # it is the only one
            return f"KEYSPACE {target.name}{_keys(target.keyspace)}"
    if database is None:
        return f"TABLE {', '.join(target.name for target in details.targets)}"
    text = f"DATABASE {quote_identifier(database.name)}"
    if database.include is not None:
        return f"{text} INCLUDE TABLES {', '.join(database.include)}"
    return f"{text} EXCLUDE TABLES {', '.join(database.exclude)}" if database.exclude else text


def _keys(part: KeyspacePart) -> str:
    """The clause of a keyspace's keys, if not all of them are fed."""
    start = f" FROM {quoted(shown_key(part.start))}" if part.start else ""
    return start if part.end is None else f"{start} TO {quoted(shown_key(part.end))}"


def shown_key(key: bytes) -> str:
    """A key as a statement takes it: a text, or hex behind `\\x`."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    return text if text.isprintable() and text[:2] not in ("", "\\x") else f"\\x{key.hex()}"


def quoted(text: str) -> str:
    """A string as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
