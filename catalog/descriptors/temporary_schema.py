"""The hidden schema of a session's temporary tables, one in each database.

    CREATE TEMP TABLE t (k INT8)    defaultdb.pg_temp_1_7_815.t: of node 1, made at 815
    SELECT * FROM t                 this table, whatever public.t is

They are ordinary tables that no other session is shown and no feed follows. Names are resolved at
many places that know no session, so the schema is the context's, as the time zone is
(`session_zone`): whoever runs a session's statements says `follow`.
"""

from __future__ import annotations

from contextvars import ContextVar

TEMPORARY_PREFIX = "pg_temp_"


class TemporarySchema:
    """The temporary schema of one session.

    `name` is empty until the session makes a temporary table, and `databases` are those where it
    has. `made` counts its tables, gone ones too: plans are kept by it, for each may take a name.
    """

    __slots__ = ("databases", "made", "name")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.databases: set[str] = set()
        self.made = 0


_followed: ContextVar[TemporarySchema | None] = ContextVar("temporary schema", default=None)


def session_schema() -> TemporarySchema | None:
    """The temporary schema of the session whose statement runs; None outside of sessions."""
    return _followed.get()


def follow(schema: TemporarySchema | None) -> TemporarySchema | None:
    """Sets the context's temporary schema, and returns the one before."""
    before = _followed.get()
    _followed.set(schema)
    return before


def shown_schema(name: str) -> bool:
    """Whether the session is shown a schema: all but those of other sessions."""
    own = _followed.get()
    return not name.startswith(TEMPORARY_PREFIX) or (own is not None and name == own.name)
