"""The pages' routes: their files, their event streams, and what their buttons do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.exceptions import HTTPException

from ...node import Node
from ...web.assets import asset
from ...web.comparison import SAMPLE_SECONDS, Comparison, Refused
from ...web.overview import Overview
from ..access import lacking, user_of
from ..bodies import JSON, read_json
from ..event_stream import event_stream

OVERVIEW_SECONDS = 1.0


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a button's request: a browser sends JSON to its own origin only."""


class Dashboard:
    """The two pages of one server. `router` serves them; `close` ends what they run."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._overview = Overview(node)
        self._comparison = Comparison(node)
        self.router = APIRouter(tags=["dashboard"])
        self._add_files()
        self._add_events()
        self._add_actions()

    async def close(self) -> None:
        """Ends what the comparison runs. Before the node closes."""
        await self._comparison.close()

    def _add_files(self) -> None:
        @self.router.get("/", include_in_schema=False)
        async def overview_page() -> FileResponse:
            return asset("overview.html")

        @self.router.get("/compare", include_in_schema=False)
        async def comparison_page() -> FileResponse:
            return asset("compare.html")

        @self.router.get("/web/{path:path}", include_in_schema=False)
        async def file(path: str) -> FileResponse:
            return asset(path)

    def _add_events(self) -> None:
        @self.router.get("/v1/overview/events", response_class=StreamingResponse)
        async def overview_events(request: Request) -> StreamingResponse:
            """Every changefeed's state, once a second, as server-sent events."""
            return event_stream(
                request,
                self._overview.render,
                every_seconds=OVERVIEW_SECONDS,
                allowed=self._allowed(request),
            )

        @self.router.get("/v1/compare/events", response_class=StreamingResponse)
        async def comparison_events(request: Request) -> StreamingResponse:
            """The comparison as it stands, four times a second, as server-sent events."""
            return event_stream(
                request,
                self._render_comparison,
                every_seconds=SAMPLE_SECONDS,
                allowed=self._allowed(request),
            )

    def _allowed(self, request: Request) -> Callable[[], bool]:
        """Whether the request's user may still see what is behind its path."""
        user, path, rights = user_of(request), request.url.path, self._node.services.rights
        return lambda: rights.current.may_log_in(user) and not lacking(self._node, user, path)

    def _add_actions(self) -> None:
        comparison = self._comparison
        actions: dict[str, Callable[[], Awaitable[None]]] = {
            "start": comparison.start,
            "stop": comparison.stop,
            "lock": comparison.lock,
            "unlock": comparison.unlock,
            "open-transaction": comparison.open_transaction,
            "close-transaction": comparison.close_transaction,
        }

        @self.router.post("/v1/compare/{action}")
        async def act(action: str, request: Request) -> Response:
            """Does what one of the comparison's buttons does, and returns how it stands then.

            `action` is start, stop, lock, unlock, open-transaction or close-transaction.
            """
            await read_json(request, Nothing)
            if action not in actions:
                raise HTTPException(404, f'no action "{action}": there are {", ".join(actions)}')
            try:
                await actions[action]()
            except Refused as error:
                raise HTTPException(409, str(error)) from error
            return Response(await self._render_comparison(), media_type=JSON)

    async def _render_comparison(self) -> bytes:
        return msgspec.json.encode(self._comparison.reply())
