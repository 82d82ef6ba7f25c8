"""TLS between nodes, as nodes.md has it: who is joined by it, who is refused, and where the token
does not go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from tailrace.api.cli.joining import (
    OtherProcess,
    RpcAddress,
    join_target,
    oracle_target,
    rpc_address,
)
from tailrace.api.joined_store import JoinTarget
from tailrace.api.node import Node, NodeOptions
from tailrace.api.refusal import NodeRefused
from tailrace.api.rpc import JoinToken
from tailrace.api.rpc.grpc_server import SERVICE
from tests.harness.certificates import CertificateAuthority, certificate

TOKEN = Path("join.token")


@asynccontextmanager
async def served(folder: Path, *, tls: bool) -> AsyncIterator[JoinTarget]:
    """How a store is joined whose certificate is of the authority `right`, if it has one."""
    right = CertificateAuthority(folder, "right")
    cert, key = right.sign(folder)
    data = folder / "data"
    node = await Node.open(data)
    try:
        files = {"cert": cert, "key": key} if tls else {}
        address = rpc_address("127.0.0.1", 0, **files)
        assert address is not None
        token = JoinToken.of_folder(data)
        port = await node.serve_nodes(address.host, 0, token, address.certificate)
        authority = right.path if tls else None
        yield JoinTarget(f"127.0.0.1:{port}", data / TOKEN, authority)
    finally:
        await node.close()


def test_a_node_joins_by_tls(tmp_path: Path) -> None:
    """And so does the store whose time is that one's."""

    async def body() -> None:
        async with served(tmp_path, tls=True) as target:
            joined = await Node.join(tmp_path / "node", target)
            try:
                session = joined.session()
                await session.execute("CREATE TABLE t (k INT8 PRIMARY KEY)")
                await session.close()
            finally:
                await joined.close()
            timed = await Node.open(tmp_path / "timed", NodeOptions(oracle=target))
            await timed.close()

    asyncio.run(body())


def test_a_folder_of_a_node_that_was_refused_may_be_a_stores(tmp_path: Path) -> None:
    other = CertificateAuthority(tmp_path, "other")

    async def body() -> None:
        async with served(tmp_path, tls=True) as right:
            with pytest.raises(NodeRefused):
                await Node.join(
                    tmp_path / "node", JoinTarget(right.address, right.token_path, other.path)
                )
        await (await Node.open(tmp_path / "node")).close()

    asyncio.run(body())


def test_another_authority_is_refused(tmp_path: Path) -> None:
    other = CertificateAuthority(tmp_path, "other")

    async def body() -> None:
        async with served(tmp_path, tls=True) as right:
            target = JoinTarget(right.address, right.token_path, other.path)
            with pytest.raises(NodeRefused, match=r"other\.pem, that it is .* give the authority"):
                await Node.join(tmp_path / "node", target)
            with pytest.raises(NodeRefused, match=r"has its first time.* give the authority"):
                await Node.open(tmp_path / "timed", NodeOptions(oracle=target))

    asyncio.run(body())


def test_a_name_that_the_certificate_lacks_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        async with served(tmp_path, tls=True) as right:
            address = right.address.replace("127.0.0.1", "localhost")
            target = JoinTarget(address, right.token_path, right.authority_path)
            with pytest.raises(
                NodeRefused, match=r"that it is localhost .* address and to be valid"
            ):
                await Node.join(tmp_path / "node", target)

    asyncio.run(body())


def test_who_speaks_in_the_clear_is_told_of_tls(tmp_path: Path) -> None:
    async def body() -> None:
        async with served(tmp_path, tls=True) as right:
            with pytest.raises(NodeRefused, match="it speaks TLS: give the authority"):
                await Node.join(tmp_path / "node", JoinTarget(right.address, right.token_path))
            channel = grpc.aio.insecure_channel(right.address)
            heartbeat: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                f"/{SERVICE}/heartbeat"
            )
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await heartbeat(b"", metadata=(("authorization", "any"),))
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            await channel.close()

    asyncio.run(body())


def test_who_speaks_tls_is_told_that_the_server_does_not(tmp_path: Path) -> None:
    right = CertificateAuthority(tmp_path, "right")

    async def body() -> None:
        async with served(tmp_path, tls=False) as clear:
            target = JoinTarget(clear.address, clear.token_path, right.path)
            with pytest.raises(NodeRefused, match="it does not speak TLS: start it with --cert"):
                await Node.join(tmp_path / "node", target)

    asyncio.run(body())


def test_what_is_no_authority_is_refused(tmp_path: Path) -> None:
    token = tmp_path / TOKEN
    token.touch(0o600)
    token.write_text("secret")
    for text in (None, "no certificate"):
        if text is not None:
            (tmp_path / "ca.pem").write_text(text)
        target = JoinTarget("127.0.0.1:1", token, tmp_path / "ca.pem")
        with pytest.raises(NodeRefused, match=r"cannot use the authority .*ca\.pem"):
            asyncio.run(Node.join(tmp_path / "node", target))


def other(
    option: str = "--join",
    *,
    address: str | None = "192.0.2.1:8081",
    token: Path | None = TOKEN,
    authority: Path | None = None,
    insecure: bool = False,
) -> OtherProcess:
    return OtherProcess(
        option=option, address=address, token=token, authority=authority, insecure=insecure
    )


@pytest.mark.parametrize("option", ["--join", "--oracle"])
def test_the_token_is_not_sent_in_the_clear_beyond_loopback(option: str) -> None:
    for host in ("192.0.2.1", "example.com", "[2001:db8::1]"):
        address = f"{host}:8081"
        with pytest.raises(NodeRefused, match=f"in the clear: give {option}-ca FILE"):
            other(option, address=address).target()
        assert other(option, address=address, authority=TOKEN).target()
        assert other(option, address=address, insecure=True).target()
    assert other(option, address="127.0.0.1:8081").target()


def test_options_without_a_process_are_refused() -> None:
    for lone in (other(address=None), other(address=None, token=None, authority=TOKEN)):
        with pytest.raises(NodeRefused, match="says nothing without --join HOST:PORT"):
            join_target(lone, None)
    assert join_target(other(address=None, token=None), None) is None
    assert oracle_target(other("--oracle", address=None, token=None), "a:1") is None
    for address in ("8081", ":8081", "host:port", "host:65536"):
        with pytest.raises(NodeRefused, match="takes the address and the RPC port"):
            other(address=address).target()


def test_nodes_join_beyond_loopback_by_tls(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    found = rpc_address("192.0.2.1", 8081, cert=cert, key=key)
    assert found == RpcAddress("192.0.2.1", 8081, (cert.read_bytes(), key.read_bytes()))
    with pytest.raises(NodeRefused, match="cannot use the certificate"):
        rpc_address("127.0.0.1", 8081, cert=key, key=cert)
