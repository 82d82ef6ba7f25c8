"""Rights: who is a member of which role, who owns what, and what was granted to whom.

    privileges           (object_id, grantee) -> privileges, owner
    role_members         (role, member)

A user has what was granted to it, to the roles that it is a member of, at however many removes, and
to `public`. Whoever owns a thing has every privilege on it, and so do the members of the role that
owns it. What has no owner's row belongs to `root`. `root` is a member of `admin`, and a member of
`admin` may do everything. Row privileges on a database or a schema hold for the tables in it.

    GRANT reader TO ada;  GRANT SELECT ON orders TO reader
    rights.held("ada", orders)      SELECT
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from ...kvlayer.txn import Transaction
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.system_tables import FIRST_USER_ID, PRIVILEGES, ROLE_MEMBERS
from ..rows.row_codec import codec_for
from ..store.catalog_changes import CatalogChanges
from ..store.descriptor_store import DescriptorReader
from ..values.errors import SQLError
from .privileges import (
    ALL_OF,
    EVERYTHING,
    GRANTABLE_ON,
    ROW_PRIVILEGES,
    Privilege,
    Securable,
    SecurableKind,
    securable,
)
from .users import ADMIN, PUBLIC, ROOT, list_users

_privileges = codec_for(PRIVILEGES)
_members = codec_for(ROLE_MEMBERS)

MEMO_MAX = 100_000
"""Answers that are remembered until rights change, by user and object."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The privileges of one grantee on one object."""

    privileges: int = 0
    owner: bool = False

    @property
    def empty(self) -> bool:
        return not (self.privileges or self.owner)


class Rights:
    """Everybody's rights at one moment. Never changes; what is asked often is remembered."""

    def __init__(
        self,
        grants: Mapping[tuple[int, str], Grant],
        members: Collection[tuple[str, str]],
        logins: frozenset[str] = frozenset(),
    ) -> None:
        self._grants = grants
        self._logins = logins
        self._memberships = members
        self._parents: dict[str, list[str]] = {}
        for role, member in members:
            self._parents.setdefault(member, []).append(role)
        self._owners = {object: role for (object, role), grant in grants.items() if grant.owner}
        self._roles: dict[str, frozenset[str]] = {}
        self._held: dict[tuple[str, int, tuple[int, ...]], int] = {}
        self._met: dict[tuple[str, int], object] = {}

    def roles_of(self, user: str) -> frozenset[str]:
        """The user, the roles that it is a member of, and `public`."""
        known = self._roles.get(user)
        if known is None:
            found, left = {PUBLIC}, [user]
            while left:
                role = left.pop()
                if role not in found:
                    found.add(role)
                    left += self._parents.get(role, ())
                    left += [ADMIN] if role == ROOT else []
            known = self._roles[user] = frozenset(found)
        return known

    def admin(self, user: str) -> bool:
        return ADMIN in self.roles_of(user)

    def may_log_in(self, user: str) -> bool:
        """False for a role without login, and for one that was dropped."""
        return user == ROOT or user in self._logins

    def allow(self, user: str, table: TableDescriptor, privileges: int) -> bool:
        """Whether the user has all of the privileges on a table, and its schema's door."""
        schema = Securable(SecurableKind.SCHEMA, table.schema_id, "", (table.database_id,))
        return not (
            privileges & ~self.held(user, securable(table))
            or Privilege.USAGE & ~self.held(user, schema)
        )

    def owner(self, object_id: int) -> str:
        return self._owners.get(object_id, ROOT)

    def owns(self, user: str, object_id: int) -> bool:
        """Whether the user may do with it what only its owner may."""
        return self.admin(user) or self.owner(object_id) in self.roles_of(user)

    def held(self, user: str, object: Securable) -> int:
        """The privileges that the user has on an object."""
        key = (user, object.id, object.parents)
        held = self._held.get(key)
        if held is None:
            if len(self._held) >= MEMO_MAX:
                self._held.clear()
            held = self._held[key] = self._find(user, object)
        return held

    def known_met(self, user: str, needs: object) -> bool:
        """Whether these very needs, which a plan keeps, were found to be met by the user."""
        return self._met.get((user, id(needs))) is needs

    def note_met(self, user: str, needs: object) -> None:
        """Remembers it. Whoever remembers keeps the needs, so that no others take their place."""
        if len(self._met) >= MEMO_MAX:
            self._met.clear()
        self._met[user, id(needs)] = needs

    def _find(self, user: str, object: Securable) -> int:
        if self.admin(user):
            return EVERYTHING
        roles = self.roles_of(user)
        if 0 < object.id < FIRST_USER_ID and object.kind is SecurableKind.TABLE:
            return 0  # the system's own tables hold verifiers and jobs: they are for admins
        held = 0
        if object.kind is not SecurableKind.SYSTEM and self.owner(object.id) in roles:
            held = int(GRANTABLE_ON[object.kind])
        for role in roles:
            held |= self.grant(object.id, role).privileges
            for parent in object.parents if object.kind is SecurableKind.TABLE else ():
                held |= self.grant(parent, role).privileges & ROW_PRIVILEGES
        return held

    def grant(self, object_id: int, grantee: str) -> Grant:
        """The privileges that were granted on the object itself, to that grantee by name."""
        return self._grants.get((object_id, grantee), _NOTHING)

    def grants_on(self, object_id: int) -> Iterator[tuple[str, Grant]]:
        """By grantee."""
        found = [(who, grant) for (on, who), grant in self._grants.items() if on == object_id]
        return iter(sorted(found, key=lambda item: item[0]))

    def all_grants(self) -> Iterator[tuple[int, str, Grant]]:
        return ((on, who, grant) for (on, who), grant in self._grants.items())

    def memberships(self) -> list[tuple[str, str]]:
        """Role and member; `root`'s included."""
        return sorted({*self._memberships, (ADMIN, ROOT)})


