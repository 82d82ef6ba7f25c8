"""Options of `tailrace serve` about other processes: who may join, whom to join, whose time to
take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...changefeed.sinks.uri import bracketed
from ..http import is_loopback
from ..http.server import bind
from ..joined_store import JoinTarget
from ..node import Node, NodeOptions
from ..refusal import NodeRefused
from ..rpc import JoinToken, JoinTokenError
from ..tls import server_context

PORT_MAX = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherProcess:
    """Options about another process: its `address`, and the files of its token and authority."""

    option: str
    address: str | None
    token: Path | None
    authority: Path | None
    insecure: bool

    def target(self) -> JoinTarget | None:
        """The process to connect to; None without an address. Raises NodeRefused."""
        option = self.option
        if self.address is None:
            for name, file in (("token", self.token), ("ca", self.authority)):
                if file is not None:
                    raise NodeRefused(f"{option}-{name} says nothing without {option} HOST:PORT")
            return None
        host, colon, port = self.address.rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > PORT_MAX:
            raise NodeRefused(
                f"{option} takes the address and the RPC port of a store, as 127.0.0.1:8081, and "
                f"not {self.address}"
            )
        if self.token is None:
            raise NodeRefused(
                f"{option} needs {option}-token FILE: the file join.token in that store's data "
                "folder"
            )
        if self.authority is None and not is_loopback(host.strip("[]")) and not self.insecure:
            raise NodeRefused(
                f"will not send the join token to {host} in the clear: give {option}-ca FILE, the "
                "authority of that server's --cert"
            )
        return JoinTarget(self.address, self.token, self.authority)


def join_target(
    join: OtherProcess, rpc_port: int | None, *, salvage: bool = False
) -> JoinTarget | None:
    """The store to join, if there is one. Raises NodeRefused."""
    if join.address is not None and rpc_port is not None:
        raise NodeRefused("a joined node has no store to serve: leave out --rpc-port or --join")
    if join.address is not None and salvage:
        raise NodeRefused("a joined node has no files of the store: leave out --salvage or --join")
    return join.target()


def oracle_target(oracle: OtherProcess, join: str | None) -> JoinTarget | None:
    """The store whose time is taken, if there is one. Raises NodeRefused."""
    if oracle.address is not None and join is not None:
        raise NodeRefused(
            "a joined node has the time of the store that it joins: leave out --oracle or --join"
        )
    return oracle.target()


@dataclass(frozen=True, slots=True)
class RpcAddress:
    """The address at which nodes join; TLS is spoken there with a certificate and its key (PEM)."""

    host: str
    port: int
    certificate: tuple[bytes, bytes] | None = None


def rpc_address(
    host: str, port: int | None, *, cert: Path | None = None, key: Path | None = None
) -> RpcAddress | None:
    """The address where nodes may join, if anywhere: by TLS where there is a certificate. Raises
    NodeRefused for what would be in the clear beyond loopback."""
    if port is None:
        return None
    if cert is None or key is None:
        if not is_loopback(host):
            raise NodeRefused(
                f"will not let nodes join on {host} in the clear: give --cert and --key, or a "
                "loopback address (127.0.0.1, ::1, localhost)"
            )
        return RpcAddress(host, port)
    server_context(cert, key)
    return RpcAddress(host, port, (cert.read_bytes(), key.read_bytes()))


async def open_node(
    folder: Path, options: NodeOptions, rpc: RpcAddress | None, target: JoinTarget | None
) -> Node:
    """A node that serves the store in `folder`, to other nodes at `rpc`, or one that has joined."""
    if target is not None:
        node = await Node.join(folder, target, options)
        print(f"tailrace: node {node.id} of store {node.store.id} at {target.address}", flush=True)
        return node
    if rpc is not None:
        bind(rpc.host, rpc.port).close()  # gRPC would not say why it cannot, and not so soon
    node = await Node.open(folder, options)
    print(f"tailrace: store {node.store.id} in {folder}", flush=True)
    if rpc is not None:
        try:
            token = _token_of(folder)
            port = await node.serve_nodes(rpc.host, rpc.port, token, rpc.certificate)
        except BaseException:
            await node.close()
            raise
        print(f"tailrace: nodes may join at {bracketed(rpc.host)}:{port}", flush=True)
    return node


def _token_of(folder: Path) -> JoinToken:
    try:
        return JoinToken.of_folder(folder)
    except JoinTokenError as error:
        raise NodeRefused(str(error)) from error
