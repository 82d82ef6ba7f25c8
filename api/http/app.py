"""The application: routes, and how errors become answers."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import msgspec
from fastapi import APIRouter, FastAPI, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ...catalog.values.errors import SQLError
from ...changefeed import JOB_KIND
from ...changefeed.export import PositionUnknown
from ...kvlayer.errors import ClockStopped, KVError
from ..node import FULL, Node
from .access import Access, Doorkeeper
from .bodies import JSON, Health
from .host_check import LoopbackHosts
from .openapi import described, install_openapi
from .origin_check import SameOrigin
from .problems import (
    answer_bad_request,
    answer_fault,
    answer_http_error,
    answer_kv_error,
    answer_nobody,
    answer_sql_error,
)
from .routes.backup_routes import backup_routes
from .routes.changes_routes import changes_routes
from .routes.debug_routes import debug_routes
from .routes.export_routes import export_routes
from .routes.keyspace_routes import keyspace_routes
from .routes.load_routes import load_routes
from .routes.login_routes import login_routes
from .routes.metrics_routes import metrics_routes
from .routes.position_routes import answer_unknown_position, position_routes
from .routes.relaxed_routes import relaxed_routes
from .routes.resource_routes import resource_routes
from .routes.sql_routes import sql_routes
from .routes.transaction_routes import transaction_routes
from .transactions import HeldTransactions

VERSION = version("tailrace")

FAILED = "failed"

PATIENCE_SECONDS = 5.0
"""A store that has not answered a small read by then is not well."""


def create_app(
    node: Node,
    *more: APIRouter,
    held: HeldTransactions | None = None,
    trust: bool = True,
    loopback: bool = True,
) -> FastAPI:
    """REST for a node, with `more` beside it. The node is its maker's to close, and so is `held`.

    With `trust` everybody is root; `loopback` says that it listens there only, and so answers to
    no other name.
    """
    doorkeeper = Doorkeeper(node, trust=trust)
    held = held or HeldTransactions(node)
    app = FastAPI(title="Tailrace", version=VERSION, docs_url=None, redoc_url=None)
    app.include_router(login_routes(node, doorkeeper))
    app.include_router(sql_routes(node, held))
    app.include_router(transaction_routes(held))
    app.include_router(resource_routes(node))
    app.include_router(changes_routes(node))
    app.include_router(load_routes(node))
    app.include_router(relaxed_routes(node))
    app.include_router(keyspace_routes(node))
    app.include_router(export_routes(node))
    app.include_router(position_routes(node))
    app.include_router(_health_routes(node))
    app.include_router(metrics_routes(node))
    app.include_router(debug_routes(node))
    app.include_router(backup_routes(node))
    for router in more:
        app.include_router(router)
    app.add_middleware(Access, node=node, doorkeeper=doorkeeper)
    app.add_middleware(SameOrigin)
    if loopback:
        app.add_middleware(LoopbackHosts)
    app.add_exception_handler(SQLError, answer_sql_error)
    app.add_exception_handler(KVError, answer_kv_error)
    app.add_exception_handler(PositionUnknown, answer_unknown_position)
    app.add_exception_handler(HTTPException, answer_http_error)
    app.add_exception_handler(RequestValidationError, answer_bad_request)
    app.add_exception_handler(ClientDisconnect, answer_nobody)
    app.add_exception_handler(Exception, answer_fault)
    install_openapi(app)
    app.openapi()  # now, because it takes longer than a step of the loop may
    return app


def _health_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz", **described(reply=Health))
    async def health() -> Response:
        """200 while the store answers, 503 with the reason once it does not. A full disk is no
        reason to end a server that serves reads, and would not start again: 200, and told."""
        found = await _look(node)
        status = 503 if found.status == FAILED else 200
        return Response(msgspec.json.encode(found), status_code=status, media_type=JSON)

    return router


async def _look(node: Node) -> Health:
    log = None if node.served is None else node.served.log
    feeds: int | None = None
    reason: str | None
    status, reason = node.degraded or ("ok", None)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            feeds = await _feed_count(node)
    except ClockStopped as error:
        status, reason = FULL, str(error)
    except KVError as error:
        status, reason = FAILED, str(error)
    except TimeoutError:
        status, reason = FAILED, f"the store has not answered within {PATIENCE_SECONDS:g} s"
    return Health(
        status=status,
        store_id=node.store.id,
        version=VERSION,
        durable_index=None if log is None else log.durable_index,
        feeds=feeds,
        reason=reason,
    )


async def _feed_count(node: Node) -> int:
    """Changefeeds that have not ended. A read of the store, so it also says whether that works."""
    node.store.check_open()
    await node.store.now()
    return sum(job.kind == JOB_KIND for job in node.jobs.live())
