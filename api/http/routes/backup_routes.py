"""`POST /v1/backup`: the store's state as a tar archive, which `tailrace backup` writes down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from ....catalog.rights.audit import DONE, AuditEvent
from ....catalog.values.errors import SQLError
from ...backup import ServedBackup
from ...node import Node
from ..access import address_of, lacking, user_of

TAR = "application/x-tar"


def backup_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["backup"])
    archive = {"schema": {"type": "string", "format": "binary"}}

    @router.post(
        "/v1/backup",
        response_class=Response,
        responses={200: {"description": "The archive", "content": {TAR: archive}}},
    )
    async def take(request: Request) -> Response:
        """A consistent copy of the store with all that was acknowledged before, for
        `tailrace backup`. One at a time (409, 55006)."""
        if node.backups is None:
            why = "has joined another's store: ask the one that serves it"
            raise HTTPException(
                409, f"this node {why}" if node.served is None else "a store in memory has no files"
            )
        user, path = user_of(request), request.url.path
        node.services.audit.record(
            AuditEvent(event="Backup", outcome=DONE, user=user, address=address_of(request))
        )
        return _BackupReply(await node.backups.begin(), lambda: lacking(node, user, path))

    return router


class _BackupReply(StreamingResponse):
    """Broken off when its user may have it no longer."""

    def __init__(self, backup: ServedBackup, refusal: Callable[[], SQLError | None]) -> None:
        super().__init__(
            _while_allowed(backup.chunks(), refusal),
            media_type=TAR,
            headers={"content-length": str(backup.size)},
        )
        self._backup = backup

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._backup.close()


async def _while_allowed(
    chunks: AsyncIterator[bytes], refusal: Callable[[], SQLError | None]
) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        if (refused := refusal()) is not None:
            raise refused
        yield chunk
