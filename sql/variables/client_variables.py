"""Session variables that clients of Postgres set and ask for.

Most of them have one value here, and say so when another is asked for: a setting that is taken but
ignored would lie about every result that follows. Clients are told when one of `REPORTED` changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ...catalog.values.session_zone import UTC_NAME, known_zone
from .variables import Variable, declare_bool, find

SERVER_VERSION = "15.8"
"""The version of PostgreSQL whose protocol, functions and catalogs this server goes by."""

TEXT_MAX = 1024


def _text(text: str) -> str:
    if len(text) > TEXT_MAX:
        raise ValueError(f"Write at most {TEXT_MAX} characters.")
    return text


def _only(shown: str, *spellings: str) -> Callable[[str], str]:
    """Takes the one value that there is, in any of its spellings."""
    known = {shown.lower(), *spellings}

    def parse(text: str) -> str:
        if text.strip().strip("'").lower() not in known:
            raise ValueError(f"The only value here is {shown}.")
        return shown

    return parse


def _one_of(values: Collection[str], hint: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        wanted = text.strip().lower()
        if wanted not in values:
            raise ValueError(hint)
        return wanted

    return parse


_DATE_ORDERS = {
    "mdy": "MDY", "us": "MDY", "default": "MDY", "dmy": "DMY", "euro": "DMY", "ymd": "YMD",
}  # fmt: skip


def _date_style(text: str) -> str:
    """ISO and an order, which means nothing: dates are read and written in ISO 8601 alone."""
    words = {part.strip().lower() for part in text.replace("'", "").split(",")} - {"iso"}
    orders = {_DATE_ORDERS.get(word) for word in words} or {"MDY"}
    order = orders.pop()
    if order is None or orders:
        raise ValueError("The only form of dates here is ISO: to_char() writes others.")
    return f"ISO, {order}"


_PATH = ("$user", "public", "pg_catalog")


def _search_path(text: str) -> str:
    """The order of the only schemas that are searched; a schema of one's own is not. None is what
    pg_dump sets, which writes the schema before every name."""
    if not text.strip():
        return ""
    names = [part.strip().strip("'").strip('"') for part in text.split(",")]
    if "public" not in names or any(name not in _PATH for name in names):
        raise ValueError("Only public is searched: write the schema before the table's name.")
    return ", ".join(f'"{name}"' if name == "$user" else name for name in names)


APPLICATION_NAME = Variable(
    "application_name", "", parse=_text, description="the client's name for itself"
)
TIME_ZONE = Variable(
    "timezone", UTC_NAME, parse=known_zone, title="TimeZone",
    description="the zone that moments are shown in, and that texts without an offset are of",
)  # fmt: skip
Variable(
    "datestyle", "ISO, MDY", parse=_date_style, title="DateStyle",
    description="dates and timestamps are written and read in ISO 8601 alone",
)  # fmt: skip
Variable(
    "search_path", '"$user", public', parse=_search_path,
    description="of the schemas with tables of users, public is searched",
)  # fmt: skip
Variable(
    "extra_float_digits", "1",
    parse=_one_of(
        ("1", "2", "3"), "Floats are written with the digits that they need: write 1, 2 or 3."
    ),
    description="floats are written with the digits that they need: 1, 2 and 3 are the same",
)  # fmt: skip
SEVERITIES = (
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
)  # fmt: skip
"""From the least severe message to the most severe one."""
CLIENT_MIN_MESSAGES = Variable(
    "client_min_messages",
    "notice",
    parse=_one_of(SEVERITIES, f"Write one of {', '.join(SEVERITIES)}."),
    description="the least severe message that a client is sent",
)

_OFF = ("false", "no", "0")
_ONE_VALUE: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("client_encoding", "UTF8", ("utf-8", "utf_8", "unicode"), "text is UTF-8"),
    ("IntervalStyle", "postgres", (), "intervals are written as `1 year 2 mons 04:05:06`"),
    ("bytea_output", "hex", (), "bytes are written as `\\x` and hexadecimal digits"),
    ("standard_conforming_strings", "on", ("true", "yes", "1"),
     "a backslash in a text literal is a backslash"),
    ("synchronous_commit", "on", ("true", "local", "remote_write", "remote_apply"),
     "a commit is answered when it is durable"),
    ("default_table_access_method", "heap", (), "there is one way to keep tables"),
    ("default_tablespace", "", (), "a store is one folder"),
    ("xmloption", "content", (), "there is no XML"),
    ("jit", "off", _OFF, "queries are not compiled while they run"),
    ("autocommit_before_ddl", "off", _OFF,
     "a schema change is part of its transaction, and commits nothing before it"),
)  # fmt: skip
"""Variables that take one value: its spellings beside it, and what that says."""
for _name, _value, _spellings, _description in _ONE_VALUE:
    Variable(
        _name.lower(), _value, parse=_only(_value, *_spellings), description=_description,
        title=_name,
    )  # fmt: skip

for _name, _switched, _description in (
    ("row_security", False, "there are no policies on rows"),
    ("check_function_bodies", True, "there are no functions whose bodies could be checked"),
    ("synchronize_seqscans", True, "each scan has its own way through a table"),
):
    declare_bool(_name, _switched, _description)

CRDB_VERSION = f"CockroachDB CCL v24.3.0 (Tailrace, PostgreSQL {SERVER_VERSION})"
"""The server version shown with `crdb_compat`: the CockroachDB version of nearest SQL."""

CRDB_COMPAT = declare_bool(
    "crdb_compat",
    False,
    "whether version() and crdb_version say CockroachDB, for its dialects and drivers",
)
IS_SUPERUSER = Variable(
    "is_superuser", "on", parse=None, description="whether the current user is an admin"
)
for _name, _value, _description in (
    ("crdb_version", CRDB_VERSION, "the CockroachDB version whose SQL this comes nearest to"),
    ("server_version", f"{SERVER_VERSION} (Tailrace)", "the Postgres version that is spoken"),
    ("server_version_num", "150008", "the same as a number"),
    ("server_encoding", "UTF8", "text is kept in UTF-8"),
    ("integer_datetimes", "on", "times are counted in microseconds"),
    ("in_hot_standby", "off", "this store takes writes"),
    ("lc_collate", "C", "text sorts by its code points"),
    ("lc_ctype", "C.UTF-8", "how letters are told from others"),
    ("max_identifier_length", "63", "bytes of a name"),
    ("max_index_keys", "32", "columns of a key that clients may count on"),
):
    Variable(_name, _value, parse=None, description=_description)  # which is shown only

REPORTED: dict[str, Variable[Any]] = {
    name: find(name.lower())
    for name in (
        "server_version", "server_encoding", "client_encoding", "application_name", "DateStyle",
        "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings",
        "in_hot_standby", "is_superuser", "default_transaction_read_only",
    )
}  # fmt: skip
"""Variables that ParameterStatus reports, by the names that clients know."""


def tells(minimum: str, severity: str) -> bool:
    """Whether a client that asked for messages from `minimum` on is told one of a severity."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(minimum)
