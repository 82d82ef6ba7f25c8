"""Places: the files and folders of a node that feeds write, and who may feed into each.

    system.sink_places    (node_id, path) -> owner

Whoever creates the first feed into a place owns it, and the owner's members and admins may create
others. A file or folder that was there before any feed is root's; so is what a dropped user owned.
A place within another one (a lake's folder) is fed with that one's owner's right too.
"""

from __future__ import annotations

from ...catalog.descriptors.system_tables import SINK_PLACES
from ...catalog.rights.users import ROOT
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from .services import ChangefeedServices

_places = codec_for(SINK_PLACES)


async def claim_place(
    services: ChangefeedServices, transaction: Transaction, uri: str, user: str
) -> None:
    """Makes the user the owner of what is nobody's. Raises SQLError 42501 where it is another's."""
    place = services.kinds.kind_of(uri).place(uri)
    if place is None:
        return
    rights = services.rights.current
    with transaction.tracking(True):  # of two who would be the first, one does not commit
        owners = [
            await _owner(transaction, services.node_id, path)
            for path in (place.path, *place.around)
        ]
    own = owners[0]
    if own is None and place.occupied:
        own = ROOT
    for owner in (own, *owners[1:]):
        if owner is not None and owner not in rights.roles_of(user) and not rights.admin(user):
            raise SQLError(
                "42501",
                f"user {user} may not feed into {place.path}, which belongs to {owner}",
                hint=f"Choose another place, or be granted the role {owner}.",
            )
    if owners[0] is None:
        key, body = _places.encode_row((services.node_id, place.path, own or user))
        await transaction.put([key], [body])


async def give_places(transaction: Transaction, owner: str, to: str) -> None:
    """Gives what a role owns to another one."""
    for key, body in await transaction.scan(SINK_PLACES.primary_span):
        node_id, path, before = _places.decode_row(key, body)
        if before == owner:
            given, value = _places.encode_row((node_id, path, to))
            await transaction.put([given], [value])


async def _owner(transaction: Transaction, node_id: int, path: str) -> str | None:
    key = _places.encode_key((node_id, path))
    body = await transaction.get(key)
    return None if body is None else str(_places.decode_row(key, body)[2])
