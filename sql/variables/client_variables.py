"""Session variables that clients of Postgres set and ask for.

Most of them have one value here, and say so when another is asked for: a setting that is taken but
ignored would lie about every result that follows. Clients are told when one of `REPORTED` changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...catalog.values.session_zone import UTC_NAME, known_zone
from .variables import DEFAULT_READ_ONLY, Variable, declare, parse_bool, show_bool

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


def _one_of(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        wanted = text.strip().lower()
        if wanted not in values:
            raise ValueError(f"Write one of {', '.join(values)}.")
        return wanted

    return parse


def _digits(text: str) -> str:
    if text.strip() not in ("1", "2", "3"):
        raise ValueError("Floats are written with the digits that they need: write 1, 2 or 3.")
    return text.strip()


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


def _fixed(name: str, value: str, description: str) -> Variable[str]:
    return declare(name, value, parse=None, description=description)


def _single(name: str, value: str, *spellings: str, description: str) -> Variable[str]:
    return declare(name, value, parse=_only(value, *spellings), description=description)


APPLICATION_NAME = declare(
    "application_name", "", parse=_text, description="the client's name for itself"
)
CLIENT_ENCODING = _single(
    "client_encoding", "UTF8", "utf-8", "utf_8", "unicode", description="text is UTF-8"
)
TIME_ZONE = declare(
    "timezone", UTC_NAME, parse=known_zone, title="TimeZone",
    description="the zone that moments are shown in, and that texts without an offset are of",
)  # fmt: skip
DATE_STYLE = declare(
    "datestyle", "ISO, MDY", parse=_date_style, title="DateStyle",
    description="dates and timestamps are written and read in ISO 8601 alone",
)  # fmt: skip
INTERVAL_STYLE = declare(
    "intervalstyle", "postgres", parse=_only("postgres"), title="IntervalStyle",
    description="intervals are written as `1 year 2 mons 04:05:06`",
)  # fmt: skip
BYTEA_OUTPUT = _single(
    "bytea_output", "hex", description="bytes are written as `\\x` and hexadecimal digits"
)
STANDARD_STRINGS = _single(
    "standard_conforming_strings", "on", "true", "yes", "1",
    description="a backslash in a text literal is a backslash",
)  # fmt: skip
SEARCH_PATH = declare(
    "search_path", '"$user", public', parse=_search_path,
    description="of the schemas with tables of users, public is searched",
)  # fmt: skip
EXTRA_FLOAT_DIGITS = declare(
    "extra_float_digits", "1", parse=_digits,
    description="floats are written with the digits that they need: 1, 2 and 3 are the same",
)  # fmt: skip
SEVERITIES = (
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
)  # fmt: skip
"""From the least severe message to the most severe one."""
CLIENT_MIN_MESSAGES = declare(
    "client_min_messages",
    "notice",
    parse=_one_of(*SEVERITIES),
    description="the least severe message that a client is sent",
)
SYNCHRONOUS_COMMIT = _single(
    "synchronous_commit", "on", "true", "local", "remote_write", "remote_apply",
    description="a commit is answered when it is durable",
)  # fmt: skip
ROW_SECURITY = declare(
    "row_security", False, parse=parse_bool, show=show_bool,
    description="there are no policies on rows",
)  # fmt: skip

TABLE_ACCESS_METHOD = _single(
    "default_table_access_method", "heap", description="there is one way to keep tables"
)
TABLESPACE = _single("default_tablespace", "", description="a store is one folder")
XML_OPTION = _single("xmloption", "content", description="there is no XML")
CHECK_FUNCTION_BODIES = declare(
    "check_function_bodies", True, parse=parse_bool, show=show_bool,
    description="there are no functions whose bodies could be checked",
)  # fmt: skip
SYNCHRONIZE_SEQSCANS = declare(
    "synchronize_seqscans", True, parse=parse_bool, show=show_bool,
    description="each scan has its own way through a table",
)  # fmt: skip
JIT = _single(
    "jit", "off", "false", "no", "0", description="queries are not compiled while they run"
)

AUTOCOMMIT_BEFORE_DDL = _single(
    "autocommit_before_ddl", "off", "false", "no", "0",
    description="a schema change is part of its transaction, and commits nothing before it",
)  # fmt: skip

CRDB_VERSION = f"CockroachDB CCL v24.3.0 (Tailrace, PostgreSQL {SERVER_VERSION})"
"""The server version shown with `crdb_compat`: the CockroachDB version of nearest SQL."""

CRDB_COMPAT = declare(
    "crdb_compat", False, parse=parse_bool, show=show_bool,
    description="whether version() and crdb_version say CockroachDB, for its dialects and drivers",
)  # fmt: skip
CRDB_VERSION_SHOWN = _fixed(
    "crdb_version", CRDB_VERSION, "the CockroachDB version whose SQL this comes nearest to"
)

SERVER_VERSION_SHOWN = _fixed(
    "server_version", f"{SERVER_VERSION} (Tailrace)", "the Postgres version that is spoken"
)
SERVER_VERSION_NUMBER = _fixed("server_version_num", "150008", "the same as a number")
SERVER_ENCODING = _fixed("server_encoding", "UTF8", "text is kept in UTF-8")
INTEGER_DATETIMES = _fixed("integer_datetimes", "on", "times are counted in microseconds")
IN_HOT_STANDBY = _fixed("in_hot_standby", "off", "this store takes writes")
IS_SUPERUSER = _fixed("is_superuser", "on", "whether the current user is an admin")
LC_COLLATE = _fixed("lc_collate", "C", "text sorts by its code points")
LC_CTYPE = _fixed("lc_ctype", "C.UTF-8", "how letters are told from others")
MAX_IDENTIFIER_LENGTH = _fixed("max_identifier_length", "63", "bytes of a name")
MAX_INDEX_KEYS = _fixed("max_index_keys", "32", "columns of a key that clients may count on")

REPORTED: dict[str, Variable[Any]] = {
    "server_version": SERVER_VERSION_SHOWN,
    "server_encoding": SERVER_ENCODING,
    "client_encoding": CLIENT_ENCODING,
    "application_name": APPLICATION_NAME,
    "DateStyle": DATE_STYLE,
    "IntervalStyle": INTERVAL_STYLE,
    "TimeZone": TIME_ZONE,
    "integer_datetimes": INTEGER_DATETIMES,
    "standard_conforming_strings": STANDARD_STRINGS,
    "in_hot_standby": IN_HOT_STANDBY,
    "is_superuser": IS_SUPERUSER,
    "default_transaction_read_only": DEFAULT_READ_ONLY,
}
"""Variables that ParameterStatus reports, by the names that clients know."""


def tells(minimum: str, severity: str) -> bool:
    """Whether a client that asked for messages from `minimum` on is told one of a severity."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(minimum)
