"""What `tailrace serve` says of other processes: who may join, whom to join, whose time to take."""

from __future__ import annotations

from pathlib import Path

from ..http import is_loopback
from ..joined_store import JoinTarget
from ..node import Node, NodeOptions
from ..refusal import NodeRefused
from ..rpc import JoinToken, JoinTokenError


def join_target(join: str | None, token: Path | None, rpc_port: int | None) -> JoinTarget | None:
    if join is None:
        if token is not None:
            raise NodeRefused("--join-token says nothing without --join HOST:PORT")
        return None
    if rpc_port is not None:
        raise NodeRefused("a joined node has no store to serve: leave out --rpc-port or --join")
    return _target("--join", join, token)


def oracle_target(oracle: str | None, token: Path | None, join: str | None) -> JoinTarget | None:
    """The store whose time is taken, if there is one. Raises NodeRefused."""
    if oracle is None:
        if token is not None:
            raise NodeRefused("--oracle-token says nothing without --oracle HOST:PORT")
        return None
    if join is not None:
        raise NodeRefused(
            "a joined node has the time of the store that it joins: leave out --oracle or --join"
        )
    return _target("--oracle", oracle, token)


def _target(option: str, address: str, token: Path | None) -> JoinTarget:
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not is_loopback(host.strip("[]")):
        raise NodeRefused(
            f"{option} takes the loopback address and the RPC port of a store, as 127.0.0.1:8081, "
            f"and not {address}"
        )
    if token is None:
        raise NodeRefused(
            f"{option} needs {option}-token FILE: the file join.token in that store's data folder"
        )
    return JoinTarget(address, token)


def rpc_address(host: str, port: int | None) -> tuple[str, int] | None:
    """Where nodes may join, if anywhere. Raises NodeRefused beyond loopback."""
    if port is None:
        return None
    if not is_loopback(host):
        raise NodeRefused(
            f"will not let nodes join on {host}: what they say is not encrypted, so only a "
            "loopback address is served (127.0.0.1, ::1, localhost); use a tunnel between machines"
        )
    return host, port


async def open_node(
    folder: Path, options: NodeOptions, rpc: tuple[str, int] | None, target: JoinTarget | None
) -> Node:
    """A node that serves the store in `folder`, to other nodes at `rpc`, or one that has joined."""
    if target is not None:
        node = await Node.join(folder, target, options)
        print(f"tailrace: node {node.id} of store {node.store.id} at {target.address}", flush=True)
        return node
    node = await Node.open(folder, options)
    print(f"tailrace: store {node.store.id} in {folder}", flush=True)
    if rpc is not None:
        try:
            token = _token_of(folder)
            port = await node.serve_nodes(*rpc, token)
        except BaseException:
            await node.close()
            raise
        print(f"tailrace: nodes may join at {shown(rpc[0])}:{port}", flush=True)
    return node


def _token_of(folder: Path) -> JoinToken:
    try:
        return JoinToken.of_folder(folder)
    except JoinTokenError as error:
        raise NodeRefused(str(error)) from error


def shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
