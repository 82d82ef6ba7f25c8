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
from typing import Generic, TypeVar, cast

from ...catalog.values.errors import SQLError
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

    def read(self, text: str, position: int | None, *, name: str = "") -> V:
        """The value of a text, which SET gave a variable of this name. Raises SQLError 55P02 for
        one that is shown only, 22023 for a value that does not fit."""
        name = name or self.title or self.name
        if self.parse is None:
            raise SQLError("55P02", f'parameter "{self.name}" cannot be changed', position=position)
        try:
            return self.parse(text)
        except ValueError as error:
            raise SQLError(
                "22023",
                f'invalid value for parameter "{name}": "{text}"',
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
        else "SHOW ALL lists a session's variables; SET CLUSTER SETTING sets the store's.",
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
    "default_transaction_read_only",
    False,
    "whether transactions that do not say so only read",
)
DEFAULT_DEFERRABLE = declare_bool(
    "default_transaction_deferrable",
    False,
    "accepted for Postgres: a transaction that only reads never has to be retried here",
)
LOCK_TIMEOUT = declare_timeout(
    "lock_timeout",
    "how long to wait for a locked row; 0 for the cluster setting kv.lock_timeout",
)
STATEMENT_TIMEOUT = declare_timeout(
    "statement_timeout",
    "how long a statement may take; 0 for ever",
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
