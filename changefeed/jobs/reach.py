"""The addresses to which users may have the node connect.

A sink's requests come from the node, so its URI could reach what only the node can: services on
loopback, a private network, the cloud's own address 169.254.169.254. Who is no admin therefore
names servers at public addresses alone, or an external connection, which takes a privilege to make.
Webhooks and registries are judged more strictly (`sinks.http.address`).

Judged when a feed is created, and at each attempt: names may lead elsewhere by then.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Sequence

from ...catalog.rights.privileges import SYSTEM, Privilege
from ...catalog.values.errors import SQLError
from ..sinks.http.address import PRIVATE_ADDRESSES, public
from .services import ChangefeedServices


async def check_reach(services: ChangefeedServices, uri: str, user: str) -> None:
    """Raises SQLError 42501 where the user may not have the node connect to what a sink's URI
    names. A name that leads nowhere yet is judged by who connects to it."""
    await check_hosts(services, services.kinds.kind_of(uri).hosts(uri), user)


async def check_hosts(services: ChangefeedServices, hosts: Iterable[str], user: str) -> None:
    """The same for servers."""
    rights = services.rights.current
    if rights.admin(user) or rights.held(user, SYSTEM) & Privilege.EXTERNALCONNECTION:
        return
    if services.store.settings.get(PRIVATE_ADDRESSES):
        return
    for host in hosts:
        for address in await _addresses(host):
            if not public(address):
                raise SQLError(
                    "42501",
                    f"user {user} may not have the node connect to {host}: its address {address} "
                    "is not public",
                    hint="Feed an external connection, or have an admin set "
                    f"{PRIVATE_ADDRESSES.name}.",
                )


async def _addresses(host: str) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
