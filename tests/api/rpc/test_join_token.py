"""Who is answered at the door for nodes, and what is read of the others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from tailrace.api.cli.joining import RpcAddress, open_node, rpc_address
from tailrace.api.node import Node, NodeOptions
from tailrace.api.refusal import NodeRefused
from tailrace.api.rpc import JoinToken
from tailrace.api.rpc.grpc_server import SERVICE

PATIENCE_SECONDS = 20.0


async def answer(folder: Path, metadata: tuple[tuple[str, str], ...]) -> grpc.StatusCode:
    """What a call ends in whose message never comes."""
    node = await Node.open(folder)
    port = await node.serve_nodes("127.0.0.1", 0, JoinToken("right"))
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    silent = asyncio.Event()

    async def nothing() -> AsyncIterator[bytes]:
        await silent.wait()
        yield b""

    call: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary(
        f"/{SERVICE}/heartbeat"
    )
    try:
        await call(nothing(), metadata=metadata, timeout=PATIENCE_SECONDS)
    except grpc.aio.AioRpcError as error:
        return error.code()
    finally:
        silent.set()
        await channel.close()
        await node.close()
    raise AssertionError("it was answered")


@pytest.mark.parametrize("metadata", [(), (("authorization", "wrong"),)])
def test_who_lacks_the_token_is_refused_before_the_message(
    tmp_path: Path, metadata: tuple[tuple[str, str], ...]
) -> None:
    code = asyncio.run(answer(tmp_path / "data", metadata))
    assert code is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_nodes_join_in_the_clear_on_loopback_alone(host: str) -> None:
    assert rpc_address(host, None) is None
    assert rpc_address("127.0.0.1", 8081) == RpcAddress("127.0.0.1", 8081)
    with pytest.raises(NodeRefused, match="give --cert and --key"):
        rpc_address(host, 8081)


def test_port_that_is_taken_is_found_before_the_store_is_opened(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        opening = open_node(tmp_path / "data", NodeOptions(), RpcAddress("127.0.0.1", port), None)
        with pytest.raises(NodeRefused, match=f"listen on 127.0.0.1:{port}: Address already"):
            asyncio.run(opening)
    assert not (tmp_path / "data").exists()
