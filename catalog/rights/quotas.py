"""Quotas: how many things of a kind a user may have, and all users together.

    SCHEDULE_QUOTA = owned_rows("schedules", "changefeed.schedules", 100, 1_000, table=JOBS, …)
    await SCHEDULE_QUOTA.check(settings, rights, "ada", transaction)    # behind the one made

What is counted are the rows of system tables as the transaction sees them, by their owners. They
are not tracked: of transactions that commit at one moment each may miss the others'. Admins, who
set the bounds, have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from ...kvlayer.access import Transaction
from ...kvlayer.clock import ZERO
from ...kvlayer.process.background import give_way
from ...kvlayer.settings import Setting, Settings, declare_int
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.system_tables import DESCRIPTOR
from ..rows.row_codec import codec_for
from ..store.descriptor_store import decode_stored
from ..values.errors import SQLError
from .rights import Rights
from .users import ROOT

ROWS_AT_ONCE = 100
"""Between two turns of the loop: a row is decoded within some ten microseconds."""

OwnerOf = Callable[[bytes, bytes, Rights], str | None]
"""The owner of a row, by its key and its body; None for one that is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """`what` is counted, in the plural. The settings are the bounds; `remedy` says how to have
    fewer."""

    what: str
    of_user: Setting[int]
    of_store: Setting[int]
    remedy: str

    def judge(self, settings: Settings, rights: Rights, user: str, held: Counter[str]) -> None:
        """Raises SQLError 53400 where `held`, by owners and with what the user has just made, is
        more than may be."""
        if rights.admin(user):
            return
        whose = ((f"user {user} has", held[user], self.of_user),
                 ("there are", held.total(), self.of_store))  # fmt: skip
        for subject, count, setting in whose:
            bound = settings.get(setting)
            if count > bound:
                raise SQLError(
                    "53400",
                    f"{subject} {bound} {self.what}, and may have no more",
                    hint=f"{self.remedy}, or have an admin raise the cluster setting "
                    f"{setting.name}.",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuota(Quota):
    """A quota of what has a row of a system table."""

    table: TableDescriptor
    owner_of: OwnerOf

    async def check(
        self, settings: Settings, rights: Rights, user: str, transaction: Transaction
    ) -> None:
        """As `judge`, of the rows that the transaction sees."""
        if rights.admin(user):
            return
        held, seen = Counter[str](), 0
        with transaction.tracking(False):
            async with aclosing(transaction.scan_slices(self.table.primary_span)) as slices:
                async for rows in slices:
                    for key, body in rows:
                        owner = self.owner_of(key, body, rights)
                        if owner is not None:
                            held[owner] += 1
                        seen += 1
                        if seen % ROWS_AT_ONCE == 0:
                            await give_way()
        self.judge(settings, rights, user, held)


def declare_bounds(
    what: str, prefix: str, of_user: int, of_store: int
) -> tuple[Setting[int], Setting[int]]:
    """The settings `prefix.max_per_user` and `prefix.max`."""
    return (
        declare_int(f"{prefix}.max_per_user", of_user, f"{what} of one user who is no admin"),
        declare_int(
            f"{prefix}.max", of_store, f"{what} of all users, beyond which only admins make some"
        ),
    )


def owned_rows(
    what: str,
    prefix: str,
    of_user: int,
    of_store: int,
    *,
    remedy: str,
    table: TableDescriptor,
    kind: str | None = None,
) -> RowQuota:
    """A quota of rows with a column `owner`, and of that `kind` where they have several."""
    codec, names = codec_for(table), [column.name for column in table.columns]
    owner_at, kind_at = names.index("owner"), names.index("kind") if kind is not None else 0

    def owner_of(key: bytes, body: bytes, _: Rights) -> str | None:
        row = codec.decode_row(key, body)
        if kind is not None and row[kind_at] != kind:
            return None
        return str(row[owner_at] or ROOT)

    bounds = declare_bounds(what, prefix, of_user, of_store)
    return RowQuota(
        what=what,
        of_user=bounds[0],
        of_store=bounds[1],
        remedy=remedy,
        table=table,
        owner_of=owner_of,
    )


def _owner_of_keyspace(key: bytes, body: bytes, rights: Rights) -> str | None:
    found = decode_stored(key, body, ZERO)
    if not isinstance(found, TableDescriptor) or found.keyspace is None or found.dropped:
        return None
    return rights.owner(found.id)


_KEYSPACES = declare_bounds("keyspaces", "sql.keyspaces", 500, 2_000)

KEYSPACE_QUOTA = RowQuota(
    what="keyspaces",
    of_user=_KEYSPACES[0],
    of_store=_KEYSPACES[1],
    remedy="DROP KEYSPACE",
    table=DESCRIPTOR,
    owner_of=_owner_of_keyspace,
)
