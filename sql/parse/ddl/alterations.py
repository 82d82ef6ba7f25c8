"""The grammar of ALTER TABLE commands about PostgreSQL's storage, which have no effect here."""

from __future__ import annotations

from ...syntax.refusals import unsupported
from ...syntax.schema_statements import IgnoredAlteration
from ..cursor import Cursor

_TRIGGERS = "There are no triggers; constraints always hold."
_POLICIES = "GRANT gives rights on tables; a view shows some rows."
_REFUSED: dict[tuple[str, ...], tuple[str, str | None]] = {
    ("owner",): ("OWNER", None),
    ("inherit",): ("INHERIT", "No table inherits from another."),
    ("no", "inherit"): ("NO INHERIT", "No table inherits from another."),
    ("attach", "partition"): ("ATTACH PARTITION", "There are no partitions; ranges split."),
    ("detach", "partition"): ("DETACH PARTITION", "There are no partitions; ranges split."),
    ("disable", "trigger"): ("DISABLE TRIGGER", _TRIGGERS),
    ("enable", "trigger"): ("ENABLE TRIGGER", _TRIGGERS),
    ("disable", "rule"): ("DISABLE RULE", "There are no rules."),
    ("enable", "rule"): ("ENABLE RULE", "There are no rules."),
    ("enable", "row", "level"): ("ENABLE ROW LEVEL SECURITY", _POLICIES),
    ("disable", "row", "level"): ("DISABLE ROW LEVEL SECURITY", _POLICIES),
    ("force", "row", "level"): ("FORCE ROW LEVEL SECURITY", _POLICIES),
    ("alter", "constraint"): (
        "ALTER CONSTRAINT",
        "Drop the constraint, and add it anew as it is to be.",
    ),
    ("set", "unlogged"): ("SET UNLOGGED", "Every table is durable."),
    ("set", "tablespace"): ("SET TABLESPACE", "A store is one folder."),
    ("of",): ("OF", None),
}
_IGNORED: tuple[tuple[str, ...], ...] = (
    ("set", "logged"),
    ("set", "without", "oids"),
    ("set", "without", "cluster"),
    ("replica", "identity", "default"),
    ("replica", "identity", "full"),
    ("replica", "identity", "nothing"),
)


def refuse_alteration(cursor: Cursor) -> None:
    """Raises SQLError 0A000 where a command begins that is understood and not offered."""
    for words, (what, hint) in _REFUSED.items():
        if cursor.at_words(*words):
            raise unsupported(f"ALTER TABLE … {what}", cursor.position, hint)


def ignored_alteration(cursor: Cursor) -> IgnoredAlteration | None:
    """A command that says how PostgreSQL keeps a table; None before any other. Raises SQLError
    0A000 as `refuse_alteration` does."""
    refuse_alteration(cursor)
    for words in _IGNORED:
        if cursor.accept_words(*words):
            return IgnoredAlteration(what=" ".join(words).upper())
    if cursor.accept_words("cluster", "on") or cursor.accept_words(
        "replica", "identity", "using", "index"
    ):
        name = cursor.identifier("an index's name")
        return IgnoredAlteration(what=f"the order or identity by index {name}")
    return None


def ignored_of_column(cursor: Cursor) -> IgnoredAlteration | None:
    """`SET STATISTICS n`, `SET STORAGE kind` and `SET COMPRESSION method` of a column."""
    if cursor.accept_words("set", "statistics"):
        cursor.accept_symbol("-")
        cursor.integer("a whole number")
        return IgnoredAlteration(what="SET STATISTICS")
    for word in ("storage", "compression"):
        if cursor.accept_words("set", word):
            if not cursor.accept_words("default"):
                cursor.identifier("a word")
            return IgnoredAlteration(what=f"SET {word.upper()}")
    return None
