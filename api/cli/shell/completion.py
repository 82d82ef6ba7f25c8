"""Completion: keywords, and the names of the catalog as the server has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

# fmt: off
KEYWORDS = (
    "ALTER", "AND", "AS OF SYSTEM TIME", "BEGIN", "BY", "CANCEL", "CHANGEFEED", "COLUMN", "COMMIT",
    "CREATE", "DATABASE", "DELETE", "DROP", "EXPLAIN", "FOR", "FROM", "GRANT", "GROUP BY", "HAVING",
    "INDEX", "INSERT", "INTO", "JOB", "JOIN", "LIMIT", "NOT", "NULL", "ON", "ORDER BY", "PAUSE",
    "PRIMARY KEY", "RESUME", "RETURNING", "REVOKE", "ROLLBACK", "SELECT", "SET", "SHOW", "TABLE",
    "TABLES", "TO", "UPDATE", "UPSERT", "USER", "VALUES", "WHERE", "WITH",
)
# fmt: on

NAMES_MAX = 20_000
"""Names that are kept: a catalog of more is completed in part."""


class CatalogCompleter(Completer):
    """Completes words. `look` asks the server for names; it is asked again after `forget`."""

    def __init__(self, look: Callable[[], Iterable[str]]) -> None:
        self._look = look
        self._names: list[str] | None = None

    def forget(self) -> None:
        """The catalog may have changed."""
        self._names = None

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        word = document.get_word_before_cursor(WORD=False)
        if not word.strip():
            return
        for name in self._matching(word.lower()):
            yield Completion(name, start_position=-len(word))

    def _matching(self, prefix: str) -> Iterator[str]:
        if self._names is None:
            self._names = sorted(set(self._look()))[:NAMES_MAX]
        yield from (name for name in self._names if name.lower().startswith(prefix))
        yield from (word for word in KEYWORDS if word.lower().startswith(prefix))
