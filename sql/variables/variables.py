"""Session variables: what SET, SHOW and RESET know.

A variable is declared once, with the text that it takes and how it is shown; whoever offers one
declares it. A session holds the values that were set. What a transaction sets is undone with it, by
ROLLBACK and by ROLLBACK TO alike; what it sets LOCAL ends with it in any case.

    SET lock_timeout = '5s'            until the session ends, or RESET
    BEGIN; SET LOCAL lock_timeout = 0  until the transaction ends
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from typing import Any, Generic, TypeVar, cast

from ...catalog.rights.users import ROOT
from ...catalog.values.errors import SQLError
from ...catalog.values.session_zone import UTC_NAME, known_zone
from ...kvlayer.settings import SettingError, parse_duration
from ...kvlayer.transaction_modes import Isolation

V = TypeVar("V")


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Generic[V]):
    """A session variable, which is registered as it is made. Names are unique in the process.

    `parse` takes what SET was given and raises ValueError; `show` gives SHOW's text back. A
    variable without `parse` is shown only.
    """

    name: str
    default: V
    _: KW_ONLY
    parse: Callable[[str], V] | None
    show: Callable[[V], str] = str
    description: str
    reset_by_all: bool = True
    """Whether RESET ALL resets it."""
    title: str = ""
    """The name as PostgreSQL shows it, where that is another."""

    def __post_init__(self) -> None:
        assert self.name not in REGISTRY, self.name
        REGISTRY[self.name] = cast(Variable[object], self)

    def read(self, text: str, position: int | None) -> V:
        """The value of a text that SET gave. Raises SQLError 55P02 for a variable that is shown
        only, 22023 for a value that does not fit."""
        if self.parse is None:
            raise SQLError("55P02", f'parameter "{self.name}" cannot be changed', position=position)
        try:
            return self.parse(text)
        except ValueError as error:
            raise SQLError(
                "22023",
                f'invalid value for parameter "{self.title or self.name}": "{text}"',
                position=position,
                hint=f"{error}",
            ) from error


REGISTRY: dict[str, Variable[object]] = {}
"""Every variable, by name."""


def find(name: str, position: int | None = None) -> Variable[object]:
    """The variable of a name. Raises SQLError 42704 with a suggestion."""
    variable = REGISTRY.get(name)
    if variable is not None:
        return variable
    near = get_close_matches(name, REGISTRY, n=1, cutoff=0.6)
    raise SQLError(
        "42704",
        f'unrecognized configuration parameter "{name}"',
        position=position,
        hint=f'Did you mean "{near[0]}"?'
        if near
        else "pg_settings lists a session's variables; SET CLUSTER SETTING sets the store's.",
    )


VariableMark = tuple[dict[str, object], dict[str, object]]
"""The values at one moment, of the session and LOCAL, for whoever may go back to it."""


class SessionVariables:
    """The values of one session.

    Its dictionaries are never changed in place: so a mark, of which each statement takes one, costs
    nothing.
    """

    def __init__(self) -> None:
        self._given: dict[str, object] = {}  # at the session's beginning: RESET goes back to it
        self._session: dict[str, object] = {}
        self._local: dict[str, object] = {}
        self._standing: dict[str, object] = {}  # what all of these come to: asked for all the time
        self._computed: dict[str, Callable[[], object]] = {}
        self.version = 0
        """Grows whenever a value may have changed."""
        self._watchers: list[Callable[[], None]] = []

    def begin_with(self, name: str, text: str) -> None:
        """The value that the session begins with, instead of the default. Raises as `set`."""
        variable = find(name)
        self.begin_at(variable, variable.read(text, None))

    def begin_at(self, variable: Variable[V], value: V) -> None:
        """`begin_with`, for a value as it is stored."""
        self._given = {**self._given, variable.name: value}
        self._changed()

    def get(self, variable: Variable[V]) -> V:
        if variable.name in self._computed:
            return cast(V, self._computed[variable.name]())
        value: V = self._standing.get(variable.name, variable.default)  # type: ignore[assignment]
        return value

    def _changed(self) -> None:
        self._standing = {**self._given, **self._session, **self._local}
        self.version += 1
        for watcher in self._watchers:
            watcher()

    def set(
        self, name: str, text: str, *, local: bool = False, position: int | None = None
    ) -> None:
        """Raises SQLError 42704 for an unknown name, 22023 for a value that does not fit."""
        variable = find(name, position)
        self.put(variable, variable.read(text, position), local=local)

    def put(self, variable: Variable[V], value: V, *, local: bool = False) -> None:
        """A value as it is kept."""
        if local:
            self._local = {**self._local, variable.name: value}
        else:
            self._session = {**self._session, variable.name: value}
            self._local = _without([variable.name], self._local)
        self._changed()

    def reset(self, name: str, *, position: int | None = None) -> None:
        """Back to the default; `all` for every one."""
        if name == "all":
            gone = [known for known, found in REGISTRY.items() if found.reset_by_all]
        else:
            find(name, position)
            gone = [name]
        self._session = _without(gone, self._session)
        self._local = _without(gone, self._local)
        self._changed()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Calls it whenever a value may have changed."""
        self._watchers.append(watcher)

    def compute(self, variable: Variable[V], value: Callable[[], V]) -> None:
        """A value that is not kept but asked for each time."""
        assert variable.parse is None, variable
        self._computed[variable.name] = value

    def source(self, variable: Variable[object]) -> str:
        """The source of the value, in pg_settings' words."""
        if variable.name in self._local or variable.name in self._session:
            return "session"
        return "client" if variable.name in self._given else "default"

    def reset_text(self, variable: Variable[object]) -> str:
        """Returns the value that RESET would go back to."""
        return variable.show(self._given.get(variable.name, variable.default))

    def show(self, variable: Variable[object]) -> str:
        return variable.show(self.get(variable))

    def mark(self) -> VariableMark:
        return self._session, self._local

    def restore(self, mark: VariableMark) -> None:
        self._session, self._local = mark
        self._changed()

    def end_transaction(self) -> None:
        """Ends the values set LOCAL."""
        if self._local:
            self._local = {}
            self._changed()


