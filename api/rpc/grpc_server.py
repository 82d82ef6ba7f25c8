"""The gRPC server: brings messages to the service, from whoever knows the token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import grpc
import grpc.aio

from .join_token import JoinToken
from .service import NodeTurnedAway, StoreService

SERVICE = "tailrace.Store"
TOKEN_METADATA = "authorization"
MESSAGE_BYTES_MAX = 256 * 1024 * 1024
"""What a feed has at one moment is one message; its buffers are bounded well below this."""

STOP_PATIENCE_SECONDS = 1.0

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
)

Context = grpc.aio.ServicerContext[bytes, bytes]


class RpcServer:
    """Serves a store to nodes on a loopback address."""

    def __init__(self, service: StoreService, token: JoinToken) -> None:
        self._service = service
        self._token = token
        self._server = grpc.aio.server(options=CHANNEL_OPTIONS)
        self.port = 0

    async def start(self, host: str, port: int) -> int:
        """Begins to listen; returns the port. Raises RuntimeError when it is taken."""
        handlers = {name: self._unary(name) for name in self._service.calls}
        handlers |= {name: self._streaming(name) for name in self._service.streams}
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        shown = f"[{host}]" if ":" in host else host
        self.port = self._server.add_insecure_port(f"{shown}:{port}")
        self._service.start()
        await self._server.start()
        return self.port

    async def close(self) -> None:
        """Ends connections first, so that session streams do not hold the server up."""
        await self._service.close()
        await self._server.stop(STOP_PATIENCE_SECONDS)

    def _unary(self, method: str) -> grpc.RpcMethodHandler[bytes, bytes]:
        async def handle(body: bytes, context: Context) -> bytes:
            await self._check(context)
            return await self._service.call(method, body)

        return grpc.unary_unary_rpc_method_handler(handle)

    def _streaming(self, method: str) -> grpc.RpcMethodHandler[bytes, bytes]:
        async def handle(body: bytes, context: Context) -> AsyncIterator[bytes]:
            await self._check(context)
            try:
                async with aclosing(self._service.stream(method, body)) as answers:
                    async for answer in answers:
                        yield answer
            except NodeTurnedAway as turned:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(turned))

        return grpc.unary_stream_rpc_method_handler(handle)

    async def _check(self, context: Context) -> None:
        """Ends the call unless it bears the token."""
        given = dict(context.invocation_metadata() or ()).get(TOKEN_METADATA, "")
        if not self._token.matches(str(given)):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the join token is not this one")
