"""`/v1/tables`, `/v1/jobs`, `/v1/changefeeds`, `/v1/replications`, `/v1/sessions`, `/v1/settings`.

Each is a statement, run in a session of its request's user: so they say what SQL says, and refuse
whom SQL refuses. Items have the names of the statement's columns.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response

from ....catalog.descriptors.names import quote_identifier
from ....catalog.descriptors.system_tables import DEFAULT_DATABASE
from ....catalog.values.errors import SQLError
from ....sql import Result
from ...json_values import json_datum
from ...node import Node
from ..access import address_of, user_of
from ..bodies import (
    JSON,
    ChangefeedReply,
    ChangefeedRequest,
    ItemReply,
    ListReply,
    ReplicationRequest,
    SettingRequest,
    read_json,
)
from ..openapi import described
from ..statement_texts import literal, qualified, with_options

Id = Annotated[int, Path(ge=0, lt=2**63)]
Database = Annotated[str, Query()]


class JobControl(Enum):
    """The actions on a job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


class ReplicationControl(Enum):
    """The actions on a replication."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    REBALANCE = "rebalance"
    VERIFY = "verify"


def resource_routes(node: Node) -> APIRouter:
    router = APIRouter()
    _add_jobs(router, node)
    _add_changefeeds(router, node)
    _add_replications(router, node)
    _add_sessions(router, node)
    _add_settings(router, node)

    @router.get("/v1/tables", tags=["tables"], **described(reply=ListReply))
    async def tables(request: Request, database: Database = DEFAULT_DATABASE) -> Response:
        """The tables of a database."""
        return await _list(node, request, f"SHOW TABLES FROM {quote_identifier(database)}")

    @router.get("/v1/tables/{table}/columns", tags=["tables"], **described(reply=ListReply))
    async def columns(
        request: Request, table: str, database: Database = DEFAULT_DATABASE
    ) -> Response:
        """A table's columns, in the order of SELECT *."""
        return await _list(node, request, f"SHOW COLUMNS FROM {qualified(table)}", database)

    return router


def _add_jobs(router: APIRouter, node: Node) -> None:
    @router.get("/v1/jobs", tags=["jobs"], **described(reply=ListReply))
    async def jobs(request: Request) -> Response:
        """The jobs that the user may see."""
        return await _list(node, request, "SHOW JOBS")

    @router.get("/v1/jobs/{job}", tags=["jobs"], **described(reply=ItemReply))
    async def job(request: Request, job: Id) -> Response:
        return await _item(node, request, f"SHOW JOB {job}")

    @router.post("/v1/jobs/{job}/{control}", tags=["jobs"], **described(reply=ItemReply))
    async def control(request: Request, job: Id, control: JobControl) -> Response:
        """Asks a job to pause, resume or cancel; the reply is the job as it is then."""
        await _run(node, request, f"{control.value.upper()} JOB {job}")
        return await _item(node, request, f"SHOW JOB {job}")


def _add_changefeeds(router: APIRouter, node: Node) -> None:
    @router.get("/v1/changefeeds", tags=["changefeeds"], **described(reply=ListReply))
    async def changefeeds(request: Request) -> Response:
        """The changefeeds that the user may see."""
        return await _list(node, request, "SHOW CHANGEFEED JOBS")

    @router.get("/v1/changefeeds/{job}", tags=["changefeeds"], **described(reply=ItemReply))
    async def changefeed(request: Request, job: Id) -> Response:
        return await _item(node, request, f"SHOW CHANGEFEED JOB {job}")

    @router.post(
        "/v1/changefeeds",
        tags=["changefeeds"],
        **described(request=ChangefeedRequest, reply=ChangefeedReply),
    )
    async def create(request: Request) -> Response:
        """Makes a changefeed into a sink; it begins when this is answered, or soon after."""
        asked = await read_json(request, ChangefeedRequest)
        tables = ", ".join(map(qualified, asked.tables))
        text = f"CREATE CHANGEFEED FOR TABLE {tables} INTO {literal(asked.into)}"
        text += with_options(asked.options)
        result = await _run(node, request, text, asked.database)
        job_id = result.fetch_rows()[0][0]
        assert isinstance(job_id, int), job_id
        return Response(msgspec.json.encode(ChangefeedReply(job_id=job_id)), media_type=JSON)