def _without(names: Collection[str], values: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if name not in names}


def parse_bool(text: str) -> bool:
    """Reads a boolean. Raises ValueError."""
    match text.strip().lower():
        case "on" | "true" | "t" | "yes" | "1":
            return True
        case "off" | "false" | "f" | "no" | "0":
            return False
    raise ValueError("Write on or off.")


def show_bool(value: bool) -> str:
    return "on" if value else "off"


def declare_bool(name: str, default: bool, description: str) -> Variable[bool]:
    """Registers a variable that is on or off."""
    return Variable(name, default, parse=parse_bool, show=show_bool, description=description)


def parse_timeout(text: str) -> float:
    """Seconds, from milliseconds without a unit or a duration, as in Postgres; zero is none."""
    text = text.strip()
    if text.isdecimal():
        return int(text) / 1000
    try:
        return parse_duration(text.removesuffix("in") if text.endswith("min") else text)
    except SettingError:
        raise ValueError("Write milliseconds, or a duration such as '5s'; 0 is none.") from None


def show_timeout(seconds: float) -> str:
    if seconds == 0:
        return "0"
    return f"{seconds:g}s" if seconds == int(seconds) else f"{seconds * 1000:g}ms"


def declare_timeout(name: str, description: str) -> Variable[float]:
    """Registers a variable of seconds, of which zero is none."""
    return Variable(name, 0.0, parse=parse_timeout, show=show_timeout, description=description)


LEVELS = {
    "serializable": Isolation.SERIALIZABLE,
    "repeatable read": Isolation.REPEATABLE_READ,
    "read committed": Isolation.READ_COMMITTED,
    "read uncommitted": Isolation.READ_COMMITTED,  # as in Postgres: nobody reads such rows
}
"""Levels by their names in SET and BEGIN."""


def parse_isolation(text: str) -> Isolation:
    """The level that is meant: of two names for one level, the one that SHOW says is kept."""
    level = LEVELS.get(" ".join(text.lower().replace("-", " ").split()))
    if level is None:
        raise ValueError("Write serializable, repeatable read or read committed.")
    return level


DEFAULT_ISOLATION = Variable(
    "default_transaction_isolation",
    Isolation.SERIALIZABLE,
    parse=parse_isolation,
    show=lambda level: level.value,
    description="the isolation level of transactions that do not say theirs",
)
DEFAULT_READ_ONLY = declare_bool(
    "default_transaction_read_only", False, "whether transactions that do not say so only read"
)
DEFAULT_DEFERRABLE = declare_bool(
    "default_transaction_deferrable",
    False,
    "accepted for Postgres: a transaction that only reads never has to be retried here",
)
LOCK_TIMEOUT = declare_timeout(
    "lock_timeout", "how long to wait for a locked row; 0 for the cluster setting kv.lock_timeout"
)
STATEMENT_TIMEOUT = declare_timeout(
    "statement_timeout", "how long a statement may take; 0 for ever"
)
IDLE_IN_TRANSACTION_TIMEOUT = declare_timeout(
    "idle_in_transaction_session_timeout",
    "how long a session may sit idle in a transaction before it is ended; 0 for ever",
)
NEW_TABLES_LOCKED = declare_bool(
    "create_table_with_schema_locked",
    False,
    "whether CREATE TABLE locks a table that does not say; schema changes and TRUNCATE "
    "unlock it by themselves",
)


# Variables that clients of Postgres set and ask for.
#
# Most of them have one value here, and say so when another is asked for: a setting that is taken
# but ignored would lie about every result that follows. Clients are told when one of `REPORTED`
# changes.

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
    """The order of the only schemas that are searched; a schema of one's own is not. pg_dump sets
    none and postgres_fdw `pg_catalog`: both write the schema before every name."""
    if not text.strip():
        return ""
    names = [part.strip().strip("'").strip('"') for part in text.split(",")]
    if names == ["pg_catalog"]:
        return "pg_catalog"
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
INTERVAL_STYLE = Variable(
    "intervalstyle", "postgres", title="IntervalStyle",
    parse=_one_of(("postgres", "iso_8601"), "Write postgres or iso_8601."),
    description="intervals of results are `1 year 2 mons 04:05:06`, or `P1Y2MT4H5M6S`",
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
    ("enable_experimental_alter_column_type_general", "on", ("true",),
     "a column's type is changed with its rows, whatever the types"),
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
SESSION_USER = Variable(
    "session_authorization", ROOT, parse=None, description="the user who has logged in"
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
        "in_hot_standby", "is_superuser", "default_transaction_read_only", "session_authorization",
    )
}  # fmt: skip
"""Variables that ParameterStatus reports, by the names that clients know."""


def tells(minimum: str, severity: str) -> bool:
    """Whether a client that asked for messages from `minimum` on is told one of a severity."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(minimum)
