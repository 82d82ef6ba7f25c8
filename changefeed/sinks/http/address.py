"""The address of a receiver: its name resolved, its addresses judged, one of them chosen.

A feed's owner names the receiver, and requests come from the node. So that nobody reaches by a feed
what only the node can, every address of the name must be public, and what was judged is what
requests go to: a name that means another address a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from ....catalog.values.errors import SQLError
from ....kvlayer.settings import Settings, declare_bool
from ..protocol import SinkError, cannot_connect
from .target import WebhookTarget

PRIVATE_ADDRESSES = declare_bool(
    "changefeed.webhook.private_addresses.enabled",
    False,
    "whether webhooks and schema registries, and whatever else users who are no admins name, may "
    "be at addresses that are not public, such as loopback",
)

INSECURE_HTTP = declare_bool(
    "changefeed.webhook.insecure_http.enabled",
    False,
    "whether changefeeds may go to webhook-http://, and ask schema registries, in the clear",
)

CONNECT_SECONDS = 10.0
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""IPv4 addresses as NAT64 writes them (RFC 6052)."""


class AddressRefused(SinkError):
    """The settings do not allow it now."""


async def find_address(
    target: WebhookTarget, settings: Settings, tls: ssl.SSLContext | None
) -> str:
    """An address of the target that takes connections. Raises SinkError in the words of who refused
    them, and AddressRefused where the settings do not allow the target."""
    if not target.secure and not settings.get(INSECURE_HTTP):
        raise AddressRefused(
            f"{target.shown}: requests in the clear are not allowed: encrypt them, or set "
            f"{INSECURE_HTTP.name}"
        )
    addresses = await _resolve(target)
    if not settings.get(PRIVATE_ADDRESSES):
        for address in addresses:
            if not public(address):
                raise AddressRefused(
                    f"{target.shown}: address {address} is not public, and "
                    f"{PRIVATE_ADDRESSES.name} is off"
                )
    failure: Exception | None = None
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await _connect(target, address, tls)
            return address
        except (OSError, ssl.SSLError, TimeoutError) as error:
            failure = failure or error
    words = str(failure) or f"no connection within {CONNECT_SECONDS:g} s"
    raise SinkError(f"{target.shown}: {words}")


async def check_address(target: WebhookTarget, settings: Settings) -> None:
    """Raises SQLError where the settings do not allow the target, or it takes no connections."""
    try:
        await find_address(target, settings, await target.tls())
    except AddressRefused as error:
        raise SQLError("42501", str(error)) from error
    except SinkError as error:
        raise cannot_connect(error) from error


def public(text: str) -> bool:
    """Whether an address is anybody's to reach, also behind the forms in which IPv6 holds IPv4."""
    address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        held = address.ipv4_mapped or address.sixtofour
        if address in _TRANSLATED:
            held = IPv4Address(int(address) & 0xFFFFFFFF)
        if held is not None:
            return public(str(held))
    return address.is_global and not address.is_multicast


async def _resolve(target: WebhookTarget) -> Sequence[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            target.host, target.port, type=socket.SOCK_STREAM
        )
    except OSError as error:
        raise SinkError(f"{target.shown}: {error.strerror or error}") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _connect(target: WebhookTarget, address: str, tls: ssl.SSLContext | None) -> None:
    _, writer = await asyncio.open_connection(
        address, target.port, ssl=tls, server_hostname=None if tls is None else target.host
    )
    writer.transport.abort()