def _add_replications(router: APIRouter, node: Node) -> None:
    place = "/v1/replications"
    tags: list[str | Enum] = ["replications"]

    @router.get(place, tags=tags, **described(reply=ListReply))
    async def replications(request: Request) -> Response:
        """The replications that the user may see."""
        return await _list(node, request, "SHOW REPLICATIONS")

    @router.post(place, tags=tags, **described(request=ReplicationRequest, reply=ListReply))
    async def create(request: Request) -> Response:
        """Makes a replication; the reply has the job of each of its tasks."""
        asked = await read_json(request, ReplicationRequest)
        text = f"CREATE REPLICATION {quote_identifier(asked.name)} FOR KEYSPACE "
        text += qualified(asked.keyspace)
        text += "" if asked.from_key is None else f" FROM {literal(asked.from_key)}"
        text += "" if asked.to_key is None else f" TO {literal(asked.to_key)}"
        text += f" INTO {literal(asked.into)}{with_options(asked.options)}"
        return await _list(node, request, text, asked.database)

    @router.get(f"{place}/{{replication}}/tasks", tags=tags, **described(reply=ListReply))
    async def tasks(request: Request, replication: str) -> Response:
        """The tasks of a replication, by their keys."""
        text = f"SHOW REPLICATION {quote_identifier(replication)} TASKS"
        return await _list(node, request, text)

    @router.post(f"{place}/{{replication}}/{{control}}", tags=tags, **described(reply=ListReply))
    async def control(request: Request, replication: str, control: ReplicationControl) -> Response:
        """Pauses a replication, and so on. The reply has the tasks of which `rebalance` changed the
        keys, or the keys that `verify` found to differ."""
        name = quote_identifier(replication)
        return await _list(node, request, f"{control.value.upper()} REPLICATION {name}")


def _add_sessions(router: APIRouter, node: Node) -> None:
    @router.get("/v1/sessions", tags=["sessions"], **described(reply=ListReply))
    async def sessions(request: Request) -> Response:
        """The sessions of this node that the user may see, this request's own among them."""
        return await _list(node, request, _ACTIVITY.format(id="session_id", state="state"))

    @router.delete("/v1/sessions/{session}", tags=["sessions"], status_code=204)
    async def cancel_session(request: Request, session: Id) -> Response:
        """Ends a session and its connection."""
        return await _end(node, request, "pg_terminate_backend", session)

    @router.get("/v1/queries", tags=["sessions"], **described(reply=ListReply))
    async def queries(request: Request) -> Response:
        """The queries that run on this node at this moment."""
        return await _list(node, request, _ACTIVITY.format(id="query_id", state="'active'"))

    @router.delete("/v1/queries/{query}", tags=["sessions"], status_code=204)
    async def cancel_query(request: Request, query: Id) -> Response:
        """Cuts short what a session runs; the session goes on."""
        return await _end(node, request, "pg_cancel_backend", query)


_ACTIVITY = """
    SELECT pid AS {id}, state AS status, usename AS user_name, datname AS database_name,
        client_addr AS client_address, application_name, query, backend_start AS session_start,
        query_start
    FROM pg_stat_activity WHERE state = {state} ORDER BY backend_start, pid"""
"""Sessions by their process ids, of which pg_stat_activity tells the user the state."""


async def _end(node: Node, request: Request, function: str, process_id: int) -> Response:
    """Raises SQLError 42704 where no session has the process id."""
    result = await _run(node, request, f"SELECT {function}({process_id})")
    if result.fetch_rows() != [(True,)]:
        raise SQLError(
            "42704", f"session {process_id} does not exist", hint="GET /v1/sessions lists them."
        )
    return Response(status_code=204)


def _add_settings(router: APIRouter, node: Node) -> None:
    @router.get("/v1/settings", tags=["settings"], **described(reply=ListReply))
    async def settings(request: Request) -> Response:
        return await _list(node, request, "SHOW CLUSTER SETTINGS")

    @router.get("/v1/settings/{name}", tags=["settings"], **described(reply=ItemReply))
    async def setting(request: Request, name: str) -> Response:
        """The value of a cluster setting."""
        return await _item(node, request, f"SHOW CLUSTER SETTING {qualified(name)}")

    @router.put(
        "/v1/settings/{name}",
        tags=["settings"],
        **described(request=SettingRequest, reply=ItemReply),
    )
    async def set_setting(request: Request, name: str) -> Response:
        asked = await read_json(request, SettingRequest)
        text = f"SET CLUSTER SETTING {qualified(name)} = {literal(asked.value)}"
        await _run(node, request, text)
        return await _item(node, request, f"SHOW CLUSTER SETTING {qualified(name)}")

    @router.delete("/v1/settings/{name}", tags=["settings"], **described(reply=ItemReply))
    async def reset_setting(request: Request, name: str) -> Response:
        """Back to its default."""
        await _run(node, request, f"RESET CLUSTER SETTING {qualified(name)}")
        return await _item(node, request, f"SHOW CLUSTER SETTING {qualified(name)}")


# Statements.


async def _run(node: Node, request: Request, text: str, database: str = DEFAULT_DATABASE) -> Result:
    session = node.session(database=database, user=user_of(request), address=address_of(request))
    try:
        (result,) = await session.execute(text)
    finally:
        await session.close()
    return result


def _objects(result: Result) -> list[dict[str, object]]:
    columns = result.columns
    return [
        {
            column.name: json_datum(column.type, value)
            for column, value in zip(columns, row, strict=True)
        }
        for row in result.fetch_rows()
    ]


async def _list(
    node: Node, request: Request, text: str, database: str = DEFAULT_DATABASE
) -> Response:
    items = _objects(await _run(node, request, text, database))
    return Response(msgspec.json.encode({"items": items}), media_type=JSON)


async def _item(node: Node, request: Request, text: str) -> Response:
    (item,) = _objects(await _run(node, request, text))
    return Response(msgspec.json.encode({"item": item}), media_type=JSON)
