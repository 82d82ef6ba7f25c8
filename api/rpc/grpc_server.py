"""The gRPC server: brings messages to the service, from whoever knows the token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TypeAlias

import grpc
import grpc.aio

from ...changefeed.sinks.uri import bracketed
from .join_token import JoinToken
from .service import MessageUnreadable, NodeTurnedAway, StoreService

SERVICE = "tailrace.Store"
TOKEN_METADATA = "authorization"
MESSAGE_BYTES_MAX = 256 * 1024 * 1024
"""What a feed has at one moment is one message; its buffers are bounded well below this."""

CONNECTIONS_MAX = 100
"""Connections of nodes, and of strangers who find the port: each holds a descriptor. A node needs
one."""

HANDSHAKE_MS_MAX = 10_000
IDLE_MS_MAX = 30_000
"""A connection without a call; a node's has its session for as long as it lives."""

STOP_PATIENCE_SECONDS = 1.0

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
)

Context = grpc.aio.ServicerContext[bytes, bytes]
Method: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"


class RpcServer:
    """Serves a store to nodes, by TLS where it is given a certificate.

    The token is in a call's metadata and is looked at before anything of its message is read.
    """

    def __init__(self, service: StoreService, token: JoinToken) -> None:
        self._service = service
        self._token = token
        self._server = grpc.aio.server(
            options=(
                *CHANNEL_OPTIONS,
                ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
                ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS_MAX),
                ("grpc.max_connection_idle_ms", IDLE_MS_MAX),
            )
        )
        self.port = 0

    async def start(
        self, host: str, port: int, certificate: tuple[bytes, bytes] | None = None
    ) -> int:
        """Begins to listen; returns the port. The certificate and its key are PEM. Raises
        RuntimeError when the port is taken."""
        self._server.add_generic_rpc_handlers((_Guarded(self._service, self._token),))
        shown = bracketed(host)
        if certificate is None:
            self.port = self._server.add_insecure_port(f"{shown}:{port}")
        else:
            cert, key = certificate
            credentials = grpc.ssl_server_credentials([(key, cert)])
            self.port = self._server.add_secure_port(f"{shown}:{port}", credentials)
        self._service.start()
        await self._server.start()
        return self.port

    async def close(self) -> None:
        """Ends connections first, so that session streams do not hold the server up."""
        await self._service.close()
        await self._server.stop(STOP_PATIENCE_SECONDS)


class _Guarded(grpc.GenericRpcHandler):
    """The methods of a service, for calls that bear the token."""

    def __init__(self, service: StoreService, token: JoinToken) -> None:
        self._service = service
        self._token = token
        self._methods = {_path(name): self._unary(name) for name in service.calls}
        self._methods |= {_path(name): self._streaming(name) for name in service.streams}
        # A method whose client streams: the server answers it without having read a message.
        self._refusal: Method = grpc.stream_unary_rpc_method_handler(_refuse)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Method | None:
        metadata = handler_call_details.invocation_metadata or ()
        given = next((value for name, value in metadata if name == TOKEN_METADATA), "")
        if not self._token.matches(str(given)):
            return self._refusal
        return self._methods.get(handler_call_details.method)

    def _unary(self, method: str) -> Method:
        async def handle(body: bytes, context: Context) -> bytes:
            try:
                return await self._service.call(method, body)
            except MessageUnreadable as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

        return grpc.unary_unary_rpc_method_handler(handle)

    def _streaming(self, method: str) -> Method:
        async def handle(body: bytes, context: Context) -> AsyncIterator[bytes]:
            try:
                async with aclosing(self._service.stream(method, body)) as answers:
                    async for answer in answers:
                        yield answer
            except NodeTurnedAway as turned:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(turned))
            except MessageUnreadable as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

        return grpc.unary_stream_rpc_method_handler(handle)


def _path(method: str) -> str:
    return f"/{SERVICE}/{method}"


async def _refuse(bodies: AsyncIterator[bytes], context: Context) -> bytes:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the join token is not this one")
