"""Default privileges: what is granted on things when they are made.

    ALTER DEFAULT PRIVILEGES FOR ROLE ada IN SCHEMA public GRANT SELECT ON TABLES TO reader

A row is of one database, of one schema in it (0 for all), of things that one role makes ('' for
any), of one kind of thing, and of one grantee. All rows that fit a new thing apply together.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kvlayer.txn import Transaction
from ..descriptors.system_tables import DEFAULT_PRIVILEGES
from ..rows.row_codec import codec_for
from ..store.descriptor_store import DescriptorReader
from .privileges import Securable, SecurableKind
from .rights import Grant, add_privileges

_defaults = codec_for(DEFAULT_PRIVILEGES)

ANY_ROLE = ""
ANY_SCHEMA = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultGrant:
    """One row. `role` is who makes the things."""

    database_id: int
    schema_id: int
    role: str
    kind: SecurableKind
    grantee: str
    grant: Grant

    def applies(self, made: Securable, maker: str) -> bool:
        if self.kind is not made.kind or self.role not in (ANY_ROLE, maker):
            return False
        return self.database_id in made.parents and (
            self.schema_id == ANY_SCHEMA or self.schema_id in made.parents
        )


async def list_defaults(reader: DescriptorReader) -> list[DefaultGrant]:
    found: list[DefaultGrant] = []
    for key, body in await reader.scan(DEFAULT_PRIVILEGES.primary_span):
        row = _defaults.decode_row(key, body)
        database_id, schema_id, role, kind, grantee, privileges, grantable = row
        assert isinstance(database_id, int), row
        assert isinstance(schema_id, int), row
        assert isinstance(privileges, int), row
        assert isinstance(grantable, int), row
        found.append(
            DefaultGrant(
                database_id=database_id,
                schema_id=schema_id,
                role=str(role),
                kind=SecurableKind(kind),
                grantee=str(grantee),
                grant=Grant(privileges, grantable),
            )
        )
    return found


async def put_default(transaction: Transaction, default: DefaultGrant) -> None:
    """Replaces a row, or removes it where nothing is granted by it."""
    key, body = _defaults.encode_row(
        (
            default.database_id,
            default.schema_id,
            default.role,
            default.kind.value,
            default.grantee,
            default.grant.privileges,
            default.grant.grantable,
        )
    )
    if default.grant.empty:
        await transaction.delete([key])
    else:
        await transaction.put([key], [body])


async def apply_defaults(transaction: Transaction, made: Securable, maker: str) -> None:
    """Grants on a new thing what its defaults say."""
    for default in await list_defaults(transaction):
        if default.applies(made, maker):
            grant = default.grant
            await add_privileges(
                transaction, made.id, default.grantee, grant.privileges, grant.grantable
            )