_NOTHING = Grant()


async def read_rights(reader: DescriptorReader) -> Rights:
    """Everybody's rights as a transaction or a snapshot sees them."""
    grants = {}
    for key, body in await reader.scan(PRIVILEGES.primary_span):
        object_id, grantee, privileges, _, owner = _privileges.decode_row(key, body)
        assert isinstance(object_id, int), object_id
        assert isinstance(privileges, int), privileges
        grants[object_id, str(grantee)] = Grant(privileges, owner is True)
    members = []
    for key, body in await reader.scan(ROLE_MEMBERS.primary_span):
        role, member, _ = _members.decode_row(key, body)
        members.append((str(role), str(member)))
    logins = frozenset(user.name for user in await list_users(reader) if user.login)
    return Rights(grants, members, logins)


# Changes. None of them asks who makes it: that is for statements.


def grant_row(object_id: int, grantee: str, grant: Grant) -> tuple[bytes, bytes]:
    """A row of `system.privileges`."""
    return _privileges.encode_row((object_id, grantee, grant.privileges, 0, grant.owner))


async def find_grant(reader: DescriptorReader, object_id: int, grantee: str) -> Grant:
    key = _privileges.encode_key((object_id, grantee))
    body = await reader.get(key)
    if body is None:
        return _NOTHING
    _, _, privileges, _, owner = _privileges.decode_row(key, body)
    assert isinstance(privileges, int), privileges
    return Grant(privileges, owner is True)


async def put_grant(transaction: Transaction, object_id: int, grantee: str, grant: Grant) -> None:
    """Replaces what a grantee has on an object."""
    key, body = grant_row(object_id, grantee, grant)
    if grant.empty:
        await transaction.delete([key])
    else:
        await transaction.put([key], [body])
    CatalogChanges.of(transaction).rights_changed = True


async def add_privileges(
    transaction: Transaction, object_id: int, grantee: str, privileges: int
) -> None:
    found = await find_grant(transaction, object_id, grantee)
    added = replace(found, privileges=found.privileges | privileges)
    if added != found:
        await put_grant(transaction, object_id, grantee, added)


async def remove_privileges(
    transaction: Transaction, object_id: int, grantee: str, privileges: int
) -> None:
    found = await find_grant(transaction, object_id, grantee)
    kept = replace(found, privileges=found.privileges & ~privileges)
    if kept != found:
        await put_grant(transaction, object_id, grantee, kept)


async def set_owner(transaction: Transaction, rights: Rights, object_id: int, owner: str) -> None:
    """Gives an object to another owner. `rights` are as the transaction sees them."""
    before = rights.owner(object_id)
    if before == owner:
        return
    found = await find_grant(transaction, object_id, before)
    if found.owner:
        await put_grant(transaction, object_id, before, replace(found, owner=False))
    if owner != ROOT:
        found = await find_grant(transaction, object_id, owner)
        await put_grant(transaction, object_id, owner, replace(found, owner=True))


async def forget_object(transaction: Transaction, rights: Rights, object_id: int) -> None:
    """Removes what is known of an object that is dropped."""
    for grantee, _ in rights.grants_on(object_id):
        await put_grant(transaction, object_id, grantee, _NOTHING)


async def add_member(transaction: Transaction, rights: Rights, role: str, member: str) -> None:
    """Raises SQLError 0LP01 where the role would be a member of itself."""
    if role == member or member in rights.roles_of(role) - {PUBLIC}:
        raise SQLError("0LP01", f'making "{member}" a member of "{role}" would create a cycle')
    key, body = _members.encode_row((role, member, False))
    await transaction.put([key], [body])
    CatalogChanges.of(transaction).rights_changed = True


async def remove_member(transaction: Transaction, role: str, member: str) -> None:
    """Raises SQLError 42704 where it is no member."""
    key = _members.encode_key((role, member))
    if await transaction.get(key) is None:
        raise SQLError("42704", f'role "{member}" is not a member of role "{role}"')
    await transaction.delete([key])
    CatalogChanges.of(transaction).rights_changed = True


def initial_grants(kind: SecurableKind, name: str) -> int:
    """The privileges of `public` on a new object: to connect to databases, work in `public`, and
    make columns of any type."""
    if kind is SecurableKind.DATABASE:
        return int(Privilege.CONNECT)
    if kind is SecurableKind.SCHEMA and name == PUBLIC:
        return int(ALL_OF[SecurableKind.SCHEMA])
    if kind is SecurableKind.TYPE:
        return int(Privilege.USAGE)
    return 0
