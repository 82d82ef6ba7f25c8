"""Names of tables as statements write them: `table`, `schema.table`, `database.schema.table`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..values.errors import SQLError
from ..values.identifiers import quote_identifier as quote_identifier
from .system_tables import PUBLIC_SCHEMA

_IDENTIFIER = re.compile(r'"(?:[^"]|"")*"|[^."]+')


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's full name."""

    database: str
    schema: str
    name: str

    @classmethod
    def resolve(cls, parts: Sequence[str], *, current_database: str) -> TableName:
        """Fills in what `parts` leave out. Raises SQLError 42601 for more than three of them.

        >>> TableName.resolve(["t"], current_database="defaultdb")
        TableName(database='defaultdb', schema='public', name='t')
        """
        match parts:
            case [name]:
                return cls(current_database, PUBLIC_SCHEMA, name)
            case [schema, name]:
                return cls(current_database, schema, name)
            case [database, schema, name]:
                return cls(database, schema, name)
        raise SQLError(
            "42601", f"improper qualified name (too many dotted names): {'.'.join(parts)}"
        )

    def __str__(self) -> str:
        return ".".join(map(quote_identifier, (self.database, self.schema, self.name)))


def own_name(full: str) -> str:
    """The table's own name, of a full name as `TableName` writes it.

    >>> own_name('shop.public."order lines"')
    'order lines'
    """
    last: str = _IDENTIFIER.findall(full)[-1]
    return last[1:-1].replace('""', '"') if last.startswith('"') else last
