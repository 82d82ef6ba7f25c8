"""A node's gRPC channel to the process that serves its store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import grpc
import grpc.aio

from ...kvlayer.remote import ChannelBroken, ChannelRefused
from .authority import Authority
from .grpc_server import CHANNEL_OPTIONS, SERVICE, TOKEN_METADATA
from .join_token import JoinToken

Ask = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
Follow = grpc.aio.UnaryStreamMultiCallable[bytes, bytes]

_REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.FAILED_PRECONDITION)


class GrpcChannel:
    """Implements `kvlayer.remote.Channel`: by TLS, where there is an authority to know the server
    by."""

    def __init__(self, target: str, token: JoinToken, authority: Authority | None = None) -> None:
        self._target = target
        self._credentials = (
            None if authority is None else grpc.ssl_channel_credentials(authority.pem)
        )
        self._metadata = ((TOKEN_METADATA, token.reveal()),)
        self._channel = self._open()

    async def call(self, method: str, body: bytes) -> bytes:
        channel = self._channel
        ask: Ask = channel.unary_unary(f"/{SERVICE}/{method}")
        try:
            answer: bytes = await ask(body, metadata=self._metadata)
            return answer
        except grpc.aio.AioRpcError as error:
            raise _broken(error) from error
        except asyncio.CancelledError:
            self._raise_if_reset(channel)
            raise
        except grpc.aio.UsageError as error:  # the channel was closed under it
            raise ChannelBroken(str(error), sent=False) from error

    async def stream(self, method: str, body: bytes) -> AsyncGenerator[bytes, None]:
        channel = self._channel
        follow: Follow = channel.unary_stream(f"/{SERVICE}/{method}")
        answers = follow(body, metadata=self._metadata)
        try:
            async for answer in answers:
                yield answer
        except grpc.aio.AioRpcError as error:
            raise _broken(error) from error
        except asyncio.CancelledError:
            self._raise_if_reset(channel)
            raise
        except grpc.aio.UsageError as error:
            raise ChannelBroken(str(error), sent=False) from error
        finally:
            answers.cancel()

    async def reset(self) -> None:
        """Ends all calls with ChannelBroken; the next call connects anew."""
        former, self._channel = self._channel, self._open()
        await former.close()

    async def close(self) -> None:
        await self._channel.close()

    def _open(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self._target, options=CHANNEL_OPTIONS)
        return grpc.aio.secure_channel(self._target, self._credentials, options=CHANNEL_OPTIONS)

    def _raise_if_reset(self, channel: grpc.aio.Channel) -> None:
        """Closing a channel cancels what waits on it, as if its task had been cancelled."""
        task = asyncio.current_task()
        if channel is not self._channel and (task is None or not task.cancelling()):
            raise ChannelBroken("the connection was reset", sent=True) from None


def _broken(error: grpc.aio.AioRpcError) -> ChannelBroken | ChannelRefused:
    details = error.details() or error.code().name
    if error.code() in _REFUSED:
        return ChannelRefused(details)
    # A server that could not be reached at all was asked nothing; of the rest nobody knows.
    sent = "failed to connect" not in details.lower()
    return ChannelBroken(f"the store's server is not there ({details})", sent=sent)
